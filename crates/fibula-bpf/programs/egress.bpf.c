// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// cgroup: refuses connections to addresses whose route has number 1; all others pass, those without a route too.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <fibula_bpf.h>

FIBULA_IPV4(policy);
FIBULA_IPV6(policy6);

#define REFUSED 1

SEC("cgroup/connect4") int egress4(struct bpf_sock_addr *to) {
    return fibula_ipv4_lookup(&policy, bpf_ntohl(to->user_ip4)) != REFUSED;
}

SEC("cgroup/connect6") int egress6(struct bpf_sock_addr *to) {
    __u64 high = (__u64)bpf_ntohl(to->user_ip6[0]) << 32 | bpf_ntohl(to->user_ip6[1]);
    __u64 low = (__u64)bpf_ntohl(to->user_ip6[2]) << 32 | bpf_ntohl(to->user_ip6[3]);
    // IPv4 in IPv6, ::ffff:a.b.c.d, is a matter of the other table.
    if (high == 0 && low >> 32 == 0xffff) {
        return fibula_ipv4_lookup(&policy, (__u32)low) != REFUSED;
    }
    return fibula_ipv6_lookup(&policy6, high, low) != REFUSED;
}

char _license[] SEC("license") = "Dual MIT/GPL";
