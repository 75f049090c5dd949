//! Rivals in Python: pytricia, py-radix, pyasn, maxminddb, and two engines of NumPy arrays; and the LPM_TRIE of the Linux kernel,
//! which a program of a few lines of BPF looks up. The program is `rivals/python/rivals.py`.

use std::process::Command;
use std::sync::Arc;

use fibula::net::{Family, Key};

use super::external::{External, LIMIT};
use super::{Source, Tools};

const PROGRAM: &str = include_str!("../../rivals/python/rivals.py");

/// A Python package.
struct Package {
    name: &'static str,
    /// The package that pip installs.
    install: &'static str,
    /// The names of the modules that it needs.
    modules: &'static [&'static str],
    /// Whether it needs root on Linux.
    root: bool,
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

const fn package(name: &'static str, modules: &'static [&'static str], rivals: &'static [Rival]) -> Package {
    Package { name, install: name, modules, root: false, rivals }
}

/// Returns whether the program may load BPF, as far as can be known without trying.
fn is_root() -> bool {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

const PACKAGES: &[Package] = &[
    package("pytricia", &["pytricia"], &[interpreted("pytricia")]),
    package("py-radix", &["radix"], &[interpreted("py-radix")]),
    package("pyasn", &["pyasn"], &[interpreted("pyasn")]),
    Package {
        install: "maxminddb mmdb_writer",
        ..package("maxminddb", &["maxminddb", "mmdb_writer"], &[interpreted("maxminddb")])
    },
    Package {
        install: "numpy",
        ..package("NumPy", &["numpy"], &[arrays("numpy-searchsorted", true), arrays("numpy-dir-24-8", false)])
    },
    // It does not answer in Python, and needs no module.
    Package {
        root: true,
        ..package(
            "LPM_TRIE",
            &[],
            &[Rival { name: "xdp-lpm-trie", ipv6: true, isa: "scalar", keys: usize::MAX }],
        )
    },
];

pub(super) fn sources<K: Key>(tools: &Tools) -> Vec<Source<K>> {
    let modules: Vec<_> = PACKAGES.iter().flat_map(|package| package.modules).copied().collect();
    let found = tools.modules(&modules);
    let source = |package: &Package| {
        let rivals: Vec<_> =
            package.rivals.iter().filter(|rival| rival.ipv6 || K::FAMILY == Family::Ipv4).collect();
        let python = tools.python.display();
        let allowed = !package.root || is_root();
        let get = match &found {
            Ok(_) if !allowed => "run as root, on Linux".to_owned(),
            Ok(_) => format!("run '{python} -m pip install {}'", package.install),
            Err(error) => format!(
                "install Python ({error}; FIBULA_PYTHON names another) and 'pip install {}'",
                package.install
            ),
        };
        let present = allowed
            && found.as_ref().is_ok_and(|found| {
                package.modules.iter().all(|name| found.iter().any(|module| module == name))
            });
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
