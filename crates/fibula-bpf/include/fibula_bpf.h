/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * Longest-prefix match in BPF programs, from maps that `fibula bpf load` fills and `fibula bpf follow` keeps.
 *
 *     #include <fibula_bpf.h>
 *
 *     FIBULA_IPV4(routes);                                   // the maps routes_h and routes_0 to routes_3
 *     __u32 id = fibula_ipv4_lookup(&routes, bpf_ntohl(ip->daddr));      // 0: no route
 *
 *     FIBULA_IPV6(routes6);
 *     __u32 id6 = fibula_ipv6_lookup(&routes6, high, low);   // the two halves of the address, in host order
 *
 * The loader of the program takes the maps from the pins: fibula_bpf_load.h does it for libbpf. A program that was compiled
 * for another family, engine, layout or room has maps of other sizes, and loaders refuse it.
 *
 * Before the include, a program may choose:
 *   FIBULA_IPV4_ENGINE   FIBULA_DIR_18_LINES (fastest) or FIBULA_DIR_17_BITMAP (a third of the memory)
 *   FIBULA_IPV4_ROOM_0   binary logarithms of the bytes of an array; `fibula bpf header --pin DIR` prints those of a table.
 *   ... FIBULA_IPV6_ROOM_2
 *   FIBULA_ARENA         the words are in an arena (`fibula bpf load --arena`): clang 19 and Linux 6.9. Rooms say nothing then. The
 *                        kernel gives a program one arena at most, so that it has one such table.
 *
 * Programs need clang 14, and Linux 5.6 for functions that are verified by themselves. For a program of one lookup, the verifier of
 * 6.18 looks at 597 instructions (dir-18-lines), 5,732 (dir-17-bitmap) or 9,817 (dir-btree), most of them in those functions. In a
 * sleepable program, a lookup must be between bpf_rcu_read_lock() and bpf_rcu_read_unlock().
 *
 * Without a BPF target this is plain C, for tests.
 */
#ifndef FIBULA_BPF_H
#define FIBULA_BPF_H

#include <linux/types.h>

/* The layout of the maps. Another layout has another number, and header maps of other sizes. */
#ifndef FIBULA_BPF_LAYOUT
#define FIBULA_BPF_LAYOUT 1
#endif
#define FIBULA_BPF_MAGIC 0x62696675

#define FIBULA_DIR_18_LINES 1
#define FIBULA_DIR_17_BITMAP 2
#define FIBULA_DIR_BTREE 3

#ifndef FIBULA_IPV4_ENGINE
#define FIBULA_IPV4_ENGINE FIBULA_DIR_18_LINES
#endif

#if FIBULA_IPV4_ENGINE == FIBULA_DIR_18_LINES
/* Entries, lines, places of maps, and what is below lines. */
#ifndef FIBULA_IPV4_ROOM_0
#define FIBULA_IPV4_ROOM_0 20
#endif
#ifndef FIBULA_IPV4_ROOM_1
#define FIBULA_IPV4_ROOM_1 23
#endif
#ifndef FIBULA_IPV4_ROOM_2
#define FIBULA_IPV4_ROOM_2 19
#endif
#ifndef FIBULA_IPV4_ROOM_3
#define FIBULA_IPV4_ROOM_3 22
#endif
#elif FIBULA_IPV4_ENGINE == FIBULA_DIR_17_BITMAP
/* Entries and units. The engine has no other arrays. */
#ifndef FIBULA_IPV4_ROOM_0
#define FIBULA_IPV4_ROOM_0 19
#endif
#ifndef FIBULA_IPV4_ROOM_1
#define FIBULA_IPV4_ROOM_1 22
#endif
#else
#error "FIBULA_IPV4_ENGINE is FIBULA_DIR_18_LINES or FIBULA_DIR_17_BITMAP"
#endif

/* Tables, lines and objects. */
#ifndef FIBULA_IPV6_ROOM_0
#define FIBULA_IPV6_ROOM_0 21
#endif
#ifndef FIBULA_IPV6_ROOM_1
#define FIBULA_IPV6_ROOM_1 22
#endif
#ifndef FIBULA_IPV6_ROOM_2
#define FIBULA_IPV6_ROOM_2 21
#endif

