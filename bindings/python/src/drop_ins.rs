//! The Rust half of the drop-ins for pytricia, py-radix and pyasn: the calls that programs make most. The other calls are Python, in
//! `pytricia.py`, `radix.py` and `pyasn.py`.
//!
//! These calls are methods of base classes, because a Python method in between would cost a third more.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fibula::fib::{DualFib, Fib};
use fibula::net::{HostBits, IpPrefix, Key, Prefix, parse_address};
use fibula::rib::{ColumnRules, DualRib, Duplicates, Rib};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, PyTypeInfo};

use crate::error::{guarded, type_error, value_error};
use crate::map::PrefixMapBase;
use crate::scalar::{NoAddress, prefix_of};

/// The base class of `PyTricia`.
#[pyclass(frozen, subclass, module = "fibula._fibula")]
pub struct TriciaBase(Py<PrefixMapBase>);

impl TriciaBase {
    /// Returns the value of the longest prefix around another, itself included. Whatever is no prefix is a `ValueError`.
    #[inline]
    fn best(&self, prefix: &Bound<'_, PyAny>, wrong: &'static str) -> PyResult<Option<Py<PyAny>>> {
        let py = prefix.py();
        match prefix_of(prefix, HostBits::Mask) {
            Ok(prefix) => Ok(self.0.get().best(py, prefix)),
            Err(NoAddress::Other(error))
                if !error.is_instance_of::<PyValueError>(py) && !error.is_instance_of::<PyTypeError>(py) =>
            {
                Err(error)
            }
            Err(_) => Err(value_error(wrong)),
        }
    }
}

#[pymethods]
impl TriciaBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        py: Python<'_>,
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(Self(Py::new(py, PrefixMapBase::empty())?))
    }

    #[getter]
    fn _map(&self, py: Python<'_>) -> Py<PrefixMapBase> {
        self.0.clone_ref(py)
    }

    /// Return the value of the longest prefix around this one, or ``default``.
    #[pyo3(signature = (prefix, default=None))]
    fn get(
        &self,
        prefix: &Bound<'_, PyAny>,
        default: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let found = self.best(prefix, "Invalid prefix.")?;
        Ok(found.or_else(|| default.map(|default| default.clone().unbind())))
    }

    fn __getitem__(&self, prefix: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.best(prefix, "Invalid prefix.")?.ok_or_else(|| PyKeyError::new_err("Prefix not found."))
    }

    fn __contains__(&self, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.best(prefix, "Invalid key type")?.is_some())
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.0.get().count(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The map lets go of its values where it is garbage, and so cuts any cycle.
        visit.call(&self.0)
    }
}

/// The base class of `Radix`: a map whose values are nodes.
#[pyclass(frozen, subclass, module = "fibula._fibula")]
pub struct RadixBase(Py<PrefixMapBase>);

/// Returns the prefix of the arguments that the methods of py-radix take.
fn radix_key(
    network: Option<&Bound<'_, PyAny>>,
    length: Option<&Bound<'_, PyAny>>,
    packed: Option<&Bound<'_, PyAny>>,
) -> PyResult<IpPrefix> {
    let length = length.filter(|length| !length.extract::<i64>().is_ok_and(|length| length == -1));
    let address = match (network, packed) {
        (None, None) => return Err(type_error("No address specified (use 'address' or 'packed')")),
        (Some(_), Some(_)) => return Err(type_error("Two address types specified. Please pick one.")),
        (None, Some(packed)) => PyBytes::type_object(packed.py()).call1((packed,))?,
        (Some(network), None) => {
            let Ok(text) = network.cast::<PyString>() else {
                let name = network.get_type().name()?;
                return Err(type_error(format!("a network is a str, not {name}")));
            };
            if length.is_some() && text.to_cow()?.contains('/') {
                return Err(value_error("masklen specified twice"));
            }
            network.clone()
        }
    };
    let key = match length {
        None => address,
        Some(length) => (address, length).into_bound_py_any(length.py())?,
    };
    prefix_of(&key, HostBits::Mask).map_err(|error| error.into_error(""))
}

