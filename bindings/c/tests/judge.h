/* What the C programs of the tests share. */
#ifndef FIBULA_TESTS_JUDGE_H
#define FIBULA_TESTS_JUDGE_H

#include <stdint.h>
#include <stdio.h>

/* As Arrow's C data interface has them. */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#define IS(expected, call)                                                                            \
    do {                                                                                              \
        long long found = (long long)(call);                                                          \
        if (found != (long long)(expected)) {                                                         \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #call, found, (long long)(expected)); \
            wrong = 1;                                                                                \
        }                                                                                             \
    } while (0)

#endif
