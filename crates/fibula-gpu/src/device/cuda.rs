//! NVIDIA's GPUs by the driver's own interface. The kernels come as PTX, which the driver compiles for the device.
//!
//! Each lane has a stream, in which work is done in order; streams of several lanes overlap. Host memory is pinned, so that the
//! device reads and writes it by itself while other things are done.

#![allow(unsafe_code, reason = "calls of the driver; memory that it pins")]

use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};

use crate::error::GpuError;
use crate::image::Images;

use super::contract::{Device, Facts, Lane, Loaded};

/// The kernels for compute capability 7.0 and later. `kernels/make` makes them.
const PTX: &str = include_str!("../../kernels/lookup.ptx");

/// Threads of a block.
const BLOCK: u32 = 256;

/// Returns the devices.
pub(super) fn devices() -> Result<Vec<Box<dyn Device>>, GpuError> {
    // SAFETY: this loads the driver's library, whose initialisation does nothing but prepare it.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NotAvailable("no driver of NVIDIA (libcuda.so.1)".to_owned()));
    }
    match result::init() {
        Ok(()) => {}
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(Vec::new()),
        Err(error) => return Err(failed("start the driver", error)),
    }
    let mut version = 0;
    // SAFETY: the driver writes one number.
    let said = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    said.result().map_err(|error| failed("query the driver", error))?;
    let count = result::device::get_count().map_err(|error| failed("list devices", error))?;
    let device = |number| -> Result<Box<dyn Device>, GpuError> {
        let query = |error| failed("query the device", error);
        let device = result::device::get(number).map_err(query)?;
        // SAFETY: the driver has returned this device.
        let bytes = unsafe { result::device::total_mem(device) }.map_err(query)?;
        let facts = Facts {
            id: format!("cuda:{number}"),
            name: result::device::get_name(device).map_err(query)?,
            memory_bytes: bytes as u64,
            is_processor: false,
            driver: format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
        };
        Ok(Box::new(Cuda { facts, number: number as usize, opened: Mutex::default() }))
    };
    (0..count).map(device).collect()
}

fn failed(what: &'static str, error: DriverError) -> GpuError {
    GpuError::Failed { what, said: error.to_string() }
}

/// A device, opened when the first table is loaded.
struct Cuda {
    facts: Facts,
    number: usize,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// A device with its kernels.
struct Opened {
    name: String,
    context: Arc<CudaContext>,
    module: sys::CUmodule,
}

// SAFETY: the driver's objects may be used from any thread to which the context is bound, as all methods here do first.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Opened {
    fn new(device: &Cuda) -> Result<Self, GpuError> {
        let context = CudaContext::new(device.number).map_err(|error| failed("open the device", error))?;
        let text = CString::new(PTX)
            .map_err(|error| GpuError::Failed { what: "load the kernels", said: error.to_string() })?;
        // SAFETY: this is text of PTX that ends with a zero.
        let module = unsafe { result::module::load_data(text.as_ptr().cast()) };
        let module = module.map_err(|error| failed("load the kernels", error))?;
        Ok(Self { name: device.facts.name.clone(), context, module })
    }

    fn bind(&self) -> Result<(), GpuError> {
        self.context.bind_to_thread().map_err(|error| failed("use the device", error))
    }

    fn function(&self, name: &str) -> Result<sys::CUfunction, GpuError> {
        self.bind()?;
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded until this is dropped.
        let found = unsafe { result::module::get_function(self.module, name) };
        found.map_err(|error| failed("find the kernel of the structure", error))
    }

    fn memory(&self, error: DriverError, words: usize, what: &'static str) -> GpuError {
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                GpuError::Memory { device: self.name.clone(), bytes: 4 * words as u64 }
            }
            _ => failed(what, error),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: whoever uses its functions keeps this alive.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

/// Words in the device's memory.
struct Words {
    opened: Arc<Opened>,
    at: sys::CUdeviceptr,
}

impl Words {
    fn new(opened: &Arc<Opened>, words: usize) -> Result<Self, GpuError> {
        opened.bind()?;
        // SAFETY: no word is read before it is written, because kernels have the number of their keys, and tables are
        // uploaded whole.
        let at = unsafe { result::malloc_sync(4 * words.max(1)) };
        let at = at.map_err(|error| opened.memory(error, words, "allocate memory"))?;
        Ok(Self { opened: Arc::clone(opened), at })
    }

