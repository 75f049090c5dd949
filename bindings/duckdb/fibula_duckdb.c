/*
 * DuckDB's extension: the functions of SQL over the C library.
 *
 * It uses DuckDB's stable interface for extensions, version 1.2.0, so that one binary runs in DuckDB 1.3.2 and all later versions. Vectors come flat from there: a
 * constant argument is there in each row. A chunk is cut into runs of rows with the same table, column and rule, of which there is one as a rule. Each run is an
 * array of Arrow for the C library.
 *
 * DuckDB 1.5.6 and later offer more, which is used where the running version has it: which arguments are constant is asked when a query is bound, and a chunk of
 * texts that repeat is entries of a dictionary.
 */
#define DUCKDB_EXTENSION_NAME fibula
#define DUCKDB_EXTENSION_API_VERSION_MAJOR 1
#define DUCKDB_EXTENSION_API_VERSION_MINOR 5
#define DUCKDB_EXTENSION_API_VERSION_PATCH 6
#include "vendor/duckdb_extension.h"

/* All members of the interface of version 1.2.0: this is the first one of 1.5.6. Calls of those are behind `has_newer`. */
#undef duckdb_create_instance_cache
#define BYTES_OF_1_2_0 offsetof(duckdb_ext_api_v1, duckdb_create_instance_cache)

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../c/include/fibula.h"
#include "../c/include/fibula_rpki.h"

DUCKDB_EXTENSION_GLOBAL

static int has_newer;

/* Arrow's C data interface. */
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

/* ---- files: each is opened once in a process, and followed ---- */

typedef struct opened {
    struct opened *next;
    char *path;
    fibula_follower *follower; /* of a table */
    fibula_vrps *vrps;         /* of payloads, with references of queries that validate */
    struct stat about;         /* the file that the payloads are of */
    pthread_rwlock_t of_vrps;
    pthread_mutex_t poll;
    char error[240]; /* why the file that is there now was not taken; empty otherwise */
} opened;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opened *tables, *payloads;

static opened *entry_of(opened **list, const char *path, fibula_error *error) {
    for (opened *entry = *list; entry; entry = entry->next)
        if (strcmp(entry->path, path) == 0) return entry;
    opened *entry = calloc(1, sizeof *entry);
    if (entry) entry->path = strdup(path);
    if (!entry || !entry->path) {
        free(entry);
        snprintf(error->message, sizeof error->message, "out of memory");
        return NULL;
    }
    pthread_mutex_init(&entry->poll, NULL);
    pthread_rwlock_init(&entry->of_vrps, NULL);
    return entry;
}

static void keep(opened **list, opened *entry) {
    if (entry->next || *list == entry) return;
    for (opened *other = *list; other; other = other->next)
        if (other == entry) return;
    entry->next = *list;
    *list = entry;
}

static void forget(opened *entry) {
    free(entry->path);
    free(entry);
}

/* Returns the table of a file as it is now, with a reference for the caller. A file that cannot be taken leaves the table before. */
static fibula_table *table_at(const char *path, fibula_error *error) {
    pthread_mutex_lock(&lock);
    opened *entry = entry_of(&tables, path, error);
    if (entry && !entry->follower) {
        if (fibula_follower_open(path, NULL, &entry->follower, error) != 0) {
            forget(entry);
            entry = NULL;
        } else {
            keep(&tables, entry);
        }
    }
    pthread_mutex_unlock(&lock);
    if (!entry) return NULL;
    /* One thread looks at the file; others meanwhile take the table that is there. */
    if (pthread_mutex_trylock(&entry->poll) == 0) {
        int is_new;
        fibula_error refused;
        /* A file that was refused is not looked at again, so its error stays until there is another one. */
        if (fibula_follower_poll(entry->follower, &is_new, &refused) != 0)
            snprintf(entry->error, sizeof entry->error, "%s", refused.message);
        else if (is_new)
            entry->error[0] = 0;
        pthread_mutex_unlock(&entry->poll);
    }
    fibula_table *table = fibula_follower_table(entry->follower);
    if (!table) snprintf(error->message, sizeof error->message, "%s: no table", path);
    return table;
}

/* Returns the entry of a file of payloads, which is locked for reading; they are read anew where the file is another one. */
static opened *payloads_at(const char *path, fibula_error *error) {
    pthread_mutex_lock(&lock);
    opened *entry = entry_of(&payloads, path, error);
    struct stat about;
    if (entry && stat(path, &about) != 0) {
        if (!entry->vrps) {
            snprintf(error->message, sizeof error->message, "%s: %s", path, strerror(errno));
            forget(entry);
            entry = NULL;
        } else {
            snprintf(entry->error, sizeof entry->error, "%s: %s", path, strerror(errno));
        }
    } else if (entry && !(entry->vrps && about.st_dev == entry->about.st_dev && about.st_ino == entry->about.st_ino &&
                          about.st_size == entry->about.st_size && about.st_mtim.tv_sec == entry->about.st_mtim.tv_sec &&
                          about.st_mtim.tv_nsec == entry->about.st_mtim.tv_nsec)) {
        fibula_vrps *vrps;
        if (fibula_vrps_open(path, &vrps, error) == 0) {
            pthread_rwlock_wrlock(&entry->of_vrps);
            fibula_vrps_free(entry->vrps);
            entry->vrps = vrps;
            entry->about = about;
            entry->error[0] = 0;
            pthread_rwlock_unlock(&entry->of_vrps);
            keep(&payloads, entry);
        } else if (entry->vrps) {
            snprintf(entry->error, sizeof entry->error, "%s", error->message);
        } else {
            forget(entry);
            entry = NULL;
        }
    }
    if (entry) pthread_rwlock_rdlock(&entry->of_vrps);
    pthread_mutex_unlock(&lock);
    return entry;
}

