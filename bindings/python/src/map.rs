//! The part of `fibula.PrefixMap` that is not in Python.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fibula::fib::DualFib;
use fibula::map::IpPrefixMap;
use fibula::net::{HostBits, IpPrefix, NextHop};
use fibula::rib::DualRib;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::scalar::{network, prefix_of};

/// What `PrefixMap` has of Rust.
#[pyclass(frozen, subclass, weakref, module = "fibula._fibula")]
pub struct PrefixMapBase(Mutex<Mapped>);

struct Mapped {
    map: IpPrefixMap<Py<PyAny>>,
    /// Prefixes added and removed so far, by which iterators notice one.
    changes: u64,
    compiled: Option<Box<Compiled>>,
    /// Lookups since the last change.
    lookups: usize,
}

/// The map as it was at the last of many lookups without a change, compiled.
struct Compiled {
    fibs: DualFib,
    /// By id less one. An object that is the value of several prefixes is there once.
    values: Vec<Py<PyAny>>,
}

/// Lookups without a change after which a map is compiled, besides half as many as it has prefixes: to compile takes about as long as they took.
const PATIENCE: usize = 512;

impl Compiled {
    /// Compiles a map; `None` where memory runs out, because the map itself answers too.
    fn of(py: Python<'_>, map: &IpPrefixMap<Py<PyAny>>) -> Option<Box<Self>> {
        let (mut ribs, mut values, mut ids) = (DualRib::default(), Vec::new(), HashMap::new());
        for (prefix, value) in map.iter() {
            let id = *ids.entry(value.as_ptr() as usize).or_insert_with(|| {
                values.push(value.clone_ref(py));
                values.len() as u32
            });
            ribs.insert(prefix, NextHop::new(id)?).ok()?;
        }
        Some(Box::new(Self { fibs: DualFib::build(&ribs).ok()?, values }))
    }
}

impl Mapped {
    fn new() -> Self {
        Self { map: IpPrefixMap::new(), changes: 0, compiled: None, lookups: 0 }
    }

    /// Counts a change, and returns what it made old, to be dropped without the lock.
    fn changed(&mut self, prefixes: bool) -> Option<Box<Compiled>> {
        self.changes += u64::from(prefixes);
        self.lookups = 0;
        self.compiled.take()
    }

    /// Returns the value of the longest prefix that contains an address.
    #[inline]
    fn lookup(&mut self, py: Python<'_>, address: IpAddr) -> Option<Py<PyAny>> {
        if let Some(compiled) = &self.compiled {
            let id = compiled.fibs.lookup(address)?.id() as usize;
            return compiled.values.get(id - 1).map(|value| value.clone_ref(py));
        }
        self.lookups += 1;
        if self.lookups > PATIENCE + self.map.len() / 2 {
            self.lookups = 0;
            self.compiled = Compiled::of(py, &self.map);
        }
        self.map.lookup(address).map(|value| value.clone_ref(py))
    }
}

