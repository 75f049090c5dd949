//! The boundary to the C++ loops. `build.cc` and `lookup.cc` are the other side.
#![allow(unsafe_code)]

use core::ptr::{NonNull, null};

use super::form::{Layout, Set};

/// A route: `Route` of `build.cc`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Route {
    pub(super) upper: u64,
    pub(super) lower: u64,
    pub(super) len: u32,
    pub(super) next_hop: u32,
}

/// `enum Shape` of `planb.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Call {
    Batch = 0,
    Single = 1,
    Dependent = 2,
}

/// Keys in their layout.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keys<'a> {
    Host(&'a [u128]),
    Network(&'a [[u8; 16]]),
    /// Upper halves and lower halves, as many of each.
    Halves(&'a [u64], &'a [u64]),
}

/// `struct Keys` of `planb.h`.
#[repr(C)]
struct RawKeys {
    keys: *const u8,
    lower: *const u64,
}

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

type Lookup = unsafe extern "C" fn(*const Raw, u32, u32, *const RawKeys, usize, usize, *mut u32);

/// Declares functions that are a [`Lookup`].
macro_rules! lookups {
    ($($(#[$attribute:meta])* $name:ident)*) => {
        unsafe extern "C" {
            $($(#[$attribute])* fn $name(
                table: *const Raw,
                layout: u32,
                shape: u32,
                keys: *const RawKeys,
                count: usize,
                room: usize,
                answers: *mut u32,
            );)*
        }
    };
}

unsafe extern "C" {
    fn fibula_plain_build(routes: *const Route, count: usize, flipped: u32) -> *mut Raw;
    fn fibula_plain_free(table: *mut Raw);
    fn fibula_plain_bytes(table: *const Raw, lookup: *mut usize, mapped: *mut usize);
}

lookups! {
    fibula_plain_lookup_scalar
    #[cfg(target_arch = "x86_64")] fibula_plain_lookup_avx2
    #[cfg(target_arch = "x86_64")] fibula_plain_lookup_avx512
}

/// A loop, for an instruction set that this machine was found to have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop(Lookup);

impl Loop {
    /// Returns the loop of a set; `None` if this machine lacks the set. All loops may use whatever else the machine that
    /// compiled them has: a program with this feature is for that machine alone.
    pub(super) fn of(set: Set) -> Option<Self> {
        match set {
            Set::Scalar => Some(Self(fibula_plain_lookup_scalar)),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => {
                std::arch::is_x86_feature_detected!("avx2").then_some(Self(fibula_plain_lookup_avx2))
            }
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => (std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512dq"))
            .then_some(Self(fibula_plain_lookup_avx512)),
            #[cfg(not(target_arch = "x86_64"))]
            Set::Avx2 | Set::Avx512 => None,
        }
    }
}

/// A table of the C++ side.
#[derive(Debug)]
pub(super) struct Handle {
    table: NonNull<Raw>,
}

// SAFETY: the table is memory of its own, tied to no thread.
unsafe impl Send for Handle {}

// SAFETY: methods that take `&self` only read the table: lookups write to the caller's memory alone.
unsafe impl Sync for Handle {}

impl Handle {
    /// Builds the table of routes in order, covers first, for the loop of AVX2 with the highest bits flipped; `None` if
    /// memory runs out.
    pub(super) fn build(routes: &[Route], flipped: bool) -> Option<Self> {
        assert!(routes.iter().all(|route| route.len <= 128 && route.next_hop < 1 << 31), "routes of IPv6");
        // SAFETY: `Route` has the layout of the other side's struct, and there are as many as it is told. It stops no
        // thread: it catches its own exceptions.
        NonNull::new(unsafe { fibula_plain_build(routes.as_ptr(), routes.len(), flipped.into()) })
            .map(|table| Self { table })
    }

    /// Returns the bytes that lookups can touch, and those that are mapped.
    pub(super) fn bytes(&self) -> (usize, usize) {
        let (mut lookup, mut mapped) = (0, 0);
        // SAFETY: the table lives, and both numbers can be written.
        unsafe { fibula_plain_bytes(self.table.as_ptr(), &raw mut lookup, &raw mut mapped) };
        (lookup, mapped)
    }

    /// Looks `keys` up in blocks of as many as `answers` has room for. The next hops of a block, 0 for none, overwrite
    /// those of the one before.
    pub(super) fn lookup(&self, with: Loop, call: Call, keys: Keys<'_>, answers: &mut [u32]) {
        let (layout, raw, count) = match keys {
            Keys::Host(keys) => {
                (Layout::Host, RawKeys { keys: keys.as_ptr().cast(), lower: null() }, keys.len())
            }
            Keys::Network(keys) => {
                (Layout::Network, RawKeys { keys: keys.as_ptr().cast(), lower: null() }, keys.len())
            }
            Keys::Halves(upper, lower) => {
                assert_eq!(upper.len(), lower.len(), "a key has two halves");
                let raw = RawKeys { keys: upper.as_ptr().cast(), lower: lower.as_ptr() };
                (Layout::Halves, raw, upper.len())
            }
        };
        assert!(!answers.is_empty() || count == 0, "answers need room");
        // SAFETY: the table lives and never changes; there are `count` keys of this layout, and room for as many answers
        // as it is told, which is not 0; a `Loop` exists only for a set that this machine has.
        unsafe {
            (with.0)(
                self.table.as_ptr(),
                layout as u32,
                call as u32,
                &raw const raw,
                count,
                answers.len(),
                answers.as_mut_ptr(),
            );
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the table lives until here, and nothing refers to it any more.
        unsafe { fibula_plain_free(self.table.as_ptr()) }
    }
}
