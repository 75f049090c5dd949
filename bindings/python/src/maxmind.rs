//! Databases of MaxMind: the part of `fibula.maxminddb` that is written in Rust.
//!
//! The first 16 bits of an address are looked up at once, in a table that is made when a database is opened; the tree of the file has the
//! rest, and the file's own data section the records. Nothing else is kept, so that files of any size open at once, and a tree whose parts
//! refer to each other takes no more memory than another. The format is version 2.0 of the MaxMind DB File Format Specification.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fibula::net::{IpPrefix, Prefix, parse_address};
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, RwLockExt};
use pyo3::types::{PyByteArray, PyDict, PyFloat, PyList, PyString};
use pyo3::{IntoPyObjectExt, intern};

use crate::buffer::HeldBytes;
use crate::error::{type_error, value_error};
use crate::scalar::network;

pyo3::create_exception!(
    fibula.maxminddb,
    InvalidDatabaseError,
    PyRuntimeError,
    "A file is no database of MaxMind, or is damaged."
);

fn invalid(message: impl Into<String>) -> PyErr {
    InvalidDatabaseError::new_err(message.into())
}

fn damaged() -> PyErr {
    invalid("the data section of the database is damaged, or has a type that is not known")
}

/// Marks the start of the metadata. The last marker in the last 128 KiB of the file counts.
const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
const METADATA_ROOM: usize = 128 << 10;
/// Zeros between the tree and the data section.
const SEPARATOR: usize = 16;
/// The bits that the tables of roots are looked up by.
const ROOT_BITS: u32 = 16;

// Bounds of one record, as the original has them: a small file can refer to itself so often that its record would fill all memory.
const MOST_VALUES: usize = 1 << 16;
const MOST_DEPTH: usize = 512;
const MOST_BYTES: usize = 1 << 21;

/// Decodes one record.
struct Decoder<'a> {
    bytes: &'a [u8],
    /// Where pointers count from.
    base: usize,
    values_left: usize,
    bytes_left: usize,
    depth: usize,
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, base, values_left: MOST_VALUES - 1, bytes_left: MOST_BYTES, depth: 0 }
    }

    fn take(&self, at: &mut usize, count: usize) -> PyResult<&'a [u8]> {
        let taken = at.checked_add(count).and_then(|end| self.bytes.get(*at..end)).ok_or_else(damaged)?;
        *at += count;
        Ok(taken)
    }

    /// Returns a number of up to 16 bytes, the highest first.
    fn number(&self, at: &mut usize, count: usize) -> PyResult<u128> {
        if count > 16 {
            return Err(damaged());
        }
        Ok(self.take(at, count)?.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// Counts bytes that are copied.
    fn charge(&mut self, count: usize) -> PyResult<()> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(count)
            .ok_or_else(|| invalid(format!("a record has more than {MOST_BYTES} bytes")))?;
        Ok(())
    }

    /// Counts the values of an array or a map, and one step inwards.
    fn enter(&mut self, values: usize) -> PyResult<()> {
        self.values_left = self
            .values_left
            .checked_sub(values)
            .ok_or_else(|| invalid(format!("a record has more than {MOST_VALUES} values")))?;
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(invalid(format!(
                "a record has values inside each other, more than {MOST_DEPTH} deep"
            )));
        }
        Ok(())
    }

    /// Decodes the value at `at`, and moves `at` past it. `is_led` says that a pointer led here, because a second pointer is refused.
    fn value<'py>(&mut self, py: Python<'py>, at: &mut usize, is_led: bool) -> PyResult<Bound<'py, PyAny>> {
        let control = self.take(at, 1)?[0];
        let mut kind = control >> 5;
        if kind == 0 {
            kind = self.take(at, 1)?[0].checked_add(7).filter(|kind| *kind > 7).ok_or_else(damaged)?;
        }
        let low = usize::from(control & 0x1F);
        if kind == 1 {
            if is_led {
                return Err(damaged());
            }
            let size = (low >> 3) + 1;
            let number = self.number(at, size)? as usize;
            let high = (low & 7) << (8 * size);
            let mut led = match size {
                1 => high | number,
                2 => (high | number) + 2048,
                3 => (high | number) + 526_336,
                _ => number,
            }
            .checked_add(self.base)
            .ok_or_else(damaged)?;
            self.enter(0)?;
            let value = self.value(py, &mut led, true)?;
            self.depth -= 1;
            return Ok(value);
        }
        let size = match low {
            29 => 29 + self.number(at, 1)? as usize,
            30 => 285 + self.number(at, 2)? as usize,
            31 => 65_821 + self.number(at, 3)? as usize,
            _ => low,
        };
        Ok(match kind {
            2 => {
                self.charge(size)?;
                let text = std::str::from_utf8(self.take(at, size)?).map_err(|_| damaged())?;
                PyString::new(py, text).into_any()
            }
            3 => {
                let bytes = <[u8; 8]>::try_from(self.take(at, size)?).map_err(|_| damaged())?;
                PyFloat::new(py, f64::from_be_bytes(bytes)).into_any()
            }
            4 => {
                self.charge(size)?;
                PyByteArray::new(py, self.take(at, size)?).into_any()
            }
            5 | 6 | 9 => {
                let most = [2, 4, 0, 0, 8][usize::from(kind) - 5];
                if size > most {
                    return Err(damaged());
                }
                (self.number(at, size)? as u64).into_bound_py_any(py)?
            }
            10 => self.number(at, size)?.into_bound_py_any(py)?,
            7 => {
                self.enter(size.saturating_mul(2))?;
                let map = PyDict::new(py);
                for _ in 0..size {
                    let key = self.value(py, at, false)?;
                    if !key.is_instance_of::<PyString>() {
                        return Err(damaged());
                    }
                    map.set_item(key, self.value(py, at, false)?)?;
                }
                self.depth -= 1;
                map.into_any()
            }
            8 if size <= 4 => (self.number(at, size)? as u32).cast_signed().into_bound_py_any(py)?,
            11 => {
                self.enter(size)?;
                let list = PyList::empty(py);
                for _ in 0..size {
                    list.append(self.value(py, at, false)?)?;
                }
                self.depth -= 1;
                list.into_any()
            }
            14 if size <= 1 => (size == 1).into_bound_py_any(py)?,
            15 => {
                let bytes = <[u8; 4]>::try_from(self.take(at, size)?).map_err(|_| damaged())?;
                PyFloat::new(py, f64::from(f32::from_be_bytes(bytes))).into_any()
            }
            _ => return Err(damaged()),
        })
    }
}