    /// Writes words from one on, and waits until they are there. They must be within the memory.
    fn write(&self, first: usize, words: &[u32]) -> Result<(), GpuError> {
        if words.is_empty() {
            return Ok(());
        }
        self.opened.bind()?;
        let upload = |error| failed("upload a table", error);
        // SAFETY: the caller has compared the bounds; the call returns when the words have been staged, so that they may change.
        unsafe { result::memcpy_htod_sync(self.at + 4 * first as u64, words) }.map_err(upload)?;
        // The words may arrive later, and lanes' streams do not wait for the default stream: without this a kernel can
        // read words from before the write.
        // SAFETY: null is the default stream of the context that is bound.
        unsafe { result::stream::synchronize(ptr::null_mut()) }.map_err(upload)
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if self.opened.bind().is_ok() {
            // SAFETY: lanes, which alone use it while kernels run, have finished and keep it alive until then.
            let _ = unsafe { result::free_sync(self.at) };
        }
    }
}

/// Pinned words of the host.
struct Pinned {
    opened: Arc<Opened>,
    words: *mut u32,
    len: usize,
}

// SAFETY: the memory is this value's own.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(opened: &Arc<Opened>, len: usize) -> Result<Self, GpuError> {
        opened.bind()?;
        // SAFETY: the memory is filled below, before anything reads it.
        let words = unsafe { result::malloc_host(4 * len.max(1), 0) };
        let words = words.map_err(|error| opened.memory(error, len, "pin memory"))?;
        // SAFETY: the driver has allocated as many words.
        unsafe { ptr::write_bytes(words.cast::<u32>(), 0, len) };
        Ok(Self { opened: Arc::clone(opened), words: words.cast(), len })
    }

    fn as_ref(&self) -> &[u32] {
        // SAFETY: there are as many words, all written, aligned to a page.
        unsafe { core::slice::from_raw_parts(self.words, self.len) }
    }

    fn as_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and nobody else has a reference.
        unsafe { core::slice::from_raw_parts_mut(self.words, self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.opened.bind().is_ok() {
            // SAFETY: its lane has finished.
            let _ = unsafe { result::free_host(self.words.cast()) };
        }
    }
}

impl Device for Cuda {
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
        let (arena, bases) = (Words::new(&opened, words)?, Words::new(&opened, images.bases.len())?);
        arena.write(0, &images.words)?;
        bases.write(0, &images.bases)?;
        Ok(Arc::new(Uploaded(Arc::new(Tables {
            function: opened.function(engine.kernel)?,
            key_words: engine.key_words,
            words,
            arena,
            bases,
            under_way: AtomicUsize::new(0),
            opened,
        }))))
    }
}

/// Tables on the device.
struct Tables {
    opened: Arc<Opened>,
    function: sys::CUfunction,
    key_words: usize,
    words: usize,
    arena: Words,
    bases: Words,
    /// Lanes that are.
    under_way: AtomicUsize,
}

// SAFETY: the function belongs to the module, which may be used from any thread.
unsafe impl Send for Tables {}
// SAFETY: as above.
unsafe impl Sync for Tables {}

struct Uploaded(Arc<Tables>);

impl Loaded for Uploaded {
    fn key_words(&self) -> usize {
        self.0.key_words
    }

