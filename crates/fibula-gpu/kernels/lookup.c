// Lookups on a coprocessor: one function for each structure, one work item a key.
//
// CUDA C and OpenCL C at once. `make` in this folder says how clang compiles it to PTX; OpenCL compiles it when a device is opened.
//
// An image is what a table is on the device: a header, then the arrays of the structure as they are in memory.
//
//   header   8 pairs: where an array begins, and its last index, in words from the beginning of the image
//            then the numbers of the structure, in the order of `src/engine.rs`
//   arrays   of words of 32 bits, each from a multiple of 16 words on
//
// Every index is clamped to its array and every loop has a bound, so that an image of any content ends with some answer and
// reads nothing outside itself. An answer is a next hop, 0 for no route.

#ifdef __OPENCL_C_VERSION__

#define GLOBAL __global
#define ENTRY(name)                                                                                                    \
    __kernel void name(GLOBAL const uint *restrict arena, GLOBAL const uint *restrict bases, uint keys_a_base,         \
                       GLOBAL const uint *restrict keys, GLOBAL uint *restrict results, uint count)
#define ITEM ((uint)get_global_id(0))
#define ONES(word) popcount((uint)(word))
#define LONG_ONES(word) ((uint)popcount((ulong)(word)))

#elif defined(__CUDA__)

typedef unsigned int uint;
typedef unsigned long ulong;
#define GLOBAL
#define ENTRY(name)                                                                                                    \
    extern "C" __attribute__((global)) void name(                                                             \
        const uint *__restrict__ arena, const uint *__restrict__ bases, uint keys_a_base,                              \
        const uint *__restrict__ keys, uint *__restrict__ results, uint count)
#define ITEM (__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x())
#define ONES(word) ((uint)__builtin_popcount(word))
#define LONG_ONES(word) ((uint)__builtin_popcountl(word))
// Functions of the device, all of which become part of their callers.
#define inline __attribute__((device, always_inline)) inline

#else // Plain C, for tests: whoever includes this sets the number of the work item.

typedef unsigned int uint;
typedef unsigned long ulong;
#define GLOBAL
#define ENTRY(name)                                                                                                    \
    static void name(const uint *arena, const uint *bases, uint keys_a_base, const uint *keys, uint *results, uint count)
#define ITEM work_item
#define ONES(word) ((uint)__builtin_popcount(word))
#define LONG_ONES(word) ((uint)__builtin_popcountl(word))

#endif

typedef GLOBAL const uint *Image;

// Where the numbers of a structure begin in its header.
#define NUMBERS 16
// Words of a level of Bloom filters.
#define LEVEL_WORDS 15

static inline uint least(uint a, uint b) { return a < b ? a : b; }

// Returns a number of the structure.
static inline uint number(Image image, uint at) { return image[NUMBERS + at]; }

// Returns a word of an array, the last one past its end.
static inline uint word(Image image, uint array, uint at) {
    return image[image[2 * array] + least(at, image[2 * array + 1])];
}

// Returns a half of a word of an array, the lower ones first.
static inline uint half_word(Image image, uint array, uint at) {
    return word(image, array, at / 2) >> (16 * (at % 2)) & 0xffff;
}

// Returns two words as one of 64 bits.
static inline ulong long_word(Image image, uint array, uint at) {
    return (ulong)word(image, array, 2 * at + 1) << 32 | word(image, array, 2 * at);
}

// Returns the value of all ones of a width: 8, 16 or 32 bits.
static inline uint width_mask(uint width) { return 0xffffffffu >> (32 - (8u << least(width, 2))); }

// Returns the value of 8, 16 or 32 bits at a byte of an array.
static inline uint value(Image image, uint array, uint byte, uint width) {
    return word(image, array, byte / 4) >> (8 * (byte % 4)) & width_mask(width);
}

// Returns so many bits of a key that is aligned to the left, from one on. There is at least one.
static inline uint window(uint key, uint from, uint bits) { return key << (from & 31) >> ((32 - bits) & 31); }

// A key of 128 bits, aligned to the left.
typedef struct {
    ulong high, low;
} Wide;

static inline ulong long_shift(ulong bits, uint by) { return by < 64 ? bits >> by : 0; }

