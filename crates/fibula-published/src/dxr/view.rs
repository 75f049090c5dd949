//! The view of a table that kernels read.

use core::sync::atomic::{AtomicU32, AtomicU64};

use fibula::unstable::simd::{Halves, Words};

use super::geometry::Split;
use super::layout::{Compact, HALVES, LiveCompact, LiveWide, Shape, Wide};

/// A table as kernels read it, and how the parts of a key and of an entry lie in a lane of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) built: Built<'a>,
    pub(super) live: Live<'a>,
    /// Right shift of a lane that leaves the index of the direct entry.
    pub(super) index_shift: u32,
    /// Right shift of a lane that leaves the key.
    pub(super) key_shift: u32,
    /// Bits of the key after the index.
    pub(super) rest: u32,
    /// Trailing bits of these that short entries do not store.
    pub(super) dropped: u32,
    /// Bits of a direct entry for the position.
    pub(super) position_bits: u32,
    /// Binary logarithm of the entries in which sizes count.
    pub(super) shift: u32,
}

/// The arrays of a table that does not change; of one that does, a word each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Built<'a> {
    /// Direct entries; in the wide format the low half of each, then the high one.
    pub(super) direct: Words<'a>,
    pub(super) halves: Halves<'a>,
    /// Next hop of each code; in the wide format, of each range.
    pub(super) next_hops: Words<'a>,
}

/// The arrays of a table that changes; of one that does not, a word each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live<'a> {
    pub(super) direct: Words<'a, AtomicU32>,
    /// Direct entries of the wide format, in place of the former.
    pub(super) wide: &'a [AtomicU64],
    /// Two halves a word, the first one lower.
    pub(super) halves: Words<'a, AtomicU32>,
    pub(super) next_hops: Words<'a, AtomicU32>,
}

const NONE: Built<'static> = Built {
    direct: Words::of_one(&[0]),
    halves: Halves::of_two(&[0; HALVES]),
    next_hops: Words::of_one(&[0]),
};

/// Never written.
static ZERO: [AtomicU32; 1] = [AtomicU32::new(0)];

/// The access of kernels to a format.
pub(super) trait Viewed {
    /// Whether it is one of the wide forms.
    const WIDE: bool;

    /// Returns the arrays, of which one kind is empty, or `None` where they are too large for the index of a lane.
    fn arrays(&self) -> Option<(Built<'_>, Live<'_>)>;

    /// Returns how the bits of direct entries are split, if they are.
    fn split(&self) -> Option<Split>;
}

fn built<'a>(direct: &'a [u32], halves: &'a [u16], next_hops: &'a [u32]) -> Option<(Built<'a>, Live<'a>)> {
    let built = Built {
        direct: Words::fitting(direct)?,
        halves: Halves::fitting(if halves.is_empty() { &[0; HALVES] } else { halves })?,
        next_hops: Words::fitting(if next_hops.is_empty() { &[0] } else { next_hops })?,
    };
    let none = Words::new(&ZERO);
    Some((built, Live { direct: none, wide: &[], halves: none, next_hops: none }))
}

fn live<'a>(
    direct: &'a [AtomicU32],
    wide: &'a [AtomicU64],
    halves: &'a [AtomicU32],
    next_hops: &'a [AtomicU32],
) -> Option<(Built<'a>, Live<'a>)> {
    let [direct, halves, next_hops] = [direct, halves, next_hops].map(Words::fitting);
    Some((NONE, Live { direct: direct?, wide, halves: halves?, next_hops: next_hops? }))
}

impl Viewed for Compact {
    const WIDE: bool = false;

    fn arrays(&self) -> Option<(Built<'_>, Live<'_>)> {
        built(&self.direct, &self.ranges, &self.next_hops)
    }

    fn split(&self) -> Option<Split> {
        Some(self.split)
    }
}

impl Viewed for Wide {
    const WIDE: bool = true;

    fn arrays(&self) -> Option<(Built<'_>, Live<'_>)> {
        built(self.direct.as_flattened(), &self.bases, &self.next_hops)
    }

    fn split(&self) -> Option<Split> {
        None
    }
}

impl Viewed for LiveCompact {
    const WIDE: bool = false;

    fn arrays(&self) -> Option<(Built<'_>, Live<'_>)> {
        live(&self.direct, &[], &self.ranges, &self.next_hops)
    }

    fn split(&self) -> Option<Split> {
        Some(self.split)
    }
}

impl Viewed for LiveWide {
    const WIDE: bool = true;

    fn arrays(&self) -> Option<(Built<'_>, Live<'_>)> {
        live(&ZERO, &self.direct, &self.bases, &self.next_hops)
    }

    fn split(&self) -> Option<Split> {
        None
    }
}

impl Shape {
    /// Returns a table for keys of so many bits as kernels read it, or `None` where it is too large for the index of a lane.
    pub(super) fn view(self, key_bits: u8, form: &impl Viewed) -> Option<View<'_>> {
        let (geometry, split) = (self.geometry, form.split());
        let (built, live) = form.arrays()?;
        Some(View {
            built,
            live,
            index_shift: u32::from(32 - geometry.k),
            key_shift: u32::from(32 - key_bits),
            rest: geometry.rest.into(),
            dropped: geometry.dropped.into(),
            position_bits: split.map_or(0, |split| split.position_bits.into()),
            shift: split.map_or(0, |split| split.shift.into()),
        })
    }
}
