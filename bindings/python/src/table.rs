//! `fibula.Table`.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fibula::file::{Follower, TableFile};
use fibula::memory::Limits;
use fibula::net::IpPrefix;
use fibula_column::{ColumnError, ValueColumn, texts_of};
use pyo3::exceptions::{PyKeyError, PyRuntimeWarning};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, RwLockExt};
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::buffer::bytes_of;
use crate::build::{self, BuildRules};
use crate::error::{Failure, Outcome, guarded, type_error, value_error};
use crate::input::{Input, LookUp, Wishes};
use crate::loaded::Loaded;
use crate::scalar::network;

/// A table of routes that does not change: longest-prefix match for IPv4 and IPv6.
///
/// >>> table = Table.build(["192.0.2.0/24", "2001:db8::/32"], {"asn": [64500, 64501]})
/// >>> table.lookup("192.0.2.1")
/// 64500
/// >>> table.lookup_many(["192.0.2.1", "2001:db8::1", "203.0.113.1"])
/// [64500, 64501, None]
///
/// A table is safe in any number of threads, which look up at the same time, and after a fork.
#[pyclass(frozen, weakref, module = "fibula")]
pub struct Table {
    /// `None` once it was closed.
    current: RwLock<Option<Arc<Loaded>>>,
    follower: Option<Mutex<Follower>>,
    path: Option<PathBuf>,
    mapped: bool,
    verify: bool,
    last_invalid: AtomicUsize,
}

impl Table {
    pub fn of(loaded: Loaded) -> Self {
        Self {
            current: RwLock::new(Some(Arc::new(loaded))),
            follower: None,
            path: None,
            mapped: false,
            verify: true,
            last_invalid: AtomicUsize::new(0),
        }
    }

    /// Makes a table of the file at a path, which was loaded.
    pub fn of_path(loaded: Loaded, path: PathBuf, mapped: bool, verify: bool) -> Self {
        Self { path: Some(path), mapped, verify, ..Self::of(loaded) }
    }

    fn opened(path: PathBuf, mapped: bool, verify: bool, follow: bool) -> Outcome<Self> {
        let follower = if mapped { Follower::map(&path)? } else { Follower::open(&path)? };
        let loaded = of_follower(&follower, verify)?;
        let follower = follow.then(|| Mutex::new(follower));
        Ok(Self { follower, ..Self::of_path(loaded, path, mapped, verify) })
    }

    /// Calls `with` with the table as it is now.
    #[inline]
    fn with<T>(&self, py: Python<'_>, with: impl FnOnce(&Loaded) -> PyResult<T>) -> PyResult<T> {
        let current = match self.current.try_read() {
            Ok(current) => current,
            Err(_) => self.current.read_py_attached(py).unwrap_or_else(PoisonError::into_inner),
        };
        with(current.as_ref().ok_or_else(closed)?)
    }

    /// Returns the table as it is now, for longer.
    fn held(&self, py: Python<'_>) -> PyResult<Arc<Loaded>> {
        let current = self.current.read_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        current.clone().ok_or_else(closed)
    }

    /// Takes a file that replaced the one before, if there is one.
    fn poll(&self, py: Python<'_>) -> Outcome<bool> {
        let Some(follower) = &self.follower else { return Ok(false) };
        let mut locked = follower.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let follower: &mut Follower = &mut locked;
        if !py.detach(|| guarded(|| follower.poll()))?? {
            return Ok(false);
        }
        let loaded = py.detach(|| of_follower(follower, self.verify))?;
        let mut current = self.current.write_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        // A table that was closed meanwhile stays so.
        let before = match &mut *current {
            Some(current) => Some(std::mem::replace(current, Arc::new(loaded))),
            None => None,
        };
        drop(current);
        drop(before);
        Ok(true)
    }

    /// Returns the newest table, for a call over many rows. A new file that is refused is a warning: the table before answers.
    fn newest(&self, py: Python<'_>) -> PyResult<Arc<Loaded>> {
        if let Err(Failure(error)) = self.poll(py) {
            let message = format!("the table before stays in use: {}", error.value(py));
            let message = std::ffi::CString::new(message).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 2)?;
        }
        self.held(py)
    }
}

fn closed() -> PyErr {
    value_error("the table is closed")
}

