//! `fibula.Follower`.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fibula::file::Follower as FileFollower;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::{Failure, Outcome, guarded};
use crate::table::{Table, of_follower};

/// Follows a table file that is replaced by renaming: ``refresh`` looks whether there is a new one, and ``table`` is the newest.
///
/// Call ``refresh`` now and then. Take ``table`` once for each call over many rows, so that all of them are answered from one file. A `Table` that was opened with ``follow=True`` does both by itself.
///
/// >>> import tempfile, pathlib
/// >>> path = pathlib.Path(tempfile.mkdtemp()) / "table"
/// >>> Table.build(["192.0.2.0/24"], ["old"]).save(path)
/// >>> follower = Follower(path)
/// >>> Table.build(["192.0.2.0/24"], ["new"]).save(path)
/// >>> follower.refresh(), follower.table.lookup("192.0.2.1")
/// (True, 'new')
#[pyclass(frozen, weakref, module = "fibula")]
pub struct Follower {
    path: PathBuf,
    mapped: bool,
    verify: bool,
    followed: Mutex<Followed>,
}

struct Followed {
    follower: FileFollower,
    table: Py<Table>,
    /// The stamp of the table's file. The follower's own may be that of a later file, which was refused.
    stamp: String,
}

impl Follower {
    fn table_of(&self, py: Python<'_>, follower: &FileFollower) -> Outcome<Py<Table>> {
        let loaded = py.detach(|| guarded(|| of_follower(follower, self.verify)))??;
        Ok(Py::new(py, Table::of_path(loaded, self.path.clone(), self.mapped, self.verify))?)
    }
}

#[pymethods]
impl Follower {
    #[new]
    #[pyo3(signature = (path, *, mapped=false, verify=true))]
    fn new(py: Python<'_>, path: PathBuf, mapped: bool, verify: bool) -> PyResult<Self> {
        let (follower, loaded) = py.detach(|| {
            guarded(|| -> Outcome<_> {
                let follower = if mapped { FileFollower::map(&path)? } else { FileFollower::open(&path)? };
                let loaded = of_follower(&follower, verify)?;
                Ok((follower, loaded))
            })
        })??;
        let table = Py::new(py, Table::of_path(loaded, path.clone(), mapped, verify))?;
        let stamp = follower.stamp().to_string();
        Ok(Self { path, mapped, verify, followed: Mutex::new(Followed { follower, table, stamp }) })
    }

    /// Take the file that replaced the one before. Returns whether there was one.
    ///
    /// An error leaves the table that was there: a file that is refused, which is not tried again until it is replaced, or one that cannot be
    /// opened, which is an error at every call while that lasts.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let mut locked = self.followed.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let followed: &mut Followed = &mut locked;
        let follower = &mut followed.follower;
        if !py.detach(|| guarded(|| follower.poll()))?.map_err(Failure::from)? {
            return Ok(false);
        }
        let table = self.table_of(py, &followed.follower)?;
        let before = std::mem::replace(&mut followed.table, table);
        followed.stamp = followed.follower.stamp().to_string();
        drop(locked);
        drop(before);
        Ok(true)
    }

    /// The newest table that was taken: a `Table` that does not change.
    #[getter]
    fn table(&self, py: Python<'_>) -> Py<Table> {
        let followed = self.followed.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        followed.table.clone_ref(py)
    }

    /// The stamp of the table's file: equal for the same file in all processes.
    #[getter]
    fn stamp(&self, py: Python<'_>) -> String {
        self.followed.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).stamp.clone()
    }

    /// The file that is followed.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    fn __repr__(&self) -> String {
        format!("<fibula.Follower of {}>", self.path.display())
    }

    /// As the path: another process follows the same file, and begins with the newest.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let path = std::path::absolute(&self.path).map_err(Failure::from)?;
        let arguments = (path.as_os_str(), self.mapped, self.verify).into_pyobject(py)?;
        Ok((py.import("fibula._pickle")?.getattr("follow")?, arguments.into_any()))
    }
}
