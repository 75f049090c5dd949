//! The list of all engines: what is known about each, and how to build it by name.
//!
//! ```
//! use fibula::fib::registry;
//! use fibula::memory::Limits;
//! use fibula::net::RouteSlice;
//!
//! let engine = registry::find::<u32>("dir-17-bitmap")?;
//! let fib = engine.build(&RouteSlice::new(&[])?, Limits::within(100_000_000))?;
//! assert_eq!(fib.lookup(0), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::any::Any;
use core::fmt;

use crate::memory::Limits;
use crate::net::{Family, Key, KeyKind, Routes};
use crate::simd::Isa;

use super::in_place::{Exclusive, InPlace};
use super::sections::{Parts, PartsError};
use super::{BuildError, Fib};

/// A registry entry: an engine in one of its forms.
#[derive(Clone, Copy)]
pub struct Engine<K: Key> {
    /// The name, in lower case with hyphens, as the command and the documents spell it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Completes "take it when ..."; for engines of papers, "use it for ...". Lists, chapters and documents repeat it.
    pub use_when: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// The families it serves.
    pub families: Families,
    /// Whether it is this project's own, is from a paper, or judges the others.
    pub role: Role,
    /// Whether it can change in place.
    pub update: Update,
    /// What its format cannot hold, if there are tables that it refuses.
    pub limits: Option<&'static str>,
    /// The instruction sets that it has kernels for.
    pub isas: &'static [Isa],
    /// See [`Engine::build`].
    #[doc(hidden)]
    pub build: Build<K>,
    /// Builds a form that changes while readers look.
    #[doc(hidden)]
    pub in_place: Option<BuildInPlace<K>>,
    /// Makes the engine of what [`Fib::sections`] gave; `None` if files cannot hold it. It need not be in order yet, which
    /// [`Fib::check`] tells, but no lookup in it leaves its arrays.
    #[doc(hidden)]
    pub open: Option<OpenFn<K>>,
    /// Whether that holds while its words change in any way, and lookups end then: it can be mapped.
    #[doc(hidden)]
    pub maps: bool,
}

/// Builds an engine within limits.
#[doc(hidden)]
pub type Build<K> = fn(&dyn Routes<K>, Limits) -> Result<Box<dyn Fib<K>>, BuildError>;

/// Builds an engine that changes while readers look.
#[doc(hidden)]
pub type BuildInPlace<K> = fn(&dyn Routes<K>, Limits) -> Result<Box<dyn InPlace<K>>, BuildError>;

/// Makes an engine of what a file holds of it.
#[doc(hidden)]
pub type OpenFn<K> = fn(Parts) -> Result<Box<dyn Fib<K>>, PartsError>;

impl<K: Key> Engine<K> {
    /// Returns whether a file can hold the engine ([`file`](crate::file)).
    #[must_use]
    pub fn is_saved(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether such a file can be mapped.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        self.open.is_some() && self.maps
    }

    /// Returns how it follows changes, as outputs spell it: `in-place` while threads look up, `exclusive` if it changes in place
    /// only while nobody looks up, so that a live table builds it again at every call, or `rebuild`.
    #[must_use]
    pub fn update_name(&self) -> &'static str {
        match self.update {
            Update::InPlace if self.in_place.is_none() => "exclusive",
            update => update.name(),
        }
    }

    /// Builds the engine from routes in order, within `limits`.
    ///
    /// # Errors
    /// When memory runs out, or the format is too small for the table.
    pub fn build(&self, routes: &dyn Routes<K>, limits: Limits) -> Result<Box<dyn Fib<K>>, BuildError> {
        (self.build)(routes, limits)
    }

    /// Builds a form of the engine that can change in place, if there is one ([`Fib::updatable`] is not `None`), else as
    /// [`build`](Self::build) does. It may take more memory, for changes to come.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    pub fn build_updatable(
        &self,
        routes: &dyn Routes<K>,
        limits: Limits,
    ) -> Result<Box<dyn Fib<K>>, BuildError> {
        match self.in_place {
            Some(build) => Ok(Box::new(Exclusive::new(build(routes, limits)?))),
            None => self.build(routes, limits),
        }
    }
}

