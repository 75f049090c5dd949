//! The containers of routes whose next hops can be numbered: a table, or many in VRFs.

use crate::live::{Hold, Readable, Table, TableError, readable};
use crate::vrf::Vrfs;

/// A container of routes that lead to [`NextHops`](super::NextHops): a [`Table`] or [`Vrfs`].
pub trait Routed: Readable + Clone + sealed::Routed {}

impl Routed for Table {}
impl Routed for Vrfs {}

pub(super) mod sealed {
    use super::{Hold, TableError, readable};

    #[allow(private_interfaces)]
    pub trait Routed: readable::Readable<Handle = Self> {
        /// Waits for changes in progress, and delays others.
        fn hold(&self) -> Result<Box<dyn Hold + '_>, TableError>;
    }
}

#[allow(private_interfaces)]
impl sealed::Routed for Table {
    fn hold(&self) -> Result<Box<dyn Hold + '_>, TableError> {
        Ok(Box::new(Table::hold(self)?))
    }
}

#[allow(private_interfaces)]
impl sealed::Routed for Vrfs {
    fn hold(&self) -> Result<Box<dyn Hold + '_>, TableError> {
        Ok(Box::new(Vrfs::hold(self)?))
    }
}
