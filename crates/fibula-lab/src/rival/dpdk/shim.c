/* The part of DPDK that is measured, as functions that another language can call: lookups of rte_lpm are inline functions
 * of its headers. The declarations are repeated in sys.rs, which is the only caller. */
#define _GNU_SOURCE
#include <rte_config.h>

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_malloc.h>
#include <rte_version.h>
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#include <rte_ip6.h>
#endif

#define PAGE ((size_t)2 << 20)
#define IPV6_BYTES 16
/* As in bench/pass.rs. */
#define PREFETCH_BYTES ((size_t)4096)
/* rte_lpm_lookup_bulk keeps an array of the batch's length on the stack. */
#define LPM_BATCH 4096u

/* Which library, and which of its functions answers batches. */
enum fibula_dpdk_kind {
	FIBULA_DPDK_FIB = 0,
	FIBULA_DPDK_FIB6 = 1,
	FIBULA_DPDK_LPM = 2,
	FIBULA_DPDK_LPM6 = 3,
};

/* How keys are handed over. */
enum fibula_dpdk_shape {
	FIBULA_DPDK_BATCH = 0,     /* all in one call */
	FIBULA_DPDK_BATCH_X4 = 1,  /* rte_lpm alone: four a call */
	FIBULA_DPDK_SINGLE = 2,    /* one a call */
	FIBULA_DPDK_DEPENDENT = 3, /* one a call, each after the answer to the one before */
};

struct fibula_dpdk_config {
	uint32_t kind;
	uint32_t lookup;           /* enum rte_fib_lookup_type, enum rte_fib6_lookup_type */
	uint32_t next_hop_size;    /* enum rte_fib_dir24_8_nh_sz, enum rte_fib_trie_nh_sz */
	uint32_t routes;           /* most routes */
	uint32_t groups;           /* most groups of 256 entries (tbl8) */
	uint32_t huge_pages;       /* whether to ask for transparent huge pages */
	uint64_t heap_bytes;       /* its heap, all of which DPDK erases first */
};

struct fibula_dpdk {
	uint32_t kind;
	union {
		struct rte_fib *fib;
		struct rte_fib6 *fib6;
		struct rte_lpm *lpm;
		struct rte_lpm6 *lpm6;
		void *any;
	};
	char name[16]; /* of the heap, too */
	int socket;    /* by which DPDK knows the heap */
	void *mapping;
	size_t mapping_bytes;
	void *heap;
	size_t heap_bytes;
};

/* Starts DPDK's environment in the calling thread, which it pins to a core. 0, or an error number of DPDK's. */
int fibula_dpdk_start(void)
{
	char core[24];
	/* The heap of EAL's own holds small things only: every table has its own. */
	char *arguments[] = {
		"fibula", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "--force-max-simd-bitwidth=512",
		"--log-level=*:emergency", "-m", "256", "--lcores", core, NULL,
	};

	snprintf(core, sizeof(core), "0@%d", sched_getcpu());
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]) - 1, arguments) < 0)
		return rte_errno != 0 ? rte_errno : EINVAL;
	return 0;
}

/* A heap of DPDK's over memory of our own: the same kind of pages as our structures have, freed with the
 * table. */
static int make_heap(struct fibula_dpdk *table, const struct fibula_dpdk_config *config)
{
	static atomic_uint tables;

	snprintf(table->name, sizeof(table->name), "f%u", atomic_fetch_add(&tables, 1));
	table->heap_bytes = (config->heap_bytes + PAGE - 1) / PAGE * PAGE;
	table->mapping_bytes = table->heap_bytes + PAGE;
	table->mapping = mmap(NULL, table->mapping_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table->mapping == MAP_FAILED) {
		table->mapping = NULL;
		return errno;
	}
	table->heap = (void *)(((uintptr_t)table->mapping + PAGE - 1) / PAGE * PAGE);
	if (config->huge_pages)
		madvise(table->heap, table->heap_bytes, MADV_HUGEPAGE);
	if (rte_malloc_heap_create(table->name) != 0)
		return rte_errno;
	table->socket = rte_malloc_heap_get_socket(table->name);
	if (rte_malloc_heap_memory_add(table->name, table->heap, table->heap_bytes, NULL, 0, PAGE) != 0) {
		table->heap = NULL;
		return rte_errno;
	}
	return 0;
}

