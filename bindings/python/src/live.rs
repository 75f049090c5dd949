//! `fibula.LiveTable` and `fibula.Vrfs`: tables that change while other threads look addresses up.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fibula::live::Options;
use fibula::net::{Change, IpPrefix, NextHop, Route};
use fibula::{Reader, Table as RouteTable, Vrf, Vrfs as VrfTables};
use fibula_column::{ColumnError, lookup_in_vrfs, lookup_pinned};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::build::{BuildRules, prefixes_of, ribs_of, rows_of};
use crate::error::{Failure, Outcome, guarded, value_error};
use crate::input::{Input, Wishes};
use crate::loaded::Loaded;
use crate::scalar::{network, prefix};
use crate::table::Table;

fn next_hop(id: u32) -> PyResult<NextHop> {
    NextHop::new(id).ok_or_else(|| value_error("0 is not the id of a route: ids are 1 to 2^32 - 1"))
}

/// Changes of both families.
type Changes = (Vec<Change<u32>>, Vec<Change<u128>>);

/// Reads changes: pairs of a prefix and an id, or None, which removes it.
fn changes_of(changes: &Bound<'_, PyAny>) -> PyResult<Changes> {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (row, change) in changes.try_iter()?.enumerate() {
        let at = |error: PyErr| {
            let py = changes.py();
            let place = value_error(format!("row {row}: {}", error.value(py)));
            place.set_cause(py, Some(error));
            place
        };
        let (object, id): (Bound<'_, PyAny>, Option<u32>) = change?.extract().map_err(at)?;
        let hop = id.map(next_hop).transpose().map_err(at)?;
        match (prefix(&object).map_err(at)?, hop) {
            (IpPrefix::V4(prefix), Some(hop)) => v4.push(Change::Insert(Route::new(prefix, hop))),
            (IpPrefix::V4(prefix), None) => v4.push(Change::Remove(prefix)),
            (IpPrefix::V6(prefix), Some(hop)) => v6.push(Change::Insert(Route::new(prefix, hop))),
            (IpPrefix::V6(prefix), None) => v6.push(Change::Remove(prefix)),
        }
    }
    Ok((v4, v6))
}

/// A table of routes that changes while other threads look addresses up. The values of routes are ids: numbers from 1 to 2^32 - 1.
///
/// >>> table = LiveTable()
/// >>> table.insert("192.0.2.0/24", 7)
/// >>> table.lookup("192.0.2.1")
/// 7
/// >>> table.remove("192.0.2.0/24")
/// True
///
/// A call over many rows sees one state of the table or a later one at each of its addresses.
#[pyclass(frozen, weakref, module = "fibula")]
pub struct LiveTable {
    table: RouteTable,
    /// Readers that no call uses now.
    readers: Mutex<Vec<Reader>>,
    last_invalid: AtomicUsize,
}

impl LiveTable {
    /// Calls `with` with a reader of this thread.
    fn read<T>(&self, with: impl FnOnce(&mut Reader) -> T) -> Outcome<T> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => self.table.reader()?,
        };
        let answer = with(&mut reader);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(answer)
    }
}

#[pymethods]
impl LiveTable {
    /// Make a table of prefixes and ids, which are columns of one length; an empty one without.
    #[new]
    #[pyo3(signature = (prefixes=None, ids=None, *, duplicates="raise", host_bits="raise"))]
    fn new(
        py: Python<'_>,
        prefixes: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyAny>>,
        duplicates: &str,
        host_bits: &str,
    ) -> PyResult<Self> {
        let rules = BuildRules::new(duplicates, host_bits)?;
        let table = match (prefixes, ids) {
            (None, None) => guarded(RouteTable::new)?.map_err(Failure::from)?,
            (Some(prefixes), Some(ids)) => {
                let (prefixes, ids) = (prefixes_of(prefixes, rules.host_bits)?, numbers_of(ids, "ids")?);
                if prefixes.len() != ids.len() {
                    let counts = format!("{} prefixes and {} ids", prefixes.len(), ids.len());
                    return Err(value_error(format!("columns differ in length: {counts}")));
                }
                let made = py.detach(|| {
                    guarded(|| -> Outcome<RouteTable> {
                        Ok(RouteTable::from_routes(ribs_of(&prefixes, &ids, &rules)?, Options::default())?)
                    })
                });
                made??
            }
            _ => return Err(value_error("prefixes and ids come together")),
        };
        Ok(Self { table, readers: Mutex::new(Vec::new()), last_invalid: AtomicUsize::new(0) })
    }

    /// Add a route, or replace the id of its prefix.
    fn insert(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>, id: u32) -> PyResult<()> {
        let (prefix, hop) = (crate::scalar::prefix(prefix)?, next_hop(id)?);
        py.detach(|| guarded(|| self.table.insert(prefix, hop)))?.map_err(Failure::from)?;
        Ok(())
    }

    /// Remove a prefix. Returns whether it was there.
    fn remove(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        let prefix = crate::scalar::prefix(prefix)?;
        let outcome = py.detach(|| guarded(|| self.table.remove(prefix)))?.map_err(Failure::from)?;
        Ok(outcome.changed > 0)
    }