/* ---- columns of DuckDB ---- */

static const char *text_of(const duckdb_string_t *text, uint32_t *length) {
    *length = text->value.inlined.length;
    return *length <= sizeof text->value.inlined.inlined ? text->value.inlined.inlined : text->value.pointer.ptr;
}

typedef struct {
    void *data;
    uint64_t *valid; /* NULL: all are there */
} column;

static column column_at(duckdb_data_chunk chunk, idx_t number) {
    duckdb_vector vector = duckdb_data_chunk_get_vector(chunk, number);
    return (column){duckdb_vector_get_data(vector), duckdb_vector_get_validity(vector)};
}

static int is_there(const column *column, idx_t row) {
    return !column->valid || (column->valid[row / 64] >> row % 64 & 1);
}

static int is_same(const column *column, idx_t one, idx_t other) {
    if (!is_there(column, one) || !is_there(column, other)) return is_there(column, one) == is_there(column, other);
    const duckdb_string_t *texts = column->data;
    if (memcmp(&texts[one], &texts[other], sizeof *texts) == 0) return 1;
    uint32_t lengths[2];
    const char *a = text_of(&texts[one], &lengths[0]), *b = text_of(&texts[other], &lengths[1]);
    return lengths[0] == lengths[1] && memcmp(a, b, lengths[0]) == 0;
}

/* Copies a text into a place of its own, which ends with 0. Returns NULL where it has a 0 inside, or memory runs out. */
static char *copy_of(const column *column, idx_t row) {
    uint32_t length;
    const char *text = text_of(&((const duckdb_string_t *)column->data)[row], &length);
    if (memchr(text, 0, length)) return NULL;
    char *copy = malloc((size_t)length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = 0;
    }
    return copy;
}

/* Clears the validity of rows of a result. */
static void no_rows(duckdb_vector vector, idx_t first, idx_t end) {
    duckdb_vector_ensure_validity_writable(vector);
    uint64_t *valid = duckdb_vector_get_validity(vector);
    for (idx_t row = first; row < end; row++) valid[row / 64] &= ~((uint64_t)1 << row % 64);
}

/* Clears the validity of rows without an id. */
static void none_without_id(duckdb_vector vector, idx_t first, const uint32_t *ids, idx_t count) {
    uint64_t *valid = NULL;
    for (idx_t row = 0; row < count; row++) {
        if (ids[row]) continue;
        if (!valid) {
            duckdb_vector_ensure_validity_writable(vector);
            valid = duckdb_vector_get_validity(vector);
        }
        valid[(first + row) / 64] &= ~((uint64_t)1 << (first + row) % 64);
    }
}

/* Bytes of a text or blob that are looked at: the longest address has 45. */
#define MOST_BYTES 64

/* Arrays without these are taken for released ones. Nothing is owned by them. */
static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }
static void release_array(struct ArrowArray *array) { array->release = NULL; }

/* A column of addresses as an array of Arrow. */
typedef struct {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[3];
    void *made;
} addresses;

static int addresses_of(const column *of, duckdb_type type, idx_t count, addresses *to) {
    memset(to, 0, sizeof *to);
    to->schema.release = release_schema;
    to->array.release = release_array;
    to->array.length = (int64_t)count;
    to->array.null_count = of->valid ? -1 : 0;
    to->array.n_buffers = 2;
    to->array.buffers = to->buffers;
    to->buffers[0] = of->valid;
    to->buffers[1] = of->data;
    switch (type) {
    case DUCKDB_TYPE_UINTEGER: to->schema.format = "I"; return 1;
    case DUCKDB_TYPE_INTEGER: to->schema.format = "i"; return 1;
    case DUCKDB_TYPE_UBIGINT: to->schema.format = "L"; return 1;
    case DUCKDB_TYPE_BIGINT: to->schema.format = "l"; return 1;
    case DUCKDB_TYPE_UHUGEINT:
    case DUCKDB_TYPE_HUGEINT: {
        /* Bytes in network order; a negative number has none, which is no address. */
        const int is_signed = type == DUCKDB_TYPE_HUGEINT;
        const size_t offsets = (count + 1) * sizeof(int32_t);
        int32_t *ends = to->made = malloc(offsets + count * 16);
        if (!ends) return 0;
        uint8_t *bytes = (uint8_t *)ends + offsets;
        const duckdb_uhugeint *numbers = of->data;
        ends[0] = 0;
        for (idx_t row = 0; row < count; row++) {
            ends[row + 1] = ends[row];
            if (!is_there(of, row) || (is_signed && numbers[row].upper >> 63)) continue;
            for (int at = 0; at < 8; at++) {
                bytes[ends[row] + at] = (uint8_t)(numbers[row].upper >> (56 - 8 * at));
                bytes[ends[row] + 8 + at] = (uint8_t)(numbers[row].lower >> (56 - 8 * at));
            }
            ends[row + 1] += 16;
        }
        to->schema.format = "z";
        to->array.n_buffers = 3;
        to->buffers[1] = ends;
        to->buffers[2] = bytes;
        return 1;
    }
    default: {
        const size_t offsets = (count + 1) * sizeof(int32_t);
        int32_t *ends = to->made = malloc(offsets + count * MOST_BYTES);
        if (!ends) return 0;
        char *bytes = (char *)ends + offsets;
        const duckdb_string_t *texts = of->data;
        ends[0] = 0;
        for (idx_t row = 0; row < count; row++) {
            ends[row + 1] = ends[row];
            if (!is_there(of, row)) continue;
            uint32_t length;
            const char *text = text_of(&texts[row], &length);
            if (length > MOST_BYTES) length = MOST_BYTES;
            memcpy(bytes + ends[row], text, length);
            ends[row + 1] += (int32_t)length;
        }
        to->schema.format = type == DUCKDB_TYPE_BLOB ? "z" : "u";
        to->array.n_buffers = 3;
        to->buffers[1] = ends;
        to->buffers[2] = bytes;
        return 1;
    }
    }
}

