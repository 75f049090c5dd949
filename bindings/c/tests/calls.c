/* Every call, with what it must answer and what it must refuse: calls FOLDER FILE prints what differs. FILE
 * knows the lengths of matched prefixes. */
#include <fibula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

static int wrong;

static fibula_error error;

static void says(long long row, const char *part) {
    if (strstr(error.message, part) == NULL || error.row != (uint64_t)row) {
        printf("row %lld: '%s' has no '%s'\n", (long long)error.row, error.message, part);
        wrong = 1;
    }
}

static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
static const uint8_t host6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

static fibula_table *table_of_three(uint32_t flags) {
    const uint32_t addresses[] = {0x0a000000, 0x0a010000}, ids[] = {1, 0x7fffffff};
    const uint8_t lengths[] = {8, 16}, length6 = 32;
    const uint32_t id6 = 0xffffffff;
    const fibula_routes ipv4 = {addresses, lengths, ids, 2}, ipv6 = {net6, &length6, &id6, 1};
    fibula_options options = FIBULA_OPTIONS;
    options.flags = flags;
    fibula_table *table = NULL;
    IS(0, fibula_table_build(&ipv4, &ipv6, &options, &table, &error));
    return table;
}

static int first4(uint32_t address, uint8_t length, uint32_t id, void *user) {
    uint64_t *sum = user;
    *sum += address + length + id;
    return 0;
}

static int stop6(const uint8_t *address, uint8_t length, uint32_t id, void *user) {
    (void)user;
    return address[0] == 0x20 && length == 32 && id == 0xffffffff ? 5 : 6;
}