/* The header map, whose size names layout, engine and whether the words are in an arena. */
#ifdef FIBULA_ARENA
#define FIBULA_HEADER_BYTES(engine) (1024 * FIBULA_BPF_LAYOUT + 16 * (engine) + 8)
#else
#define FIBULA_HEADER_BYTES(engine) (1024 * FIBULA_BPF_LAYOUT + 16 * (engine))
#endif
/* The word of it that lookups read. Bit N: which half of array N holds the words. From bit 8 on: the number by which they are
 * read, which is the width of values (dir-18-lines), the step of places (dir-17-bitmap), or the bits of the first table
 * (dir-btree). One store changes all of it, so a lookup sees the old words or the new ones. */
#define FIBULA_STATE 2

#ifdef __bpf__
#define FIBULA_RARE __attribute__((noinline))
#else
#define FIBULA_RARE static __attribute__((noinline, unused))
#endif
#define FIBULA_INLINE static inline __attribute__((always_inline, unused))

/* An array: its map, and the binary logarithm of the bytes of a half. Both are known when a program is compiled. */
struct fibula_array {
    void *map;
    __u32 room;
};

/* The words of an array, while a program reads them. */
#ifdef FIBULA_ARENA
struct fibula_words {
    __u32 at;
};
#else
struct fibula_words {
    const volatile unsigned char *at;
    __u32 room;
};
#endif

struct fibula_ipv4 {
    void *header;
    struct fibula_array array[4];
    __u32 (*rare)(__u32 key, __u32 place, __u32 state);
};

struct fibula_ipv6 {
    void *header;
    struct fibula_array array[3];
    __u32 (*rare)(__u64 high, __u64 low, __u32 leaf, __u32 value, __u32 state);
};

/* Returns the memory of a map of one entry. For such a map the kernel makes the call some instructions of the program. */
FIBULA_INLINE const volatile unsigned char *fibula_memory(void *map) {
#ifdef __bpf__
    static void *(*const lookup)(void *, const void *) = (void *)1;
    __u32 first = 0;
    return (const volatile unsigned char *)lookup(map, &first);
#else
    return (const volatile unsigned char *)map;
#endif
}

/* Which half of an array is in use. Measurements replace it, to see what it costs. */
#ifndef FIBULA_HALF
#define FIBULA_HALF(number, state) ((state) >> (number))
#endif

#ifdef FIBULA_ARENA

/* Array N is the 2^29 bytes from N * 2^29 on, and its second half begins in the middle. After four of them is the word that lookups
 * read in place of that of the header map, which a program has only to be refused where other maps are. An address has 32 bits, and cannot leave
 * the arena whatever the words say. A page that was never written reads as zeros. */
#define FIBULA_SPACE __attribute__((address_space(1)))

FIBULA_INLINE struct fibula_words fibula_words(struct fibula_array array) {
    struct fibula_words words = {0};
    (void)array;
    return words;
}

#define FIBULA_IS_THERE(words) 1

FIBULA_INLINE struct fibula_words fibula_in_use(struct fibula_words words, __u32 number, __u32 state) {
    words.at = number << 29 | (FIBULA_HALF(number, state) & 1) << 28;
    return words;
}

#define FIBULA_AT(words, byte, align) ((const volatile unsigned char FIBULA_SPACE *)(__u64)((words).at + (__u32)(byte)))

FIBULA_INLINE const volatile __u32 FIBULA_SPACE *fibula_header(void *map) {
    (void)map;
    return (const volatile __u32 FIBULA_SPACE *)(4ull << 29);
}

#else

#define FIBULA_SPACE

FIBULA_INLINE struct fibula_words fibula_words(struct fibula_array array) {
    struct fibula_words words = {fibula_memory(array.map), array.room};
    return words;
}

#define FIBULA_IS_THERE(words) ((words).at != 0)

/* Returns the words of the half that is in use. The compiler does not join this with the place of a word, for which the verifier of
 * Linux 6.1 would lose the bound: it knows none of two numbers that are joined by an `or`. */
FIBULA_INLINE struct fibula_words fibula_in_use(struct fibula_words words, __u32 number, __u32 state) {
    words.at += (__u64)(FIBULA_HALF(number, state) & 1) << words.room;
#ifdef __bpf__
    __asm__ volatile("" : "+r"(words.at));
#endif
    return words;
}

