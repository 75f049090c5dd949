//! Paths of routes of feeds, and the numbers by which routes share them.

use std::collections::HashMap;
use std::net::IpAddr;

/// Most places of a group, in which each way is repeated as often as its weight says.
const MOST_WAYS: usize = 1024;

/// Where a route leads, as reported by its feed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Path {
    /// Discards packets silently.
    Blackhole,
    /// Discards packets, and reports to senders that the destination is unreachable.
    Unreachable,
    /// Discards packets, and reports to senders that the destination is prohibited.
    Prohibit,
    /// Leaves by one of several ways.
    Ways(Box<[Way]>),
    /// Leads wherever a next-hop object of the feed leads.
    Object {
        /// Number of the feed.
        feed: u16,
        /// Number of the object, by the feed's own count.
        id: u32,
    },
}

/// A way out, with its weight among several.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Way {
    /// The next router; `None`: the destination is a neighbour.
    pub gateway: Option<IpAddr>,
    /// The device.
    pub out: Out,
    /// Weight, from 1.
    pub weight: u32,
}

impl Way {
    /// Makes a way of weight 1.
    #[must_use]
    pub const fn new(gateway: Option<IpAddr>, out: Out) -> Self {
        Self { gateway, out, weight: 1 }
    }
}

/// The device that a way leaves by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Out {
    /// The interface of this VRF whose network contains the gateway.
    Near(u16),
    /// The device that has this number in the kernel.
    Device(u32),
}

/// The content of a next-hop object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// A single way.
    Way(Way),
    /// Discards packets.
    Blackhole,
    /// Other objects, each with its weight.
    Group(Box<[(u32, u32)]>),
}

/// A path that routes share.
#[derive(Debug)]
struct CountedPath {
    path: Path,
    /// Number of routes that have the path.
    routes: usize,
    /// Whether the path leads somewhere at the moment, as reported by the owner of the interfaces.
    is_active: bool,
}

/// Paths by number. A path keeps its number as long as a route has the path, and then until [`collect`](Self::collect).
#[derive(Debug, Default)]
pub(super) struct Paths {
    shared: Vec<Option<CountedPath>>,
    numbers: HashMap<Path, u32>,
    free: Vec<u32>,
    /// Numbers given since they were last taken.
    fresh: Vec<u32>,
    /// Bytes of all paths, and of next-hop objects.
    bytes: usize,
    /// Most bytes, if there is a limit.
    limit: Option<usize>,
}

/// Bytes that a path or an object takes apart from its ways: an entry of a list and one of a hash table.
const ENTRY_BYTES: usize = 160;

/// Returns how often each way of a path is repeated in a group. This is its weight, divided by the greatest common divisor of all
/// weights. If the sum is still too large, the weights are divided further and rounded.
#[must_use]
pub fn shares(ways: &[Way]) -> Vec<usize> {
    shares_of(ways.iter().map(|way| way.weight)).collect()
}

/// Like [`shares`], from the weights.
fn shares_of(weights: impl Iterator<Item = u32> + Clone) -> impl Iterator<Item = usize> {
    let gcd = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let weights = weights.map(|weight| weight.max(1));
    let common = weights.clone().fold(0, gcd).max(1);
    let total: u64 = weights.clone().map(|weight| u64::from(weight / common)).sum();
    let over = total.div_ceil(MOST_WAYS as u64).max(1);
    // Rounding down must not remove a way.
    weights.map(move |weight| (u64::from(weight / common) / over).max(1) as usize)
}

/// Returns the bytes of a group in the fabric, which repeats the number of each way as often as its weight says.
fn places_bytes(weights: impl Iterator<Item = u32> + Clone) -> usize {
    shares_of(weights).sum::<usize>() * size_of::<u32>()
}

impl Path {
    /// Returns the bytes that it takes: its ways are in the list of paths, in the table of their numbers, and in a group.
    fn bytes(&self) -> usize {
        let ways = match self {
            Self::Ways(ways) if ways.len() > 1 => {
                2 * size_of_val(&**ways) + places_bytes(ways.iter().map(|way| way.weight))
            }
            Self::Ways(ways) => 2 * size_of_val(&**ways),
            _ => 0,
        };
        ENTRY_BYTES + ways
    }
}

impl Object {
    /// Returns the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let members = match self {
            Self::Group(members) => {
                size_of_val(&**members) + places_bytes(members.iter().map(|&(_, weight)| weight))
            }
            Self::Way(_) | Self::Blackhole => 0,
        };
        ENTRY_BYTES + members
    }
}

