//! Reports of the words that a table stores, for a copy of its engines elsewhere.

use crate::fib::in_place::{self, Publication, Rooms};
use crate::memory::Words;
use crate::net::Family;

/// Is told of every word that a [`Table`](super::Table) stores for lookups: for a copy of the structures in a coprocessor, in
/// another process or in a file. See [`Table::listen`](super::Table::listen).
///
/// A publication is a number of calls of [`stored`](Self::stored), and then one of [`published`](Self::published). Words that
/// an entry leads to are told of before the entry, so a copy that makes the same stores in the same order always answers each
/// address as the table did before or does after. A family that gets another structure begins with
/// [`structure`](Self::structure), and all arrays of the structure follow.
///
/// Calls come from the thread that changes the table, while other changes wait. They must not call the table. A listener that
/// panics leaves the table as a panic in the middle of a change does: lookups go on, changes are refused.
///
/// ```
/// use std::collections::HashMap;
///
/// use fibula::Table;
/// use fibula::live::{Listener, Stored, Structure};
/// use fibula::net::{Family, IpPrefix, NextHop};
///
/// /// The arrays of both families. A copy that is looked up in would take over whole arrays in `published`.
/// #[derive(Default)]
/// struct Mirror(HashMap<(Family, u8), Vec<u64>>);
///
/// impl Listener for Mirror {
///     fn structure(&mut self, structure: &Structure<'_>) {
///         self.0.retain(|&(family, _), _| family != structure.family);
///     }
///
///     fn stored(&mut self, stored: &Stored<'_>) {
///         let array = self.0.entry((stored.family, stored.array)).or_default();
///         let end = stored.first + stored.words.len();
///         array.resize(if stored.is_whole { end } else { end.max(array.len()) }, 0);
///         array[stored.first..end].iter_mut().zip(stored.words.iter()).for_each(|(to, word)| *to = word);
///     }
/// }
///
/// let table = Table::new()?;
/// table.listen(Mirror::default())?;
/// table.insert("192.0.2.0/24".parse::<IpPrefix>()?, NextHop::try_from(1)?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Listener: Send {
    /// A structure takes the place of the one of its family, from the next [`published`](Self::published) on. All of its
    /// arrays follow.
    fn structure(&mut self, structure: &Structure<'_>);

    /// Words have been stored.
    fn stored(&mut self, stored: &Stored<'_>);

    /// A change is complete: from this version on, new pins see all stores that were reported since the last call.
    fn published(&mut self, _version: u64) {}
}

/// A structure of a table, as a [`Listener`] is told of it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Structure<'a> {
    /// Its family.
    pub family: Family,
    /// How many structures of the family it follows.
    pub generation: u32,
    /// Its name in the registry. Structures that do not change in place have no arrays that are told of: each change makes a
    /// new one.
    pub engine: &'static str,
    /// Numbers by which the words of its arrays are read, with the names that the chapter of the structure has for them.
    pub shape: &'a [(&'static str, u32)],
}

/// Words that a table has stored.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Stored<'a> {
    /// The family of the structure.
    pub family: Family,
    /// How many structures of the family it follows.
    pub generation: u32,
    /// The number of the array in the structure. Lookups begin in array 0.
    pub array: u8,
    /// The first of the words in the array.
    pub first: usize,
    /// The words that the array has room for, which it never exceeds. Few of them may be in use.
    pub room: usize,
    /// The words.
    pub words: Words<'a>,
    /// Whether these are all words in use of an array that takes the place of the one of this number, from the next
    /// [`published`](Listener::published) on: one of a new structure, or entries that are published together by
    /// [`apply_atomic`](super::Table::apply_atomic). Lookups that have begun stay in the array before.
    pub is_whole: bool,
}

/// Passes on the stores of one family, and takes the units that it retires.
pub(super) struct Notifier<'a> {
    pub(super) units: &'a mut Vec<in_place::RetiredUnit>,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) family: Family,
    pub(super) generation: u32,
    pub(super) engine: &'static str,
    pub(super) rooms: Rooms,
}

impl Publication for Notifier<'_> {
    fn retire(&mut self, retired: in_place::RetiredUnit) {
        self.units.push(retired);
    }

    fn listens(&self) -> bool {
        true
    }

    fn structure(&mut self, shape: &[(&'static str, u32)]) {
        let Self { family, generation, engine, .. } = *self;
        self.listener.structure(&Structure { family, generation, engine, shape });
    }

    fn stored(&mut self, stored: in_place::StoredWords<'_>) {
        let Self { family, generation, rooms, .. } = *self;
        let in_place::StoredWords { array, first, room, words, is_whole } = stored;
        let room = room.min(rooms.0.get(usize::from(array)).copied().unwrap_or(usize::MAX));
        self.listener.stored(&Stored { family, generation, array, first, room, words, is_whole });
    }
}
