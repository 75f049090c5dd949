//! Devices by OpenCL 1.2. The kernels are compiled when a device is opened.
//!
//! Each lane has a queue in order, so that the keys are there before the lookups and those are done before the answers come
//! back; queues of several lanes overlap. Host memory is allocated by the driver and stays mapped, which pins it.

#![allow(unsafe_code, reason = "calls of the driver; memory that it maps")]

use core::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device as Id};
use opencl3::error_codes::{
    CL_DEVICE_NOT_FOUND, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    ClError, DLOPEN_RUNTIME_LOAD_FAILED,
};
use opencl3::kernel::Kernel;
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE,
    CL_MEM_WRITE_ONLY,
};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_mem};

use crate::error::GpuError;
use crate::image::Images;

use super::contract::{Device, Facts, Lane, Loaded};

/// The kernels.
pub(crate) const SOURCE: &str = include_str!("../../kernels/lookup.c");

/// Work items of a group. A launch is a multiple of it.
const GROUP: usize = 64;

/// The answer of the loader when no driver is registered with it.
const NO_PLATFORM: i32 = -1001;

/// The queue of the last launch on a driver that takes one at a time.
static LAST: Mutex<Weak<CommandQueue>> = Mutex::new(Weak::new());

/// Whether the driver counts launches of a kernel under another size's compiled form, and ends the process when such launches
/// overlap (`found->ref_count > 0`): PoCL did before 7.0.
fn takes_one_at_a_time(driver: &str) -> bool {
    let version = driver.split_once("PoCL ").map(|(_, version)| version.split('.').next());
    version.is_some_and(|major| major.and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < 7))
}

/// Returns the devices of all drivers.
pub(super) fn devices() -> Result<Vec<Box<dyn Device>>, GpuError> {
    devices_with(SOURCE)
}

/// Returns the devices, which will compile this source.
pub(super) fn devices_with(source: &str) -> Result<Vec<Box<dyn Device>>, GpuError> {
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED)) => {
            return Err(GpuError::NotAvailable("no OpenCL (libOpenCL.so.1)".to_owned()));
        }
        Err(ClError(NO_PLATFORM)) => {
            return Err(GpuError::NotAvailable("no driver for OpenCL is installed".to_owned()));
        }
        Err(error) => return Err(failed("list drivers", error)),
    };
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for platform in platforms {
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            Err(ClError(CL_DEVICE_NOT_FOUND)) => continue,
            Err(error) => return Err(failed("list devices", error)),
        };
        let driver = platform.version().map_err(|error| failed("query the driver", error))?;
        for id in ids {
            let id = Id::new(id);
            let facts =
                facts(&id, devices.len(), &driver).map_err(|error| failed("query the device", error))?;
            devices.push(Box::new(OpenCl { facts, id, source: source.to_owned(), opened: Mutex::default() }));
        }
    }
    Ok(devices)
}

fn facts(id: &Id, number: usize, driver: &str) -> Result<Facts, ClError> {
    Ok(Facts {
        id: format!("opencl:{number}"),
        name: id.name()?.trim().to_owned(),
        memory_bytes: id.global_mem_size()?,
        is_processor: id.dev_type()? & CL_DEVICE_TYPE_CPU != 0,
        driver: driver.trim().to_owned(),
    })
}

fn failed(what: &'static str, error: ClError) -> GpuError {
    GpuError::Failed { what, said: format!("{error} ({})", error.0) }
}

/// A device, opened when the first table is loaded.
struct OpenCl {
    facts: Facts,
    id: Id,
    source: String,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// A device with its kernels.
struct Opened {
    name: String,
    takes_one_at_a_time: bool,
    context: Context,
    program: Program,
}

impl Opened {
    fn new(device: &OpenCl) -> Result<Self, GpuError> {
        let context = Context::from_device(&device.id).map_err(|error| failed("open the device", error))?;
        let program = Program::create_and_build_from_source(&context, &device.source, "-cl-std=CL1.2")
            .map_err(|said| GpuError::Failed { what: "compile the kernels", said })?;
        Ok(Self {
            name: device.facts.name.clone(),
            takes_one_at_a_time: takes_one_at_a_time(&device.facts.driver),
            context,
            program,
        })
    }

