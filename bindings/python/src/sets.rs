//! `fibula.AddressSet`, and the part of `fibula.PrefixSet` that is not in Python.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fibula::map::{AddressSet as Addresses, PrefixSet as Prefixes};
use fibula::net::{Dual, HostBits, IpPrefix, Key, Prefix};
use pyo3::IntoPyObjectExt;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyList;

use crate::build::families_of;
use crate::error::{guarded, value_error};
use crate::scalar::{address_of, network, prefix};

type DualAddresses = Dual<Addresses<u32>, Addresses<u128>>;

/// A set of addresses of both families, made of prefixes, which may overlap. It does not change.
///
/// >>> ours, taken = AddressSet(["10.0.0.0/8"]), AddressSet(["10.0.0.0/10", "10.128.0.0/9"])
/// >>> (ours - taken).texts()
/// ['10.64.0.0/10']
/// >>> "10.64.1.1" in ours - taken
/// True
///
/// ``|``, ``&``, ``-``, ``^`` and ``~`` make new sets; ``<=`` and ``<`` compare them. ``len()`` is the number of the fewest prefixes that are the
/// set, and iteration returns those in order.
#[pyclass(frozen, module = "fibula")]
pub struct AddressSet(DualAddresses);

impl AddressSet {
    fn of(object: &Bound<'_, PyAny>, host_bits: HostBits) -> PyResult<DualAddresses> {
        if let Ok(set) = object.cast::<Self>() {
            return Ok(set.get().0.clone());
        }
        if let Ok(set) = object.cast::<PrefixSetBase>() {
            let set = set.get().shared(object.py());
            return object.py().detach(|| guarded(|| Dual::new((&set.v4).into(), (&set.v6).into())));
        }
        let found = families_of(object, host_bits)?;
        object
            .py()
            .detach(|| guarded(|| Dual::new(found.v4.into_iter().collect(), found.v6.into_iter().collect())))
    }

    /// Makes a set of two, if the other one is a set of addresses.
    fn with(
        &self,
        other: &Bound<'_, PyAny>,
        v4: fn(&Addresses<u32>, &Addresses<u32>) -> Addresses<u32>,
        v6: fn(&Addresses<u128>, &Addresses<u128>) -> Addresses<u128>,
    ) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = &other.get().0;
        let made =
            py.detach(|| guarded(|| Dual::new(v4(&self.0.v4, &other.v4), v6(&self.0.v6, &other.v6))))?;
        Self(made).into_py_any(py)
    }

    fn prefixes(&self) -> impl Iterator<Item = IpPrefix> {
        self.0.v4.prefixes().map(IpPrefix::from).chain(self.0.v6.prefixes().map(IpPrefix::from))
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.v4.is_subset(&other.0.v4) && self.0.v6.is_subset(&other.0.v6)
    }
}

#[pymethods]
impl AddressSet {
    /// Make a set of prefixes, of a ``PrefixSet``, or of another set; an empty one without.
    #[new]
    #[pyo3(signature = (prefixes=None, *, host_bits="raise"))]
    fn new(prefixes: Option<&Bound<'_, PyAny>>, host_bits: &str) -> PyResult<Self> {
        let rules = crate::build::BuildRules::new("last", host_bits)?;
        match prefixes {
            None => Ok(Self(Dual::new(Addresses::new(), Addresses::new()))),
            Some(prefixes) => Ok(Self(Self::of(prefixes, rules.host_bits)?)),
        }
    }

    /// Make a set of ranges: pairs of a first and a last address.
    #[staticmethod]
    fn from_ranges(ranges: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut sets: DualAddresses = Dual::new(Addresses::new(), Addresses::new());
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (row, range) in ranges.try_iter()?.enumerate() {
            let (first, last): (Bound<'_, PyAny>, Bound<'_, PyAny>) = range?.extract()?;
            let place = format!("row {row}: ");
            let read = |object: &_| address_of(object).map_err(|error| error.into_error(&place));
            match (read(&first)?, read(&last)?) {
                (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
                    v4.extend(fibula::map::prefixes_of::<u32, _>(first.to_bits()..=last.to_bits()));
                }
                (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
                    v6.extend(fibula::map::prefixes_of::<u128, _>(first.to_bits()..=last.to_bits()));
                }
                (first, last) => {
                    return Err(value_error(format!(
                        "{place}from {first} to {last} is no range of one family"
                    )));
                }
            }
        }
        (sets.v4, sets.v6) = (v4.into_iter().collect(), v6.into_iter().collect());
        Ok(Self(sets))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(other, Addresses::union, Addresses::union)
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(other, Addresses::intersection, Addresses::intersection)
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(other, Addresses::difference, Addresses::difference)
    }

