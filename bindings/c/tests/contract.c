/* The contract of columns, testdata/columns/contract.toml: contract FILE ROWS. FILE has its cases as tests/contract.rs writes them. Each
 * column is looked up as it is, and with its rows again and again until there are ROWS of them. Prints what differs, and then the number
 * of rows that were compared. */
#include <fibula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

enum { MOST_ROWS = 64, LONGEST = 128 };

typedef struct {
    unsigned char bytes[LONGEST];
    size_t length;
    long long number; /* of an entry, where rows are numbers */
    int is_null;
} input;

/* A case, for one kind of input. */
static struct {
    char kind[16], form[16], name[128];
    int is_mapped;
    size_t skip, invalid, rows, entries;
    long long first;
    input input[MOST_ROWS], entry[MOST_ROWS];
    uint32_t id[MOST_ROWS], vrf[MOST_ROWS];
} c;

static fibula_table *table;
static fibula_live *live;
static fibula_reader *reader;
static fibula_vrfs *vrfs;
static fibula_error error;
static unsigned long long compared;
static int wrong;

static void *need(size_t bytes) {
    void *memory = calloc(1, bytes + 1);
    if (memory == NULL) exit(3);
    return memory;
}

static void is(long long expected, long long found, const char *what, const char *of) {
    if (found != expected) {
        printf("%s, %s, %s: %s is %lld, not %lld\n", c.name, c.kind, of, what, found, expected);
        wrong = 1;
    }
}

/* ---- arrays of Arrow ---- */

typedef struct {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[5];
    void *owned[5];
} column;

static void done(column *column) {
    for (int i = 0; i < 5; i++) free(column->owned[i]);
    free(column);
}

static void add(column *column, void *buffer) {
    column->owned[column->array.n_buffers] = buffer;
    column->buffers[column->array.n_buffers++] = buffer;
}

/* Row `at` of a column whose `count` rows are those of `inputs`, again and again, between `skip` others. */
static const input *row(const input *inputs, size_t each, const input *other, size_t count, size_t skip, size_t at) {
    static const input null = {{0}, 0, 0, 1};
    if (at >= skip && at < skip + count) return &inputs[(at - skip) % each];
    size_t from = at < skip ? at : at - skip - count;
    return from % 3 == 1 ? &null : other;
}

static size_t width(const char *kind) {
    if (strcmp(kind, "uint32") == 0 || strcmp(kind, "int32") == 0 || strcmp(kind, "fixed_4") == 0) return 4;
    if (strcmp(kind, "uint64") == 0 || strcmp(kind, "int64") == 0) return 8;
    return strcmp(kind, "fixed_16") == 0 ? 16 : 0;
}

static const char *format(const char *kind) {
    static const char *const formats[][2] = {
        {"uint32", "I"},     {"int32", "i"},         {"uint64", "L"},       {"int64", "l"},  {"fixed_4", "w:4"},
        {"fixed_16", "w:16"}, {"binary", "z"},        {"large_binary", "Z"}, {"binary_view", "vz"}, {"string", "u"},
        {"large_string", "U"}, {"string_view", "vu"}, {"null", "n"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i][0], kind) == 0) return formats[i][1];
    printf("unknown kind '%s'\n", kind);
    exit(3);
}

/* Nothing is released by what borrows a column. */
static void not_released(struct ArrowSchema *schema) {
    printf("the schema %s was released\n", schema->format);
    wrong = 1;
}

static void array_not_released(struct ArrowArray *array) {
    printf("an array of %lld rows was released\n", (long long)array->length);
    wrong = 1;
}

static column *empty(const char *format, size_t count, size_t skip) {
    column *column = need(sizeof *column);
    column->schema.format = format;
    column->schema.flags = 2; /* nullable */
    column->array.length = (int64_t)count;
    column->array.offset = (int64_t)skip;
    column->array.null_count = -1;
    column->array.buffers = column->buffers;
    column->schema.release = not_released;
    column->array.release = array_not_released;
    return column;
}

static void add_validity(column *column, const input *inputs, size_t each, size_t count, size_t skip) {
    static const input other;
    unsigned char *bits = need((count + 2 * skip) / 8 + 1);
    for (size_t at = 0; at < count + 2 * skip; at++)
        if (!row(inputs, each, &other, count, skip, at)->is_null) bits[at / 8] |= (unsigned char)(1 << at % 8);
    add(column, bits);
}

