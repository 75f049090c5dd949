/* The loops of PlanB, compiled once for each instruction set: SET is the name that ends the function below. */
#include "planb.h"

#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

using namespace planb;

namespace {

#define INLINE inline __attribute__((always_inline))

/* Lanes that walk side by side: what suits the registers. */
#if defined(__AVX2__)
constexpr unsigned LANES = 32;
#else
constexpr unsigned LANES = 8;
#endif

/* In place of a number of levels: known only when the loop runs. */
constexpr unsigned ANY = ~0u;

/* Keys are prefetched this far ahead, past the end of a batch too: callers hold keys side by side. */
constexpr size_t AHEAD = 2048;

/* How many keys of a node are below the word. */
INLINE unsigned rank(const Node &node, uint64_t word)
{
#if defined(__AVX512F__)
	return __builtin_popcount(_mm512_cmpgt_epu64_mask(_mm512_set1_epi64(word), _mm512_load_si512(node.keys)));
#elif defined(__AVX2__)
	const __m256i words = _mm256_set1_epi64x(word);
	const __m256i low = _mm256_load_si256(reinterpret_cast<const __m256i *>(node.keys));
	const __m256i high = _mm256_load_si256(reinterpret_cast<const __m256i *>(node.keys + 4));
	/* A result fills two lanes of 32 bits: one of each pair is enough. */
	const __m256i both =
		_mm256_blend_epi32(_mm256_cmpgt_epi64(words, low), _mm256_cmpgt_epi64(words, high), 0xaa);
	return __builtin_popcount(_mm256_movemask_ps(_mm256_castsi256_ps(both)));
#else
	/* Two keys select a third of the node, and two keys of the third decide. */
	const unsigned third = 3 * ((node.keys[2] < word) + (node.keys[5] < word));
	return third + (node.keys[third] < word) + (node.keys[third + 1] < word);
#endif
}

constexpr bool LITTLE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

/* Whether the highest bits of nodes and words are flipped. */
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr uint64_t FLIP = uint64_t(1) << 63;
#else
constexpr uint64_t FLIP = 0;
#endif

template <Form FORM> INLINE uint64_t upper(const Keys &keys, size_t at)
{
	uint64_t word;

	if (FORM == HALVES)
		return static_cast<const uint64_t *>(keys.keys)[at] ^ FLIP;
	const char *key = static_cast<const char *>(keys.keys) + at * 16;
	std::memcpy(&word, key + (FORM == HOST && LITTLE ? 8 : 0), sizeof(word));
	return (FORM == NETWORK && LITTLE ? __builtin_bswap64(word) : word) ^ FLIP;
}

template <Form FORM> uint64_t lower(const Keys &keys, size_t at)
{
	uint64_t word;

	if (FORM == HALVES)
		return keys.lower[at];
	const char *key = static_cast<const char *>(keys.keys) + at * 16;
	std::memcpy(&word, key + (FORM == HOST && LITTLE ? 0 : 8), sizeof(word));
	return FORM == NETWORK && LITTLE ? __builtin_bswap64(word) : word;
}

template <Form FORM> INLINE void prefetch(const Keys &keys, size_t at)
{
	constexpr size_t SIZE = FORM == HALVES ? 8 : 16;

	__builtin_prefetch(static_cast<const char *>(keys.keys) + at * SIZE + AHEAD);
}

/* The next hop of a lower half in a block, by binary search. */
__attribute__((noinline)) uint32_t in_block(const Table &table, uint32_t block, uint64_t lower)
{
	uint32_t low = table.blocks[block].first, count = table.blocks[block].count;

	while (count > 1) {
		const uint32_t half = count / 2;

		low = table.ends[low + half - 1] < lower ? low + half : low;
		count -= half;
	}
	return table.next_hops[low];
}

/* Looks N keys up in step. With a constant number of levels, the loop over them is unrolled, too.
 *
 * Words are read from the keys anew at each level: a load that is a broadcast costs nothing more, and 32 words would not
 * stay in registers. Those in network order are swapped once, into memory. */
template <Form FORM, unsigned LEVELS, class Value, unsigned N>
INLINE void walk(const Table &table, const Value *values, const Keys &keys, size_t first, uint32_t *answers)
{
	constexpr Value BLOCK = Value(1) << (sizeof(Value) * 8 - 1);
	constexpr size_t EACH = 64 / (FORM == HALVES ? 8 : 16); /* keys of a line */
	const char *const nodes = reinterpret_cast<const char *>(table.nodes);
	const size_t internal = table.internal;
	uint64_t swapped[N];
	size_t at[N]; /* nodes in units of eight bytes, a factor that addressing modes have */
	Value any = 0;

	const auto node_of = [&](unsigned i) -> const Node & { return *reinterpret_cast<const Node *>(nodes + at[i] * 8); };
	const auto word_of = [&](unsigned i) { return FORM == NETWORK ? swapped[i] : upper<FORM>(keys, first + i); };
	for (unsigned i = 0; i < N; i++) {
		if (FORM == NETWORK)
			swapped[i] = upper<FORM>(keys, first + i);
		at[i] = 0;
	}
	if (FORM == NETWORK)
		asm("" : "+m"(swapped));
	const unsigned levels = LEVELS == ANY ? table.levels : LEVELS;
#pragma GCC unroll 6
	for (unsigned level = 0; level < levels; level++)
#pragma GCC unroll 32
		for (unsigned i = 0; i < N; i++)
			at[i] = at[i] * ARITY + KEYS + KEYS * rank(node_of(i), word_of(i));
#pragma GCC unroll 32
	for (unsigned i = 0; i < N; i++) {
		const Value value = values[at[i] - internal * KEYS + rank(node_of(i), word_of(i))];
		if (i % EACH == 0)
			prefetch<FORM>(keys, first + i);
		any |= value;
		answers[first + i] = value;
	}
	if (__builtin_expect(any & BLOCK, 0))
		for (unsigned i = 0; i < N; i++)
			if (answers[first + i] & BLOCK)
				answers[first + i] =
					in_block(table, answers[first + i] ^ BLOCK, lower<FORM>(keys, first + i));
}

template <Form FORM, unsigned LEVELS, class Value>
__attribute__((noinline)) void batch(const Table &table, const Value *values, const Keys &keys, size_t count,
				     uint32_t *answers)
{
	size_t i = 0;

	for (; i + LANES <= count; i += LANES)
		walk<FORM, LEVELS, Value, LANES>(table, values, keys, i, answers);
	if (LANES > 16 && count - i >= 16) {
		walk<FORM, LEVELS, Value, LANES / 2>(table, values, keys, i, answers);
		i += 16;
	}
	if (LANES > 8 && count - i >= 8) {
		walk<FORM, LEVELS, Value, 8>(table, values, keys, i, answers);
		i += 8;
	}
	if (count - i >= 4) {
		walk<FORM, LEVELS, Value, 4>(table, values, keys, i, answers);
		i += 4;
	}
	for (; i < count; i++)
		walk<FORM, LEVELS, Value, 1>(table, values, keys, i, answers);
}

template <Form FORM, unsigned LEVELS, class Value>
__attribute__((noinline)) uint32_t one(const Table &table, const Value *values, const Keys &keys)
{
	uint32_t answer;

	walk<FORM, LEVELS, Value, 1>(table, values, keys, 0, &answer);
	return answer;
}

template <Form FORM> Keys from(const Keys &keys, size_t at)
{
	const size_t size = FORM == HALVES ? 8 : 16;

	return {static_cast<const char *>(keys.keys) + at * size, FORM == HALVES ? keys.lower + at : nullptr};
}

template <Form FORM, unsigned LEVELS, class Value>
void run(const Table &table, const Value *values, uint32_t shape, const Keys &keys, size_t count, size_t room,
	 uint32_t *answers)
{
	static const volatile uint64_t nothing = 0;
	uint64_t zero = nothing, mask = nothing;

	for (size_t i = 0; i < count; i += room) {
		const size_t here = count - i < room ? count - i : room;

		switch (shape) {
		case BATCH:
			batch<FORM, LEVELS, Value>(table, values, from<FORM>(keys, i), here, answers);
			break;
		case SINGLE:
			for (size_t j = 0; j < here; j++)
				answers[j] = one<FORM, LEVELS, Value>(table, values, from<FORM>(keys, i + j));
			break;
		default:
			for (size_t j = 0; j < here; j++) {
				uint64_t key[2] = {0, 0};
				Keys changed = from<FORM>(keys, i + j);

				std::memcpy(key, changed.keys, FORM == HALVES ? 8 : 16);
				key[0] ^= zero;
				key[1] ^= zero;
				changed.keys = key;
				answers[j] = one<FORM, LEVELS, Value>(table, values, changed);
				zero = answers[j] & mask;
			}
		}
	}
}

template <Form FORM, class Value>
void with_levels(const Table &table, const Value *values, uint32_t shape, const Keys &keys, size_t count, size_t room,
		 uint32_t *answers)
{
	/* The depths of full tables of today and of the years to come: up to 472,393 intervals, and to 4 million. */
	switch (sizeof(Value) == sizeof(uint16_t) ? table.levels : ANY) {
	case 5:
		return run<FORM, 5>(table, values, shape, keys, count, room, answers);
	case 6:
		return run<FORM, 6>(table, values, shape, keys, count, room, answers);
	default:
		return run<FORM, ANY>(table, values, shape, keys, count, room, answers);
	}
}

template <Form FORM>
void with_values(const Table &table, uint32_t shape, const Keys &keys, size_t count, size_t room, uint32_t *answers)
{
	if (table.narrow != nullptr)
		return with_levels<FORM>(table, table.narrow, shape, keys, count, room, answers);
	with_levels<FORM>(table, table.wide, shape, keys, count, room, answers);
}

} // namespace

#define NAME_OF(set) fibula_plain_lookup_##set
#define NAME(set) NAME_OF(set)

/* Looks `count` keys up in blocks of `room`, each one batch, or key by key. `answers` has room for `room` next hops, 0 for
 * none; the answers of a block take the place of those before. */
extern "C" void NAME(SET)(const Table *table, uint32_t form, uint32_t shape, const Keys *keys, size_t count, size_t room,
			  uint32_t *answers)
{
	switch (form) {
	case HOST:
		return with_values<HOST>(*table, shape, *keys, count, room, answers);
	case NETWORK:
		return with_values<NETWORK>(*table, shape, *keys, count, room, answers);
	default:
		return with_values<HALVES>(*table, shape, *keys, count, room, answers);
	}
}