    fn __xor__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(other, Addresses::symmetric_difference, Addresses::symmetric_difference)
    }

    /// All other addresses, of both families: ``(~addresses).ipv4`` has those of IPv4.
    fn __invert__(&self) -> Self {
        Self(Dual::new(self.0.v4.complement(), self.0.v6.complement()))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(py.NotImplemented()) };
        let other = other.get();
        let answer = py.detach(|| match operator {
            CompareOp::Eq => self.0 == other.0,
            CompareOp::Ne => self.0 != other.0,
            CompareOp::Le => self.is_within(other),
            CompareOp::Lt => self.0 != other.0 && self.is_within(other),
            CompareOp::Ge => other.is_within(self),
            CompareOp::Gt => self.0 != other.0 && other.is_within(self),
        });
        answer.into_py_any(py)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.0.v4, &self.0.v6).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether an address, or all addresses of a prefix, are in the set.
    fn __contains__(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(match prefix(object)? {
            IpPrefix::V4(prefix) => self.0.v4.contains_prefix(prefix),
            IpPrefix::V6(prefix) => self.0.v6.contains_prefix(prefix),
        })
    }

    /// Return whether the set has an address of a prefix.
    fn overlaps(&self, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(match crate::scalar::prefix(prefix)? {
            IpPrefix::V4(prefix) => self.0.v4.overlaps(prefix),
            IpPrefix::V6(prefix) => self.0.v6.overlaps(prefix),
        })
    }

    /// Return whether the sets have no address in common.
    fn isdisjoint(&self, other: &Self) -> bool {
        self.0.v4.is_disjoint(&other.0.v4) && self.0.v6.is_disjoint(&other.0.v6)
    }

    fn __len__(&self) -> usize {
        self.0.v4.prefixes().count() + self.0.v6.prefixes().count()
    }

    fn __bool__(&self) -> bool {
        !(self.0.v4.is_empty() && self.0.v6.is_empty())
    }

    /// The number of addresses.
    #[getter]
    fn num_addresses<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let v4 = self.0.v4.count().into_bound_py_any(py)?;
        let v6 = match self.0.v6.is_all() {
            // One more than 128 bits hold.
            true => 1_u32.into_bound_py_any(py)?.lshift(128)?,
            false => self.0.v6.count().into_bound_py_any(py)?,
        };
        v4.add(v6)
    }

    /// The addresses of IPv4.
    #[getter]
    fn ipv4(&self) -> Self {
        Self(Dual::new(self.0.v4.clone(), Addresses::new()))
    }

    /// The addresses of IPv6.
    #[getter]
    fn ipv6(&self) -> Self {
        Self(Dual::new(Addresses::new(), self.0.v6.clone()))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let list =
            PyList::new(py, self.prefixes().map(|one| network(py, one)).collect::<PyResult<Vec<_>>>()?)?;
        Ok(list.try_iter()?.into_any())
    }

    /// Return the fewest prefixes that are the set as texts, in order: much faster than iteration, which makes networks of ``ipaddress``.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.prefixes().map(|prefix| prefix.to_string()).collect::<Vec<_>>())
    }

    /// Return the ranges of the set: first and last addresses, in order.
    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let module = py.import("ipaddress")?;
        let (v4, v6) = (module.getattr("IPv4Address")?, module.getattr("IPv6Address")?);
        let of_v4 =
            self.0.v4.ranges().map(|range| Ok((v4.call1((range.start(),))?, v4.call1((range.end(),))?)));
        let of_v6 =
            self.0.v6.ranges().map(|range| Ok((v6.call1((range.start(),))?, v6.call1((range.end(),))?)));
        of_v4.chain(of_v6).collect()
    }

    fn __repr__(&self) -> String {
        let first: Vec<String> = self.prefixes().take(4).map(|prefix| format!("'{prefix}'")).collect();
        let more = if first.len() == 4 { ", ..." } else { "" };
        format!("AddressSet([{}{more}])", first[..first.len().min(3)].join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let class = py.get_type::<Self>().into_any();
        Ok((class, (self.texts(py)?,).into_bound_py_any(py)?))
    }
}