// Returns a key shifted to the right.
static inline Wide shifted(Wide key, uint by) {
    Wide all;
    if (by == 0) {
        return key;
    }
    all.high = long_shift(key.high, by);
    all.low = by < 64 ? key.low >> by | key.high << (64 - by) : long_shift(key.high, by - 64);
    return all;
}

// Returns the first bits of a key, zeros after them.
static inline Wide masked(Wide key, uint len) {
    Wide all;
    all.high = len == 0 ? 0 : len < 64 ? key.high >> (64 - len) << (64 - len) : key.high;
    all.low = len <= 64 ? 0 : len < 128 ? key.low >> (128 - len) << (128 - len) : key.low;
    return all;
}

// DIR-24-8: codes of the first table, or segments of codes, and a dictionary.
//   arrays: 0 first, 1 segments, 2 next hops; numbers: 0 direct bits, 1 rest bits, 2 whether there is a dictionary

static inline uint find_dir_24_8(Image image, uint key) {
    uint direct_bits = number(image, 0), rest_bits = number(image, 1);
    uint code = half_word(image, 0, window(key, 0, direct_bits));
    if (code >> 15) {
        code = half_word(image, 1, (code & 0x7fff) << rest_bits | window(key, direct_bits, rest_bits));
    }
    return number(image, 2) ? word(image, 2, code) : code;
}

// What slots lead to that have several answers: a map of 24 slots a word, records, and chunks of many changes.

static inline uint rank_in_map(uint map, uint bit) { return (map >> 24) + ONES(map & (0xffffffu >> ((23 - bit) & 31))); }

static inline uint overflow(Image image, uint area, uint map, uint slot, uint rest, uint rest_bits) {
    uint at = map - 2 * rank_in_map(word(image, area, map + slot / 24), slot % 24);
    uint most = word(image, area, at), other = word(image, area, at + 1);
    if (most >> 31 == 0) {
        return ((most & 0xff) <= rest && rest <= (other & 0xff) ? other : most) >> 8;
    }
    uint shift = most >> 28 & 7, width = most >> 26 & 3, offset = most & 0x3ffffff;
    uint head = word(image, area, offset), rank = 0, values = offset + 1;
    if (shift == 7) {
        for (uint byte = 0; byte < 4; byte++) {
            rank += (head >> (8 * byte) & 0xff) < rest;
        }
    } else {
        slot = rest >> shift;
        rank = rank_in_map(word(image, area, offset + slot / 24), slot % 24);
        values = offset + ((1u << rest_bits >> shift) + 23) / 24;
        values += values == offset;
    }
    return value(image, area, 4 * values + (rank << width), width);
}

// Lines of values below a direct table (dir-18-lines).
//   arrays: 0 direct, 1 lines, 2 maps, 3 below; numbers: 0 direct bits, 1 slot bits, 2 rest bits, 3 width

static inline uint find_dir_18_lines(Image image, uint key) {
    uint direct_bits = number(image, 0), slot_bits = number(image, 1), width = number(image, 3);
    uint slot = window(key, direct_bits, slot_bits);
    uint place = word(image, 0, window(key, 0, direct_bits)) + (slot << width);
    uint found = value(image, 1, place, width);
    if (found != width_mask(width)) {
        return found;
    }
    uint rest_bits = number(image, 2), rest = window(key, direct_bits + slot_bits, rest_bits);
    // A line has a value a slot, and a word at least.
    uint line = place >> (slot_bits + width < 2 ? 2 : slot_bits + width);
    return overflow(image, 3, word(image, 2, line), slot, rest, rest_bits);
}

// Bitmaps below a direct table (dir-17-bitmap).
//   arrays: 0 direct, 1 units; numbers: 0 direct bits, 1 slot bits, 2 rest bits, 3 step

static inline uint ones_up_to(ulong map, uint bit) { return LONG_ONES(map << ((63 - bit) & 63)); }

