/* What DPDK's tests of rte_fib and rte_fib6 ask for, once of these calls over Fibula and once of DPDK's own: the first with OURS defined.
 * Prints what is wrong, and then a sum over answers to many questions, which both must share. */
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_version.h>
#ifdef OURS
#define FIBULA_RTE_FIB_REPLACE
#include <fibula_rte_fib.h>
#else
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#endif
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"

static int wrong;

/* IPv6 addresses as the version has them. */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#define IP6(ip) ((const struct rte_ipv6_addr *)(ip))
#else
#define IP6(ip) (ip)
#endif

#define IS_NULL(error, call)     \
    do {                         \
        rte_errno = 0;           \
        IS(1, (call) == NULL);   \
        IS(error, rte_errno);    \
    } while (0)

enum { DEFAULT = 100 };

static struct rte_fib_conf conf4(enum rte_fib_type type, enum rte_fib_dir24_8_nh_sz size) {
    struct rte_fib_conf conf;
    memset(&conf, 0, sizeof(conf));
    conf.type = type;
    conf.default_nh = DEFAULT;
    conf.max_routes = 1 << 14;
    if (type == RTE_FIB_DIR24_8) {
        conf.dir24_8.nh_sz = size;
        conf.dir24_8.num_tbl8 = size == RTE_FIB_DIR24_8_1B ? 127 : 2000;
    }
    return conf;
}

static struct rte_fib6_conf conf6(enum rte_fib6_type type, enum rte_fib_trie_nh_sz size) {
    struct rte_fib6_conf conf;
    memset(&conf, 0, sizeof(conf));
    conf.type = type;
    conf.default_nh = DEFAULT;
    conf.max_routes = 1 << 14;
    if (type == RTE_FIB6_TRIE) {
        conf.trie.nh_sz = size;
        conf.trie.num_tbl8 = 20000;
    }
    return conf;
}

static uint64_t ask4(struct rte_fib *fib, uint32_t ip) {
    uint64_t next_hop = UINT64_MAX;
    IS(0, rte_fib_lookup_bulk(fib, &ip, &next_hop, 1));
    return next_hop;
}

static uint64_t ask6(struct rte_fib6 *fib, const uint8_t ip[16]) {
    uint8_t ips[1][16];
    uint64_t next_hop = UINT64_MAX;
    memcpy(ips[0], ip, 16);
    IS(0, rte_fib6_lookup_bulk(fib, IP6(ips), &next_hop, 1));
    return next_hop;
}

/* ---- create, find, free ---- */

static void creates(void) {
    struct rte_fib_conf conf = conf4(RTE_FIB_DUMMY, RTE_FIB_DIR24_8_4B), other = conf;
    struct rte_fib *fib, *second;
    IS_NULL(EINVAL, rte_fib_create(NULL, -1, &conf));
    IS_NULL(EINVAL, rte_fib_create("a", -1, NULL));
    IS(1, rte_fib_create("a", -2, &conf) == NULL);
    other.max_routes = -1;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other.max_routes = 0;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other = conf;
    other.type = (enum rte_fib_type)(RTE_FIB_DIR24_8 + 1);
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other = conf4(RTE_FIB_DIR24_8, (enum rte_fib_dir24_8_nh_sz)(RTE_FIB_DIR24_8_8B + 1));
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_4B);
    other.dir24_8.num_tbl8 = 0;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_1B);
    other.dir24_8.num_tbl8 = 128;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    other.dir24_8.num_tbl8 = 127;
    other.default_nh = 128;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &other));
    IS_NULL(ENOENT, rte_fib_find_existing("a"));
    for (int times = 0; times < 100; times++) {
        fib = rte_fib_create("a", -1, &conf);
        IS(0, fib == NULL);
        rte_fib_free(fib);
    }
    fib = rte_fib_create("a", -1, &conf);
    IS(1, rte_fib_find_existing("a") == fib);
    IS_NULL(ENOENT, rte_fib_find_existing("b"));
    IS_NULL(EEXIST, rte_fib_create("a", -1, &conf));
    second = rte_fib_create("b", -1, &conf);
    IS(1, rte_fib_find_existing("b") == second && rte_fib_find_existing("a") == fib && second != fib);
    rte_fib_free(fib);
    IS_NULL(ENOENT, rte_fib_find_existing("a"));
    rte_fib_free(second);
    rte_fib_free(NULL);

    struct rte_fib6_conf config = conf6(RTE_FIB6_DUMMY, RTE_FIB6_TRIE_4B), another = config;
    struct rte_fib6 *fib6;
    IS_NULL(EINVAL, rte_fib6_create(NULL, -1, &config));
    IS_NULL(EINVAL, rte_fib6_create("six", -1, NULL));
    IS(1, rte_fib6_create("six", -2, &config) == NULL);
    another.max_routes = -1;
    IS_NULL(EINVAL, rte_fib6_create("six", -1, &another));
    another = config;
    another.type = (enum rte_fib6_type)(RTE_FIB6_TRIE + 1);
    IS_NULL(EINVAL, rte_fib6_create("six", -1, &another));
    another = conf6(RTE_FIB6_TRIE, (enum rte_fib_trie_nh_sz)0);
    IS_NULL(EINVAL, rte_fib6_create("six", -1, &another));
    another = conf6(RTE_FIB6_TRIE, RTE_FIB6_TRIE_4B);
    another.trie.num_tbl8 = 0;
    IS_NULL(EINVAL, rte_fib6_create("six", -1, &another));
    fib6 = rte_fib6_create("six", -1, &config);
    IS(1, rte_fib6_find_existing("six") == fib6);
    IS_NULL(ENOENT, rte_fib_find_existing("a"));
    IS_NULL(EEXIST, rte_fib6_create("six", -1, &config));
    rte_fib6_free(fib6);
    IS_NULL(ENOENT, rte_fib6_find_existing("six"));
    rte_fib6_free(NULL);