/* ---- the functions ---- */

enum answer { OF_FIRST, OF_COLUMN, PREFIX, U64, F64, ID };

typedef struct {
    const char *name;
    enum answer answer;
    duckdb_type result;
    int has_column;
} function;

static const function FUNCTIONS[] = {
    {"lpm", OF_FIRST, DUCKDB_TYPE_VARCHAR, 0},      {"lpm_column", OF_COLUMN, DUCKDB_TYPE_VARCHAR, 1},
    {"lpm_prefix", PREFIX, DUCKDB_TYPE_VARCHAR, 0}, {"lpm_u64", U64, DUCKDB_TYPE_UBIGINT, 1},
    {"lpm_f64", F64, DUCKDB_TYPE_DOUBLE, 1},        {"lpm_id", ID, DUCKDB_TYPE_UINTEGER, 0},
};

static const duckdb_type ADDRESSES[] = {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_UINTEGER, DUCKDB_TYPE_INTEGER,  DUCKDB_TYPE_UBIGINT,
                                        DUCKDB_TYPE_BIGINT,  DUCKDB_TYPE_UHUGEINT, DUCKDB_TYPE_HUGEINT, DUCKDB_TYPE_BLOB};

/* What a registered function is: `extra` of DuckDB. */
typedef struct {
    const function *of;
    duckdb_type ip; /* of rov, the type of the AS */
    int has_rule;
} overload;

static const char *const TYPES[] = {"", "u32", "u64", "i64", "f64", "bool", "text", "bytes"};

/* Says what is wrong. The rows that messages count are those of a chunk, which means nothing in SQL, so that part of them is left out. */
static void fail(duckdb_function_info info, const char *name, const char *message) {
    if (strncmp(message, "row ", 4) == 0) {
        const char *after = strstr(message, ": ");
        if (after) message = after + 2;
    }
    char said[512];
    snprintf(said, sizeof said, "%s: %s", name, message);
    duckdb_scalar_function_set_error(info, said);
}

/* Reads the rule for rows that are no addresses. */
static int flags_of(const char *rule, uint32_t *flags) {
    *flags = strcmp(rule, "raise") == 0 ? FIBULA_REFUSE_INVALID : 0;
    return *flags || strcmp(rule, "null") == 0;
}

/* Copies texts of Arrow into rows of a result. */
static void put_texts(duckdb_vector result, idx_t first, const struct ArrowArray *texts) {
    const uint8_t *valid = texts->buffers[0];
    const int64_t *ends = texts->buffers[1];
    const char *bytes = texts->buffers[2];
    for (int64_t row = 0; row < texts->length; row++) {
        if (valid && !(valid[row / 8] >> row % 8 & 1)) {
            no_rows(result, first + (idx_t)row, first + (idx_t)row + 1);
            continue;
        }
        duckdb_vector_assign_string_element_len(result, first + (idx_t)row, bytes ? bytes + ends[row] : "",
                                                (idx_t)(ends[row + 1] - ends[row]));
    }
}