/* Makes the empty table in its room. 0, or an error number of DPDK's; to be called once. */
int fibula_dpdk_make(struct fibula_dpdk *table, const struct fibula_dpdk_config *config)
{
	switch (config->kind) {
	case FIBULA_DPDK_FIB: {
		struct rte_fib_conf conf = {
			.type = RTE_FIB_DIR24_8,
			.max_routes = (int)config->routes,
			.dir24_8 = { .nh_sz = config->next_hop_size, .num_tbl8 = config->groups },
		};
		table->fib = rte_fib_create(table->name, table->socket, &conf);
		if (table->fib == NULL)
			return rte_errno;
		return rte_fib_select_lookup(table->fib, config->lookup) == 0 ? 0 : ENOTSUP;
	}
	case FIBULA_DPDK_FIB6: {
		struct rte_fib6_conf conf = {
			.type = RTE_FIB6_TRIE,
			.max_routes = (int)config->routes,
			.trie = { .nh_sz = config->next_hop_size, .num_tbl8 = config->groups },
		};
		table->fib6 = rte_fib6_create(table->name, table->socket, &conf);
		if (table->fib6 == NULL)
			return rte_errno;
		return rte_fib6_select_lookup(table->fib6, config->lookup) == 0 ? 0 : ENOTSUP;
	}
	case FIBULA_DPDK_LPM: {
		struct rte_lpm_config conf = { .max_rules = config->routes, .number_tbl8s = config->groups };
		table->lpm = rte_lpm_create(table->name, table->socket, &conf);
		return table->lpm == NULL ? rte_errno : 0;
	}
	default: {
		struct rte_lpm6_config conf = { .max_rules = config->routes, .number_tbl8s = config->groups };
		table->lpm6 = rte_lpm6_create(table->name, table->socket, &conf);
		return table->lpm6 == NULL ? rte_errno : 0;
	}
	}
}

void fibula_dpdk_free(struct fibula_dpdk *table);

/* Room for a table: a heap of its own. NULL, and an error number of DPDK's in *error, where it cannot be had. */
struct fibula_dpdk *fibula_dpdk_create(const struct fibula_dpdk_config *config, int *error)
{
	struct fibula_dpdk *table = calloc(1, sizeof(*table));

	if (table == NULL) {
		*error = ENOMEM;
		return NULL;
	}
	table->kind = config->kind;
	*error = make_heap(table, config);
	if (*error != 0) {
		fibula_dpdk_free(table);
		return NULL;
	}
	return table;
}

void fibula_dpdk_free(struct fibula_dpdk *table)
{
	switch (table->kind) {
	case FIBULA_DPDK_FIB:
		rte_fib_free(table->fib);
		break;
	case FIBULA_DPDK_FIB6:
		rte_fib6_free(table->fib6);
		break;
	case FIBULA_DPDK_LPM:
		rte_lpm_free(table->lpm);
		break;
	default:
		rte_lpm6_free(table->lpm6);
	}
	/* A heap that something is left in keeps its memory: leaked, never unmapped under DPDK. */
	if (table->heap != NULL && rte_malloc_heap_memory_remove(table->name, table->heap, table->heap_bytes) != 0)
		table->mapping = NULL;
	if (table->mapping != NULL) {
		rte_malloc_heap_destroy(table->name);
		munmap(table->mapping, table->mapping_bytes);
	}
	free(table);
}

/* Adds a route. 0, or a negative error number. A key is an uint32_t in host order, or 16 bytes in network order. */
int fibula_dpdk_add(struct fibula_dpdk *table, const void *key, uint8_t len, uint32_t next_hop)
{
	switch (table->kind) {
	case FIBULA_DPDK_FIB:
		return rte_fib_add(table->fib, *(const uint32_t *)key, len, next_hop);
	case FIBULA_DPDK_FIB6:
		return rte_fib6_add(table->fib6, key, len, next_hop);
	case FIBULA_DPDK_LPM:
		return rte_lpm_add(table->lpm, *(const uint32_t *)key, len, next_hop);
	default:
		return rte_lpm6_add(table->lpm6, key, len, next_hop);
	}
}

