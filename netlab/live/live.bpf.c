/* Frames that begin in the kernel, and a sink that drops them in the driver: neither a socket nor a system call for each frame. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "live.h"

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct plan);
} plan SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, DESTINATIONS);
    __type(key, __u32);
    __type(value, __u32);
} destinations SEC(".maps");

/* A frame is of a pool, and still has the bytes that it had when it was freed: each one is written afresh. */
SEC("xdp") int live(struct xdp_md *context) {
    void *data = (void *)(long)context->data, *end = (void *)(long)context->data_end;
    struct ethhdr *ethernet = data;
    struct iphdr *ip = (void *)(ethernet + 1);
    struct udphdr *udp = (void *)(ip + 1);
    __u32 zero = 0;
    struct plan *to = bpf_map_lookup_elem(&plan, &zero);
    if (!to || (void *)(udp + 1) > end) {
        return XDP_ABORTED;
    }
    __u32 number = to->next++ & (DESTINATIONS - 1);
    __u32 *destination = bpf_map_lookup_elem(&destinations, &number);
    if (!destination) {
        return XDP_ABORTED;
    }
    __builtin_memcpy(ethernet->h_dest, to->station, 6);
    __builtin_memcpy(ethernet->h_source, to->source_station, 6);
    ethernet->h_proto = bpf_htons(ETH_P_IP);
    *ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = 17};
    ip->tot_len = bpf_htons((__u16)(end - data - sizeof *ethernet));
    ip->saddr = to->source;
    ip->daddr = *destination;
    __u32 sum = bpf_htons(0x4500) + ip->tot_len + bpf_htons(64 << 8 | 17);
    sum += (ip->saddr & 0xffff) + (ip->saddr >> 16) + (ip->daddr & 0xffff) + (ip->daddr >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    ip->check = (__u16)~sum;
    *udp = (struct udphdr){.source = bpf_htons(1024 + (number & 63)), .dest = bpf_htons(9)};
    udp->len = bpf_htons((__u16)(end - (void *)udp));
    return bpf_redirect(to->device, 0);
}

/* Packets of IPv4 end here. Everything else goes on, so that the machine still answers ARP. */
SEC("xdp") int sink(struct xdp_md *context) {
    struct ethhdr *ethernet = (void *)(long)context->data;
    if ((void *)(ethernet + 1) > (void *)(long)context->data_end || ethernet->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    return XDP_DROP;
}

char _license[] SEC("license") = "Dual MIT/GPL";
