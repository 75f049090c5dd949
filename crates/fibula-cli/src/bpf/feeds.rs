//! How the feeds of routing daemons are followed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fibula::rib::DualRib;
use fibula_bpf::{BpfError, BpfTable, Follower, live_table};
use fibula_router::config::NumberedConfig;
use fibula_router::control::{Level, NumberedFeeds};

use super::failure;
use super::follow::Following;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::thousands;

/// How long to sleep when no feed has changed anything.
const IDLE: Duration = Duration::from_millis(20);

pub(super) fn run(
    file: &Path,
    once: bool,
    following: Following,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    let Following { maps, pins, engines, options, stop, again } = following;
    let config = read(file)?;
    refuse_second(&maps, &pins)?;
    let table =
        live_table(DualRib::default(), &engines).map_err(|error| Failure::BadInput(error.to_string()))?;
    let folder: PathBuf = file.parent().unwrap_or(Path::new("")).into();
    let mut feeds = NumberedFeeds::start(&config, &folder, table.clone(), &stop)
        .map_err(|error| Failure::NotAvailable(error.to_string()))?;
    let mut log = |level, text: &str| match level {
        Level::Warning => messages.warning(text),
        Level::Note => messages.note(text),
    };
    // Programs keep the answers that are in the maps until the first tables of the feeds are whole.
    let (mut maps, mut follower): (_, Option<Follower>) = (Some(maps), None);
    let done = loop {
        let is_more = feeds.turn(&mut log);
        if let Some(Err(error)) = follower.as_ref().map(Follower::health) {
            break Err(failure(error));
        }
        if stop.load(Ordering::Relaxed) || (once && follower.is_some()) {
            break Ok(ExitCode::SUCCESS);
        }
        if again.swap(false, Ordering::Relaxed) {
            let reloaded = read(file).map_err(|error| error.report().0.unwrap_or_default());
            match reloaded.and_then(|config| feeds.reload(&config).map_err(|error| error.to_string())) {
                Ok(()) => messages.note(format_args!("{} reloaded", file.display())),
                Err(reason) => messages.warning(format_args!("file of feeds not reloaded: {reason}")),
            }
        }
        if is_more {
            continue;
        }
        if feeds.awaited().is_empty()
            && let Some(maps) = maps.take()
        {
            let late = feeds.without_table();
            if !late.is_empty() {
                messages.warning(format_args!(
                    "no full table of {} in time: programs get the routes that are there",
                    late.join(", ")
                ));
            }
            match Follower::start(maps, &table, options) {
                Ok(started) => follower = Some(started),
                Err(error) => break Err(failure(error)),
            }
            let routes = table.len().map_err(|error| Failure::BadInput(error.to_string()))?;
            messages.note(format_args!("{} routes are in the maps", thousands(routes as u64)));
        }
        std::thread::park_timeout(IDLE);
    };
    // Before the feeds end, so that nothing of that reaches programs.
    drop(follower);
    stop.store(true, Ordering::Relaxed);
    feeds.join();
    done
}

fn read(file: &Path) -> Result<NumberedConfig, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::opening(file, &error))?;
    NumberedConfig::parse(&text).map_err(|error| Failure::BadInput(format!("{}: {error}", file.display())))
}

/// Refuses maps that have a follower before any feed is opened, rather than when the first tables are there.
fn refuse_second(maps: &[BpfTable], pins: &[PathBuf]) -> Result<(), Failure> {
    for (maps, path) in maps.iter().zip(pins) {
        let state = maps.state();
        if state.is_followed {
            return Err(failure(BpfError::Busy { path: path.clone(), process: state.follower }));
        }
    }
    Ok(())
}
