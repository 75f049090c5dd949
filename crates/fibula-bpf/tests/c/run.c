/* Loads an object with libbpf, takes the maps of a table from pins, and runs a program of it.
 *
 *   run OBJECT PINS load                          loads, and prints what the verifier looked at
 *   run OBJECT PINS PROGRAM KEYS ANSWERS [TIMES]  runs a program over the keys of a file; prints the least ns a key
 *   run OBJECT PINS run_check KEYS - SECONDS      runs the check for a time; prints lookups and wrong answers
 *
 * A third word of PINS, after ':', is a file of routes for LPM_TRIE and HASH, of lines "length value words...".
 */
#include <fibula_bpf_load.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static int quiet(enum libbpf_print_level level, const char *format, va_list arguments) {
    return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static __u32 run_once(int program) {
    char frame[64] = {0};
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof frame, .repeat = 1);
    if (bpf_prog_test_run_opts(program, &options) != 0) {
        perror("run");
        exit(1);
    }
    return options.duration;
}

static void *map_memory(struct bpf_object *object, const char *name, size_t *bytes) {
    struct bpf_map *map = bpf_object__find_map_by_name(object, name);
    *bytes = bpf_map__value_size(map);
    void *at = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static void fill_rivals(struct bpf_object *object, const char *path) {
    int trie = bpf_object__find_map_fd_by_name(object, "trie"), hash = bpf_object__find_map_fd_by_name(object, "hash");
    FILE *from = fopen(path, "r");
    unsigned length, value, words[4], lines = 0;
    double begin, spent = 0;
    char line[200];
    while (from && fgets(line, sizeof line, from)) {
        int count = sscanf(line, "%u %u %x %x %x %x", &length, &value, words, words + 1, words + 2, words + 3);
        __u32 key[5] = {length};
        if (length == 0) {
            fprintf(stderr, "a default route has no place here\n");
            exit(1);
        }
        for (int at = 0; at < count - 2; at++) {
            key[1 + at] = __builtin_bswap32(words[at]);
        }
        begin = now();
        if (bpf_map_update_elem(trie, key, &value, 0) != 0) {
            perror("update of LPM_TRIE");
            exit(1);
        }
        spent += now() - begin;
        lines++;
        if (count == 3 && length == 24) {
            __u32 of = words[0] >> 8;
            bpf_map_update_elem(hash, &of, &value, 0);
        }
    }
    FILE *memory = fopen("/proc/meminfo", "r");
    while (memory && fgets(line, sizeof line, memory)) {
        if (strncmp(line, "SUnreclaim", 10) == 0) {
            printf("slab-with-trie-and-hash %s", line);
        }
    }
    if (memory) {
        fclose(memory);
    }
    printf("trie-routes %u\ntrie-update-ns %.0f\n", lines, lines ? spent * 1e9 / lines : 0);
    if (from) {
        fclose(from);
    }
}

int main(int count, char **arguments) {
    char *routes;
    size_t key_bytes, answer_bytes;
    struct bpf_program *program;
    if (count < 4) {
        return 2;
    }
    routes = strchr(arguments[2], ':');
    if (routes) {
        *routes++ = 0;
    }
    libbpf_set_print(quiet);
    struct bpf_object *object = bpf_object__open_file(arguments[1], NULL);
    int error = object ? fibula_bpf_take(object, "table", arguments[2]) : -errno;
    if (error != 0) {
        printf("refused: %s\n", strerror(-error));
        return 3;
    }
    if (bpf_object__load(object) != 0) {
        perror("load");
        return 1;
    }
    if (routes) {
        fill_rivals(object, routes);
    }
    if (strcmp(arguments[3], "load") == 0) {
        bpf_object__for_each_program(program, object) {
            struct bpf_prog_info info;
            __u32 bytes = sizeof info;
            memset(&info, 0, sizeof info);
            bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes);
            printf("verified %s %u\n", bpf_program__name(program), info.verified_insns);
        }
        return 0;
    }
    void *keys = map_memory(object, "keys", &key_bytes), *answers = map_memory(object, "answers", &answer_bytes);
    FILE *from = fopen(arguments[4], "rb");
    if (!from || fread(keys, 1, key_bytes, from) != key_bytes) {
        fprintf(stderr, "%s: fewer keys than %zu bytes\n", arguments[4], key_bytes);
        return 1;
    }
    fclose(from);
    if (strcmp(arguments[3], "run_check") == 0) {
        int fd = bpf_program__fd(bpf_object__find_program_by_name(object, "run_check"));
        int of = bpf_object__find_map_fd_by_name(object, "counts");
        double end = now() + atof(arguments[6]);
        __u64 values[2] = {0};
        printf("begins\n");
        fflush(stdout);
        while (now() < end) {
            run_once(fd);
        }
        for (__u32 at = 0; at < 2; at++) {
            bpf_map_lookup_elem(of, &at, &values[at]);
        }
        printf("lookups %llu\nwrong %llu\n", (unsigned long long)values[0], (unsigned long long)values[1]);
        return 0;
    }
    /* Several programs, separated by commas, take turns. */
    int times = count > 6 ? atoi(arguments[6]) : 1, programs = 0;
    char *names[8], *name = strtok(arguments[3], ",");
    for (; name && programs < 8; name = strtok(NULL, ",")) {
        names[programs++] = name;
    }
    double least[8], keys_count = answer_bytes / 4.0;
    for (int round = 0; round < times; round++) {
        for (int at = 0; at < programs; at++) {
            int fd = bpf_program__fd(bpf_object__find_program_by_name(object, names[at]));
            double ns = run_once(fd) / keys_count;
            least[at] = round == 0 || ns < least[at] ? ns : least[at];
            if (round == 0 && strcmp(arguments[5], "-") != 0) {
                char path[4096];
                snprintf(path, sizeof path, "%s.%s", arguments[5], names[at]);
                FILE *to = fopen(path, "wb");
                if (!to || fwrite(answers, 1, answer_bytes, to) != answer_bytes || fclose(to) != 0) {
                    perror(path);
                    return 1;
                }
            }
        }
    }
    for (int at = 0; at < programs; at++) {
        printf("ns %s %.2f\n", names[at], least[at]);
    }
    return 0;
}