/* Writes the values of ids. Returns 0 with a message where that cannot be. */
static int put_values(const function *of, const fibula_table *table, const char *path, const char *name,
                      duckdb_vector result, idx_t first, const uint32_t *ids, idx_t count, fibula_error *error) {
    fibula_column column = {0};
    int64_t number = 0;
    if (of->answer == OF_FIRST && fibula_column_count(table) == 0) {
        for (idx_t row = 0; row < count; row++) {
            char digits[16];
            snprintf(digits, sizeof digits, "%u", ids[row]);
            if (ids[row]) duckdb_vector_assign_string_element(result, first + row, digits);
        }
        none_without_id(result, first, ids, count);
        return 1;
    }
    if (of->has_column) number = fibula_column_find(table, name);
    if (number < 0 || fibula_column_at(table, (uint32_t)number, &column) != 0) {
        snprintf(error->message, sizeof error->message, "%.120s: the table has no column '%.60s'", path, name);
        return 0;
    }
    struct ArrowSchema schema;
    struct ArrowArray array;
    uint32_t flags = 0;
    switch (of->answer) {
    case U64:
    case F64:
        if (column.type != FIBULA_U32 && column.type != (of->answer == U64 ? FIBULA_U64 : FIBULA_F64)) {
            const char *takes = of->answer == U64 ? "u32 and u64" : "f64 and u32";
            snprintf(error->message, sizeof error->message,
                     "column '%.60s' is of type %s, and not %s; lpm_column has the text of every type", name, TYPES[column.type], takes);
            return 0;
        }
        break;
    default:
        if (column.type == FIBULA_UTF8) {
            for (idx_t row = 0; row < count; row++) {
                const uint8_t *value;
                size_t bytes;
                if (ids[row] && fibula_value_bytes(table, (uint32_t)number, ids[row], &value, &bytes) == 0)
                    duckdb_vector_assign_string_element_len(result, first + row, (const char *)value, bytes);
                else
                    no_rows(result, first + row, first + row + 1);
            }
            return 1;
        }
        flags = FIBULA_AS_TEXT;
    }
    if (fibula_values_arrow(table, (uint32_t)number, ids, count, flags, &schema, &array, error) != 0) return 0;
    if (flags == FIBULA_AS_TEXT) {
        put_texts(result, first, &array);
    } else {
        const uint8_t *valid = array.buffers[0];
        const void *values = array.buffers[1];
        void *data = duckdb_vector_get_data(result);
        for (idx_t row = 0; row < count; row++) {
            if (valid && !(valid[row / 8] >> row % 8 & 1))
                no_rows(result, first + row, first + row + 1);
            else if (of->answer == U64)
                ((uint64_t *)data)[first + row] =
                    column.type == FIBULA_U32 ? ((const uint32_t *)values)[row] : ((const uint64_t *)values)[row];
            else
                ((double *)data)[first + row] =
                    column.type == FIBULA_U32 ? ((const uint32_t *)values)[row] : ((const double *)values)[row];
        }
    }
    schema.release(&schema);
    array.release(&array);
    return 1;
}

/* ---- with the interface of 1.5.6: constants, and texts by a dictionary ---- */

/* Places for the ids of a chunk: a power of two that is more than twice its rows. */
#define PLACES 8192

/*
 * Makes the result of a whole chunk entries of a dictionary: each distinct value is copied once. Returns 0 where there is little to save. The dictionary is the
 * chunk's own: with one of all values of a table, DuckDB takes time for each of its entries in every chunk.
 */
static int put_entries(const function *of, const fibula_table *table, const char *path, const char *name, duckdb_vector result,
                       const uint32_t *ids, idx_t count, fibula_error *error, int *is_good) {
    uint32_t seen[PLACES], distinct[PLACES / 2];
    uint16_t entries[PLACES];
    if (count < 64 || count >= PLACES / 2) return 0;
    duckdb_selection_vector rows = duckdb_create_selection_vector(count);
    if (!rows) return 0;
    sel_t *entry = duckdb_selection_vector_get_data_ptr(rows);
    memset(seen, 0, sizeof seen);
    /* With more, entries cost as much as copies. */
    const idx_t most = count / 4;
    idx_t found = 0;
    for (idx_t row = 0; row < count && found <= most; row++) {
        /* Most chunks without many equal values are known by their first rows. */
        if ((row == 64 && found > 48) || (row == 256 && found > 128)) found = count;
        /* A place holds an id and one, so that 0 is none. */
        const uint32_t key = ids[row] + 1;
        uint32_t place = key * 0x9e3779b1u >> (32 - 13);
        while (seen[place] && seen[place] != key) place = (place + 1) % PLACES;
        if (!seen[place]) {
            seen[place] = key;
            entries[place] = (uint16_t)found;
            distinct[found++] = ids[row];
        }
        entry[row] = entries[place];
    }
    const int is_worth_it = found <= most;
    if (is_worth_it) {
        *is_good = put_values(of, table, path, name, result, 0, distinct, found, error);
        if (*is_good) duckdb_slice_vector(result, rows, count);
    }
    duckdb_destroy_selection_vector(rows);
    return is_worth_it;
}

/* Bound data of calls whose table, column and rule are constant. It is never written. */
static char CONSTANT;

static void *copy_constant(void *bound) { return bound; }
static void keep_constant(void *bound) { (void)bound; }

static void bind_call(duckdb_bind_info info) {
    const overload *self = duckdb_scalar_function_bind_get_extra_info(info);
    const idx_t arguments = duckdb_scalar_function_bind_get_argument_count(info);
    int are_constant = arguments == 2 + (idx_t)self->of->has_column + (idx_t)self->has_rule;
    for (idx_t at = 0; are_constant && at < arguments; at++) {
        if (at == 1) continue;
        duckdb_expression argument = duckdb_scalar_function_bind_get_argument(info, at);
        are_constant = duckdb_expression_is_foldable(argument);
        duckdb_destroy_expression(&argument);
    }
    if (!are_constant) return;
    duckdb_scalar_function_set_bind_data(info, &CONSTANT, keep_constant);
    duckdb_scalar_function_set_bind_data_copy(info, copy_constant);
}

