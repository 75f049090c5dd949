//! The prefixes that addresses of a column match.

use core::net::IpAddr;
use core::ops::ControlFlow;

use fibula::fib::DualFib;
use fibula::file::TableFile;
use fibula::net::{IpPrefix, Key, Prefix, Routes};
use fibula::rib::DualRib;

use crate::column::Column;
use crate::error::ColumnError;
use crate::lookup::TableView;
use crate::options::{LookupCounts, LookupOptions, V4MappedRule};

/// A table whose matched prefixes can be found: by engines that know the lengths of their matches
/// ([`WithLength`](fibula::fib::WithLength)), or in the routes.
#[derive(Clone, Copy)]
pub struct PrefixView<'a> {
    table: TableView<'a>,
    v4: FamilyRoutes<'a, u32>,
    v6: FamilyRoutes<'a, u128>,
}

/// The routes of a family.
enum FamilyRoutes<'a, K: Key> {
    /// The family has no routes.
    Empty,
    /// They are here.
    Here(&'a dyn Routes<K>),
    /// Only the engine is there.
    Absent,
}

impl<K: Key> Clone for FamilyRoutes<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for FamilyRoutes<'_, K> {}

impl<K: Key> FamilyRoutes<'_, K> {
    /// Returns the longest prefix of the routes that contains an address.
    fn longest(self, address: Prefix<K>) -> Option<Prefix<K>> {
        let Self::Here(routes) = self else { return None };
        let mut own = None;
        // Nothing but the address itself is inside it.
        let _ = routes.visit(address, &mut |route| {
            own = Some(route.prefix);
            ControlFlow::Break(())
        });
        own.or_else(|| routes.parent(address).map(|route| route.prefix))
    }
}

impl core::fmt::Debug for PrefixView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PrefixView").field("table", &self.table).finish_non_exhaustive()
    }
}

/// The engines of a file, and its routes where it has them.
impl<'a> From<&'a TableFile> for PrefixView<'a> {
    fn from(file: &'a TableFile) -> Self {
        fn of<K: Key>(part: &fibula::file::Part<K>) -> FamilyRoutes<'_, K> {
            match &part.routes {
                _ if part.is_empty() => FamilyRoutes::Empty,
                Some(routes) => FamilyRoutes::Here(routes),
                None => FamilyRoutes::Absent,
            }
        }
        Self { table: TableView::from(file), v4: of(&file.v4), v6: of(&file.v6) }
    }
}

/// Engines, and the routes that they were built from.
impl<'a> From<(&'a DualFib, &'a DualRib)> for PrefixView<'a> {
    fn from((fibs, ribs): (&'a DualFib, &'a DualRib)) -> Self {
        Self {
            table: TableView::from(fibs),
            v4: FamilyRoutes::Here(&ribs.v4),
            v6: FamilyRoutes::Here(&ribs.v6),
        }
    }
}

impl PrefixView<'_> {
    /// Returns the longest prefix that contains the address of each row, `None` for nulls, for invalid rows and where no route
    /// matches.
    ///
    /// Costs a lookup for each row and a second reading of its address. Where the engines do not know lengths, it costs a binary search
    /// among the routes instead. One thread does it all.
    ///
    /// # Errors
    /// As for [`TableView::lookup`], and [`ColumnError::Lengths`] where the table knows neither the lengths of matches nor its routes.
    pub fn lookup(
        &self,
        column: &Column<'_>,
        options: &LookupOptions,
    ) -> Result<(Vec<Option<IpPrefix>>, LookupCounts), ColumnError> {
        let rows = column.len();
        let memory = |_| ColumnError::Memory { entries: rows };
        let mut prefixes = Vec::new();
        prefixes.try_reserve_exact(rows).map_err(memory)?;
        let (mut ids, mut lengths) = (Vec::new(), Vec::new());
        ids.try_reserve_exact(rows).map_err(memory)?;
        lengths.try_reserve_exact(rows).map_err(memory)?;
        ids.resize(rows, 0);
        lengths.resize(rows, 0);
        let is_absent = matches!(self.v4, FamilyRoutes::Absent) || matches!(self.v6, FamilyRoutes::Absent);
        match self.table.lookup_with_lengths(column, &mut ids, &mut lengths, options) {
            Err(ColumnError::Lengths) if !is_absent => {}
            Err(error) => return Err(error),
            Ok(counts) => {
                for (row, (&id, &length)) in ids.iter().zip(&lengths).enumerate() {
                    let address = if id == 0 { None } else { address_of(column, row, options)? };
                    prefixes.push(address.and_then(|address| match address {
                        IpAddr::V4(v4) => Prefix::masked(v4.to_bits(), length).ok().map(IpPrefix::V4),
                        IpAddr::V6(v6) => Prefix::masked(v6.to_bits(), length).ok().map(IpPrefix::V6),
                    }));
                }
                return Ok((prefixes, counts));
            }
        }
        let mut counts = LookupCounts::default();
        for row in 0..rows {
            let address = match address_of(column, row, options) {
                Ok(address) => address,
                Err(error) if options.refuse_invalid => return Err(error),
                Err(_) => {
                    counts.count(row);
                    None
                }
            };
            prefixes.push(address.and_then(|address| match IpPrefix::from(address) {
                IpPrefix::V4(address) => self.v4.longest(address).map(IpPrefix::V4),
                IpPrefix::V6(address) => self.v6.longest(address).map(IpPrefix::V6),
            }));
        }
        Ok((prefixes, counts))
    }
}

