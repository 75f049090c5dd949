/*
 * Fibula: longest-prefix match for IPv4 and IPv6.
 *
 *   cc example.c $(pkg-config --cflags --libs fibula)
 *
 * An id is a number from 1 to 2^32 - 1 that a route leads to; its meaning is yours. 0 is "no route", everywhere.
 *
 * IPv4 addresses are uint32_t in host order, unless FIBULA_NETWORK_ORDER is given. IPv6 addresses are 16 bytes in network order.
 *
 * Results. A call that can fail returns 0, or a negative code; calls that count return a number from 0 on, or a negative code. With
 * an `error` that is not NULL, a failure also has a row and a message there. It is not touched by a call that succeeds.
 * Single lookups answer 0 where something is wrong.
 *
 * Pointers. NULL where a table, a reader or an array is needed is FIBULA_E_ARGUMENT, or 0 from a single lookup. Otherwise the
 * caller promises that a pointer leads to as many elements as the count says, that they are aligned to their type (unless the call says
 * otherwise), and that nobody changes them during the call. Inputs are borrowed for the call, results belong to the caller. `free` and `unref` take NULL.
 *
 * Memory. What the limit of the options or the system refuses is FIBULA_E_MEMORY. A reserve in the library (4.5 MiB, in parts of 256 bytes,
 * 4 KiB and 64 KiB) answers small allocations that the system refuses, so that a call ends in order. While parts of it are in use and the
 * system still refuses, calls with an `error` are FIBULA_E_MEMORY from the start, and lookups go on. A call that needs more than the reserve
 * has ends the process (SIGABRT).
 *
 * Threads. A table, a live table, VRFs and a follower may be used by any number of threads at once. A reader belongs to one thread
 * at a time. Freeing belongs to whoever uses a handle last. The checked library, which is installed beside the normal one
 * (PREFIX/lib/fibula-checked), finds misuse of handles: run a program with LD_LIBRARY_PATH set to its folder. It says on the standard
 * error stream what is wrong, and returns FIBULA_E_MISUSE, or 0 from a single lookup; it keeps the addresses of freed handles.
 *
 * Layouts of structs stay as they are as long as the library is libfibula.so.0; options have a size for new ones.
 */
#ifndef FIBULA_H
#define FIBULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fibula_table fibula_table;       /* a table that does not change */
typedef struct fibula_live fibula_live;         /* a table that changes while readers look up */
typedef struct fibula_reader fibula_reader;     /* one thread's view of a live table */
typedef struct fibula_follower fibula_follower; /* a file that is replaced now and then */
typedef struct fibula_vrfs fibula_vrfs;         /* many tables, each with a number */

/* Codes. */
#define FIBULA_E_ARGUMENT (-1) /* an argument that the call cannot take */
#define FIBULA_E_MEMORY (-2)   /* the memory limit, or the system, has no more; or an engine refuses so many routes */
#define FIBULA_E_SYSTEM (-3)   /* a file cannot be opened, read or written; the message has the system's words */
#define FIBULA_E_FOREIGN (-4)  /* not a table file */
#define FIBULA_E_DAMAGED (-5)  /* a table file that is cut or altered */
#define FIBULA_E_NEWER (-6)    /* a table file of a later version, or with an engine that this library lacks and without routes */
#define FIBULA_E_INVALID (-7)  /* a row is wrong: the error says which and why */
#define FIBULA_E_ABSENT (-8)   /* the table has no such value, routes or VRF */
#define FIBULA_E_BUSY (-9)     /* a reader has been pinned for too long: see fibula_reader_pin */
#define FIBULA_E_BUG (-10)     /* a bug in the library; lookups go on, a live table takes no more changes */

#define FIBULA_E_MISUSE (-11)  /* of the checked library alone: a handle that was freed or is of another kind, or a reader that two
                                * threads use at once */

#define FIBULA_NO_ROW UINT64_MAX

typedef struct {
    int32_t code;
    uint32_t reserved;
    uint64_t row;      /* counted from 0; FIBULA_NO_ROW where the failure is of no row */
    char message[240]; /* UTF-8, ends with 0 */
} fibula_error;

