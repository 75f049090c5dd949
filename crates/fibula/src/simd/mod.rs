//! Instruction sets: which exist, which this machine has, which one is used; and the vector operations that kernels are
//! written in. The only use of `core::arch`.
//!
//! A kernel is one body over the operations of a module (below), compiled for every set by the macro `kernel`. A
//! [`Present`] proves that this CPU supports the set, so that a kernel is called without a check.
//!
//! # Operations
//! Each module of operations works on vectors `V` of eight 32-bit lanes and masks `M`, true or false for each lane.
//! Operations that read memory take a `Words`, `Halves` or `Bytes`: a table with its bounds, to which a gather clamps its
//! index by one operation, so that it is safe.
//!
//! | module | registers | it adds |
//! |---|---|---|
//! | `avx2` | 256 bits | gathers, variable shifts; masks are vectors |
//! | `avx512` | 256 bits of AVX-512VL | mask registers |
//! | `icelake` | 256 bits of AVX-512VL | population counts of lanes |
//! | `neon` | two of 128 bits | as `avx2`, without gathers: lanes are loaded one by one |
//!
//! The submodule `wide` of each has vectors `W` of sixteen lanes: one register of 512 bits, or two vectors of eight. It
//! also reads tables whose elements a writer may change. That is sound because its gathers are as good as relaxed loads: one
//! load of the element's size for each lane.
//! The submodule `lines` searches cache lines of such tables.
//!
//! `Tree` is the same for every set: it walks down trees without pointers, with the search of a node as a parameter.
//!
//! Which width is faster depends on the processor and on the kernel; `docs/adr/0006-instruction-sets.md` has figures.

use core::fmt;
use core::str::FromStr;
use core::sync::atomic::{AtomicU8, Ordering};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
pub(crate) mod aarch64;
mod coded_line;
pub(crate) mod multiversion;
mod pairs;
mod part;
pub(crate) mod shared_line;
pub(crate) mod table;
pub(crate) mod tree;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

pub(crate) use self::{
    coded_line::*,
    multiversion::{kernel, operations},
};
pub(crate) use shared_line::{
    LEAF_KEYS, LINE_UNITS, SharedLine, SharedLines, anew, any_has, double_ranks_by_thirds, fetch_after,
    fetch_at, half_of_shared, leaf_by_thirds, leaf_rank_by_thirds, leaves_by_thirds, rank_by_thirds,
};
#[doc(hidden)]
pub use table::fetch;
pub(crate) use table::{
    Bounded, Bytes, Cell32, Halves, LINE_WORDS, Leading, Longs, Places, Room, Words, fetch_past, put,
};
pub(crate) use tree::{IN_REGISTERS, Tree, TreeWalks, each_lane, each_value};

/// Number of lanes of a vector, for every set.
#[doc(hidden)]
pub const LANES: usize = 8;

/// Number of lanes of a wide vector, for every set.
#[doc(hidden)]
pub const WIDE: usize = 16;

/// An instruction set that a batch kernel can be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Portable integer code: every machine.
    Scalar,
    /// AVX2 with BMI1, BMI2, LZCNT and POPCNT: x86-64-v3, Intel since 2013, AMD since 2015.
    Avx2,
    /// AVX-512 F, CD, BW, DQ and VL: x86-64-v4, Intel since 2017, AMD since 2022.
    Avx512,
    /// AVX-512 with VPOPCNTDQ, BITALG, VBMI and VBMI2: Intel since Ice Lake (2019), AMD since 2022.
    Icelake,
    /// NEON, the 128-bit registers of every 64-bit ARM; little-endian.
    Neon,
}

impl Isa {
    /// All sets, the portable one first. Of the sets of one architecture, later ones contain earlier ones.
    pub const ALL: &'static [Self] = &[Self::Scalar, Self::Avx2, Self::Avx512, Self::Icelake, Self::Neon];

