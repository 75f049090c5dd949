//! Files that are replaced while a follower has them.

use std::fs;
use std::sync::Arc;

use super::super::{FileStamp, Follower, save};
use super::*;

fn put(path: &Path, rib: &Rib<u32>) {
    let fib = build("dir-17-bitmap", rib);
    let mut contents = Contents::default();
    contents.v4 = Half::new(&*fib, rib);
    save(path, &contents).unwrap();
}

fn follow(mut follower: Follower, path: &Path, tables: [&Rib<u32>; 2]) {
    let is = |follower: &Follower, rib| assert_answers(&**follower.table().v4.fib.as_ref().unwrap(), rib);
    is(&follower, tables[0]);
    let first = follower.stamp();
    assert!(!follower.poll().unwrap() && follower.stamp() == first);
    assert_eq!(first, FileStamp::of(&fs::File::open(path).unwrap()).unwrap());
    let before = Arc::clone(follower.table());
    put(path, tables[1]);
    is(&follower, tables[0]);
    assert!(follower.poll().unwrap() && !follower.poll().unwrap());
    is(&follower, tables[1]);
    let second = follower.stamp();
    assert!(second != first && second.to_string() != first.to_string());
    // A thread that still has the table before keeps it.
    assert_answers(&**before.v4.fib.as_ref().unwrap(), tables[0]);

    // A bad file is reported once, and the table before is kept. The same is true while there is no file.
    fs::write(path.with_extension("bad"), b"no table").unwrap();
    fs::rename(path.with_extension("bad"), path).unwrap();
    let error = follower.poll().unwrap_err();
    assert!(error.is_foreign() && error.path() == Some(path), "{error}");
    assert!(!follower.poll().unwrap());
    is(&follower, tables[1]);
    // The stamp is that of the table, not of the bad file.
    assert_eq!(follower.stamp(), second);
    fs::remove_file(path).unwrap();
    for _ in 0..2 {
        assert_eq!(
            follower.poll().unwrap_err().io().map(std::io::Error::kind),
            Some(std::io::ErrorKind::NotFound)
        );
    }
    is(&follower, tables[1]);
    put(path, tables[0]);
    assert!(follower.poll().unwrap());
    is(&follower, tables[0]);
}

#[test]
fn a_follower_has_the_new_table_and_keeps_the_old_one_if_that_is_bad() {
    let folder = Folder::new("followed");
    let path = folder.path("table.fibula");
    let tables = [table::<u32>(1, 100, NARROW), table::<u32>(2, 120, NARROW)];
    assert!(Follower::open(&path).is_err());
    put(&path, &tables[0]);
    follow(Follower::open(&path).unwrap(), &path, tables.each_ref());
    follow(Follower::map(&path).unwrap(), &path, tables.each_ref());
}