static column *arrow(const char *kind, const input *inputs, size_t each, size_t count, size_t skip) {
    column *column = empty(format(kind), count, skip);
    if (strcmp(kind, "null") == 0) {
        column->array.null_count = (int64_t)count;
        return column;
    }
    const size_t fixed = width(kind), all = count + 2 * skip;
    input other = {{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}, fixed ? fixed : 16, 0, 0};
    if (column->schema.format[0] == 'u' || column->schema.format[0] == 'U' || column->schema.format[1] == 'u') {
        strcpy((char *)other.bytes, "2001:db8::9");
        other.length = 11;
    }
    add_validity(column, inputs, each, count, skip);
    if (fixed) {
        unsigned char *bytes = need(all * fixed);
        for (size_t at = 0; at < all; at++) {
            const input *from = row(inputs, each, &other, count, skip, at);
            /* What a null has for bytes decides nothing. */
            if (from->is_null) memset(bytes + at * fixed, 0x0a, fixed);
            else memcpy(bytes + at * fixed, from->bytes, fixed);
        }
        add(column, bytes);
        return column;
    }
    /* The first row does not start where the buffer does; a null has bytes that are an address, or none. */
    size_t end = 2;
    for (size_t at = 0; at < all; at++) {
        const input *from = row(inputs, each, &other, count, skip, at);
        end += from->is_null ? at % 2 ? 3 : other.length : from->length;
    }
    unsigned char *bytes = need(end), *views = need((all + 1) * 16);
    int32_t *ends = (int32_t *)views;
    int64_t *large_ends = (int64_t *)views;
    const int is_view = column->schema.format[0] == 'v';
    const int is_large = column->schema.format[0] == 'Z' || column->schema.format[0] == 'U';
    memset(bytes, '!', end);
    const size_t bytes_end = end;
    end = 2;
    for (size_t at = 0; at < all; at++) {
        const input *from = row(inputs, each, &other, count, skip, at);
        const int is_bad = from->is_null && at % 2;
        if (from->is_null && !is_bad) from = &other;
        const size_t length = is_bad ? 3 : from->length, start = end;
        if (!is_bad) memcpy(bytes + start, from->bytes, length);
        end += length;
        if (is_view) {
            const int32_t view[4] = {(int32_t)length, 0, (int32_t)(at % 2), (int32_t)start};
            memcpy(views + at * 16, view, 16);
            memcpy(views + at * 16 + 4, bytes + start, length <= 12 ? length : 4);
            if (length <= 12) memset(views + at * 16 + 4 + length, 0, 12 - length);
        } else if (is_large) {
            large_ends[at] = (int64_t)start;
            large_ends[at + 1] = (int64_t)end;
        } else {
            ends[at] = (int32_t)start;
            ends[at + 1] = (int32_t)end;
        }
    }
    if (all == 0) memset(views, 0, 16);
    add(column, views);
    add(column, bytes);
    if (is_view) {
        /* Two buffers, by turns. */
        unsigned char *again = need(bytes_end);
        memcpy(again, bytes, bytes_end);
        add(column, again);
        int64_t *lengths = need(2 * sizeof *lengths);
        lengths[0] = lengths[1] = (int64_t)bytes_end;
        add(column, lengths);
    }
    return column;
}

/* ---- lookups ---- */

static void same(const uint32_t *ids, size_t count, const char *of) {
    for (size_t at = 0; at < count; at++)
        if (ids[at] != c.id[at % c.rows]) {
            printf("%s, %s, %s: row %zu has id %u, not %u\n", c.name, c.kind, of, at, ids[at], c.id[at % c.rows]);
            wrong = 1;
            return;
        }
    compared += count;
}

static void refuses(long long found, size_t invalid, const char *of) {
    is(c.first < 0 ? (long long)invalid : FIBULA_E_INVALID, found, "the result with FIBULA_REFUSE_INVALID", of);
    if (c.first >= 0) is(c.first, (long long)error.row, "the invalid row", of);
}

