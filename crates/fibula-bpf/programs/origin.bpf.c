// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// tc: counts bytes by the AS that announces the destination, and marks packets with its number for filters and routes.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <fibula_bpf.h>

FIBULA_IPV4(origins);

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u64);
} bytes_by_as SEC(".maps");

SEC("tc") int origin(struct __sk_buff *packet) {
    __u32 destination, number;
    __u64 *bytes, first = packet->len;
    if (packet->protocol != bpf_htons(ETH_P_IP) ||
        bpf_skb_load_bytes(packet, ETH_HLEN + __builtin_offsetof(struct iphdr, daddr), &destination, 4) != 0) {
        return TC_ACT_OK;
    }
    number = fibula_ipv4_lookup(&origins, bpf_ntohl(destination));
    packet->mark = number;
    bytes = bpf_map_lookup_elem(&bytes_by_as, &number);
    if (bytes) {
        __sync_fetch_and_add(bytes, first);
    } else {
        bpf_map_update_elem(&bytes_by_as, &number, &first, BPF_ANY);
    }
    return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual MIT/GPL";
