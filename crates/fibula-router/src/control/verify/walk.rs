//! Compares the RIB with the tables, and the tables with lookups, a page of prefixes at a time. Has no clock.

use std::net::IpAddr;

use fibula::Table;
use fibula::live::{Reader, TableError};
use fibula::net::{IpPrefix, Key, NextHop, Prefix};

use crate::control::install::Install;
use crate::feed::{Place, Rib};
use crate::forward::fabric::Vrf;

/// Most differing prefixes that a pass keeps. Further ones are only counted.
const MOST: usize = 10_000;

/// The fault of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The table does not have the next hop that the RIB has chosen.
    Table {
        /// The next hop that the RIB has chosen.
        rib: Option<NextHop>,
        /// The next hop in the table.
        fib: Option<NextHop>,
    },
    /// A lookup in the engine gives another next hop than the table's routes.
    Lookup {
        /// The address: the first or the last one of the prefix.
        address: IpAddr,
        /// The next hop of its longest route.
        fib: Option<NextHop>,
        /// The next hop that the lookup found.
        lookup: Option<NextHop>,
    },
}

/// A prefix that differs between two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDifference {
    /// The prefix, in its VRF.
    pub place: Place,
    /// The fault.
    pub found: Found,
}

/// The RIB and the tables to compare.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'s> {
    /// All routes.
    pub rib: &'s Rib,
    /// The numbers of their next hops.
    pub install: &'s Install,
    /// The tables. Nothing may change them meanwhile.
    pub vrfs: &'s [Vrf],
}

/// A pass over all prefixes of all VRFs.
#[derive(Debug, Default)]
pub struct Walk {
    vrf: usize,
    after: Option<IpPrefix>,
    compared: u64,
    suspects: Vec<Place>,
    /// Number of suspects that were not kept.
    more: u64,
}

impl Walk {
    /// Compares the next prefixes, at most `most`. Returns whether that was the end.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn step(&mut self, scene: &Scene<'_>, mut most: usize) -> Result<bool, TableError> {
        while let Some(vrf) = scene.vrfs.get(self.vrf) {
            let page = page(scene.rib, &vrf.table, self.vrf, self.after, most)?;
            let Some(&last) = page.last() else {
                (self.vrf, self.after) = (self.vrf + 1, None);
                continue;
            };
            let mut reader = vrf.table.reader()?;
            for &prefix in &page {
                let place = (self.vrf as u16, prefix);
                let Some(found) = compare(scene, place, &mut reader)? else { continue };
                self.compared += 1;
                match found {
                    Ok(()) => {}
                    Err(_) if self.suspects.len() < MOST => self.suspects.push(place),
                    Err(_) => self.more += 1,
                }
            }
            (self.after, most) = (Some(last), most - page.len());
            if most == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the number of prefixes compared. Prefixes with a change under way are not counted.
    #[must_use]
    pub const fn compared(&self) -> u64 {
        self.compared
    }

    /// Returns the number of prefixes that differed but are not among the [`differences`](Self::differences), because there are
    /// too many.
    #[must_use]
    pub const fn more(&self) -> u64 {
        self.more
    }

    /// Compares the differing prefixes of this pass again, and returns those that still differ.
    ///
    /// # Errors
    /// When a table cannot be read.
    pub fn differences(&self, scene: &Scene<'_>) -> Result<Vec<TableDifference>, TableError> {
        let mut differences = Vec::new();
        for &place in &self.suspects {
            let Some(vrf) = scene.vrfs.get(usize::from(place.0)) else { continue };
            if let Some(Err(found)) = compare(scene, place, &mut vrf.table.reader()?)? {
                differences.push(TableDifference { place, found });
            }
        }
        Ok(differences)
    }
}

/// Returns the next prefixes that are in the RIB or the table, in order.
fn page(
    rib: &Rib,
    table: &Table,
    vrf: usize,
    after: Option<IpPrefix>,
    most: usize,
) -> Result<Vec<IpPrefix>, TableError> {
    let mut page = rib.places_after(vrf, after, most);
    let mut left = most;
    if !matches!(after, Some(IpPrefix::V6(_))) {
        let routes = match after {
            Some(IpPrefix::V4(after)) => table.iter_after(after),
            _ => table.iter::<u32>(),
        };
        for route in routes.take(left) {
            page.push(IpPrefix::V4(route?.prefix));
            left -= 1;
        }
    }
    let routes = match after {
        Some(IpPrefix::V6(after)) => table.iter_after(after),
        _ => table.iter::<u128>(),
    };
    for route in routes.take(left) {
        page.push(IpPrefix::V6(route?.prefix));
    }
    page.sort_unstable();
    page.dedup();
    page.truncate(most);
    Ok(page)
}

/// Compares a prefix. Returns `None` if a change of it is under way.
fn compare(
    scene: &Scene<'_>,
    place: Place,
    reader: &mut Reader,
) -> Result<Option<Result<(), Found>>, TableError> {
    let Scene { rib, install, vrfs } = *scene;
    let Some(vrf) = vrfs.get(usize::from(place.0)).filter(|_| !rib.is_waiting(place)) else {
        return Ok(None);
    };
    let (wanted, has) = (install.wanted(rib, place), vrf.table.get(place.1)?);
    if wanted != has {
        return Ok(Some(Err(Found::Table { rib: wanted, fib: has })));
    }
    // A longer route may cover an end. That is no fault, as the lookup is compared with the longest route and not with this
    // prefix.
    for address in ends(place.1) {
        let (fib, lookup) = (vrf.table.lookup(address)?, reader.pin().lookup(address));
        if fib != lookup {
            return Ok(Some(Err(Found::Lookup { address, fib, lookup })));
        }
    }
    Ok(Some(Ok(())))
}

/// Returns the first and the last address of a prefix.
fn ends(prefix: IpPrefix) -> [IpAddr; 2] {
    fn both<K: Key>(prefix: Prefix<K>) -> [K; 2] {
        [prefix.addr(), prefix.last()]
    }
    match prefix {
        IpPrefix::V4(prefix) => both(prefix).map(|address| IpAddr::V4(address.into())),
        IpPrefix::V6(prefix) => both(prefix).map(|address| IpAddr::V6(address.into())),
    }
}
