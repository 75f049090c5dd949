/* Calls whose n-th allocation fails, for every n, alone and with all that follow: each returns FIBULA_E_MEMORY, or does without, and what it has
 * allocated goes with its handles. A child makes each call, so that an end by a signal is counted too. Prints what differs.
 *   memory FOLDER [COUNTS]   with COUNTS, a line for each call on the standard error stream */
#define _GNU_SOURCE
#include "judge.h"
#include <errno.h>
#include <fibula.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), __libc_free(void *);
extern void *__libc_memalign(size_t, size_t);

static long fails_at = -1, balance;
static int goes_on, is_reached;

static int fails(void) {
    if (fails_at < 0 || fails_at-- > 0) return 0;
    is_reached = 1;
    if (goes_on) fails_at = 0;
    return 1;
}
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

enum { ROUTES = 300, ROWS = 40 };

static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
static uint32_t addresses4[ROUTES], ids[ROUTES], found[ROWS];
static uint8_t addresses6[ROUTES][16], lengths4[ROUTES], lengths6[ROUTES];
static const fibula_routes ipv4 = {addresses4, lengths4, ids, ROUTES}, ipv6 = {addresses6, lengths6, ids, ROUTES};
static char file[4096], other[4096];
static uint8_t image[4 << 20];
static size_t image_bytes;

/* What a call uses, and what it makes. */
static fibula_table *table, *made;
static fibula_live *live;
static fibula_reader *reader;
static fibula_vrfs *vrfs;
static fibula_follower *follower;
static uint32_t vrf;
static struct ArrowSchema schema;
static struct ArrowArray array;
static fibula_error error;
static const char *texts[ROWS];

static const void *buffers[2] = {NULL, addresses4};
static void keep_schema(struct ArrowSchema *kept) { (void)kept; }
static void keep_array(struct ArrowArray *kept) { (void)kept; }
static struct ArrowSchema in_schema = {"I", NULL, NULL, 0, 0, NULL, NULL, keep_schema, NULL};
static struct ArrowArray in_array = {ROWS, 0, 0, 2, 0, buffers, NULL, NULL, keep_array, NULL};

static int built(uint32_t flags, fibula_table **to) {
    fibula_options options = FIBULA_OPTIONS;
    options.flags = flags;
    return fibula_table_build(&ipv4, &ipv6, &options, to, &error);
}
static int with_values(const fibula_table *from, fibula_table **to) {
    const char *names[ROUTES];
    uint32_t numbers[ROUTES];
    for (int i = 0; i < ROUTES; i++) names[i] = "a name", numbers[i] = (uint32_t)i;
    const fibula_values columns[2] = {{"name", names, NULL, NULL, ROUTES, FIBULA_UTF8, 0}, {"number", numbers, NULL, NULL, ROUTES, FIBULA_U32, 0}};
    return fibula_table_with_values(from, columns, 2, to, &error);
}
static int64_t opened(uint32_t flags) {
    fibula_options options = FIBULA_OPTIONS;
    options.flags = flags;
    return fibula_table_open(file, &options, &made, &error);
}

/* What is there before a call. */
static int no_more(void) { return 0; }
static int a_table(void) {
    fibula_table *bare;
    const int code = built(0, &bare) || with_values(bare, &table);
    fibula_table_unref(bare);
    return code;
}
static int a_live(void) { return fibula_live_new(NULL, &live, &error); }
static int a_full_live(void) {
    int code = a_live();
    for (int i = 0; i < ROUTES && code == 0; i++) code = fibula_live_set4(live, addresses4[i], lengths4[i], ids[i], &error) || fibula_live_set6(live, addresses6[i], lengths6[i], ids[i], &error);
    return code;
}
static int a_reader(void) { return a_full_live() || fibula_reader_new(live, &reader, &error); }
static int some_vrfs(void) { return fibula_vrfs_new(NULL, &vrfs, &error) || fibula_vrfs_create(vrfs, &vrf, &error); }
static int a_follower(void) { return fibula_follower_open(file, NULL, &follower, &error); }
static int a_new_file(void) { return a_table() || a_follower() || fibula_table_save(table, file, &error); }

