/* Routes to a PlanB table: ranges, intervals of the upper halves, and a tree over the ends of the intervals. */
#include "planb.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sys/mman.h>
#include <vector>

using namespace planb;

namespace {

using u128 = unsigned __int128;

/* As in sys.rs. */
struct Route {
	uint64_t upper, lower;
	uint32_t len, next_hop;
};

struct Range {
	u128 start;
	uint32_t next_hop;
};

constexpr uint32_t BLOCK = uint32_t(1) << 31;
constexpr size_t HUGE = size_t(2) << 20;

/* The ranges of routes that are in order, covers first; neighbours with the same next hop are one. */
std::vector<Range> ranges_of(const Route *routes, size_t count)
{
	struct Open {
		u128 last;
		uint32_t next_hop;
	};
	std::vector<Open> open{{~u128(0), 0}};
	std::vector<Range> ranges;
	auto change = [&](u128 start, uint32_t next_hop) {
		if (!ranges.empty() && ranges.back().start == start)
			ranges.pop_back();
		if (ranges.empty() || ranges.back().next_hop != next_hop)
			ranges.push_back({start, next_hop});
	};
	auto end_before = [&](u128 start, bool all) {
		while (open.size() > 1 && (all || open.back().last < start)) {
			const u128 last = open.back().last;
			open.pop_back();
			/* A cover with the same end says what follows. */
			if (last < open.back().last)
				change(last + 1, open.back().next_hop);
		}
	};

	change(0, 0);
	for (size_t i = 0; i < count; i++) {
		const Route &route = routes[i];
		const u128 start = u128(route.upper) << 64 | route.lower;
		end_before(start, false);
		open.push_back({route.len == 0 ? ~u128(0) : start | (~u128(0) >> (route.len - 1) >> 1), route.next_hop});
		change(start, route.next_hop);
	}
	end_before(0, true);
	return ranges;
}

struct Intervals {
	std::vector<uint64_t> starts;
	std::vector<uint32_t> values; /* blocks are marked */
	std::vector<Block> blocks;
	std::vector<uint64_t> ends;
	std::vector<uint32_t> next_hops;

	void add(uint64_t start, uint32_t value)
	{
		/* Two blocks side by side leave nothing between them. */
		if (!starts.empty() && starts.back() == start) {
			values.back() = value;
			return;
		}
		if (!values.empty() && values.back() == value)
			return;
		starts.push_back(start);
		values.push_back(value);
	}

	explicit Intervals(const std::vector<Range> &ranges)
	{
		for (size_t i = 0, j; i < ranges.size(); i = j) {
			const uint64_t upper = ranges[i].start >> 64;
			for (j = i + 1; j < ranges.size() && uint64_t(ranges[j].start >> 64) == upper;)
				j++;
			if (j == i + 1 && uint64_t(ranges[i].start) == 0) {
				add(upper, ranges[i].next_hop);
				continue;
			}
			const uint32_t first = ends.size();
			auto piece = [&](uint64_t end, uint32_t next_hop) {
				ends.push_back(end);
				next_hops.push_back(next_hop);
			};
			/* The first range of all starts at 0, so there is one before. */
			if (uint64_t(ranges[i].start) != 0)
				piece(uint64_t(ranges[i].start) - 1, ranges[i - 1].next_hop);
			for (size_t k = i; k < j; k++)
				piece(k + 1 < j ? uint64_t(ranges[k + 1].start) - 1 : ~uint64_t(0), ranges[k].next_hop);
			add(upper, BLOCK | uint32_t(blocks.size()));
			blocks.push_back({first, uint32_t(ends.size()) - first});
			if (upper != ~uint64_t(0))
				add(upper + 1, ranges[j - 1].next_hop);
		}
	}
};

/* Memory in whole huge pages, of which the system is asked for. */
char *map(Table &table, unsigned which, size_t bytes)
{
	const size_t whole = (bytes + HUGE - 1) / HUGE * HUGE + HUGE;
	void *mapping = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapping == MAP_FAILED)
		throw std::bad_alloc();
	table.mapping[which] = mapping;
	table.mapping_bytes[which] = whole;
	char *aligned = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(mapping) + HUGE - 1) / HUGE * HUGE);
#ifdef MADV_HUGEPAGE
	madvise(aligned, whole - HUGE, MADV_HUGEPAGE);
#endif
	return aligned;
}

