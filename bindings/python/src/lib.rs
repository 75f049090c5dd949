//! The Python package. `python/fibula/_fibula.pyi` has the types of what is here; docstrings have the rest.
//!
//! ```text
//! scalar.rs        addresses, prefixes and values, one at a time
//! buffer.rs        arrays of NumPy and other buffers
//! capsule.rs       arrays and streams of Arrow
//! input.rs         columns of all these, looked up
//! arrow_column.rs  answers as arrays of Arrow
//! loaded.rs        a table's engines, routes and values
//! build.rs         tables from columns and files
//! table.rs         Table
//! follower.rs      Follower
//! live.rs          LiveTable, Vrfs
//! map.rs, sets.rs  PrefixMap, PrefixSet, AddressSet
//! rov.rs           Vrps, rov
//! drop_ins.rs      the base classes of pytricia.py, radix.py and pyasn.py
//! maxmind.rs       what maxminddb.py has of Rust
//! error.rs         exceptions
//! ```

#![allow(missing_docs, unreachable_pub, reason = "docstrings are for Python; the library has no other users")]

mod arrow_column;
mod buffer;
mod build;
mod capsule;
mod drop_ins;
mod error;
mod follower;
mod input;
mod live;
mod loaded;
mod map;
mod maxmind;
mod rov;
mod scalar;
mod sets;
mod table;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _fibula {
    #[pymodule_export]
    use crate::arrow_column::{ArrowChunks, ArrowColumn};
    #[pymodule_export]
    use crate::drop_ins::{OriginsBase, RadixBase, RadixNode, TriciaBase};
    #[pymodule_export]
    use crate::error::BugError;
    #[pymodule_export]
    use crate::follower::Follower;
    #[pymodule_export]
    use crate::live::{LiveTable, Vrfs};
    #[pymodule_export]
    use crate::map::PrefixMapBase;
    #[pymodule_export]
    use crate::maxmind::{InvalidDatabaseError, MaxMindBase, MaxMindIterator};
    #[pymodule_export]
    use crate::rov::{Vrps, rov};
    #[pymodule_export]
    use crate::sets::{AddressSet, PrefixSetBase};
    #[pymodule_export]
    use crate::table::{RouteIterator, Table};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