static inline uint find_listed(Image image, uint begin, uint rest, uint rest_bits, uint kind) {
    uint rank = 0, width = kind & 3, words = 1;
    if (kind & 4) {
        ulong before = long_word(image, 1, begin);
        for (uint byte = 0; byte < 8; byte++) {
            rank += (uint)(before >> (8 * byte) & 0xff) < rest;
        }
    } else {
        words = rest_bits > 6 ? 1u << (rest_bits - 6) : 1;
        for (uint at = 0; at <= rest / 64; at++) {
            rank += ones_up_to(long_word(image, 1, begin + at), at == rest / 64 ? rest % 64 : 63);
        }
    }
    return value(image, 1, 8 * (begin + words) + (rank << width), width);
}

static inline uint find_dir_17_bitmap(Image image, uint key) {
    uint direct_bits = number(image, 0), slot_bits = number(image, 1), rest_bits = number(image, 2);
    uint entry = word(image, 0, window(key, 0, direct_bits));
    uint second = window(key, direct_bits, 1), width = entry & 3;
    // Of keys with few bits, a half has one slot.
    uint slot = slot_bits ? window(key, direct_bits + 1, slot_bits) : 0;
    uint place = (entry >> 4 & 0x3fffff) << number(image, 3);
    uint at = place + (second ? entry >> 26 : 0);
    uint rank = entry >> (2 + second) & 1 ? 0 : ones_up_to(long_word(image, 1, at), slot);
    uint found = value(image, 1, 8 * (at + 1) + (rank << width), width);
    if (found != width_mask(width)) {
        return found;
    }
    uint before = ones_up_to(long_word(image, 1, place - 1), second ? 63 : slot);
    if (second) {
        before += ones_up_to(long_word(image, 1, place - 2), slot);
    }
    ulong record = long_word(image, 1, place - 2 - before);
    uint rest = window(key, direct_bits + 1 + slot_bits, rest_bits), most = (uint)record, other = (uint)(record >> 32);
    if (most >> 31) {
        return find_listed(image, place - (most & 0x7fffffff), rest, rest_bits, other);
    }
    return ((most & 0xff) <= rest && rest <= (other & 0xff) ? other : most) >> 8;
}

// A tree of ranges (range-btree).
//   arrays: 0 nodes, 1 where levels begin; numbers: 0 width, 1 levels, 2 nodes of few ranges, 0 for a tree

// Advances past the last addresses below a key, of twice `by` less one from `first` on.
static inline uint halved(Image image, uint first, uint at, uint key, uint by) {
    for (; by; by /= 2) {
        at += word(image, 0, first + at + by - 1) < key ? by : 0;
    }
    return at;
}

static inline uint find_range_btree(Image image, uint key) {
    uint width = number(image, 0), levels = number(image, 1), few = number(image, 2);
    if (few) {
        return word(image, 0, 8 * few + halved(image, 0, 0, key, 4 * few));
    }
    uint at = halved(image, 0, 0, key, 16), first = 4;
    for (uint level = 0; level < least(levels, 9); level++) {
        at = halved(image, 8 * first, 8 * at, key, 4);
        first = word(image, 1, level + 1);
    }
    uint leaf = 8 * (first + at), lasts = width == 0 ? 6 : width == 1 ? 5 : 3, rank = 0;
    for (uint last = 0; last < lasts; last++) {
        rank += word(image, 0, leaf + last) < key;
    }
    return value(image, 0, 4 * (leaf + lasts) + (rank << width), width);
}

// Direct tables, then a tree of two levels (dir-btree).
//   arrays: 0 tables, 1 lines, 2 objects; numbers: 0 first bits, 1 upper bits, 2 key bits

// Counts the words of a line, which ascend, that are below a key: as signed numbers.
static inline uint rank_in_line(Image image, uint at, uint key, uint count) {
    uint rank = 0;
    for (uint by = 8; by; by /= 2) {
        rank += rank + by <= count && (int)word(image, 1, at + rank + by - 1) < (int)key ? by : 0;
    }
    // Of sixteen, the last one is left.
    return rank + (rank == 15 && count == 16 && (int)word(image, 1, at + 15) < (int)key);
}

static inline uint find_in_record(Image image, uint at, uint count, uint around, Wide lower) {
    uint found = around;
    for (uint prefix = 0; prefix < least(count, 8); prefix++, at += 4) {
        ulong last = (ulong)word(image, 2, at + 1) << 32 | word(image, 2, at);
        uint rest = word(image, 2, at + 2);
        ulong differs = (lower.low ^ last) >> (rest >> 16 & 63) >> (rest >> 22 & 63);
        uint before = ((uint)lower.high ^ (rest & 0xffff)) >> (rest >> 28);
        found = (differs | before) == 0 ? word(image, 2, at + 3) : found;
    }
    return found;
}

