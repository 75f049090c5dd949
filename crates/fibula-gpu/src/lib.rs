//! Lookups on a coprocessor, and shared by processor and coprocessor.
//!
//! The Bloomfwd paper (section 4.4) divides a stream of addresses between a processor and a coprocessor on its bus, a Xeon Phi. A
//! coprocessor of today is a GPU. This crate uploads a structure once, as it is in memory ([`Image`]), looks addresses up
//! in it by the buffer ([`device`]), divides a stream between both so that they end together ([`cooperate`]), and keeps the copy
//! of a live table up to date ([`cooperate::Cooperative::following`]).
//!
//! | module | content |
//! |---|---|
//! | [`engine`] | **the list** of structures that devices look up in |
//! | [`device`] | **the list** of back ends: CUDA by the driver's interface, OpenCL. Both are loaded at run time |
//! | [`cooperate`] | buffers, shares, failures |
//! | `follow` | a copy that follows a live table |
//! | `image` | the image of a table on a device |
//! | `kernels/` | the functions that look up, in C for both back ends, and their PTX |
//!
//! ```no_run
//! use fibula::fib::registry;
//! use fibula::memory::Limits;
//! use fibula::rib::Rib;
//! use fibula_gpu::cooperate::{Cooperative, Options};
//! use fibula_gpu::{Image, device};
//!
//! let mut rib = Rib::<u32>::default();
//! rib.insert(fibula::net::Route::new("192.0.2.0/24".parse()?, 7.try_into()?))?;
//! let fib = registry::find("dir-18-lines")?.build(&rib, Limits::default())?;
//! let device = device::find("any")?;
//! let table = device.load(&Image::of(&*fib, "dir-18-lines")?.into(), 0)?;
//! let mut both = Cooperative::new(table, Options::default())?;
//! let (keys, mut next_hops) = (vec![0xc000_0201; 1 << 22], vec![None; 1 << 22]);
//! let report = both.lookup(&*fib, &keys, &mut next_hops)?;
//! println!("{} by the device, {} by the processor", report.device_keys, report.processor_keys);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When a GPU pays
//!
//! An address and its answer cross the bus: 8 bytes for IPv4, 20 for IPv6, most of them towards the device. PCIe 4.0 x16 carries
//! about 25 GB/s each way, PCIe 5.0 x16 about 50. A device in which lookups cost nothing then answers at most
//!
//! | bus | IPv4: 4 bytes there, 4 back | IPv6: 16 bytes there, 4 back |
//! |---|---|---|
//! | PCIe 3.0 x16, 12 GB/s | 3.0 billion a second | 0.75 |
//! | PCIe 4.0 x16, 25 GB/s | 6.2 | 1.6 |
//! | PCIe 5.0 x16, 50 GB/s | 12.5 | 3.1 |
//!
//! with transfers both ways at the same time. Before that, a thread has to write the addresses into pinned memory and to take the
//! answers out: 16 bytes of memory traffic an IPv4 address, 10 to 20 GB/s a core, so about a billion a second for each thread
//! that manages a device. One core of the processor makes 0.3 to 1.4 billion IPv4 lookups a second by itself, and 0.2 to 0.4 IPv6
//! ones. So:
//!
//! - *Who produces the addresses?* Where a core would write them once more for the device, that core could nearly look them up. A GPU
//!   pays for addresses that are on it already: `resident` in the benchmark.
//! - *How many at once?* A launch and two transfers cost 10 to 20 microseconds whatever their size. At 0.5 billion a second and
//!   core, a core has looked up 5,000 to 10,000 addresses in that time: smaller buffers never pay, and a packet burst of 256 is
//!   a fortieth of that. From about a million addresses a buffer on, the bus is the limit; a buffer is then under way
//!   for about a millisecond, which is the delay that is paid.
//! - *Which structure?* All addresses of a warp wait for the slowest. Structures of few steps whatever the address
//!   (`dir-24-8`, `dir-18-lines`, `dir-btree`) suit that; the chains of Bloomfwd do less. A full table fits the second-level
//!   cache of a large GPU (40 to 60 MB) in every structure of Fibula's own.
//!
//! `fibula-lab device` measures all of this where there is a GPU; the guide (`docs/guide/coprocessors.md`) has the
//! figures of an H200. Rates of the processor as a device of OpenCL show that all of it works. They are no measurement,
//! because no address crosses a bus.
//!
//! # Costs and limits
//!
//! A table has at most 2^32 words, 16 GiB. Each buffer takes 8 bytes an IPv4 address (20 for IPv6) on the device, and as much
//! pinned memory. Indices are clamped on the device, and every loop has a bound: an image of any content ends with some answer.

pub mod cooperate;
pub mod device;
pub mod engine;
mod error;
mod follow;
mod image;

pub use error::GpuError;
pub use image::{Image, Images, put_keys};
