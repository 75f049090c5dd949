//! `fibula bpf follow`, and how a table file is followed.

use std::cmp::Reverse;
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibula::Table;
use fibula::file::FileStamp;
use fibula::live::{TableError, TableKey};
use fibula::net::{Change, Key, Prefix, Route};
use fibula::rib::Rib;
use fibula_bpf::{BpfTable, Engine, FollowOptions, Follower, Grace, live_table};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::{FollowArgs, GraceName, failure, of_families, read};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::{plural, thousands};

/// Returns the changes from one table to another. Each address goes straight from its old answer to its new one, whatever the changes
/// are published with: an insert comes after those of longer prefixes, which are the answers below it, and a removal before those of
/// longer ones, which are the answers until then. All inserts come before the removals.
fn difference<K: Key>(before: &Rib<K>, after: &Rib<K>) -> Vec<Change<K>> {
    let mut inserts: Vec<Route<K>> =
        after.iter().filter(|route| before.get(route.prefix) != Some(route.next_hop)).collect();
    inserts.sort_by_key(|route| Reverse(route.prefix.len()));
    let mut removals: Vec<Prefix<K>> =
        before.iter().map(|route| route.prefix).filter(|prefix| after.get(*prefix).is_none()).collect();
    removals.sort_by_key(|prefix| prefix.len());
    let removals = removals.into_iter().map(Change::Remove);
    inserts.into_iter().map(Change::Insert).chain(removals).collect()
}

/// Applies the difference of routes, some at a time, and returns how many changes that were.
fn apply<K: TableKey>(table: &Table, before: &Rib<K>, after: &Rib<K>) -> Result<usize, TableError> {
    const SOME: usize = 1_024;
    let changes = difference(before, after);
    for some in changes.chunks(SOME) {
        let _ = table.apply(some)?;
    }
    Ok(changes.len())
}

/// Returns which files are at the paths. It is `None` for a path without one, and for a pipe, which can be read only once.
fn stamps(paths: &[PathBuf]) -> Vec<Option<FileStamp>> {
    let of = |path: &PathBuf| {
        let is_file = std::fs::metadata(path).is_ok_and(|facts| facts.is_file());
        if is_file { FileStamp::of(&File::open(path).ok()?).ok() } else { None }
    };
    paths.iter().map(of).collect()
}

/// The state of a run of `follow`: its maps and their engines, and the requests of signals.
pub(super) struct Following {
    pub(super) maps: Vec<BpfTable>,
    pub(super) pins: Vec<PathBuf>,
    pub(super) engines: Vec<Engine>,
    pub(super) options: FollowOptions,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) again: Arc<AtomicBool>,
}

impl Following {
    fn new(args: &FollowArgs) -> Result<Self, Failure> {
        let [stop, again] = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
        for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &again)] {
            signal_hook::flag::register(signal, Arc::clone(flag))
                .map_err(|error| Failure::NotAvailable(format!("signals: {error}")))?;
        }
        let open = |path: &PathBuf| BpfTable::open(path).map_err(failure);
        let maps = args.pin.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let engines: Vec<Engine> = maps.iter().map(|maps| maps.options().engine).collect();
        let is_pair = matches!(engines[..], [one, other] if one.family() != other.family());
        if engines.len() > 1 && !is_pair {
            return Err(Failure::WrongUse("maps that follow one table have different families".to_owned()));
        }
        let grace = match args.grace {
            GraceName::Auto => Grace::Auto,
            GraceName::Membarrier => Grace::Membarrier,
            GraceName::MapOfMaps => Grace::MapOfMaps,
        };
        let options = FollowOptions { grace, ..FollowOptions::default() };
        Ok(Self { maps, pins: args.pin.clone(), engines, options, stop, again })
    }
}

pub(super) fn run(args: &FollowArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let following = Following::new(args)?;
    match &args.feeds {
        Some(file) => super::feeds::run(file, args.once, following, messages),
        None => table(args, following, messages),
    }
}