static void tables(const char *folder) {
    char path[4096], other[4096];
    snprintf(path, sizeof path, "%s/table.fibula", folder);
    snprintf(other, sizeof other, "%s/none", folder);
    fibula_table *table = table_of_three(0);
    IS(0, strcmp(fibula_table_engine(table, 4), "dir-17-bitmap"));
    IS(0, strcmp(fibula_table_engine(table, 6), "dir-btree"));
    IS(1, fibula_table_engine(table, 5) == NULL);
    IS(2, fibula_table_count(table, 4));
    IS(1, fibula_table_count(table, 6));
    IS(FIBULA_E_ARGUMENT, fibula_table_count(table, 5));
    IS(1, fibula_table_bytes(table) > 1000);
    IS(0x7fffffff, fibula_lookup4(table, 0x0a010001));
    IS(1, fibula_lookup4(table, 0x0a020001));
    IS(0, fibula_lookup4(table, 0x0b000000));
    IS(0xffffffffu, fibula_lookup6(table, host6));
    uint64_t sum = 0;
    IS(0, fibula_iterate4(table, first4, &sum));
    IS(0x0a000000u + 8 + 1 + 0x0a010000u + 16 + 0x7fffffffu, sum);
    IS(5, fibula_iterate6(table, stop6, NULL));
    IS(FIBULA_E_ARGUMENT, fibula_iterate6(table, NULL, NULL));

    IS(0, fibula_table_save(table, path, &error));
    IS(0, fibula_table_is_mapped(table));
    fibula_options options = FIBULA_OPTIONS;
    options.flags = FIBULA_MAP | FIBULA_VERIFY;
    fibula_table *mapped;
    IS(0, fibula_table_open(path, &options, &mapped, &error));
    IS(1, fibula_table_is_mapped(mapped));
    IS(0x7fffffff, fibula_lookup4(mapped, 0x0a010001));
    IS(2, fibula_table_count(mapped, 4));
    IS(5, fibula_iterate6(mapped, stop6, NULL));
    const uint8_t *value;
    size_t bytes;
    IS(FIBULA_E_ABSENT, fibula_value(mapped, 1, &value, &bytes));
    IS(1, fibula_table_ref(mapped) == mapped);
    fibula_table_unref(mapped);
    IS(1, fibula_lookup4(mapped, 0x0a020001));
    /* The larger engine is mapped too. */
    fibula_table *fast = table_of_three(FIBULA_FASTEST), *copied;
    IS(0, strcmp(fibula_table_engine(fast, 4), "dir-18-lines"));
    IS(0, fibula_table_save(fast, path, &error));
    IS(0, fibula_table_open(path, &options, &copied, &error));
    IS(1, fibula_table_is_mapped(copied));
    IS(0x7fffffff, fibula_lookup4(copied, 0x0a010001));
    /* The file that was mapped is another one now; the mapping goes on. */
    IS(0x7fffffff, fibula_lookup4(mapped, 0x0a010001));
    fibula_table_unref(mapped);
    fibula_table_unref(copied);

    FILE *file = fopen(path, "rb");
    static unsigned char image[1 << 22];
    size_t size = fread(image, 1, sizeof image, file);
    fclose(file);
    IS(0, fibula_table_open_memory(image, size, NULL, &copied, &error));
    IS(1, fibula_lookup4(copied, 0x0a020001));
    fibula_table_unref(copied);
    IS(FIBULA_E_DAMAGED, fibula_table_open_memory(image, size / 2, NULL, &copied, &error));
    IS(1, copied == NULL);
    image[size / 2] ^= 1;
    IS(FIBULA_E_DAMAGED, fibula_table_open_memory(image, size, NULL, &copied, &error));
    image[size / 2] ^= 1;
    IS(FIBULA_E_FOREIGN, fibula_table_open_memory("0123456789", 10, NULL, &copied, &error));
    options.memory_limit = 1000;
    options.flags = 0;
    IS(FIBULA_E_MEMORY, fibula_table_open_memory(image, size, &options, &copied, &error));
    IS(FIBULA_E_SYSTEM, fibula_table_open(other, NULL, &copied, &error));
    says(-1, "No such file");
    IS(FIBULA_E_SYSTEM, fibula_table_save(fast, folder, &error));
    fibula_table_unref(fast);

    IS(FIBULA_E_ARGUMENT, fibula_table_open(NULL, NULL, &copied, &error));
    IS(FIBULA_E_ARGUMENT, fibula_table_open(path, NULL, NULL, &error));
    options.flags = 0x8000;
    IS(FIBULA_E_ARGUMENT, fibula_table_open(path, &options, &copied, NULL));
    options = FIBULA_OPTIONS;
    options.size = 12;
    IS(FIBULA_E_ARGUMENT, fibula_table_open(path, &options, &copied, &error));
    says(-1, "FIBULA_OPTIONS");
    IS(FIBULA_E_ARGUMENT, fibula_table_save(NULL, path, &error));
    IS(0, fibula_lookup4(NULL, 1));
    IS(0, fibula_lookup6(NULL, host6));
    IS(0, fibula_lookup6(table, NULL));
    IS(0, fibula_table_is_mapped(NULL));
    IS(0, fibula_table_bytes(NULL));
    IS(FIBULA_E_ARGUMENT, fibula_table_count(NULL, 4));
    IS(1, fibula_table_engine(NULL, 4) == NULL);
    IS(1, fibula_table_ref(NULL) == NULL);
    fibula_table_unref(NULL);
    fibula_table_unref(table);
}

static void is_text(const fibula_table *table, uint32_t column, uint32_t id, const char *expected) {
    const uint8_t *value = NULL;
    size_t bytes = 0;
    IS(0, fibula_value_bytes(table, column, id, &value, &bytes));
    IS(strlen(expected), bytes);
    IS(0, memcmp(value, expected, bytes));
}

