/* Changes whose n-th allocation fails, for every n: what such a change has allocated goes with the table. A child makes each change, because
 * allocations of Rust's standard library end the process where they fail. Prints what differs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fibula.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);

static long fails_at = -1, balance;

static int fails(void) { return fails_at >= 0 && fails_at-- == 0; }
static void *counted(void *memory) {
    balance += memory != NULL;
    return memory;
}
void *malloc(size_t bytes) { return fails() ? NULL : counted(__libc_malloc(bytes)); }
void *calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__libc_calloc(count, bytes)); }
void *realloc(void *memory, size_t bytes) {
    if (fails()) return NULL;
    balance -= memory != NULL;
    return counted(__libc_realloc(memory, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) { return fails() ? NULL : counted(__libc_memalign(alignment, bytes)); }
int posix_memalign(void **place, size_t alignment, size_t bytes) {
    if (fails()) return ENOMEM;
    *place = counted(__libc_memalign(alignment, bytes));
    return *place == NULL ? ENOMEM : 0;
}
void free(void *memory) {
    balance -= memory != NULL;
    __libc_free(memory);
}

enum { UNREACHED = 1, GOOD, REFUSED, LEFT, WRONG };

/* Makes the change twice, first with all memory, so that what a process allocates once is there. */
static int change(int kind, long n) {
    static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
    fibula_error error;
    for (int attempt = 0; attempt < 2; attempt++) {
        const long start = balance;
        fibula_live *live = NULL;
        fibula_vrfs *vrfs = NULL;
        uint32_t vrf = 0;
        if (kind < 2 ? fibula_live_new(NULL, &live, &error)
                     : fibula_vrfs_new(NULL, &vrfs, &error) || fibula_vrfs_create(vrfs, &vrf, &error))
            return WRONG;
        fails_at = attempt == 0 ? -1 : n;
        const int code = kind == 0   ? fibula_live_set4(live, 0x0a000000, 8, 1, &error)
                         : kind == 1 ? fibula_live_set6(live, net6, 64, 1, &error)
                         : kind == 2 ? fibula_vrfs_set4(vrfs, vrf, 0x0a000000, 8, 1, &error)
                                     : fibula_vrfs_set6(vrfs, vrf, net6, 64, 1, &error);
        const int was_reached = fails_at < 0;
        fails_at = -1;
        fibula_live_free(live);
        fibula_vrfs_free(vrfs);
        if (attempt == 1) return !was_reached ? UNREACHED : balance != start ? LEFT : code == 0 ? GOOD : code == FIBULA_E_MEMORY ? REFUSED : WRONG;
        if (code != 0) return WRONG;
    }
    return WRONG;
}

int main(void) {
    for (int kind = 0; kind < 4; kind++) {
        int refused = 0;
        for (long n = 0;; n++) {
            fflush(stdout);
            const pid_t child = fork();
            if (child == 0) {
                if (freopen("/dev/null", "w", stderr) == NULL) _exit(WRONG);
                _exit(change(kind, n));
            }
            int status;
            if (child < 0 || waitpid(child, &status, 0) != child) return 1;
            if (WIFSIGNALED(status)) continue;
            const int end = WEXITSTATUS(status);
            if (end == UNREACHED) break;
            refused += end == REFUSED;
            if (end == LEFT || end == WRONG) printf("change %d, allocation %ld: %s\n", kind, n, end == LEFT ? "memory is left" : "wrong");
        }
        if (kind > 0 && refused == 0) printf("change %d: no allocation was refused\n", kind);
    }
    return 0;
}
