/* Random arrays of Arrow against the same addresses one by one: arrow SECONDS FIRST_SEED [COUNT]. Kinds, offsets, nulls, rows that are no
 * address, views with their texts inside and outside, dictionaries, a null_count of -1. Every buffer has exactly its length, so that a
 * sanitizer or valgrind sees a read beyond. Prints the seed of each difference, and at the end the number of arrays. */
#include <arpa/inet.h>
#include <fibula.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "judge.h"

enum { ROUTES = 3000, MOST = 300, KINDS = 12 };

static const char *const FORMATS[KINDS] = {"I", "i", "L", "l", "w:4", "w:16", "u", "U", "z", "Z", "vu", "vz"};

static uint64_t state;
static int wrong;
static fibula_table *table;

static uint32_t next(void) { /* SplitMix64 */
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ z >> 31) >> 16);
}

static uint32_t below(uint32_t bound) { return next() % bound; }

static void *room(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (memory == NULL) exit(3);
    memset(memory, 0xee, bytes);
    return memory;
}

typedef struct {
    unsigned char bytes[64];
    size_t length;
    int is_null, is_valid;
    uint32_t id;
} row;

static void address(unsigned char *bytes, size_t length) { /* near routes, so that answers differ */
    for (size_t i = 0; i < length; i++) bytes[i] = (unsigned char)below(i == 0 ? 4 : i < 3 ? 16 : 256);
}