impl PrefixMapBase {
    /// No object may be dropped under the lock, as its end may run code that uses the map.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Mapped> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    pub fn empty() -> Self {
        Self(Mutex::new(Mapped::new()))
    }

    /// Returns the value of the longest prefix around another, itself included.
    #[inline]
    pub fn best(&self, py: Python<'_>, prefix: IpPrefix) -> Option<Py<PyAny>> {
        let mut own = self.lock(py);
        match prefix {
            IpPrefix::V4(one) if one.len() == 32 => own.lookup(py, one.network().into()),
            IpPrefix::V6(one) if one.len() == 128 => own.lookup(py, one.network().into()),
            _ => {
                let found = own.map.get(prefix).or_else(|| own.map.parent(prefix).map(|(_, value)| value));
                found.map(|value| value.clone_ref(py))
            }
        }
    }

    /// Returns the value of exactly this prefix.
    pub fn exact(&self, py: Python<'_>, prefix: IpPrefix) -> Option<Py<PyAny>> {
        self.lock(py).map.get(prefix).map(|value| value.clone_ref(py))
    }

    /// Returns the value of the longest prefix around another, itself left out.
    pub fn above(&self, py: Python<'_>, prefix: IpPrefix) -> Option<Py<PyAny>> {
        self.lock(py).map.parent(prefix).map(|(_, value)| value.clone_ref(py))
    }

    /// Adds a prefix, or replaces its value.
    pub fn put(&self, py: Python<'_>, prefix: IpPrefix, value: Py<PyAny>) {
        let before = {
            let mut own = self.lock(py);
            let before = own.map.insert(prefix, value);
            (own.changed(before.is_none()), before)
        };
        drop(before);
    }

    /// Returns the value of exactly this prefix. Adds this one if it has none.
    pub fn exact_or_put(&self, py: Python<'_>, prefix: IpPrefix, value: Py<PyAny>) -> Py<PyAny> {
        let (answer, _old, _unused) = {
            let mut own = self.lock(py);
            match own.map.get(prefix).map(|value| value.clone_ref(py)) {
                Some(found) => (found, None, Some(value)),
                None => {
                    let answer = value.clone_ref(py);
                    own.map.insert(prefix, value);
                    (answer, own.changed(true), None)
                }
            }
        };
        answer
    }

    /// Removes a prefix, and returns its value.
    pub fn take(&self, py: Python<'_>, prefix: IpPrefix) -> Option<Py<PyAny>> {
        let (_old, before) = {
            let mut own = self.lock(py);
            let before = own.map.remove(prefix);
            (own.changed(before.is_some()), before)
        };
        before
    }

    /// Returns the values of the prefixes around another, itself included, the shortest first.
    pub fn around(&self, py: Python<'_>, prefix: IpPrefix) -> Vec<Py<PyAny>> {
        let mut found: Vec<_> =
            self.lock(py).map.covers(prefix).map(|(prefix, value)| (prefix, value.clone_ref(py))).collect();
        found.sort_by_key(|(prefix, _)| prefix.len());
        found.into_iter().map(|(_, value)| value).collect()
    }

    /// Returns the values of the prefixes inside another, itself included, in order.
    pub fn inside(&self, py: Python<'_>, prefix: IpPrefix) -> Vec<Py<PyAny>> {
        self.lock(py).map.subnets(prefix).map(|(_, value)| value.clone_ref(py)).collect()
    }

    /// Returns all values, in the order of their prefixes.
    pub fn values(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.lock(py).map.values().map(|value| value.clone_ref(py)).collect()
    }

    /// Returns all prefixes as texts, in order.
    pub fn key_texts(&self, py: Python<'_>) -> Vec<String> {
        self.lock(py).map.keys().map(|prefix| prefix.to_string()).collect()
    }

    pub fn count(&self, py: Python<'_>) -> usize {
        self.lock(py).map.len()
    }
}

/// Returns the prefix of an argument, without the bits after its length.
fn masked(object: &Bound<'_, PyAny>) -> PyResult<IpPrefix> {
    prefix_of(object, HostBits::Mask).map_err(|error| error.into_error(""))
}

/// A prefix as a network, and its value.
type Entry<'py> = (Bound<'py, PyAny>, Py<PyAny>);

fn entries<'py>(py: Python<'py>, found: Vec<(IpPrefix, Py<PyAny>)>) -> PyResult<Vec<Entry<'py>>> {
    found.into_iter().map(|(prefix, value)| Ok((network(py, prefix)?, value))).collect()
}

