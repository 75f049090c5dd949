/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * The program at the ingress of a device with 'fast = true'. It forwards what needs no thought, by the router's own tables and
 * next hops, and leaves all else to the router's AF_XDP sockets or to the kernel, by the rules of `redirect.rs`.
 *
 * The rules and their order are those of `forward/`: whatever is decided here is decided as there. Whoever is in doubt returns
 * SLOW, with the frame as it came.
 *
 * `cargo xtask fast` compiles it into program.txt, which the router loads. Names without a definition here are maps and numbers
 * that the router fills in; `tables.rs` has the forms of their words.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <fibula_bpf.h>

#define INLINE static inline __attribute__((always_inline))
/* A function of its own for the verifier, which looks at it once. */
#define APART __attribute__((noinline, weak))
#define swap16 __builtin_bswap16
#define swap32 __builtin_bswap32
#define swap64 __builtin_bswap64

/* Sizes, each a power of two, as in tables.rs. */
#define HOPS 65536
#define MEMBERS 262144
#define INTERFACES 4096
#define NEIGHBOURS 32768
#define PORTS 256
/* Members of a group that are compared with an interface for uRPF. */
#define COMPARED 32

#define SLOW (-1)

/* Kinds of next hops. */
enum { UNKNOWN, VIA, CONNECTED, LOCAL, BLACKHOLE, GROUP, REFUSED };
/* Kinds of addresses that are known. */
enum { NEIGHBOUR_V4, NEIGHBOUR_V6, OWN_V4, OWN_V6 };
/* Places of a port's counters. */
enum { RECEIVED, RECEIVED_BYTES, FORWARDED, SENT, SENT_BYTES, DROP_BLACKHOLE, DROP_URPF_STRICT, DROP_URPF_LOOSE };
struct counts {
    __u64 of[16];
};
/* Bits of an interface's second word, and where its numbers begin. */
#define UP 1
#define OUT_GENERIC 2
#define OUT_NATIVE 4
#define STRICT 8
#define LOOSE 16
#define IN 32
#define MAC_BITS 0xffffffffffffull

/* Memory that user space maps. */
extern volatile __u64 hops[HOPS];
extern volatile __u32 members[MEMBERS];
extern volatile __u64 interfaces[2 * INTERFACES];
/* A MAC address with a bit that says that it is known, and a word that says that a packet used it. */
extern volatile __u64 neighbours[2 * NEIGHBOURS];
/* Bits of own addresses, the seed of flows, and flags. */
extern volatile __u64 settings[8];
/* Of this device: the interface of each VLAN, plus one; then whether the program is in the driver. */
extern volatile __u16 vlans[8192];
#define IN_DRIVER 4096

/* Maps. */
extern struct bpf_map addresses, known, devices, sockets, counters;

/* Numbers of this device: its port, and whether frames with a tag are the sockets'. */
extern char port_number, tagged_frames;
#define PORT ((__u32)(unsigned long)&port_number)
#define TAGGED ((__u32)(unsigned long)&tagged_frames)

static void *(*const look_up)(void *, const void *) = (void *)1;
static __u32 (*const this_processor)(void) = (void *)8;
static long (*const move_head)(struct xdp_md *, int) = (void *)44;
static long (*const redirect_map)(void *, __u64, __u64) = (void *)51;
static __u64 (*const frame_bytes)(struct xdp_md *) = (void *)188;

FIBULA_IPV4(v4_0);
FIBULA_IPV4(v4_1);
FIBULA_IPV4(v4_2);
FIBULA_IPV4(v4_3);
FIBULA_IPV6(v6_0);
FIBULA_IPV6(v6_1);
FIBULA_IPV6(v6_2);
FIBULA_IPV6(v6_3);

APART __u32 lookup_v4(__u32 table, __u32 address) {
    switch (table) {
    case 0: return fibula_ipv4_lookup(&v4_0, address);
    case 1: return fibula_ipv4_lookup(&v4_1, address);
    case 2: return fibula_ipv4_lookup(&v4_2, address);
    case 3: return fibula_ipv4_lookup(&v4_3, address);
    default: return 0;
    }
}

