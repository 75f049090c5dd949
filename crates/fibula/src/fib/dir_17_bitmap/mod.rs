//! A direct table and bitmaps behind it.

mod build;
mod check;
mod kernel;
mod layout;
mod lookup;
mod record;
mod scalar;
#[cfg(test)]
mod tests;

use crate::net::Ipv4Key;
use crate::simd::Isa;

use super::registry::{Algorithm, Families, Role, Update};

pub(crate) use layout::Dir17Bitmap;

const NAME: &str = "dir-17-bitmap";

/// The registry entry.
#[must_use]
pub(crate) fn algorithms<K: Ipv4Key>() -> Vec<Algorithm<K>> {
    vec![Algorithm {
        name: NAME,
        summary: "direct table of 17 bits, then a bitmap of changes and the values that it counts",
        paper: "Fibula's own",
        families: Families::Ipv4,
        role: Role::Own,
        update: Update::Rebuild,
        limits: Some("512 MiB of units"),
        isas: Isa::ALL,
        build: |routes, limits| Ok(Box::new(Dir17Bitmap::build(routes, limits)?)),
    }]
}
