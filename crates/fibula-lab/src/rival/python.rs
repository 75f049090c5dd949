//! Rivals in Python: pytricia, py-radix, pyasn, and two structures of NumPy arrays. The program is
//! `rivals/python/rivals.py`.

use std::process::Command;
use std::sync::Arc;

use fibula::net::{Family, Key};

use super::external::{External, LIMIT};
use super::{Source, Tools};

const PROGRAM: &str = include_str!("../../rivals/python/rivals.py");

/// A Python package.
struct Package {
    name: &'static str,
    /// The name of its module.
    module: &'static str,
    rivals: &'static [Rival],
}

struct Rival {
    name: &'static str,
    ipv6: bool,
    isa: &'static str,
    keys: usize,
}

/// Less than a second a pass at some hundred thousand lookups a second.
const INTERPRETED: usize = 1 << 16;

/// One key a call takes a microsecond or more; large batches are much faster a key.
const ARRAYS: usize = 1 << 18;

const fn interpreted(name: &'static str) -> Rival {
    Rival { name, ipv6: true, isa: "scalar", keys: INTERPRETED }
}

/// NumPy chooses its loops for the machine.
const fn arrays(name: &'static str, ipv6: bool) -> Rival {
    Rival { name, ipv6, isa: "dispatched", keys: ARRAYS }
}

const PACKAGES: &[Package] = &[
    Package { name: "pytricia", module: "pytricia", rivals: &[interpreted("pytricia")] },
    Package { name: "py-radix", module: "radix", rivals: &[interpreted("py-radix")] },
    Package { name: "pyasn", module: "pyasn", rivals: &[interpreted("pyasn")] },
    Package {
        name: "NumPy",
        module: "numpy",
        rivals: &[arrays("numpy-searchsorted", true), arrays("numpy-dir-24-8", false)],
    },
];

pub(super) fn sources<K: Key>(tools: &Tools) -> Vec<Source<K>> {
    let modules: Vec<_> = PACKAGES.iter().map(|package| package.module).collect();
    let found = tools.modules(&modules);
    let source = |package: &Package| {
        let rivals: Vec<_> =
            package.rivals.iter().filter(|rival| rival.ipv6 || K::FAMILY == Family::Ipv4).collect();
        let python = tools.python.display();
        let get = match &found {
            Ok(_) => format!("run '{python} -m pip install {}'", package.name.to_lowercase()),
            Err(error) => format!(
                "install Python ({error}; FIBULA_PYTHON names another) and 'pip install {}'",
                package.name.to_lowercase()
            ),
        };
        let present = found.as_ref().is_ok_and(|found| found.iter().any(|module| module == package.module));
        Source {
            name: package.name,
            rivals: rivals.iter().map(|rival| rival.name).collect(),
            get,
            contestants: present
                .then(|| rivals.iter().map(|rival| external(tools, rival).contestant()).collect()),
        }
    };
    PACKAGES.iter().map(source).collect()
}

fn external(tools: &Tools, rival: &Rival) -> External {
    let python = tools.python.clone();
    let start = move || {
        let mut command = Command::new(&python);
        command.args(["-c", PROGRAM]);
        // One thread is timed, but the libraries that NumPy uses start one for each core.
        command.env("OMP_NUM_THREADS", "1").env("OPENBLAS_NUM_THREADS", "1");
        Ok(command)
    };
    External { name: rival.name, isa: rival.isa, keys: rival.keys, limit: LIMIT, start: Arc::new(start) }
}