/// The search tree of a database.
#[derive(Debug, Clone, Copy)]
struct Tree {
    nodes: u32,
    /// Bits of one half of a node: 24, 28 or 32.
    record_bits: u32,
    is_v6: bool,
    /// Where IPv4 addresses begin, after 96 zero bits.
    v4_start: u32,
}

impl Tree {
    fn bytes(&self) -> usize {
        self.nodes as usize * self.record_bits as usize / 4
    }

    /// Returns one half of a node, which is less than `nodes`.
    #[inline]
    fn child(&self, bytes: &[u8], node: u32, is_right: bool) -> u32 {
        let at = node as usize * (self.record_bits / 4) as usize;
        match self.record_bits {
            24 => {
                let at = at + 3 * usize::from(is_right);
                u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
            }
            28 if is_right => {
                u32::from_be_bytes([bytes[at + 3] & 0xF, bytes[at + 4], bytes[at + 5], bytes[at + 6]])
            }
            28 => u32::from_be_bytes([bytes[at + 3] >> 4, bytes[at], bytes[at + 1], bytes[at + 2]]),
            _ => {
                let at = at + 4 * usize::from(is_right);
                u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            }
        }
    }

    /// Follows the bits of `left`, the highest first, from a node down to at most `depth` bits. Returns the last node or record, and its depth.
    #[inline]
    fn walk(&self, bytes: &[u8], mut node: u32, from: u32, depth: u32, left: u128) -> (u32, u32) {
        let (mut at, mut left) = (from, left);
        while at < depth && node < self.nodes {
            node = self.child(bytes, node, left >> 127 == 1);
            left <<= 1;
            at += 1;
        }
        (node, at)
    }
}

/// Where each value of the first 16 bits leads: a node or a record, and the bits until there.
struct Roots(Vec<(u32, u8)>);

impl Roots {
    fn of(tree: &Tree, bytes: &[u8], start: u32) -> Self {
        let of_bits = |bits: u32| {
            let (node, at) = tree.walk(bytes, start, 0, ROOT_BITS, u128::from(bits) << (128 - ROOT_BITS));
            (node, at as u8)
        };
        Self((0..1 << ROOT_BITS).map(of_bits).collect())
    }

    #[inline]
    fn find(&self, tree: &Tree, bytes: &[u8], key: u128, depth: u32) -> (u32, u32) {
        let (node, at) = self.0[(key >> (128 - ROOT_BITS)) as usize];
        tree.walk(bytes, node, u32::from(at), depth, key << at)
    }
}

/// An open database.
struct Database {
    held: HeldBytes,
    tree: Tree,
    v4: Roots,
    v6: Option<Roots>,
}