    fn queue(&self) -> Result<CommandQueue, GpuError> {
        #[allow(deprecated, reason = "its successor takes a later version of OpenCL")]
        CommandQueue::create_default(&self.context, 0).map_err(|error| failed("make a queue", error))
    }

    fn buffer(&self, words: usize, flags: u64) -> Result<Buffer<u32>, GpuError> {
        // SAFETY: no memory of the host is passed.
        let made = unsafe { Buffer::create(&self.context, flags, words.max(1), ptr::null_mut()) };
        made.map_err(|error| self.memory(error, words, "allocate memory"))
    }

    fn memory(&self, error: ClError, words: usize, what: &'static str) -> GpuError {
        match error.0 {
            // CL_INVALID_BUFFER_SIZE: more than the device ever gives at once.
            CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY | -61 => {
                GpuError::Memory { device: self.name.clone(), bytes: 4 * words as u64 }
            }
            _ => failed(what, error),
        }
    }
}

impl Device for OpenCl {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn load(&self, images: &Images, room: usize) -> Result<Arc<dyn Loaded>, GpuError> {
        let Some(engine) = images.engine else { return Err(GpuError::TooLarge { words: 0 }) };
        let opened = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            match &*opened {
                Some(opened) => Arc::clone(opened),
                None => Arc::clone(opened.insert(Arc::new(Opened::new(self)?))),
            }
        };
        let words = images.words.len() + room;
        let arena = opened.buffer(words, CL_MEM_READ_ONLY)?;
        let bases = opened.buffer(images.bases.len(), CL_MEM_READ_ONLY)?;
        let tables = Tables {
            queue: opened.queue()?,
            opened,
            kernel: engine.kernel,
            key_words: engine.key_words,
            words,
            arena: Mutex::new(arena),
            bases: Mutex::new(bases),
            under_way: AtomicUsize::new(0),
        };
        tables.write(&tables.arena, 0, &images.words)?;
        tables.write(&tables.bases, 0, &images.bases)?;
        Ok(Arc::new(Uploaded(Arc::new(tables))))
    }
}

/// Tables on the device.
struct Tables {
    opened: Arc<Opened>,
    /// Of uploads.
    queue: CommandQueue,
    kernel: &'static str,
    key_words: usize,
    words: usize,
    arena: Mutex<Buffer<u32>>,
    bases: Mutex<Buffer<u32>>,
    /// Lanes that are.
    under_way: AtomicUsize,
}

impl Tables {
    fn write(&self, buffer: &Mutex<Buffer<u32>>, first: usize, words: &[u32]) -> Result<(), GpuError> {
        if words.is_empty() {
            return Ok(());
        }
        let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the words live until they have been copied, as the call waits for that; the driver checks the bounds.
        let written =
            unsafe { self.queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 4 * first, words, &[]) };
        written.map(drop).map_err(|error| self.opened.memory(error, words.len(), "upload a table"))
    }
}

struct Uploaded(Arc<Tables>);

impl Loaded for Uploaded {
    fn key_words(&self) -> usize {
        self.0.key_words
    }

    fn lane(&self, keys: usize) -> Result<Box<dyn Lane>, GpuError> {
        let tables = Arc::clone(&self.0);
        let opened = &tables.opened;
        let kernel = Kernel::create(&opened.program, tables.kernel)
            .map_err(|error| failed("find the kernel of the structure", error))?;
        let queue = Arc::new(opened.queue()?);
        let key_words = tables.key_words * keys;
        Ok(Box::new(OpenClLane {
            host_keys: Pinned::new(opened, &queue, key_words)?,
            host_results: Pinned::new(opened, &queue, keys)?,
            keys: opened.buffer(key_words, CL_MEM_READ_ONLY)?,
            results: opened.buffer(keys, CL_MEM_WRITE_ONLY)?,
            room: keys,
            count: 0,
            is_under_way: false,
            kernel,
            queue,
            tables,
        }))
    }

