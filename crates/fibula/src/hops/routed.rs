//! The containers of routes whose next hops can be numbered: a table, or many in VRFs.

use std::sync::Arc;

use crate::live::{Domain, Hold, Pin, Pinned, Reader, Table};
use crate::vrf::{self, Vrfs};

use super::HopsError;

/// A container of routes that lead to [`NextHops`](super::NextHops): a [`Table`] or [`Vrfs`].
pub trait Routed: Clone + sealed::Routed {}

impl Routed for Table {}
impl Routed for Vrfs {}

pub(super) mod sealed {
    use super::{Arc, Domain, Hold, HopsError, Pin};

    #[allow(private_interfaces, private_bounds)]
    pub trait Routed {
        /// The reader of a thread.
        type Reader: Send + core::fmt::Debug;
        /// The pin of a reader, under which it looks addresses up.
        type Pin<'r>: Pin + core::fmt::Debug;

        fn domain(&self) -> &Arc<Domain>;

        /// Waits for changes in progress, and delays others.
        fn hold(&self) -> Result<Box<dyn Hold + '_>, HopsError>;

        fn new_reader(&self) -> Result<Self::Reader, HopsError>;

        fn pin(reader: &mut Self::Reader) -> Self::Pin<'_>;

        /// Renews the pin.
        fn refresh(pin: &mut Self::Pin<'_>);

        fn version(pin: &Self::Pin<'_>) -> u64;
    }
}

#[allow(private_interfaces, private_bounds)]
impl sealed::Routed for Table {
    type Reader = Reader;
    type Pin<'r> = Pinned<'r>;

    fn domain(&self) -> &Arc<Domain> {
        Table::domain(self)
    }

    fn hold(&self) -> Result<Box<dyn Hold + '_>, HopsError> {
        Ok(Box::new(Table::hold(self)?))
    }

    fn new_reader(&self) -> Result<Reader, HopsError> {
        Ok(Table::reader(self)?)
    }

    #[inline]
    fn pin(reader: &mut Reader) -> Pinned<'_> {
        reader.pin()
    }

    #[inline]
    fn refresh(pin: &mut Pinned<'_>) {
        pin.refresh();
    }

    fn version(pin: &Pinned<'_>) -> u64 {
        pin.version()
    }
}

#[allow(private_interfaces, private_bounds)]
impl sealed::Routed for Vrfs {
    type Reader = vrf::Reader;
    type Pin<'r> = vrf::Pinned<'r>;

    fn domain(&self) -> &Arc<Domain> {
        Vrfs::domain(self)
    }

    fn hold(&self) -> Result<Box<dyn Hold + '_>, HopsError> {
        Ok(Box::new(Vrfs::hold(self)?))
    }

    fn new_reader(&self) -> Result<vrf::Reader, HopsError> {
        Ok(self.another_reader()?)
    }

    #[inline]
    fn pin(reader: &mut vrf::Reader) -> vrf::Pinned<'_> {
        reader.pin()
    }

    #[inline]
    fn refresh(pin: &mut vrf::Pinned<'_>) {
        pin.refresh();
    }

    fn version(pin: &vrf::Pinned<'_>) -> u64 {
        pin.version()
    }
}
