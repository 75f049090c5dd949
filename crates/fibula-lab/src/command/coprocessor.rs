//! Coprocessors as the laboratory takes them.

use std::collections::HashMap;
use std::sync::Arc;

use crate::bench::device::{Coprocessor, DeviceForm, DeviceMode, Facts, OnDevice};
use fibula::fib::Fib;
use fibula::net::{Key, NextHop};
use fibula_gpu::cooperate::{Cooperative, Options, Share};
use fibula_gpu::device::{Device, Lane, Loaded};
use fibula_gpu::{Image, put_keys};

/// A device.
#[derive(Clone)]
pub(super) struct Gpu(pub(super) Arc<dyn Device>);

impl<K: Key> Coprocessor<K> for Gpu {
    fn facts(&self) -> Facts {
        let facts = self.0.facts();
        Facts {
            id: facts.id.clone(),
            name: facts.name.clone(),
            driver: facts.driver.clone(),
            is_processor: facts.is_processor,
        }
    }

    fn upload<'a>(&self, fib: &'a dyn Fib<K>, engine: &str) -> Result<Box<dyn OnDevice<K> + 'a>, String> {
        let image = Image::of(fib, engine).map_err(|error| error.to_string())?;
        let loaded = self.0.load(&image.into(), 0).map_err(|error| error.to_string())?;
        Ok(Box::new(DeviceTable { fib, loaded, together: HashMap::new(), left: None }))
    }
}

/// An engine on the device, and its buffers, which are made when they are first needed.
struct DeviceTable<'a, K> {
    fib: &'a dyn Fib<K>,
    loaded: Arc<dyn Loaded>,
    /// By size of a buffer, number of buffers and number of threads.
    together: HashMap<(usize, usize, usize), Cooperative<K>>,
    /// Addresses that stay on the device, and how many.
    left: Option<(Box<dyn Lane>, usize)>,
}

impl<K: Key> OnDevice<K> for DeviceTable<'_, K> {
    fn lookup(
        &mut self,
        way: DeviceMode,
        keys: &[K],
        results: &mut [Option<NextHop>],
    ) -> Result<f64, String> {
        let buffers = match way.form {
            DeviceForm::Asynchronous | DeviceForm::BothAsynchronous => 2,
            _ => 1,
        };
        let of_way = (way.buffer, buffers, way.threads);
        let text = |error: fibula_gpu::GpuError| error.to_string();
        if !self.together.contains_key(&of_way) {
            let mut options = Options::default();
            (options.buffer_keys, options.buffers, options.threads) = of_way;
            let made = Cooperative::new(Arc::clone(&self.loaded), options).map_err(text)?;
            self.together.insert(of_way, made);
        }
        let together = self.together.get_mut(&of_way).ok_or("no buffers")?;
        together.set_share(match (way.form, way.share) {
            (DeviceForm::Processor, _) => Share::Fixed(0.0),
            (_, Some(share)) => Share::Fixed(share),
            (_, None) => Share::Measured,
        });
        let report = together.lookup(self.fib, keys, results).map_err(text)?;
        match report.failure {
            Some(failure) => Err(failure.to_string()),
            None => Ok(report.device_keys as f64 / keys.len().max(1) as f64),
        }
    }

    fn leave(&mut self, keys: &[K]) -> Result<(), String> {
        let leave = || {
            let mut lane = self.loaded.lane(keys.len())?;
            put_keys(keys, self.loaded.key_words(), lane.keys()?);
            lane.start(keys.len(), 0)?;
            lane.wait()?;
            Ok(lane)
        };
        let lane = leave().map_err(|error: fibula_gpu::GpuError| error.to_string())?;
        self.left = Some((lane, keys.len()));
        Ok(())
    }

    fn again(&mut self, times: usize) -> Result<(), String> {
        let Some((lane, count)) = &mut self.left else { return Err("no addresses were left".to_owned()) };
        for _ in 0..times {
            lane.start_resident(*count).map_err(|error| error.to_string())?;
        }
        lane.wait().map(drop).map_err(|error| error.to_string())
    }
}