static void look_up_array(const column *column, uint32_t flags, uint32_t threads, const char *of) {
    const size_t count = (size_t)column->array.length, invalid = c.rows ? count / c.rows * c.invalid : 0;
    if (c.is_mapped) flags |= FIBULA_V4_MAPPED;
    uint32_t *ids = need(count * sizeof *ids);
    memset(ids, 0xff, count * sizeof *ids);
    is((long long)invalid, fibula_lookup_arrow(table, &column->schema, &column->array, threads, flags, ids, count, &error),
       "the number of invalid rows", of);
    same(ids, count, of);
    refuses(fibula_lookup_arrow(table, &column->schema, &column->array, threads, flags | FIBULA_REFUSE_INVALID, ids, count,
                                &error),
            invalid, of);

    struct ArrowSchema schema;
    struct ArrowArray array;
    const long long found =
        fibula_lookup_arrow_ids(table, &column->schema, &column->array, threads, flags, &schema, &array, &error);
    is((long long)invalid, found, "the number of invalid rows", of);
    if (found < 0) {
        printf("%s\n", error.message);
        free(ids);
        return;
    }
    is(0, strcmp(schema.format, "I"), "the type of the ids", of);
    is((long long)count, array.length, "the number of ids", of);
    same(array.buffers[1], count, of);
    const unsigned char *bits = array.buffers[0];
    long long nulls = 0;
    for (size_t at = 0; at < count; at++) {
        const int is_null = bits != NULL && !(bits[at / 8] >> at % 8 & 1);
        nulls += is_null;
        is(c.id[at % c.rows] == 0, is_null, "a null for no route", of);
    }
    is(nulls, array.null_count, "the number of nulls", of);
    schema.release(&schema);
    array.release(&array);
    free(ids);
}

/* By three threads where the column is long; else by one, with a number of nulls that is known, and one that is not. */
static void look_up_arrays(column *column, uint32_t flags, const char *of) {
    const int is_long = column->array.length > MOST_ROWS;
    look_up_array(column, flags, is_long ? 3 : 1, of);
    if (is_long) return;
    int64_t nulls = 0;
    for (int64_t at = 0; at < column->array.length; at++) nulls += c.input[at].is_null;
    column->array.null_count = nulls;
    look_up_array(column, flags, 1, of);
}

/* Arrays, and dictionaries of them. As bytes with FIBULA_TEXT too, where they are text. */
static void arrays(const char *kind, size_t count, uint32_t flags) {
    static const struct {
        const char *format;
        size_t bytes;
        long long least, most;
    } numbers[] = {{"c", 1, -128, 127},     {"C", 1, 0, 255},        {"s", 2, -32768, 32767},      {"S", 2, 0, 65535},
                   {"i", 4, INT32_MIN, INT32_MAX}, {"I", 4, 0, UINT32_MAX}, {"l", 8, INT64_MIN, INT64_MAX}, {"L", 8, 0, INT64_MAX}};
    if (strcmp(c.form, "dictionary") != 0) {
        column *column = arrow(kind, c.input, c.rows, count, c.skip);
        look_up_arrays(column, flags, kind);
        done(column);
        return;
    }
    column *entries = arrow(kind, c.entry, c.entries, c.entries, c.skip);
    for (size_t type = 0; type < sizeof numbers / sizeof *numbers; type++) {
        if (count > MOST_ROWS && type != 0 && type != 5) continue;
        column *column = empty(numbers[type].format, count, c.skip);
        add_validity(column, c.input, c.rows, count, c.skip);
        unsigned char *bytes = need((count + 2 * c.skip) * numbers[type].bytes);
        static const input other = {{0}, 0, 1, 0};
        int fits = 1;
        for (size_t at = 0; at < count + 2 * c.skip; at++) {
            const long long number = row(c.input, c.rows, &other, count, c.skip, at)->number;
            if (number < numbers[type].least || number > numbers[type].most) fits = 0;
            for (size_t byte = 0; byte < numbers[type].bytes; byte++) {
                const uint16_t one = 1;
                const size_t place = *(const unsigned char *)&one ? byte : numbers[type].bytes - 1 - byte;
                bytes[at * numbers[type].bytes + place] = (unsigned char)((unsigned long long)number >> 8 * byte);
            }
        }
        add(column, bytes);
        column->schema.dictionary = &entries->schema;
        column->array.dictionary = &entries->array;
        if (fits) look_up_arrays(column, flags, numbers[type].format);
        done(column);
    }
    done(entries);
}

static void texts(size_t count) {
    const char **texts = need(count * sizeof *texts);
    uint32_t *lengths = need(count * sizeof *lengths), *ids = need(count * sizeof *ids);
    int has_zeros = 0;
    for (size_t at = 0; at < count; at++) {
        const input *from = &c.input[at % c.rows];
        texts[at] = from->is_null ? NULL : (const char *)from->bytes;
        lengths[at] = (uint32_t)from->length;
        has_zeros |= memchr(from->bytes, 0, from->length) != NULL;
    }
    const uint32_t flags = c.is_mapped ? FIBULA_V4_MAPPED : 0;
    const size_t invalid = c.rows ? count / c.rows * c.invalid : 0;
    for (int with_lengths = has_zeros; with_lengths < 2; with_lengths++) {
        const char *of = with_lengths ? "texts with lengths" : "texts";
        const uint32_t *given = with_lengths ? lengths : NULL;
        memset(ids, 0xff, count * sizeof *ids);
        is((long long)invalid, fibula_lookup_text(table, texts, given, flags, ids, count, &error), "the number of invalid rows",
           of);
        same(ids, count, of);
        refuses(fibula_lookup_text(table, texts, given, flags | FIBULA_REFUSE_INVALID, ids, count, &error), invalid, of);
    }
    free(texts);
    free(lengths);
    free(ids);
}