    /// Make changes together: pairs of a prefix and an id, or None, which removes it. Of both families, a lookup sees all or none of them if
    /// ``atomic`` is set. Returns how many routes changed.
    #[pyo3(signature = (changes, *, atomic=false))]
    fn apply(&self, py: Python<'_>, changes: &Bound<'_, PyAny>, atomic: bool) -> PyResult<usize> {
        let (v4, v6) = changes_of(changes)?;
        let changed = py.detach(|| {
            guarded(|| -> Outcome<usize> {
                if atomic {
                    return Ok(self.table.apply_atomic(&v4, &v6)?.changed);
                }
                Ok(self.table.apply(&v4)?.changed + self.table.apply(&v6)?.changed)
            })
        });
        Ok(changed??)
    }

    /// Return the id of the longest route that contains an address; None if there is none.
    fn lookup(&self, address: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let address: IpAddr = crate::scalar::address(address)?;
        let found = self.read(|reader| guarded(|| reader.pin().lookup(address)))??;
        Ok(found.map(NextHop::id))
    }

    /// Return the longest prefix that contains an address, and its id; None if there is none.
    fn lookup_prefix<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, u32)>> {
        let address: IpAddr = crate::scalar::address(address)?;
        let found = py.detach(|| guarded(|| self.table.lookup_prefix(address)))?.map_err(Failure::from)?;
        found.map(|(prefix, hop)| Ok((network(py, prefix)?, hop.id()))).transpose()
    }

    /// Return the ids of a column of addresses, as ``Table.lookup_ids`` does.
    #[pyo3(signature = (addresses, *, out=None, invalid="null", v4_mapped="ipv6", text=false))]
    fn lookup_ids<'py>(
        &self,
        py: Python<'py>,
        addresses: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(1, invalid, v4_mapped, text)?;
        let input = Input::of(addresses, &wishes)?;
        let (ids, counts) = input.ids(py, out, &wishes, &|_, column, ids, options| {
            let found = self.read(|reader| lookup_pinned(&reader.pin(), column, ids, options));
            found.unwrap_or(Err(ColumnError::Array("no reader could be made: memory ran out")))
        })?;
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(ids)
    }

    /// Return the id of exactly this prefix; None if it has no route.
    fn get(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let found = py.detach(|| guarded(|| self.table.get(prefix)))?.map_err(Failure::from)?;
        Ok(found.map(NextHop::id))
    }

    fn __getitem__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<u32> {
        self.get(py, prefix)?.ok_or_else(|| PyKeyError::new_err(prefix.clone().unbind()))
    }

    fn __contains__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.get(py, prefix)?.is_some())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| guarded(|| self.table.len()))?.map_err(Failure::from)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Return the routes that contain an address or a prefix, the shortest first, with their ids.
    fn covers<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, u32)>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let found = py.detach(|| {
            guarded(|| -> Outcome<Vec<(IpPrefix, NextHop)>> {
                Ok(match prefix {
                    IpPrefix::V4(prefix) => {
                        let routes = self.table.covers(prefix)?.into_iter();
                        routes.map(|route| (route.prefix.into(), route.next_hop)).collect()
                    }
                    IpPrefix::V6(prefix) => {
                        let routes = self.table.covers(prefix)?.into_iter();
                        routes.map(|route| (route.prefix.into(), route.next_hop)).collect()
                    }
                })
            })
        })??;
        found.into_iter().map(|(prefix, hop)| Ok((network(py, prefix)?, hop.id()))).collect()
    }

    /// Return the table as it is now, as one that does not change. Its values are the ids.
    #[pyo3(signature = (*, engine=None))]
    fn snapshot(&self, py: Python<'_>, engine: Option<&str>) -> PyResult<Table> {
        let loaded = py.detach(|| {
            guarded(|| -> Outcome<Loaded> { Loaded::build(self.table.routes()?, Vec::new(), engine) })
        })??;
        Ok(Table::of(loaded))
    }

    /// The bytes of memory that the table takes.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(py.detach(|| guarded(|| self.table.memory()))?.map_err(Failure::from)?.held_bytes())
    }

    /// Rows without an address in the last call over many rows, of any thread.
    #[getter]
    fn last_invalid(&self) -> usize {
        self.last_invalid.load(Ordering::Relaxed)
    }
}