#[pymethods]
impl RadixBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        py: Python<'_>,
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Ok(Self(Py::new(py, PrefixMapBase::empty())?))
    }

    /// Return the node of a prefix, which is added if it is not there.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn add(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let prefix = radix_key(network, masklen, packed)?;
        let node = RadixNode { prefix, map: self.0.clone_ref(py), data: PyDict::new(py).unbind() };
        Ok(self.0.get().exact_or_put(py, prefix, Py::new(py, node)?.into_any()))
    }

    /// Remove a prefix.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn delete(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let node = self.0.get().take(py, radix_key(network, masklen, packed)?);
        node.map(drop).ok_or_else(|| PyKeyError::new_err("no such address"))
    }

    /// Return the node of exactly this prefix.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn search_exact(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.0.get().exact(py, radix_key(network, masklen, packed)?))
    }

    /// Return the node of the longest prefix around this one.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn search_best(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.0.get().best(py, radix_key(network, masklen, packed)?))
    }

    /// Return the node of the shortest prefix around this one.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn search_worst(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.0.get().around(py, radix_key(network, masklen, packed)?).into_iter().next())
    }

    /// Return the nodes of the prefixes inside this one.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn search_covered(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        Ok(self.0.get().inside(py, radix_key(network, masklen, packed)?).into_iter().rev().collect())
    }

    /// Return the nodes of the prefixes around this one, the longest first.
    #[pyo3(signature = (network=None, masklen=None, packed=None))]
    fn search_covering(
        &self,
        py: Python<'_>,
        network: Option<&Bound<'_, PyAny>>,
        masklen: Option<&Bound<'_, PyAny>>,
        packed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        Ok(self.0.get().around(py, radix_key(network, masklen, packed)?).into_iter().rev().collect())
    }

    /// Return all nodes, in order.
    fn nodes(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        self.0.get().values(py)
    }

    /// Return all prefixes, in order.
    fn prefixes(&self, py: Python<'_>) -> Vec<String> {
        self.0.get().key_texts(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// A prefix of a tree, with a dict of whatever belongs to it.
#[pyclass(frozen, module = "fibula.radix")]
pub struct RadixNode {
    prefix: IpPrefix,
    map: Py<PrefixMapBase>,
    /// Whatever belongs to the prefix.
    #[pyo3(get)]
    data: Py<PyDict>,
}

impl RadixNode {
    fn address(&self) -> IpAddr {
        match self.prefix {
            IpPrefix::V4(prefix) => prefix.network().into(),
            IpPrefix::V6(prefix) => prefix.network().into(),
        }
    }
}

#[pymethods]
impl RadixNode {
    /// The prefix.
    #[getter]
    fn prefix(&self) -> String {
        self.prefix.to_string()
    }

    /// The address of the prefix.
    #[getter]
    fn network(&self) -> String {
        self.address().to_string()
    }

    /// The length of the prefix.
    #[getter]
    fn prefixlen(&self) -> u8 {
        self.prefix.len()
    }

    /// ``socket.AF_INET`` or ``socket.AF_INET6``.
    #[getter]
    fn family(&self) -> i32 {
        // Of Linux.
        if self.address().is_ipv4() { 2 } else { 10 }
    }

    /// The address in network order.
    #[getter]
    fn packed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        match self.address() {
            IpAddr::V4(address) => PyBytes::new(py, &address.octets()),
            IpAddr::V6(address) => PyBytes::new(py, &address.octets()),
        }
    }

    /// The node of the longest prefix around this one; None if there is none.
    #[getter]
    fn parent(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.map.get().above(py, self.prefix)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The map and the dict let go of what they hold where they are garbage, and so cut any cycle.
        visit.call(&self.map)?;
        visit.call(&self.data)
    }
}

/// The base class of `pyasn`: the table that was read last.
#[pyclass(frozen, subclass, module = "fibula._fibula")]
pub struct OriginsBase(Mutex<Arc<Origins>>);

/// Prefixes and their origin ASes.
struct Origins {
    ribs: DualRib,
    fibs: DualFib,
    /// By id less one. Rows whose prefix is there again later are in no table.
    v4: Vec<Origin<u32>>,
    v6: Vec<Origin<u128>>,
    /// Number of answers that are kept.
    kept: AtomicUsize,
}

/// Most answers that are kept: some 20 MB. All of a full table would take more memory than the table.
const KEPT: usize = 1 << 17;

struct Origin<K> {
    prefix: Prefix<K>,
    asn: u32,
    /// The answer for this prefix, made when it is first asked for, and kept while there are not too many.
    answer: PyOnceLock<Py<PyTuple>>,
}

impl<K: Key> Origin<K>
where
    Prefix<K>: std::fmt::Display,
{
    #[inline]
    fn answer(&self, py: Python<'_>, kept: &AtomicUsize) -> PyResult<Py<PyTuple>> {
        if let Some(answer) = self.answer.get(py) {
            return Ok(answer.clone_ref(py));
        }
        let answer = (self.asn, self.prefix.to_string()).into_pyobject(py)?.unbind();
        // Counted before it is kept, so that threads that meet here count one too many, never one too few.
        if kept.load(Ordering::Relaxed) >= KEPT {
            return Ok(answer);
        }
        kept.fetch_add(1, Ordering::Relaxed);
        Ok(self.answer.get_or_init(py, || answer).clone_ref(py))
    }
}

impl Origins {
    /// Reads lines of a prefix and an AS.
    fn read(text: &str) -> Result<Self, String> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            let wrong = |why: String| format!("record: {}: '{line}': {why}", number + 1);
            let mut words = line.split_whitespace();
            let (Some(prefix), Some(asn), None) = (words.next(), words.next(), words.next()) else {
                return Err(wrong("a line is a prefix and an AS".to_owned()));
            };
            let asn: u32 = asn.parse().map_err(|_| wrong(format!("{asn} is not an AS number")))?;
            let read = match prefix.contains('/') {
                true => IpPrefix::parse(prefix.as_bytes(), HostBits::Mask).map_err(|error| error.to_string()),
                false => {
                    parse_address(prefix.as_bytes()).map(IpPrefix::from).map_err(|error| error.to_string())
                }
            };
            match read.map_err(wrong)? {
                IpPrefix::V4(prefix) => v4.push(Origin { prefix, asn, answer: PyOnceLock::new() }),
                IpPrefix::V6(prefix) => v6.push(Origin { prefix, asn, answer: PyOnceLock::new() }),
            }
        }
        let ribs = DualRib::new(rib_of(&v4)?, rib_of(&v6)?);
        let fibs = DualFib::build(&ribs).map_err(|error| error.to_string())?;
        Ok(Self { ribs, fibs, v4, v6, kept: AtomicUsize::new(0) })
    }

    fn answer(&self, py: Python<'_>, prefix: IpPrefix) -> PyResult<Py<PyTuple>> {
        static NOTHING: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
        let found = match prefix {
            IpPrefix::V4(one) => {
                id_of(&*self.fibs.v4, &self.ribs.v4, one).map(|id| self.v4[id].answer(py, &self.kept))
            }
            IpPrefix::V6(one) => {
                id_of(&*self.fibs.v6, &self.ribs.v6, one).map(|id| self.v6[id].answer(py, &self.kept))
            }
        };
        match found {
            Some(answer) => answer,
            None => {
                let nothing = NOTHING
                    .get_or_try_init(py, || PyTuple::new(py, [py.None(), py.None()]).map(Bound::unbind));
                Ok(nothing?.clone_ref(py))
            }
        }
    }
}