fn table(args: &FollowArgs, following: Following, messages: Messages) -> Result<ExitCode, Failure> {
    let Following { maps, engines, options, stop, again, .. } = following;
    let paths = &args.source.table;
    let mut seen = stamps(paths);
    let mut ribs = of_families(read(&args.source, messages)?, &engines);
    let table = live_table(ribs.clone(), &engines).map_err(|error| Failure::BadInput(error.to_string()))?;
    let follower = Follower::start(maps, &table, options).map_err(failure)?;
    messages.note(format_args!("{} routes are in the maps", thousands(ribs.len() as u64)));
    while !args.once && !stop.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_millis(args.interval));
        follower.health().map_err(failure)?;
        let now = stamps(paths);
        if !again.swap(false, Ordering::Relaxed) && now == seen {
            continue;
        }
        // A file that is not there is being replaced.
        if now.iter().any(Option::is_none) && !paths.iter().any(|path| path.as_os_str() == "-") {
            continue;
        }
        seen = now;
        let after = match read(&args.source, messages) {
            Ok(after) => of_families(after, &engines),
            Err(error) => {
                let said = error.report().0.unwrap_or_default();
                messages.warning(format_args!("{said}: programs keep the answers that they have"));
                continue;
            }
        };
        let done =
            apply(&table, &ribs.v4, &after.v4).and_then(|v4| Ok(v4 + apply(&table, &ribs.v6, &after.v6)?));
        match done {
            Ok(changes) => {
                messages.note(format_args!(
                    "{} {}",
                    thousands(changes as u64),
                    plural(changes as u64, "change", "changes")
                ));
                ribs = after;
            }
            Err(error) => {
                messages.warning(format_args!("{error}: changes before it are made"));
                ribs = table.routes().map_err(|error| Failure::BadInput(error.to_string()))?;
            }
        }
    }
    drop(follower);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use fibula::net::NextHop;

    use super::*;

    /// Every table of a two-bit space with two next hops, to every other one, a change at a time.
    #[test]
    fn each_address_goes_straight_from_its_old_answer_to_its_new_one() {
        let prefixes: Vec<Prefix<u32>> = ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "0.0.0.0/2", "64.0.0.0/2"]
            .iter()
            .map(|prefix| prefix.parse().unwrap())
            .collect();
        let table = |number: usize| {
            let mut rib = Rib::default();
            for (at, &prefix) in prefixes.iter().enumerate() {
                if let Some(next_hop) = NextHop::new((number / 3_usize.pow(at as u32) % 3) as u32) {
                    rib.insert(Route::new(prefix, next_hop)).unwrap();
                }
            }
            rib
        };
        let answers = |rib: &Rib<u32>| {
            (0..4_u32).map(|at| rib.lookup_prefix(at << 30).map(|route| route.next_hop)).collect::<Vec<_>>()
        };
        for (before, after) in (0..243).flat_map(|before| (0..243).map(move |after| (before, after))) {
            let (mut rib, after) = (table(before), table(after));
            let (old, new) = (answers(&rib), answers(&after));
            for change in difference(&rib.clone(), &after) {
                rib.apply(&[change]).unwrap();
                for ((found, old), new) in answers(&rib).into_iter().zip(&old).zip(&new) {
                    assert!(found == *old || found == *new, "{before}");
                }
            }
            assert_eq!(answers(&rib), new);
        }
    }

    #[test]
    fn a_pipe_is_not_looked_into() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["table", "nowhere", "/dev/null"].map(|name| folder.path().join(name));
        std::fs::write(&paths[0], "10.0.0.0/8 1\n").unwrap();
        let first = stamps(&paths);
        assert!(first[0].is_some() && first[1].is_none() && first[2].is_none());
        std::fs::write(&paths[0], "10.0.0.0/8 2\n").unwrap();
        assert_ne!(stamps(&paths), first, "as long as before");
    }
}
