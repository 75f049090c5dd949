//! Files written and read again, damaged in every way, and saves that end anywhere.

#![allow(clippy::field_reassign_with_default, reason = "contents are put together step by step")]

mod columns;
mod damage;
mod followed;
mod killed;
mod lengths;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_endian = "little",
    not(miri)
))]
mod mapped;
mod round_trip;

use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::{ColumnBuilder, ColumnType, ColumnValue, Contents, FileError, Half, StoredColumn, TableFile};
use crate::fib::{Fib, registry};
use crate::memory::Limits;
use crate::net::{Key, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::Rib;

/// Next hops of small tables.
const NARROW: u64 = 200;

/// A table of some routes, many of them within each other, with next hops below `next_hops`.
fn table<K: Key>(seed: u64, routes: usize, next_hops: u64) -> Rib<K> {
    let mut random = Random(seed);
    let mut rib = Rib::default();
    let mut last = K::ZERO;
    for _ in 0..routes {
        let mut bits = 0u128;
        for _ in 0..4 {
            bits = bits << 32 | u128::from(random.below(1 << 31)) << 1;
        }
        let near = random.below(3) > 0;
        let kept =
            K::mask(if near { (u64::from(K::BITS) / 4 + random.below(K::BITS.into()) / 2) as u8 } else { 0 });
        let addr = K::from_bits(bits >> (128 - K::BITS)).and(kept.not()).or(last.and(kept));
        let len = (u64::from(K::BITS) / 4 + random.below(u64::from(K::BITS) * 3 / 4 + 1)) as u8;
        let next_hop = NextHop::new(1 + random.below(next_hops) as u32).unwrap();
        rib.insert(Route::new(Prefix::masked(addr, len).unwrap(), next_hop)).unwrap();
        last = addr;
    }
    rib
}

/// Keys at the edges of all routes, and others.
fn keys<K: Key>(rib: &Rib<K>) -> Vec<K> {
    let edges = rib.iter().flat_map(|route| {
        let (first, last) = (route.prefix.addr(), route.prefix.last());
        [Some(first), Some(last), first.previous(), last.next()].into_iter().flatten()
    });
    edges.chain([K::ZERO, K::ZERO.not()]).collect()
}

/// Asserts that an engine answers as the routes do, one by one and in a batch.
fn assert_answers<K: Key>(fib: &dyn Fib<K>, rib: &Rib<K>) {
    let keys = keys(rib);
    let mut found = vec![None; keys.len()];
    fib.lookup_batch(&keys, &mut found);
    for (&key, found) in keys.iter().zip(found) {
        assert_eq!((found, fib.lookup_key(key)), (rib.lookup(key), rib.lookup(key)), "{}", key.address());
    }
}

fn build<K: Key>(name: &str, rib: &Rib<K>) -> Box<dyn Fib<K>> {
    registry::find::<K>(name).unwrap().build(rib, Limits::default()).unwrap()
}

fn bytes(contents: &Contents<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    contents.write(&mut bytes).unwrap();
    bytes
}

fn open(bytes: &[u8]) -> Result<TableFile, FileError> {
    TableFile::copy_of(Cursor::new(bytes), Limits::default())
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fibula-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A small file of both families with everything, and its tables.
fn small(seed: u64) -> (Vec<u8>, Rib<u32>, Rib<u128>) {
    let (v4, v6) = (table::<u32>(seed, 60, NARROW), table::<u128>(seed, 6, NARROW));
    let (fib4, fib6) = (build("range-btree", &v4), build("planb", &v6));
    let mut contents = Contents::default();
    contents.v4 = Half::new(&*fib4, &v4);
    contents.v6 = Half::new(&*fib6, &v6);
    for id in 1..=3 {
        contents.values.insert(NextHop::new(id).unwrap(), vec![b'x'; 5 * id as usize]);
    }
    let bytes = bytes(&contents);
    (bytes, v4, v6)
}

/// Small columns: of numbers, some of them missing, of truth values and of texts.
fn small_columns() -> [StoredColumn; 3] {
    let mut columns = [("number", ColumnType::U32), ("is", ColumnType::Bool), ("text", ColumnType::Text)]
        .map(|(name, kind)| ColumnBuilder::new(name, kind));
    for at in 0..11 {
        columns[0].push((at % 3 > 0).then_some(ColumnValue::U32(at))).unwrap();
        columns[1].push(Some(ColumnValue::Bool(at % 2 == 0))).unwrap();
        columns[2].push(Some(ColumnValue::Text("ü".repeat(at as usize).into()))).unwrap();
    }
    columns.map(ColumnBuilder::finish)
}

/// A small file of version 2: with columns and the lengths of matched prefixes.
fn small_of_version_2(seed: u64) -> (Vec<u8>, Rib<u32>, Rib<u128>) {
    let (v4, v6) = (table::<u32>(seed, 40, NARROW), table::<u128>(seed, 6, NARROW));
    let engine = registry::find::<u32>("range-btree").unwrap();
    let fib4 = crate::fib::WithLength::build(&engine, &v4, Limits::default()).unwrap();
    let fib6 = build("planb", &v6);
    let columns = small_columns();
    let mut contents = Contents { columns: columns.iter().collect(), ..Contents::default() };
    contents.v4 = Half::new(&fib4, &v4);
    contents.v6 = Half::new(&*fib6, &v6);
    (bytes(&contents), v4, v6)
}

/// Asserts that an opened file has these tables.
fn assert_is(file: &TableFile, v4: &Rib<u32>, v6: &Rib<u128>) {
    assert_answers(&**file.v4.fib.as_ref().unwrap(), v4);
    assert_answers(&**file.v6.fib.as_ref().unwrap(), v6);
    assert!(file.v4.routes.as_ref().unwrap().iter().eq(v4.iter()));
    assert!(file.v6.routes.as_ref().unwrap().iter().eq(v6.iter()));
    let values = file.columns()[0].iter().map(|(id, value)| (id.id(), value.to_string().len()));
    assert_eq!(values.collect::<Vec<_>>(), [(1, 5), (2, 10), (3, 15)]);
}
