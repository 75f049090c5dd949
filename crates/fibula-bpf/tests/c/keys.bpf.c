/* Looks many keys up in one run, by loops within one program: for tests and measurements. IPV6 is defined for the other family. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <fibula_bpf.h>

#include "table.h"

/* Keys of a call of the loop's function, as a call costs more than a lookup. */
#define EACH 16
#ifndef KEYS
#define KEYS (1 << 20)
#endif

struct keys {
    __u32 words[KEYS * WORDS];
};
struct answers {
    __u32 words[KEYS];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct keys);
} keys SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __type(key, __u32);
    __type(value, struct answers);
} answers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 2000000);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, 4 + 4 * WORDS);
    __uint(value_size, 4);
} trie SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1 << 20);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(key_size, 4);
    __uint(value_size, 4);
} hash SEC(".maps");

/* 0: nothing, 1: Fibula, 2: LPM_TRIE, 3: HASH of /24, 4: the check of answers while the table changes. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

/* What a map of maps for new words would cost a lookup: two calls that the kernel does not make a part of the program. */
struct inner {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} inner SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1);
    __type(key, __u32);
    __array(values, struct inner);
} outer SEC(".maps") = {.values = {&inner}};

struct key_of_trie {
    __u32 len;
    __u32 words[WORDS];
};

static __always_inline __u32 find(const __u32 *key) {
#ifdef IPV6
    return fibula_ipv6_lookup(&table, (__u64)key[0] << 32 | key[1], (__u64)key[2] << 32 | key[3]);
#else
    return fibula_ipv4_lookup(&table, key[0]);
#endif
}

#define LOOP(name, ...)                                                                                                \
    static long name##_some(__u32 round, void *context) {                                                             \
        __u32 zero = 0, at;                                                                                            \
        struct keys *all = bpf_map_lookup_elem(&keys, &zero);                                                          \
        struct answers *found = bpf_map_lookup_elem(&answers, &zero);                                                  \
        if (!all || !found) {                                                                                          \
            return 1;                                                                                                  \
        }                                                                                                              \
        (void)context;                                                                                                 \
        for (at = 0; at < EACH; at++) {                                                                                \
            __u32 number = (round * EACH + at) & (KEYS - 1);                                                           \
            const __u32 *key = all->words + number * WORDS;                                                            \
            __u32 answer = 0;                                                                                          \
            __VA_ARGS__ found->words[number] = answer;                                                                        \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    SEC("tc") int name(struct __sk_buff *skb) {                                                                       \
        (void)skb;                                                                                                     \
        bpf_loop(KEYS / EACH, name##_some, 0, 0);                                                                      \
        return 0;                                                                                                      \
    }

LOOP(run_empty, { answer = key[0]; })
LOOP(run_fibula, { answer = find(key); })
LOOP(run_outer, {
    void *in = bpf_map_lookup_elem(&outer, &zero);
    __u64 *word = in ? bpf_map_lookup_elem(in, &zero) : 0;
    answer = find(key) + (word ? (__u32)*word : 0);
})
LOOP(run_trie, {
    struct key_of_trie of = {32 * WORDS, {0}};
    __u32 *value;
    for (int word = 0; word < WORDS; word++) {
        of.words[word] = __builtin_bswap32(key[word]);
    }
    value = bpf_map_lookup_elem(&trie, &of);
    answer = value ? *value : 0;
})
LOOP(run_hash, {
    __u32 of = key[0] >> 8;
    __u32 *value = bpf_map_lookup_elem(&hash, &of);
    answer = value ? *value : 0;
})

/* One lookup, whose instructions the verifier counts. */
SEC("tc") int run_one(struct __sk_buff *skb) {
    __u32 key[4] = {skb->mark, skb->priority, skb->tc_index, skb->hash};
    return (int)find(key);
}

/* The answers that the test of changes allows: the number of a key's first 16 bits, of its first 24, or of its first 28. */
static __always_inline __u32 mixed(__u32 bits) { return (bits * 2654435761u >> 16) % 80; }

static long check_some(__u32 round, void *context) {
    __u32 zero = 0, one = 1, at, wrong = 0;
    struct keys *all = bpf_map_lookup_elem(&keys, &zero);
    __u64 *lookups = bpf_map_lookup_elem(&counts, &zero), *faults = bpf_map_lookup_elem(&counts, &one);
    if (!all || !lookups || !faults) {
        return 1;
    }
    (void)context;
    for (at = 0; at < EACH; at++) {
        const __u32 *key = all->words + ((round * EACH + at) & (KEYS - 1)) * WORDS;
#ifdef IPV6
        /* All keys differ in these 32 bits, across the end of what tables and trees search. */
        __u32 bits = key[1];
#else
        __u32 bits = key[0];
#endif
        __u32 answer = find(key);
        wrong += answer != 1 + mixed(bits >> 16) && answer != 81 + mixed(bits >> 8) && answer != 161 + mixed(bits >> 4);
    }
    __sync_fetch_and_add(lookups, EACH);
    __sync_fetch_and_add(faults, wrong);
    return 0;
}

SEC("tc") int run_check(struct __sk_buff *skb) {
    (void)skb;
    bpf_loop(KEYS / EACH, check_some, 0, 0);
    return 0;
}

char _license[] SEC("license") = "GPL";
