//! The engine of a family, and one that is to take its place.

use std::sync::Arc;

use crate::aggregate::Aggregated;
use crate::fib::Fib;
use crate::fib::in_place::InPlace;
use crate::fib::registry::Engine;
use crate::memory::Limits;
use crate::net::{Key, Prefix, Routes};
use crate::rib::Rib;

use super::options::TableError;

/// An engine that serves readers.
pub(crate) enum Serving<K: Key> {
    /// It is changed in place.
    InPlace(Box<dyn InPlace<K>>),
    /// It is rebuilt at every change.
    Rebuilt(Arc<dyn Fib<K>>),
}

impl<K: Key> Serving<K> {
    pub(super) fn build(
        engine: &Engine<K>,
        routes: &dyn Routes<K>,
        limits: Limits,
    ) -> Result<Self, TableError> {
        Ok(match engine.in_place {
            Some(build) => Self::InPlace(build(routes, limits)?),
            None => Self::Rebuilt(engine.build(routes, limits)?.into()),
        })
    }
}

/// An engine that was built while another one serves.
pub(crate) struct Replacement<K: Key> {
    pub(crate) engine: Engine<K>,
    pub(crate) serving: Serving<K>,
    /// The routes that come with it, if it is not built from those of the family.
    pub(crate) routes: Option<Box<Whole<K>>>,
    /// Prefixes whose changes it does not have yet.
    pub(crate) missed: Vec<Prefix<K>>,
}

/// Routes that take the place of all others of a family.
pub(crate) struct Whole<K: Key> {
    pub(super) rib: Rib<K>,
    pub(super) aggregated: Option<Aggregated<K>>,
}