/* Answers rows of one table, column and rule. Returns 0 with a message where that cannot be. `is_chunk`: the rows are all of it. */
static int run_of_rows(const overload *self, const char *path, const char *name, const char *rule, addresses *ip,
                       duckdb_vector result, idx_t first, idx_t count, int is_chunk, fibula_error *error) {
    uint32_t flags = 0;
    if (rule && !flags_of(rule, &flags)) {
        snprintf(error->message, sizeof error->message, "the rule for what is no address is 'null' or 'raise', and not '%.60s'", rule);
        return 0;
    }
    fibula_table *table = table_at(path, error);
    if (!table) return 0;
    ip->array.offset = (int64_t)first;
    ip->array.length = (int64_t)count;
    int is_good;
    if (self->of->answer == PREFIX) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        is_good = fibula_lookup_arrow_prefixes(table, &ip->schema, &ip->array, flags, &schema, &array, error) >= 0;
        if (is_good) {
            put_texts(result, first, &array);
            schema.release(&schema);
            array.release(&array);
        }
    } else {
        uint32_t *made = NULL, *ids;
        if (self->of->answer == ID)
            ids = (uint32_t *)duckdb_vector_get_data(result) + first;
        else
            ids = made = malloc(count * sizeof *ids);
        is_good = ids != NULL;
        if (!is_good) snprintf(error->message, sizeof error->message, "out of memory");
        is_good = is_good && fibula_lookup_arrow(table, &ip->schema, &ip->array, 1, flags, ids, count, error) >= 0;
        if (is_good && self->of->answer == ID) none_without_id(result, first, ids, count);
        const int is_text = self->of->answer == OF_FIRST || self->of->answer == OF_COLUMN;
        if (is_good && self->of->answer != ID &&
            !(has_newer && is_chunk && is_text && put_entries(self->of, table, path, name, result, ids, count, error, &is_good)))
            is_good = put_values(self->of, table, path, name, result, first, ids, count, error);
        free(made);
    }
    fibula_table_unref(table);
    return is_good;
}

static void look_up(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector result) {
    const overload *self = duckdb_scalar_function_get_extra_info(info);
    const idx_t count = duckdb_data_chunk_get_size(input);
    const int options = self->of->has_column + self->has_rule;
    const column table = column_at(input, 0), ip = column_at(input, 1);
    column given[2];
    for (int at = 0; at < options; at++) given[at] = column_at(input, 2 + (idx_t)at);
    addresses rows;
    if (!addresses_of(&ip, self->ip, count, &rows)) {
        fail(info, self->of->name, "out of memory");
        return;
    }
    const int are_constant = has_newer && duckdb_scalar_function_get_bind_data(info) == &CONSTANT;
    for (idx_t first = 0, end; first < count; first = end) {
        for (end = are_constant ? count : first + 1; end < count && is_same(&table, first, end); end++) {
            int are_same = 1;
            for (int at = 0; at < options; at++) are_same = are_same && is_same(&given[at], first, end);
            if (!are_same) break;
        }
        int is_null = !is_there(&table, first);
        for (int at = 0; at < options; at++) is_null = is_null || !is_there(&given[at], first);
        if (is_null) {
            no_rows(result, first, end);
            continue;
        }
        fibula_error error = {0};
        char *path = copy_of(&table, first), *texts[2] = {NULL, NULL};
        int is_good = path != NULL;
        for (int at = 0; at < options; at++) is_good = (texts[at] = copy_of(&given[at], first)) != NULL && is_good;
        if (!is_good)
            snprintf(error.message, sizeof error.message, "the table, a column or a rule has a byte 0");
        else
            is_good = run_of_rows(self, path, self->of->has_column ? texts[0] : "", self->has_rule ? texts[options - 1] : NULL,
                                  &rows, result, first, end - first, end - first == count, &error);
        free(path);
        free(texts[0]);
        free(texts[1]);
        if (!is_good) {
            fail(info, self->of->name, error.message);
            break;
        }
    }
    free(rows.made);
}

