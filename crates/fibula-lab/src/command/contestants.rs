//! Which contestants to measure: our engines and rivals.

use std::path::PathBuf;
use std::sync::Arc;

use fibula::fib::registry::Role;
use fibula::memory::Limits;
use fibula::net::Key;
use fibula_cli::plumbing::{Failure, Messages};

use super::engines::ENGINES;
use super::options::StructureArgs;
use super::tables::Tables;
use crate::bench::Contestant;
use crate::rival::{Source, Tools, sources};

/// The contestants that the options select.
pub(super) struct Selection {
    /// Engines and rivals; all engines where there are none.
    names: Vec<String>,
    /// Whether all rivals join.
    rivals: bool,
    /// Whether our oracles take part.
    oracles: bool,
    /// How to find rivals.
    tools: Tools,
}

impl Selection {
    /// Returns the selection of these options. Each name must be known in at least one family, and is left out in a
    /// family that lacks it.
    pub(super) fn new(args: &StructureArgs, rivals: bool, messages: Messages) -> Result<Self, Failure> {
        let ours = fibula_workload::engines::names(ENGINES);
        let tools = tools(messages);
        let is_ours =
            |name: &str| ours.contains(&name) || is_variant::<u32>(name) || is_variant::<u128>(name);
        let theirs: Vec<&String> = args.engine.iter().filter(|name| !is_ours(name)).collect();
        // Looking for rivals starts programs, so only when one is named.
        let known = match theirs.is_empty() {
            true => Vec::new(),
            false => [all_rivals::<u32>(&tools), all_rivals::<u128>(&tools)].concat(),
        };
        for name in theirs {
            match known.iter().find(|rival| rival.name == name) {
                Some(RivalListing { get: None, .. }) => {}
                Some(RivalListing { get: Some(get), .. }) => {
                    return Err(Failure::NotAvailable(format!(
                        "the rival '{name}' is not installed; to get it: {get}"
                    )));
                }
                None => {
                    let names: Vec<&str> =
                        ours.iter().copied().chain(known.iter().map(|rival| rival.name)).collect();
                    return Err(Failure::WrongUse(fibula_workload::engines::unknown(ENGINES, name, &names)));
                }
            }
        }
        Ok(Self { names: args.engine.clone(), rivals, oracles: true, tools })
    }

    /// Returns the selection without oracles: they judge, and have no targets.
    pub(super) fn without_oracles(self) -> Self {
        Self { oracles: false, ..self }
    }

    /// Names the rivals that are not installed, and how to get them.
    pub(super) fn name_the_absent(&self, tables: &Tables, messages: Messages) {
        if !self.rivals {
            return;
        }
        let mut absent = Vec::new();
        if !tables.ribs.v4.is_empty() {
            absent.extend(self::absent::<u32>(&self.tools));
        }
        if !tables.ribs.v6.is_empty() {
            absent.extend(self::absent::<u128>(&self.tools));
        }
        let mut named = Vec::new();
        for (rivals, source, get) in absent {
            let note = format!("not installed: {} ({source}); to get them: {get}", rivals.join(", "));
            if !named.contains(&note) {
                messages.note(&note);
                named.push(note);
            }
        }
    }

    /// Returns the contestants of one family.
    pub(super) fn contestants<K: Key>(&self) -> Vec<Contestant<K>> {
        let variants = fibula_published::variants::<K>().into_iter();
        let variants = variants.filter(|variant| self.names.iter().any(|name| name == variant.name));
        let engines = ENGINES.all::<K>().into_iter().chain(variants);
        let mut all: Vec<_> = engines.map(|engine| Contestant::new(engine, Limits::default())).collect();
        let ours: Vec<_> = all.iter().map(|contestant| contestant.name.clone()).collect();
        if self.rivals || self.names.iter().any(|name| !ours.contains(name)) {
            all.extend(
                sources::<K>(&self.tools).into_iter().filter_map(|source| source.contestants).flatten(),
            );
        }
        let named = |contestant: &Contestant<K>| self.names.contains(&contestant.name);
        all.retain(|contestant| match contestant.rival {
            true => self.rivals || named(contestant),
            false if !self.oracles && matches!(contestant.role, Role::Oracle { .. }) => false,
            false => self.names.is_empty() || named(contestant),
        });
        all
    }
}

/// Returns whether this is an engine with other parameters than the listed ones.
fn is_variant<K: Key>(name: &str) -> bool {
    fibula_published::variants::<K>().iter().any(|variant| variant.name == name)
}

/// The variables that name a Python interpreter, the command of Go, and where compiled rivals are kept.
const PYTHON: &str = "FIBULA_PYTHON";
const GO: &str = "FIBULA_GO";
const FOLDER: &str = "FIBULA_RIVALS";

/// How to find rivals, from the environment.
fn tools(messages: Messages) -> Tools {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut tools = Tools::default();
    tools.python = path(PYTHON).unwrap_or(tools.python);
    tools.go = path(GO).unwrap_or(tools.go);
    let cache = || path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
    tools.folder = path(FOLDER).or_else(|| cache().map(|cache| cache.join("fibula").join("rivals")));
    // A relative name would mean another place to a program that is started elsewhere.
    tools.folder = tools.folder.and_then(|folder| std::path::absolute(folder).ok());
    tools.say = Arc::new(move |what| messages.note(what));
    #[cfg(feature = "crates")]
    {
        tools.heap = Some(super::heap::allocated);
    }
    tools
}

/// A rival's name, and how to get it where it is absent.
#[derive(Clone)]
struct RivalListing {
    name: &'static str,
    get: Option<String>,
}

fn all_rivals<K: Key>(tools: &Tools) -> Vec<RivalListing> {
    let of = |source: Source<K>| {
        let get = source.contestants.is_none().then_some(source.get);
        source.rivals.into_iter().map(move |name| RivalListing { name, get: get.clone() })
    };
    sources::<K>(tools).into_iter().flat_map(of).collect()
}

/// Rivals that are absent, their source and how to get it.
fn absent<K: Key>(tools: &Tools) -> Vec<(Vec<&'static str>, &'static str, String)> {
    let absent = sources::<K>(tools).into_iter().filter(|source| source.contestants.is_none());
    absent.map(|source| (source.rivals, source.name, source.get)).collect()
}