impl Database {
    fn open(py: Python<'_>, held: HeldBytes, name: &str) -> PyResult<(Self, Py<PyDict>)> {
        let bytes = held.bytes();
        let from = bytes.len().saturating_sub(METADATA_ROOM);
        let found = bytes[from..].windows(MARKER.len()).rposition(|window| window == MARKER);
        let Some(marker) = found.map(|at| from + at) else {
            return Err(invalid(format!("{name}: the file is no MaxMind database: it has no metadata")));
        };
        let refused = |why: &str| invalid(format!("{name}: {why}"));
        let mut at = marker + MARKER.len();
        let metadata = Decoder::new(bytes, at).value(py, &mut at, false)?;
        let metadata = metadata.cast_into::<PyDict>().map_err(|_| refused("the metadata is no map"))?;
        let number = |key: &str| -> PyResult<u32> {
            let value = metadata.get_item(key)?.and_then(|value| value.extract().ok());
            value.ok_or_else(|| refused(&format!("the metadata has no '{key}', or it is no number")))
        };
        let (nodes, record_bits, version) =
            (number("node_count")?, number("record_size")?, number("ip_version")?);
        if number("binary_format_major_version")? != 2 {
            return Err(refused("the format is none of version 2"));
        }
        if !matches!(record_bits, 24 | 28 | 32) {
            return Err(refused(&format!(
                "records of the tree have {record_bits} bits: 24, 28 and 32 are known"
            )));
        }
        if !matches!(version, 4 | 6) {
            return Err(refused(&format!("IP version {version}")));
        }
        let mut tree = Tree { nodes, record_bits, is_v6: version == 6, v4_start: 0 };
        if tree.bytes() + SEPARATOR > bytes.len() {
            return Err(refused("the search tree extends past the end of the file"));
        }
        if tree.is_v6 {
            tree.v4_start = tree.walk(bytes, 0, 0, 96, 0).0;
        }
        let v4 = Roots::of(&tree, bytes, tree.v4_start);
        let v6 = tree.is_v6.then(|| Roots::of(&tree, bytes, 0));
        let metadata = metadata.unbind();
        Ok((Self { held, tree, v4, v6 }, metadata))
    }

    /// Returns where the record of an address is, 0 for none, and the bits of the prefix that decides it.
    fn find(&self, address: IpAddr) -> PyResult<(u32, u32)> {
        let bytes = self.held.bytes();
        let (node, at) = match (address, &self.v6) {
            (IpAddr::V4(v4), _) => self.v4.find(&self.tree, bytes, u128::from(v4.to_bits()) << 96, 32),
            (IpAddr::V6(v6), Some(roots)) => roots.find(&self.tree, bytes, v6.to_bits(), 128),
            (IpAddr::V6(_), None) => {
                return Err(value_error(format!(
                    "Error looking up {address}. You attempted to look up an IPv6 address in an IPv4-only database."
                )));
            }
        };
        match node.cmp(&self.tree.nodes) {
            std::cmp::Ordering::Less => {
                Err(invalid("the search tree is damaged: it is deeper than an address"))
            }
            std::cmp::Ordering::Equal => Ok((0, at)),
            std::cmp::Ordering::Greater => Ok((node, at)),
        }
    }

    /// Decodes the record that a half of a node leads to.
    fn record<'py>(&self, py: Python<'py>, node: u32) -> PyResult<Bound<'py, PyAny>> {
        let offset = (node - self.tree.nodes) as usize;
        if offset < SEPARATOR {
            return Err(invalid("the search tree is damaged: a record lies before the data section"));
        }
        let mut at = self.tree.bytes() + offset;
        Decoder::new(self.held.bytes(), self.tree.bytes() + SEPARATOR).value(py, &mut at, false)
    }
}

/// Returns the address of an argument: a text, or an object of `ipaddress`.
fn address_of(object: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    if let Ok(text) = object.cast::<PyString>() {
        let no_address = || value_error(format!("{object:?} does not appear to be an IPv4 or IPv6 address"));
        let text = text.to_str().map_err(|_| no_address())?;
        // A zone is no part of what is looked up.
        let bare = match text.split_once('%') {
            Some((bare, zone)) if !zone.is_empty() && !zone.contains(['%', '/']) && bare.contains(':') => {
                bare
            }
            _ => text,
        };
        return parse_address(bare.as_bytes()).map_err(|_| no_address());
    }
    if let Some(packed) = object.getattr_opt(intern!(object.py(), "packed"))? {
        if let Ok(v4) = packed.extract::<[u8; 4]>() {
            return Ok(v4.into());
        }
        if let Ok(v6) = packed.extract::<[u8; 16]>() {
            return Ok(v6.into());
        }
    }
    Err(type_error("argument 1 must be a string or ipaddress object"))
}

