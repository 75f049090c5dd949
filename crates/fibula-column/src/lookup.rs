//! Lookups of whole columns.

use core::net::IpAddr;
use core::ops::Range;

use fibula::fib::{DualFib, Fib, Match, WithLength};
use fibula::file::TableFile;
use fibula::net::{Key, Keys, NextHop, Strided};

use crate::arrow::as_next_hops;
use crate::block::{BLOCK, KeyBlock};
use crate::column::{AddressLayout, Column, ColumnData, Spaced};
use crate::engines::{Engines, RowsOf};
use crate::error::ColumnError;
use crate::options::{LookupCounts, LookupOptions, V4MappedRule};
use crate::rows::{ByteRows, EntryNumbers, Slot, Slots, with_slots};
use crate::text::TextParser;
use crate::threads;

/// The engines of a table, borrowed: of both families, of one, or of neither. A family without an engine has no routes.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableView<'a> {
    v4: FamilyView<'a, u32>,
    v6: FamilyView<'a, u128>,
}

/// The source of a family's answers.
#[derive(Debug, Default)]
enum FamilyView<'a, K: Key> {
    #[default]
    Nothing,
    Engine(&'a dyn Fib<K>),
    /// Routes without an engine, which a table file may have.
    Routes(&'a fibula::file::Part<K>),
}

impl<K: Key> Clone for FamilyView<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for FamilyView<'_, K> {}

impl<'a, K: Key> FamilyView<'a, K> {
    fn of_engine(engine: Option<&'a dyn Fib<K>>) -> Self {
        engine.map_or(Self::Nothing, Self::Engine)
    }

    fn of_part(part: &'a fibula::file::Part<K>) -> Self {
        match &part.fib {
            Some(engine) => Self::Engine(&**engine),
            None if part.is_empty() => Self::Nothing,
            None => Self::Routes(part),
        }
    }

    /// Returns the engine that also finds matched lengths. An empty table has none.
    fn with_length(&self) -> Result<Option<&'a WithLength<K>>, ColumnError> {
        match *self {
            Self::Nothing => Ok(None),
            Self::Engine(engine) => engine.with_length().map(Some).ok_or(ColumnError::Lengths),
            Self::Routes(_) => Err(ColumnError::Lengths),
        }
    }

    fn look_up(&self, keys: Keys<'_, K>, results: &mut [Option<NextHop>]) {
        match *self {
            Self::Nothing => results.fill(None),
            Self::Engine(engine) => match keys {
                Keys::Host(keys) => engine.lookup_batch(keys, results),
                keys => engine.batch(keys).run(results),
            },
            Self::Routes(part) => keys.for_each_block(|first, block| {
                for (key, result) in block.iter().zip(&mut results[first..]) {
                    *result = part.lookup(*key);
                }
            }),
        }
    }
}

impl<'a> TableView<'a> {
    /// Returns the view of these engines.
    #[must_use]
    pub fn new(v4: Option<&'a dyn Fib<u32>>, v6: Option<&'a dyn Fib<u128>>) -> Self {
        Self { v4: FamilyView::of_engine(v4), v6: FamilyView::of_engine(v6) }
    }

    /// Looks up every row of a column and writes the id of row `i` to `ids[i]`: the number of its next hop, or 0. Returns the number
    /// of invalid rows.
    ///
    /// # Errors
    /// When `ids` has another length, memory for the entries of a dictionary is refused, or a row is invalid and
    /// [`refuse_invalid`](LookupOptions::refuse_invalid) is set. In the last case the ids are written.
    pub fn lookup(
        &self,
        column: &Column<'_>,
        ids: &mut [u32],
        options: &LookupOptions,
    ) -> Result<LookupCounts, ColumnError> {
        let ids = checked(column, ids)?;
        let counts = look_up_column(self, column, ids, options)?;
        refused(column, counts, options)
    }

    /// Like [`lookup`](Self::lookup), and writes the length of the matched prefix of row `i` to `lengths[i]`: 0 where the id is 0.
    ///
    /// # Errors
    /// As for `lookup`, and when an engine does not know the lengths: see [`WithLength`].
    pub fn lookup_with_lengths(
        &self,
        column: &Column<'_>,
        ids: &mut [u32],
        lengths: &mut [u8],
        options: &LookupOptions,
    ) -> Result<LookupCounts, ColumnError> {
        if lengths.len() != column.len() {
            return Err(ColumnError::Length { rows: column.len(), other: lengths.len() });
        }
        let matches = Matches::new(self)?;
        let ids = checked(column, ids)?;
        let counts = look_up_column(&matches, column, ids, options)?;
        for (id, length) in ids.iter_mut().zip(lengths) {
            let found = id.and_then(|id| matches.matched(id));
            (*id, *length) = (found.map(|found| found.next_hop), found.map_or(0, |found| found.prefix_len));
        }
        refused(column, counts, options)
    }
}

