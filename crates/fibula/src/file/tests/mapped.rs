//! Files that are used where they lie.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::fib;
use crate::simd::Present;

/// Engines that can be mapped, one for each family.
const MAPPABLE: [[&str; 2]; 3] =
    [["dir-17-bitmap", "dir-btree"], ["dir-17-sparse", "dir-btree-byte"], ["dir-18-lines", "dir-btree"]];

/// A file of two engines that can be mapped, the first for IPv4, with columns.
fn mappable_of([v4, v6]: [&str; 2], folder: &Folder, routes: usize) -> (PathBuf, Rib<u32>, Rib<u128>) {
    let engines = (v4, v6);
    let (v4, v6) = (table::<u32>(1, routes, 1 << 31), table::<u128>(2, routes, 1 << 31));
    let (fib4, fib6) = (build(engines.0, &v4), build(engines.1, &v6));
    let columns = small_columns();
    let mut contents = Contents { columns: columns.iter().collect(), ..Contents::default() };
    contents.v4 = Half::new(&*fib4, &v4);
    contents.v6 = Half::new(&*fib6, &v6);
    let path = folder.path("table.fibula");
    super::super::save(&path, &contents).unwrap();
    (path, v4, v6)
}

fn mappable(folder: &Folder, routes: usize) -> (PathBuf, Rib<u32>, Rib<u128>) {
    mappable_of(MAPPABLE[0], folder, routes)
}

#[test]
fn mapped_files_answer_as_copies_do() {
    MAPPABLE.into_iter().for_each(answer_as_copies_do);
}

fn answer_as_copies_do(engines: [&str; 2]) {
    let folder = Folder::new(&format!("mapped-{}", engines[0]));
    let (path, v4, v6) = mappable_of(engines, &folder, 700);
    let file = TableFile::map(&path).unwrap();
    assert!(file.is_mapped());
    assert_answers(&**file.v4.fib.as_ref().unwrap(), &v4);
    assert_answers(&**file.v6.fib.as_ref().unwrap(), &v6);
    assert!(file.v4.routes.as_ref().unwrap().iter().eq(v4.iter()));
    assert!(file.v6.routes.as_ref().unwrap().iter().eq(v6.iter()));
    assert!(file.v4.is_mapped && file.v6.is_mapped);
    assert!(
        file.columns().iter().zip(&small_columns()).all(|(found, column)| found.iter().eq(column.iter()))
    );
    let memory = file.memory();
    assert!(memory.allocated_bytes == 0 && memory.mapped_bytes == memory.lookup_bytes, "{memory:?}");
    file.verify().unwrap();
    // A process that has the file keeps it, under whatever name.
    super::super::save(&path, &Contents::default()).unwrap();
    assert_answers(&**file.v4.fib.as_ref().unwrap(), &v4);
    file.verify().unwrap();
    // It can be saved again.
    let mut contents = Contents::default();
    contents.v4.fib = file.v4.fib.as_deref();
    assert_answers(&**open(&bytes(&contents)).unwrap().v4.fib.as_ref().unwrap(), &v4);
}

#[test]
fn engines_that_cannot_be_mapped_are_copied_and_verified() {
    let folder = Folder::new("unmapped");
    let (path, rib) = (folder.path("table.fibula"), table::<u32>(1, 100, NARROW));
    let columns = small_columns();
    for engine in fib::engines::<u32>() {
        if !engine.is_saved() {
            assert!(!engine.is_mapped());
            continue;
        }
        let fib = engine.build(&rib, Limits::default()).unwrap();
        let mut contents = Contents { columns: columns.iter().collect(), ..Contents::default() };
        contents.v4 = Half::new(&*fib, &rib);
        super::super::save(&path, &contents).unwrap();
        let file = TableFile::map(&path).unwrap();
        assert_eq!((file.is_mapped(), file.v4.is_mapped), (true, engine.is_mapped()), "{}", engine.name);
        assert_answers(&**file.v4.fib.as_ref().unwrap(), &rib);
        assert!(file.v4.routes.as_ref().unwrap().iter().eq(rib.iter()));
        assert_eq!(file.value(NextHop::new(2).unwrap()), Some(ColumnValue::U32(1)));
        // Damage of what is copied is refused.
        let mut bytes = fs::read(&path).unwrap();
        let section = damage::sections(&bytes)[1].clone();
        bytes[section.offset as usize] ^= 1;
        fs::write(&path, &bytes).unwrap();
        match TableFile::map(&path) {
            Ok(_) => assert!(engine.is_mapped(), "{}", engine.name),
            Err(error) => assert!(!engine.is_mapped() && error.is_damage(), "{}: {error}", engine.name),
        }
    }
}