#ifdef OURS
    /* rte_fib takes these. */
    conf = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_8B);
    IS_NULL(ENOTSUP, rte_fib_create("a", -1, &conf));
    config = conf6(RTE_FIB6_TRIE, RTE_FIB6_TRIE_8B);
    IS_NULL(ENOTSUP, rte_fib6_create("six", -1, &config));
#endif
}

/* ---- routes and lookups ---- */

static void refuses(void) {
    struct rte_fib_conf conf = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_4B);
    struct rte_fib6_conf config = conf6(RTE_FIB6_TRIE, RTE_FIB6_TRIE_4B);
    struct rte_fib *fib = rte_fib_create("a", -1, &conf);
    struct rte_fib6 *fib6 = rte_fib6_create("six", -1, &config);
    uint32_t ips[2] = {0, 0};
    uint8_t six[2][16] = {{0}, {0}};
    uint64_t next_hops[2];
    IS(1, rte_fib_add(NULL, 0, 24, 1) < 0);
    IS(1, rte_fib_delete(NULL, 0, 24) < 0);
    IS(1, rte_fib_add(fib, 0, 33, 1) < 0);
    IS(1, rte_fib_delete(fib, 0, 33) < 0);
    IS(-ENOENT, rte_fib_delete(fib, 0, 24));
    IS(0, rte_fib_lookup_bulk(fib, ips, next_hops, 0));
    IS(0, rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DEFAULT));
    IS(0, rte_fib_select_lookup(fib, RTE_FIB_LOOKUP_DIR24_8_SCALAR_UNI));
    IS(-EINVAL, rte_fib_select_lookup(fib, (enum rte_fib_lookup_type)9));
    IS(1, rte_fib6_add(NULL, IP6(six[0]), 24, 1) < 0);
    IS(1, rte_fib6_delete(NULL, IP6(six[0]), 24) < 0);
    IS(1, rte_fib6_add(fib6, NULL, 24, 1) < 0);
    IS(1, rte_fib6_delete(fib6, NULL, 24) < 0);
    IS(1, rte_fib6_add(fib6, IP6(six[0]), 129, 1) < 0);
    IS(1, rte_fib6_delete(fib6, IP6(six[0]), 129) < 0);
    IS(-ENOENT, rte_fib6_delete(fib6, IP6(six[0]), 64));
    IS(0, rte_fib6_select_lookup(fib6, RTE_FIB6_LOOKUP_TRIE_SCALAR));
    IS(-EINVAL, rte_fib6_select_lookup(fib6, (enum rte_fib6_lookup_type)9));