/* Returns the place of a byte: within the half whatever the words say, so that the verifier knows the bound, and words of any content
 * lead to no other memory. `align` is the size of the word. */
#define FIBULA_AT(words, byte, align) ((words).at + ((__u64)(byte) & ((1ull << (words).room) - (align))))

/* Returns the words of the header. */
FIBULA_INLINE const volatile __u32 *fibula_header(void *map) { return (const volatile __u32 *)fibula_memory(map); }

#endif

/* Returns the word of 32 bits at an index. */
#define FIBULA_WORD(words, index) (*(const volatile __u32 FIBULA_SPACE *)FIBULA_AT(words, (__u64)(index) << 2, 4))

/* Returns the word of 64 bits at an index. */
#define FIBULA_LONG(words, index) (*(const volatile __u64 FIBULA_SPACE *)FIBULA_AT(words, (__u64)(index) << 3, 8))


/* Returns the number of bits that are set. BPF has no instruction for it. */
FIBULA_INLINE __u32 fibula_ones(__u64 word) { return (__u32)__builtin_popcountll(word); }

/* Returns the value of all ones of a width: 8, 16 or 32 bits. */
FIBULA_INLINE __u32 fibula_width_mask(__u32 width) { return (__u32)(0xffffffffull >> ((32 - (8u << (width & 3))) & 63)); }

/* Returns `most` where a < b as signed numbers, else 0. Without a branch, because each branch of a search would double the paths
 * that the verifier follows. */
FIBULA_INLINE __u32 fibula_if_less(__u32 a, __u32 b, __u32 most) {
    return (__u32)((__s64)((__u64)(__s64)(__s32)a - (__u64)(__s64)(__s32)b) >> 63) & most;
}

/* dir-18-lines: an entry leads to a line of values; a value of all ones means that longer routes are below. */

FIBULA_INLINE __u32 fibula_rank_in_map(__u32 map, __u32 bit) {
    return (map >> 24) + fibula_ones(map & (0xffffffu >> ((23 - bit) & 31)));
}

FIBULA_INLINE __u32 fibula_below(struct fibula_words below, __u32 byte, __u32 width) {
    return FIBULA_WORD(below, byte >> 2) >> (8 * (byte & 3)) & fibula_width_mask(width);
}

FIBULA_INLINE __u32 fibula_lines_rare(struct fibula_words maps, struct fibula_words below, __u32 key, __u32 place, __u32 state) {
    __u32 width = state >> 8 & 3, slot = key >> 8 & (63u >> width), rest = key & 0xff;
    /* A line is 64 bytes. */
    __u32 map = FIBULA_WORD(maps, place >> 6);
    __u32 at = map - 2 * fibula_rank_in_map(FIBULA_WORD(below, map + slot / 24), slot % 24);
    __u32 most = FIBULA_WORD(below, at), other = FIBULA_WORD(below, at + 1);
    __u32 shift, offset, head, rank, values;
    if (most >> 31 == 0) {
        /* A record: one range has another answer. */
        return ((most & 0xff) <= rest && rest <= (other & 0xff) ? other : most) >> 8;
    }
    shift = most >> 28 & 7;
    width = most >> 26 & 3;
    offset = most & 0x3ffffff;
    head = FIBULA_WORD(below, offset);
    values = offset + 1;
    if (shift == 7) {
        /* A list of at most four changes. */
        rank = ((head & 0xff) < rest) + ((head >> 8 & 0xff) < rest) + ((head >> 16 & 0xff) < rest) + ((head >> 24) < rest);
    } else {
        slot = rest >> shift;
        rank = fibula_rank_in_map(FIBULA_WORD(below, offset + slot / 24), slot % 24);
        values = offset + ((256u >> shift) + 23) / 24;
    }
    return fibula_below(below, 4 * values + (rank << width), width);
}

