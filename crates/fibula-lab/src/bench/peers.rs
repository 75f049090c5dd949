//! The engines that our own are compared with, by name: DPDK's tables, and the published engines: DIR-24-8, DXR in its
//! published form, PlanB and Poptrie. Our own are known by their role alone.

/// DPDK's tables in any form.
pub(super) fn is_dpdk(name: &str) -> bool {
    name.starts_with("rte-")
}

/// `rte_fib` in any form.
pub(super) fn is_rte_fib(name: &str) -> bool {
    name.starts_with("rte-fib-")
}

/// `rte_fib6` in any form.
pub(super) fn is_rte_fib6(name: &str) -> bool {
    name.starts_with("rte-fib6-")
}

/// PlanB in any form: the registry's, and the loop in plain C++ where it is a rival. A loop over keys of 64 bits is none:
/// it reads half as much.
pub(super) fn is_planb(name: &str) -> bool {
    name.contains("planb") && !name.contains("-64")
}

/// `dxr-16` to `dxr-24`. Longer names are variants that the paper does not have.
pub(super) fn is_published_dxr(name: &str) -> bool {
    let k = name.strip_prefix("dxr-");
    k.is_some_and(|k| !k.is_empty() && k.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The published engines.
pub(super) fn is_published(name: &str) -> bool {
    is_planb(name) || is_published_dxr(name) || ["dir-24-8", "poptrie"].contains(&name)
}

/// All of them.
pub(super) fn is_peer(name: &str) -> bool {
    is_dpdk(name) || is_published(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_that_were_not_published_are_no_peers() {
        for peer in [
            "dxr-16",
            "dir-24-8",
            "poptrie",
            "planb",
            "planb-unmerged",
            "rte-lpm6",
            "rte-fib-2b-uni",
            "planb-cpp-avx512",
        ] {
            assert!(is_peer(peer), "{peer}");
        }
        for other in [
            "dxr-18-wide",
            "dxr-",
            "radix",
            "range-search",
            "linear",
            "planb-cpp-64-avx512",
            "prefix-trie",
            "bart-fast",
        ] {
            assert!(!is_peer(other), "{other}");
        }
        assert!(is_rte_fib("rte-fib-4b-uni") && !is_rte_fib("rte-fib6-4b-scalar"));
    }
}
