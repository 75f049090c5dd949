//! The version of the kernel, where it decides what the router can do.

/// The first version that has TCX, with which the kernel's own forwarding is kept from a device (`net/sched: tcx`, Linux 6.6).
pub const TCX: (u32, u32) = (6, 6);

/// The first version in which a program can forward frames of the kernel's own code for XDP (`bpf_xdp_get_buff_len`, Linux 5.18).
pub const FAST: (u32, u32) = (5, 18);

/// The first version that says which devices take frames from the drivers of others (`xdp_features`, Linux 6.3).
pub const FAST_NATIVE: (u32, u32) = (6, 3);

/// The advice for a kernel without TCX.
pub const NO_TCX: &str =
    "back end af-packet needs Linux 6.6 (TCX): leave 'backend' out, or set 'backend = \"af-xdp\"'";

/// The advice for a kernel whose packets to the machine cannot be judged.
pub const NO_GATE: &str =
    "rules and policers for packets to the router need Linux 6.6 (TCX): use nftables' hook 'input' there";

/// Returns the version of the running kernel: its first two numbers. `None` if it cannot be read.
#[must_use]
pub fn version() -> Option<(u32, u32)> {
    parse(&std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
}

/// Reads the first two numbers of a release, such as `6.1.0-18-amd64`.
fn parse(release: &str) -> Option<(u32, u32)> {
    let mut numbers =
        release.trim().splitn(3, |c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_read() {
        for (release, version) in [
            ("6.1.0-18-amd64\n", Some((6, 1))),
            ("6.18.44-fc-v657", Some((6, 18))),
            ("6.6", Some((6, 6))),
            ("5.14.0-427.el9", Some((5, 14))),
            ("6", None),
            ("6.x", None),
            ("", None),
        ] {
            assert_eq!(parse(release), version, "{release}");
        }
        assert!(
            parse("6.1.0").unwrap() < TCX && parse("6.18").unwrap() > TCX && parse("6.6.1").unwrap() == TCX
        );
        assert!(version().is_some());
    }
}