/* Options. NULL means none. Start from FIBULA_OPTIONS, which has the size by which the library knows the version. */
typedef struct {
    uint32_t size;
    uint32_t flags;        /* FIBULA_MAP ... */
    uint64_t memory_limit; /* bytes; 0 for none */
    uint64_t reserved[6];  /* 0 */
} fibula_options;

#ifdef __cplusplus
#define FIBULA_OPTIONS (fibula_options{sizeof(fibula_options), 0, 0, {0, 0, 0, 0, 0, 0}})
#else
#define FIBULA_OPTIONS ((fibula_options){sizeof(fibula_options), 0, 0, {0, 0, 0, 0, 0, 0}})
#endif

#define FIBULA_MAP 1u         /* use the file where it lies, shared among processes; a copy where that cannot be */
#define FIBULA_VERIFY 2u      /* with FIBULA_MAP: verify all of the file first, as copies are */
#define FIBULA_SMALL_PAGES 4u /* do not ask the system for huge pages */
#define FIBULA_LAST_WINS 8u   /* of several routes for a prefix the last one counts; else the second one is an error */
#define FIBULA_MASK 16u       /* bits after a prefix's length are cleared; else they are an error */
#define FIBULA_FASTEST 32u    /* build a larger engine for IPv4, which is faster */

/* The version of the library, for example "0.1.0", and the instruction set of its batches, for example "avx512". */
const char *fibula_version(void);
const char *fibula_isa(void);

/* ---- tables ---- */

/* Opens a file that `fibula compile` or fibula_table_save wrote. Without FIBULA_MAP all of it is verified and copied. With it, nothing
 * is copied; whoever writes into the file can then make answers wrong, and whoever cuts it ends the process (SIGBUS): replace files
 * by renaming. fibula_table_is_mapped says which it was. */
int fibula_table_open(const char *path, const fibula_options *options, fibula_table **table, fibula_error *error);

/* Opens the image of a file, which is copied. */
int fibula_table_open_memory(const void *image, size_t bytes, const fibula_options *options, fibula_table **table,
                             fibula_error *error);

/* Routes as arrays of equal length. `addresses` are uint32_t in host order for IPv4, 16 bytes each for IPv6. */
typedef struct {
    const void *addresses;
    const uint8_t *lengths; /* of prefixes, in bits */
    const uint32_t *ids;    /* not 0 */
    size_t count;
} fibula_routes;

/* Builds a table of routes, in any order. Either family may be NULL. An error names the row of its family's arrays. */
int fibula_table_build(const fibula_routes *ipv4, const fibula_routes *ipv6, const fibula_options *options,
                       fibula_table **table, fibula_error *error);

/* Writes a file beside `path` and renames it: whoever opens `path` finds the old file or the new one, whole. */
int fibula_table_save(const fibula_table *table, const char *path, fibula_error *error);

/* Tables are counted: each handle that a call gave out, and each fibula_table_ref, wants one fibula_table_unref. Ref returns the
 * table. */
fibula_table *fibula_table_ref(fibula_table *table);
void fibula_table_unref(fibula_table *table);

int fibula_table_is_mapped(const fibula_table *table);             /* 1 or 0 */
uint64_t fibula_table_bytes(const fibula_table *table);            /* all that it holds, mapped pages included */
int64_t fibula_table_count(const fibula_table *table, int family); /* routes of family 4 or 6 */
const char *fibula_table_engine(const fibula_table *table, int family); /* its name, or NULL */

/* The bytes that the first column has for an id, if that is one of text or bytes. They belong to the table and live as long as it does;
 * they do not end with 0. */
int fibula_value(const fibula_table *table, uint32_t id, const uint8_t **value, size_t *bytes);

/* Calls `each` for every route, by address and then by length, until it returns something else than 0, which is returned then; let it
 * be positive. */
int fibula_iterate4(const fibula_table *table, int (*each)(uint32_t address, uint8_t length, uint32_t id, void *user),
                    void *user);
int fibula_iterate6(const fibula_table *table,
                    int (*each)(const uint8_t *address, uint8_t length, uint32_t id, void *user), void *user);