/// The base of `fibula.maxminddb.Reader`.
#[pyclass(frozen, subclass, weakref, module = "fibula._fibula")]
pub struct MaxMindBase {
    /// `None` once it was closed.
    current: RwLock<Option<Arc<Database>>>,
    metadata: Py<PyDict>,
}

impl MaxMindBase {
    #[inline]
    fn with<T>(&self, py: Python<'_>, with: impl FnOnce(&Database) -> PyResult<T>) -> PyResult<T> {
        let current = match self.current.try_read() {
            Ok(current) => current,
            Err(_) => self.current.read_py_attached(py).unwrap_or_else(PoisonError::into_inner),
        };
        with(current.as_ref().ok_or_else(|| value_error("Attempt to read from a closed MaxMind DB."))?)
    }

    fn held(&self, py: Python<'_>) -> Option<Arc<Database>> {
        self.current.read_py_attached(py).unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl MaxMindBase {
    #[new]
    fn new(bytes: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let held = HeldBytes::of(bytes)?;
        let (database, metadata) = Database::open(bytes.py(), held, name)?;
        Ok(Self { current: RwLock::new(Some(Arc::new(database))), metadata })
    }

    /// Return the record of an address; None if there is none.
    fn get<'py>(&self, ip_address: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = ip_address.py();
        let address = address_of(ip_address);
        self.with(py, |database| match database.find(address?)?.0 {
            0 => Ok(py.None().into_bound(py)),
            node => database.record(py, node),
        })
    }

    /// Return the record of an address, None if there is none, and the length of the prefix that decides it.
    fn get_with_prefix_len<'py>(&self, ip_address: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, u32)> {
        let py = ip_address.py();
        let address = address_of(ip_address);
        self.with(py, |database| match database.find(address?)? {
            (0, at) => Ok((py.None().into_bound(py), at)),
            (node, at) => Ok((database.record(py, node)?, at)),
        })
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<MaxMindIterator> {
        if slf.get().held(slf.py()).is_none() {
            return Err(value_error("Attempt to iterate over a closed MaxMind DB."));
        }
        Ok(MaxMindIterator { reader: slf.unbind(), next: Mutex::new(vec![(0, 0, 0)]) })
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.held(py).is_none()
    }

    /// Return the metadata as a dict.
    fn _metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.held(py).is_none() {
            return Err(PyOSError::new_err("Attempt to read from a closed MaxMind DB."));
        }
        self.metadata.bind(py).copy()
    }

    /// Give the file back when the last call that uses it has ended. Further calls are errors.
    fn close(&self, py: Python<'_>) {
        let before = self.current.write_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        drop(before);
    }
}

/// An iterator over the networks of a database, in order, and their records.
#[pyclass(frozen, module = "fibula._fibula")]
pub struct MaxMindIterator {
    reader: Py<MaxMindBase>,
    /// Halves of nodes that are still to be seen, the next at the end: what they lead to, their bits, and how many these are.
    next: Mutex<Vec<(u32, u128, u32)>>,
}

#[pymethods]
impl MaxMindIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let Some(database) = self.reader.get().held(py) else {
            return Err(value_error("Attempt to iterate over a closed MaxMind DB."));
        };
        let (tree, bytes) = (&database.tree, database.held.bytes());
        let width = if tree.is_v6 { 128 } else { 32 };
        let found = {
            let mut next = self.next.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            loop {
                let Some((node, bits, depth)) = next.pop() else { return Ok(None) };
                // Other ways to the part of IPv4, which files have for mapped and 6to4 addresses.
                if node == tree.nodes || (bits != 0 && node == tree.v4_start && node < tree.nodes) {
                    continue;
                }
                if node > tree.nodes {
                    break (node, bits, depth);
                }
                if depth == width {
                    return Err(invalid("the search tree is damaged: it is deeper than an address"));
                }
                next.push((tree.child(bytes, node, true), bits << 1 | 1, depth + 1));
                next.push((tree.child(bytes, node, false), bits << 1, depth + 1));
            }
        };
        let (node, bits, depth) = found;
        let first = bits.checked_shl(width - depth).unwrap_or(0);
        let is_v4 = !tree.is_v6 || (depth >= 96 && first >> 32 == 0);
        let wrong = |_| invalid("the search tree is damaged");
        let prefix = if is_v4 {
            let depth = if tree.is_v6 { depth - 96 } else { depth };
            IpPrefix::V4(Prefix::new(first as u32, depth as u8).map_err(wrong)?)
        } else {
            IpPrefix::V6(Prefix::new(first, depth as u8).map_err(wrong)?)
        };
        Ok(Some((network(py, prefix)?, database.record(py, node)?)))
    }
}