APART __u32 lookup_v6(__u32 table, __u64 high, __u64 low) {
    switch (table) {
    case 0: return fibula_ipv6_lookup(&v6_0, high, low);
    case 1: return fibula_ipv6_lookup(&v6_1, high, low);
    case 2: return fibula_ipv6_lookup(&v6_2, high, low);
    case 3: return fibula_ipv6_lookup(&v6_3, high, low);
    default: return 0;
    }
}

/* Returns a number within an array of a power of two. The compiler may not see it, because it would leave out what it can do without, and
 * the verifier cannot. */
INLINE __u64 within(__u64 number, __u32 size) {
    asm volatile("%0 &= %1" : "+r"(number) : "i"(size - 1));
    return number;
}

/* Multiplies two words and folds the halves of the product, as packet/flow.rs. */
INLINE __u64 fold(__u64 a, __u64 b) {
    __u64 al = (__u32)a, ah = a >> 32, bl = (__u32)b, bh = b >> 32;
    __u64 ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    __u64 middle = (ll >> 32) + (__u32)lh + (__u32)hl;
    return ((__u32)ll | middle << 32) ^ (hh + (lh >> 32) + (hl >> 32) + (middle >> 32));
}

/* The fields of a packet that decide its way, in host order. */
struct packet {
    __u64 source_high, source, destination_high, destination;
    __u32 ports, protocol, label, length;
    __u32 hop_limit, is_v6;
};

INLINE __u32 flow_hash(const struct packet *p) {
    __u64 a = p->source, b = p->source_high, c = p->destination, d = p->destination_high, hash;
    __u32 ports = p->ports, label = p->label;
    if (settings[2] & 1) {
        __u32 from = ports >> 16, to = ports & 0xffff;
        label = 0;
        if (b > d || (b == d && (a > c || (a == c && from > to)))) {
            __u64 other = a;
            a = c;
            c = other;
            other = b;
            b = d;
            d = other;
            ports = ports << 16 | ports >> 16;
        }
    }
    hash = settings[1] ^ ((__u64)ports << 32 | (__u64)p->protocol << 24 | label);
    hash = fold(hash ^ 0x243f6a8885a308d3ull, a ^ 0x13198a2e03707345ull);
    hash = fold(hash ^ 0x243f6a8885a308d3ull, b ^ 0x13198a2e03707345ull);
    hash = fold(hash ^ 0x243f6a8885a308d3ull, c ^ 0x13198a2e03707345ull);
    hash = fold(hash ^ 0x243f6a8885a308d3ull, d ^ 0x13198a2e03707345ull);
    return (__u32)(fold(hash, 0xa4093822299f31d1ull) >> 32);
}

INLINE __u32 find(__u32 table, int is_v6, __u64 high, __u64 low) {
    return is_v6 ? lookup_v6(table, high, low) : lookup_v4(table, (__u32)low);
}

INLINE __u64 hop_of(__u32 number) { return number < HOPS ? hops[within(number, HOPS)] : UNKNOWN; }

/* Returns the place of an address among those that are known, plus one; 0 if it is not. */
INLINE __u32 find_known(__u32 of, __u32 kind, __u64 high, __u64 low) {
    struct {
        __u32 of, kind;
        __u64 high, low;
    } key = {of, kind, high, low};
    __u32 *found = look_up(&known, &key);
    return found ? *found : 0;
}

INLINE struct counts *counts_of(__u32 port) {
    __u32 at = this_processor() * PORTS + (port & (PORTS - 1));
    return look_up(&counters, &at);
}

INLINE int drop(struct xdp_md *ctx, __u32 reason) {
    struct counts *own = counts_of(PORT);
    if (own) {
        own->of[RECEIVED] += 1;
        own->of[RECEIVED_BYTES] += frame_bytes(ctx);
        own->of[reason & 15] += 1;
    }
    return XDP_DROP;
}