/* Columns of a table, and of the file that it is saved to. */
static void has_values(const fibula_table *table) {
    fibula_column column;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    uint8_t truth = 9;
    const uint8_t *value;
    size_t bytes;
    IS(7, fibula_column_count(table));
    IS(0, fibula_column_at(table, 0, &column));
    IS(0, strcmp(column.name, "asn"));
    IS(3, column.count);
    IS(FIBULA_U32, column.type);
    IS(0, fibula_column_at(table, 6, &column));
    IS(0, strcmp(column.name, "raw"));
    IS(FIBULA_BYTES, column.type);
    IS(FIBULA_E_ABSENT, fibula_column_at(table, 7, &column));
    IS(FIBULA_E_ARGUMENT, fibula_column_at(table, 0, NULL));
    IS(5, fibula_column_find(table, "country"));
    IS(FIBULA_E_ABSENT, fibula_column_find(table, "Country"));
    IS(FIBULA_E_ARGUMENT, fibula_column_find(table, NULL));
    IS(0, fibula_value_u32(table, 0, 3, &u32));
    IS(4200000000u, u32);
    IS(FIBULA_E_ABSENT, fibula_value_u32(table, 0, 2, &u32));
    IS(FIBULA_E_ABSENT, fibula_value_u32(table, 0, 4, &u32));
    IS(FIBULA_E_ABSENT, fibula_value_u32(table, 0, 0, &u32));
    IS(FIBULA_E_ABSENT, fibula_value_u32(table, 0, 0xffffffff, &u32));
    IS(FIBULA_E_ABSENT, fibula_value_u32(table, 9, 1, &u32));
    IS(FIBULA_E_ARGUMENT, fibula_value_u32(table, 1, 1, &u32));
    IS(FIBULA_E_ARGUMENT, fibula_value_u32(table, 0, 1, NULL));
    IS(0, fibula_value_u64(table, 1, 1, &u64));
    IS(1, u64 == UINT64_MAX);
    IS(0, fibula_value_i64(table, 2, 1, &i64));
    IS(-5, i64);
    IS(0, fibula_value_f64(table, 3, 2, &f64));
    IS(1, f64 == 48.25);
    IS(0, fibula_value_bool(table, 4, 1, &truth));
    IS(1, truth);
    IS(0, fibula_value_bool(table, 4, 2, &truth));
    IS(0, truth);
    is_text(table, 5, 1, "DE");
    is_text(table, 5, 3, "");
    IS(FIBULA_E_ABSENT, fibula_value_bytes(table, 5, 2, &value, &bytes));
    IS(FIBULA_E_ARGUMENT, fibula_value_bytes(table, 0, 1, &value, &bytes));
    is_text(table, 6, 1, "ab");
    /* The first column has numbers, so it has no bytes. */
    IS(FIBULA_E_ABSENT, fibula_value(table, 1, &value, &bytes));

    struct ArrowSchema schema;
    struct ArrowArray array;
    const uint32_t ids[] = {3, 0, 1, 2};
    IS(0, fibula_values_arrow(table, 0, ids, 4, 0, &schema, &array, &error));
    IS(0, strcmp(schema.format, "I"));
    IS(4, array.length);
    IS(2, array.null_count);
    IS(5, ((const uint8_t *)array.buffers[0])[0]);
    IS(4200000000u, ((const uint32_t *)array.buffers[1])[0]);
    IS(64500, ((const uint32_t *)array.buffers[1])[2]);
    schema.release(&schema);
    array.release(&array);
    IS(0, fibula_values_arrow(table, 5, ids, 4, FIBULA_DICTIONARY, &schema, &array, &error));
    IS(0, strcmp(schema.dictionary->format, "U"));
    IS(3, array.dictionary->length);
    IS(2, array.null_count);
    schema.release(&schema);
    array.release(&array);
    IS(0, fibula_values_arrow(table, 3, ids, 4, FIBULA_AS_TEXT, &schema, &array, &error));
    IS(0, strcmp(schema.format, "U"));
    IS(2, array.null_count);
    IS(0, memcmp(array.buffers[2], "-1.548.25", 9));
    schema.release(&schema);
    array.release(&array);
    IS(FIBULA_E_ARGUMENT, fibula_values_arrow(table, 0, ids, 4, 3, &schema, &array, &error));
    IS(FIBULA_E_ABSENT, fibula_values_arrow(table, 7, ids, 4, 0, &schema, &array, &error));
    IS(FIBULA_E_ARGUMENT, fibula_values_arrow(table, 0, ids, 4, 0, NULL, &array, &error));
}