/* The calls. */
static int64_t open_copy(void) { return opened(0); }
static int64_t open_map(void) { return opened(FIBULA_MAP); }
static int64_t open_verify(void) { return opened(FIBULA_MAP | FIBULA_VERIFY); }
static int64_t open_memory(void) { return fibula_table_open_memory(image, image_bytes, NULL, &made, &error); }
static int64_t build(void) { return built(0, &made); }
static int64_t build_fastest(void) { return built(FIBULA_FASTEST, &made); }
static int64_t save(void) { return fibula_table_save(table, other, &error); }
static int64_t give_values(void) { return with_values(table, &made); }
static int64_t find_column(void) { return fibula_column_find(table, "number"); }
static int64_t bulk4(void) { return fibula_lookup4_bulk(table, addresses4, 4, FIBULA_NETWORK_ORDER, found, ROWS); }
static int64_t bulk6(void) { return fibula_lookup6_bulk(table, addresses6, 16, 0, found, ROWS); }
static int64_t text(void) { return fibula_lookup_text(table, texts, NULL, 0, found, ROWS, &error); }
static int64_t arrow(void) { return fibula_lookup_arrow(table, &in_schema, &in_array, 1, 0, found, ROWS, &error); }
static int64_t arrow_ids(void) { return fibula_lookup_arrow_ids(table, &in_schema, &in_array, 1, 0, &schema, &array, &error); }
static int64_t arrow_prefixes(void) { return fibula_lookup_arrow_prefixes(table, &in_schema, &in_array, 0, &schema, &array, &error); }
static int64_t values_arrow(void) { return fibula_values_arrow(table, 0, ids, ROWS, 0, &schema, &array, &error); }
static int64_t values_dictionary(void) { return fibula_values_arrow(table, 0, ids, ROWS, FIBULA_DICTIONARY, &schema, &array, &error); }
static int64_t live_new(void) { return a_live(); }
static int64_t live_set4(void) { return fibula_live_set4(live, 0x0a000000, 8, 1, &error); }
static int64_t live_set6(void) { return fibula_live_set6(live, net6, 64, 1, &error); }
static int64_t live_apply(void) {
    fibula_change changes[ROWS];
    for (int i = 0; i < ROWS; i++) {
        changes[i] = (fibula_change){{10, (uint8_t)i}, 4, 24, {0, 0}, 1};
        if (i % 2 == 1) changes[i] = (fibula_change){{0x20, 1, (uint8_t)i}, 6, 48, {0, 0}, 2};
    }
    return fibula_live_apply(live, changes, ROWS, &error);
}
static int64_t live_flush(void) { return fibula_live_flush(live, &error); }
static int64_t live_snapshot(void) { return fibula_live_snapshot(live, &made, &error); }
static int64_t live_get(void) { return fibula_live_get4(live, addresses4[0], lengths4[0]); }
static int64_t live_lookup(void) { return fibula_live_lookup4(live, addresses4[0]) + (int64_t)fibula_live_lookup6(live, net6); }
static int64_t reader_new(void) { return fibula_reader_new(live, &reader, &error); }
static int64_t reader_bulk(void) { return fibula_reader_lookup4_bulk(reader, addresses4, 0, 0, found, ROWS); }
static int64_t follower_open(void) { return a_follower(); }
static int64_t follower_poll(void) {
    int is_new;
    return fibula_follower_poll(follower, &is_new, &error);
}
static int64_t follower_table(void) {
    made = fibula_follower_table(follower);
    return 0;
}
static int64_t vrfs_new(void) { return fibula_vrfs_new(NULL, &vrfs, &error); }
static int64_t vrfs_create(void) { return fibula_vrfs_create(vrfs, &vrf, &error); }
static int64_t vrfs_delete(void) { return fibula_vrfs_delete(vrfs, vrf, &error); }
static int64_t vrfs_set4(void) { return fibula_vrfs_set4(vrfs, vrf, 0x0a000000, 8, 1, &error); }
static int64_t vrfs_set6(void) { return fibula_vrfs_set6(vrfs, vrf, net6, 64, 1, &error); }
static int64_t vrfs_bulk(void) { return fibula_vrfs_lookup4_bulk(vrfs, &vrf, addresses4, 0, 0, found, 1); }

/* May the call return FIBULA_E_MEMORY before it begins, because what it makes is kept? */
static const struct {
    const char *name;
    int (*before)(void);
    int64_t (*call)(void);
    int can_fail;
} CALLS[] = {
    {"open a copy", no_more, open_copy, 1}, {"open mapped", no_more, open_map, 1}, {"open mapped and verify", no_more, open_verify, 1},
    {"open memory", no_more, open_memory, 1}, {"build", no_more, build, 1}, {"build the fastest", no_more, build_fastest, 1},
    {"save", a_table, save, 1}, {"give values", a_table, give_values, 1}, {"find a column", a_table, find_column, 0},
    {"bulk IPv4", a_table, bulk4, 0}, {"bulk IPv6", a_table, bulk6, 0}, {"texts", a_table, text, 0}, {"Arrow", a_table, arrow, 1},
    {"ids of Arrow", a_table, arrow_ids, 1}, {"prefixes of Arrow", a_table, arrow_prefixes, 1}, {"values of Arrow", a_table, values_arrow, 1},
    {"dictionary of Arrow", a_table, values_dictionary, 1}, {"new live table", no_more, live_new, 1}, {"live IPv4", a_live, live_set4, 1},
    {"live IPv6", a_live, live_set6, 1}, {"apply", a_live, live_apply, 1}, {"flush", a_full_live, live_flush, 1},
    {"snapshot", a_full_live, live_snapshot, 1}, {"live get", a_full_live, live_get, 0}, {"live lookup", a_full_live, live_lookup, 0},
    {"new reader", a_full_live, reader_new, 1}, {"reader's bulk", a_reader, reader_bulk, 0}, {"open to follow", no_more, follower_open, 1},
    {"poll", a_new_file, follower_poll, 1}, {"table that is followed", a_follower, follower_table, 0}, {"new VRFs", no_more, vrfs_new, 1},
    {"create a VRF", some_vrfs, vrfs_create, 1}, {"delete a VRF", some_vrfs, vrfs_delete, 1}, {"VRF IPv4", some_vrfs, vrfs_set4, 1},
    {"VRF IPv6", some_vrfs, vrfs_set6, 1}, {"VRF lookup", some_vrfs, vrfs_bulk, 0},
};

