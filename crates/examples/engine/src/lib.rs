//! An engine of your own, in the smallest form that passes every test: copy this folder to try an idea.
//!
//! `CONTRIBUTING.md` has the walk-through. Everything an engine needs is in [`fibula::fib`], which you implement, and in
//! [`fibula::unstable`], which you build on. The engine here is [`sorted_ranges`].
//!
//! ```
//! use fibula::memory::Limits;
//! use fibula::net::{NextHop, Route};
//! use fibula::rib::Rib;
//!
//! let mut rib = Rib::<u32>::default();
//! rib.insert(Route::new("10.0.0.0/8".parse()?, NextHop::new(7).unwrap()))?;
//! let engine = fibula_example_engine::ENGINES.find::<u32>("sorted-ranges")?;
//! let fib = engine.build(&rib, Limits::default())?;
//! assert_eq!(fib.lookup(0x0a00_0001), NextHop::new(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod sorted_ranges;

use fibula::fib::registry::{Engine, Engines};
use fibula::net::Key;

/// The library's engines and this crate's, for code that takes a list and looks names up in it.
pub const ENGINES: Engines = Engines::new(engines, engines);

/// Returns the library's engines for keys of this kind, then those of this crate.
#[must_use]
pub fn engines<K: Key>() -> Vec<Engine<K>> {
    let mut all = fibula::fib::engines();
    all.extend(own());
    all
}

/// Returns the engines of this crate alone. A second engine is a second line here.
#[must_use]
pub fn own<K: Key>() -> Vec<Engine<K>> {
    let mut all = Vec::new();
    all.extend(sorted_ranges::engines());
    all
}