static void values(const char *folder) {
    const uint32_t asn[] = {64500, 1, 4200000000u};
    const uint64_t counts[] = {UINT64_MAX};
    const int64_t offsets[] = {-5};
    const double latitudes[] = {-1.5, 48.25};
    const uint8_t open[] = {1, 0, 7}, valid[] = {1, 0, 1};
    const char *countries[] = {"DE", NULL, ""}, *raw[] = {"abc"};
    const size_t lengths[] = {2};
    fibula_values columns[] = {
        {"asn", asn, NULL, valid, 3, FIBULA_U32, 0},           {"count", counts, NULL, NULL, 1, FIBULA_U64, 0},
        {"offset", offsets, NULL, NULL, 1, FIBULA_I64, 0},     {"latitude", latitudes, NULL, NULL, 2, FIBULA_F64, 0},
        {"open", open, NULL, NULL, 3, FIBULA_BOOL, 0},         {"country", countries, NULL, NULL, 3, FIBULA_UTF8, 0},
        {"raw", raw, lengths, NULL, 1, FIBULA_BYTES, 0},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/values.fibula", folder);
    fibula_table *table = table_of_three(0), *with, *file;
    IS(0, fibula_column_count(table));
    IS(0, fibula_table_with_values(table, columns, 7, &with, &error));
    fibula_table_unref(table);
    IS(1, fibula_lookup4(with, 0x0a020001));
    has_values(with);
    IS(0, fibula_table_save(with, path, &error));
    fibula_options options = FIBULA_OPTIONS;
    for (int mapped = 0; mapped < 2; mapped++) {
        options.flags = mapped ? FIBULA_MAP : 0;
        IS(0, fibula_table_open(path, &options, &file, &error));
        IS(mapped, fibula_table_is_mapped(file));
        has_values(file);
        /* The file's columns give way to others. */
        fibula_table *other;
        IS(0, fibula_table_with_values(file, &columns[1], 1, &other, &error));
        IS(1, fibula_column_count(other));
        IS(7, fibula_column_count(file));
        fibula_table_unref(other);
        uint32_t ids[1];
        uint8_t matched[1];
        const uint32_t address = 0x0a020001;
        IS(FIBULA_E_ABSENT, fibula_lookup4_lengths(file, &address, 0, 0, ids, matched, 1));
        fibula_table_unref(file);
    }
    fibula_table *refused;
    columns[1].name = "asn";
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 7, &refused, &error));
    says(-1, "different names");
    IS(1, refused == NULL);
    columns[1].name = "line\n";
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 7, &refused, &error));
    columns[1].name = NULL;
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 7, &refused, &error));
    columns[1].name = "count";
    columns[1].type = 8;
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 7, &refused, &error));
    columns[1].type = FIBULA_U64;
    columns[6].lengths = NULL;
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 7, &refused, &error));
    columns[6].lengths = lengths;
    countries[2] = "\xff";
    IS(FIBULA_E_INVALID, fibula_table_with_values(with, columns, 7, &refused, &error));
    says(2, "not UTF-8");
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, columns, 0, &refused, &error));
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(NULL, columns, 7, &refused, &error));
    IS(FIBULA_E_ARGUMENT, fibula_table_with_values(with, NULL, 7, &refused, &error));
    IS(FIBULA_E_ARGUMENT, fibula_column_count(NULL));
    fibula_table_unref(with);
}

/* Of arrays that own nothing. */
static void keep_schema(struct ArrowSchema *schema) { (void)schema; }
static void keep_array(struct ArrowArray *array) { (void)array; }