    fn store(&self, first: usize, words: &[u32]) -> Result<(), GpuError> {
        if self.0.under_way.load(Ordering::Acquire) > 0 {
            return Err(GpuError::Busy);
        }
        let end = first.checked_add(words.len()).filter(|&end| end <= self.0.words);
        let Some(_) = end else { return Err(GpuError::Room { keys: words.len(), room: self.0.words }) };
        self.0.write(&self.0.arena, first, words)
    }
}

/// Memory of the host that the driver allocated, mapped until the end.
struct Pinned {
    buffer: Buffer<u32>,
    words: *mut u32,
    len: usize,
}

// SAFETY: the memory is this value's own; the driver's objects may be used from any thread.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(opened: &Opened, queue: &CommandQueue, len: usize) -> Result<Self, GpuError> {
        let buffer = opened.buffer(len, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR)?;
        let mut at: cl_mem = ptr::null_mut();
        let flags = CL_MAP_READ | CL_MAP_WRITE;
        // SAFETY: the buffer has as many bytes, and nothing else uses it.
        let mapped =
            unsafe { queue.enqueue_map_buffer(&buffer, CL_BLOCKING, flags, 0, 4 * len.max(1), &mut at, &[]) };
        mapped.map_err(|error| opened.memory(error, len, "pin memory"))?;
        let mut pinned = Self { buffer, words: at.cast(), len };
        // Memory that a driver maps may hold anything.
        pinned.as_mut().fill(0);
        Ok(pinned)
    }

    fn as_ref(&self) -> &[u32] {
        // SAFETY: the buffer is mapped from here on for as many words, as long as it lives, and aligned to a page.
        unsafe { core::slice::from_raw_parts(self.words, self.len) }
    }

    fn as_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.len) }
    }

    fn unmap(&self, queue: &CommandQueue) {
        // SAFETY: it was mapped at this address, and is no longer used.
        let _ = unsafe { queue.enqueue_unmap_mem_object(self.buffer_handle(), self.words.cast(), &[]) };
    }

    fn buffer_handle(&self) -> cl_mem {
        use opencl3::memory::ClMem;
        self.buffer.get()
    }
}

/// A buffer with a queue.
struct OpenClLane {
    tables: Arc<Tables>,
    queue: Arc<CommandQueue>,
    kernel: Kernel,
    host_keys: Pinned,
    host_results: Pinned,
    keys: Buffer<u32>,
    results: Buffer<u32>,
    /// In keys.
    room: usize,
    /// Answers that were requested last.
    count: usize,
    is_under_way: bool,
}

impl OpenClLane {
    fn launch(&mut self, count: usize, keys_a_table: u32) -> Result<(), GpuError> {
        use opencl3::memory::ClMem;
        let set = |error| failed("pass arguments to a kernel", error);
        let handle =
            |buffer: &Mutex<Buffer<u32>>| buffer.lock().unwrap_or_else(PoisonError::into_inner).get();
        let (arena, bases) = (handle(&self.tables.arena), handle(&self.tables.bases));
        let count_word = count as u32;
        for (index, memory) in [(0, arena), (1, bases), (3, self.keys.get()), (4, self.results.get())] {
            // SAFETY: these parameters of the kernels are pointers to memory of the device, which lives as long as the lane.
            unsafe { self.kernel.set_arg(index, &memory) }.map_err(set)?;
        }
        for (index, number) in [(2, keys_a_table), (5, count_word)] {
            // SAFETY: these parameters are words of 32 bits.
            unsafe { self.kernel.set_arg(index, &number) }.map_err(set)?;
        }
        let sizes = [count.next_multiple_of(GROUP), GROUP];
        let mut last = None;
        if self.tables.opened.takes_one_at_a_time {
            let mut queue = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(queue) = queue.upgrade() {
                queue.finish().map_err(|error| failed("wait for other lookups", error))?;
            }
            *queue = Arc::downgrade(&self.queue);
            last = Some(queue);
        }
        // SAFETY: all parameters are set; the kernel reads and writes as many keys and answers as there is room for, and of the
        // tables only words within them.
        let launched = unsafe {
            self.queue.enqueue_nd_range_kernel(
                self.kernel.get(),
                1,
                ptr::null(),
                sizes.as_ptr(),
                sizes[1..].as_ptr(),
                &[],
            )
        };
        drop(last);
        launched.map(drop).map_err(|error| failed("launch a kernel", error))
    }