FIBULA_INLINE __u32 fibula_lines_lookup(const struct fibula_ipv4 *table, __u32 key) {
    const volatile __u32 FIBULA_SPACE *header = fibula_header(table->header);
    struct fibula_words entries = fibula_words(table->array[0]), lines = fibula_words(table->array[1]);
    __u32 state, width, mask, place, value;
    if (!header || !FIBULA_IS_THERE(entries) || !FIBULA_IS_THERE(lines)) {
        return 0;
    }
    state = header[FIBULA_STATE];
    entries = fibula_in_use(entries, 0, state);
    lines = fibula_in_use(lines, 1, state);
    width = state >> 8 & 3;
    mask = fibula_width_mask(width);
    place = FIBULA_WORD(entries, key >> (14 - width)) + ((key >> 8 & (63u >> width)) << width);
    value = FIBULA_WORD(lines, place >> 2) >> (8 * (place & 3)) & mask;
    return value != mask ? value : table->rare(key, place, state);
}

/* dir-17-bitmap: an entry leads to a unit of two halves, each with a bitmap of changes and values. */

FIBULA_INLINE __u32 fibula_ones_up_to(__u64 map, __u32 bit) { return fibula_ones(map << ((63 - bit) & 63)); }

FIBULA_INLINE __u32 fibula_unit_value(struct fibula_words units, __u64 byte, __u32 width) {
    return (__u32)(FIBULA_LONG(units, byte >> 3) >> (8 * (byte & 7))) & fibula_width_mask(width);
}

FIBULA_INLINE __u32 fibula_bitmap_rare(struct fibula_words units, __u32 key, __u32 place) {
    __u32 slot = key >> 8 & 63, second = key >> 14 & 1, rest = key & 0xff;
    __u32 before = fibula_ones_up_to(FIBULA_LONG(units, (__u64)place - 1), second ? 63 : slot);
    __u64 other = FIBULA_LONG(units, (__u64)place - 2);
    __u64 record;
    __u32 most, least, begin, width, rank, words, at;
    before += second ? fibula_ones_up_to(other, slot) : 0;
    record = FIBULA_LONG(units, (__u64)place - 2 - before);
    most = (__u32)record;
    least = (__u32)(record >> 32);
    if (most >> 31 == 0) {
        return ((most & 0xff) <= rest && rest <= (least & 0xff) ? least : most) >> 8;
    }
    begin = place - (most & 0x7fffffff);
    width = least & 3;
    rank = 0;
    words = 1;
    if (least & 4) {
        __u64 list = FIBULA_LONG(units, begin);
        for (at = 0; at < 8; at++) {
            rank += ((list >> (8 * at)) & 0xff) < rest;
        }
    } else {
        words = 4;
        for (at = 0; at < 4; at++) {
            __u64 map = FIBULA_LONG(units, (__u64)begin + at);
            /* All of the words before that of the address, and a part of this one. */
            rank += rest >> 6 < at ? 0 : fibula_ones_up_to(map, rest >> 6 == at ? rest & 63 : 63);
        }
    }
    return fibula_unit_value(units, 8 * ((__u64)begin + words) + ((__u64)rank << width), width);
}

FIBULA_INLINE __u32 fibula_bitmap_lookup(const struct fibula_ipv4 *table, __u32 key) {
    const volatile __u32 FIBULA_SPACE *header = fibula_header(table->header);
    struct fibula_words entries = fibula_words(table->array[0]), units = fibula_words(table->array[1]);
    __u32 second = key >> 14 & 1, slot = key >> 8 & 63, state, entry, width, mask, place, at, rank, value;
    __u64 map;
    if (!header || !FIBULA_IS_THERE(entries) || !FIBULA_IS_THERE(units)) {
        return 0;
    }
    state = header[FIBULA_STATE];
    entries = fibula_in_use(entries, 0, state);
    units = fibula_in_use(units, 1, state);
    entry = FIBULA_WORD(entries, key >> 15);
    width = entry & 3;
    mask = fibula_width_mask(width);
    place = (entry >> 4 & 0x3fffff) << (state >> 8 & 7);
    at = place + ((entry >> 26) & (0 - second));
    /* A half of one value has no bits to count. */
    map = FIBULA_LONG(units, at) & ((__u64)(entry >> (2 + second) & 1) - 1);
    rank = fibula_ones_up_to(map, slot);
    value = fibula_unit_value(units, 8 * ((__u64)at + 1) + ((__u64)rank << width), width);
    return value != mask ? value : table->rare(key, place, state);
}

/* dir-btree: tables, then a tree of an inner line and leaves, by the first 48 bits; objects for the other 80. */