/* Rows without nulls, which these calls do not know, at several distances; in a table, a live table and VRFs. */
static void records(size_t count) {
    const size_t wide = width(c.kind), gaps[] = {0, 5, 16};
    const uint32_t flags = strcmp(c.kind, "fixed_4") == 0 ? FIBULA_NETWORK_ORDER : 0;
    const int is_vrfs = strcmp(c.form, "vrfs") == 0;
    uint32_t *ids = need(count * sizeof *ids), *expected = need(count * sizeof *ids), *vrf = need(count * sizeof *ids);
    for (int gap = 0; gap < 3; gap++) {
        const size_t stride = wide + gaps[gap];
        unsigned char *bytes = need(3 + stride * count);
        memset(bytes, 0x77, 3 + stride * count);
        size_t rows = 0;
        for (size_t at = 0; at < count; at++) {
            if (c.input[at % c.rows].is_null) continue;
            memcpy(bytes + 3 + stride * rows, c.input[at % c.rows].bytes, wide);
            vrf[rows] = is_vrfs ? c.vrf[at % c.rows] : 0;
            expected[rows++] = c.id[at % c.rows];
        }
        /* An aligned copy, where that makes a difference. */
        for (int aligned = 0; aligned < (gap == 0 ? 2 : 1); aligned++) {
            if (aligned) memmove(bytes, bytes + 3, stride * rows);
            const unsigned char *from = bytes + (aligned ? 0 : 3);
            for (int where = is_vrfs ? 2 : 0; where < 3; where++) {
                static const char *const names[] = {"records in a table", "records in a live table", "records in VRFs"};
                memset(ids, 0xff, count * sizeof *ids);
                const size_t given = aligned && where == 0 ? 0 : stride;
                int code;
                if (wide == 4)
                    code = where == 0   ? fibula_lookup4_bulk(table, from, given, flags, ids, rows)
                           : where == 1 ? fibula_reader_lookup4_bulk(reader, from, given, flags, ids, rows)
                                        : fibula_vrfs_lookup4_bulk(vrfs, vrf, from, given, flags, ids, rows);
                else
                    code = where == 0   ? fibula_lookup6_bulk(table, from, given, flags, ids, rows)
                           : where == 1 ? fibula_reader_lookup6_bulk(reader, from, given, flags, ids, rows)
                                        : fibula_vrfs_lookup6_bulk(vrfs, vrf, from, given, flags, ids, rows);
                is(0, code, "the result", names[where]);
                for (size_t at = 0; at < rows; at++) is(expected[at], ids[at], "an id", names[where]);
                compared += rows;
            }
        }
        free(bytes);
    }
    free(ids);
    free(expected);
    free(vrf);
}

static void single(void) {
    for (size_t at = 0; at < c.rows; at++) {
        const input *from = &c.input[at];
        if (from->is_null) continue;
        if (width(c.kind) == 16) {
            is(c.id[at], fibula_lookup6(table, from->bytes), "an id", "lookup6");
            is(c.id[at], fibula_live_lookup6(live, from->bytes), "an id", "live_lookup6");
            is(c.id[at], fibula_reader_lookup6(reader, from->bytes), "an id", "reader_lookup6");
        } else {
            uint32_t address;
            memcpy(&address, from->bytes, 4);
            is(c.id[at], fibula_lookup4(table, address), "an id", "lookup4");
            is(c.id[at], fibula_live_lookup4(live, address), "an id", "live_lookup4");
            is(c.id[at], fibula_reader_lookup4(reader, address), "an id", "reader_lookup4");
        }
        compared += 3;
    }
}