/* rov(vrps, prefix, asn) */
static void validate(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector result) {
    static const char *const STATES[] = {NULL, "valid", "invalid-as", "invalid-length", "not-found"};
    const overload *self = duckdb_scalar_function_get_extra_info(info);
    const idx_t count = duckdb_data_chunk_get_size(input);
    const column vrps = column_at(input, 0), prefix = column_at(input, 1), asn = column_at(input, 2);
    const column rule = self->has_rule ? column_at(input, 3) : vrps;
    const char **texts = calloc(count, sizeof *texts);
    uint32_t *lengths = calloc(count, sizeof *lengths), *asns = calloc(count, sizeof *asns);
    uint8_t *states = calloc(count, 1);
    fibula_error error = {0};
    int is_good = texts && lengths && asns && states;
    if (!is_good) snprintf(error.message, sizeof error.message, "out of memory");
    for (idx_t first = 0, end; is_good && first < count; first = end) {
        for (end = first + 1; end < count && is_same(&vrps, first, end) && is_same(&rule, first, end); end++);
        if (!is_there(&vrps, first) || !is_there(&rule, first)) continue;
        char *path = copy_of(&vrps, first), *given = self->has_rule ? copy_of(&rule, first) : NULL;
        uint32_t flags = 0;
        is_good = path && (given || !self->has_rule);
        if (!is_good) snprintf(error.message, sizeof error.message, "the file or the rule has a byte 0");
        if (is_good && given && !flags_of(given, &flags)) {
            snprintf(error.message, sizeof error.message, "the rule for what is no prefix is 'null' or 'raise', and not '%.60s'", given);
            is_good = 0;
        }
        for (idx_t row = first; is_good && row < end; row++) {
            if (!is_there(&prefix, row) || !is_there(&asn, row)) continue;
            const uint64_t number = ((const uint64_t *)asn.data)[row];
            if (number > UINT32_MAX) {
                if (!flags) continue;
                if (self->ip == DUCKDB_TYPE_BIGINT)
                    snprintf(error.message, sizeof error.message, "%lld is not an AS number", (long long)number);
                else
                    snprintf(error.message, sizeof error.message, "%llu is not an AS number", (unsigned long long)number);
                is_good = 0;
                break;
            }
            texts[row] = text_of(&((const duckdb_string_t *)prefix.data)[row], &lengths[row]);
            asns[row] = (uint32_t)number;
        }
        opened *entry = is_good ? payloads_at(path, &error) : NULL;
        is_good = entry != NULL;
        if (entry) {
            is_good = fibula_vrps_validate(entry->vrps, texts + first, lengths + first, asns + first, flags, states + first, end - first,
                                           &error) >= 0;
            pthread_rwlock_unlock(&entry->of_vrps);
        }
        free(path);
        free(given);
    }
    if (is_good)
        for (idx_t row = 0; row < count; row++) {
            if (states[row])
                duckdb_vector_assign_string_element(result, row, STATES[states[row]]);
            else
                no_rows(result, row, row + 1);
        }
    else
        fail(info, "rov", error.message);
    free(texts);
    free(lengths);
    free(asns);
    free(states);
}

/* ---- fibula_routes(table, value := column) and fibula_tables() ---- */

typedef struct {
    uint8_t address[16];
    uint8_t length, family;
    uint32_t id;
} route;

typedef struct {
    fibula_table *table;
    uint32_t column, type; /* of the values; a type of 0 where there are none, and the ids are shown */
} routes_bound;

typedef struct {
    route *routes;
    size_t count, room, at;
    int is_full;
} routes_state;

static void unbind_routes(void *bound) {
    fibula_table_unref(((routes_bound *)bound)->table);
    free(bound);
}

static void end_routes(void *state) {
    free(((routes_state *)state)->routes);
    free(state);
}

static void bind_routes(duckdb_bind_info info) {
    duckdb_value given = duckdb_bind_get_parameter(info, 0), named = duckdb_bind_get_named_parameter(info, "value");
    char *path = duckdb_is_null_value(given) ? NULL : duckdb_get_varchar(given);
    char *name = !named || duckdb_is_null_value(named) ? NULL : duckdb_get_varchar(named);
    fibula_error error = {0};
    char said[512] = "";
    fibula_table *table = path ? table_at(path, &error) : NULL;
    routes_bound *bound = table ? calloc(1, sizeof *bound) : NULL;
    if (!path)
        snprintf(said, sizeof said, "fibula_routes: the table is null");
    else if (!table)
        snprintf(said, sizeof said, "fibula_routes: %s", error.message);
    else if (!bound)
        snprintf(said, sizeof said, "fibula_routes: out of memory");
    else {
        bound->table = fibula_table_ref(table);
        const int64_t number = name ? fibula_column_find(table, name) : 0;
        fibula_column column = {0};
        if (number >= 0 && fibula_column_at(table, (uint32_t)number, &column) == 0) {
            bound->column = (uint32_t)number;
            bound->type = column.type;
        } else if (name) {
            snprintf(said, sizeof said, "fibula_routes: %.120s: the table has no column '%.60s'", path, name);
        }
        if (!said[0] && (fibula_table_count(table, 4) < 0 || fibula_table_count(table, 6) < 0))
            snprintf(said, sizeof said, "fibula_routes: %.120s: the file has no routes: compile it with them (fibula compile --routes)", path);
    }
    if (said[0]) {
        duckdb_bind_set_error(info, said);
        if (bound) unbind_routes(bound);
    } else {
        duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
        duckdb_bind_add_result_column(info, "prefix", text);
        duckdb_bind_add_result_column(info, "value", text);
        duckdb_destroy_logical_type(&text);
        duckdb_bind_set_bind_data(info, bound, unbind_routes);
    }
    fibula_table_unref(table);
    duckdb_free(path);
    duckdb_free(name);
    duckdb_destroy_value(&given);
    if (named) duckdb_destroy_value(&named);
}

static int add_route(routes_state *state, const route *one) {
    if (state->count == state->room) {
        const size_t room = state->room ? 2 * state->room : 1024;
        route *more = realloc(state->routes, room * sizeof *more);
        if (!more) {
            state->is_full = 1;
            return 1;
        }
        state->routes = more;
        state->room = room;
    }
    state->routes[state->count++] = *one;
    return 0;
}

static int add4(uint32_t address, uint8_t length, uint32_t id, void *state) {
    route one = {.length = length, .family = 4, .id = id};
    for (int at = 0; at < 4; at++) one.address[at] = (uint8_t)(address >> (24 - 8 * at));
    return add_route(state, &one);
}