static uint32_t looked_up(const unsigned char *bytes, size_t length, int is_mapped) {
    static const unsigned char PREFIX[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
    uint32_t word;
    if (length == 16 && !(is_mapped && memcmp(bytes, PREFIX, 12) == 0)) return fibula_lookup6(table, bytes);
    memcpy(&word, bytes + length - 4, 4);
    return fibula_lookup4(table, ntohl(word));
}

static row made(int kind, int is_mapped) {
    row r;
    unsigned char bytes[16];
    memset(&r, 0, sizeof r);
    r.is_null = below(5) == 0;
    r.is_valid = 1;
    size_t length = kind < 5 || (kind != 5 && below(2)) ? 4 : 16;
    address(bytes, length);
    if (length == 16 && below(4) == 0) {
        memset(bytes, 0, 10);
        memset(bytes + 10, 255, 2);
    }
    r.id = looked_up(bytes, length, is_mapped);
    uint32_t word;
    memcpy(&word, bytes, 4);
    word = ntohl(word);
    if (kind < 2) {
        memcpy(r.bytes, &word, r.length = 4);
    } else if (kind < 4) {
        uint64_t wide = word;
        if (below(6) == 0) {
            wide |= (uint64_t)(1 + below(1000)) << 32;
            r.is_valid = 0;
        }
        memcpy(r.bytes, &wide, r.length = 8);
    } else if (kind == 6 || kind == 7 || kind == 10) {
        char text[64];
        inet_ntop(length == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text);
        if (below(6) == 0) { /* altered; inet_pton judges */
            size_t end = strlen(text);
            text[below((uint32_t)end)] = "0:.x /%g"[below(8)];
        }
        unsigned char parsed[16];
        r.is_valid = inet_pton(AF_INET, text, parsed) == 1 ? 4 : inet_pton(AF_INET6, text, parsed) == 1 ? 16 : 0;
        r.id = r.is_valid ? looked_up(parsed, (size_t)r.is_valid, is_mapped) : 0;
        r.is_valid = r.is_valid != 0;
        memcpy(r.bytes, text, r.length = strlen(text));
    } else {
        memcpy(r.bytes, bytes, r.length = length);
        if (kind > 5 && below(6) == 0) {
            r.length = below(20);
            r.is_valid = r.length == 4 || r.length == 16;
            if (r.is_valid) r.id = looked_up(r.bytes, r.length, is_mapped);
        }
    }
    if (!r.is_valid) r.id = 0;
    return r;
}

/* The library borrows: it must not call these. */
static void schema_not_released(struct ArrowSchema *schema) {
    (void)schema;
    IS(0, 1);
}

static void not_released(struct ArrowArray *array) {
    (void)array;
    IS(0, 1);
}

static void *owned[16];
static int owned_count;

static void *buffer(size_t bytes) { return owned[owned_count++] = room(bytes); }

/* An array of rows, of which the first `offset` are left out. */
static void fill(struct ArrowArray *array, const void **buffers, int kind, const row *rows, size_t offset, size_t count) {
    size_t all = offset + count, nulls = 0, bytes = 0;
    for (size_t i = 0; i < all; i++) {
        bytes += rows[i].length;
        if (i >= offset) nulls += (size_t)rows[i].is_null;
    }
    memset(array, 0, sizeof *array);
    array->length = (int64_t)count;
    array->offset = (int64_t)offset;
    array->null_count = below(2) ? -1 : (int64_t)nulls;
    array->buffers = buffers;
    array->release = not_released;
    if (nulls > 0 || below(2)) {
        unsigned char *validity = buffer((all + 7) / 8);
        memset(validity, 0, (all + 7) / 8);
        for (size_t i = 0; i < all; i++)
            if (!rows[i].is_null) validity[i / 8] |= (unsigned char)(1 << i % 8);
        buffers[0] = validity;
    } else {
        buffers[0] = NULL;
    }
    if (kind < 6) {
        unsigned char *values = buffer(bytes);
        buffers[1] = values;
        for (size_t i = 0; i < all; values += rows[i++].length) memcpy(values, rows[i].bytes, rows[i].length);
        array->n_buffers = 2;
    } else if (kind < 10) {
        size_t wide = kind % 2 ? 8 : 4, at = 0;
        unsigned char *offsets = buffer((all + 1) * wide), *values = buffer(bytes);
        for (size_t i = 0; i <= all; i++) {
            int64_t place = (int64_t)at;
            int32_t narrow = (int32_t)at;
            memcpy(offsets + i * wide, wide == 8 ? (void *)&place : (void *)&narrow, wide);
            if (i == all) break;
            memcpy(values + at, rows[i].bytes, rows[i].length);
            at += rows[i].length;
        }
        buffers[1] = offsets;
        buffers[2] = values;
        array->n_buffers = 3;
    } else {
        unsigned char *views = buffer(all * 16), *values = buffer(bytes);
        int64_t *sizes = buffer(8);
        int32_t at = 0;
        for (size_t i = 0; i < all; i++) {
            int32_t length = (int32_t)rows[i].length, zero = 0;
            unsigned char *view = views + i * 16;
            memset(view, 0, 16);
            memcpy(view, &length, 4);
            if (length <= 12) {
                memcpy(view + 4, rows[i].bytes, rows[i].length);
                continue;
            }
            memcpy(view + 4, rows[i].bytes, 4);
            memcpy(view + 8, &zero, 4);
            memcpy(view + 12, &at, 4);
            memcpy(values + at, rows[i].bytes, rows[i].length);
            at += length;
        }
        *sizes = at;
        buffers[1] = views;
        buffers[2] = values;
        buffers[3] = sizes;
        array->n_buffers = 4;
    }
}

static int one(uint64_t seed) {
    static row rows[MOST], chosen[MOST];
    static uint32_t entries[MOST];
    state = seed;
    owned_count = 0;
    int kind = (int)below(KINDS), is_mapped = (int)below(2), is_dictionary = below(4) == 0;
    size_t offset = below(20), count = below(below(4) ? 40 : MOST - 20), all = offset + count;
    const void *buffers[4], *numbers[2];
    struct ArrowArray array, dictionary;
    struct ArrowSchema schema = {0}, inner = {0};
    for (size_t i = 0; i < all; i++) chosen[i] = rows[i] = made(kind, is_mapped);
    schema.flags = 2;
    schema.release = schema_not_released;
    schema.format = FORMATS[kind];
    if (is_dictionary && all > 0) {
        /* The entries are those rows from `offset` of their own on; a row names one of them, or is null itself. */
        size_t skipped = below((uint32_t)all);
        size_t there = all - skipped;
        fill(&dictionary, buffers, kind, rows, skipped, there);
        inner = schema;
        schema.format = "I";
        schema.dictionary = &inner;
        for (size_t i = 0; i < all; i++) {
            uint32_t entry = below((uint32_t)there);
            chosen[i] = rows[skipped + entry];
            entries[i] = entry;
        }
        row plain[MOST];
        for (size_t i = 0; i < all; i++) {
            memset(&plain[i], 0, sizeof plain[i]);
            plain[i].is_null = below(8) == 0;
            plain[i].length = 4;
            memcpy(plain[i].bytes, &entries[i], 4);
            chosen[i].is_null |= plain[i].is_null;
        }
        fill(&array, numbers, 0, plain, offset, count);
        array.dictionary = &dictionary;
    } else {
        fill(&array, buffers, kind, rows, offset, count);
    }
    int64_t invalid = 0, first = -1;
    for (size_t i = offset; i < all; i++)
        if (!chosen[i].is_null && !chosen[i].is_valid) {
            if (invalid++ == 0) first = (int64_t)(i - offset);
        }
    uint32_t *ids = room(count * 4);
    fibula_error error;
    uint32_t flags = is_mapped ? FIBULA_V4_MAPPED : 0;
    int64_t said = fibula_lookup_arrow(table, &schema, &array, 1 + below(3), flags, ids, count, &error);
    int bad = said != invalid;
    for (size_t i = 0; i < count && !bad; i++) bad = ids[i] != (chosen[offset + i].is_null ? 0 : chosen[offset + i].id);
    if (invalid > 0 && !bad) {
        said = fibula_lookup_arrow(table, &schema, &array, 1, flags | FIBULA_REFUSE_INVALID, ids, count, &error);
        bad = said != FIBULA_E_INVALID || error.row != (uint64_t)first;
    }
    /* Too few buffers, a length below 0, rows beyond the address space: a code and no answer. Views have any number of buffers from 3 on. */
    if (!bad && !is_dictionary) {
        int64_t buffers_there = array.n_buffers;
        array.n_buffers = kind < 10 ? buffers_there - 1 : 2;
        bad = fibula_lookup_arrow(table, &schema, &array, 1, flags, ids, count, &error) >= 0;
        array.n_buffers = buffers_there;
        array.length = -1;
        bad |= fibula_lookup_arrow(table, &schema, &array, 1, flags, ids, count, &error) >= 0;
        array.length = INT64_MAX;
        bad |= fibula_lookup_arrow(table, &schema, &array, 1, flags, ids, count, &error) >= 0;
    }
    if (bad) printf("seed %llu: %s%s, %zu rows from %zu\n", (unsigned long long)seed, FORMATS[kind], is_dictionary ? " in a dictionary" : "", count, offset);
    free(ids);
    while (owned_count > 0) free(owned[--owned_count]);
    return bad;
}

int main(int count, char **arguments) {
    static uint32_t a4[ROUTES], ids[ROUTES];
    static unsigned char a6[ROUTES][16];
    static uint8_t l4[ROUTES], l6[ROUTES];
    if (count < 3) return 2;
    state = 1;
    for (int i = 0; i < ROUTES; i++) {
        unsigned char bytes[16];
        address(bytes, 16);
        memcpy(&a4[i], bytes, 4);
        a4[i] = ntohl(a4[i]);
        address(a6[i], 16);
        l4[i] = (uint8_t)(4 + below(29));
        l6[i] = (uint8_t)(4 + below(125));
        ids[i] = 1 + (uint32_t)i;
    }
    const fibula_routes ipv4 = {a4, l4, ids, ROUTES}, ipv6 = {a6, l6, ids, ROUTES};
    fibula_options options = FIBULA_OPTIONS;
    options.flags = FIBULA_MASK | FIBULA_LAST_WINS;
    fibula_error error;
    IS(0, fibula_table_build(&ipv4, &ipv6, &options, &table, &error));
    if (wrong) return 1;
    time_t end = time(NULL) + (time_t)strtol(arguments[1], NULL, 10);
    uint64_t seed = strtoull(arguments[2], NULL, 10), most = count > 3 ? strtoull(arguments[3], NULL, 10) : UINT64_MAX, done = 0;
    while (done < most && (done == 0 || time(NULL) < end)) {
        wrong |= one(seed++);
        done++;
    }
    fibula_table_unref(table);
    printf("%llu arrays\n", (unsigned long long)done);
    return wrong;
}
