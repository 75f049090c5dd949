//! Prefixes and values of a map that changes, read under its lock: for occasional questions.

use core::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::live::{TableError, TableGuard};
use crate::memory::Budget;
use crate::net::{IntoIpAddr, IntoIpPrefix, IpPrefix, NextHop, Route};

use super::shared::{BATCH, SharedPrefixMap, ValueState};
use super::slab::index;

/// One-off reads, which wait for changes in progress and hold others up. Lookups at speed go through a
/// [`Reader`](crate::Reader).
///
/// Closures, and `clone` of values, are called under the lock of the map: a call of the map from there would wait forever. If
/// one panics, the map stays as it was and goes on.
impl<V: Send + Sync> SharedPrefixMap<V> {
    /// Calls `read` with the value of exactly a prefix, while changes wait; `None` if it is not there.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn get<R>(
        &self,
        prefix: impl IntoIpPrefix,
        read: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, TableError> {
        let prefix = prefix.into_ip_prefix();
        self.reading(|held, state| {
            let at = match prefix {
                IpPrefix::V4(prefix) => held.get(prefix),
                IpPrefix::V6(prefix) => held.get(prefix),
            };
            at.and_then(|at| state.value(at)).map(read)
        })
    }

    /// Returns whether exactly a prefix is present.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn contains(&self, prefix: impl IntoIpPrefix) -> Result<bool, TableError> {
        Ok(self.get(prefix, |_| ())?.is_some())
    }

    /// Calls `read` with the value of the longest prefix that contains an address, while changes wait; `None` if no prefix
    /// does.
    ///
    /// ```
    /// # use {fibula::ipnet::IpNet, fibula::map::SharedPrefixMap, std::net::IpAddr};
    /// let countries = SharedPrefixMap::new()?;
    /// countries.insert("192.0.2.0/24".parse::<IpNet>()?, "NZ".to_owned())?;
    /// assert_eq!(countries.lookup("192.0.2.1".parse::<IpAddr>()?, String::clone)?, Some("NZ".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn lookup<R>(
        &self,
        address: impl IntoIpAddr,
        read: impl FnOnce(&V) -> R,
    ) -> Result<Option<R>, TableError> {
        self.lookup_prefix(address, |_, value| read(value))
    }

    /// Like [`lookup`](Self::lookup), but `read` gets the prefix too.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn lookup_prefix<R>(
        &self,
        address: impl IntoIpAddr,
        read: impl FnOnce(IpPrefix, &V) -> R,
    ) -> Result<Option<R>, TableError> {
        let address = address.into_ip_addr();
        self.reading(|held, state| {
            let (prefix, at) = match address {
                IpAddr::V4(address) => held.rib::<u32>().lookup_prefix(address).map(item)?,
                IpAddr::V6(address) => held.rib::<u128>().lookup_prefix(address).map(item)?,
            };
            state.value(at).map(|value| read(prefix, value))
        })
    }

    /// Calls `read` with the longest prefix that contains `prefix`, apart from `prefix` itself, and its value, while changes wait.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn parent<R>(
        &self,
        prefix: impl IntoIpPrefix,
        read: impl FnOnce(IpPrefix, &V) -> R,
    ) -> Result<Option<R>, TableError> {
        let prefix = prefix.into_ip_prefix();
        self.reading(|held, state| {
            let (prefix, at) = match prefix {
                IpPrefix::V4(prefix) => held.rib().parent(prefix).map(item)?,
                IpPrefix::V6(prefix) => held.rib().parent(prefix).map(item)?,
            };
            state.value(at).map(|value| read(prefix, value))
        })
    }

    /// Returns all prefixes that contain an address or a prefix, itself included, with copies of their values, shortest first.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn covers(&self, prefix: impl IntoIpPrefix) -> Result<Vec<(IpPrefix, V)>, TableError>
    where
        V: Clone,
    {
        let prefix = prefix.into_ip_prefix();
        self.reading(|held, state| match prefix {
            IpPrefix::V4(prefix) => state.copies(held.rib().covers(prefix).map(item)).collect(),
            IpPrefix::V6(prefix) => state.copies(held.rib().covers(prefix).map(item)).collect(),
        })
    }

    /// Returns the prefixes inside `prefix`, itself included, with copies of their values, in order.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn subnets(&self, prefix: impl IntoIpPrefix) -> Result<Vec<(IpPrefix, V)>, TableError>
    where
        V: Clone,
    {
        let prefix = prefix.into_ip_prefix();
        self.reading(|held, state| match prefix {
            IpPrefix::V4(prefix) => state.copies(held.rib().subnets(prefix).map(item)).collect(),
            IpPrefix::V6(prefix) => state.copies(held.rib().subnets(prefix).map(item)).collect(),
        })
    }

    /// Returns whether any prefix has an address in common with `prefix`.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn overlaps(&self, prefix: impl IntoIpPrefix) -> Result<bool, TableError> {
        let (held, _state) = self.lock()?;
        Ok(match prefix.into_ip_prefix() {
            IpPrefix::V4(prefix) => held.rib().overlaps(prefix),
            IpPrefix::V6(prefix) => held.rib().overlaps(prefix),
        })
    }

    /// Returns all prefixes in order, IPv4 first, with copies of their values. Takes the lock for 256 prefixes at a time, so
    /// that changes may be made between any two of them: a prefix that is there from the first to the last call is returned
    /// once. [`entries`](Self::entries) returns one state of the map, [`for_each`](Self::for_each) copies nothing.
    #[must_use]
    pub fn iter(&self) -> MapEntries<'_, V>
    where
        V: Clone,
    {
        MapEntries { map: self, page: Vec::new().into_iter(), last: None, has_ended: false }
    }

    /// Returns the prefixes after `prefix` in the order of [`iter`](Self::iter), whether it is there or not, with copies of
    /// their values.
    #[must_use]
    pub fn iter_after(&self, prefix: impl IntoIpPrefix) -> MapEntries<'_, V>
    where
        V: Clone,
    {
        MapEntries { last: Some(prefix.into_ip_prefix()), ..self.iter() }
    }

    /// Returns all prefixes in order, IPv4 first, with copies of their values, as they are at one moment. Changes wait
    /// meanwhile.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn entries(&self) -> Result<Vec<(IpPrefix, V)>, TableError>
    where
        V: Clone,
    {
        self.reading(|held, state| state.copies(after(held, None)).collect())
    }

    /// Calls `each` with all prefixes in order and their values, IPv4 first, while changes wait.
    ///
    /// # Errors
    /// When a thread panicked in a change.
    pub fn for_each(&self, mut each: impl FnMut(IpPrefix, &V)) -> Result<(), TableError> {
        self.reading(|held, state| {
            for (prefix, at) in after(held, None) {
                if let Some(value) = state.value(at) {
                    each(prefix, value);
                }
            }
        })
    }

    /// Keeps the prefixes for which `keep` returns true, called in order, IPv4 first, and removes the others. Returns how many
    /// it removed. Takes the lock for 64 prefixes at a time, between which changes of other threads may come, and readers may
    /// see some of the removals and not others.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert). Prefixes before the 64 that were refused are removed.
    pub fn retain(&self, mut keep: impl FnMut(IpPrefix, &V) -> bool) -> Result<usize, TableError> {
        // Room for a whole group, so that nothing allocates under the lock before `apply`.
        let mut gone = Budget::default().vec(BATCH)?;
        let (mut last, mut removed) = (None, 0);
        loop {
            let mut seen = 0;
            let judged = self.change(|held, state| {
                // A panic leaves the locks as they are: nothing has changed yet.
                let judged = catch_unwind(AssertUnwindSafe(|| {
                    for (prefix, at) in after(held, last).take(BATCH) {
                        (last, seen) = (Some(prefix), seen + 1);
                        if state.value(at).is_some_and(|value| !keep(prefix, value)) {
                            gone.push((prefix, None));
                        }
                    }
                }));
                if judged.is_ok() && !gone.is_empty() {
                    removed += gone.len();
                    state.apply(held, &mut gone.drain(..))?;
                }
                Ok(judged)
            })?;
            // Only here, where `change` has released the locks: a panic under them would poison the map.
            judged.unwrap_or_else(|panic| resume_unwind(panic));
            if seen < BATCH {
                return Ok(removed);
            }
        }
    }

    /// Calls `read` under the lock. A panic in it is passed on after the lock is released: it was no panic in a change.
    fn reading<R>(&self, read: impl FnOnce(&TableGuard<'_>, &ValueState<V>) -> R) -> Result<R, TableError> {
        let (held, state) = self.lock()?;
        let result = catch_unwind(AssertUnwindSafe(|| read(&held, &state)));
        // Before the panic goes on, because guards that unwinding drops poison their locks.
        drop((state, held));
        result.map_or_else(|panic| resume_unwind(panic), Ok)
    }
}

