//! Aggregation: the fewest routes that give every address the answer it has.
//!
//! [`minimal`] makes such a table of another, by ORTC (Draves, King, Venkatachary and Zill, *Constructing Optimal IP Routing
//! Tables*, INFOCOM 1999). [`Aggregated`] follows a table that changes. [`first_difference`] proves that two tables are
//! equivalent, or shows where they are not.
//!
//! ```
//! use fibula::aggregate;
//! use fibula::memory::Limits;
//! use fibula::net::{NextHop, Route};
//! use fibula::rib::Rib;
//!
//! let [one, two] = [1, 2].map(|id| NextHop::new(id).unwrap());
//! let mut rib = Rib::<u32>::default();
//! rib.insert(Route::new("192.0.2.0/26".parse()?, one))?;
//! rib.insert(Route::new("192.0.2.64/26".parse()?, two))?;
//! rib.insert(Route::new("192.0.2.128/25".parse()?, one))?;
//!
//! let fewer = aggregate::minimal(&rib, Limits::default())?;
//! let routes: Vec<String> = fewer.iter().map(|route| route.prefix.to_string()).collect();
//! assert_eq!(routes, ["192.0.2.0/24", "192.0.2.64/26"]);
//! assert_eq!(aggregate::first_difference(&rib, &fewer)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How
//!
//! The answers of a table are a binary tree whose leaves are the longest runs of addresses with one answer that are
//! prefixes. From the leaves up, each node gets the set of next hops that it could have: what both halves could have, or all
//! that either could have if that is nothing. From the root down, a node whose set has what it inherits needs no route; any
//! other gets a route with the first of its set.
//!
//! A route cannot take an answer away: a node with an address below it that has no route gets none either, and its set is
//! that answer alone. Real tables without a default route have many such addresses, so less is saved than the paper says of
//! tables with one.
//!
//! # Changes
//!
//! When the answers of a prefix change, the routes below it are made anew, under what they inherit from the routes above. If
//! an address now has no route and one above would cover it, that is done for the widest of the routes that do. Where both
//! halves of a prefix have come to have one answer, they become one route, and so on upwards. This is what SMALTA
//! (Uzmi et al., CoNEXT 2011) does between snapshots: always equivalent, minimal in each prefix that has changed, and as a
//! whole a little larger than the least, until [`rebuild`](Aggregated::rebuild).
//!
//! | | cost |
//! |---|---|
//! | [`minimal`], [`rebuild`](Aggregated::rebuild) | the time and the memory of the tree: 12 bytes for each of its nodes, two or more for each range of addresses |
//! | [`follow`](Aggregated::follow) | a walk of the routes in the changed prefix; of those in the widest that covers it where addresses lose their route |

mod compare;
mod follow;
#[cfg(test)]
mod tests;
mod tree;

use crate::memory::{Limits, OutOfMemory};
use crate::net::{Key, Prefix, Routes};
use crate::rib::Rib;

pub use compare::{Difference, differences, first_difference};
#[doc(hidden)]
pub use follow::Aggregated;

use tree::AnswerTree;

/// Returns the fewest routes that give every address the answer that `routes` give it. There may be other tables of as many.
///
/// # Errors
/// When memory runs out, or the limits do not suffice for the table or, by itself, for the tree.
pub fn minimal<K: Key>(routes: &dyn Routes<K>, limits: Limits) -> Result<Rib<K>, OutOfMemory> {
    let mut tree = AnswerTree::new(limits);
    tree.grow(routes, Prefix::ALL)?;
    let mut fewest = Vec::new();
    tree.routes(None, &mut fewest)?;
    drop(tree);
    let mut rib = Rib::new(limits);
    for route in fewest {
        rib.insert(route).map_err(|error| error.out_of_memory())?;
    }
    Ok(rib)
}