/// Loads the table of a follower.
pub fn of_follower(follower: &Follower, verify: bool) -> Outcome<Loaded> {
    let file = Arc::clone(follower.table());
    // A copy was verified as it was read.
    if verify && file.is_mapped() {
        file.verify()?;
    }
    Ok(Loaded::of_file(file, Some(follower.stamp().to_string())))
}

#[pymethods]
impl Table {
    /// Open a table file, or the bytes of one.
    ///
    /// A copy is read and verified. With ``mapped``, the file is used where it lies: processes share its pages, and nobody may write into it;
    /// it may be replaced by renaming. ``verify=False`` leaves out the verification of a mapped file, which reads it whole. With ``follow``,
    /// calls over many rows, and ``refresh``, first look whether the file was replaced, and answer from the new one.
    #[staticmethod]
    #[pyo3(signature = (source, *, mapped=false, verify=true, follow=false))]
    fn open(source: &Bound<'_, PyAny>, mapped: bool, verify: bool, follow: bool) -> PyResult<Self> {
        let py = source.py();
        if let Ok(path) = source.extract::<PathBuf>() {
            return Ok(py.detach(|| guarded(|| Self::opened(path, mapped, verify, follow)))??);
        }
        let Some(bytes) = bytes_of(source)? else {
            let name = source.get_type().qualname()?;
            return Err(type_error(format!("'{name}' is neither a path nor the bytes of a table")));
        };
        if mapped || follow {
            return Err(value_error("bytes are neither mapped nor followed: name a path"));
        }
        let file = py.detach(|| TableFile::copy_of(Cursor::new(bytes), Limits::default()));
        Ok(Self::of(Loaded::of_file(Arc::new(file.map_err(Failure::from)?), None)))
    }

    /// Build a table from prefixes and their values.
    ///
    /// ``prefixes`` are texts, networks of ``ipaddress``, or a pair of columns: addresses and lengths. ``values`` are a column, or columns by
    /// name: lists, arrays of NumPy, Arrow or pandas. Rows with equal values share an id. Without values, each route has an id of its own,
    /// its row counted from 1.
    ///
    /// >>> Table.build(["192.0.2.0/24"], ["ours"]).lookup("192.0.2.7")
    /// 'ours'
    #[staticmethod]
    #[pyo3(signature = (prefixes, values=None, *, duplicates="raise", host_bits="raise", engine=None))]
    fn build(
        prefixes: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        duplicates: &str,
        host_bits: &str,
        engine: Option<&str>,
    ) -> PyResult<Self> {
        let rules = BuildRules::new(duplicates, host_bits)?;
        Ok(Self::of(build::of_columns(prefixes, values, &rules, engine)?))
    }

    /// Read a table from files of routes, whatever their form: MRT, CSV, JSON, MaxMind databases, what routers print, compressed or not.
    ///
    /// ``value`` names the columns of values, with types if they shall not be guessed: ``["origin-as", "country:text"]``; the next hops
    /// otherwise. ``format`` names the form of a table that is not recognised.
    #[staticmethod]
    #[pyo3(signature = (*paths, format=None, value=None, strict=false, host_bits="raise", engine=None))]
    fn read(
        paths: &Bound<'_, PyTuple>,
        format: Option<&str>,
        value: Option<&Bound<'_, PyAny>>,
        strict: bool,
        host_bits: &str,
        engine: Option<&str>,
    ) -> PyResult<Self> {
        let rules = BuildRules::new("last", host_bits)?;
        Ok(Self::of(build::of_files(paths, format, value, strict, &rules, engine)?))
    }