static int add6(const uint8_t *address, uint8_t length, uint32_t id, void *state) {
    route one = {.length = length, .family = 6, .id = id};
    memcpy(one.address, address, 16);
    return add_route(state, &one);
}

static void init_routes(duckdb_init_info info) {
    const routes_bound *bound = duckdb_init_get_bind_data(info);
    routes_state *state = calloc(1, sizeof *state);
    if (!state) {
        duckdb_init_set_error(info, "fibula_routes: out of memory");
        return;
    }
    duckdb_init_set_max_threads(info, 1);
    if (fibula_iterate4(bound->table, add4, state) < 0 || fibula_iterate6(bound->table, add6, state) < 0 || state->is_full) {
        duckdb_init_set_error(info, "fibula_routes: out of memory for the routes");
        end_routes(state);
        return;
    }
    duckdb_init_set_init_data(info, state, end_routes);
}

/* The text of a prefix. Addresses of ::/96 are written in hexadecimal digits, which inet_ntop does not do. */
static void prefix_text(const route *one, char text[64]) {
    static const uint8_t ZERO[12];
    char address[INET6_ADDRSTRLEN];
    if (one->family == 4)
        inet_ntop(AF_INET, one->address, address, sizeof address);
    else if (memcmp(one->address, ZERO, 12) != 0)
        inet_ntop(AF_INET6, one->address, address, sizeof address);
    else {
        const unsigned high = one->address[12] << 8 | one->address[13], low = one->address[14] << 8 | one->address[15];
        if (high)
            snprintf(address, sizeof address, "::%x:%x", high, low);
        else if (low)
            snprintf(address, sizeof address, "::%x", low);
        else
            snprintf(address, sizeof address, "::");
    }
    snprintf(text, 64, "%s/%u", address, one->length);
}

static void put_routes(duckdb_function_info info, duckdb_data_chunk output) {
    const routes_bound *bound = duckdb_function_get_bind_data(info);
    routes_state *state = duckdb_function_get_init_data(info);
    duckdb_vector prefixes = duckdb_data_chunk_get_vector(output, 0), values = duckdb_data_chunk_get_vector(output, 1);
    const idx_t most = duckdb_vector_size();
    const idx_t count = state->count - state->at < most ? state->count - state->at : most;
    uint32_t *ids = malloc((count + 1) * sizeof *ids);
    if (!ids) {
        duckdb_function_set_error(info, "fibula_routes: out of memory");
        return;
    }
    for (idx_t row = 0; row < count; row++) {
        const route *one = &state->routes[state->at + row];
        char text[64];
        prefix_text(one, text);
        duckdb_vector_assign_string_element(prefixes, row, text);
        ids[row] = one->id;
    }
    if (bound->type) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        fibula_error error = {0};
        if (fibula_values_arrow(bound->table, bound->column, ids, count, FIBULA_AS_TEXT, &schema, &array, &error) != 0) {
            duckdb_function_set_error(info, error.message);
            free(ids);
            return;
        }
        put_texts(values, 0, &array);
        schema.release(&schema);
        array.release(&array);
    } else {
        for (idx_t row = 0; row < count; row++) {
            char digits[16];
            snprintf(digits, sizeof digits, "%u", ids[row]);
            duckdb_vector_assign_string_element(values, row, digits);
        }
    }
    free(ids);
    state->at += count;
    duckdb_data_chunk_set_size(output, count);
}

static void bind_tables(duckdb_bind_info info) {
    duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
    duckdb_bind_add_result_column(info, "file", text);
    duckdb_bind_add_result_column(info, "error", text);
    duckdb_destroy_logical_type(&text);
}

static void init_tables(duckdb_init_info info) {
    size_t *at = calloc(1, sizeof *at);
    duckdb_init_set_max_threads(info, 1);
    duckdb_init_set_init_data(info, at, free);
}

/* The files that are open, and why the newest one at a path was not taken. */
static void put_tables(duckdb_function_info info, duckdb_data_chunk output) {
    size_t *done = duckdb_function_get_init_data(info), at = 0;
    idx_t count = 0;
    const idx_t most = duckdb_vector_size();
    duckdb_vector files = duckdb_data_chunk_get_vector(output, 0), errors = duckdb_data_chunk_get_vector(output, 1);
    pthread_mutex_lock(&lock);
    opened *const lists[] = {tables, payloads};
    for (int list = 0; list < 2; list++)
        for (opened *entry = lists[list]; entry; entry = entry->next, at++) {
            if (!done || at < *done || count == most) continue;
            duckdb_vector_assign_string_element(files, count, entry->path);
            pthread_mutex_lock(&entry->poll);
            if (entry->error[0])
                duckdb_vector_assign_string_element(errors, count, entry->error);
            else
                no_rows(errors, count, count + 1);
            pthread_mutex_unlock(&entry->poll);
            count++;
        }
    pthread_mutex_unlock(&lock);
    if (done) *done += count;
    duckdb_data_chunk_set_size(output, count);
}

/* ---- registration ---- */