/// What `PrefixSet` has of Rust.
#[pyclass(frozen, subclass, weakref, module = "fibula._fibula")]
pub struct PrefixSetBase(Mutex<Prefixed>);

type DualPrefixes = Dual<Prefixes<u32>, Prefixes<u128>>;

pub struct Prefixed {
    /// Shared with copies and with calls that are reading it: a change makes a copy first where that is so.
    set: Arc<DualPrefixes>,
    /// Changes so far, by which iterators notice one.
    changes: u64,
}

impl PrefixSetBase {
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Prefixed> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the prefixes as they are now, without a copy.
    fn shared(&self, py: Python<'_>) -> Arc<DualPrefixes> {
        self.lock(py).set.clone()
    }

    fn made(set: DualPrefixes) -> Self {
        Self::sharing(Arc::new(set))
    }

    fn sharing(set: Arc<DualPrefixes>) -> Self {
        Self(Mutex::new(Prefixed { set, changes: 0 }))
    }
}

/// Makes a set of prefixes of two, by one method of both families.
macro_rules! combined {
    ($slf:ident, $other:ident, $method:ident) => {{
        let (one, two) = ($slf.shared($other.py()), $other.get().shared($other.py()));
        $other.py().detach(|| {
            guarded(|| {
                Self::made(Dual::new(one.v4.$method(&two.v4).collect(), one.v6.$method(&two.v6).collect()))
            })
        })
    }};
}

#[pymethods]
impl PrefixSetBase {
    #[new]
    #[pyo3(signature = (prefixes=None, *, host_bits="raise"))]
    fn new(prefixes: Option<&Bound<'_, PyAny>>, host_bits: &str) -> PyResult<Self> {
        let rules = crate::build::BuildRules::new("last", host_bits)?;
        let Some(prefixes) = prefixes else {
            return Ok(Self::made(Dual::new(Prefixes::new(), Prefixes::new())));
        };
        if let Ok(other) = prefixes.cast::<Self>() {
            return Ok(Self::sharing(other.get().shared(prefixes.py())));
        }
        let found = families_of(prefixes, rules.host_bits)?;
        prefixes.py().detach(|| guarded(|| Self::made(Dual::new(in_order(found.v4), in_order(found.v6)))))
    }

    /// Add a prefix.
    fn add(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let added = crate::scalar::prefix(prefix)?;
        let mut own = self.lock(prefix.py());
        let is_new = match added {
            IpPrefix::V4(prefix) => Arc::make_mut(&mut own.set).v4.insert(prefix),
            IpPrefix::V6(prefix) => Arc::make_mut(&mut own.set).v6.insert(prefix),
        };
        own.changes += u64::from(is_new);
        Ok(())
    }

    /// Remove a prefix, if it is there.
    fn discard(&self, prefix: &Bound<'_, PyAny>) -> PyResult<()> {
        let removed = crate::scalar::prefix(prefix)?;
        let mut own = self.lock(prefix.py());
        let was_there = match removed {
            IpPrefix::V4(prefix) => Arc::make_mut(&mut own.set).v4.remove(prefix),
            IpPrefix::V6(prefix) => Arc::make_mut(&mut own.set).v6.remove(prefix),
        };
        own.changes += u64::from(was_there);
        Ok(())
    }

    /// Remove all prefixes.
    fn clear(&self, py: Python<'_>) {
        let mut own = self.lock(py);
        own.set = Arc::new(Dual::new(Prefixes::new(), Prefixes::new()));
        own.changes += 1;
    }

    fn __contains__(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let own = self.lock(object.py());
        Ok(match prefix(object)? {
            IpPrefix::V4(prefix) => own.set.v4.contains(prefix),
            IpPrefix::V6(prefix) => own.set.v6.contains(prefix),
        })
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        let own = self.lock(py);
        own.set.v4.len() + own.set.v6.len()
    }