/// The engines over match ids of a table: those of IPv6 are numbered after those of IPv4.
struct Matches<'a> {
    v4: Option<&'a WithLength<u32>>,
    v6: Option<&'a WithLength<u128>>,
    first_of_v6: u32,
}

impl<'a> Matches<'a> {
    fn new(view: &TableView<'a>) -> Result<Self, ColumnError> {
        let (v4, v6) = (view.v4.with_length()?, view.v6.with_length()?);
        let pairs = v4.map_or(0, WithLength::pairs) + v6.map_or(0, WithLength::pairs);
        // Ids have 32 bits. No table has as many routes.
        if u32::try_from(pairs).is_err() {
            return Err(ColumnError::Lengths);
        }
        Ok(Self { v4, v6, first_of_v6: v4.map_or(0, WithLength::pairs) as u32 })
    }

    fn matched(&self, id: NextHop) -> Option<Match> {
        match id.id().checked_sub(self.first_of_v6).and_then(NextHop::new) {
            Some(id) => self.v6?.matched(id),
            None => self.v4?.matched(id),
        }
    }
}

impl Engines for Matches<'_> {
    fn v4(&self, _: RowsOf<'_>, keys: Keys<'_, u32>, results: &mut [Option<NextHop>]) {
        let view = FamilyView::of_engine(self.v4.map(WithLength::engine));
        view.look_up(keys, results);
        // A file that is mapped may have other numbers, which must not be taken for those of IPv6.
        for result in results {
            *result = result.filter(|id| id.id() <= self.first_of_v6);
        }
    }

    fn v6(&self, _: RowsOf<'_>, keys: Keys<'_, u128>, results: &mut [Option<NextHop>]) {
        let view = FamilyView::of_engine(self.v6.map(WithLength::engine));
        view.look_up(keys, results);
        for result in results {
            *result = result.and_then(|id| NextHop::new(id.id().checked_add(self.first_of_v6)?));
        }
    }
}

impl<'a> From<&'a DualFib> for TableView<'a> {
    fn from(fibs: &'a DualFib) -> Self {
        Self::new(Some(&*fibs.v4), Some(&*fibs.v6))
    }
}

/// The engines of a table file. Where it has routes and no engine, these are looked up one by one.
impl<'a> From<&'a TableFile> for TableView<'a> {
    fn from(file: &'a TableFile) -> Self {
        Self { v4: FamilyView::of_part(&file.v4), v6: FamilyView::of_part(&file.v6) }
    }
}

/// Returns the ids as next hops, if there is one for each row.
pub(crate) fn checked<'i>(
    column: &Column<'_>,
    ids: &'i mut [u32],
) -> Result<&'i mut [Option<NextHop>], ColumnError> {
    if column.len() == ids.len() {
        Ok(as_next_hops(ids))
    } else {
        Err(ColumnError::Length { rows: column.len(), other: ids.len() })
    }
}

/// Returns the counts, or an error for the first invalid row if there must be none.
pub(crate) fn refused(
    column: &Column<'_>,
    counts: LookupCounts,
    options: &LookupOptions,
) -> Result<LookupCounts, ColumnError> {
    match counts.first_invalid {
        Some(row) if options.refuse_invalid => match column.address(row) {
            Err(fault) => Err(ColumnError::Invalid { row, fault }),
            Ok(_) => Ok(counts),
        },
        _ => Ok(counts),
    }
}

impl Engines for TableView<'_> {
    fn v4(&self, _: RowsOf<'_>, keys: Keys<'_, u32>, results: &mut [Option<NextHop>]) {
        self.v4.look_up(keys, results);
    }

    fn v6(&self, _: RowsOf<'_>, keys: Keys<'_, u128>, results: &mut [Option<NextHop>]) {
        self.v6.look_up(keys, results);
    }
}