/* Returns whether packets to a next hop may leave by an interface: for a group, one member is enough. */
INLINE int leads_through(__u64 hop, __u64 interface) {
    __u32 kind = hop & 7, count = hop >> 8 & 0xffffff, first = hop >> 32, at;
    if (kind != GROUP) {
        return (hop >> 8 & 0xffff) == interface;
    }
    for (at = 0; at < COMPARED; at++) {
        __u64 member;
        if (at >= count) {
            return 0;
        }
        member = hop_of(members[within(first + at, MEMBERS)]);
        if (((member & 7) == VIA || (member & 7) == CONNECTED) && (member >> 8 & 0xffff) == interface) {
            return 1;
        }
    }
    return SLOW;
}

/* Returns the length that a header has in two bytes. The verifier of Linux 6.1 takes a number whose bytes were swapped for any number, so
 * that the mask must not look needless to the compiler. */
INLINE __u32 length_at(const unsigned char *at) {
    __u64 length = swap16(*(const __u16 *)at);
    __asm__ volatile("" : "+r"(length));
    return length & 0xffff;
}

INLINE int read_v4(unsigned char *ip, unsigned char *end, struct packet *p) {
    __u32 *words = (__u32 *)ip, fragment, first;
    __u64 sum;
    if (ip + 20 > end || ip[0] != 0x45) {
        return SLOW;
    }
    sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    p->length = length_at(ip + 2);
    if (sum != 0xffff || p->length < 20 || ip + p->length > end) {
        return SLOW;
    }
    p->hop_limit = ip[8];
    p->protocol = ip[9];
    p->source = swap32(words[3]);
    p->destination = swap32(words[4]);
    first = p->destination >> 24;
    if (first == 0 || first == 127 || first >= 224 || p->destination >> 16 == 0xa9fe) {
        return SLOW;
    }
    first = p->source >> 24;
    if (first == 0 || first == 127 || first >= 224 || p->source >> 16 == 0xa9fe) {
        return SLOW;
    }
    fragment = swap16(*(__u16 *)(ip + 6));
    if (fragment & 0x3fff) {
        /* All fragments of a datagram take one way, and only the first has ports. */
        p->protocol = 0;
        return (fragment & 0x1fff) * 8 + p->length > 65535 ? SLOW : 0;
    }
    return 0;
}

INLINE int read_v6(unsigned char *ip, unsigned char *end, struct packet *p) {
    __u64 *words = (__u64 *)(ip + 8);
    if (ip + 40 > end || ip[0] >> 4 != 6) {
        return SLOW;
    }
    p->is_v6 = 1;
    p->length = 40 + length_at(ip + 4);
    if (ip + p->length > end) {
        return SLOW;
    }
    p->label = swap32(*(__u32 *)ip) & 0xfffff;
    p->protocol = ip[6];
    p->hop_limit = ip[7];
    switch (p->protocol) {
    case 0:
    case 43:
    case 44:
    case 51:
    case 60: return SLOW;
    case 58:
        /* Neighbour discovery, perhaps. */
        if (p->hop_limit == 255) {
            return SLOW;
        }
    }
    p->source_high = swap64(words[0]);
    p->source = swap64(words[1]);
    p->destination_high = swap64(words[2]);
    p->destination = swap64(words[3]);
    if (p->destination_high >> 56 == 0xff || p->destination_high >> 54 == 0x3fa || (p->destination_high == 0 && p->destination <= 1)) {
        return SLOW;
    }
    return p->source_high >> 56 == 0xff || p->source_high >> 54 == 0x3fa || (p->source_high == 0 && p->source <= 1) ? SLOW : 0;
}

