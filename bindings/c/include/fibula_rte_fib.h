/*
 * The calls of rte_fib and rte_fib6 of DPDK 22.11 to 24.11, over live tables of Fibula.
 *
 *   cc router.c $(pkg-config --cflags --libs libdpdk fibula)
 *
 * fibula_rte_fib_create is rte_fib_create, and so on. With FIBULA_RTE_FIB_REPLACE defined before this header, the names of rte_fib themselves
 * mean these, and a program needs no other change. Types of configurations, and their numbers, are those of rte_fib.h.
 *
 * A route's next hop is an integer from 0 to 127, 32,767 or 2^31 - 1, according to its size of 1, 2 or 4 bytes; with RTE_FIB_DUMMY, to
 * 2^32 - 2. Next hops of 8 bytes (RTE_FIB_DIR24_8_8B, RTE_FIB6_TRIE_8B) are refused: rte_errno is ENOTSUP, and a line of log says so.
 *
 * Threads. Lookups wait for nothing and may run while routes change, on each lcore. Threads that are no lcore share a reader and a lock.
 * The first lookup of an lcore in a table allocates its reader: -ENOMEM where that fails.
 */
#ifndef FIBULA_RTE_FIB_H
#define FIBULA_RTE_FIB_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <rte_version.h>

#include "fibula.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From DPDK 24.11 on, IPv6 addresses have a struct, and a table may look IPv4 addresses up in network order. */
#define FIBULA_RTE_IS_24_11 (RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0))
#if FIBULA_RTE_IS_24_11
typedef const struct rte_ipv6_addr *fibula_rte_ipv6;
typedef const struct rte_ipv6_addr *fibula_rte_ipv6_list;
#else
typedef const uint8_t *fibula_rte_ipv6;
typedef uint8_t (*fibula_rte_ipv6_list)[16];
#endif

/* Addresses that are looked up together. */
#define FIBULA_RTE_BURST 256
#define FIBULA_RTE_NAME 64

/* A table of one family. */
struct fibula_rte_table {
    struct fibula_rte_table *next;
    fibula_live *live;
    uint64_t default_nh, largest_nh;
    int64_t most_routes;
    uint8_t family;
    uint32_t flags; /* of lookups */
    char name[FIBULA_RTE_NAME];
    pthread_mutex_t changes, others;
    fibula_reader *readers[RTE_MAX_LCORE + 1]; /* of the lcores, and of all other threads */
};

struct fibula_rte_fib {
    struct fibula_rte_table table;
};

struct fibula_rte_fib6 {
    struct fibula_rte_table table;
};

/* All tables of the process, by name. Weak, so that every file with this header has the same list. */
struct fibula_rte_tables {
    pthread_mutex_t lock;
    struct fibula_rte_table *first;
};
extern struct fibula_rte_tables fibula_rte_tables;
__attribute__((weak)) struct fibula_rte_tables fibula_rte_tables = {PTHREAD_MUTEX_INITIALIZER, NULL};

/* ---- what both families share ---- */

static inline int fibula_rte_errno(int64_t code) {
    switch (code) {
    case FIBULA_E_MEMORY: return ENOMEM;
    case FIBULA_E_BUSY: return EBUSY;
    default: return EINVAL;
    }
}

/* The table of a name; the caller has the lock. */
static inline struct fibula_rte_table *fibula_rte_named(uint8_t family, const char *name) {
    struct fibula_rte_table *table = fibula_rte_tables.first;
    while (table != NULL && (table->family != family || strncmp(table->name, name, FIBULA_RTE_NAME - 1) != 0))
        table = table->next;
    return table;
}

static inline struct fibula_rte_table *fibula_rte_find(uint8_t family, const char *name) {
    struct fibula_rte_table *table = NULL;
    if (name != NULL) {
        pthread_mutex_lock(&fibula_rte_tables.lock);
        table = fibula_rte_named(family, name);
        pthread_mutex_unlock(&fibula_rte_tables.lock);
    }
    if (table == NULL) rte_errno = ENOENT;
    return table;
}

static inline void fibula_rte_destroy(struct fibula_rte_table *table) {
    unsigned int at;
    for (at = 0; at <= RTE_MAX_LCORE; at++) fibula_reader_free(table->readers[at]);
    fibula_live_free(table->live);
    pthread_mutex_destroy(&table->changes);
    pthread_mutex_destroy(&table->others);
    free(table);
}