#ifdef OURS
    /* rte_fib looks at these arguments only where it is built for debugging. */
    IS(-EINVAL, rte_fib_lookup_bulk(NULL, ips, next_hops, 2));
    IS(-EINVAL, rte_fib_lookup_bulk(fib, NULL, next_hops, 2));
    IS(-EINVAL, rte_fib_lookup_bulk(fib, ips, NULL, 2));
    IS(-EINVAL, rte_fib6_lookup_bulk(NULL, IP6(six), next_hops, 2));
    IS(-EINVAL, rte_fib6_lookup_bulk(fib6, NULL, next_hops, 2));
    IS(-EINVAL, rte_fib6_lookup_bulk(fib6, IP6(six), NULL, 2));
    IS(-EINVAL, rte_fib_lookup_bulk(fib, ips, next_hops, -1));
    IS(-EINVAL, rte_fib6_lookup_bulk(fib6, IP6(six), next_hops, -1));
#endif
    rte_fib_free(fib);
    rte_fib6_free(fib6);
}

/* Next hop 0, the default one, the largest one of a size, and one more. */
static void next_hops_of(enum rte_fib_dir24_8_nh_sz size) {
    struct rte_fib_conf conf = conf4(RTE_FIB_DIR24_8, size);
    const uint64_t largest = (UINT64_C(1) << (8 * (1 << size) - 1)) - 1;
    struct rte_fib *fib = rte_fib_create("a", -1, &conf);
    IS(DEFAULT, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, 0));
    IS(0, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, largest));
    IS(largest, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    IS(-EINVAL, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, largest + 1));
    IS(-EINVAL, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, UINT64_MAX));
    IS(largest, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, DEFAULT));
    IS(DEFAULT, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    /* Bits after the length do not count; 0.0.0.0/0 is a route. */
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 1, 2, 3), 16, 7));
    IS(7, ask4(fib, RTE_IPV4(10, 1, 0, 1)));
    IS(0, rte_fib_add(fib, 0, 0, 0));
    IS(0, ask4(fib, RTE_IPV4(200, 0, 0, 1)));
    IS(0, rte_fib_delete(fib, RTE_IPV4(10, 1, 9, 9), 16));
    IS(-ENOENT, rte_fib_delete(fib, RTE_IPV4(10, 1, 0, 0), 16));
    IS(0, rte_fib_delete(fib, 0, 0));
    IS(DEFAULT, ask4(fib, RTE_IPV4(200, 0, 0, 1)));
    rte_fib_free(fib);
    conf.default_nh = largest;
    fib = rte_fib_create("a", -1, &conf);
    IS(largest, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    rte_fib_free(fib);
}

#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
static void network_order(void) {
    struct rte_fib_conf conf = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_4B);
    struct rte_fib *fib;
    conf.flags = RTE_FIB_ALLOWED_FLAGS + 1;
    IS_NULL(EINVAL, rte_fib_create("a", -1, &conf));
    conf.flags = RTE_FIB_F_LOOKUP_NETWORK_ORDER;
    fib = rte_fib_create("a", -1, &conf);
    /* Routes are in host order nevertheless. */
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 1, 0, 0), 16, 7));
    IS(7, ask4(fib, rte_cpu_to_be_32(RTE_IPV4(10, 1, 2, 3))));
    IS(DEFAULT, ask4(fib, RTE_IPV4(10, 1, 2, 3)));
    rte_fib_free(fib);
}
#else
static void network_order(void) {}
#endif

static void next_hops6_of(enum rte_fib_trie_nh_sz size) {
    struct rte_fib6_conf conf = conf6(RTE_FIB6_TRIE, size);
    const uint64_t largest = (UINT64_C(1) << (8 * (1 << size) - 1)) - 1;
    const uint8_t net[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 9}, all[16] = {0};
    struct rte_fib6 *fib = rte_fib6_create("six", -1, &conf);
    IS(DEFAULT, ask6(fib, net));
    IS(0, rte_fib6_add(fib, IP6(net), 32, 0));
    IS(0, ask6(fib, net));
    IS(0, rte_fib6_add(fib, IP6(net), 32, largest));
    IS(largest, ask6(fib, net));
#ifdef OURS
    /* rte_fib6 takes this one. */
    IS(-EINVAL, rte_fib6_add(fib, IP6(net), 32, largest + 1));
#endif
    IS(0, rte_fib6_add(fib, IP6(net), 128, 3));
    IS(3, ask6(fib, net));
    IS(0, rte_fib6_add(fib, IP6(all), 0, 0));
    IS(0, ask6(fib, all));
    IS(0, rte_fib6_delete(fib, IP6(all), 0));
    IS(DEFAULT, ask6(fib, all));
    IS(0, rte_fib6_delete(fib, IP6(net), 128));
    IS(largest, ask6(fib, net));
    rte_fib6_free(fib);
}