/* Returns the number of the first `count` words of a line that are below a key, of 16 or 10. */
FIBULA_INLINE __u32 fibula_rank_in_line(struct fibula_words lines, __u32 line, __u32 key, int is_leaf) {
    __u32 rank = fibula_if_less(FIBULA_WORD(lines, line + (is_leaf ? 4 : 7)), key, is_leaf ? 5 : 8);
    rank += fibula_if_less(FIBULA_WORD(lines, line + rank + (is_leaf ? 1 : 3)), key, is_leaf ? 2 : 4);
    rank += fibula_if_less(FIBULA_WORD(lines, line + rank + (is_leaf ? 0 : 1)), key, is_leaf ? 1 : 2);
    rank += fibula_if_less(FIBULA_WORD(lines, line + rank), key, 1);
    return rank + fibula_if_less(FIBULA_WORD(lines, line + rank), key, 1);
}

FIBULA_INLINE __u32 fibula_half(struct fibula_words lines, __u32 line, __u32 half) {
    return FIBULA_WORD(lines, line + (half >> 1)) >> (16 * (half & 1)) & 0xffff;
}

FIBULA_INLINE __u64 fibula_object_long(struct fibula_words objects, __u32 at) {
    return (__u64)FIBULA_WORD(objects, at + 1) << 32 | FIBULA_WORD(objects, at);
}