static int add(duckdb_scalar_function_set set, const char *name, const overload *self, const duckdb_type *parameters, int count,
               duckdb_type result, duckdb_scalar_function_t run) {
    overload *extra = malloc(sizeof *extra);
    if (!extra) return 0;
    *extra = *self;
    duckdb_scalar_function made = duckdb_create_scalar_function();
    duckdb_scalar_function_set_name(made, name);
    for (int at = 0; at < count; at++) {
        duckdb_logical_type type = duckdb_create_logical_type(parameters[at]);
        duckdb_scalar_function_add_parameter(made, type);
        duckdb_destroy_logical_type(&type);
    }
    duckdb_logical_type type = duckdb_create_logical_type(result);
    duckdb_scalar_function_set_return_type(made, type);
    duckdb_destroy_logical_type(&type);
    duckdb_scalar_function_set_extra_info(made, extra, free);
    duckdb_scalar_function_set_function(made, run);
    if (has_newer && self->of) duckdb_scalar_function_set_bind(made, bind_call);
    const int is_good = duckdb_add_scalar_function_to_set(set, made) == DuckDBSuccess;
    duckdb_destroy_scalar_function(&made);
    return is_good;
}

static int add_table_function(duckdb_connection connection, const char *name, int has_table, duckdb_table_function_bind_t bind,
                              duckdb_table_function_init_t init, duckdb_table_function_t run) {
    duckdb_table_function made = duckdb_create_table_function();
    duckdb_table_function_set_name(made, name);
    duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
    if (has_table) {
        duckdb_table_function_add_parameter(made, text);
        duckdb_table_function_add_named_parameter(made, "value", text);
    }
    duckdb_destroy_logical_type(&text);
    duckdb_table_function_set_bind(made, bind);
    duckdb_table_function_set_init(made, init);
    duckdb_table_function_set_function(made, run);
    const int is_good = duckdb_register_table_function(connection, made) == DuckDBSuccess;
    duckdb_destroy_table_function(&made);
    return is_good;
}

static int add_all(duckdb_connection connection) {
    int is_good = 1;
    for (size_t at = 0; at < sizeof FUNCTIONS / sizeof *FUNCTIONS; at++) {
        const function *of = &FUNCTIONS[at];
        duckdb_scalar_function_set set = duckdb_create_scalar_function_set(of->name);
        for (size_t type = 0; type < sizeof ADDRESSES / sizeof *ADDRESSES; type++)
            for (int has_rule = 0; has_rule < 2; has_rule++) {
                const overload self = {of, ADDRESSES[type], has_rule};
                const duckdb_type parameters[] = {DUCKDB_TYPE_VARCHAR, ADDRESSES[type], DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_VARCHAR};
                is_good = add(set, of->name, &self, parameters, 2 + of->has_column + has_rule, of->result, look_up) && is_good;
            }
        is_good = duckdb_register_scalar_function_set(connection, set) == DuckDBSuccess && is_good;
        duckdb_destroy_scalar_function_set(&set);
    }
    duckdb_scalar_function_set set = duckdb_create_scalar_function_set("rov");
    static const duckdb_type ASNS[] = {DUCKDB_TYPE_BIGINT, DUCKDB_TYPE_UBIGINT};
    for (int at = 0; at < 4; at++) {
        const overload self = {NULL, ASNS[at / 2], at % 2};
        const duckdb_type parameters[] = {DUCKDB_TYPE_VARCHAR, DUCKDB_TYPE_VARCHAR, ASNS[at / 2], DUCKDB_TYPE_VARCHAR};
        is_good = add(set, "rov", &self, parameters, 3 + at % 2, DUCKDB_TYPE_VARCHAR, validate) && is_good;
    }
    is_good = duckdb_register_scalar_function_set(connection, set) == DuckDBSuccess && is_good;
    duckdb_destroy_scalar_function_set(&set);
    is_good = add_table_function(connection, "fibula_routes", 1, bind_routes, init_routes, put_routes) && is_good;
    is_good = add_table_function(connection, "fibula_tables", 0, bind_tables, init_tables, put_tables) && is_good;
    return is_good;
}

/* Whether DuckDB is of this version or later, and FIBULA_DUCKDB_INTERFACE does not say 1.2.0, which tests of both ways set. */
static int is_newer(const char *version) {
    int major, minor, patch;
    const char *wanted = getenv("FIBULA_DUCKDB_INTERFACE");
    if (wanted && strcmp(wanted, "1.2.0") == 0) return 0;
    if (sscanf(version, "v%d.%d.%d", &major, &minor, &patch) != 3) return 0;
    return major > 1 || (major == 1 && (minor > 5 || (minor == 5 && patch >= 6)));
}

DUCKDB_CAPI_ENTRY_VISIBILITY bool fibula_init_c_api(duckdb_extension_info info, struct duckdb_extension_access *access) {
    const duckdb_ext_api_v1 *interface = access->get_api(info, "v1.2.0");
    if (!interface) return false;
    memcpy(&duckdb_ext_api, interface, BYTES_OF_1_2_0);
    if (is_newer(duckdb_library_version())) {
        interface = access->get_api(info, "v1.5.6");
        if (!interface) return false;
        duckdb_ext_api = *interface;
        has_newer = 1;
    }
    duckdb_connection connection;
    if (duckdb_connect(*access->get_database(info), &connection) != DuckDBSuccess) {
        access->set_error(info, "fibula: no connection to the database");
        return false;
    }
    const int is_good = add_all(connection);
    duckdb_disconnect(&connection);
    if (!is_good) access->set_error(info, "fibula: a function could not be registered");
    return is_good;
}