/* Deletes a route. 0, or a negative error number. Keys are as above. */
int fibula_dpdk_delete(struct fibula_dpdk *table, const void *key, uint8_t len)
{
	switch (table->kind) {
	case FIBULA_DPDK_FIB:
		return rte_fib_delete(table->fib, *(const uint32_t *)key, len);
	case FIBULA_DPDK_FIB6:
		return rte_fib6_delete(table->fib6, key, len);
	case FIBULA_DPDK_LPM:
		return rte_lpm_delete(table->lpm, *(const uint32_t *)key, len);
	default:
		return rte_lpm6_delete(table->lpm6, key, len);
	}
}

/* What functions for IPv6 take arrays of. */
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
typedef struct rte_ipv6_addr ipv6_t;
#else
typedef uint8_t ipv6_t[IPV6_BYTES];
#endif
_Static_assert(sizeof(ipv6_t) == IPV6_BYTES, "an IPv6 address is its bytes");

/* Inlined into each case below, where the kind is known: what stays is the call a program in C would make. */
static inline __attribute__((always_inline)) uint64_t one(uint32_t kind, void *table, const void *key)
{
	uint64_t wide = 0;
	uint32_t narrow = 0;

	switch (kind) {
	case FIBULA_DPDK_FIB:
		rte_fib_lookup_bulk(table, (uint32_t *)key, &wide, 1);
		return wide;
	case FIBULA_DPDK_FIB6:
		rte_fib6_lookup_bulk(table, (ipv6_t *)key, &wide, 1);
		return wide;
	case FIBULA_DPDK_LPM:
		return rte_lpm_lookup(table, *(const uint32_t *)key, &narrow) == 0 ? narrow : 0;
	default:
		return rte_lpm6_lookup(table, key, &narrow) == 0 ? narrow : 0;
	}
}

static inline __attribute__((always_inline)) void single(uint32_t kind, void *table, const void *keys, size_t size,
							 uint32_t count, uint64_t *answers)
{
	for (uint32_t i = 0; i < count; i++)
		answers[i] = one(kind, table, (const uint8_t *)keys + i * size);
}

/* Each key is combined with a number that is made of the last answer and is always 0, which neither compiler nor
 * processor can know. */
static inline __attribute__((always_inline)) void dependent(uint32_t kind, void *table, const void *keys, size_t size,
							    uint32_t count, uint64_t *answers)
{
	static const volatile uint32_t zero;
	const uint32_t nothing = zero;
	uint64_t last = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t key[IPV6_BYTES / 4];

		memcpy(key, (const uint8_t *)keys + i * size, size);
		key[size / 4 - 1] ^= (uint32_t)last & nothing;
		last = one(kind, table, key);
		answers[i] = last;
	}
}

static void x4(const struct rte_lpm *lpm, const uint32_t *keys, uint32_t count, uint32_t *answers)
{
	uint32_t i;

	for (i = 0; i + 4 <= count; i += 4)
		rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(keys + i)), answers + i, 0);
	for (; i < count; i++)
		answers[i] = one(FIBULA_DPDK_LPM, (void *)lpm, keys + i);
}

static void batch(const struct fibula_dpdk *table, const void *keys, uint32_t count, void *answers)
{
	switch (table->kind) {
	case FIBULA_DPDK_FIB:
		rte_fib_lookup_bulk(table->fib, (uint32_t *)keys, answers, count);
		break;
	case FIBULA_DPDK_FIB6:
		rte_fib6_lookup_bulk(table->fib6, (ipv6_t *)keys, answers, count);
		break;
	case FIBULA_DPDK_LPM:
		for (uint32_t i = 0; i < count; i += LPM_BATCH)
			rte_lpm_lookup_bulk(table->lpm, (const uint32_t *)keys + i, (uint32_t *)answers + i,
					    RTE_MIN(count - i, LPM_BATCH));
		break;
	default:
		rte_lpm6_lookup_bulk_func(table->lpm6, (ipv6_t *)keys, answers, count);
	}
}