/* ---- values ---- */

/* A table may have columns of values by id: those of its file (`fibula compile --value country:text --value asn:u32`), or those of
 * fibula_table_with_values. Columns are numbered from 0 on. A value that is missing is FIBULA_E_ABSENT, and the wrong type is
 * FIBULA_E_ARGUMENT. */
#define FIBULA_U32 1u
#define FIBULA_U64 2u
#define FIBULA_I64 3u
#define FIBULA_F64 4u
#define FIBULA_BOOL 5u
#define FIBULA_UTF8 6u /* text, as UTF-8 */
#define FIBULA_BYTES 7u

typedef struct {
    const char *name; /* ends with 0; lives as long as the table */
    uint64_t count;   /* of values: the ids from 1 on, unless a file of version 1 has ids with gaps */
    uint32_t type;    /* FIBULA_U32 ... */
    uint32_t reserved;
} fibula_column;

int64_t fibula_column_count(const fibula_table *table);
int fibula_column_at(const fibula_table *table, uint32_t number, fibula_column *column);
int64_t fibula_column_find(const fibula_table *table, const char *name); /* its number, or FIBULA_E_ABSENT */

int fibula_value_u32(const fibula_table *table, uint32_t column, uint32_t id, uint32_t *value);
int fibula_value_u64(const fibula_table *table, uint32_t column, uint32_t id, uint64_t *value);
int fibula_value_i64(const fibula_table *table, uint32_t column, uint32_t id, int64_t *value);
int fibula_value_f64(const fibula_table *table, uint32_t column, uint32_t id, double *value);
int fibula_value_bool(const fibula_table *table, uint32_t column, uint32_t id, uint8_t *value); /* 1 or 0 */

/* Of text and of bytes. They belong to the table, are not copied, and do not end with 0. */
int fibula_value_bytes(const fibula_table *table, uint32_t column, uint32_t id, const uint8_t **value, size_t *bytes);

/* Columns that a caller has: value `i` is that of id i + 1. */
typedef struct {
    const char *name;
    const void *values;     /* uint32_t, uint64_t, int64_t, double, uint8_t (FIBULA_BOOL), or const char * for text and bytes, where NULL
                             * is a missing value */
    const size_t *lengths;  /* of texts, which may be NULL where all end with 0, and of bytes */
    const uint8_t *valid;   /* a byte for each value, 0 where it is missing; NULL: all are there */
    size_t count;
    uint32_t type;
    uint32_t reserved;      /* 0 */
} fibula_values;

/* A table with the same routes, which are shared, and these columns, which are copied. fibula_table_save writes them too. */
int fibula_table_with_values(const fibula_table *table, const fibula_values *columns, size_t count, fibula_table **result,
                             fibula_error *error);

/* ---- lookups ---- */

uint32_t fibula_lookup4(const fibula_table *table, uint32_t address);
uint32_t fibula_lookup6(const fibula_table *table, const uint8_t address[16]);

#define FIBULA_NETWORK_ORDER 1u /* IPv4 addresses are in network order */

/* Writes the id of address `i` to ids[i]. Address `i` is at `addresses + i * stride` bytes; a stride of 0 means that they follow each
 * other. Addresses need no alignment. Many at once cost a fraction of single lookups: 32 or more. */
int fibula_lookup4_bulk(const fibula_table *table, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                        size_t count);
int fibula_lookup6_bulk(const fibula_table *table, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                        size_t count);

/* The same, and the length of the matched prefix of address `i` in lengths[i]; 0 where the id is 0. FIBULA_E_ABSENT where the table does
 * not know lengths: `fibula compile --with-length` makes files that do. */
int fibula_lookup4_lengths(const fibula_table *table, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                           uint8_t *lengths, size_t count);
int fibula_lookup6_lengths(const fibula_table *table, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                           uint8_t *lengths, size_t count);

#define FIBULA_V4_MAPPED 2u      /* ::ffff:0:0/96 is looked up among the IPv4 routes */
#define FIBULA_REFUSE_INVALID 4u /* an invalid row is FIBULA_E_INVALID; else it has id 0 and is counted */
#define FIBULA_TEXT 8u           /* fibula_lookup_arrow: arrays of bytes have text */

