//! Lookups on a device, and what they are compared with.

use fibula::fib::Fib;
use fibula::fib::registry::Engine;
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Route, RouteSlice};
use fibula_gpu::device::Device;
use fibula_gpu::{Image, Images, put_keys};
use fibula_proof::verdict::Failure;

/// Returns the entries whose structures devices look up in, without those that differ on the processor alone.
pub(crate) fn engines<K: Key>(entries: Vec<Engine<K>>) -> Vec<Engine<K>> {
    let none = RouteSlice::new(&[]).expect("no routes are in order");
    let has_engine = |engine: &Engine<K>| {
        let fib = engine.build(&none, Limits::default());
        fib.is_ok_and(|fib| Image::of(&*fib, engine.name).is_ok())
    };
    let all = entries.into_iter().filter(|engine| !engine.name.ends_with("-auto"));
    all.filter(has_engine).collect()
}

/// Returns an answer as devices give it.
pub(crate) fn word(next_hop: Option<NextHop>) -> u32 {
    next_hop.map_or(0, NextHop::id)
}

/// Tables, each with the answers that it must give to all of its keys.
pub(crate) struct Cases<K: Key> {
    images: Images,
    keys: Vec<K>,
    expected: Vec<Option<NextHop>>,
    names: Vec<String>,
}

impl<K: Key> Default for Cases<K> {
    fn default() -> Self {
        Self { images: Images::default(), keys: Vec::new(), expected: Vec::new(), names: Vec::new() }
    }
}

impl<K: Key> Cases<K> {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Adds a table. All tables of one launch have as many keys.
    pub(crate) fn push(
        &mut self,
        engine: &Engine<K>,
        routes: &[Route<K>],
        keys: &[K],
        expected: &[Option<NextHop>],
    ) -> Result<(), Failure> {
        let fib = engine.build(&RouteSlice::new(routes)?, Limits::default())?;
        self.images.push(&Image::of(&*fib, engine.name)?)?;
        self.keys.extend_from_slice(keys);
        self.expected.extend_from_slice(expected);
        self.names.push(format!("{}: {routes:?}", engine.name));
        Ok(())
    }

    /// Looks up all keys of all tables in one launch, and forgets the tables.
    pub(crate) fn run(&mut self, device: &dyn Device) -> Result<(), Failure> {
        let cases = core::mem::take(self);
        if cases.names.is_empty() {
            return Ok(());
        }
        let keys_a_table = cases.keys.len() / cases.names.len();
        let found = launch(device, &cases.images, &cases.keys, keys_a_table)?;
        for (at, (&found, &right)) in found.iter().zip(&cases.expected).enumerate() {
            if found != word(right) {
                let (key, table) = (cases.keys[at].address(), &cases.names[at / keys_a_table]);
                let right = word(right);
                return Err(format!("{key}: {found} where {right} is right (0: no route); {table}").into());
            }
        }
        Ok(())
    }
}

/// Looks up keys in one launch, so many in each table.
pub(crate) fn launch<K: Key>(
    device: &dyn Device,
    images: &Images,
    keys: &[K],
    keys_a_table: usize,
) -> Result<Vec<u32>, Failure> {
    let loaded = device.load(images, 0)?;
    let mut lane = loaded.lane(keys.len())?;
    put_keys(keys, loaded.key_words(), lane.keys()?);
    lane.start(keys.len(), u32::try_from(keys_a_table)?)?;
    Ok(lane.wait()?.to_vec())
}

/// Looks up keys in a structure, and says where the answers are not those of the other one.
pub(crate) fn compare<K: Key>(
    device: &dyn Device,
    image: Image,
    keys: &[K],
    oracle: &dyn Fib<K>,
) -> Result<(), Failure> {
    let found = launch(device, &image.into(), keys, 0)?;
    for (&key, &found) in keys.iter().zip(&found) {
        let right = word(oracle.lookup_key(key));
        if found != right {
            return Err(format!("{}: {found} where {right} is right (0: no route)", key.address()).into());
        }
    }
    Ok(())
}