static inline uint find_in_block(Image image, uint first, uint count, Wide lower) {
    uint from = 0, to = count ? count - 1 : 0;
    for (uint round = 0; round < 32 && from < to; round++) {
        uint middle = from + (to - from) / 2, at = 2 * first + 4 * middle;
        ulong high = word(image, 2, at + 2), low = (ulong)word(image, 2, at + 1) << 32 | word(image, 2, at);
        if (high < lower.high || (high == lower.high && low < lower.low)) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return word(image, 2, 2 * first + 4 * from + 3);
}

static inline uint find_dir_btree(Image image, Wide key) {
    uint first_bits = number(image, 0), upper_bits = number(image, 1), key_bits = number(image, 2);
    ulong upper = key.high >> ((64 - upper_bits) & 63);
    uint head = upper_bits > 32 ? (uint)(upper >> (upper_bits - 32)) : (uint)(upper << (32 - upper_bits));
    uint bits = (uint)upper;
    // Of an entry, only the lowest bits are the shift.
    uint entry = word(image, 0, head >> ((32 - first_bits) & 31));
    entry = word(image, 0, entry + (head >> (entry & 31)));
    entry = word(image, 0, entry + (bits >> (entry & 31)));
    uint tree = 2 * word(image, 0, entry + (bits >> (entry & 31)));
    uint leaf = tree + 16 + 16 * rank_in_line(image, tree, bits, 16);
    uint found = half_word(image, 1, 2 * leaf + 20 + rank_in_line(image, leaf, bits, 10));
    if (found >> 15 == 0) {
        return found;
    }
    uint object = 2 * ((half_word(image, 1, 2 * leaf + 31) << 14) + (found & 0x7fff));
    uint kind = word(image, 2, object), second = word(image, 2, object + 1);
    // The bits after the upper ones, aligned to the right.
    Wide lower = shifted(key, 128 - key_bits);
    uint open = key_bits - upper_bits;
    lower.high = open <= 64 ? 0 : lower.high & ((1ul << (open - 64)) - 1);
    lower.low = open < 64 ? lower.low & ((1ul << open) - 1) : lower.low;
    return kind & 3 ? find_in_block(image, second, kind >> 2, lower)
                    : find_in_record(image, object + 2, kind >> 2, second, lower);
}

// Bloom filters before hash tables (bloomfwd).
//   arrays: 0 levels, 1 the direct table, 2 all else; numbers: 0 levels, 1 direct bits, 2 and 3 hash of filters and tables
//   a level: 0 length, 1 stored bits, 2 hashes, 3 to 6 the divisor of bits, 7 to 10 that of buckets, then places in array 2:
//   11 bits, 12 heads, 13 entries; 14 number of entries

// Returns a remainder by a divisor of four words.
static inline uint remainder_by(Image image, uint at, uint dividend) {
    uint size = word(image, 0, at), magic = word(image, 0, at + 1);
    uint high = (uint)((ulong)magic * dividend >> 32);
    uint quotient = (high + ((dividend - high) >> (word(image, 0, at + 2) & 31))) >> (word(image, 0, at + 3) & 31);
    return dividend - quotient * size;
}

static inline uint hash32(uint kind, uint key, uint second) {
    uint c0 = 0x045d9f3b, c1 = 0x045d9f3b, shift = 16;
    if (kind == 1) {
        return key * (second ? 2246822519u : 2654435761u);
    }
    if (kind == 0) {
        c0 = 0x85ebca6b, c1 = 0xc2b2ae35, shift = 13;
    }
    key ^= second ? 0x9e3779b9 : 0;
    key = (key ^ key >> 16) * c0;
    key = (key ^ key >> shift) * c1;
    return key ^ key >> 16;
}

static inline ulong hash64(ulong key) {
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdul;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53ul;
    return key ^ key >> 33;
}

// Returns the next hop of a masked key of one, two or four words in a level.
static inline uint find_in_level(Image image, uint level, Wide key) {
    uint stored_bits = word(image, 0, level + 1), hashes = word(image, 0, level + 2), next, step, bucket;
    if (stored_bits == 32) {
        uint filter = number(image, 2), table = number(image, 3), bits = (uint)(key.high >> 32);
        next = hash32(filter, bits, 0), step = hash32(filter, bits, 1);
        bucket = filter == table ? next : hash32(table, bits, 0);
    } else {
        ulong mixed = hash64(stored_bits == 64 ? key.high : key.high ^ hash64(key.low));
        next = (uint)mixed, step = (uint)(mixed >> 32), bucket = next;
    }
    uint filter_at = word(image, 0, level + 11);
    for (uint round = 0; round < hashes; round++, next += step) {
        uint at = remainder_by(image, level + 3, next);
        if ((word(image, 2, filter_at + at / 32) >> (at % 32) & 1) == 0) {
            return 0;
        }
    }
    uint words = stored_bits / 32, size = words + 2, entries = word(image, 0, level + 13), count = word(image, 0, level + 14);
    uint at = word(image, 2, word(image, 0, level + 12) + remainder_by(image, level + 7, bucket));
    // As many steps as there are entries, should a chain not end.
    for (uint steps = 0; steps < count && at < count; steps++) {
        uint entry = entries + at * size;
        uint same = word(image, 2, entry) == (uint)(key.high >> 32);
        if (words > 1) {
            same &= word(image, 2, entry + 1) == (uint)key.high;
        }
        if (words > 2) {
            same &= word(image, 2, entry + 2) == (uint)(key.low >> 32);
            same &= word(image, 2, entry + 3) == (uint)key.low;
        }
        if (same) {
            return word(image, 2, entry + words);
        }
        at = word(image, 2, entry + words + 1);
    }
    return 0;
}

static inline uint find_bloomfwd(Image image, Wide key) {
    uint levels = number(image, 0), direct_bits = number(image, 1);
    for (uint level = 0; level < least(levels, 256); level++) {
        uint found = find_in_level(image, LEVEL_WORDS * level, masked(key, word(image, 0, LEVEL_WORDS * level)));
        if (found) {
            return found;
        }
    }
    return word(image, 1, direct_bits ? (uint)(key.high >> (64 - direct_bits)) : 0);
}

// The functions that a host launches. Keys of IPv4 are one word, others four, the lowest first; both are aligned to the left.

static inline Image image_of(Image arena, Image bases, uint keys_a_base, uint item) {
    return arena + bases[keys_a_base ? item / keys_a_base : 0];
}

static inline Wide wide_key(Image keys, uint item) {
    Wide key;
    key.low = (ulong)keys[4 * (ulong)item + 1] << 32 | keys[4 * (ulong)item];
    key.high = (ulong)keys[4 * (ulong)item + 3] << 32 | keys[4 * (ulong)item + 2];
    return key;
}

#define NARROW_ENTRY(structure)                                                                                        \
    ENTRY(structure) {                                                                                                 \
        uint item = ITEM;                                                                                              \
        if (item < count) {                                                                                            \
            results[item] = find_##structure(image_of(arena, bases, keys_a_base, item), keys[item]);                   \
        }                                                                                                              \
    }

#define WIDE_ENTRY(structure)                                                                                          \
    ENTRY(structure) {                                                                                                 \
        uint item = ITEM;                                                                                              \
        if (item < count) {                                                                                            \
            results[item] = find_##structure(image_of(arena, bases, keys_a_base, item), wide_key(keys, item));         \
        }                                                                                                              \
    }

NARROW_ENTRY(dir_24_8)
NARROW_ENTRY(dir_18_lines)
NARROW_ENTRY(dir_17_bitmap)
NARROW_ENTRY(range_btree)
WIDE_ENTRY(dir_btree)
WIDE_ENTRY(bloomfwd)

ENTRY(bloomfwd_narrow) {
    uint item = ITEM;
    if (item < count) {
        Wide key;
        key.high = (ulong)keys[item] << 32, key.low = 0;
        results[item] = find_bloomfwd(image_of(arena, bases, keys_a_base, item), key);
    }
}
