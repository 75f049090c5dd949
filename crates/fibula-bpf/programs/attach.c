/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 * Attaches programs until a signal. NAME is a table in the object, PINS a folder that `fibula bpf load` made. */
#include <fibula_bpf_load.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>

static void fail(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error < 0 ? -error : error));
    exit(1);
}

int main(int count, char **arguments) {
    sigset_t signals;
    struct bpf_program *program;
    int signal, error;
    if (count < 4) {
        fail("attach OBJECT DEVICE-OR-CGROUP NAME=PINS...", EINVAL);
    }
    struct bpf_object *object = bpf_object__open_file(arguments[1], NULL);
    if (!object) {
        fail(arguments[1], errno);
    }
    for (int at = 3; at < count; at++) {
        char *name = strtok(arguments[at], "="), *pins = strtok(NULL, "=");
        if (!pins || (error = fibula_bpf_take(object, name, pins)) != 0) {
            fail(pins ? pins : name, pins ? error : EINVAL);
        }
    }
    if ((error = bpf_object__load(object)) != 0) {
        fail(arguments[1], error);
    }
    int device = (int)if_nametoindex(arguments[2]), group = open(arguments[2], O_RDONLY | O_DIRECTORY);
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = device, .attach_point = BPF_TC_EGRESS);
    LIBBPF_OPTS(bpf_tc_opts, attached);
    bpf_object__for_each_program(program, object) {
        enum bpf_prog_type type = bpf_program__type(program);
        if (type == BPF_PROG_TYPE_SCHED_CLS) {
            attached.prog_fd = bpf_program__fd(program);
            bpf_tc_hook_create(&hook);
            error = bpf_tc_attach(&hook, &attached);
        } else {
            struct bpf_link *link = type == BPF_PROG_TYPE_XDP ? bpf_program__attach_xdp(program, device)
                                                              : bpf_program__attach_cgroup(program, group);
            error = link ? 0 : -errno;
        }
        if (error != 0) {
            fail(arguments[2], error);
        }
    }
    sigfillset(&signals);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    puts("attached");
    fflush(stdout);
    sigwait(&signals, &signal);
    // Links end with the process, and a filter of tc stays until it is removed.
    attached.prog_fd = attached.prog_id = attached.flags = 0;
    return attached.handle ? bpf_tc_detach(&hook, &attached) != 0 : 0;
}