    fn begin(&mut self, count: usize) -> Result<(), GpuError> {
        self.finish()?;
        if count > self.room {
            return Err(GpuError::Room { keys: count, room: self.room });
        }
        self.is_under_way = true;
        self.tables.under_way.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), GpuError> {
        if !self.is_under_way {
            return Ok(());
        }
        let finished = self.queue.finish();
        self.is_under_way = false;
        self.tables.under_way.fetch_sub(1, Ordering::AcqRel);
        finished.map_err(|error| failed("wait for lookups", error))
    }
}

impl Lane for OpenClLane {
    fn keys(&mut self) -> Result<&mut [u32], GpuError> {
        self.finish()?;
        Ok(self.host_keys.as_mut())
    }

    fn start(&mut self, count: usize, keys_a_table: u32) -> Result<(), GpuError> {
        self.begin(count)?;
        self.count = count;
        if count == 0 {
            return Ok(());
        }
        let words = &self.host_keys.as_ref()[..count * self.tables.key_words];
        // SAFETY: the words are the lane's, and stay as they are until it has finished.
        let written =
            unsafe { self.queue.enqueue_write_buffer(&mut self.keys, CL_NON_BLOCKING, 0, words, &[]) };
        written.map_err(|error| failed("send keys", error))?;
        self.launch(count, keys_a_table)?;
        let results = &mut self.host_results.as_mut()[..count];
        // SAFETY: the words are the lane's, and nobody looks at them until it has finished.
        let read = unsafe { self.queue.enqueue_read_buffer(&self.results, CL_NON_BLOCKING, 0, results, &[]) };
        read.map_err(|error| failed("fetch answers", error))?;
        self.queue.flush().map_err(|error| failed("begin lookups", error))
    }

    fn start_resident(&mut self, count: usize) -> Result<(), GpuError> {
        self.begin(count)?;
        if count > 0 {
            self.launch(count, 0)?;
        }
        self.queue.flush().map_err(|error| failed("begin lookups", error))
    }

    fn wait(&mut self) -> Result<&[u32], GpuError> {
        self.finish()?;
        Ok(&self.host_results.as_ref()[..self.count])
    }
}

/// Waits for the device, which may still read or write the lane's memory.
impl Drop for OpenClLane {
    fn drop(&mut self) {
        let _ = self.finish();
        self.host_keys.unmap(&self.queue);
        self.host_results.unmap(&self.queue);
        let _ = self.queue.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::takes_one_at_a_time;

    #[test]
    fn old_drivers_are_known_by_their_version() {
        let old = [
            "OpenCL 3.0 PoCL 3.1+debian  Linux, None+Asserts, RELOC, SPIR, LLVM 15.0.6",
            "OpenCL 3.0 PoCL HSTR",
        ];
        assert!(old.into_iter().all(takes_one_at_a_time));
        let other = ["OpenCL 3.0 PoCL 7.1  Linux, RELOC", "OpenCL 3.0 PoCL 10.0", "OpenCL 3.0 CUDA 12.4.131"];
        assert!(!other.into_iter().any(takes_one_at_a_time));
    }
}