static void look_up(size_t count) {
    const int is_bytes = strcmp(c.kind, "fixed_4") == 0 || strcmp(c.kind, "fixed_16") == 0;
    const int has_records = (is_bytes || strcmp(c.kind, "uint32") == 0) && !c.is_mapped && c.rows != 0;
    if (strcmp(c.form, "strided") == 0 || strcmp(c.form, "vrfs") == 0) {
        if (!has_records) printf("%s, %s: no call for it\n", c.name, c.kind);
        records(count);
        return;
    }
    arrays(c.kind, count, 0);
    if (strcmp(c.form, "dictionary") == 0) {
        if (strcmp(c.kind, "string") == 0) arrays("binary", count, FIBULA_TEXT);
        return;
    }
    if (strcmp(c.kind, "string") == 0) {
        arrays("binary", count, FIBULA_TEXT);
        texts(count);
    }
    if (strcmp(c.kind, "large_string") == 0) arrays("large_binary", count, FIBULA_TEXT);
    if (strcmp(c.kind, "string_view") == 0) arrays("binary_view", count, FIBULA_TEXT);
    if (has_records) {
        records(count);
        if (strcmp(c.kind, "fixed_4") != 0) single();
    }
}

/* ---- the file ---- */

static void bytes_of(const char *word, input *to) {
    memset(to, 0, sizeof *to);
    to->is_null = strcmp(word, "null") == 0;
    if (to->is_null) return;
    if (*word != 'x') {
        to->number = strtoll(word, NULL, 10);
        return;
    }
    for (word++; word[0] && word[1] && to->length < LONGEST - 1; word += 2) {
        unsigned byte;
        if (sscanf(word, "%2x", &byte) != 1) exit(3);
        to->bytes[to->length++] = (unsigned char)byte;
    }
}

static void add_route(uint32_t vrf, const input *address, unsigned length, uint32_t id) {
    uint32_t four;
    memcpy(&four, address->bytes, 4);
    const int is_4 = address->length == 4;
    const uint8_t *six = address->bytes;
    if (is_4) is(0, fibula_vrfs_set4(vrfs, vrf, four, (uint8_t)length, id, &error), "a route", "VRFs");
    else is(0, fibula_vrfs_set6(vrfs, vrf, six, (uint8_t)length, id, &error), "a route", "VRFs");
    if (vrf != 0) return;
    if (is_4) is(0, fibula_live_set4(live, four, (uint8_t)length, id, &error), "a route", "a live table");
    else is(0, fibula_live_set6(live, six, (uint8_t)length, id, &error), "a route", "a live table");
}

int main(int count, char **arguments) {
    FILE *file = count == 3 ? fopen(arguments[1], "r") : NULL;
    if (file == NULL) return 2;
    const size_t most = (size_t)strtoull(arguments[2], NULL, 10);
    is(0, fibula_live_new(NULL, &live, &error), "a live table", "new");
    is(0, fibula_vrfs_new(NULL, &vrfs, &error), "VRFs", "new");
    for (uint32_t expected = 0; expected < 2; expected++) {
        uint32_t vrf = 9;
        is(0, fibula_vrfs_create(vrfs, &vrf, &error), "a VRF", "create");
        is(expected, vrf, "the number of a VRF", "create");
    }
    static char line[1024], word[1024];
    while (fgets(line, sizeof line, file)) {
        unsigned vrf, length;
        uint32_t id;
        input address;
        if (sscanf(line, "route %u %1023s %u %u", &vrf, word, &length, &id) == 4) {
            bytes_of(word, &address);
            add_route(vrf, &address, length, id);
            continue;
        }
        if (table == NULL) {
            is(0, fibula_live_snapshot(live, &table, &error), "a snapshot", "a live table");
            is(0, fibula_reader_new(live, &reader, &error), "a reader", "a live table");
        }
        size_t rows, entries;
        memset(&c, 0, sizeof c);
        if (sscanf(line, "case %15s %15s %d %zu %zu %zu %zu %lld %127[^\n]", c.kind, c.form, &c.is_mapped, &c.skip, &rows,
                   &entries, &c.invalid, &c.first, c.name) != 9 || rows > MOST_ROWS || entries > MOST_ROWS)
            return 3;
        for (; c.entries < entries; c.entries++) {
            if (!fgets(line, sizeof line, file) || sscanf(line, "entry %1023s", word) != 1) return 3;
            bytes_of(word, &c.entry[c.entries]);
        }
        for (; c.rows < rows; c.rows++) {
            if (!fgets(line, sizeof line, file) ||
                sscanf(line, "row %1023s %u %u", word, &c.id[c.rows], &c.vrf[c.rows]) != 3)
                return 3;
            bytes_of(word, &c.input[c.rows]);
        }
        look_up(c.rows);
        if (most > c.rows && c.rows > 0) look_up((most + c.rows - 1) / c.rows * c.rows);
    }
    fclose(file);
    fibula_reader_free(reader);
    fibula_live_free(live);
    fibula_vrfs_free(vrfs);
    fibula_table_unref(table);
    printf("%llu\n", compared);
    return wrong;
}