/// Engines are equal that have the same name: no two of a list have.
impl<K: Key> PartialEq for Engine<K> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl<K: Key> Eq for Engine<K> {}

impl<K: Key> fmt::Debug for Engine<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("name", &self.name).field("family", &K::FAMILY).finish_non_exhaustive()
    }
}

#[doc(hidden)]
/// The families an engine serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// IPv4 and IPv6.
    Both,
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
}

impl Families {
    /// Returns whether `family` is among them.
    #[must_use]
    pub fn contains(self, family: Family) -> bool {
        match family {
            Family::Ipv4 => self != Self::Ipv6,
            Family::Ipv6 => self != Self::Ipv4,
        }
    }
}

#[doc(hidden)]
/// Why an engine is in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Judges the others: written to be evidently right, not to be fast.
    Oracle {
        /// Number of routes above which it is so slow that tests compare a sample of its answers only.
        routes_limit: usize,
    },
    /// Kept close to how it was published elsewhere, for comparison.
    Published,
    /// Built after another paper's description, for comparison; its own paper was not read.
    Described,
    /// This project's own.
    Own,
}

impl Role {
    /// Returns the name, as outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Oracle { .. } => "oracle",
            Self::Published => "published",
            Self::Described => "described",
            Self::Own => "own",
        }
    }
}

#[doc(hidden)]
/// Whether an engine can change in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// It can change in place.
    InPlace,
    /// It must be built again.
    Rebuild,
}

impl Update {
    /// Returns the name, as outputs spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::Rebuild => "rebuild",
        }
    }
}

/// Makes the list of a crate's engines out of the names of modules, each with the keys that its engines serve: the function
/// `engines`, and for tests their names as `NAMES`.
#[macro_export]
#[doc(hidden)]
macro_rules! __engines {
    (@entries $module:ident: Key) => { Vec::from_iter($module::engines::<K>()) };
    (@entries $module:ident: Ipv4Key) => { $crate::__engines!(@entries $module: Ipv4Key, ForIpv4, if_ipv4) };
    (@entries $module:ident: Ipv6Key) => { $crate::__engines!(@entries $module: Ipv6Key, ForIpv6, if_ipv6) };
    (@entries $module:ident: $Keys:ident, $For:ident, $if_family:ident) => {{
        struct Entries;
        impl<K: $crate::net::Key> $crate::net::$For<K> for Entries {
            type Output = Vec<$crate::fib::registry::Engine<K>>;

            fn call() -> Self::Output
            where
                K: $crate::net::$Keys,
            {
                Vec::from_iter($module::engines::<K>())
            }
        }
        K::$if_family::<Entries>().unwrap_or_default()
    }};
    ($(#[$meta:meta])* $vis:vis fn $name:ident; $($module:ident: $Keys:ident,)*) => {
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($module)),*];

        $(#[$meta])*
        // Those of `u32` and `u128` are compiled in this crate, once for every program and test that uses them; those
        // of the toy widths where they are used.
        #[must_use]
        $vis fn $name<K: $crate::net::Key>() -> Vec<$crate::fib::registry::Engine<K>> {
            #[inline(never)]
            fn ipv4() -> Vec<$crate::fib::registry::Engine<u32>> {
                generic()
            }
            #[inline(never)]
            fn ipv6() -> Vec<$crate::fib::registry::Engine<u128>> {
                generic()
            }
            fn generic<K: $crate::net::Key>() -> Vec<$crate::fib::registry::Engine<K>> {
                let mut all = Vec::new();
                $(all.extend($crate::__engines!(@entries $module: $Keys));)*
                all
            }
            // A constant condition, so that the branch that is not taken is not compiled. The tests of this crate
            // use little of the list.
            if const { cfg!(test) || matches!(K::KIND, $crate::net::KeyKind::Toy) } {
                generic()
            } else {
                $crate::fib::registry::one_kind(ipv4())
                    .or_else(|| $crate::fib::registry::one_kind(ipv6()))
                    .unwrap_or_default()
            }
        }
    };
}

/// Returns the entries as entries for `K`, if `K` and `L` are the same type.
#[doc(hidden)]
#[must_use]
pub fn one_kind<K: Key, L: Key>(entries: Vec<Engine<L>>) -> Option<Vec<Engine<K>>> {
    (Box::new(entries) as Box<dyn Any>).downcast().ok().map(|entries| *entries)
}