    /// Return the longest prefix of the set that contains an address; None if there is none.
    fn lookup_prefix<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let address = crate::scalar::address(address)?;
        let own = self.lock(py);
        let found = match address {
            IpAddr::V4(v4) => own.set.v4.lookup_prefix(v4.to_bits()).map(IpPrefix::from),
            IpAddr::V6(v6) => own.set.v6.lookup_prefix(v6.to_bits()).map(IpPrefix::from),
        };
        drop(own);
        found.map(|prefix| network(py, prefix)).transpose()
    }

    /// Return the prefixes of the set around an address or a prefix, itself included, the shortest first.
    fn covers<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let own = self.lock(py);
        let mut found: Vec<IpPrefix> = match prefix {
            IpPrefix::V4(prefix) => own.set.v4.covers(prefix).map(IpPrefix::from).collect(),
            IpPrefix::V6(prefix) => own.set.v6.covers(prefix).map(IpPrefix::from).collect(),
        };
        drop(own);
        found.sort_by_key(|prefix| prefix.len());
        found.into_iter().map(|prefix| network(py, prefix)).collect()
    }

    /// Return the prefixes of the set inside a prefix, itself included, in order.
    fn subnets<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let own = self.lock(py);
        let found: Vec<IpPrefix> = match prefix {
            IpPrefix::V4(prefix) => own.set.v4.subnets(prefix).map(IpPrefix::from).collect(),
            IpPrefix::V6(prefix) => own.set.v6.subnets(prefix).map(IpPrefix::from).collect(),
        };
        drop(own);
        found.into_iter().map(|prefix| network(py, prefix)).collect()
    }

    fn _union(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        combined!(self, other, union)
    }

    fn _intersection(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        combined!(self, other, intersection)
    }

    fn _difference(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        combined!(self, other, difference)
    }

    fn _symmetric_difference(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        combined!(self, other, symmetric_difference)
    }

    fn _is_subset(&self, other: &Bound<'_, Self>) -> bool {
        let py = other.py();
        let (one, two) = (self.shared(py), other.get().shared(py));
        py.detach(|| one.v4.is_subset(&two.v4) && one.v6.is_subset(&two.v6))
    }

    fn _equals(&self, other: &Bound<'_, Self>) -> bool {
        let py = other.py();
        let (one, two) = (self.shared(py), other.get().shared(py));
        py.detach(|| Arc::ptr_eq(&one, &two) || one == two)
    }

    /// Return up to `count` prefixes after one, and the number of changes so far.
    fn _after<'py>(
        &self,
        py: Python<'py>,
        after: Option<&Bound<'py, PyAny>>,
        count: usize,
        changes: Option<u64>,
    ) -> PyResult<(Vec<Bound<'py, PyAny>>, u64)> {
        let after = after.map(prefix).transpose()?;
        let own = self.lock(py);
        if changes.is_some_and(|changes| changes != own.changes) {
            return Err(PyRuntimeError::new_err("the prefixes changed during iteration"));
        }
        let found = after_of(&own.set, after, count);
        let changes = own.changes;
        drop(own);
        Ok((found.into_iter().map(|prefix| network(py, prefix)).collect::<PyResult<_>>()?, changes))
    }

    /// Return the prefixes as texts, in order: much faster than iteration, which makes networks of ``ipaddress``.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let set = self.shared(py);
        let (v4, v6) = (set.v4.iter(), set.v6.iter());
        let texts = v4.map(|one| one.to_string()).chain(v6.map(|one| one.to_string()));
        PyList::new(py, texts.collect::<Vec<String>>())
    }
}

/// Makes a set of prefixes that are in any order. They are sorted first, so that each one goes next to the one before it, which is in the cache.
fn in_order<K: Key>(mut prefixes: Vec<Prefix<K>>) -> Prefixes<K> {
    prefixes.sort_unstable();
    prefixes.into_iter().collect()
}

fn after_of(
    set: &Dual<Prefixes<u32>, Prefixes<u128>>,
    after: Option<IpPrefix>,
    count: usize,
) -> Vec<IpPrefix> {
    fn of<K: Key>(set: &Prefixes<K>, after: Option<Prefix<K>>, count: usize) -> Vec<IpPrefix>
    where
        IpPrefix: From<Prefix<K>>,
    {
        match after {
            Some(prefix) => set.iter_after(prefix).take(count).map(IpPrefix::from).collect(),
            None => set.iter().take(count).map(IpPrefix::from).collect(),
        }
    }
    let mut found = match after {
        None => of(&set.v4, None, count),
        Some(IpPrefix::V4(prefix)) => of(&set.v4, Some(prefix), count),
        Some(IpPrefix::V6(_)) => Vec::new(),
    };
    if found.len() < count {
        let left = count - found.len();
        found.extend(match after {
            Some(IpPrefix::V6(prefix)) => of(&set.v6, Some(prefix), left),
            _ => of(&set.v6, None, left),
        });
    }
    found
}
