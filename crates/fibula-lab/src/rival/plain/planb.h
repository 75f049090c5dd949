/* PlanB in plain C++: the table, as its builder leaves it and its loops read it. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace planb {

/* Keys of a node: a cache line. */
constexpr unsigned KEYS = 8;
constexpr unsigned ARITY = KEYS + 1;

/* Ends of intervals, ascending. For AVX2 their highest bits are flipped, as it compares signed numbers only. */
struct alignas(64) Node {
	uint64_t keys[KEYS];
};

/* The ranges inside one upper half. */
struct Block {
	uint32_t first; /* of its pieces */
	uint32_t count;
};

struct Table {
	const Node *nodes; /* full internal levels from the root on, then leaves */
	uint32_t levels;   /* internal ones */
	uint32_t internal; /* nodes of these */
	/* One value an interval: a next hop, 0 for none; or, marked by the highest bit, a block. One of the two widths. */
	const uint16_t *narrow;
	const uint32_t *wide;
	const Block *blocks;
	const uint64_t *ends; /* last lower half of each piece */
	const uint32_t *next_hops;
	size_t bytes; /* all that lookups can touch */
	void *mapping[2];
	size_t mapping_bytes[2];
};

/* How keys are held. */
enum Form : uint32_t {
	HOST = 0,    /* integers of 128 bits */
	NETWORK = 1, /* 16 bytes, the highest first */
	HALVES = 2,  /* integers of 64 bits: the upper halves in one array, the lower halves in another */
};

/* How they are handed over; as in sys.rs. */
enum Shape : uint32_t {
	BATCH = 0,
	SINGLE = 1,
	DEPENDENT = 2,
};

/* Keys in their form. `lower` is for halves alone. */
struct Keys {
	const void *keys;
	const uint64_t *lower;
};

} // namespace planb
