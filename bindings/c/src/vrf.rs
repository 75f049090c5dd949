//! Many tables in one handle, each with a number.

use std::ffi::c_int;

use engine::net::{IpPrefix, Key, NextHop, Prefix};
use engine::vrf::{Options as VrfOptions, Vrf, Vrfs};
use fibula_column::{Column, LookupOptions, lookup_in_vrfs};

use crate::checked::Handle;
use crate::error::{ErrorPlace, Outcome, call};
use crate::input::{elements, free, handle, make, owned, put, reference};
use crate::lookup::bulk_calls;
use crate::options::{Options, OptionsPlace};

/// `fibula_vrfs`.
pub struct VrfTables {
    vrfs: Vrfs,
    options: Options,
}

impl Handle for VrfTables {
    const NAME: &'static str = "VRFs";
    const NULL: &'static str = "the VRFs are NULL";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_new(
    options: *const OptionsPlace,
    vrfs: *mut *mut VrfTables,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: the promises that fibula.h asks of the caller, here and below.
    unsafe {
        make(vrfs, error, || {
            let options = Options::read(options)?;
            let made = Vrfs::with_options(VrfOptions { limits: options.limits(), ..VrfOptions::default() })?;
            Ok(owned(VrfTables { vrfs: made, options }))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_free(vrfs: *mut VrfTables) {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe { free(vrfs) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_create(
    vrfs: *const VrfTables,
    vrf: *mut u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe { call(error, || put(vrf, handle(vrfs)?.vrfs.create()?.number())) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_delete(
    vrfs: *const VrfTables,
    vrf: u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe {
        call(error, || {
            handle(vrfs)?.vrfs.delete(Vrf::new(vrf))?;
            Ok(())
        })
    }
}

impl VrfTables {
    fn set<K: Key>(&self, vrf: u32, address: K, length: u8, id: u32) -> Outcome<()>
    where
        IpPrefix: From<Prefix<K>>,
    {
        let prefix = IpPrefix::from(self.options.prefix(address, length)?);
        match NextHop::new(id) {
            Some(next_hop) => self.vrfs.insert(Vrf::new(vrf), prefix, next_hop)?,
            None => self.vrfs.remove(Vrf::new(vrf), prefix)?,
        };
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_set4(
    vrfs: *const VrfTables,
    vrf: u32,
    address: u32,
    length: u8,
    id: u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe { call(error, || handle(vrfs)?.set(vrf, address, length, id)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_set6(
    vrfs: *const VrfTables,
    vrf: u32,
    address: *const u8,
    length: u8,
    id: u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe {
        call(error, || {
            let address = reference(address.cast::<[u8; 16]>(), "the address is NULL")?;
            handle(vrfs)?.set(vrf, u128::from_be_bytes(*address), length, id)
        })
    }
}

fn look_up(tables: &VrfTables, vrf: &[u32], column: &Column<'_>, ids: &mut [u32]) -> Outcome<()> {
    lookup_in_vrfs(&tables.vrfs, vrf, column, ids, &LookupOptions::default())?;
    Ok(())
}

bulk_calls! {
    (fibula_vrfs_lookup4_bulk, fibula_vrfs_lookup6_bulk)
    (vrfs: *const VrfTables, vrf: *const u32)
    |column, ids| look_up(handle(vrfs)?, elements(vrf, ids.len())?, &column, ids)
}
