//! Grace periods: when every program that was running has ended.

use std::os::fd::{AsFd, OwnedFd};

use crate::error::BpfError;
use crate::sys::{self, ARRAY, ARRAY_OF_MAPS, MapForm};

/// How a follower waits until every program that was running has ended, so that nothing reads replaced words any more.
///
/// Both ways wait for the kernel's `synchronize_rcu`, which took 16 ms on Linux 6.18; programs that may not sleep run within RCU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Grace {
    /// `membarrier` where it works, otherwise a map of maps.
    #[default]
    Auto,
    /// The system call `membarrier` with `MEMBARRIER_CMD_GLOBAL`. It fails on machines with `nohz_full`, and waits for nothing on
    /// one processor.
    Membarrier,
    /// The update of a map of maps, after which the kernel waits for programs (Linux 4.20).
    MapOfMaps,
}

/// A way of waiting that works here.
#[derive(Debug)]
pub(crate) enum Waiting {
    Membarrier,
    MapOfMaps { outer: OwnedFd, inner: OwnedFd },
}

impl Waiting {
    /// Returns a way that works on this machine.
    pub(crate) fn of(grace: Grace) -> Result<Self, BpfError> {
        let membarrier = || -> Result<Self, BpfError> {
            if sys::processors() < 2 {
                return Err(BpfError::Kernel {
                    feature: "membarrier that waits on one processor",
                    since: "with a second processor, or option map-of-maps,",
                });
            }
            sys::membarrier().map_err(|error| {
                BpfError::system("membarrier (not with nohz_full; try map-of-maps)", error)
            })?;
            Ok(Self::Membarrier)
        };
        match grace {
            Grace::Membarrier => membarrier(),
            Grace::MapOfMaps => Self::map_of_maps(),
            Grace::Auto => membarrier().or_else(|_| Self::map_of_maps()),
        }
    }

    fn map_of_maps() -> Result<Self, BpfError> {
        let form = |kind| MapForm { kind, key_bytes: 4, value_bytes: 4, entries: 1, flags: 0, extra: 0 };
        let inner = sys::create_map(form(ARRAY), "fibula_inner", None)
            .map_err(|error| BpfError::of_map("make a map", error))?;
        let outer = sys::create_map(form(ARRAY_OF_MAPS), "fibula_grace", Some(inner.as_fd()))
            .map_err(|error| BpfError::of_map("make a map of maps", error))?;
        let waiting = Self::MapOfMaps { outer, inner };
        waiting.wait()?;
        Ok(waiting)
    }

    /// Waits until every program that was running has ended.
    pub(crate) fn wait(&self) -> Result<(), BpfError> {
        match self {
            Self::Membarrier => sys::membarrier().map_err(|error| BpfError::system("membarrier", error)),
            Self::MapOfMaps { outer, inner } => sys::update_inner(outer.as_fd(), 0, inner.as_fd())
                .map_err(|error| BpfError::of_map("update a map of maps", error)),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Membarrier => "membarrier",
            Self::MapOfMaps { .. } => "map-of-maps",
        }
    }
}