#define FOR_EACH_KIND(function)                                                                        \
	switch (table->kind) {                                                                         \
	case FIBULA_DPDK_FIB:                                                                          \
		function(FIBULA_DPDK_FIB, table->any, keys, sizeof(uint32_t), count, answers);         \
		break;                                                                                 \
	case FIBULA_DPDK_FIB6:                                                                         \
		function(FIBULA_DPDK_FIB6, table->any, keys, IPV6_BYTES, count, answers);              \
		break;                                                                                 \
	case FIBULA_DPDK_LPM:                                                                          \
		function(FIBULA_DPDK_LPM, table->any, keys, sizeof(uint32_t), count, answers);         \
		break;                                                                                 \
	default:                                                                                       \
		function(FIBULA_DPDK_LPM6, table->any, keys, IPV6_BYTES, count, answers);              \
	}

static void block(const struct fibula_dpdk *table, uint32_t shape, const void *keys, uint32_t count, void *answers)
{
	switch (shape) {
	case FIBULA_DPDK_BATCH:
		batch(table, keys, count, answers);
		break;
	case FIBULA_DPDK_BATCH_X4:
		x4(table->lpm, keys, count, answers);
		break;
	case FIBULA_DPDK_SINGLE:
		FOR_EACH_KIND(single);
		break;
	default:
		FOR_EACH_KIND(dependent);
	}
}

/* Looks `count` keys up in blocks of `room`, each a batch where the shape is one. `answers` has room for `room` words of
 * 64 bits; the answers of a block take the place of those before, in the form of the library. */
void fibula_dpdk_lookup(const struct fibula_dpdk *table, uint32_t shape, const void *keys, uint32_t count,
			uint32_t room, void *answers)
{
	const size_t size =
		table->kind == FIBULA_DPDK_FIB || table->kind == FIBULA_DPDK_LPM ? sizeof(uint32_t) : IPV6_BYTES;

	const uint8_t *const end = (const uint8_t *)keys + count * size;

	for (uint32_t i = 0; i < count; i += RTE_MIN(count - i, room)) {
		/* As for our structures: the first keys of the next batch are prefetched before this one is looked up. */
		const uint8_t *next = (const uint8_t *)keys + (i + RTE_MIN(count - i, room)) * size;
		const size_t ahead = RTE_MIN(room * size, PREFETCH_BYTES);
		const uint8_t *next_end = next + RTE_MIN((size_t)(end - next), ahead);

		if (shape == FIBULA_DPDK_BATCH || shape == FIBULA_DPDK_BATCH_X4)
			for (; next < next_end; next += 64)
				__builtin_prefetch(next);
		block(table, shape, (const uint8_t *)keys + i * size, RTE_MIN(count - i, room), answers);
	}
}

/* Answers as next hops, 0 for none. */
void fibula_dpdk_next_hops(const struct fibula_dpdk *table, uint32_t shape, const void *answers, uint32_t count,
			   uint32_t *next_hops)
{
	const uint32_t *narrow = answers;
	const uint64_t *wide = answers;

	for (uint32_t i = 0; i < count; i++) {
		if (shape == FIBULA_DPDK_BATCH && table->kind == FIBULA_DPDK_LPM)
			next_hops[i] = narrow[i] & RTE_LPM_LOOKUP_SUCCESS ? narrow[i] & 0x00ffffff : 0;
		else if (shape == FIBULA_DPDK_BATCH && table->kind == FIBULA_DPDK_LPM6)
			next_hops[i] = (int32_t)narrow[i] == -1 ? 0 : narrow[i];
		else if (shape == FIBULA_DPDK_BATCH_X4)
			next_hops[i] = narrow[i];
		else
			next_hops[i] = (uint32_t)wide[i];
	}
}

/* Bytes that DPDK's allocator has handed out for the table. */
uint64_t fibula_dpdk_allocated(const struct fibula_dpdk *table)
{
	struct rte_malloc_socket_stats stats;

	if (rte_malloc_get_socket_stats(table->socket, &stats) != 0)
		return 0;
	return stats.heap_allocsz_bytes;
}

/* DPDK's words for its error numbers. */
const char *fibula_dpdk_error(int error)
{
	return rte_strerror(error);
}