enum { UNREACHED = 1, GOOD, REFUSED, LEFT, WRONG };

static void after(void) {
    fibula_table_unref(table);
    fibula_table_unref(made);
    fibula_reader_free(reader);
    fibula_live_free(live);
    fibula_vrfs_free(vrfs);
    fibula_follower_free(follower);
    if (array.release != NULL) array.release(&array);
    if (schema.release != NULL) schema.release(&schema);
    table = made = NULL, reader = NULL, live = NULL, vrfs = NULL, follower = NULL;
    memset(&array, 0, sizeof array);
    memset(&schema, 0, sizeof schema);
}

/* Makes the call, for which all is there. `start` is the balance before that. */
static int once(int kind, long n, long start) {
    fails_at = n, is_reached = 0;
    const int64_t code = CALLS[kind].call();
    const int was_reached = is_reached;
    fails_at = -1;
    after();
    if (!was_reached) return UNREACHED;
    if (balance != start) return LEFT;
    return code >= 0 ? GOOD : code == FIBULA_E_MEMORY && CALLS[kind].can_fail ? REFUSED : WRONG;
}

/* A live table that has to use the reserve takes no more changes until the system has memory again. */
static int refused_until_there_is_memory(void) {
    if (a_live() != 0 || fibula_live_set4(live, 0, 0, 1, &error) != 0) return WRONG;
    goes_on = 1, fails_at = 0;
    int code = 0;
    long good = 0;
    for (uint32_t i = 0; i < 1 << 20 && code == 0; i++) {
        code = fibula_live_set4(live, i << 4, 28, 1, &error);
        good += code == 0;
    }
    const int is_there = fibula_live_lookup4(live, 0x0a000001) == 1;
    fails_at = -1;
    const int again = fibula_live_set4(live, 0x0a000000, 24, 2, &error);
    return code == FIBULA_E_MEMORY && is_there && again == 0 && fibula_live_lookup4(live, 0x0a000001) == 2 && fibula_live_count(live) == good + 2 ? GOOD : WRONG;
}

/* Runs in a child; returns how it ended, or minus the signal. */
static int ended(int kind, long n, long start, int is_shown) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!is_shown && freopen("/dev/null", "w", stderr) == NULL) _exit(WRONG);
        _exit(kind < 0 ? refused_until_there_is_memory() : once(kind, n, start));
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) exit(1);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int count, char **arguments) {
    if (count < 2) return 2;
    snprintf(file, sizeof file, "%s/memory.fibula", arguments[1]);
    snprintf(other, sizeof other, "%s/memory-other.fibula", arguments[1]);
    for (int i = 0; i < ROUTES; i++) {
        addresses4[i] = 0x0a000000u + ((uint32_t)i << 8), lengths4[i] = 24, lengths6[i] = 48, ids[i] = (uint32_t)i + 1;
        memcpy(addresses6[i], net6, 4);
        addresses6[i][4] = (uint8_t)(i >> 8), addresses6[i][5] = (uint8_t)i;
    }
    for (int i = 0; i < ROWS; i++) texts[i] = i % 3 == 0 ? "10.0.1.2" : i % 3 == 1 ? "2001:db8:1::1" : "no address";
    if (a_table() != 0 || fibula_table_save(table, file, &error) != 0) return 1;
    after();
    FILE *in = fopen(file, "rb");
    image_bytes = in == NULL ? 0 : fread(image, 1, sizeof image, in);
    if (image_bytes == 0 || image_bytes == sizeof image || fclose(in) != 0) return 1;
    if (ended(-1, 0, 0, count > 2) != GOOD) printf("changes go wrong while memory is refused\n");
    for (int kind = 0; kind < (int)(sizeof CALLS / sizeof *CALLS); kind++) {
        /* First with all memory, so that what a process allocates once is there. */
        if (CALLS[kind].before() != 0 || CALLS[kind].call() < 0) printf("%s: does not work\n", CALLS[kind].name);
        after();
        const long start = balance;
        if (CALLS[kind].before() != 0) return 1;
        for (goes_on = 0; goes_on < 2; goes_on++) {
            long n = 0, refused = 0, good = 0;
            for (int end; (end = ended(kind, n, start, count > 2)) != UNREACHED; n++) {
                refused += end == REFUSED, good += end == GOOD;
                if (end != REFUSED && end != GOOD)
                    printf("%s: allocation %ld%s: %s %d\n", CALLS[kind].name, n, goes_on ? " and all that follow" : "", end == LEFT ? "memory is left" : end < 0 ? "ended by signal" : "wrong", end);
                if (n > 5000) return 1;
            }
            if (count > 2) fprintf(stderr, "%s%s: %ld allocations, %ld refused, %ld done without\n", CALLS[kind].name, goes_on ? ", from there on" : "", n, refused, good);
        }
        after();
    }
    return 0;
}