#[pymethods]
impl PrefixMapBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self::empty()
    }

    /// For type checkers: the type of the values.
    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, _value: &Bound<'py, PyAny>) -> Bound<'py, PyType> {
        cls.clone()
    }

    fn __getitem__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let wanted = crate::scalar::prefix(prefix)?;
        let found = self.lock(py).map.get(wanted).map(|value| value.clone_ref(py));
        found.ok_or_else(|| PyKeyError::new_err(prefix.clone().unbind()))
    }

    fn __setitem__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<()> {
        self.put(py, crate::scalar::prefix(prefix)?, value);
        Ok(())
    }

    fn __delitem__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let removed = self.take(py, crate::scalar::prefix(prefix)?);
        removed.map(drop).ok_or_else(|| PyKeyError::new_err(prefix.clone().unbind()))
    }

    fn __contains__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        let prefix = crate::scalar::prefix(prefix)?;
        Ok(self.lock(py).map.contains(prefix))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.count(py)
    }

    /// Return the value of exactly this prefix, or ``default``.
    #[pyo3(signature = (prefix, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        prefix: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let found = self.lock(py).map.get(prefix).map(|value| value.clone_ref(py));
        Ok(found.or(default))
    }

    /// Remove all prefixes.
    fn clear(&self, py: Python<'_>) {
        let before = {
            let mut own = self.lock(py);
            (own.changed(true), std::mem::take(&mut own.map))
        };
        drop(before);
    }

    /// Return the value of the longest prefix that contains an address, or ``default``.
    #[pyo3(signature = (address, default=None))]
    fn lookup(
        &self,
        py: Python<'_>,
        address: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let address = crate::scalar::address(address)?;
        Ok(self.lock(py).lookup(py, address).or(default))
    }

    /// Return the longest prefix that contains an address, and its value; None if there is none.
    fn lookup_prefix<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Entry<'py>>> {
        let address = crate::scalar::address(address)?;
        let found =
            self.lock(py).map.lookup_prefix(address).map(|(prefix, value)| (prefix, value.clone_ref(py)));
        found.map(|(prefix, value)| Ok((network(py, prefix)?, value))).transpose()
    }

    /// Return the longest prefix around another, itself included unless it is left out, as a text.
    fn _best_key(
        &self,
        py: Python<'_>,
        prefix: &Bound<'_, PyAny>,
        is_left_out: bool,
    ) -> PyResult<Option<String>> {
        let prefix = masked(prefix)?;
        let own = self.lock(py);
        let is_there = !is_left_out && own.map.contains(prefix);
        let found = if is_there { Some(prefix) } else { own.map.parent(prefix).map(|(prefix, _)| prefix) };
        Ok(found.map(|prefix| prefix.to_string()))
    }

    /// Return the value of exactly this prefix, or ``default``. Bits after its length do not count, here and in the calls after it.
    fn _exact(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>, default: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let prefix = masked(prefix)?;
        Ok(self.exact(py, prefix).unwrap_or(default))
    }

    /// Add a prefix, or replace its value.
    fn _put(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>, value: Py<PyAny>) -> PyResult<()> {
        self.put(py, masked(prefix)?, value);
        Ok(())
    }

    /// Remove a prefix. Returns whether it was there.
    fn _take(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.take(py, masked(prefix)?).is_some())
    }

    /// Return the prefixes inside another, itself included, in order.
    fn _inside(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let prefix = masked(prefix)?;
        let own = self.lock(py);
        Ok(own.map.subnets(prefix).map(|(prefix, _)| prefix.to_string()).collect())
    }

    /// Return all values, in the order of their prefixes.
    fn _values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.values(py))
    }

    /// Return the longest prefix around another, itself left out, and its value; None if there is none.
    fn parent<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Option<Entry<'py>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let found = self.lock(py).map.parent(prefix).map(|(prefix, value)| (prefix, value.clone_ref(py)));
        found.map(|(prefix, value)| Ok((network(py, prefix)?, value))).transpose()
    }

    /// Return the entries around an address or a prefix, itself included, the shortest prefix first.
    fn covers<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Vec<Entry<'py>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let mut found: Vec<_> =
            self.lock(py).map.covers(prefix).map(|(prefix, value)| (prefix, value.clone_ref(py))).collect();
        found.sort_by_key(|(prefix, _)| prefix.len());
        entries(py, found)
    }

    /// Return the entries inside a prefix, itself included, in order.
    fn subnets<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Vec<Entry<'py>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let found =
            self.lock(py).map.subnets(prefix).map(|(prefix, value)| (prefix, value.clone_ref(py))).collect();
        entries(py, found)
    }

    /// Return up to `count` entries after a prefix, and the number of changes so far.
    fn _after<'py>(
        &self,
        py: Python<'py>,
        after: Option<&Bound<'py, PyAny>>,
        count: usize,
        changes: Option<u64>,
    ) -> PyResult<(Vec<Entry<'py>>, u64)> {
        let after = after.map(crate::scalar::prefix).transpose()?;
        let own = self.lock(py);
        if changes.is_some_and(|changes| changes != own.changes) {
            return Err(PyRuntimeError::new_err("the prefixes changed during iteration"));
        }
        let copied = |(prefix, value): (IpPrefix, &Py<PyAny>)| (prefix, value.clone_ref(py));
        let found: Vec<_> = match after {
            Some(prefix) => own.map.iter_after(prefix).take(count).map(copied).collect(),
            None => own.map.iter().take(count).map(copied).collect(),
        };
        let changes = own.changes;
        drop(own);
        Ok((entries(py, found)?, changes))
    }

    /// Return the prefixes as texts, in order: much faster than iteration, which makes networks of ``ipaddress``.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.key_texts(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A map that a call is changing is in use, and so is no garbage.
        match self.0.try_lock() {
            Ok(own) => {
                own.map.values().try_for_each(|value| visit.call(value))?;
                let compiled = own.compiled.iter().flat_map(|compiled| &compiled.values);
                compiled.into_iter().try_for_each(|value| visit.call(value))
            }
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let before = self.0.lock().map(|mut own| (own.changed(true), std::mem::take(&mut own.map)));
        drop(before);
    }
}
