//! Levels of prefixes of one length, each a counting Bloom filter before a hash table: what the structures of the Bloomfwd
//! paper consist of.
//!
//! A [`Table`](table::Table) has levels, longest first, and a direct array for what is shorter than all of them. Prefixes
//! whose length no level has are expanded to the next longer one that has a level ([`expansion`]). The structures differ in
//! the lengths of their levels and in their hash functions ([`hash::Hashes`]).

mod check;
pub(crate) mod divisor;
pub(crate) mod expansion;
pub(crate) mod figures;
pub(crate) mod filter;
pub(crate) mod hash;
pub(crate) mod lengths;
pub(crate) mod level;
pub(crate) mod rand;
pub(crate) mod sizes;
pub(crate) mod table;
#[cfg(test)]
mod tests;
mod update;
