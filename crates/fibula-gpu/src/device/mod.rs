//! Devices: **the list** of back ends, and the devices of each.
//!
//! A back end loads its driver at run time. A driver that is missing is reported in one line, and is no fault.

mod contract;
mod cuda;
mod opencl;

use crate::error::GpuError;

pub use contract::{Device, Facts, Lane, Loaded};

/// A way to reach devices.
struct Backend {
    name: &'static str,
    /// Returns the devices.
    devices: fn() -> Devices,
}

/// The devices of a back end, or why it has none.
type Devices = Result<Vec<Box<dyn Device>>, GpuError>;

/// All of them.
const BACKENDS: &[Backend] =
    &[Backend { name: "cuda", devices: cuda::devices }, Backend { name: "opencl", devices: opencl::devices }];

/// Returns all devices, and why a back end has none: a line each.
#[must_use]
pub fn all() -> (Vec<Box<dyn Device>>, Vec<String>) {
    let (mut devices, mut absent) = (Vec::new(), Vec::new());
    for backend in BACKENDS {
        match (backend.devices)() {
            Ok(found) if found.is_empty() => absent.push(format!("{}: no device", backend.name)),
            Ok(found) => devices.extend(found),
            Err(error) => absent.push(format!("{}: {error}", backend.name)),
        }
    }
    (devices, absent)
}

/// Returns the devices of OpenCL, which will compile this source instead of their own: for tests that plant faults in kernels.
///
/// # Errors
/// When there is no driver.
#[doc(hidden)]
pub fn with_kernels(source: &str) -> Result<Vec<Box<dyn Device>>, GpuError> {
    opencl::devices_with(source)
}

/// The source of the kernels.
#[doc(hidden)]
pub const KERNELS: &str = opencl::SOURCE;

/// Returns the device of this name: `cuda:0`, the name of a back end for its first one, or `any`, which prefers coprocessors to
/// the processor itself.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<Box<dyn Device>, GpuError> {
    let (mut devices, absent) = all();
    if name == "any" {
        devices.sort_by_key(|device| device.facts().is_processor);
    } else {
        let is_it = |id: &str| id == name || id.split(':').next() == Some(name);
        let known = BACKENDS.iter().any(|backend| is_it(backend.name) || name.starts_with(backend.name));
        devices.retain(|device| is_it(&device.facts().id));
        if devices.is_empty() && !known {
            let names: Vec<_> = BACKENDS.iter().map(|backend| backend.name).collect();
            return Err(GpuError::NotAvailable(format!(
                "no back end has a device '{name}'; there are: {}",
                names.join(", ")
            )));
        }
    }
    let why = || GpuError::NotAvailable(format!("no device '{name}' here ({})", absent.join("; ")));
    devices.into_iter().next().ok_or_else(why)
}