/* Looks texts of both families up: what inet_pton takes, and nothing else. `lengths` may be NULL where all end with 0. A text that is
 * NULL has id 0 and is not invalid. Returns the number of invalid rows. */
int64_t fibula_lookup_text(const fibula_table *table, const char *const *texts, const uint32_t *lengths, uint32_t flags,
                           uint32_t *ids, size_t count, fibula_error *error);

/* Arrow's C data interface: https://arrow.apache.org/docs/format/CDataInterface.html */
struct ArrowSchema;
struct ArrowArray;

/* Looks an array up: int32, uint32, int64 and uint64 (IPv4), fixed_size_binary(4) and (16), binary, string, their large and view
 * forms, and dictionaries of these. Nothing is released. `count` is the array's length. Nulls have id 0. From 65,536 rows on,
 * `threads` share the work. Returns the number of invalid rows. */
int64_t fibula_lookup_arrow(const fibula_table *table, const struct ArrowSchema *schema, const struct ArrowArray *array,
                            uint32_t threads, uint32_t flags, uint32_t *ids, size_t count, fibula_error *error);

/* The same; the ids are an array of uint32 with nulls for 0, which the caller releases. */
int64_t fibula_lookup_arrow_ids(const fibula_table *table, const struct ArrowSchema *schema,
                                const struct ArrowArray *array, uint32_t threads, uint32_t flags,
                                struct ArrowSchema *ids_schema, struct ArrowArray *ids_array, fibula_error *error);

/* The prefix that each address of an array matches, as text: an array of large_string with nulls where no route matches, which the caller
 * releases. FIBULA_E_ABSENT where the table knows neither the lengths of its matches (`fibula compile --with-length`) nor its routes. */
int64_t fibula_lookup_arrow_prefixes(const fibula_table *table, const struct ArrowSchema *schema,
                                     const struct ArrowArray *array, uint32_t flags,
                                     struct ArrowSchema *prefixes_schema, struct ArrowArray *prefixes_array,
                                     fibula_error *error);

/* The values of ids, one for each: an array of uint32, uint64, int64, double, bool, large_string or large_binary, with nulls where a value
 * is missing and for id 0. With FIBULA_DICTIONARY the ids are entries of a dictionary of all values. With FIBULA_AS_TEXT they are an array of
 * large_string, whatever type the column has. The caller releases it. */
#define FIBULA_DICTIONARY 1u
#define FIBULA_AS_TEXT 2u
int fibula_values_arrow(const fibula_table *table, uint32_t column, const uint32_t *ids, size_t count, uint32_t flags,
                        struct ArrowSchema *values_schema, struct ArrowArray *values_array, fibula_error *error);

/* ---- live tables ---- */

int fibula_live_new(const fibula_options *options, fibula_live **live, fibula_error *error);
void fibula_live_free(fibula_live *live); /* readers go on with what they have */

/* Adds a route, replaces its id, or with id 0 removes it. When the call returns, every later lookup knows it. */
int fibula_live_set4(const fibula_live *live, uint32_t address, uint8_t length, uint32_t id, fibula_error *error);
int fibula_live_set6(const fibula_live *live, const uint8_t address[16], uint8_t length, uint32_t id, fibula_error *error);

/* The id of exactly this prefix, 0 where there is no such route, or a code. */
int64_t fibula_live_get4(const fibula_live *live, uint32_t address, uint8_t length);
int64_t fibula_live_get6(const fibula_live *live, const uint8_t address[16], uint8_t length);

typedef struct {
    uint8_t address[16]; /* network order; of IPv4, the first 4 bytes */
    uint8_t family;      /* 4 or 6 */
    uint8_t length;
    uint8_t reserved[2];
    uint32_t id; /* 0 removes */
} fibula_change;

/* Makes all changes, in order, or none of them where there is an error. */
int fibula_live_apply(const fibula_live *live, const fibula_change *changes, size_t count, fibula_error *error);

