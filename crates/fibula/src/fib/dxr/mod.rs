//! DXR.

mod build;
mod check;
mod geometry;
mod layout;
mod lookup;
mod statistics;
#[cfg(test)]
mod tests;

use crate::memory::Limits;
use crate::net::{Family, Key, Routes};
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};
use super::{BuildError, Fib};

pub use geometry::{Format, Options, Split};
pub use layout::{Dxr, Search};
pub use statistics::Statistics;

const NAME: &str = "dxr";

/// A registry line: name, k, format, search. Values, not variables, because a line's build is a plain function.
macro_rules! line {
    ($name:literal, $k:literal, $format:ident, $search:ident) => {{
        const OPTIONS: Options = Options { k: $k, format: Format::$format, search: Search::$search };
        Algorithm {
            name: $name,
            summary: summary(OPTIONS),
            paper: "Zec, Rizzo, Mikuc: DXR (CCR 2012), sections 3.1 to 3.3",
            families: Families::Ipv4,
            role: Role::Contestant,
            update: Update::Rebuild,
            limits: limits(OPTIONS),
            isas: &[Isa::Scalar],
            preference: |_| 0,
            build: |routes, limits| boxed(routes, OPTIONS, limits),
        }
    }};
}

/// The registry lines: every k of the paper, and the variants of ours at one k; for toy widths a few small forms.
#[must_use]
pub fn algorithms<K: Key>() -> Vec<Algorithm<K>> {
    match (K::FAMILY, K::BITS) {
        (Family::Ipv4, _) => vec![
            line!("dxr-16", 16, Stretched, EarlyStop),
            line!("dxr-17", 17, Stretched, EarlyStop),
            line!("dxr-18", 18, Stretched, EarlyStop),
            line!("dxr-19", 19, Stretched, EarlyStop),
            line!("dxr-20", 20, Stretched, EarlyStop),
            line!("dxr-21", 21, Stretched, EarlyStop),
            line!("dxr-22", 22, Stretched, EarlyStop),
            line!("dxr-23", 23, Stretched, EarlyStop),
            line!("dxr-24", 24, Stretched, EarlyStop),
            line!("dxr-18-branch-free", 18, Stretched, BranchFree),
            line!("dxr-18-wide", 18, Wide, BranchFree),
        ],
        (Family::Ipv6, _) => Vec::new(),
        (Family::Toy, ..=3) => {
            vec![line!("dxr-1", 1, Stretched, EarlyStop), line!("dxr-1-wide", 1, Wide, BranchFree)]
        }
        (Family::Toy, ..=8) => vec![
            line!("dxr-3", 3, Stretched, BranchFree),
            line!("dxr-4", 4, Stretched, EarlyStop),
            line!("dxr-4-wide", 4, Wide, EarlyStop),
        ],
        (Family::Toy, _) => vec![
            line!("dxr-8", 8, Stretched, EarlyStop),
            line!("dxr-10-branch-free", 10, Stretched, BranchFree),
            line!("dxr-8-wide", 8, Wide, BranchFree),
        ],
    }
}

const fn summary(options: Options) -> &'static str {
    match (options.format, options.search) {
        (Format::Wide, _) => "direct table, then a binary search; holds any table",
        (_, Search::EarlyStop) => "direct table, then the paper's binary search of 2- or 4-byte ranges",
        (_, Search::BranchFree) => "direct table, then binary searches side by side without branches",
    }
}

const fn limits(options: Options) -> Option<&'static str> {
    match options.format {
        Format::Wide => None,
        _ => Some("65,535 next hops in ranges; 31 bits for chunk size and position"),
    }
}

fn boxed<K: Key>(
    routes: &dyn Routes<K>,
    options: Options,
    limits: Limits,
) -> Result<Box<dyn Fib<K>>, BuildError> {
    Ok(Box::new(Dxr::build(routes, options, limits)?))
}