/// Reads a column of numbers of 32 bits.
pub fn numbers_of(column: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u32>> {
    if let Ok(buffer) = PyBuffer::<u32>::get(column)
        && buffer.dimensions() == 1
    {
        return buffer.to_vec(column.py());
    }
    let rows = rows_of(column)?;
    let read = rows.iter().enumerate().map(|(row, item)| {
        item.extract::<u32>().map_err(|_| {
            let shown = item.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
            value_error(format!("{what}, row {row}: {shown} is not a number from 0 to 2^32 - 1"))
        })
    });
    read.collect()
}

/// Many tables in one, each with a number, a VRF. They share memory, and a column of VRFs beside one of addresses is looked up in one call.
///
/// >>> vrfs = Vrfs()
/// >>> red, blue = vrfs.create(), vrfs.create()
/// >>> vrfs.insert(red, "10.0.0.0/8", 1)
/// >>> vrfs.insert(blue, "10.0.0.0/8", 2)
/// >>> vrfs.lookup_ids([red, blue], ["10.0.0.1", "10.0.0.1"])
/// array('I', [1, 2])
#[pyclass(frozen, weakref, module = "fibula")]
pub struct Vrfs {
    vrfs: VrfTables,
    last_invalid: AtomicUsize,
}

#[pymethods]
impl Vrfs {
    #[new]
    fn new() -> PyResult<Self> {
        let vrfs = guarded(VrfTables::new)?.map_err(Failure::from)?;
        Ok(Self { vrfs, last_invalid: AtomicUsize::new(0) })
    }

    /// Make a table, and return its number. VRF 0 is there from the beginning.
    fn create(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(py.detach(|| guarded(|| self.vrfs.create()))?.map_err(Failure::from)?.number())
    }

    /// Delete a table and its routes.
    fn delete(&self, py: Python<'_>, vrf: u32) -> PyResult<()> {
        py.detach(|| guarded(|| self.vrfs.delete(Vrf::new(vrf))))?.map_err(Failure::from)?;
        Ok(())
    }

    /// Add a route to a table, or replace the id of its prefix.
    fn insert(&self, py: Python<'_>, vrf: u32, prefix: &Bound<'_, PyAny>, id: u32) -> PyResult<()> {
        let (prefix, hop) = (crate::scalar::prefix(prefix)?, next_hop(id)?);
        py.detach(|| guarded(|| self.vrfs.insert(Vrf::new(vrf), prefix, hop)))?.map_err(Failure::from)?;
        Ok(())
    }

    /// Remove a prefix from a table. Returns whether it was there.
    fn remove(&self, py: Python<'_>, vrf: u32, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        let prefix = crate::scalar::prefix(prefix)?;
        let outcome = py.detach(|| guarded(|| self.vrfs.remove(Vrf::new(vrf), prefix)))?;
        Ok(outcome.map_err(Failure::from)?.changed > 0)
    }

    /// Make changes in a table: pairs of a prefix and an id, or None, which removes it. Returns how many routes changed.
    fn apply(&self, py: Python<'_>, vrf: u32, changes: &Bound<'_, PyAny>) -> PyResult<usize> {
        let (v4, v6) = changes_of(changes)?;
        let changed = py.detach(|| {
            guarded(|| -> Outcome<usize> {
                let vrf = Vrf::new(vrf);
                Ok(self.vrfs.apply(vrf, &v4)?.changed + self.vrfs.apply(vrf, &v6)?.changed)
            })
        });
        Ok(changed??)
    }

    /// Return the id of the longest route of a table that contains an address; None if there is none.
    fn lookup(&self, py: Python<'_>, vrf: u32, address: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let address: IpAddr = crate::scalar::address(address)?;
        let found = py.detach(|| guarded(|| self.vrfs.lookup_prefix(Vrf::new(vrf), address)))?;
        Ok(found.map_err(Failure::from)?.map(|(_, hop)| hop.id()))
    }

    /// Return the ids of a column of addresses, each in the table of the same row of ``vrfs``, as ``Table.lookup_ids`` does. A VRF that does
    /// not exist has no routes.
    #[pyo3(signature = (vrfs, addresses, *, out=None, threads=1, invalid="null", v4_mapped="ipv6", text=false))]
    #[allow(clippy::too_many_arguments, reason = "arguments by name")]
    fn lookup_ids<'py>(
        &self,
        py: Python<'py>,
        vrfs: &Bound<'py, PyAny>,
        addresses: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: usize,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(threads, invalid, v4_mapped, text)?;
        let numbers = numbers_of(vrfs, "vrfs")?;
        let input = Input::of(addresses, &wishes)?;
        let (ids, counts) = input.ids(py, out, &wishes, &|first, column, ids, options| {
            let own = numbers.get(first..first + column.len());
            let own = own.ok_or(ColumnError::Length { rows: first + column.len(), other: numbers.len() })?;
            lookup_in_vrfs(&self.vrfs, own, column, ids, options)
        })?;
        if ids.len()? != numbers.len() {
            let error = ColumnError::Length { rows: ids.len()?, other: numbers.len() };
            return Err(Failure::from(error).into());
        }
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(ids)
    }

    /// The numbers of the tables.
    #[getter]
    fn vrfs(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let vrfs = py.detach(|| guarded(|| self.vrfs.vrfs()))?.map_err(Failure::from)?;
        Ok(vrfs.into_iter().map(Vrf::number).collect())
    }

    /// Return the number of routes of a table.
    fn count(&self, py: Python<'_>, vrf: u32) -> PyResult<usize> {
        Ok(py.detach(|| guarded(|| self.vrfs.len(Vrf::new(vrf))))?.map_err(Failure::from)?)
    }

    /// Rows without an address in the last call over many rows, of any thread.
    #[getter]
    fn last_invalid(&self) -> usize {
        self.last_invalid.load(Ordering::Relaxed)
    }
}
