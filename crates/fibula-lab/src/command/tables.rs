//! The tables and the addresses that are measured with.

use std::path::Path;

use fibula::net::{Family, Key};
use fibula::rib::{DualRib, Rib};
use fibula_workload::table::{made, remaining};

use fibula_cli::plumbing::{Failure, Messages, is_stdin, load};

use super::options::{RouteSource, Synth};
use crate::bench::reach::with_hosts;

/// The tables of both families, with their name in benchmark records.
pub(super) struct Tables {
    pub(super) name: String,
    pub(super) ribs: DualRib,
}

impl Tables {
    pub(super) fn new(source: &RouteSource, messages: Messages) -> Result<Self, Failure> {
        if let Some(path) = &source.table {
            let table = load(path, messages)?;
            return Ok(Self { name: name(path), ribs: table.ribs });
        }
        let mut tables = Self { name: "synth".to_owned(), ribs: DualRib::default() };
        for synth in &source.synth {
            let routes = match synth.family {
                Family::Ipv6 => fill(&mut tables.ribs.v6, synth)?,
                _ => fill(&mut tables.ribs.v4, synth)?,
            };
            tables.name.push_str(&format!("-{}-{routes}", synth.name));
        }
        Ok(tables)
    }

    /// Returns the number of families that have routes.
    pub(super) fn families(&self) -> u32 {
        u32::from(!self.ribs.v4.is_empty()) + u32::from(!self.ribs.v6.is_empty())
    }

    /// Keeps 1 in `one_in` routes of each table, and adds that to the name.
    pub(super) fn keep_one_in(&mut self, one_in: usize) -> Result<(), Failure> {
        self.ribs.v4 = keep_one_in(&self.ribs.v4, one_in)?;
        self.ribs.v6 = keep_one_in(&self.ribs.v6, one_in)?;
        self.name.push_str(&format!("-one-in-{one_in}"));
        Ok(())
    }

    /// Adds this many host routes to each table that has routes, and says so in the name.
    pub(super) fn add_hosts(&mut self, hosts: usize) -> Result<(), Failure> {
        add_hosts(&mut self.ribs.v4, hosts)?;
        add_hosts(&mut self.ribs.v6, hosts)?;
        self.name.push_str(&format!("-hosts-{hosts}"));
        Ok(())
    }
}

/// The seed of which routes are kept.
const KEPT_SEED: u64 = 1;

fn keep_one_in<K: Key>(rib: &Rib<K>, one_in: usize) -> Result<Rib<K>, Failure> {
    let routes: Vec<_> = rib.iter().collect();
    let mut kept = Rib::default();
    for route in remaining(&routes, one_in, KEPT_SEED) {
        kept.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
    }
    Ok(kept)
}

fn add_hosts<K: Key>(rib: &mut Rib<K>, hosts: usize) -> Result<(), Failure> {
    if rib.is_empty() {
        return Ok(());
    }
    let routes = with_hosts(rib, hosts).map_err(|error| Failure::BadInput(error.to_string()))?;
    for route in routes {
        rib.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
    }
    Ok(())
}

/// Generates routes, and returns how many.
fn fill<K: Key>(rib: &mut Rib<K>, synth: &Synth) -> Result<usize, Failure> {
    let made = made::<K>(&synth.name, |routes| synth.routes.unwrap_or(routes))
        .ok_or_else(|| Failure::WrongUse(format!("no table '{}' to generate", synth.name)))?;
    let routes = made.map_err(|error| Failure::WrongUse(format!("{}: {error}", synth.name)))?;
    for &route in &routes {
        rib.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
    }
    Ok(routes.len())
}

/// Returns the name of a file without its folder and extensions.
pub(super) fn name(path: &Path) -> String {
    if is_stdin(path) {
        return "stdin".to_owned();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.split('.').next() {
        Some(stem) if !stem.is_empty() => stem.to_owned(),
        _ => name.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_after_their_files() {
        assert_eq!(name(Path::new("/data/dfz4-2023.txt.xz")), "dfz4-2023");
        assert_eq!(name(Path::new("-")), "stdin");
        assert_eq!(name(Path::new(".hidden")), ".hidden");
    }
}