static inline void fibula_rte_free(struct fibula_rte_table *table) {
    struct fibula_rte_table **place;
    if (table == NULL) return;
    pthread_mutex_lock(&fibula_rte_tables.lock);
    for (place = &fibula_rte_tables.first; *place != NULL && *place != table; place = &(*place)->next) {
    }
    if (*place == table) *place = table->next;
    pthread_mutex_unlock(&fibula_rte_tables.lock);
    fibula_rte_destroy(table);
}

/* `bytes` is the size of a next hop, 0 for those of the dummy, whose default may be anything. */
static inline struct fibula_rte_table *fibula_rte_create(uint8_t family, const char *name, int socket_id, int max_routes,
                                                         unsigned int bytes, uint32_t num_tbl8, uint64_t default_nh) {
    const uint64_t largest = bytes == 0 ? UINT32_MAX - 1 : (UINT64_C(1) << (8 * bytes - 1)) - 1;
    struct fibula_rte_table *table;
    fibula_options options = FIBULA_OPTIONS;
    int code, has_name;
    if (name == NULL || socket_id < SOCKET_ID_ANY || max_routes <= 0 ||
        (bytes != 0 && (num_tbl8 == 0 || num_tbl8 > largest || default_nh > largest))) {
        rte_errno = EINVAL;
        return NULL;
    }
    if (strlen(name) >= FIBULA_RTE_NAME) {
        rte_errno = ENAMETOOLONG;
        return NULL;
    }
    table = (struct fibula_rte_table *)calloc(1, sizeof(*table));
    if (table == NULL) {
        rte_errno = ENOMEM;
        return NULL;
    }
    table->family = family;
    table->default_nh = default_nh;
    table->largest_nh = largest;
    table->most_routes = max_routes;
    memcpy(table->name, name, strlen(name));
    pthread_mutex_init(&table->changes, NULL);
    pthread_mutex_init(&table->others, NULL);
    options.flags = FIBULA_MASK;
    code = fibula_live_new(&options, &table->live, NULL);
    if (code != 0) {
        fibula_rte_destroy(table);
        rte_errno = fibula_rte_errno(code);
        return NULL;
    }
    pthread_mutex_lock(&fibula_rte_tables.lock);
    has_name = fibula_rte_named(family, name) != NULL;
    if (!has_name) {
        table->next = fibula_rte_tables.first;
        fibula_rte_tables.first = table;
    }
    pthread_mutex_unlock(&fibula_rte_tables.lock);
    if (has_name) {
        fibula_rte_destroy(table);
        rte_errno = EEXIST;
        return NULL;
    }
    return table;
}

/* Refuses next hops of 8 bytes by name. */
static inline int fibula_rte_refuses(int is_8_bytes, const char *kind) {
    if (!is_8_bytes) return 0;
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "fibula: %s: next hops have 4 bytes at most\n", kind);
    rte_errno = ENOTSUP;
    return 1;
}

/* Adds a route, or with is_add 0 deletes it. An id is the next hop and 1, because 0 is no route. */
static inline int fibula_rte_change(struct fibula_rte_table *table, uint32_t ipv4, const uint8_t *ipv6, uint8_t depth,
                                    uint64_t next_hop, int is_add) {
    const int is_4 = table->family == 4;
    int64_t found, code = 0;
    if (is_add && next_hop > table->largest_nh) return -EINVAL;
    pthread_mutex_lock(&table->changes);
    found = is_4 ? fibula_live_get4(table->live, ipv4, depth) : fibula_live_get6(table->live, ipv6, depth);
    if (found == 0 && is_add && fibula_live_count(table->live) >= table->most_routes) found = -ENOMEM; /* as rte_fib does */
    else if (found == 0 && !is_add) found = -ENOENT;
    else if (found < 0) found = -fibula_rte_errno(found);
    if (found >= 0) {
        const uint32_t id = is_add ? (uint32_t)next_hop + 1 : 0;
        code = is_4 ? fibula_live_set4(table->live, ipv4, depth, id, NULL)
                    : fibula_live_set6(table->live, ipv6, depth, id, NULL);
    }
    pthread_mutex_unlock(&table->changes);
    if (found < 0) return (int)found;
    return code < 0 ? -fibula_rte_errno(code) : 0;
}