/* A route of every length, each within the one before: added from the shortest on and deleted from the longest on, and the other way. */
static void nested(enum rte_fib_type type) {
    struct rte_fib_conf conf = conf4(type, RTE_FIB_DIR24_8_4B);
    struct rte_fib *fib = rte_fib_create("a", -1, &conf);
    uint32_t ips[33];
    uint64_t next_hops[33];
    /* Address `at` is within the routes of the first `at` lengths. */
    for (int at = 0; at <= 32; at++) ips[at] = at == 32 ? 0x80000000 : 0x80000000 ^ (0x80000000u >> at);
    for (int way = 0; way < 4; way++) {
        int is_there[33] = {0};
        const int adds = way % 2 == 0;
        for (int depth = 1; depth <= 32; depth++) is_there[depth] = !adds;
        for (int step = 1; step <= 32; step++) {
            const int depth = way == 0 || way == 3 ? step : 33 - step;
            IS(0, adds ? rte_fib_add(fib, 0x80000000, (uint8_t)depth, (uint64_t)depth)
                       : rte_fib_delete(fib, 0x80000000, (uint8_t)depth));
            is_there[depth] = adds;
            IS(0, rte_fib_lookup_bulk(fib, ips, next_hops, 33));
            for (int at = 0; at <= 32; at++) {
                int expected = DEFAULT;
                for (int length = 1; length <= at; length++)
                    if (is_there[length]) expected = length;
                IS(expected, next_hops[at]);
            }
        }
    }
    IS(-ENOENT, rte_fib_delete(fib, 0x80000000, 1));
    rte_fib_free(fib);
}

static void nested6(enum rte_fib6_type type) {
    struct rte_fib6_conf conf = conf6(type, RTE_FIB6_TRIE_4B);
    struct rte_fib6 *fib = rte_fib6_create("six", -1, &conf);
    const uint8_t net[16] = {0x80};
    for (int depth = 1; depth <= 128; depth++) {
        IS(0, rte_fib6_add(fib, IP6(net), (uint8_t)depth, (uint64_t)depth));
        IS(depth, ask6(fib, net));
        for (int at = 1; at < 128; at++) {
            uint8_t ip[16] = {0x80};
            ip[at / 8] ^= (uint8_t)(0x80 >> at % 8);
            IS(at < depth ? at : depth, ask6(fib, ip));
        }
    }
    for (int depth = 128; depth >= 1; depth--) {
        IS(depth, ask6(fib, net));
        IS(0, rte_fib6_delete(fib, IP6(net), (uint8_t)depth));
    }
    IS(DEFAULT, ask6(fib, net));
    rte_fib6_free(fib);
}

/* ---- many changes, which both must answer alike ---- */

static uint64_t state = 88172645463325252u, sum = 14695981039346656037u;

