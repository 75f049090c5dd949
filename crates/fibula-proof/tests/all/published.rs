//! Engines of papers where the library's own tests cannot name them: in files, and under listeners of live tables.

use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use fibula::fib::Fib;
use fibula::fib::registry::Algorithm;
use fibula::file::{Contents, TableFile};
use fibula::live::{Listener, Options, Stored, Structure, Table};
use fibula::memory::Limits;
use fibula::net::{Change, Key, RouteSlice};
use fibula::rib::{DualRib, Rib};
use fibula_proof::tables::{Model, Random};

fn model<K: Key>(seed: u64, count: usize) -> Model<K> {
    Model::random(&mut Random(seed), count, 300)
}

/// The bytes of a file with a structure for IPv4, and with its routes if they are given.
fn file(fib: &dyn Fib<u32>, routes: Option<&Rib<u32>>) -> Vec<u8> {
    let mut contents = Contents::default();
    contents.v4.fib = Some(fib);
    if let Some(routes) = routes {
        contents.v4.routes = Some(routes);
    }
    let mut bytes = Vec::new();
    contents.write(Cursor::new(&mut bytes)).unwrap();
    bytes
}

fn saved() -> Vec<Algorithm<u32>> {
    let library: Vec<_> = fibula::fib::algorithms::<u32>().iter().map(|engine| engine.name).collect();
    let all = fibula_published::algorithms::<u32>().into_iter();
    all.filter(|engine| engine.is_saved() && !library.contains(&engine.name)).collect()
}

fn rib(model: &Model<u32>) -> Rib<u32> {
    let mut rib = Rib::default();
    for route in model.routes() {
        let _ = rib.insert(route).unwrap();
    }
    rib
}

#[test]
fn files_with_their_structures_are_opened_by_who_has_them() {
    let names: Vec<_> = saved().iter().map(|engine| engine.name).collect();
    assert_eq!(names, ["planb", "planb-unmerged", "planb-16", "poptrie"]);
    for engine in saved() {
        let model = model::<u32>(7, 700);
        let routes = model.routes();
        let fib = engine.build(&RouteSlice::new(&routes).unwrap(), Limits::default()).unwrap();
        let bytes = file(&*fib, None);
        let opened =
            TableFile::copy_with(Cursor::new(&bytes), Limits::default(), fibula_published::ENGINES).unwrap();
        assert_eq!(opened.v4.algorithm, Some(engine.name));
        let found = opened.v4.fib.as_deref().unwrap();
        for route in &routes {
            for key in [route.prefix.addr(), route.prefix.last()] {
                assert_eq!(found.lookup(key), fib.lookup(key), "{}", engine.name);
            }
        }
        // Damage is found, as in the library's own structures.
        for at in (0..bytes.len()).step_by(bytes.len() / 97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let opened =
                TableFile::copy_with(Cursor::new(&damaged), Limits::default(), fibula_published::ENGINES);
            let is_padding = opened.is_ok();
            assert!(is_padding || opened.is_err());
            if let Ok(opened) = opened {
                let found = opened.v4.fib.as_deref().unwrap();
                assert_eq!(found.lookup(routes[0].prefix.addr()), fib.lookup(routes[0].prefix.addr()));
            }
        }
    }
}

#[test]
fn files_with_their_structures_are_compiled_again_from_the_routes_or_refused() {
    let model = model::<u32>(9, 500);
    let rib = rib(&model);
    for engine in saved() {
        let fib = engine.build(&rib, Limits::default()).unwrap();
        let opened = TableFile::copy_of(Cursor::new(file(&*fib, Some(&rib))), Limits::default()).unwrap();
        assert_eq!(opened.v4.replaced.as_deref(), Some(engine.name));
        let now = opened.v4.algorithm.unwrap();
        assert!(fibula::fib::registry::find::<u32>(now).is_ok(), "{now}");
        for route in rib.iter() {
            assert_eq!(
                opened.lookup(core::net::Ipv4Addr::from(route.prefix.addr())),
                rib.lookup(route.prefix.addr())
            );
        }
        let error = TableFile::copy_of(Cursor::new(file(&*fib, None)), Limits::default()).unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains(engine.name) && told.contains("fibula-lab only") && told.contains("make it again"),
            "{told}"
        );
        // With too little memory for another one, the reason is that.
        let few = Limits::within(2_000);
        assert!(TableFile::copy_of(Cursor::new(file(&*fib, Some(&rib))), few).is_err());
    }
}

/// The words of a structure, as a listener was told of them.
#[derive(Clone, Default)]
struct Copy(Arc<Mutex<Vec<Vec<u64>>>>);

impl Copy {
    fn words(&self) -> Vec<Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Listener for Copy {
    fn structure(&mut self, _: &Structure<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn stored(&mut self, stored: &Stored<'_>) {
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let array = usize::from(stored.array);
        let count = arrays.len().max(array + 1);
        arrays.resize(count, Vec::new());
        if stored.is_whole {
            arrays[array].clear();
        }
        let end = stored.first + stored.words.len();
        let len = arrays[array].len().max(end);
        arrays[array].resize(len, 0);
        stored.words.iter().enumerate().for_each(|(at, word)| arrays[array][stored.first + at] = word);
    }
}

/// A listener that came first has the words in use that one is told which comes last.
#[test]
fn listeners_have_the_words_of_structures_that_change() {
    for name in ["dxr-16", "dxr-18-wide", "poptrie"] {
        let mut random = Random(17);
        let mut model = model::<u32>(3, 1_500);
        let options = Options::default().with_engine(fibula_published::find::<u32>(name).unwrap());
        let table = Table::from_routes(DualRib::new(rib(&model), Rib::default()), options).unwrap();
        let first = Copy::default();
        table.listen(first.clone()).unwrap();
        for _ in 0..60 {
            let changes: Vec<Change<u32>> = (0..20).map(|_| model.change(&mut random, 300)).collect();
            changes.iter().for_each(|&change| model.apply(change));
            let _ = table.apply(&changes).unwrap();
        }
        let before = first.words();
        let _ = table.stop_listening().unwrap();
        let last = Copy::default();
        table.listen(last.clone()).unwrap();
        let now = last.words();
        assert_eq!(before.len(), now.len(), "{name}");
        // Units that are free now may have words that the last one is not told of.
        let words: usize = now.iter().map(Vec::len).sum();
        let equal =
            before.iter().zip(&now).flat_map(|(before, now)| before.iter().zip(now)).filter(|(a, b)| a == b);
        assert!(equal.count() * 100 >= words * 97, "{name}");
        // The entries that lookups begin with are always in use.
        assert_eq!(before[0].len(), now[0].len(), "{name}");
        table.check().unwrap();
    }
}
