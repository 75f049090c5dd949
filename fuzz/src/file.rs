//! Table files: bytes as they come, and good files with some of their bytes replaced and all checksums put right, as someone
//! makes them on purpose. Whatever is opened answers, and is in order.

use std::io::Cursor;
use std::sync::OnceLock;

use fibula::file::{Contents, Half, TableFile};
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Route};
use fibula::rib::Rib;
use fibula_proof::tables::Random;

pub(super) fn open(bytes: &[u8]) {
    look_up(bytes);
    let [which, edits @ ..] = bytes else { return };
    let files = FILES.get_or_init(files);
    let mut file = files[usize::from(*which) % files.len()].clone();
    for &[high, middle, low, byte] in edits.as_chunks().0 {
        let at = u32::from_be_bytes([0, high, middle, low]) as usize % file.len();
        file[at] = byte;
    }
    sum(&mut file);
    look_up(&file);
}

/// A small file of every structure that files can hold.
static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

fn files() -> Vec<Vec<u8>> {
    let mut files = of::<u32>(|contents, half| contents.v4 = half);
    files.extend(of::<u128>(|contents, half| contents.v6 = half));
    files
}

fn of<K: Key>(put: for<'a> fn(&mut Contents<'a>, Half<'a, K>)) -> Vec<Vec<u8>> {
    let mut random = Random(5);
    let mut rib = Rib::<K>::default();
    for id in 1..40 {
        let addr = random.key::<K>();
        let len = random.below(usize::from(K::BITS) + 1) as u8;
        let prefix = Prefix::masked(addr, len).expect("a length of the family");
        let next_hop = NextHop::new(if id % 7 == 0 { 1 << 24 } else { id }).expect("not zero");
        rib.insert(Route::new(prefix, next_hop)).expect("memory for a few routes");
    }
    let saved = fibula::fib::engines::<K>().into_iter().filter(fibula::fib::registry::Engine::is_saved);
    let write = |engine: fibula::fib::registry::Engine<K>| {
        let fib = engine.build(&rib, Limits::default()).expect("memory for a few routes");
        let (mut contents, mut bytes) = (Contents::default(), Vec::new());
        put(&mut contents, Half::new(&*fib, &rib));
        contents.values.insert(NextHop::new(1).expect("not zero"), b"one".to_vec());
        contents.write(&mut bytes).expect("files hold it");
        bytes
    };
    saved.map(write).collect()
}

const LINE: usize = 64;

/// Puts the checksums of the sections, of their table and of the header right, as far as they are there.
fn sum(file: &mut [u8]) {
    let long = |bytes: &[u8], at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes) as usize;
    let sections = file[16..20].try_into().map_or(0, u32::from_le_bytes) as usize;
    let end = LINE + sections.min(100) * LINE;
    if end > file.len() {
        return;
    }
    for line in (LINE..end).step_by(LINE) {
        let (offset, bytes) = (long(file, line + 40), long(file, line + 48));
        let Some(section) = offset.checked_add(bytes).and_then(|end| file.get(offset..end)) else { continue };
        let crc = crc32fast::hash(section);
        file[line + 36..line + 40].copy_from_slice(&crc.to_le_bytes());
    }
    let table = crc32fast::hash(&file[LINE..end]);
    file[32..36].copy_from_slice(&table.to_le_bytes());
    let header = crc32fast::hash(&file[..LINE - 4]);
    file[LINE - 4..LINE].copy_from_slice(&header.to_le_bytes());
}

fn look_up(bytes: &[u8]) {
    let Ok(file) = TableFile::copy_of(Cursor::new(bytes), Limits::within(64 << 20)) else { return };
    file.verify().expect("what was opened is in order");
    let mut random = Random(bytes.len() as u64);
    let keys4: Vec<u32> = (0..200).map(|_| random.key()).collect();
    let keys6: Vec<u128> = (0..200).map(|_| random.key()).collect();
    look_up_in(&file.v4, &keys4);
    look_up_in(&file.v6, &keys6);
    assert!(file.values().all(|(next_hop, value)| file.value(next_hop) == Some(value)));
}

fn look_up_in<K: Key>(part: &fibula::file::Part<K>, keys: &[K]) {
    if let Some(fib) = &part.fib {
        for isa in fibula::simd::Present::all() {
            let mut found = vec![None; keys.len()];
            fib.lookup_batch_on(isa, keys, &mut found);
            assert!(keys.iter().zip(found).all(|(&key, found)| fib.lookup_key(key) == found));
        }
    }
    if let Some(routes) = &part.routes {
        assert_eq!(routes.iter().count(), routes.len());
        for &key in keys {
            let found = routes.lookup_prefix(key);
            assert!(found.is_none_or(|route| route.prefix.contains(key)));
        }
    }
}
