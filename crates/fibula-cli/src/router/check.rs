//! Configurations, read and checked.

use std::path::Path;
use std::process::ExitCode;

use fibula::fib::registry::Engines;
use fibula_router::config::{Config, FeedKind};
use fibula_router::sampling::origins::Origins;

use crate::failure::Failure;
use crate::load;
use crate::messages::Messages;
use crate::text::plural;

/// Reads and checks a configuration.
pub(super) fn read(path: &Path, engines: Engines) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::opening(path, &error))?;
    Config::parse_among(&text, engines)
        .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))
}

/// Checks a configuration and its files of routes.
pub(super) fn check(path: &Path, engines: Engines) -> Result<ExitCode, Failure> {
    let config = read(path, engines)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut routes = config.routes.len();
    for table in &config.tables {
        let table = load::load(&folder.join(&table.path), Messages::new(false))?;
        routes += table.ribs.len();
    }
    let sets = config
        .rule_sets(folder)
        .map_err(|error| Failure::BadInput(format!("{}: {error}", path.display())))?;
    let played = config.feeds.iter().filter_map(|feed| match &feed.kind {
        FeedKind::Mrt { files, .. } => Some(files),
        _ => None,
    });
    for file in played.flatten() {
        let file = folder.join(file);
        std::fs::metadata(&file).map_err(|error| Failure::opening(&file, &error))?;
    }
    if let Some(plan) = &config.sampling
        && let Some(origins) = &plan.origins
    {
        Origins::load(&folder.join(origins)).map_err(|error| {
            let (line, file) = (plan.origins_line, origins.display());
            Failure::BadInput(format!("{}: line {line}: {file}: {error}", path.display()))
        })?;
    }
    #[cfg(target_os = "linux")]
    for doubt in fibula_router::control::doubts(&config) {
        Messages::new(false).warning(doubt);
    }
    let rules = config.filter.forward.rules.len() + config.filter.local.rules.len();
    let mut counts = vec![
        (config.interfaces.len(), "interface", "interfaces"),
        (config.vrfs.len(), "VRF", "VRFs"),
        (routes, "route", "routes"),
        (config.feeds.len(), "feed", "feeds"),
        (config.threads, "thread", "threads"),
    ];
    if rules > 0 || !sets.lists.is_empty() {
        counts.push((rules, "rule", "rules"));
        counts.push((sets.lists.values().sum(), "prefix in lists", "prefixes in lists"));
    }
    let counts: Vec<String> = counts
        .into_iter()
        .map(|(count, one, many)| format!("{count} {}", plural(count as u64, one, many)))
        .collect();
    println!("{}: {}: no errors", path.display(), counts.join(", "));
    Ok(ExitCode::SUCCESS)
}
