/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * For loaders with libbpf: takes the maps of a table from where `fibula bpf load` pinned them.
 *
 *     object = bpf_object__open_file("program.bpf.o", NULL);
 *     error = fibula_bpf_take(object, "routes", "/sys/fs/bpf/routes");     // before bpf_object__load
 *
 * `routes` is the name in FIBULA_IPV4(routes) or FIBULA_IPV6(routes).
 */
#ifndef FIBULA_BPF_LOAD_H
#define FIBULA_BPF_LOAD_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Makes the object use the pinned maps. Returns 0, or a negative number: -ENOENT where nothing is pinned or the object has no table of
 * the name; -EMEDIUMTYPE where the program was compiled for another family, engine, layout or room, or for arrays where an arena is
 * pinned. The object must not be loaded then, as it would get maps of its own, which are empty. */
static inline int fibula_bpf_take(struct bpf_object *object, const char *name, const char *folder) {
    struct bpf_map *map;
    size_t length = strlen(name);
    int taken = 0;
    bpf_object__for_each_map(map, object) {
        const char *found = bpf_map__name(map);
        struct bpf_map_info info;
        __u32 bytes = sizeof info;
        char path[4096];
        int fd, error;
        if (strncmp(found, name, length) != 0 || found[length] != '_' || strlen(found) != length + 2) {
            continue;
        }
        if (snprintf(path, sizeof path, "%s/%s", folder, found + length + 1) >= (int)sizeof path) {
            return -ENAMETOOLONG;
        }
        fd = bpf_obj_get(path);
        if (fd < 0) {
            error = -errno;
            snprintf(path, sizeof path, "%s/h", folder);
            /* A table that lacks the map is of another kind. */
            return error == -ENOENT && access(path, F_OK) == 0 ? -EMEDIUMTYPE : error;
        }
        memset(&info, 0, sizeof info);
        error = bpf_obj_get_info_by_fd(fd, &info, &bytes);
        if (error == 0 && (info.type != (__u32)bpf_map__type(map) || info.value_size != bpf_map__value_size(map) ||
                           info.max_entries != bpf_map__max_entries(map))) {
            error = -EMEDIUMTYPE;
        }
        if (error == 0) {
            error = bpf_map__reuse_fd(map, fd);
        }
        close(fd);
        if (error != 0) {
            return error;
        }
        taken++;
    }
    return taken > 0 ? 0 : -ENOENT;
}

#endif
