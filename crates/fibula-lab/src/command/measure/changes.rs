//! The cache lines of `dir-17-bitmap` and `dir-btree` that changes of a table's routes would rewrite.

use fibula::memory::Limits;
use fibula::unstable::engines::{Dir17Bitmap, DirBtree};
use fibula_feed::{LoadOptions, Loader};

use super::Outcome;

pub(super) fn run(file: &str) -> Outcome {
    let ribs = Loader::new(LoadOptions::default()).load(file)?.ribs;
    let (v4, v6) =
        (Dir17Bitmap::build(&ribs.v4, Limits::default())?, DirBtree::build(&ribs.v6, Limits::default())?);
    report("dir-17-bitmap", ribs.v4.iter().map(|route| v4.lines_of_change(route.prefix)));
    report("dir-btree", ribs.v6.iter().map(|route| v6.lines_of_change(route.prefix)));
    Ok(())
}

/// Prints the cache lines of changes that one word publishes, and counts the others.
fn report(name: &str, changes: impl Iterator<Item = Option<usize>>) {
    let (mut lines, mut several) = (Vec::new(), 0);
    for change in changes {
        match change {
            Some(count) => lines.push(count),
            None => several += 1,
        }
    }
    let count = lines.len();
    if count == 0 {
        return;
    }
    lines.sort_unstable();
    let mean = lines.iter().sum::<usize>() as f64 / count as f64;
    let at = |share: usize| lines[(count * share / 100).min(count - 1)];
    println!(
        "{name}: {count} routes that one word publishes: {mean:.1} lines on average, {} in the median,",
        at(50)
    );
    println!("  99 % at most {}, all at most {}; {several} routes meet several words", at(99), at(100));
}