    /// Write the table to a file, which replaces one of this name when it is whole.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let loaded = self.held(py)?;
        Ok(py.detach(|| guarded(|| loaded.save(&path)))??)
    }

    /// Return the table as the bytes of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let loaded = self.held(py)?;
        Ok(PyBytes::new(py, &py.detach(|| guarded(|| loaded.bytes()))??))
    }

    /// Return the value of the longest route that contains an address; None if there is none.
    ///
    /// Without ``column``, a table with one column answers its value, one with several a dict of all, one with none the id.
    #[pyo3(signature = (address, column=None))]
    fn lookup<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        column: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let address = crate::scalar::address(address)?;
        self.with(py, |loaded| loaded.value(py, loaded.lookup(address)?, column))
    }

    /// Return the id of the longest route that contains an address; 0 if there is none.
    fn lookup_id(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<u32> {
        let address = crate::scalar::address(address)?;
        self.with(py, |loaded| loaded.lookup(address))
    }

    /// Return the longest prefix that contains an address, and its value; None if there is none.
    ///
    /// >>> Table.build(["192.0.2.0/24"], ["ours"]).lookup_prefix("192.0.2.7")
    /// (IPv4Network('192.0.2.0/24'), 'ours')
    #[pyo3(signature = (address, column=None))]
    fn lookup_prefix<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        column: Option<&str>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let address = IpPrefix::from(crate::scalar::address(address)?);
        self.with(py, |loaded| match guarded(|| loaded.longest(address))?? {
            Some((prefix, id)) => Ok(Some((network(py, prefix)?, loaded.value(py, id.id(), column)?))),
            None => Ok(None),
        })
    }

    /// Return the ids of a column of addresses; 0, or null in Arrow, where no route matches.
    ///
    /// Addresses are an array of NumPy (``uint32``, ``uint64``, ``int32``, ``int64``, ``uint8`` in rows of 4 or 16, ``V4``, ``V16``,
    /// ``U``), of Arrow, Polars or pandas, another buffer, or any iterable of texts, integers, bytes and objects of ``ipaddress``. The
    /// answer has the kind of the question. ``out`` is an array of ``uint32`` for the ids. ``invalid="raise"`` refuses rows that are no
    /// addresses, which are null otherwise and counted in ``last_invalid``. Nobody may write to the addresses meanwhile.
    ///
    /// >>> Table.build(["192.0.2.0/24"], ["ours"]).lookup_ids(["192.0.2.7", "::1"])
    /// array('I', [1, 0])
    #[pyo3(signature = (addresses, *, out=None, threads=1, invalid="null", v4_mapped="ipv6", text=false))]
    #[allow(clippy::too_many_arguments, reason = "arguments by name")]
    fn lookup_ids<'py>(
        &self,
        py: Python<'py>,
        addresses: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: usize,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(threads, invalid, v4_mapped, text)?;
        let input = Input::of(addresses, &wishes)?;
        let loaded = self.newest(py)?;
        let view = loaded.view();
        let (ids, counts) =
            input.ids(py, out, &wishes, &|_, column, ids, options| view.lookup(column, ids, options))?;
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(ids)
    }

    /// Return the values of a column of addresses; null where no route matches.
    ///
    /// Takes what ``lookup_ids`` takes. Of lists and buffers the answer is a list; of NumPy's arrays an array, masked where numbers have no
    /// value; of Arrow's an array of the column's type. Text is then a dictionary, or not with ``dictionary=False``.
    #[pyo3(signature = (addresses, column=None, *, threads=1, invalid="null", v4_mapped="ipv6", text=false, dictionary=None))]
    #[allow(clippy::too_many_arguments, reason = "arguments by name")]
    fn lookup_many<'py>(
        &self,
        py: Python<'py>,
        addresses: &Bound<'py, PyAny>,
        column: Option<&str>,
        threads: usize,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
        dictionary: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(threads, invalid, v4_mapped, text)?;
        let input = Input::of(addresses, &wishes)?;
        let loaded = self.newest(py)?;
        let view = loaded.view();
        let with: &LookUp<'_> = &|_, column, ids, options| view.lookup(column, ids, options);
        let (answer, counts) = match loaded.values(column)? {
            Some(values) => input.values(py, &values, dictionary, &wishes, with)?,
            None => input.ids(py, None, &wishes, with)?,
        };
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(answer)
    }

    /// Return the values of a column of addresses as text, whatever type they have; null where no route matches.
    ///
    /// Takes what ``lookup_ids`` takes. Without ``column``, the values are those of the first column, or the ids of a table that has none. Of
    /// Arrow's arrays the answer is one of ``large_string``, of others a list.
    ///
    /// >>> Table.build(["192.0.2.0/24"], {"asn": [64500]}).lookup_texts(["192.0.2.7", "::1"])
    /// ['64500', None]
    #[pyo3(signature = (addresses, column=None, *, threads=1, invalid="null", v4_mapped="ipv6", text=false))]
    #[allow(clippy::too_many_arguments, reason = "arguments by name")]
    fn lookup_texts<'py>(
        &self,
        py: Python<'py>,
        addresses: &Bound<'py, PyAny>,
        column: Option<&str>,
        threads: usize,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(threads, invalid, v4_mapped, text)?;
        let input = Input::of(addresses, &wishes)?;
        let loaded = self.newest(py)?;
        let view = loaded.view();
        let with: &LookUp<'_> = &|_, column, ids, options| view.lookup(column, ids, options);
        let (answer, counts) = match loaded.values_or_first(column)? {
            Some(values) => {
                let column = ValueColumn::from(values.column());
                input.texts(py, &wishes, with, &|ids| column.gather_text(ids))?
            }
            None => {
                let shown = |ids: &[u32]| texts_of(ids.iter().map(|&id| (id != 0).then_some(id)));
                input.texts(py, &wishes, with, &shown)?
            }
        };
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(answer)
    }

    /// Return the longest prefixes that contain a column of addresses, as text; null where no route matches.
    ///
    /// Takes what ``lookup_ids`` takes. Of Arrow's arrays the answer is one of ``large_string``, of others a list. The table knows the lengths of
    /// its matches (``fibula compile --with-length``), or has its routes, among which each row is then searched for.
    ///
    /// >>> Table.build(["192.0.2.0/24"]).lookup_prefixes(["192.0.2.7", "::1"])
    /// ['192.0.2.0/24', None]
    #[pyo3(signature = (addresses, *, invalid="null", v4_mapped="ipv6", text=false))]
    fn lookup_prefixes<'py>(
        &self,
        py: Python<'py>,
        addresses: &Bound<'py, PyAny>,
        invalid: &str,
        v4_mapped: &str,
        text: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wishes = Wishes::new(1, invalid, v4_mapped, text)?;
        let input = Input::of(addresses, &wishes)?;
        let loaded = self.newest(py)?;
        // The "ids" of a chunk are the numbers of its rows among all prefixes that were found, from 1 on.
        let found = Mutex::new(Vec::new());
        let with: &LookUp<'_> = &|_, column, ids, options| {
            let (prefixes, counts) = loaded.prefixes().lookup(column, options)?;
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            for (id, prefix) in ids.iter_mut().zip(prefixes) {
                *id = 0;
                if prefix.is_some() {
                    found.push(prefix);
                    *id = u32::try_from(found.len())
                        .map_err(|_| ColumnError::Array("more rows than there are ids"))?;
                }
            }
            Ok(counts)
        };
        let shown = |ids: &[u32]| {
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            texts_of(ids.iter().map(|&id| found[(id as usize).checked_sub(1)?]))
        };
        let (answer, counts) = input.texts(py, &wishes, with, &shown)?;
        self.last_invalid.store(counts.invalid, Ordering::Relaxed);
        Ok(answer)
    }

    /// Return the routes that contain an address or a prefix, the shortest first, with their values.
    #[pyo3(signature = (prefix, column=None))]
    fn covers<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
        column: Option<&str>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>> {
        let prefix = crate::scalar::prefix(prefix)?;
        let loaded = self.held(py)?;
        let covers = guarded(|| loaded.covers(prefix))??;
        covers
            .into_iter()
            .map(|(prefix, id)| Ok((network(py, prefix)?, loaded.value(py, id.id(), column)?)))
            .collect()
    }

    /// Return the value of exactly this prefix, or ``default``.
    #[pyo3(signature = (prefix, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let prefix = crate::scalar::prefix(prefix)?;
        self.with(py, |loaded| match guarded(|| loaded.exact(prefix))?? {
            Some(id) => loaded.value(py, id.id(), None).map(Some),
            None => Ok(default),
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, prefix: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let wanted = crate::scalar::prefix(prefix)?;
        self.with(py, |loaded| match guarded(|| loaded.exact(wanted))?? {
            Some(id) => loaded.value(py, id.id(), None),
            None => Err(PyKeyError::new_err(prefix.clone().unbind())),
        })
    }

    fn __contains__(&self, py: Python<'_>, prefix: &Bound<'_, PyAny>) -> PyResult<bool> {
        let prefix = crate::scalar::prefix(prefix)?;
        self.with(py, |loaded| Ok(guarded(|| loaded.exact(prefix))??.is_some()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |loaded| Ok(loaded.count()?))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<RouteIterator> {
        Ok(RouteIterator::new(self.held(py)?, None))
    }

    /// Return an iterator over all prefixes and their values, in order.
    #[pyo3(signature = (column=None))]
    fn items(&self, py: Python<'_>, column: Option<String>) -> PyResult<RouteIterator> {
        let loaded = self.held(py)?;
        if column.is_some() {
            loaded.values(column.as_deref())?;
        }
        Ok(RouteIterator::new(loaded, Some(column)))
    }

    /// The columns of values: a dict of their names and types.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let loaded = self.held(py)?;
        let columns = PyDict::new(py);
        for column in loaded.columns() {
            columns.set_item(column.name(), column.kind().name())?;
        }
        Ok(columns)
    }

    /// The engines of IPv4 and of IPv6; None for a family without routes.
    #[getter]
    fn engines(&self, py: Python<'_>) -> PyResult<(Option<&'static str>, Option<&'static str>)> {
        let [v4, v6] = self.held(py)?.engines();
        Ok((v4, v6))
    }

    /// The bytes of memory that the table takes, those of a mapped file included.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.held(py)?.held_bytes())
    }

    /// Which file it is: equal for the same file in all processes. None for a table that is no file.
    #[getter]
    fn stamp(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.held(py)?.stamp().map(str::to_owned))
    }

    /// Whether the file is used where it lies.
    #[getter]
    fn mapped(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.held(py)?.is_mapped())
    }

    /// Whether the table was closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        self.current.read_py_attached(py).unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Rows without an address in the last call over many rows, of any thread.
    #[getter]
    fn last_invalid(&self) -> usize {
        self.last_invalid.load(Ordering::Relaxed)
    }

    /// Take the file that replaced the one before, if the table follows it. Returns whether there was one.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.held(py)?;
        Ok(self.poll(py)?)
    }

    /// Free the table, or unmap it, when the last call that uses it has ended. Further calls are errors.
    fn close(&self, py: Python<'_>) {
        let before = self.current.write_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        drop(before);
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().held(slf.py())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Ok(loaded) = self.held(py) else { return Ok("<fibula.Table, closed>".to_owned()) };
        let columns: Vec<_> = loaded.columns().iter().map(|column| column.name().to_owned()).collect();
        let count = loaded.count().map_or_else(|_| "routes".to_owned(), |count| format!("{count} routes"));
        Ok(format!("<fibula.Table of {count}; columns: {}>", columns.join(", ")))
    }

    /// As the path and the stamp of its file, or as its bytes.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let loaded = self.held(py)?;
        let module = py.import("fibula._pickle")?;
        if let (Some(path), Some(stamp)) = (&self.path, loaded.stamp()) {
            let path = std::path::absolute(path).map_err(Failure::from)?;
            let follow = self.follower.is_some();
            let arguments = (path.as_os_str(), self.mapped, self.verify, follow, stamp).into_pyobject(py)?;
            return Ok((module.getattr("reopen")?, arguments.into_any()));
        }
        let bytes = PyBytes::new(py, &py.detach(|| guarded(|| loaded.bytes()))??);
        Ok((module.getattr("of_bytes")?, (bytes,).into_pyobject(py)?.into_any()))
    }
}