/* The tree over the ends of all intervals but the last. */
void make_tree(Table &table, const Intervals &intervals, uint64_t flip)
{
	const size_t keys = intervals.starts.size() - 1;
	const auto key = [&](size_t at) {
		return (at < keys ? intervals.starts[at + 1] - 1 : ~uint64_t(0)) ^ flip;
	};
	size_t internal = 0, width = 1, levels = 0;
	for (; width * KEYS < keys; width *= ARITY, levels++)
		internal += width;
	const size_t leaves = keys == 0 ? 1 : (keys + KEYS - 1) / KEYS;
	const size_t bytes = (internal + leaves) * sizeof(Node);
	Node *nodes = reinterpret_cast<Node *>(map(table, 0, bytes));
	for (size_t leaf = 0; leaf < leaves; leaf++)
		for (unsigned j = 0; j < KEYS; j++)
			nodes[internal + leaf].keys[j] = key(leaf * KEYS + j);
	/* A separator is the least leaf key to its right. */
	size_t node = 0, below = width * KEYS;
	for (size_t level = 0, count = 1; level < levels; level++, count *= ARITY) {
		below /= ARITY;
		for (size_t at = 0; at < count; at++, node++)
			for (unsigned j = 0; j < KEYS; j++)
				nodes[node].keys[j] = key((at * ARITY + j + 1) * below);
	}
	table.nodes = nodes;
	table.levels = levels;
	table.internal = internal;
	table.bytes += bytes;
}

void make_values(Table &table, const Intervals &intervals)
{
	const std::vector<uint32_t> &values = intervals.values;
	bool fits = intervals.blocks.size() <= 1u << 15;
	for (uint32_t value : values)
		fits = fits && (value & BLOCK || value < 1u << 15);
	const auto up = [](size_t bytes) { return (bytes + 63) / 64 * 64; };
	const size_t value_bytes = up(values.size() * (fits ? sizeof(uint16_t) : sizeof(uint32_t)));
	const size_t block_bytes = up(intervals.blocks.size() * sizeof(Block));
	const size_t end_bytes = up(intervals.ends.size() * sizeof(uint64_t));
	const size_t bytes = value_bytes + block_bytes + end_bytes + intervals.ends.size() * sizeof(uint32_t);
	char *area = map(table, 1, bytes);
	const auto copy = [](void *to, const auto &from) {
		if (!from.empty())
			std::memcpy(to, from.data(), from.size() * sizeof(from[0]));
	};
	if (fits) {
		uint16_t *narrow = reinterpret_cast<uint16_t *>(area);
		for (size_t i = 0; i < values.size(); i++)
			narrow[i] = uint16_t(values[i]) | uint16_t(values[i] >> 16 & 0x8000);
		table.narrow = narrow;
	} else {
		copy(area, values);
		table.wide = reinterpret_cast<const uint32_t *>(area);
	}
	copy(area += value_bytes, intervals.blocks);
	table.blocks = reinterpret_cast<const Block *>(area);
	copy(area += block_bytes, intervals.ends);
	table.ends = reinterpret_cast<const uint64_t *>(area);
	copy(area += end_bytes, intervals.next_hops);
	table.next_hops = reinterpret_cast<const uint32_t *>(area);
	table.bytes += bytes;
}

} // namespace

extern "C" void fibula_plain_free(Table *table)
{
	for (unsigned i = 0; i < 2; i++)
		if (table->mapping[i] != nullptr)
			munmap(table->mapping[i], table->mapping_bytes[i]);
	delete table;
}

/* Builds the table of routes that are in order, with next hops below 2^31, for loops that take keys with the highest bit
 * flipped (1) or as they are (0). NULL where memory runs out. */
extern "C" Table *fibula_plain_build(const Route *routes, size_t count, uint32_t flipped)
{
	Table *table = nullptr;
	try {
		table = new Table();
		const Intervals intervals(ranges_of(routes, count));
		make_tree(*table, intervals, uint64_t(flipped) << 63);
		make_values(*table, intervals);
		return table;
	} catch (const std::exception &) {
		if (table != nullptr)
			fibula_plain_free(table);
		return nullptr;
	}
}

/* Bytes that lookups can touch, and bytes that the system has mapped. */
extern "C" void fibula_plain_bytes(const Table *table, size_t *lookup, size_t *mapped)
{
	*lookup = table->bytes;
	*mapped = table->mapping_bytes[0] + table->mapping_bytes[1];
}