fn rib_of<K: Key>(rows: &[Origin<K>]) -> Result<Rib<K>, String> {
    let addresses: Vec<K> = rows.iter().map(|row| row.prefix.addr()).collect();
    let lengths: Vec<u8> = rows.iter().map(|row| row.prefix.len()).collect();
    let ids: Vec<u32> = (1..=rows.len() as u32).collect();
    let rules = ColumnRules { duplicates: Duplicates::LastWins, ..ColumnRules::default() };
    Rib::from_columns(&addresses, &lengths, &ids, rules).map_err(|error| error.to_string())
}

/// Returns the row of the longest prefix around another, itself included.
#[inline]
fn id_of<K: Key>(fib: &dyn Fib<K>, rib: &Rib<K>, prefix: Prefix<K>) -> Option<usize> {
    let id = match prefix.len() == K::BITS {
        true => fib.lookup_key(prefix.addr()),
        false => rib.get(prefix).or_else(|| rib.parent(prefix).map(|route| route.next_hop)),
    };
    id.map(|id| id.id() as usize - 1)
}

impl OriginsBase {
    /// Returns the table, which stays while the call lasts: what makes an answer may run code that reads another.
    fn shared(&self, py: Python<'_>) -> Arc<Origins> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl OriginsBase {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self(Mutex::new(Arc::new(Origins::read("").map_err(PyRuntimeError::new_err)?))))
    }

    /// Read the lines of a text. Returns the number of prefixes.
    fn _load(&self, py: Python<'_>, text: &str) -> PyResult<usize> {
        let read = py.detach(|| guarded(|| Origins::read(text)))?.map_err(PyRuntimeError::new_err)?;
        let count = read.ribs.len();
        let old = std::mem::replace(
            &mut *self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner),
            Arc::new(read),
        );
        drop(old);
        Ok(count)
    }

    /// Return the AS of the longest prefix around an address, and that prefix; two times None if there is none.
    fn lookup(&self, ip_address: &Bound<'_, PyAny>) -> PyResult<Py<PyTuple>> {
        let py = ip_address.py();
        let prefix = prefix_of(ip_address, HostBits::Mask).map_err(|error| error.into_error(""))?;
        self.shared(py).answer(py, prefix)
    }

    /// Return all prefixes with their ASes, in order.
    fn _entries(&self, py: Python<'_>) -> Vec<(u32, String)> {
        let own = self.shared(py);
        let v4 = own
            .ribs
            .v4
            .iter()
            .map(|route| (own.v4[route.next_hop.id() as usize - 1].asn, route.prefix.to_string()));
        let v6 = own
            .ribs
            .v6
            .iter()
            .map(|route| (own.v6[route.next_hop.id() as usize - 1].asn, route.prefix.to_string()));
        v4.chain(v6).collect()
    }
}