/// Routes that are fetched from a table together.
const FETCHED: usize = 256;

/// An iterator over the routes of a table, in order: IPv4 first, then IPv6.
#[pyclass(frozen, module = "fibula")]
pub struct RouteIterator {
    loaded: Arc<Loaded>,
    /// The column of the values, if these are wanted too.
    column: Option<Option<String>>,
    state: Mutex<RouteState>,
}

struct RouteState {
    /// The next ones, the first at the end.
    fetched: Vec<(IpPrefix, fibula::net::NextHop)>,
    last: Option<IpPrefix>,
}

impl RouteIterator {
    fn new(loaded: Arc<Loaded>, column: Option<Option<String>>) -> Self {
        Self { loaded, column, state: Mutex::new(RouteState { fetched: Vec::new(), last: None }) }
    }
}

#[pymethods]
impl RouteIterator {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = {
            let mut state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            if state.fetched.is_empty() {
                let mut fetched = guarded(|| self.loaded.after(state.last, FETCHED))??;
                state.last = fetched.last().map(|(prefix, _)| *prefix).or(state.last);
                fetched.reverse();
                state.fetched = fetched;
            }
            state.fetched.pop()
        };
        let Some((prefix, id)) = next else { return Ok(None) };
        let prefix = network(py, prefix)?;
        Ok(Some(match &self.column {
            None => prefix,
            Some(column) => {
                let value = self.loaded.value(py, id.id(), column.as_deref())?;
                (prefix, value).into_pyobject(py)?.into_any()
            }
        }))
    }
}