static uint32_t any(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

static void mix(uint64_t value) { sum = (sum ^ value) * 1099511628211u; }

static void many(enum rte_fib_type type) {
    struct rte_fib_conf conf = conf4(type, RTE_FIB_DIR24_8_4B);
    struct rte_fib *fib = rte_fib_create("a", -1, &conf);
    uint32_t ips[700];
    uint64_t next_hops[700];
    for (int turn = 0; turn < 4000; turn++) {
        const uint32_t ip = RTE_IPV4(10, any(3), any(4), any(256));
        const uint8_t depth = (uint8_t)(any(4) ? 20 + any(13) : any(33));
        mix((uint64_t)(int64_t)(any(3) ? rte_fib_add(fib, ip, depth, any(5) ? any(1000) : INT32_MAX)
                                       : rte_fib_delete(fib, ip, depth)));
        if (turn % 20) continue;
        for (int at = 0; at < 700; at++) ips[at] = RTE_IPV4(any(50) ? 10 : any(256), any(3), any(4), any(256));
        const int n = 1 + (int)any(700);
        IS(0, rte_fib_lookup_bulk(fib, ips, next_hops, n));
        for (int at = 0; at < n; at++) mix(next_hops[at]);
    }
    rte_fib_free(fib);
}

static void many6(enum rte_fib6_type type) {
    struct rte_fib6_conf conf = conf6(type, RTE_FIB6_TRIE_4B);
    struct rte_fib6 *fib = rte_fib6_create("six", -1, &conf);
    static uint8_t ips[300][16];
    uint64_t next_hops[300];
    for (int turn = 0; turn < 2000; turn++) {
        uint8_t ip[16] = {0x20, 0x01, 0x0d, (uint8_t)any(2), 0, (uint8_t)any(3), 0, (uint8_t)any(4)};
        const uint8_t depth = (uint8_t)(any(4) ? 24 + any(60) : any(129));
        ip[15] = (uint8_t)any(2);
        mix((uint64_t)(int64_t)(any(3) ? rte_fib6_add(fib, IP6(ip), depth, any(1000)) : rte_fib6_delete(fib, IP6(ip), depth)));
        if (turn % 20) continue;
        for (int at = 0; at < 300; at++) {
            const uint8_t to[16] = {any(50) ? 0x20 : (uint8_t)any(256), 0x01, 0x0d, (uint8_t)any(2), 0, (uint8_t)any(3), 0,
                                    (uint8_t)any(4), [15] = (uint8_t)any(2)};
            memcpy(ips[at], to, 16);
        }
        IS(0, rte_fib6_lookup_bulk(fib, IP6(ips), next_hops, 300));
        for (int at = 0; at < 300; at++) mix(next_hops[at]);
    }
    rte_fib6_free(fib);
}

/* A thread that is no lcore. */
static void *outside(void *fib) {
    IS(5, ask4(fib, RTE_IPV4(10, 0, 0, 1)));
    return NULL;
}

static void threads(void) {
    struct rte_fib_conf conf = conf4(RTE_FIB_DUMMY, RTE_FIB_DIR24_8_4B);
    struct rte_fib *fib = rte_fib_create("a", -1, &conf);
    pthread_t thread[2];
    IS(0, rte_fib_add(fib, RTE_IPV4(10, 0, 0, 0), 8, 5));
    for (int at = 0; at < 2; at++) IS(0, pthread_create(&thread[at], NULL, outside, fib));
    for (int at = 0; at < 2; at++) pthread_join(thread[at], NULL);
    outside(fib);
    rte_fib_free(fib);
    /* More routes than there is room for. */
    conf.max_routes = 100;
    fib = rte_fib_create("a", -1, &conf);
    int code = 0;
    for (uint32_t at = 0; at < 300 && code == 0; at++) code = rte_fib_add(fib, at << 8, 24, 1);
    IS(-ENOMEM, code);
#ifdef OURS
    /* Where rte_fib may have room for up to twice as many. A route that is there may change. */
    IS(1, ask4(fib, 99u << 8));
    IS(DEFAULT, ask4(fib, 100u << 8));
    IS(0, rte_fib_add(fib, 0, 24, 2));
    IS(0, rte_fib_delete(fib, 0, 24));
    IS(0, rte_fib_add(fib, 100u << 8, 24, 3));
#endif
    rte_fib_free(fib);
}

/* ---- a forwarding loop as in l3fwd, between two ports of net_null ---- */

static void forwards(void) {
    enum { BURST = 32, ROUNDS = 200, NO_PORT = 2 };
    struct rte_mempool *pool = rte_pktmbuf_pool_create("packets", 1023, 32, 0, 512, SOCKET_ID_ANY);
    struct rte_eth_conf none;
    memset(&none, 0, sizeof(none));
    IS(0, pool == NULL);
    IS(2, rte_eth_dev_count_avail());
    for (uint16_t port = 0; port < 2; port++) {
        IS(0, rte_eth_dev_configure(port, 1, 1, &none));
        IS(0, rte_eth_rx_queue_setup(port, 0, 128, SOCKET_ID_ANY, NULL, pool));
        IS(0, rte_eth_tx_queue_setup(port, 0, 128, SOCKET_ID_ANY, NULL));
        IS(0, rte_eth_dev_start(port));
    }
    if (wrong) return;
    struct rte_fib_conf conf = conf4(RTE_FIB_DIR24_8, RTE_FIB_DIR24_8_2B);
    conf.default_nh = NO_PORT;
    struct rte_fib *fib = rte_fib_create("routes", SOCKET_ID_ANY, &conf);
    IS(0, rte_fib_add(fib, RTE_IPV4(198, 18, 0, 0), 24, 0));
    IS(0, rte_fib_add(fib, RTE_IPV4(198, 18, 1, 0), 24, 1));
    IS(0, rte_fib_add(fib, RTE_IPV4(198, 18, 1, 128), 25, 0));
    uint64_t sent[2] = {0, 0}, dropped = 0, received = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct rte_mbuf *packets[BURST];
        uint32_t ips[BURST];
        uint64_t next_hops[BURST];
        const uint16_t port = (uint16_t)(round % 2), count = rte_eth_rx_burst(port, 0, packets, BURST);
        received += count;
        for (uint16_t at = 0; at < count; at++) {
            /* net_null's packets have zeros; the generator's addresses are written here. */
            struct rte_ipv4_hdr *header =
                rte_pktmbuf_mtod_offset(packets[at], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
            header->time_to_live = 64;
            header->dst_addr = rte_cpu_to_be_32(RTE_IPV4(198, 18, at % 3, at * 8));
        }
        for (uint16_t at = 0; at < count; at++) {
            struct rte_ipv4_hdr *header =
                rte_pktmbuf_mtod_offset(packets[at], struct rte_ipv4_hdr *, sizeof(struct rte_ether_hdr));
            header->time_to_live--;
            ips[at] = rte_be_to_cpu_32(header->dst_addr);
        }
        IS(0, rte_fib_lookup_bulk(fib, ips, next_hops, count));
        for (uint16_t at = 0; at < count; at++) {
            if (next_hops[at] < NO_PORT && rte_eth_tx_burst((uint16_t)next_hops[at], 0, &packets[at], 1) == 1) {
                sent[next_hops[at]]++;
            } else {
                rte_pktmbuf_free(packets[at]);
                dropped++;
            }
        }
    }
    /* Of 32 packets: 11 to 198.18.0.0/24, 11 to 198.18.1.0/24 (6 of them to its upper half), 10 to no route. */
    IS(ROUNDS * BURST, received);
    struct rte_eth_stats stats[2];
    for (uint16_t port = 0; port < 2; port++) {
        IS(0, rte_eth_stats_get(port, &stats[port]));
        IS(sent[port], stats[port].opackets);
    }
    IS(ROUNDS * 17, sent[0]);
    IS(ROUNDS * 5, sent[1]);
    IS(ROUNDS * 10, dropped);
    rte_fib_free(fib);
    for (uint16_t port = 0; port < 2; port++) {
        IS(0, rte_eth_dev_stop(port));
        IS(0, rte_eth_dev_close(port));
    }
    rte_mempool_free(pool);
}

int main(int count, char **arguments) {
    if (rte_eal_init(count, arguments) < 0) {
        printf("no EAL: %s\n", rte_strerror(rte_errno));
        return 2;
    }
    creates();
    refuses();
    next_hops_of(RTE_FIB_DIR24_8_1B);
    next_hops_of(RTE_FIB_DIR24_8_2B);
    next_hops_of(RTE_FIB_DIR24_8_4B);
    network_order();
    next_hops6_of(RTE_FIB6_TRIE_2B);
    next_hops6_of(RTE_FIB6_TRIE_4B);
    nested(RTE_FIB_DUMMY);
    nested(RTE_FIB_DIR24_8);
    nested6(RTE_FIB6_DUMMY);
    nested6(RTE_FIB6_TRIE);
    many(RTE_FIB_DUMMY);
    many(RTE_FIB_DIR24_8);
    many6(RTE_FIB6_DUMMY);
    many6(RTE_FIB6_TRIE);
    threads();
    forwards();
    printf("%llx\n", (unsigned long long)sum);
    rte_eal_cleanup();
    return wrong;
}