/// Returns the address of a row as it is looked up.
fn address_of(
    column: &Column<'_>,
    row: usize,
    options: &LookupOptions,
) -> Result<Option<IpAddr>, ColumnError> {
    let address = column.address(row).map_err(|fault| ColumnError::Invalid { row, fault })?;
    Ok(match address {
        Some(IpAddr::V6(v6)) if options.v4_mapped == V4MappedRule::Ipv4 => {
            Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4))
        }
        address => address,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::rows::ByteRows;
    use fibula::fib::{WithLength, registry};
    use fibula::file::{Contents, Half};
    use fibula::memory::Limits;
    use fibula::net::NextHop;

    const ROUTES: [&str; 8] = [
        "0.0.0.0/1",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.3/32",
        "2001:db8::/32",
        "2001:db8:1::/48",
        "::ffff:10.0.0.0/104",
        "::/128",
    ];

    const ASKED: [(&str, Option<&str>); 9] = [
        ("10.1.2.3", Some("10.1.2.3/32")),
        ("10.1.2.4", Some("10.1.0.0/16")),
        ("10.2.0.0", Some("10.0.0.0/8")),
        ("11.0.0.0", Some("0.0.0.0/1")),
        ("192.0.2.1", None),
        ("2001:db8:1::7", Some("2001:db8:1::/48")),
        ("2001:db8:2::7", Some("2001:db8::/32")),
        ("::", Some("::/128")),
        ("10.1", None),
    ];

    fn ribs() -> DualRib {
        let mut ribs = DualRib::default();
        for (route, id) in ROUTES.iter().zip(1..) {
            ribs.insert(route.parse::<IpPrefix>().unwrap(), NextHop::new(id).unwrap()).unwrap();
        }
        ribs
    }

    fn judge(view: &PrefixView<'_>) {
        let texts = ASKED.map(|(text, _)| text.as_bytes());
        let column = Column::text(ByteRows::slices(&texts));
        let (found, counts) = view.lookup(&column, &LookupOptions::default()).unwrap();
        let found = found.iter().map(|prefix| prefix.map(|prefix| prefix.to_string()));
        assert_eq!(found.collect::<Vec<_>>(), ASKED.map(|(_, prefix)| prefix.map(str::to_owned)));
        assert_eq!((counts.invalid, counts.first_invalid), (1, Some(8)));
        let refuse = LookupOptions { refuse_invalid: true, ..LookupOptions::default() };
        assert!(matches!(view.lookup(&column, &refuse), Err(ColumnError::Invalid { row: 8, .. })));
        let mapped: [&[u8]; 1] = [b"::ffff:10.1.2.9"];
        for (rule, prefix) in
            [(V4MappedRule::Ipv6, "::ffff:10.0.0.0/104"), (V4MappedRule::Ipv4, "10.1.0.0/16")]
        {
            let options = LookupOptions { v4_mapped: rule, ..LookupOptions::default() };
            let (found, _) = view.lookup(&Column::texts(&mapped), &options).unwrap();
            assert_eq!(found, [Some(prefix.parse().unwrap())]);
        }
    }

    #[test]
    fn prefixes_are_found_in_routes_and_by_engines_that_know_lengths() {
        let ribs = ribs();
        let fibs = DualFib::build(&ribs).unwrap();
        judge(&PrefixView::from((&fibs, &ribs)));

        let file = |contents: &Contents<'_>| {
            let mut bytes = Vec::new();
            contents.write(&mut bytes).unwrap();
            TableFile::copy_of(Cursor::new(bytes), Limits::default()).unwrap()
        };
        let v4 = registry::find::<u32>("dir-17-bitmap").unwrap();
        let v6 = registry::find::<u128>("dir-btree").unwrap();
        let (plain4, plain6) =
            (v4.build(&ribs.v4, Limits::default()).unwrap(), v6.build(&ribs.v6, Limits::default()).unwrap());
        let mut contents = Contents {
            v4: Half::new(&*plain4, &ribs.v4),
            v6: Half::new(&*plain6, &ribs.v6),
            ..Contents::default()
        };
        judge(&PrefixView::from(&file(&contents)));
        (contents.v4.routes, contents.v6.routes) = (None, None);
        let without = file(&contents);
        let column: [&[u8]; 1] = [b"10.0.0.1"];
        let refused = PrefixView::from(&without).lookup(&Column::texts(&column), &LookupOptions::default());
        assert_eq!(refused, Err(ColumnError::Lengths));
        let v4 = WithLength::build(&v4, &ribs.v4, Limits::default()).unwrap();
        let v6 = WithLength::build(&v6, &ribs.v6, Limits::default()).unwrap();
        contents.v4.fib = Some(&v4);
        contents.v6.fib = Some(&v6);
        judge(&PrefixView::from(&file(&contents)));
    }
}
