//! The capabilities of Linux that BPF takes.

/// A capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// To attach programs to devices.
    NetAdmin,
    /// To open packet sockets.
    NetRaw,
    /// To have programs verified that add numbers to pointers: without it, the verifier takes each path as one that a processor may
    /// guess wrongly, and refuses what reads packets and maps at variable places. All programs with `fibula_bpf.h` do (Linux 5.8).
    Perfmon,
    /// To make maps and to load programs (Linux 5.8).
    Bpf,
}

/// The capability that has those of BPF in it.
const SYS_ADMIN: u32 = 21;

impl Capability {
    /// Those that a loader of programs with `fibula_bpf.h` needs. To fill maps, [`Bpf`](Self::Bpf) is enough.
    pub const OF_LOADERS: [Self; 3] = [Self::Bpf, Self::Perfmon, Self::NetAdmin];

    const fn number(self) -> u32 {
        match self {
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
            Self::Perfmon => 38,
            Self::Bpf => 39,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }

    /// Returns whether this thread has it, or, for what BPF takes, CAP_SYS_ADMIN in its place. Where the kernel does not say, it has.
    #[must_use]
    pub fn is_held(self) -> bool {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        held(&status).is_none_or(|mask| self.is_in(mask))
    }

    const fn is_in(self, mask: u64) -> bool {
        let by_admin = matches!(self, Self::Perfmon | Self::Bpf) && mask >> SYS_ADMIN & 1 == 1;
        mask >> self.number() & 1 == 1 || by_admin
    }

    /// Returns the names of those that this thread lacks.
    #[must_use]
    pub fn missing(among: &[Self]) -> Vec<&'static str> {
        among.iter().filter(|capability| !capability.is_held()).map(|capability| capability.name()).collect()
    }
}

/// Returns the capabilities in effect, as a file of a thread's status has them.
fn held(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status() {
        let of = |mask: &str| {
            let mask = held(&format!("Name:\tfibula\nCapPrm:\t0000000000000000\nCapEff:\t{mask}\n")).unwrap();
            Capability::OF_LOADERS.map(|capability| capability.is_in(mask))
        };
        assert_eq!(of("000001ffffffffff"), [true; 3]);
        assert_eq!(of("0000000000000000"), [false; 3]);
        assert_eq!(of("0000008000001000"), [true, false, true]);
        assert_eq!(of("0000004000000000"), [false, true, false]);
        assert_eq!(of("0000000000200000"), [true, true, false], "CAP_SYS_ADMIN has those of BPF in it");
        assert_eq!(held("Name:\tfibula\n"), None);
    }
}