/* A file that knows the lengths of matched prefixes. */
static void lengths_of(const char *path) {
    fibula_table *table;
    fibula_options options = FIBULA_OPTIONS;
    options.flags = FIBULA_MAP;
    IS(0, fibula_table_open(path, &options, &table, &error));
    const uint32_t addresses[] = {0x0a010101, 0x0a020304, 0x0b000000};
    uint32_t ids[3], id6, asn;
    uint8_t lengths[3], length6;
    IS(0, fibula_lookup4_lengths(table, addresses, 0, 0, ids, lengths, 3));
    IS(16, lengths[0]);
    IS(8, lengths[1]);
    IS(0, lengths[2]);
    IS(0, ids[2]);
    IS(ids[0], fibula_lookup4(table, addresses[0]));
    IS(0, fibula_lookup6_lengths(table, host6, 0, 0, &id6, &length6, 1));
    IS(32, length6);
    /* Two prefixes of different lengths have one value. */
    IS(ids[0], ids[1]);
    IS(0, fibula_value_u32(table, 0, ids[0], &asn));
    IS(64500, asn);
    IS(0, fibula_value_u32(table, 0, id6, &asn));
    IS(64501, asn);
    struct ArrowSchema schema = {.format = "I", .release = keep_schema}, texts_schema;
    const void *buffers[] = {NULL, addresses};
    struct ArrowArray array = {.length = 3, .n_buffers = 2, .buffers = buffers, .release = keep_array}, texts;
    IS(0, fibula_lookup_arrow_prefixes(table, &schema, &array, 0, &texts_schema, &texts, &error));
    IS(0, strcmp(texts_schema.format, "U"));
    IS(3, texts.length);
    IS(1, texts.null_count);
    IS(0, memcmp(texts.buffers[2], "10.1.0.0/1610.0.0.0/8", 21));
    texts_schema.release(&texts_schema);
    texts.release(&texts);
    IS(FIBULA_E_ARGUMENT, fibula_lookup_arrow_prefixes(table, &schema, &array, 0, NULL, &texts, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup_arrow_prefixes(table, &schema, &array, 1, &texts_schema, &texts, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup_arrow_prefixes(NULL, &schema, &array, 0, &texts_schema, &texts, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_lengths(table, addresses, 0, 0, ids, NULL, 3));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_lengths(NULL, addresses, 0, 0, ids, lengths, 3));
    fibula_table_unref(table);
}

static void builds(void) {
    uint32_t addresses[] = {0x0a000001, 0x0a000000, 0x0a000000}, ids[] = {1, 2, 3};
    uint8_t lengths[] = {24, 24, 24};
    const fibula_routes ipv4 = {addresses, lengths, ids, 3};
    fibula_options options = FIBULA_OPTIONS;
    fibula_table *table;
    IS(FIBULA_E_INVALID, fibula_table_build(&ipv4, NULL, NULL, &table, &error));
    says(0, "host bits");
    options.flags = FIBULA_MASK;
    IS(FIBULA_E_INVALID, fibula_table_build(&ipv4, NULL, &options, &table, &error));
    says(1, "FIBULA_LAST_WINS");
    options.flags = FIBULA_MASK | FIBULA_LAST_WINS;
    IS(0, fibula_table_build(&ipv4, NULL, &options, &table, &error));
    IS(3, fibula_lookup4(table, 0x0a0000ff));
    IS(0, fibula_lookup6(table, host6));
    fibula_table_unref(table);
    lengths[2] = 33;
    IS(FIBULA_E_INVALID, fibula_table_build(&ipv4, NULL, &options, &table, &error));
    says(2, "33");
    lengths[2] = 24;
    ids[1] = 0;
    IS(FIBULA_E_INVALID, fibula_table_build(&ipv4, NULL, &options, &table, &error));
    says(1, "0 is not");
    const fibula_routes absent = {NULL, lengths, ids, 1}, huge = {addresses, lengths, ids, SIZE_MAX / 2};
    IS(FIBULA_E_ARGUMENT, fibula_table_build(&absent, NULL, NULL, &table, &error));
    IS(FIBULA_E_ARGUMENT, fibula_table_build(&huge, NULL, NULL, &table, &error));
    IS(0, fibula_table_build(NULL, NULL, NULL, &table, &error));
    IS(0, fibula_table_count(table, 4) + fibula_table_count(table, 6));
    fibula_table_unref(table);
}

static void lookups(void) {
    fibula_table *table = table_of_three(0);
    uint32_t keys[300], ids[300];
    unsigned char records[300][24];
    for (uint32_t i = 0; i < 300; i++) {
        keys[i] = 0x0a000000 + (i << 16);
        memset(records[i], 0xff, sizeof records[i]);
        records[i][3] = 0x0a;
        records[i][4] = (unsigned char)i;
        records[i][5] = records[i][6] = 0;
    }
    IS(0, fibula_lookup4_bulk(table, keys, 0, 0, ids, 300));
    for (int i = 0; i < 300; i++) IS(i == 1 ? 0x7fffffff : i < 256 ? 1 : 0, ids[i]);
    /* The same keys, not aligned, and in network order within records. */
    unsigned char loose[300 * 4 + 1];
    memcpy(loose + 1, keys, 300 * 4);
    memset(ids, 0, sizeof ids);
    IS(0, fibula_lookup4_bulk(table, loose + 1, 4, 0, ids, 300));
    IS(0x7fffffff, ids[1]);
    IS(0, fibula_lookup4_bulk(table, &records[0][3], 24, FIBULA_NETWORK_ORDER, ids, 256));
    for (int i = 0; i < 256; i++) IS(i == 1 ? 0x7fffffff : 1, ids[i]);
    unsigned char six[40][20];
    for (int i = 0; i < 40; i++) memcpy(six[i] + 1, i % 2 ? host6 : records[0], 16);
    IS(0, fibula_lookup6_bulk(table, six[0] + 1, 20, 0, ids, 40));
    for (int i = 0; i < 40; i++) IS(i % 2 ? 0xffffffffu : 0, ids[i]);
    IS(0, fibula_lookup4_bulk(table, NULL, 0, 0, NULL, 0));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(table, NULL, 0, 0, ids, 1));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(table, keys, 0, 0, NULL, 1));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(NULL, keys, 0, 0, ids, 1));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(table, keys, 0, 64, ids, 1));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(table, keys, SIZE_MAX / 2, 0, ids, 3));
    IS(FIBULA_E_ARGUMENT, fibula_lookup4_bulk(table, keys, SIZE_MAX, 0, ids, 2));
    IS(FIBULA_E_ARGUMENT, fibula_lookup6_bulk(table, keys, 0, 0, ids, SIZE_MAX / 8));

    const char *texts[] = {"10.1.2.3", "2001:db8::1", "10.1.2", NULL, "::ffff:10.1.0.1", "10.0.0.1/32", ""};
    const uint32_t lengths[] = {8, 11, 6, 0, 15, 8, 0};
    IS(3, fibula_lookup_text(table, texts, NULL, 0, ids, 7, &error));
    const uint32_t expected[] = {0x7fffffff, 0xffffffff, 0, 0, 0, 0, 0};
    for (int i = 0; i < 7; i++) IS(expected[i], ids[i]);
    IS(2, fibula_lookup_text(table, texts, lengths, FIBULA_V4_MAPPED, ids, 7, &error));
    IS(0x7fffffff, ids[4]);
    IS(1, ids[5]);
    IS(FIBULA_E_INVALID, fibula_lookup_text(table, texts, NULL, FIBULA_REFUSE_INVALID, ids, 7, &error));
    says(2, "'10.1.2' is not");
    IS(FIBULA_E_ARGUMENT, fibula_lookup_text(table, NULL, NULL, 0, ids, 7, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup_text(table, texts, NULL, FIBULA_TEXT, ids, 7, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup_arrow(table, NULL, NULL, 1, 0, ids, 7, &error));
    IS(FIBULA_E_ARGUMENT, fibula_lookup_arrow_ids(table, NULL, NULL, 1, 0, NULL, NULL, &error));
    fibula_table_unref(table);
}

static void live_tables(void) {
    fibula_live *live;
    fibula_reader *reader;
    IS(0, fibula_live_new(NULL, &live, &error));
    IS(0, fibula_live_set4(live, 0x0a000000, 8, 4, &error));
    IS(0, fibula_live_set6(live, net6, 32, 6, &error));
    IS(2, fibula_live_count(live));
    IS(4, fibula_live_lookup4(live, 0x0a000001));
    IS(6, fibula_live_lookup6(live, host6));
    IS(4, fibula_live_get4(live, 0x0a000000, 8));
    IS(0, fibula_live_get4(live, 0x0a000000, 9));
    IS(6, fibula_live_get6(live, net6, 32));
    IS(0, fibula_live_get6(live, net6, 128));
    IS(FIBULA_E_INVALID, fibula_live_get4(live, 0x0a000001, 8));
    IS(FIBULA_E_INVALID, fibula_live_get6(live, net6, 129));
    IS(FIBULA_E_ARGUMENT, fibula_live_get6(live, NULL, 32));
    IS(FIBULA_E_ARGUMENT, fibula_live_get4(NULL, 0, 0));
    IS(0, fibula_reader_new(live, &reader, &error));
    IS(4, fibula_reader_lookup4(reader, 0x0a000001));
    IS(6, fibula_reader_lookup6(reader, host6));
    IS(0, fibula_reader_pin(reader));
    fibula_change changes[2] = {{{10, 1}, 4, 16, {0, 0}, 5}, {{0x20, 0x01, 0x0d, 0xb8}, 6, 32, {0, 0}, 0}};
    IS(0, fibula_live_apply(live, changes, 2, &error));
    IS(0, fibula_reader_quiescent(reader));
    IS(5, fibula_reader_lookup4(reader, 0x0a010001));
    IS(0, fibula_reader_lookup6(reader, host6));
    uint32_t keys[3] = {0x0a010001, 0x0a000001, 0x0b000000}, ids[3];
    IS(0, fibula_reader_lookup4_bulk(reader, keys, 0, 0, ids, 3));
    IS(5, ids[0]);
    IS(4, ids[1]);
    IS(0, ids[2]);
    IS(0, fibula_reader_lookup6_bulk(reader, host6, 0, 0, ids, 1));
    IS(0, ids[0]);
    IS(0, fibula_reader_unpin(reader));
    IS(0, fibula_reader_unpin(reader));
    /* All or nothing. */
    changes[0].id = 9;
    changes[1].length = 129;
    IS(FIBULA_E_INVALID, fibula_live_apply(live, changes, 2, &error));
    says(1, "129");
    changes[1].family = 5;
    IS(FIBULA_E_INVALID, fibula_live_apply(live, changes, 2, &error));
    IS(5, fibula_live_lookup4(live, 0x0a010001));
    IS(FIBULA_E_INVALID, fibula_live_set4(live, 1, 8, 1, &error));
    says(-1, "host bits");
    fibula_table *table;
    IS(0, fibula_live_snapshot(live, &table, &error));
    IS(0, fibula_live_set4(live, 0x0a010000, 16, 0, &error));
    IS(0, fibula_live_flush(live, &error));
    IS(5, fibula_lookup4(table, 0x0a010001));
    IS(4, fibula_live_lookup4(live, 0x0a010001));
    fibula_table_unref(table);
    /* A reader outlives the handle. */
    fibula_live_free(live);
    IS(4, fibula_reader_lookup4(reader, 0x0a010001));
    fibula_reader_free(reader);
    IS(FIBULA_E_ARGUMENT, fibula_live_set4(NULL, 0, 0, 1, &error));
    IS(FIBULA_E_ARGUMENT, fibula_live_new(NULL, NULL, &error));
    IS(FIBULA_E_ARGUMENT, fibula_reader_new(NULL, &reader, &error));
    IS(FIBULA_E_ARGUMENT, fibula_reader_pin(NULL));
    IS(FIBULA_E_ARGUMENT, fibula_live_count(NULL));
    IS(0, fibula_live_lookup4(NULL, 1));
    IS(0, fibula_reader_lookup4(NULL, 1));
    fibula_live_free(NULL);
    fibula_reader_free(NULL);
    fibula_options options = FIBULA_OPTIONS;
    options.memory_limit = 10000;
    IS(FIBULA_E_MEMORY, fibula_live_new(&options, &live, &error));
    fibula_follower *follower;
    IS(FIBULA_E_ARGUMENT, fibula_follower_open(NULL, NULL, &follower, &error));
    int is_new;
    IS(FIBULA_E_ARGUMENT, fibula_follower_poll(NULL, &is_new, &error));
    IS(1, fibula_follower_table(NULL) == NULL);
    fibula_follower_free(NULL);
}

static void many_tables(void) {
    fibula_vrfs *vrfs;
    uint32_t red, blue;
    IS(0, fibula_vrfs_new(NULL, &vrfs, &error));
    IS(0, fibula_vrfs_create(vrfs, &red, &error));
    IS(0, fibula_vrfs_create(vrfs, &blue, &error));
    IS(0, fibula_vrfs_set4(vrfs, red, 0x0a000000, 8, 1, &error));
    IS(0, fibula_vrfs_set4(vrfs, blue, 0x0a000000, 8, 2, &error));
    IS(0, fibula_vrfs_set6(vrfs, blue, net6, 32, 3, &error));
    const uint32_t keys[] = {0x0a000001, 0x0a000001, 0x0a000001}, vrf[] = {red, blue, 4000};
    uint32_t ids[3];
    IS(0, fibula_vrfs_lookup4_bulk(vrfs, vrf, keys, 0, 0, ids, 3));
    IS(1, ids[0]);
    IS(2, ids[1]);
    IS(0, ids[2]);
    IS(0, fibula_vrfs_lookup6_bulk(vrfs, vrf + 1, host6, 0, 0, ids, 1));
    IS(3, ids[0]);
    IS(0, fibula_vrfs_delete(vrfs, blue, &error));
    IS(FIBULA_E_ABSENT, fibula_vrfs_delete(vrfs, 4000, &error));
    IS(FIBULA_E_ABSENT, fibula_vrfs_set4(vrfs, 4000, 0, 0, 1, &error));
    IS(FIBULA_E_ARGUMENT, fibula_vrfs_lookup4_bulk(vrfs, NULL, keys, 0, 0, ids, 3));
    IS(FIBULA_E_ARGUMENT, fibula_vrfs_lookup4_bulk(NULL, vrf, keys, 0, 0, ids, 3));
    IS(FIBULA_E_ARGUMENT, fibula_vrfs_create(NULL, &red, &error));
    fibula_vrfs_free(vrfs);
    fibula_vrfs_free(NULL);
}

/* Files of every engine. One that the library lacks is another one's over its routes; without routes it is refused. */
static void engines(const char *folder) {
    static const uint8_t zero6[16];
    char path[4096], name[64];
    int family, own = 0, lacking = 0;
    snprintf(path, sizeof path, "%s/engines", folder);
    FILE *list = fopen(path, "r");
    IS(1, list != NULL);
    while (list && fscanf(list, "%d %63s", &family, name) == 2) {
        for (int mapped = 0; mapped < 2; mapped++) {
            fibula_options options = FIBULA_OPTIONS;
            options.flags = mapped ? FIBULA_MAP : 0;
            fibula_table *table = NULL;
            snprintf(path, sizeof path, "%s/%s.fibula", folder, name);
            IS(0, fibula_table_open(path, &options, &table, &error));
            IS(1, family == 4 ? fibula_lookup4(table, 0x0a000001) : fibula_lookup6(table, host6));
            IS(0, family == 4 ? fibula_lookup4(table, 0x0b000001) : fibula_lookup6(table, zero6));
            const int has = table && strcmp(fibula_table_engine(table, family), name) == 0;
            fibula_table_unref(table);
            snprintf(path, sizeof path, "%s/%s-alone.fibula", folder, name);
            table = NULL;
            if (has) {
                own++;
                IS(0, fibula_table_open(path, &options, &table, &error));
                fibula_table_unref(table);
            } else {
                lacking++;
                IS(FIBULA_E_NEWER, fibula_table_open(path, &options, &table, &error));
                says(-1, name);
            }
        }
    }
    if (list) fclose(list);
    IS(1, own > 0 && lacking > 0);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    engines(arguments[1]);
    IS(1, strlen(fibula_version()) >= 5 && strlen(fibula_isa()) >= 4);
    tables(arguments[1]);
    values(arguments[1]);
    lengths_of(arguments[2]);
    builds();
    lookups();
    live_tables();
    many_tables();
    return wrong;
}