impl<V: Send + Sync> ValueState<V> {
    fn value(&self, at: NextHop) -> Option<&V> {
        self.values.get(index(at) as u32)
    }

    fn copies(&self, items: impl Iterator<Item = (IpPrefix, NextHop)>) -> impl Iterator<Item = (IpPrefix, V)>
    where
        V: Clone,
    {
        items.filter_map(|(prefix, at)| Some((prefix, self.value(at)?.clone())))
    }
}

/// Returns the routes after a prefix, or all of them, IPv4 first.
fn after(held: &TableGuard<'_>, last: Option<IpPrefix>) -> impl Iterator<Item = (IpPrefix, NextHop)> {
    let (v4, v6) = (held.rib::<u32>(), held.rib::<u128>());
    let (v4, v6) = match last {
        None => (Some(v4.iter()), v6.iter()),
        Some(IpPrefix::V4(last)) => (Some(v4.iter_after(last)), v6.iter()),
        Some(IpPrefix::V6(last)) => (None, v6.iter_after(last)),
    };
    v4.into_iter().flatten().map(item).chain(v6.map(item))
}

fn item<K>(route: Route<K>) -> (IpPrefix, NextHop)
where
    IpPrefix: From<crate::net::Prefix<K>>,
{
    (route.prefix.into_ip_prefix(), route.next_hop)
}

/// Iterator over the prefixes and values of a map that may change meanwhile: see [`SharedPrefixMap::iter`]. An item is an
/// error, the last one, when a thread panicked in a change.
#[derive(Debug)]
pub struct MapEntries<'a, V> {
    map: &'a SharedPrefixMap<V>,
    page: std::vec::IntoIter<(IpPrefix, V)>,
    /// The last prefix of the page.
    last: Option<IpPrefix>,
    has_ended: bool,
}

/// Prefixes that are read at once.
const PAGE: usize = 256;

impl<V: Clone + Send + Sync> Iterator for MapEntries<'_, V> {
    type Item = Result<(IpPrefix, V), TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.page.next() {
            return Some(Ok(entry));
        }
        if self.has_ended {
            return None;
        }
        let last = self.last;
        let page =
            self.map.reading(|held, state| state.copies(after(held, last)).take(PAGE).collect::<Vec<_>>());
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                self.has_ended = true;
                return Some(Err(error));
            }
        };
        // A short page is the last one. An empty page has no last prefix, and a next page would begin anew.
        self.has_ended = page.len() < PAGE;
        self.last = page.last().map(|&(prefix, _)| prefix);
        self.page = page.into_iter();
        self.page.next().map(Ok)
    }
}