INLINE int fast(struct xdp_md *ctx) {
    unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *ip = data + 14;
    struct packet p = {0};
    struct counts *own, *other;
    __u32 vlan = 0, header = 14, number, new_header, port, outer;
    __u64 in, out, place, mac, in_word, out_word, hop, to, from, bytes, sent_bytes;
    __u16 type;
    if (data + 14 > end) {
        return SLOW;
    }
    type = *(__u16 *)(data + 12);
    if (type == swap16(0x8100)) {
        if (data + 18 > end) {
            return SLOW;
        }
        vlan = swap16(*(__u16 *)(data + 14)) & 0xfff;
        type = *(__u16 *)(data + 16);
        header = 18;
        ip = data + 18;
    }
    in = vlans[within(vlan, IN_DRIVER)];
    if (in == 0) {
        return SLOW;
    }
    in = within(in - 1, INTERFACES);
    in_word = interfaces[2 * in + 1];
    mac = *(__u32 *)data | (__u64) * (__u16 *)(data + 4) << 32;
    if (!(in_word & IN) || mac != (interfaces[2 * in] & MAC_BITS)) {
        return SLOW;
    }
    if (type == swap16(0x0800)) {
        if (read_v4(ip, end, &p) < 0) {
            return SLOW;
        }
        if ((p.protocol == 6 || p.protocol == 17 || p.protocol == 33 || p.protocol == 132 || p.protocol == 136) &&
            p.length >= 24 && ip + 24 <= end) {
            p.ports = swap32(*(__u32 *)(ip + 20));
        }
    } else if (type == swap16(0x86dd)) {
        if (read_v6(ip, end, &p) < 0) {
            return SLOW;
        }
        if ((p.protocol == 6 || p.protocol == 17 || p.protocol == 33 || p.protocol == 132 || p.protocol == 136) &&
            p.length >= 44 && ip + 44 <= end) {
            p.ports = swap32(*(__u32 *)(ip + 40));
        }
    } else {
        return SLOW;
    }

    /* The destination first: packets to the router have no rules for sources. */
    number = find(in_word >> 44 & 15, p.is_v6, p.destination_high, p.destination);
    if (number == 0) {
        return SLOW;
    }
    hop = hop_of(number);
    if ((hop & 7) == GROUP) {
        __u32 count = hop >> 8 & 0xffffff, first = hop >> 32;
        __u32 member = (__u64)flow_hash(&p) * count >> 32;
        hop = hop_of(members[within(first + member, MEMBERS)]);
    }
    if ((hop & 7) != VIA && (hop & 7) != CONNECTED && (hop & 7) != BLACKHOLE) {
        return SLOW;
    }

    /* The source. */
    if (settings[0] >> (p.source & 63) & 1 && find_known(in_word >> 44 & 15, p.is_v6 ? OWN_V6 : OWN_V4, p.source_high, p.source)) {
        return SLOW;
    }
    if (in_word & (STRICT | LOOSE)) {
        int through = 0;
        number = find(in_word >> 44 & 15, p.is_v6, p.source_high, p.source);
        if (number) {
            from = hop_of(number);
            if ((from & 7) == UNKNOWN || (from & 7) == LOCAL) {
                return SLOW;
            }
            if ((from & 7) == VIA || (from & 7) == CONNECTED || (from & 7) == GROUP) {
                through = in_word & LOOSE ? 1 : leads_through(from, in);
            }
        }
        if (through < 0) {
            return SLOW;
        }
        if (!through) {
            return drop(ctx, in_word & LOOSE ? DROP_URPF_LOOSE : DROP_URPF_STRICT);
        }
    }
    if ((hop & 7) == BLACKHOLE) {
        return drop(ctx, DROP_BLACKHOLE);
    }

    /* The way out. */
    if (p.hop_limit <= 1) {
        return SLOW;
    }
    out = within(hop >> 8, INTERFACES);
    out_word = interfaces[2 * out + 1];
    if (!(out_word & UP) || !(out_word & (vlans[IN_DRIVER] ? OUT_NATIVE : OUT_GENERIC)) || p.length > (out_word >> 16 & 0xffff)) {
        return SLOW;
    }
    if ((hop & 7) == VIA) {
        place = hop >> 32;
    } else {
        place = find_known(out, p.is_v6 ? NEIGHBOUR_V6 : NEIGHBOUR_V4, p.destination_high, p.destination);
    }
    if (place == 0) {
        return SLOW;
    }
    place = within(place, NEIGHBOURS);
    to = neighbours[2 * place];
    if (to >> 48 == 0) {
        return SLOW;
    }
    if (neighbours[2 * place + 1] == 0) {
        neighbours[2 * place + 1] = 1;
    }

    outer = out_word >> 32 & 0xfff;
    new_header = outer ? 18 : 14;
    port = out_word >> 8 & 0xff;
    bytes = frame_bytes(ctx);
    sent_bytes = new_header + p.length;
    mac = interfaces[2 * out];
    own = counts_of(PORT);
    other = counts_of(port);
    if (!own || !other || redirect_map(&devices, port, XDP_DROP) != XDP_REDIRECT) {
        return SLOW;
    }
    if (header != new_header && move_head(ctx, (int)header - (int)new_header) != 0) {
        return SLOW;
    }
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    if (data + 18 > end) {
        return XDP_DROP;
    }
    *(__u32 *)data = (__u32)to;
    *(__u16 *)(data + 4) = (__u16)(to >> 32);
    *(__u16 *)(data + 6) = (__u16)mac;
    *(__u32 *)(data + 8) = (__u32)(mac >> 16);
    if (outer) {
        *(__u16 *)(data + 12) = swap16(0x8100);
        *(__u16 *)(data + 14) = swap16((__u16)outer);
        *(__u16 *)(data + 16) = type;
        ip = data + 18;
    } else {
        *(__u16 *)(data + 12) = type;
        ip = data + 14;
    }
    if (ip + 20 > end) {
        return XDP_DROP;
    }
    if (p.is_v6) {
        ip[7] -= 1;
    } else {
        /* Equation 3 of RFC 1624. */
        __u32 old = swap16(*(__u16 *)(ip + 8)), check = swap16(*(__u16 *)(ip + 10));
        __u32 total = (~check & 0xffff) + (~old & 0xffff) + ((old - 0x100) & 0xffff);
        total = (total & 0xffff) + (total >> 16);
        total = (total & 0xffff) + (total >> 16);
        ip[8] -= 1;
        *(__u16 *)(ip + 10) = swap16((__u16)~total);
    }
    own->of[RECEIVED] += 1;
    own->of[RECEIVED_BYTES] += bytes;
    own->of[FORWARDED] += 1;
    other->of[SENT] += 1;
    other->of[SENT_BYTES] += sent_bytes;
    return XDP_REDIRECT;
}

