//! Table files: bytes as they come, and good files with some of their bytes replaced and all checksums put right, as someone
//! makes them on purpose. Whatever is opened answers, and is in order.

use std::io::Cursor;
use std::sync::OnceLock;

use fibula::fib::WithLength;
use fibula::file::{ColumnBuilder, ColumnType, Contents, Half, StoredColumn, TableFile};
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

/// A small file of every structure that files can hold, of version 1 and with columns and lengths.
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
    let columns = columns();
    let write = |engine: fibula::fib::registry::Engine<K>| {
        let fib = engine.build(&rib, Limits::default()).expect("memory for a few routes");
        let (mut contents, mut bytes) = (Contents::default(), Vec::new());
        put(&mut contents, Half::new(&*fib, &rib));
        contents.values.insert(NextHop::new(1).expect("not zero"), b"one".to_vec());
        contents.write(&mut bytes).expect("files hold it");
        let fib = WithLength::build(&engine, &rib, Limits::default()).expect("memory for a few routes");
        let (mut contents, mut with_length) = (Contents::default(), Vec::new());
        put(&mut contents, Half::new(&fib, &rib));
        contents.columns = columns.iter().collect();
        contents.write(&mut with_length).expect("files hold it");
        [bytes, with_length]
    };
    saved.flat_map(write).collect()
}

/// A column of every type, with and without missing values.
fn columns() -> Vec<StoredColumn> {
    let both = ColumnType::ALL.into_iter().flat_map(|kind| [(kind, false), (kind, true)]);
    both.map(|(kind, lacks)| {
        let mut column = ColumnBuilder::new(&format!("{kind} {lacks}"), kind);
        for at in 0..20_u32 {
            let text =
                if kind == ColumnType::Bool { (at % 3 == 0).to_string() } else { (at * at).to_string() };
            let value = kind.parse(&text).filter(|_| !lacks || at % 4 > 0);
            column.push(value).expect("a value of its type");
        }
        column.finish()
    })
    .collect()
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
    for column in file.columns() {
        for (id, value) in column.iter() {
            // A value that is no number is not equal to itself.
            let same = column.value(id).is_some_and(|again| again.to_string() == value.to_string());
            assert!(same && value.kind() == column.kind());
            let mut bytes = Vec::new();
            assert!(
                !column.append(id, &mut bytes)
                    || bytes == value.to_string().into_bytes()
                    || value.kind() == ColumnType::Bytes
            );
        }
        assert!(column.iter().count() <= column.len());
    }
    // Whatever a file holds can be mapped too, or is refused, and each access stays within it.
    look_at_mapped(bytes);
}

/// Looks at the columns of a mapped file whose values are altered after all of it was found good.
fn look_at_mapped(bytes: &[u8]) {
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(format!("fibula-fuzz-file-{process}-{thread:?}"));
    if std::fs::write(&path, bytes).is_err() {
        return;
    }
    let mut damaged = bytes.to_vec();
    let from = damaged.len() - damaged.len() / 4;
    for (at, byte) in damaged[from..].iter_mut().enumerate() {
        *byte = byte.wrapping_mul(31).wrapping_add(at as u8);
    }
    for bytes in [bytes, &damaged] {
        if std::fs::write(&path, bytes).is_err() {
            continue;
        }
        let Ok(file) = TableFile::map(&path) else { continue };
        for column in file.columns() {
            let found = column
                .iter()
                .filter(|(id, value)| column.place(*id).is_some() && value.kind() == column.kind());
            assert!(found.count() <= column.len());
        }
    }
    let _ = std::fs::remove_file(&path);
}

fn look_up_in<K: Key>(part: &fibula::file::Part<K>, keys: &[K]) {
    if let Some(fib) = &part.fib {
        for isa in fibula::simd::Present::all() {
            let mut found = vec![None; keys.len()];
            fib.lookup_batch_on(isa, keys, &mut found);
            for (&key, found) in keys.iter().zip(found) {
                assert_eq!(fib.lookup_key(key), found, "{:?} with {isa:?}: {key:?}", part.engine);
            }
        }
        if let Some(with_length) = fib.with_length() {
            for &key in keys {
                let found = with_length.lookup(key);
                assert!(found.is_none_or(|found| found.prefix_len <= K::BITS));
                assert_eq!(found.map(|found| found.next_hop), fib.lookup_key(key));
            }
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

#[cfg(test)]
mod tests {
    /// Inputs that once failed.
    #[test]
    fn whatever_is_opened_is_in_order() {
        // The units of `dir-17-bitmap` are 64 words fewer, so that the last of them are in the padding.
        super::open(&[3, 2, 65, 1, 8, 0, 0, 0xf0, 64]);
    }
}
