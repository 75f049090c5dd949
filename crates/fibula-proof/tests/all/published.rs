//! Engines of papers where the library's own tests cannot name them: in files.

use std::io::Cursor;

use fibula::fib::Fib;
use fibula::fib::registry::Engine;
use fibula::file::{Contents, TableFile};
use fibula::memory::Limits;
use fibula::net::{Key, RouteSlice};
use fibula::rib::Rib;
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

fn saved() -> Vec<Engine<u32>> {
    let library: Vec<_> = fibula::fib::engines::<u32>().iter().map(|engine| engine.name).collect();
    let all = fibula_published::engines::<u32>().into_iter();
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
        assert_eq!(opened.v4.engine, Some(engine.name));
        let found = opened.v4.fib.as_deref().unwrap();
        for route in &routes {
            for key in [route.prefix.addr(), route.prefix.last()] {
                assert_eq!(found.lookup(key), fib.lookup(key), "{}", engine.name);
            }
        }
        // Damage is found, as in the library's own structures.
        let mut refused = 0;
        for at in (0..bytes.len()).step_by(bytes.len() / 97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            let opened =
                TableFile::copy_with(Cursor::new(&damaged), Limits::default(), fibula_published::ENGINES);
            refused += usize::from(opened.is_err());
            // Padding between sections has no checksum.
            if let Ok(opened) = opened {
                let found = opened.v4.fib.as_deref().unwrap();
                assert_eq!(found.lookup(routes[0].prefix.addr()), fib.lookup(routes[0].prefix.addr()));
            }
        }
        assert!(refused > 0, "{}: no damage was found", engine.name);
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
        let now = opened.v4.engine.unwrap();
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
            told.contains(engine.name)
                && told.contains("this program does not have")
                && told.contains("make it again"),
            "{told}"
        );
        // With too little memory for another one, the reason is that.
        let few = Limits::within(2_000);
        assert!(TableFile::copy_of(Cursor::new(file(&*fib, Some(&rib))), few).is_err());
    }
}
