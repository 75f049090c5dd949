//! Who is measured, and what came of building it.

use core::error::Error;
use std::time::{Duration, Instant};

use fibula::fib::registry::{Algorithm, Role};
use fibula::memory::Limits;
use fibula::net::{Key, Routes};
use fibula::simd::{Isa, Present};

use super::native::Structure;

/// Somebody to be measured: a line of the registry, or a rival.
pub struct Contestant<K: Key> {
    /// The name in the rows.
    pub name: String,
    /// Whether it is somebody else's.
    pub rival: bool,
    /// The instruction sets that it can look up with here, the most portable one first. It is built once for all.
    pub kernels: Vec<Kernel>,
    /// Whether it competes, is what others compete with, or judges.
    pub role: Role,
    /// How much it is asked.
    pub bounds: Bounds,
    /// How it is built.
    pub build: Build<K>,
}

/// How much a contestant is asked at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Keys: who is slow is asked the first of them, not to make everybody wait.
    pub keys: usize,
    /// Threads at once: it does not take part where there are more.
    pub threads: usize,
}

impl Bounds {
    /// As much as anybody.
    pub const NONE: Self = Self { keys: usize::MAX, threads: usize::MAX };
}

/// An instruction set that a contestant looks up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name in the rows.
    pub isa: String,
    /// What our lookups are asked with; rivals have one kernel each and ask nobody.
    pub(super) present: Present,
}

impl Kernel {
    /// Of a structure of ours.
    #[must_use]
    pub fn ours(present: Present) -> Self {
        Self { isa: present.isa().name().to_owned(), present }
    }

    /// Of a rival, by the name of the set that its lookups are written for.
    #[must_use]
    pub fn of_rival(isa: &str) -> Self {
        Self { isa: isa.to_owned(), present: Present::SCALAR }
    }

    /// The least of our sets that contains this one.
    #[must_use]
    pub fn within(&self) -> Isa {
        least_with(&self.isa)
    }
}

/// The least of our sets that contains the one of this name. What is known by no name of ours is older than AVX2 where it
/// is of the SSE family, and may be anything else.
pub(super) fn least_with(isa: &str) -> Isa {
    match isa.parse() {
        Ok(isa) => isa,
        Err(_) if isa.starts_with("sse") => Isa::Avx2,
        Err(_) => Isa::ALL[Isa::ALL.len() - 1],
    }
}

/// Builds a contestant, or says why not.
pub type Build<K> = Box<dyn Fn(&dyn Routes<K>) -> Result<Structure<K>, Box<dyn Error>>>;

impl<K: Key> Contestant<K> {
    /// A line of the registry. `limits` are for its build.
    #[must_use]
    pub fn new(algorithm: Algorithm<K>, limits: Limits) -> Self {
        Self {
            name: algorithm.name.to_owned(),
            rival: false,
            kernels: algorithm.isas.iter().filter_map(|isa| isa.present().ok()).map(Kernel::ours).collect(),
            role: algorithm.role,
            bounds: Bounds::NONE,
            build: Box::new(move |routes| Ok(algorithm.build(routes, limits)?.into())),
        }
    }

    /// All lines of the registry for this family.
    #[must_use]
    pub fn all(limits: Limits) -> Vec<Self> {
        fibula::fib::algorithms().into_iter().map(|algorithm| Self::new(algorithm, limits)).collect()
    }

    /// How many keys it can be asked in reasonable time over a table of this size.
    pub(super) fn keys_limit(&self, routes: usize) -> usize {
        match self.role {
            Role::Oracle { routes_limit } if routes_limit < usize::MAX => {
                (WORK_MAX / routes.max(1)).max(KEYS_MIN)
            }
            _ => self.bounds.keys,
        }
    }
}

/// Routes that an oracle which walks all of them may touch in one pass over its keys: under a tenth of a second.
const WORK_MAX: usize = 1 << 25;

/// Fewest keys of a sample.
const KEYS_MIN: usize = 64;

/// A structure that was built, with what that took.
pub(super) struct Built<K: Key> {
    pub(super) structure: Structure<K>,
    /// Median.
    pub(super) time: Duration,
    pub(super) builds: usize,
}

/// Most builds of one structure, and the time they may take together: cheap builds are repeated, because a
/// single short time is mostly noise.
const BUILDS_MAX: usize = 5;
const BUILDS_TIME: Duration = Duration::from_millis(300);

/// Builds a contestant, several times where that is cheap. The error is text because it becomes part of a row.
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
        if times.len() == BUILDS_MAX || begin.elapsed() + times[times.len() - 1] > BUILDS_TIME {
            times.sort_unstable();
            // Of an even number the slower of the middle two: never a flattering choice.
            return Ok(Built { structure, time: times[times.len() / 2], builds: times.len() });
        }
    }
}
