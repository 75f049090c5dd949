//! Many tables in one handle, each with a number.

use std::ffi::{c_int, c_void};
use std::ptr;

use engine::memory::Limits;
use engine::net::{IpPrefix, Key, NextHop, Prefix};
use engine::vrf::{Options as VrfOptions, Vrf, Vrfs};
use fibula_column::{Column, LookupOptions, lookup_in_vrfs};

use crate::error::{Code, ErrorPlace, Failure, Outcome, answer, call};
use crate::input::{elements, elements_mut, handle, put};
use crate::lookup::{column4, column6};
use crate::options::{MASK, Options, OptionsPlace};

/// `fibula_vrfs`.
pub struct VrfTables {
    vrfs: Vrfs,
    options: Options,
}

const NO_VRFS: &str = "the VRFs are NULL";

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_new(
    options: *const OptionsPlace,
    vrfs: *mut *mut VrfTables,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: what fibula.h asks of the caller, here and below.
    unsafe {
        call(error, || {
            put(vrfs, ptr::null_mut())?;
            let options = Options::read(options)?;
            let limits: Limits = options.limits();
            let made = Vrfs::with_options(VrfOptions { limits, ..VrfOptions::default() })?;
            put(vrfs, Box::into_raw(Box::new(VrfTables { vrfs: made, options })))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_free(vrfs: *mut VrfTables) {
    if !vrfs.is_null() {
        // SAFETY: from `fibula_vrfs_new`, and given up.
        answer((), || drop(unsafe { Box::from_raw(vrfs) }));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_create(
    vrfs: *const VrfTables,
    vrf: *mut u32,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe { call(error, || put(vrf, handle(vrfs, NO_VRFS)?.vrfs.create()?.number())) }
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
            handle(vrfs, NO_VRFS)?.vrfs.delete(Vrf::new(vrf))?;
            Ok(())
        })
    }
}

impl VrfTables {
    fn set<K: Key>(&self, vrf: u32, address: K, length: u8, id: u32) -> Outcome<()>
    where
        IpPrefix: From<Prefix<K>>,
    {
        let masks = self.options.has(MASK);
        let prefix = if masks { Prefix::masked(address, length) } else { Prefix::new(address, length) };
        let prefix = IpPrefix::from(prefix.map_err(|error| Failure::new(Code::Invalid, error.to_string()))?);
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
    unsafe { call(error, || handle(vrfs, NO_VRFS)?.set(vrf, address, length, id)) }
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
            let address = handle(address.cast::<[u8; 16]>(), "the address is NULL")?;
            handle(vrfs, NO_VRFS)?.set(vrf, u128::from_be_bytes(*address), length, id)
        })
    }
}

fn look_up(tables: &VrfTables, vrf: &[u32], column: &Column<'_>, ids: &mut [u32]) -> Outcome<()> {
    lookup_in_vrfs(&tables.vrfs, vrf, column, ids, &LookupOptions::default())?;
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_lookup4_bulk(
    vrfs: *const VrfTables,
    vrf: *const u32,
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    ids: *mut u32,
    count: usize,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe {
        call(ptr::null_mut(), || {
            let column = column4(addresses, stride, flags, count)?;
            look_up(handle(vrfs, NO_VRFS)?, elements(vrf, count)?, &column, elements_mut(ids, count)?)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrfs_lookup6_bulk(
    vrfs: *const VrfTables,
    vrf: *const u32,
    addresses: *const c_void,
    stride: usize,
    flags: u32,
    ids: *mut u32,
    count: usize,
) -> c_int {
    // SAFETY: as in `fibula_vrfs_new`.
    unsafe {
        call(ptr::null_mut(), || {
            let column = column6(addresses, stride, flags, count)?;
            look_up(handle(vrfs, NO_VRFS)?, elements(vrf, count)?, &column, elements_mut(ids, count)?)
        })
    }
}
