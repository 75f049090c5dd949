// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// XDP: drops packets whose source is in a block list, and counts them by the number of the list's route.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <fibula_bpf.h>

FIBULA_IPV4(blocked);
FIBULA_IPV6(blocked6);

// Packets by number of the route; 0 counts those that pass.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, __u64);
} packets SEC(".maps");

static __always_inline __u64 half(const __u32 *words) {
    return (__u64)bpf_ntohl(words[0]) << 32 | bpf_ntohl(words[1]);
}

SEC("xdp") int block(struct xdp_md *context) {
    void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
    struct ethhdr *ethernet = data;
    struct iphdr *v4 = (void *)(ethernet + 1);
    struct ipv6hdr *v6 = (void *)(ethernet + 1);
    __u32 number = 0;
    __u64 *count;
    if ((void *)(ethernet + 1) > end) {
        return XDP_PASS;
    }
    if (ethernet->h_proto == bpf_htons(ETH_P_IP) && (void *)(v4 + 1) <= end) {
        number = fibula_ipv4_lookup(&blocked, bpf_ntohl(v4->saddr));
    } else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6) && (void *)(v6 + 1) <= end) {
        const __u32 *words = v6->saddr.in6_u.u6_addr32;
        number = fibula_ipv6_lookup(&blocked6, half(words), half(words + 2));
    }
    // Numbers that have no counter of their own share the last one.
    __u32 counter = number < 255 ? number : 255;
    count = bpf_map_lookup_elem(&packets, &counter);
    if (count) {
        *count += 1;
    }
    return number ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "Dual MIT/GPL";