FIBULA_INLINE __u32 fibula_btree_rare(struct fibula_words lines, struct fibula_words objects, __u64 high, __u64 low,
                                      __u32 leaf, __u32 value) {
    __u32 object = 2 * ((fibula_half(lines, leaf, 31) << 14) + (value & 0x7fff));
    __u32 kind = FIBULA_WORD(objects, object), second = FIBULA_WORD(objects, object + 1);
    __u32 count = kind >> 2, at, round;
    if ((kind & 3) == 0) {
        /* A record: a next hop, and prefixes with next hops of their own, the longest last. */
        __u32 found = second;
        for (round = 0; round < 8; round++) {
            __u32 rest, before;
            __u64 differs;
            if (round >= count) {
                break;
            }
            at = object + 2 + 4 * round;
            rest = FIBULA_WORD(objects, at + 2);
            differs = (low ^ fibula_object_long(objects, at)) >> (rest >> 16 & 63) >> (rest >> 22 & 63);
            before = ((__u32)(high & 0xffff) ^ (rest & 0xffff)) >> (rest >> 28);
            if ((differs | before) == 0) {
                found = FIBULA_WORD(objects, at + 3);
            }
        }
        return found;
    }
    {
        /* A block: ranges in order, each by its last address. */
        __u32 from = 0, to = count ? count - 1 : 0;
        for (round = 0; round < 32; round++) {
            __u32 middle, last_high;
            __u64 last_low;
            if (from >= to) {
                break;
            }
            middle = from + (to - from) / 2;
            at = 2 * second + 4 * middle;
            last_high = FIBULA_WORD(objects, at + 2);
            last_low = fibula_object_long(objects, at);
            if (last_high < (high & 0xffff) || (last_high == (high & 0xffff) && last_low < low)) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return FIBULA_WORD(objects, 2 * second + 4 * from + 3);
    }
}

/* Returns the next hop of an address, 0 for no route. Both halves are in host order. */
FIBULA_INLINE __u32 fibula_ipv6_lookup(const struct fibula_ipv6 *table, __u64 high, __u64 low) {
    const volatile __u32 FIBULA_SPACE *header = fibula_header(table->header);
    struct fibula_words tables = fibula_words(table->array[0]), lines = fibula_words(table->array[1]);
    __u32 head = (__u32)(high >> 32), window = (__u32)(high >> 16), state, entry, tree, leaf, value;
    if (!header || !FIBULA_IS_THERE(tables) || !FIBULA_IS_THERE(lines)) {
        return 0;
    }
    state = header[FIBULA_STATE];
    tables = fibula_in_use(tables, 0, state);
    lines = fibula_in_use(lines, 1, state);
    entry = FIBULA_WORD(tables, (__u64)head >> ((32 - (state >> 8 & 31)) & 63));
    /* Of an entry, only the lowest bits are the shift. */
    entry = FIBULA_WORD(tables, entry + (head >> (entry & 31)));
    entry = FIBULA_WORD(tables, entry + (window >> (entry & 31)));
    tree = 2 * FIBULA_WORD(tables, entry + (window >> (entry & 31)));
    leaf = tree + 16 + 16 * fibula_rank_in_line(lines, tree, window, 0);
    value = fibula_half(lines, leaf, 20 + fibula_rank_in_line(lines, leaf, window, 1));
    return value >> 15 == 0 ? value : table->rare(high, low, leaf, value, state);
}

/* The maps of a table, and the handle that lookups take. The handle is a constant, and no memory of the program. What few
 * addresses need is a function of its own, which the verifier looks at once whatever calls it. */
#ifdef __bpf__
/* A map of one entry, which user space can map. The numbers of `.maps` are sizes of arrays, as libbpf reads them. */
#define FIBULA_MAP(name, bytes)                                                                                        \
    struct {                                                                                                           \
        int (*type)[2]; /* BPF_MAP_TYPE_ARRAY */                                                                       \
        int (*max_entries)[1];                                                                                         \
        int (*key_size)[4];                                                                                            \
        int (*value_size)[bytes];                                                                                      \
        int (*map_flags)[1024]; /* BPF_F_MMAPABLE */                                                                   \
    } name __attribute__((section(".maps"), used))
#else
#define FIBULA_MAP(name, bytes) unsigned char name[bytes] __attribute__((aligned(64), weak))
#endif

#ifdef FIBULA_ARENA
/* All is in one map of 2^19 pages and one, which take memory when they are written. */
#define FIBULA_HEADER(name, engine)                                                                                    \
    FIBULA_MAP(name##_h, FIBULA_HEADER_BYTES(engine));                                                                 \
    struct {                                                                                                           \
        int (*type)[33]; /* BPF_MAP_TYPE_ARENA */                                                                      \
        int (*max_entries)[(1 << 19) + 1];                                                                                  \
        int (*map_flags)[1024]; /* BPF_F_MMAPABLE */                                                                   \
    } name##_a __attribute__((section(".maps"), used))
#define FIBULA_ARRAY(name, number, room) _Static_assert((number) < 4, "an arena has four arrays")
#define FIBULA_OF(name, number, room) {0, 0}
/* The kernel finds a program's arena by an instruction that names it, wherever that is. */
#define FIBULA_NAMES(name) __asm__ volatile("" : : "r"(&name##_a))
#else
#define FIBULA_HEADER(name, engine) FIBULA_MAP(name##_h, FIBULA_HEADER_BYTES(engine))
#define FIBULA_ARRAY(name, number, room) FIBULA_MAP(name##_##number, 2ull << (room))
#define FIBULA_OF(name, number, room) {(void *)&name##_##number, room}
#define FIBULA_NAMES(name) (void)0
#endif

/* Returns the next hop of an address in host order, 0 for no route. */
FIBULA_INLINE __u32 fibula_ipv4_lookup(const struct fibula_ipv4 *table, __u32 address) {
#if FIBULA_IPV4_ENGINE == FIBULA_DIR_18_LINES
    return fibula_lines_lookup(table, address);
#else
    return fibula_bitmap_lookup(table, address);
#endif
}

#if FIBULA_IPV4_ENGINE == FIBULA_DIR_18_LINES

#define FIBULA_IPV4(name)                                                                                              \
    FIBULA_HEADER(name, FIBULA_DIR_18_LINES);                                                                          \
    FIBULA_ARRAY(name, 0, FIBULA_IPV4_ROOM_0);                                                                         \
    FIBULA_ARRAY(name, 1, FIBULA_IPV4_ROOM_1);                                                                         \
    FIBULA_ARRAY(name, 2, FIBULA_IPV4_ROOM_2);                                                                         \
    FIBULA_ARRAY(name, 3, FIBULA_IPV4_ROOM_3);                                                                         \
    FIBULA_RARE __u32 name##_rare(__u32 key, __u32 place, __u32 state) {                                               \
        const struct fibula_array of_maps = FIBULA_OF(name, 2, FIBULA_IPV4_ROOM_2);                                    \
        struct fibula_words maps = fibula_words(of_maps);                                                              \
        const struct fibula_array of_below = FIBULA_OF(name, 3, FIBULA_IPV4_ROOM_3);                                   \
        struct fibula_words below = fibula_words(of_below);                                                            \
        FIBULA_NAMES(name);                                                                                            \
        if (!FIBULA_IS_THERE(maps) || !FIBULA_IS_THERE(below)) {                                                       \
            return 0;                                                                                                  \
        }                                                                                                              \
        return fibula_lines_rare(fibula_in_use(maps, 2, state), fibula_in_use(below, 3, state), key, place, state);    \
    }                                                                                                                  \
    static const struct fibula_ipv4 name __attribute__((unused)) = {                                                   \
        (void *)&name##_h,                                                                                             \
        {FIBULA_OF(name, 0, FIBULA_IPV4_ROOM_0), FIBULA_OF(name, 1, FIBULA_IPV4_ROOM_1),                               \
         FIBULA_OF(name, 2, FIBULA_IPV4_ROOM_2), FIBULA_OF(name, 3, FIBULA_IPV4_ROOM_3)},                              \
        name##_rare}

#else

#define FIBULA_IPV4(name)                                                                                              \
    FIBULA_HEADER(name, FIBULA_DIR_17_BITMAP);                                                                         \
    FIBULA_ARRAY(name, 0, FIBULA_IPV4_ROOM_0);                                                                         \
    FIBULA_ARRAY(name, 1, FIBULA_IPV4_ROOM_1);                                                                         \
    FIBULA_RARE __u32 name##_rare(__u32 key, __u32 place, __u32 state) {                                               \
        const struct fibula_array of_units = FIBULA_OF(name, 1, FIBULA_IPV4_ROOM_1);                                   \
        struct fibula_words units = fibula_words(of_units);                                                            \
        FIBULA_NAMES(name);                                                                                            \
        return !FIBULA_IS_THERE(units) ? 0 : fibula_bitmap_rare(fibula_in_use(units, 1, state), key, place);           \
    }                                                                                                                  \
    static const struct fibula_ipv4 name __attribute__((unused)) = {                                                   \
        (void *)&name##_h,                                                                                             \
        {FIBULA_OF(name, 0, FIBULA_IPV4_ROOM_0), FIBULA_OF(name, 1, FIBULA_IPV4_ROOM_1), {0, 0}, {0, 0}},              \
        name##_rare}

#endif

#define FIBULA_IPV6(name)                                                                                              \
    FIBULA_HEADER(name, FIBULA_DIR_BTREE);                                                                             \
    FIBULA_ARRAY(name, 0, FIBULA_IPV6_ROOM_0);                                                                         \
    FIBULA_ARRAY(name, 1, FIBULA_IPV6_ROOM_1);                                                                         \
    FIBULA_ARRAY(name, 2, FIBULA_IPV6_ROOM_2);                                                                         \
    FIBULA_RARE __u32 name##_rare(__u64 high, __u64 low, __u32 leaf, __u32 value, __u32 state) {                       \
        const struct fibula_array of_lines = FIBULA_OF(name, 1, FIBULA_IPV6_ROOM_1);                                   \
        struct fibula_words lines = fibula_words(of_lines);                                                            \
        const struct fibula_array of_objects = FIBULA_OF(name, 2, FIBULA_IPV6_ROOM_2);                                 \
        struct fibula_words objects = fibula_words(of_objects);                                                        \
        FIBULA_NAMES(name);                                                                                            \
        if (!FIBULA_IS_THERE(lines) || !FIBULA_IS_THERE(objects)) {                                                    \
            return 0;                                                                                                  \
        }                                                                                                              \
        return fibula_btree_rare(fibula_in_use(lines, 1, state), fibula_in_use(objects, 2, state), high, low, leaf, value);\
    }                                                                                                                  \
    static const struct fibula_ipv6 name __attribute__((unused)) = {                                                   \
        (void *)&name##_h,                                                                                             \
        {FIBULA_OF(name, 0, FIBULA_IPV6_ROOM_0), FIBULA_OF(name, 1, FIBULA_IPV6_ROOM_1),                               \
         FIBULA_OF(name, 2, FIBULA_IPV6_ROOM_2)},                                                                      \
        name##_rare}

#endif
