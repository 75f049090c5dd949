//! The forms of the loop that compete.
// Without the compiled loops only the names are used.
#![cfg_attr(not(feature = "plain"), allow(dead_code))]

/// How keys are held. The numbers are those of `planb.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Layout {
    /// Integers of 128 bits.
    Host = 0,
    /// 16 bytes in network order.
    Network = 1,
    /// Integers of 64 bits: the upper halves in one array, and in another the lower halves, which few lookups read.
    Halves = 2,
}

/// The instruction set that a loop is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    Scalar,
    Avx2,
    Avx512,
}

impl Set {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// A loop over keys of one layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) layout: Layout,
    pub(super) set: Set,
}

const fn form(name: &'static str, layout: Layout, set: Set) -> Form {
    Form { name, layout, set }
}

pub(super) const FORMS: &[Form] = &[
    form("planb-cpp-scalar", Layout::Host, Set::Scalar),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-avx2", Layout::Host, Set::Avx2),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-avx512", Layout::Host, Set::Avx512),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-network-avx2", Layout::Network, Set::Avx2),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-network-avx512", Layout::Network, Set::Avx512),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-64-avx2", Layout::Halves, Set::Avx2),
    #[cfg(target_arch = "x86_64")]
    form("planb-cpp-64-avx512", Layout::Halves, Set::Avx512),
];
