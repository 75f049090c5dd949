//! Saves that end at every step, and the files that are left then.

use std::fs::{self, File};
use std::io::{self, Write};

use super::super::save::{Disk, save_with};
use super::*;

/// A file system that ends with the process: after a number of steps nothing works any more, not even tidying up.
struct Ending {
    left: std::rc::Rc<std::cell::Cell<usize>>,
}

/// Its files, which take a few bytes at a time.
struct Part {
    file: File,
    left: std::rc::Rc<std::cell::Cell<usize>>,
}

const AT_ONCE: usize = 700;

fn step(left: &std::cell::Cell<usize>) -> io::Result<()> {
    left.set(left.get().checked_sub(1).ok_or(io::ErrorKind::Other)?);
    Ok(())
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        step(&self.left)?;
        self.file.write(&bytes[..bytes.len().min(AT_ONCE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for Ending {
    type File = Part;

    fn create(&mut self, path: &Path, _: &Path) -> io::Result<Part> {
        step(&self.left)?;
        Ok(Part { file: File::create_new(path)?, left: self.left.clone() })
    }

    fn sync(&mut self, file: &mut Part) -> io::Result<()> {
        step(&self.left)?;
        file.file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        step(&self.left)?;
        fs::rename(from, to)
    }

    fn sync_folder(&mut self, _: &Path) -> io::Result<()> {
        step(&self.left)
    }

    fn remove(&mut self, path: &Path) {
        if step(&self.left).is_ok() {
            let _ = fs::remove_file(path);
        }
    }
}

#[test]
fn a_save_that_ends_anywhere_leaves_the_old_file_or_the_new_one() {
    let folder = Folder::new("killed");
    let path = folder.path("table.fibula");
    let (v4, v6) = (table::<u32>(1, 60, NARROW), Rib::<u128>::default());
    let later = table::<u32>(2, 80, NARROW);
    let contents = |rib: &Rib<u32>, then: &mut dyn FnMut(&Contents<'_>)| {
        let fib = build("range-btree", rib);
        let mut contents = Contents::default();
        contents.v4 = Half::new(&*fib, rib);
        then(&contents);
    };
    let is = |rib: &Rib<u32>| {
        let file = TableFile::open(&path).unwrap();
        assert!(file.v6.is_empty() && v6.is_empty());
        file.v4.routes.as_ref().unwrap().iter().eq(rib.iter()) && {
            assert_answers(&**file.v4.fib.as_ref().unwrap(), rib);
            true
        }
    };
    contents(&v4, &mut |contents| super::super::save(&path, contents).unwrap());
    let (mut steps, mut renamed) = (0, 0);
    loop {
        let left = std::rc::Rc::new(std::cell::Cell::new(steps));
        let mut saved = Ok(());
        contents(&later, &mut |contents| {
            saved = save_with(&mut Ending { left: left.clone() }, &path, contents);
        });
        if is(&later) {
            renamed += 1;
            contents(&v4, &mut |contents| super::super::save(&path, contents).unwrap());
        } else {
            assert!(saved.is_err() && is(&v4), "after {steps} steps");
        }
        if saved.is_ok() {
            break;
        }
        steps += 1;
    }
    // The steps: make the file, write it in several steps, sync it, rename it, sync the folder.
    assert!(steps > 6 && renamed == 2, "{steps} steps, {renamed} renamed");
}

#[test]
fn a_save_that_fails_leaves_nothing_else_in_the_folder() {
    struct Full(usize);
    struct FullFile(File, usize);
    impl Write for FullFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = self.1.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Disk for Full {
        type File = FullFile;
        fn create(&mut self, path: &Path, _: &Path) -> io::Result<FullFile> {
            Ok(FullFile(File::create_new(path)?, self.0))
        }
        fn sync(&mut self, _: &mut FullFile) -> io::Result<()> {
            Ok(())
        }
        fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
            fs::rename(from, to)
        }
        fn sync_folder(&mut self, _: &Path) -> io::Result<()> {
            Ok(())
        }
        fn remove(&mut self, path: &Path) {
            let _ = fs::remove_file(path);
        }
    }
    let folder = Folder::new("full");
    let path = folder.path("table.fibula");
    let error = save_with(&mut Full(100), &path, &Contents::default()).map(drop);
    error.unwrap();
    let rib = table::<u32>(1, 60, NARROW);
    let mut contents = Contents::default();
    contents.v4.routes = Some(&rib);
    let error = save_with(&mut Full(100), &path, &contents).unwrap_err();
    assert_eq!(error.io().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    assert_eq!(error.path(), Some(&*path));
    assert!(TableFile::open(&path).unwrap().v4.is_empty());
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["table.fibula"]);
    assert!(super::super::save(folder.path("no/folder"), &contents).unwrap_err().io().is_some());
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_the_file_that_is_replaced() {
    let folder = Folder::new("link");
    let (path, link) = (folder.path("table.fibula"), folder.path("link"));
    super::super::save(&path, &Contents::default()).unwrap();
    std::os::unix::fs::symlink("table.fibula", &link).unwrap();
    let rib = table::<u32>(1, 60, NARROW);
    let mut contents = Contents::default();
    contents.v4.routes = Some(&rib);
    super::super::save(&link, &contents).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(!TableFile::open(&path).unwrap().v4.is_empty());
}

#[cfg(unix)]
#[test]
fn a_link_to_nothing_leads_to_the_file_that_is_made() {
    let folder = Folder::new("dangling");
    let (path, link) = (folder.path("table.fibula"), folder.path("link"));
    std::os::unix::fs::symlink("table.fibula", &link).unwrap();
    super::super::save(&link, &Contents::default()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(TableFile::open(&path).unwrap().v4.is_empty());
}

#[cfg(unix)]
#[test]
fn a_save_keeps_the_mode_of_the_file_that_it_replaces() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    let path = folder.path("table.fibula");
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
    for kept in [0o600, 0o640, 0o644, 0o400] {
        super::super::save(&path, &Contents::default()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        super::super::save(&path, &Contents::default()).unwrap();
        assert_eq!(mode(), kept, "{kept:o}");
    }
}

#[test]
fn the_next_save_removes_what_killed_ones_left() {
    let folder = Folder::new("abandoned");
    let path = folder.path("table.fibula");
    let (left, held) = (folder.path(".table.fibula.7-0.part"), folder.path(".table.fibula.7-1.part"));
    let others =
        [".table.fibula.x.part", ".other.fibula.7-0.part", ".table.fibula.7-0"].map(|name| folder.path(name));
    fs::write(&left, "x").unwrap();
    others.iter().for_each(|other| fs::write(other, "x").unwrap());
    let writer = File::create_new(&held).unwrap();
    writer.lock().unwrap();
    super::super::save(&path, &Contents::default()).unwrap();
    assert!(!left.exists() && held.exists() && others.iter().all(|other| other.exists()));
    drop(writer);
    super::super::save(&path, &Contents::default()).unwrap();
    assert!(!held.exists());
}