static inline int fibula_rte_lookup_with(struct fibula_rte_table *table, unsigned int place, const void *ips,
                                         uint64_t *next_hops, size_t count) {
    const size_t width = table->family == 4 ? 4 : 16;
    const uint64_t default_nh = table->default_nh;
    uint32_t ids[FIBULA_RTE_BURST];
    size_t done, i;
    int code = 0;
    if (table->readers[place] == NULL) {
        code = fibula_reader_new(table->live, &table->readers[place], NULL);
        if (code != 0) return -fibula_rte_errno(code);
    }
    for (done = 0; done < count && code == 0; done += FIBULA_RTE_BURST) {
        const size_t burst = count - done < FIBULA_RTE_BURST ? count - done : FIBULA_RTE_BURST;
        const uint8_t *from = (const uint8_t *)ips + done * width;
        code = width == 4 ? fibula_reader_lookup4_bulk(table->readers[place], from, 0, table->flags, ids, burst)
                          : fibula_reader_lookup6_bulk(table->readers[place], from, 0, 0, ids, burst);
        for (i = 0; i < burst && code == 0; i++)
            next_hops[done + i] = ids[i] == 0 ? default_nh : (uint64_t)ids[i] - 1;
    }
    return code == 0 ? 0 : -fibula_rte_errno(code);
}

static inline int fibula_rte_lookup(struct fibula_rte_table *table, const void *ips, uint64_t *next_hops, int n) {
    const unsigned int lcore = rte_lcore_id();
    int result;
    if (table == NULL || ips == NULL || next_hops == NULL || n < 0) return -EINVAL;
    if (lcore < RTE_MAX_LCORE) return fibula_rte_lookup_with(table, lcore, ips, next_hops, (size_t)n);
    pthread_mutex_lock(&table->others);
    result = fibula_rte_lookup_with(table, RTE_MAX_LCORE, ips, next_hops, (size_t)n);
    pthread_mutex_unlock(&table->others);
    return result;
}

/* ---- IPv4 ---- */

static inline struct fibula_rte_fib *fibula_rte_fib_create(const char *name, int socket_id, struct rte_fib_conf *conf) {
    struct fibula_rte_table *table;
    unsigned int bytes = 0;
    if (conf == NULL || (unsigned int)conf->type > RTE_FIB_DIR24_8 ||
#if FIBULA_RTE_IS_24_11
        (conf->flags & ~(unsigned int)RTE_FIB_ALLOWED_FLAGS) != 0 ||
#endif
        (conf->type == RTE_FIB_DIR24_8 && (unsigned int)conf->dir24_8.nh_sz > RTE_FIB_DIR24_8_8B)) {
        rte_errno = EINVAL;
        return NULL;
    }
    if (conf->type == RTE_FIB_DIR24_8) {
        bytes = 1u << conf->dir24_8.nh_sz;
        if (fibula_rte_refuses(bytes == 8, "RTE_FIB_DIR24_8_8B")) return NULL;
    }
    table = fibula_rte_create(4, name, socket_id, conf->max_routes, bytes, conf->dir24_8.num_tbl8, conf->default_nh);
#if FIBULA_RTE_IS_24_11
    if (table != NULL && (conf->flags & RTE_FIB_F_LOOKUP_NETWORK_ORDER) != 0) table->flags = FIBULA_NETWORK_ORDER;
#endif
    return (struct fibula_rte_fib *)table;
}

static inline struct fibula_rte_fib *fibula_rte_fib_find_existing(const char *name) {
    return (struct fibula_rte_fib *)fibula_rte_find(4, name);
}

static inline void fibula_rte_fib_free(struct fibula_rte_fib *fib) { fibula_rte_free(fib == NULL ? NULL : &fib->table); }

static inline int fibula_rte_fib_add(struct fibula_rte_fib *fib, uint32_t ip, uint8_t depth, uint64_t next_hop) {
    if (fib == NULL || depth > RTE_FIB_MAXDEPTH) return -EINVAL;
    return fibula_rte_change(&fib->table, ip, NULL, depth, next_hop, 1);
}

static inline int fibula_rte_fib_delete(struct fibula_rte_fib *fib, uint32_t ip, uint8_t depth) {
    if (fib == NULL || depth > RTE_FIB_MAXDEPTH) return -EINVAL;
    return fibula_rte_change(&fib->table, ip, NULL, depth, 0, 0);
}