    /// Returns the name, as the command and its outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Icelake => "avx512-icelake",
            Self::Neon => "neon",
        }
    }

    /// Returns whether every machine that has `set` has this one too.
    #[must_use]
    pub const fn is_within(self, set: Self) -> bool {
        match (self, set) {
            (Self::Scalar, _) | (Self::Neon, Self::Neon) => true,
            (Self::Neon, _) | (_, Self::Neon) => false,
            _ => self as u8 <= set as u8,
        }
    }

    /// Returns the proof that this CPU supports the set.
    ///
    /// # Errors
    /// When it does not.
    pub fn present(self) -> Result<Present, AbsentIsa> {
        if self.is_detected() { Ok(Present(self)) } else { Err(AbsentIsa(self)) }
    }

    #[cfg(target_arch = "x86_64")]
    fn is_detected(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Self::Scalar => true,
            Self::Avx2 => has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt"),
            Self::Avx512 => {
                Self::Avx2.is_detected()
                    && has!("avx512f")
                    && has!("avx512cd")
                    && has!("avx512bw")
                    && has!("avx512dq")
                    && has!("avx512vl")
            }
            Self::Icelake => {
                Self::Avx512.is_detected()
                    && has!("avx512vpopcntdq")
                    && has!("avx512bitalg")
                    && has!("avx512vbmi")
                    && has!("avx512vbmi2")
            }
            Self::Neon => false,
        }
    }

    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    fn is_detected(self) -> bool {
        self == Self::Scalar || self == Self::Neon && std::arch::is_aarch64_feature_detected!("neon")
    }

    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))))]
    fn is_detected(self) -> bool {
        self == Self::Scalar
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Isa {
    type Err = UnknownIsa;

    fn from_str(name: &str) -> Result<Self, UnknownIsa> {
        Self::ALL.iter().find(|isa| isa.name() == name).copied().ok_or_else(|| UnknownIsa(name.to_owned()))
    }
}

/// An instruction set that this machine has; a value is the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Present(Isa);

impl Present {
    /// The set that every machine has.
    pub const SCALAR: Self = Self(Isa::Scalar);

    /// Returns the sets that this machine has, the portable one first.
    pub fn all() -> impl Iterator<Item = Self> {
        Isa::ALL.iter().filter_map(|isa| isa.present().ok())
    }

    /// Returns the set.
    #[must_use]
    pub const fn isa(self) -> Isa {
        self.0
    }

    /// Counts the bits that are set. For lookups of one key, which are not compiled for each set.
    #[inline(always)]
    #[doc(hidden)]
    pub fn count_ones(self, bits: u64) -> u32 {
        #[cfg(target_arch = "x86_64")]
        return x86::count_ones(self, bits);
        #[cfg(not(target_arch = "x86_64"))]
        bits.count_ones()
    }
}

/// The number of the chosen set; 0 until the first use, which chooses the best one.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the set that lookups use by default: the one that was [forced](force), else the best one that this machine
/// has. Costs one load.
#[must_use]
#[inline]
pub fn chosen() -> Present {
    // Relaxed: nothing else depends on the number.
    match CHOSEN.load(Ordering::Relaxed) {
        0 => choose_best(),
        number => Present(Isa::ALL[usize::from(number) - 1]),
    }
}

/// Chooses the best set that this machine has, unless another thread has forced one meanwhile.
#[cold]
fn choose_best() -> Present {
    let best = Present::all().last().unwrap_or(Present::SCALAR);
    match CHOSEN.compare_exchange(0, number(best), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => best,
        Err(forced) => Present(Isa::ALL[usize::from(forced) - 1]),
    }
}

/// Makes `isa` the set that lookups of the whole process use; `None` for the best there is.
///
/// # Errors
/// When this machine lacks it; the choice is then unchanged.
pub fn force(isa: Option<Isa>) -> Result<(), AbsentIsa> {
    let number = isa.map_or(Ok(0), |isa| isa.present().map(number))?;
    CHOSEN.store(number, Ordering::Relaxed);
    Ok(())
}

/// Returns the number of a set in [`CHOSEN`].
fn number(present: Present) -> u8 {
    let at = Isa::ALL.iter().position(|&isa| isa == present.0).expect("the list holds every set");
    at as u8 + 1
}

/// The error for an instruction set that this machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsentIsa(Isa);

impl fmt::Display for AbsentIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there: Vec<&str> = Present::all().map(|present| present.isa().name()).collect();
        write!(f, "this machine has no {}; it has: {}", self.0, there.join(", "))
    }
}

impl core::error::Error for AbsentIsa {}

/// The error for a name that no instruction set has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownIsa(String);

impl fmt::Display for UnknownIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = Isa::ALL.iter().map(|isa| isa.name()).collect();
        write!(f, "no instruction set '{}'; there are: {}", self.0, known.join(", "))
    }
}

impl core::error::Error for UnknownIsa {}

#[cfg(test)]
mod tests;