impl Paths {
    /// Sets the limit on the bytes of paths and next-hop objects. What is there stays.
    pub(super) fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
    }

    /// Returns the bytes of all paths and next-hop objects.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether there is room for a path: one that routes have already takes none.
    pub(super) fn has_room(&self, path: &Path) -> bool {
        self.has_bytes(path.bytes()) || self.numbers.contains_key(path)
    }

    /// Returns whether there is room for so many bytes.
    pub(super) fn has_bytes(&self, bytes: usize) -> bool {
        self.limit.is_none_or(|limit| self.bytes + bytes <= limit)
    }

    /// Counts the bytes of next-hop objects that came and went.
    pub(super) fn charge(&mut self, more: usize, less: usize) {
        self.bytes = (self.bytes + more).saturating_sub(less);
    }

    /// Returns the number of a path, and counts a route that has it.
    pub(super) fn take(&mut self, path: Path) -> u32 {
        if let Some(&number) = self.numbers.get(&path) {
            self.count(number, true);
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.shared.push(None);
            self.shared.len() as u32 - 1
        });
        self.bytes += path.bytes();
        self.numbers.insert(path.clone(), number);
        self.shared[number as usize] = Some(CountedPath { path, routes: 1, is_active: false });
        self.fresh.push(number);
        number
    }

    /// Counts one more or one less route that has a path.
    pub(super) fn count(&mut self, number: u32, more: bool) {
        if let Some(Some(shared)) = self.shared.get_mut(number as usize) {
            shared.routes = if more { shared.routes + 1 } else { shared.routes.saturating_sub(1) };
        }
    }

    /// Returns a path by its number.
    pub(super) fn get(&self, number: u32) -> Option<&Path> {
        self.shared.get(number as usize)?.as_ref().map(|shared| &shared.path)
    }

    /// Returns whether a path leads somewhere.
    pub(super) fn is_active(&self, number: u32) -> bool {
        matches!(self.shared.get(number as usize), Some(Some(CountedPath { is_active: true, .. })))
    }

    /// Returns whether all paths that routes have lead somewhere.
    pub(super) fn are_active(&self) -> bool {
        self.shared.iter().flatten().all(|shared| shared.is_active || shared.routes == 0)
    }

    /// Sets whether a path leads somewhere. Returns whether this has changed.
    pub(super) fn set_active(&mut self, number: u32, active: bool) -> bool {
        match self.shared.get_mut(number as usize) {
            Some(Some(shared)) => std::mem::replace(&mut shared.is_active, active) != active,
            _ => false,
        }
    }

    /// Takes the numbers given since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.fresh)
    }

    /// Returns all numbers in use.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0..self.shared.len() as u32).filter(|&number| self.shared[number as usize].is_some())
    }

    /// Frees the paths that no route has, and returns their numbers.
    pub(super) fn collect(&mut self) -> Vec<u32> {
        let unused = |shared: &Option<CountedPath>| shared.as_ref().is_some_and(|shared| shared.routes == 0);
        // Free in order, so that the same changes always give the same numbers.
        let numbers: Vec<u32> =
            (0..self.shared.len() as u32).filter(|&number| unused(&self.shared[number as usize])).collect();
        for &number in &numbers {
            if let Some(shared) = self.shared[number as usize].take() {
                self.bytes -= shared.path.bytes();
                self.numbers.remove(&shared.path);
            }
        }
        self.fresh.retain(|number| numbers.binary_search(number).is_err());
        self.free.extend(&numbers);
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_path_or_an_object_counts_as_well() {
        let way = |weight| Way { gateway: None, out: Out::Near(0), weight };
        let ways = |weights: &[u32]| Path::Ways(weights.iter().map(|&weight| way(weight)).collect());
        assert_eq!(ways(&[255]).bytes(), ways(&[1]).bytes(), "one way needs no group");
        assert_eq!(ways(&[255, 254]).bytes() - ways(&[1, 1]).bytes(), (255 + 254 - 2) * 4);
        // Weights with a common divisor make a small group.
        assert_eq!(ways(&[200, 100]).bytes(), ways(&[2, 1]).bytes());
        let group = |weights: &[u32]| Object::Group(weights.iter().map(|&weight| (7, weight)).collect());
        assert_eq!(group(&[255, 254]).bytes() - group(&[1, 1]).bytes(), (255 + 254 - 2) * 4);
    }
}