/* Frees memory that no reader sees any more, and tidies up. Call it now and then where changes are many. */
int fibula_live_flush(const fibula_live *live, fibula_error *error);

int64_t fibula_live_count(const fibula_live *live); /* routes of both families */
int fibula_live_snapshot(const fibula_live *live, fibula_table **table, fibula_error *error); /* as it is now */

/* A lookup without a reader takes a lock: use these for single questions. */
uint32_t fibula_live_lookup4(const fibula_live *live, uint32_t address);
uint32_t fibula_live_lookup6(const fibula_live *live, const uint8_t address[16]);

/* A reader takes no lock and waits for nothing. Each call pins the table while it looks up. A loop that never ends calls
 * fibula_reader_pin once, fibula_reader_quiescent after each burst, and fibula_reader_unpin before it sleeps, as with liburcu's QSBR.
 * Memory that changes have replaced is freed when every pinned reader has been quiescent since. Once 64 MiB wait for that, a change
 * waits for a second, and is then refused as FIBULA_E_BUSY. */
int fibula_reader_new(const fibula_live *live, fibula_reader **reader, fibula_error *error);
void fibula_reader_free(fibula_reader *reader);
int fibula_reader_pin(fibula_reader *reader);   /* where it is pinned: moves the pin to now */
int fibula_reader_unpin(fibula_reader *reader);
static inline int fibula_reader_quiescent(fibula_reader *reader) { return fibula_reader_pin(reader); }

uint32_t fibula_reader_lookup4(fibula_reader *reader, uint32_t address);
uint32_t fibula_reader_lookup6(fibula_reader *reader, const uint8_t address[16]);
int fibula_reader_lookup4_bulk(fibula_reader *reader, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                               size_t count);
int fibula_reader_lookup6_bulk(fibula_reader *reader, const void *addresses, size_t stride, uint32_t flags, uint32_t *ids,
                               size_t count);

/* ---- files that are replaced ---- */

int fibula_follower_open(const char *path, const fibula_options *options, fibula_follower **follower, fibula_error *error);
void fibula_follower_free(fibula_follower *follower);

/* Looks whether the file was replaced, and opens it then. An error leaves the table that was there. */
int fibula_follower_poll(fibula_follower *follower, int *is_new, fibula_error *error);

/* The table, with a reference of its own for the caller. */
fibula_table *fibula_follower_table(const fibula_follower *follower);

/* ---- many tables ---- */

int fibula_vrfs_new(const fibula_options *options, fibula_vrfs **vrfs, fibula_error *error);
void fibula_vrfs_free(fibula_vrfs *vrfs);
int fibula_vrfs_create(const fibula_vrfs *vrfs, uint32_t *vrf, fibula_error *error);
int fibula_vrfs_delete(const fibula_vrfs *vrfs, uint32_t vrf, fibula_error *error);
int fibula_vrfs_set4(const fibula_vrfs *vrfs, uint32_t vrf, uint32_t address, uint8_t length, uint32_t id,
                     fibula_error *error);
int fibula_vrfs_set6(const fibula_vrfs *vrfs, uint32_t vrf, const uint8_t address[16], uint8_t length, uint32_t id,
                     fibula_error *error);

/* Looks address `i` up in the VRF vrf[i]. One that does not exist has no routes. */
int fibula_vrfs_lookup4_bulk(const fibula_vrfs *vrfs, const uint32_t *vrf, const void *addresses, size_t stride,
                             uint32_t flags, uint32_t *ids, size_t count);
int fibula_vrfs_lookup6_bulk(const fibula_vrfs *vrfs, const uint32_t *vrf, const void *addresses, size_t stride,
                             uint32_t flags, uint32_t *ids, size_t count);

#ifdef __cplusplus
}
#endif

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(fibula_error) == 256 && sizeof(fibula_options) == 64 && sizeof(fibula_change) == 24, "layouts");
#elif defined(__cplusplus) && __cplusplus >= 201103L
static_assert(sizeof(fibula_error) == 256 && sizeof(fibula_options) == 64 && sizeof(fibula_change) == 24, "layouts");
#endif

#endif