/// Values of ids are the words of the file, or missing.
#[test]
fn whatever_the_words_of_mapped_columns_are_values_stay_within_them() {
    let folder = Folder::new("altered-columns");
    let (path, ..) = mappable(&folder, 50);
    let good = fs::read(&path).unwrap();
    let places: Vec<_> = damage::sections(&good)
        .into_iter()
        .filter(|section| section.name.starts_with("values/") && section.name != "values/columns")
        .flat_map(|section| section.offset..section.offset + section.bytes)
        .collect();
    let altered = folder.path("altered.fibula");
    let mut random = Random(5);
    let mut others = 0;
    for _ in 0..300 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(6) {
            bytes[places[random.below(places.len() as u64) as usize] as usize] = random.below(256) as u8;
        }
        fs::write(&altered, &bytes).unwrap();
        let file = TableFile::map(&altered).unwrap();
        for (found, column) in file.columns().iter().zip(&small_columns()) {
            assert_eq!((found.len(), found.kind()), (column.len(), column.kind()));
            others += u32::from(!found.iter().eq(column.iter()));
        }
        assert!(bytes == good || file.verify().unwrap_err().is_damage());
    }
    assert!(others > 100, "{others}");
}

/// The header and the section table are verified when a file is mapped. Other words can have any value.
#[test]
fn whatever_the_words_of_a_mapped_file_are_lookups_stay_within_it_and_end() {
    MAPPABLE.into_iter().for_each(stay_within);
}

fn stay_within(engines: [&str; 2]) {
    let folder = Folder::new(&format!("altered-{}", engines[0]));
    let (path, v4, v6) = mappable_of(engines, &folder, 300);
    let good = fs::read(&path).unwrap();
    let mut random = Random(11);
    let sections = good.len();
    let (keys4, keys6) = (keys(&v4), keys(&v6));
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let mut wrong = 0;
    for round in 0..60 {
        let mut bytes = good.clone();
        // Some bytes, or most of them.
        let altered = if round % 2 == 0 { 1 + random.below(3000) as usize } else { sections };
        for _ in 0..altered {
            let at = 8192 + random.below((good.len() - 8192) as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        let altered = folder.path("altered.fibula");
        fs::write(&altered, &bytes).unwrap();
        let Ok(file) = TableFile::map(&altered) else { continue };
        let mut is_right = true;
        for isa in Present::all() {
            let mut found = vec![None; keys4.len()];
            let fib = file.v4.fib.as_ref().unwrap();
            let answered = catch_unwind(AssertUnwindSafe(|| fib.lookup_batch_on(isa, &keys4, &mut found)));
            is_right &=
                answered.is_ok() && keys4.iter().zip(&found).all(|(&key, &found)| v4.lookup(key) == found);
            let mut found = vec![None; keys6.len()];
            let fib = file.v6.fib.as_ref().unwrap();
            let answered = catch_unwind(AssertUnwindSafe(|| fib.lookup_batch_on(isa, &keys6, &mut found)));
            is_right &=
                answered.is_ok() && keys6.iter().zip(&found).all(|(&key, &found)| v6.lookup(key) == found);
        }
        for (&key4, &key6) in keys4.iter().zip(&keys6).step_by(3) {
            let _ = catch_unwind(AssertUnwindSafe(|| file.v4.lookup(key4)));
            let _ = catch_unwind(AssertUnwindSafe(|| file.v6.lookup(key6)));
            let routes = file.v4.routes.as_ref().unwrap();
            let _ = catch_unwind(AssertUnwindSafe(|| routes.lookup_prefix(key4)));
        }
        assert!(file.verify().is_err());
        wrong += u32::from(!is_right);
    }
    std::panic::set_hook(quiet);
    // Other rounds alter what is verified.
    assert!(wrong > 10, "{wrong}");
}

#[test]
fn damage_of_what_is_verified_and_missing_bytes_are_refused() {
    let folder = Folder::new("damaged-map");
    let (path, ..) = mappable(&folder, 50);
    let good = fs::read(&path).unwrap();
    let altered = folder.path("altered.fibula");
    for at in (0..2000).step_by(3) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&altered, &bytes).unwrap();
        match TableFile::map(&altered) {
            Err(error) => assert!(error.is_damage() || error.is_foreign(), "byte {at}: {error}"),
            // The byte is in no section, or in one that is not verified.
            Ok(file) => assert!(at >= 64 + 64 * 19, "byte {at}: {file:?}"),
        }
    }
    for end in [0, 1, 63, 64, 500, 5000, good.len() - 1] {
        fs::write(&altered, &good[..end]).unwrap();
        assert!(TableFile::map(&altered).is_err(), "{end}");
    }
}

#[test]
fn damage_anywhere_is_found_where_all_sums_are_compared() {
    let folder = Folder::new("summed-map");
    let (path, v4, _) = mappable(&folder, 50);
    let file = TableFile::map_summed(&path).unwrap();
    assert!(file.is_mapped() && file.v4.is_mapped);
    assert_answers(&**file.v4.fib.as_ref().unwrap(), &v4);
    let good = fs::read(&path).unwrap();
    let altered = folder.path("altered.fibula");
    for section in damage::sections(&good) {
        for at in [section.offset, section.offset + section.bytes.saturating_sub(1)] {
            let mut bytes = good.clone();
            bytes[at as usize] ^= 0x10;
            fs::write(&altered, &bytes).unwrap();
            let error = TableFile::map_summed(&altered).unwrap_err();
            assert!(error.is_damage() && error.to_string().contains(&section.name), "byte {at}: {error}");
        }
    }
}