static inline int fibula_rte_fib_lookup_bulk(struct fibula_rte_fib *fib, uint32_t *ips, uint64_t *next_hops, int n) {
    return fibula_rte_lookup(fib == NULL ? NULL : &fib->table, ips, next_hops, n);
}

/* There is one kind of lookup: every kind of rte_fib is that one. */
static inline int fibula_rte_fib_select_lookup(struct fibula_rte_fib *fib, enum rte_fib_lookup_type type) {
    return fib == NULL || (unsigned int)type > RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512 ? -EINVAL : 0;
}

/* ---- IPv6 ---- */

static inline struct fibula_rte_fib6 *fibula_rte_fib6_create(const char *name, int socket_id, struct rte_fib6_conf *conf) {
    unsigned int bytes = 0;
    if (conf == NULL || (unsigned int)conf->type > RTE_FIB6_TRIE ||
        (conf->type == RTE_FIB6_TRIE && ((unsigned int)conf->trie.nh_sz < RTE_FIB6_TRIE_2B ||
                                         (unsigned int)conf->trie.nh_sz > RTE_FIB6_TRIE_8B))) {
        rte_errno = EINVAL;
        return NULL;
    }
    if (conf->type == RTE_FIB6_TRIE) {
        bytes = 1u << conf->trie.nh_sz;
        if (fibula_rte_refuses(bytes == 8, "RTE_FIB6_TRIE_8B")) return NULL;
    }
    return (struct fibula_rte_fib6 *)fibula_rte_create(6, name, socket_id, conf->max_routes, bytes, conf->trie.num_tbl8,
                                                       conf->default_nh);
}

static inline struct fibula_rte_fib6 *fibula_rte_fib6_find_existing(const char *name) {
    return (struct fibula_rte_fib6 *)fibula_rte_find(6, name);
}

static inline void fibula_rte_fib6_free(struct fibula_rte_fib6 *fib) { fibula_rte_free(fib == NULL ? NULL : &fib->table); }

static inline int fibula_rte_fib6_add(struct fibula_rte_fib6 *fib, fibula_rte_ipv6 ip, uint8_t depth, uint64_t next_hop) {
    if (fib == NULL || ip == NULL || depth > 128) return -EINVAL;
    return fibula_rte_change(&fib->table, 0, (const uint8_t *)ip, depth, next_hop, 1);
}

static inline int fibula_rte_fib6_delete(struct fibula_rte_fib6 *fib, fibula_rte_ipv6 ip, uint8_t depth) {
    if (fib == NULL || ip == NULL || depth > 128) return -EINVAL;
    return fibula_rte_change(&fib->table, 0, (const uint8_t *)ip, depth, 0, 0);
}

static inline int fibula_rte_fib6_lookup_bulk(struct fibula_rte_fib6 *fib, fibula_rte_ipv6_list ips, uint64_t *next_hops,
                                              int n) {
    return fibula_rte_lookup(fib == NULL ? NULL : &fib->table, ips, next_hops, n);
}

static inline int fibula_rte_fib6_select_lookup(struct fibula_rte_fib6 *fib, enum rte_fib6_lookup_type type) {
    return fib == NULL || (unsigned int)type > RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 ? -EINVAL : 0;
}

#ifdef __cplusplus
}
#endif

#ifdef FIBULA_RTE_FIB_REPLACE
#define rte_fib fibula_rte_fib
#define rte_fib_create fibula_rte_fib_create
#define rte_fib_find_existing fibula_rte_fib_find_existing
#define rte_fib_free fibula_rte_fib_free
#define rte_fib_add fibula_rte_fib_add
#define rte_fib_delete fibula_rte_fib_delete
#define rte_fib_lookup_bulk fibula_rte_fib_lookup_bulk
#define rte_fib_select_lookup fibula_rte_fib_select_lookup
#define rte_fib6 fibula_rte_fib6
#define rte_fib6_create fibula_rte_fib6_create
#define rte_fib6_find_existing fibula_rte_fib6_find_existing
#define rte_fib6_free fibula_rte_fib6_free
#define rte_fib6_add fibula_rte_fib6_add
#define rte_fib6_delete fibula_rte_fib6_delete
#define rte_fib6_lookup_bulk fibula_rte_fib6_lookup_bulk
#define rte_fib6_select_lookup fibula_rte_fib6_select_lookup
#endif

#endif
