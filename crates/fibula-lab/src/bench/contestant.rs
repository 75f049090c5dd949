//! The engines that compete, and the results of building them.

use core::error::Error;
use std::time::{Duration, Instant};

use fibula::fib::registry::{Engine, Role};
use fibula::memory::Limits;
use fibula::net::{Key, Routes};
use fibula::simd::{Isa, Present};

use super::native::Structure;
use super::peers;

/// An engine that is measured: a registry entry or a rival.
pub struct Contestant<K: Key> {
    /// The name in the rows.
    pub name: String,
    /// Whether it is a rival, and not part of Fibula.
    pub rival: bool,
    /// The instruction sets that it has kernels for on this machine, the most portable one first. It is built once
    /// for all of them.
    pub kernels: Vec<Kernel>,
    /// Its role in the registry; rivals count as published.
    pub role: Role,
    /// The most that it is measured with.
    pub bounds: Bounds,
    /// Builds it.
    pub build: Build<K>,
}

/// In how much of a plan a contestant is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// In all of it: our own, and those that our own are compared with.
    Full,
    /// In all but the larger key sets: the registry's other engines.
    Listed,
    /// In a few cells: oracles, and all other rivals.
    Few,
}

/// The most that a contestant is measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Keys. A slow engine is measured with this many of the first keys, so that the others need not wait for it.
    pub keys: usize,
    /// Threads. It takes no part in a cell with more.
    pub threads: usize,
}

impl Bounds {
    /// No limits.
    pub const NONE: Self = Self { keys: usize::MAX, threads: usize::MAX };
}

/// An instruction set that a contestant has a kernel for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name in the rows.
    pub isa: String,
    /// The set that our own lookups are called with. Rivals choose their own and ignore this.
    pub(super) present: Present,
}

impl Kernel {
    /// Returns the kernel of a registry entry.
    #[must_use]
    pub fn ours(present: Present) -> Self {
        Self { isa: present.isa().name().to_owned(), present }
    }

    /// Returns the kernel of a rival, by the name of the instruction set that it is written for.
    #[must_use]
    pub fn of_rival(isa: &str) -> Self {
        Self { isa: isa.to_owned(), present: Present::SCALAR }
    }

    /// Returns the smallest of our instruction sets that contains this one.
    #[must_use]
    pub fn within(&self) -> Isa {
        least_with(&self.isa)
    }
}

/// Returns the smallest of our instruction sets that contains the one of this name. An unknown name of the SSE family
/// is older than AVX2; any other unknown name may be anything.
pub(super) fn least_with(isa: &str) -> Isa {
    match isa.parse() {
        Ok(isa) => isa,
        Err(_) if isa.starts_with("sse") => Isa::Avx2,
        Err(_) => Isa::ALL[Isa::ALL.len() - 1],
    }
}

/// Builds a contestant; the error says why it cannot.
pub type Build<K> = Box<dyn Fn(&dyn Routes<K>) -> Result<Structure<K>, Box<dyn Error>>>;

impl<K: Key> Contestant<K> {
    /// Returns the contestant of a registry entry, which is built within `limits`.
    #[must_use]
    pub fn new(engine: Engine<K>, limits: Limits) -> Self {
        Self {
            name: engine.name.to_owned(),
            rival: false,
            kernels: engine.isas.iter().filter_map(|isa| isa.present().ok()).map(Kernel::ours).collect(),
            role: engine.role,
            bounds: Bounds::NONE,
            build: Box::new(move |routes| Ok(engine.build(routes, limits)?.into())),
        }
    }

    /// Returns the contestants of all registry entries for this family.
    #[must_use]
    pub fn all(limits: Limits) -> Vec<Self> {
        fibula_published::engines().into_iter().map(|engine| Self::new(engine, limits)).collect()
    }

    /// Returns in how much of a plan it is measured.
    pub(super) fn standing(&self) -> Standing {
        match self.role {
            Role::Oracle { .. } => Standing::Few,
            Role::Own if !self.rival => Standing::Full,
            _ if peers::is_peer(&self.name) => Standing::Full,
            _ if self.rival => Standing::Few,
            Role::Own | Role::Published | Role::Described => Standing::Listed,
        }
    }

    /// Returns the number of keys it can look up in reasonable time in a table of this size.
    pub(super) fn keys_limit(&self, routes: usize) -> usize {
        match self.role {
            Role::Oracle { routes_limit } if routes_limit < usize::MAX => {
                (WORK_MAX / routes.max(1)).max(KEYS_MIN)
            }
            _ => self.bounds.keys,
        }
    }
}

/// The most routes that an oracle without an index may visit in one pass over its keys: less than a tenth of a
/// second.
const WORK_MAX: usize = 1 << 25;

/// Fewest keys of a sample.
const KEYS_MIN: usize = 64;

/// An engine with the times that building it took.
pub(super) struct Built<K: Key> {
    pub(super) structure: Structure<K>,
    /// Of each build, the shortest first.
    pub(super) times: Vec<Duration>,
}

impl<K: Key> Built<K> {
    /// Returns the median time: of an even number, the slower of the two in the middle, never a flattering choice.
    pub(super) fn time(&self) -> Duration {
        self.times[self.times.len() / 2]
    }
}

/// Most builds of one engine, and the time they may take together: cheap builds are repeated, because a
/// single short time is mostly noise. The shortest ones, of microseconds, are repeated most.
const BUILDS_MAX: usize = 5;
const BUILDS_TIME: Duration = Duration::from_millis(300);
const SHORT_BUILDS_MAX: usize = 101;
const SHORT_BUILDS_TIME: Duration = Duration::from_millis(10);

/// Builds a contestant, several times if that is cheap. The error is text because it becomes part of a row.
pub(super) fn build<K: Key>(contestant: &Contestant<K>, routes: &dyn Routes<K>) -> Result<Built<K>, String> {
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        let structure = (contestant.build)(routes).map_err(|error| error.to_string())?;
        let elapsed = start.elapsed();
        times.push(match &structure {
            Structure::Native(native) => native.build_time().unwrap_or(elapsed),
            Structure::Fib(_) => elapsed,
        });
        let spent = begin.elapsed() + elapsed;
        let enough = times.len() >= BUILDS_MAX && spent > SHORT_BUILDS_TIME || spent > BUILDS_TIME;
        if enough || times.len() == SHORT_BUILDS_MAX {
            times.sort_unstable();
            return Ok(Built { structure, times });
        }
    }
}