/* Gives a frame to the socket of its queue, or to the kernel, as the program of redirect.rs. */
INLINE int slow(struct xdp_md *ctx) {
    unsigned char *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct {
        __u32 device, words[4];
    } key = {0};
    __u16 type;
    if (data + 14 > end) {
        return XDP_PASS;
    }
    type = *(__u16 *)(data + 12);
    if (type == swap16(0x8100) || type == swap16(0x88a8)) {
        if (!TAGGED) {
            return XDP_PASS;
        }
    } else {
        if (data[0] & 1) {
            return XDP_PASS;
        }
        key.device = ctx->ingress_ifindex;
        if (type == swap16(0x0800)) {
            __u32 first;
            if (data + 34 > end) {
                return XDP_PASS;
            }
            first = data[30];
            if (first >= 224 || first == 0 || first == 127 || (first == 169 && data[31] == 254)) {
                return XDP_PASS;
            }
            key.words[2] = swap32(0xffff);
            key.words[3] = *(__u32 *)(data + 30);
        } else if (type == swap16(0x86dd)) {
            if (data + 54 > end || data[38] == 0xff || (data[38] == 0xfe && (data[39] & 0xc0) == 0x80)) {
                return XDP_PASS;
            }
            key.words[0] = *(__u32 *)(data + 38);
            key.words[1] = *(__u32 *)(data + 42);
            key.words[2] = *(__u32 *)(data + 46);
            key.words[3] = *(__u32 *)(data + 50);
        } else {
            return XDP_PASS;
        }
        if (look_up(&addresses, &key)) {
            return XDP_PASS;
        }
    }
    return redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

__attribute__((section("xdp"), used)) int fibula_fast(struct xdp_md *ctx) {
    int done = fast(ctx);
    return done >= 0 ? done : slow(ctx);
}