    fn lane(&self, keys: usize) -> Result<Box<dyn Lane>, GpuError> {
        let tables = Arc::clone(&self.0);
        let opened = &tables.opened;
        let stream = opened.context.new_stream().map_err(|error| failed("make a stream", error))?;
        let key_words = tables.key_words * keys;
        Ok(Box::new(CudaLane {
            host_keys: Pinned::new(opened, key_words)?,
            host_results: Pinned::new(opened, keys)?,
            keys: Words::new(opened, key_words)?,
            results: Words::new(opened, keys)?,
            room: keys,
            count: 0,
            is_under_way: false,
            stream,
            tables,
        }))
    }

    fn store(&self, first: usize, words: &[u32]) -> Result<(), GpuError> {
        if self.0.under_way.load(Ordering::Acquire) > 0 {
            return Err(GpuError::Busy);
        }
        let end = first.checked_add(words.len()).filter(|&end| end <= self.0.words);
        let Some(_) = end else { return Err(GpuError::Room { keys: words.len(), room: self.0.words }) };
        self.0.arena.write(first, words)
    }
}

/// A buffer with a stream.
struct CudaLane {
    tables: Arc<Tables>,
    stream: Arc<CudaStream>,
    host_keys: Pinned,
    host_results: Pinned,
    keys: Words,
    results: Words,
    /// In keys.
    room: usize,
    /// Answers that were requested last.
    count: usize,
    is_under_way: bool,
}

impl CudaLane {
    fn launch(&mut self, count: usize, mut keys_a_table: u32) -> Result<(), GpuError> {
        let mut count = count as u32;
        let (mut arena, mut bases) = (self.tables.arena.at, self.tables.bases.at);
        let (mut keys, mut results) = (self.keys.at, self.results.at);
        let mut parameters: [*mut c_void; 6] = [
            (&raw mut arena).cast(),
            (&raw mut bases).cast(),
            (&raw mut keys_a_table).cast(),
            (&raw mut keys).cast(),
            (&raw mut results).cast(),
            (&raw mut count).cast(),
        ];
        let (grid, block) = ((count.div_ceil(BLOCK), 1, 1), (BLOCK, 1, 1));
        let (function, stream) = (self.tables.function, self.stream.cu_stream());
        // SAFETY: the parameters are those of all kernels, and are copied by the call; a kernel reads and writes as many keys and
        // answers as there is room for, and of the tables only words within them.
        let launched = unsafe { result::launch_kernel(function, grid, block, 0, stream, &mut parameters) };
        launched.map_err(|error| failed("launch a kernel", error))
    }

    fn begin(&mut self, count: usize) -> Result<(), GpuError> {
        self.finish()?;
        if count > self.room {
            return Err(GpuError::Room { keys: count, room: self.room });
        }
        self.tables.opened.bind()?;
        self.is_under_way = true;
        self.tables.under_way.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), GpuError> {
        if !self.is_under_way {
            return Ok(());
        }
        let finished = self.stream.synchronize();
        self.is_under_way = false;
        self.tables.under_way.fetch_sub(1, Ordering::AcqRel);
        finished.map_err(|error| failed("wait for lookups", error))
    }
}

impl Lane for CudaLane {
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
        // SAFETY: the words are the lane's, and stay as they are until it has finished; there is room for them.
        let sent = unsafe { result::memcpy_htod_async(self.keys.at, words, self.stream.cu_stream()) };
        sent.map_err(|error| failed("send keys", error))?;
        self.launch(count, keys_a_table)?;
        let words = &mut self.host_results.as_mut()[..count];
        // SAFETY: the words are the lane's, and nobody looks at them until it has finished.
        let fetched = unsafe { result::memcpy_dtoh_async(words, self.results.at, self.stream.cu_stream()) };
        fetched.map_err(|error| failed("fetch answers", error))
    }

    fn start_resident(&mut self, count: usize) -> Result<(), GpuError> {
        self.begin(count)?;
        if count == 0 { Ok(()) } else { self.launch(count, 0) }
    }

    fn wait(&mut self) -> Result<&[u32], GpuError> {
        self.finish()?;
        Ok(&self.host_results.as_ref()[..self.count])
    }
}

/// Waits for the device, which may still read or write the lane's memory.
impl Drop for CudaLane {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}