/// Looks up a column with as many threads as the options say.
fn look_up_column(
    view: &(impl Engines + Sync),
    column: &Column<'_>,
    ids: &mut [Option<NextHop>],
    options: &LookupOptions,
) -> Result<LookupCounts, ColumnError> {
    let part = |column: &Column<'_>, rows: Range<usize>, ids: &mut [Option<NextHop>]| {
        let mut counts = LookupCounts::default();
        look_up_part(view, column, rows, ids, options.v4_mapped, &mut |row| counts.count(row));
        Ok(counts)
    };
    let ColumnData::Dictionary(entries, dictionary) = &column.data else {
        return threads::in_parts(ids, options.threads, |rows, ids| part(column, rows, ids));
    };
    let looked_up = LookedUp::new(view, dictionary, options)?;
    threads::in_parts(ids, options.threads, |rows, ids| {
        let mut counts = LookupCounts::default();
        looked_up.gather(entries, column, rows, ids, &mut |row| counts.count(row));
        Ok(counts)
    })
}

/// Looks up rows of a column that has no dictionary, on this thread, and calls `invalid` for each invalid one.
pub(crate) fn look_up_part(
    engines: &impl Engines,
    column: &Column<'_>,
    rows: Range<usize>,
    ids: &mut [Option<NextHop>],
    mapped: V4MappedRule,
    invalid: &mut impl FnMut(usize),
) {
    // The bytes of a null may be anything.
    let invalid = &mut |row: usize| {
        if column.is_valid(row) {
            invalid(row);
        }
    };
    match &column.data {
        ColumnData::Ipv4(keys) => {
            engines.v4(RowsOf::From(rows.start), Keys::Host(&keys[rows.clone()]), ids);
        }
        ColumnData::Ipv6(keys) if mapped == V4MappedRule::Ipv6 => {
            engines.v6(RowsOf::From(rows.start), Keys::Host(&keys[rows.clone()]), ids);
        }
        ColumnData::Ipv6(keys) => in_blocks(engines, rows.clone(), ids, mapped, |first, count, block| {
            for (row, &key) in keys[first..first + count].iter().enumerate() {
                block.v6.note(row, key, true);
            }
        }),
        ColumnData::Spaced(spaced) => look_up_spaced(engines, spaced, rows.clone(), ids, mapped, invalid),
        ColumnData::Binary(bytes) => look_up_bytes(engines, bytes, rows.clone(), ids, mapped, invalid),
        ColumnData::Text(texts) => {
            let mut parser = TextParser::default();
            in_blocks(engines, rows.clone(), ids, mapped, |first, count, block| {
                parser.parse(texts, first, count, block);
                for &row in block.left.as_slice() {
                    invalid(first + usize::from(row));
                }
            });
        }
        // Engines whose answers depend on the row, for which one answer for an entry will not do.
        ColumnData::Dictionary(entries, dictionary) => {
            in_blocks(engines, rows.clone(), ids, mapped, |first, count, block| {
                for row in 0..count {
                    match entry_address(entries, dictionary, first + row) {
                        Ok(Some(IpAddr::V4(address))) => block.v4.note(row, address.to_bits(), true),
                        Ok(Some(IpAddr::V6(address))) => block.v6.note(row, address.to_bits(), true),
                        Ok(None) => {}
                        Err(()) => invalid(first + row),
                    }
                }
            });
        }
        ColumnData::Nulls(_) => ids.fill(None),
    }
    if let Some(validity) = &column.validity {
        validity.clear_nulls(rows, ids);
    }
}

/// Returns the address of a row's entry of a dictionary.
fn entry_address(
    entries: &EntryNumbers<'_>,
    dictionary: &Column<'_>,
    row: usize,
) -> Result<Option<IpAddr>, ()> {
    let entry = entries.entry(row);
    if entry >= dictionary.len() {
        return Err(());
    }
    dictionary.address(entry).map_err(drop)
}

/// Fills a block at a time with keys, and looks them up.
fn in_blocks(
    engines: &impl Engines,
    rows: Range<usize>,
    ids: &mut [Option<NextHop>],
    mapped: V4MappedRule,
    mut fill: impl FnMut(usize, usize, &mut KeyBlock),
) {
    let mut block = KeyBlock::new(mapped);
    for (first, ids) in rows.step_by(BLOCK).zip(ids.chunks_mut(BLOCK)) {
        block.clear();
        fill(first, ids.len(), &mut block);
        block.look_up(engines, first, ids);
    }
}