#[doc(hidden)]
/// A list of engines: the library's own, or those of another crate beside them.
///
/// Names are looked up in such a list. Whoever takes names from users passes one on, so that the same code serves a program with
/// this crate's engines alone and one with more.
#[derive(Debug, Clone, Copy)]
pub struct Engines {
    ipv4: fn() -> Vec<Engine<u32>>,
    ipv6: fn() -> Vec<Engine<u128>>,
}

/// Lists are equal that have engines of the same names.
impl PartialEq for Engines {
    fn eq(&self, other: &Self) -> bool {
        self.all::<u32>() == other.all::<u32>() && self.all::<u128>() == other.all::<u128>()
    }
}

impl Eq for Engines {}

impl Engines {
    /// The engines of this crate.
    pub const OWN: Self = Self::new(super::engines, super::engines);

    /// Returns the list that these functions return, by family.
    #[must_use]
    pub const fn new(ipv4: fn() -> Vec<Engine<u32>>, ipv6: fn() -> Vec<Engine<u128>>) -> Self {
        Self { ipv4, ipv6 }
    }

    /// Returns the engines of a family.
    #[must_use]
    pub fn all<K: Key>(&self) -> Vec<Engine<K>> {
        match K::KIND {
            KeyKind::Ipv4 => one_kind((self.ipv4)()),
            KeyKind::Ipv6 => one_kind((self.ipv6)()),
            KeyKind::Toy => None,
        }
        .unwrap_or_default()
    }

    /// Returns the engine of this name.
    ///
    /// # Errors
    /// When the family has none; the error lists those that it has.
    pub fn find<K: Key>(&self, name: &str) -> Result<Engine<K>, UnknownEngine> {
        find_in(&self.all(), name)
    }
}

/// Returns the engine of this name, of those that this crate has.
///
/// # Errors
/// When the family has none; the error lists those that it has.
pub fn find<K: Key>(name: &str) -> Result<Engine<K>, UnknownEngine> {
    find_in(&super::engines(), name)
}

/// Returns the engine of this name.
///
/// # Errors
/// When there is none in the list; the error has the names of those that there are.
#[doc(hidden)]
pub fn find_in<K: Key>(all: &[Engine<K>], name: &str) -> Result<Engine<K>, UnknownEngine> {
    all.iter().find(|engine| engine.name == name).copied().ok_or_else(|| UnknownEngine {
        name: name.to_owned(),
        family: K::FAMILY,
        known: all.iter().map(|engine| engine.name).collect(),
    })
}

/// Engines that are for comparison, in the crate `fibula-published` and the command `fibula-lab` only: their names, or what these
/// begin with.
const PUBLISHED: [&str; 15] = [
    "linear",
    "radix",
    "multibit",
    "miht",
    "range-search",
    "planb",
    "dxr",
    "poptrie",
    "sail",
    "hbs",
    "cp-trie",
    "neurotrie",
    "bloom-naive",
    "bloom-baseline",
    "bloomfwd",
];

/// Number of engines in `fibula-published` that this crate lacks, for one family or for both; lists without them mention it.
#[doc(hidden)]
pub const PUBLISHED_COUNT: usize = 36;

/// Returns whether an engine of this name is for comparison: not in this crate, but in `fibula-published` and `fibula-lab`.
#[doc(hidden)]
#[must_use]
pub fn is_published(name: &str) -> bool {
    PUBLISHED.iter().any(|published| {
        name.strip_prefix(published).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':']))
    })
}

/// The error for a name that the registry does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEngine {
    name: String,
    family: Family,
    known: Vec<&'static str>,
}

impl UnknownEngine {
    /// Returns the names of the engines for the family.
    #[must_use]
    pub fn known(&self) -> &[&'static str] {
        &self.known
    }
}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, family, known } = self;
        write!(f, "no engine '{name}' for {family}")?;
        if is_published(name) {
            write!(f, " here: it is for comparison, and in fibula-lab only")?;
        }
        write!(f, "; there are: {}", known.join(", "))
    }
}

impl core::error::Error for UnknownEngine {}