/// Looks up addresses at a fixed distance from each other.
fn look_up_spaced(
    engines: &impl Engines,
    spaced: &Spaced<'_>,
    rows: Range<usize>,
    ids: &mut [Option<NextHop>],
    mapped: V4MappedRule,
    invalid: &mut impl FnMut(usize),
) {
    // Engines convert network order themselves, of rows that follow each other forwards.
    let of = RowsOf::From(rows.start);
    match spaced.layout {
        AddressLayout::NetworkIpv4 => {
            if let Some(keys) = forwards(spaced, &rows) {
                return engines.v4(of, keys, ids);
            }
        }
        AddressLayout::NetworkIpv6 if mapped == V4MappedRule::Ipv6 => {
            if let Some(keys) = forwards(spaced, &rows) {
                return engines.v6(of, keys, ids);
            }
        }
        _ => {}
    }
    in_blocks(engines, rows, ids, mapped, |first, count, KeyBlock { v4, v6, .. }| {
        for row in 0..count {
            let at = first + row;
            match spaced.layout {
                AddressLayout::HostIpv4 => v4.note(row, u32::from_ne_bytes(spaced.at(at)), true),
                AddressLayout::NetworkIpv4 => v4.note(row, u32::from_be_bytes(spaced.at(at)), true),
                AddressLayout::HostIpv6 => v6.note(row, u128::from_ne_bytes(spaced.at(at)), true),
                AddressLayout::NetworkIpv6 => v6.note(row, u128::from_be_bytes(spaced.at(at)), true),
                AddressLayout::WideIpv4 => {
                    let bits = u64::from_ne_bytes(spaced.at(at));
                    let is_address = bits <= u64::from(u32::MAX);
                    v4.note(row, bits as u32, is_address);
                    if !is_address {
                        invalid(at);
                    }
                }
            }
        }
    });
}

/// Returns rows as keys of an engine; `None` if they go backwards.
fn forwards<'a, K: Key>(spaced: &Spaced<'a>, rows: &Range<usize>) -> Option<Keys<'a, K>> {
    let stride = usize::try_from(spaced.stride).ok()?;
    let first = spaced.first + rows.start * stride;
    Strided::new(spaced.bytes, first, stride, rows.len()).map(Keys::Strided)
}

/// Looks up addresses in network order, whose family is their length.
fn look_up_bytes(
    engines: &impl Engines,
    bytes: &ByteRows<'_>,
    rows: Range<usize>,
    ids: &mut [Option<NextHop>],
    mapped: V4MappedRule,
    invalid: &mut impl FnMut(usize),
) {
    fn fill(bytes: &impl Slots, first: usize, count: usize, KeyBlock { v4, v6, left, .. }: &mut KeyBlock) {
        for row in 0..count {
            let address = bytes.slot(first + row).map_or(&[][..], Slot::bytes);
            match (address.try_into(), address.try_into()) {
                (Ok(address), _) => v4.note(row, u32::from_be_bytes(address), true),
                (_, Ok(address)) => v6.note(row, u128::from_be_bytes(address), true),
                _ => left.note(row, true),
            }
        }
    }
    in_blocks(engines, rows, ids, mapped, |first, count, block| {
        with_slots!(bytes, slots => fill(slots, first, count, block));
        for &row in block.left.as_slice() {
            invalid(first + usize::from(row));
        }
    });
}

/// The answers for the entries of a dictionary.
struct LookedUp {
    ids: Vec<Option<NextHop>>,
    /// Whether each entry has no address.
    is_invalid: Vec<bool>,
}

impl LookedUp {
    fn new(
        view: &impl Engines,
        dictionary: &Column<'_>,
        options: &LookupOptions,
    ) -> Result<Self, ColumnError> {
        let entries = dictionary.len();
        let (mut ids, mut is_invalid) = (Vec::new(), Vec::new());
        let refused = |_| ColumnError::Memory { entries };
        ids.try_reserve_exact(entries).map_err(refused)?;
        is_invalid.try_reserve_exact(entries).map_err(refused)?;
        ids.resize(entries, None);
        is_invalid.resize(entries, false);
        look_up_part(view, dictionary, 0..entries, &mut ids, options.v4_mapped, &mut |entry| {
            is_invalid[entry] = true;
        });
        Ok(Self { ids, is_invalid })
    }

    /// Writes the id of each row's entry, and calls `invalid` for each invalid row.
    fn gather(
        &self,
        entries: &EntryNumbers<'_>,
        column: &Column<'_>,
        rows: Range<usize>,
        ids: &mut [Option<NextHop>],
        invalid: &mut impl FnMut(usize),
    ) {
        for (row, id) in rows.clone().zip(&mut *ids) {
            let entry = entries.entry(row);
            *id = self.ids.get(entry).copied().flatten();
            if self.is_invalid.get(entry).copied().unwrap_or(true) && column.is_valid(row) {
                invalid(row);
            }
        }
        if let Some(validity) = &column.validity {
            validity.clear_nulls(rows, ids);
        }
    }
}
