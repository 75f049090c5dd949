//! Who is asked for: structures of ours and rivals.

use fibula::fib::registry::Role;
use fibula::memory::Limits;
use fibula::net::Key;
use fibula_lab::bench::Contestant;
use fibula_lab::rival::{Source, sources};

use super::args::BenchArgs;
use super::world::World;
use crate::failure::Failure;
use crate::say::Say;

/// Names that were asked for.
pub(super) struct Asked {
    /// Structures and rivals; all structures where there are none.
    names: Vec<String>,
    /// Whether all rivals join.
    rivals: bool,
    /// Whether it is asked what is reached.
    reach: bool,
}

impl Asked {
    /// Names must be known in one family at least: what a family does not have is left out there.
    pub(super) fn new(args: &BenchArgs) -> Result<Self, Failure> {
        let ours = crate::algorithms::names();
        let rivals = [all_rivals::<u32>(), all_rivals::<u128>()].concat();
        for name in &args.algorithm {
            if ours.contains(&name.as_str()) {
                continue;
            }
            match rivals.iter().find(|rival| rival.name == name) {
                Some(Rival { get: None, .. }) => {}
                Some(Rival { get: Some(get), .. }) => {
                    return Err(Failure::WrongUse(format!("the rival '{name}' is absent: {get}")));
                }
                None => {
                    let rivals: Vec<_> = rivals.iter().map(|rival| rival.name).collect();
                    return Err(Failure::WrongUse(format!(
                        "no algorithm '{name}'; there are: {}; rivals: {}",
                        ours.join(", "),
                        rivals.join(", ")
                    )));
                }
            }
        }
        Ok(Self { names: args.algorithm.clone(), rivals: args.rivals, reach: args.reach })
    }

    /// Says which rivals would join if they were present, and how to get them.
    pub(super) fn name_the_absent(&self, world: &World, say: Say) {
        if !self.rivals {
            return;
        }
        let mut absent = Vec::new();
        if !world.v4.is_empty() {
            absent.extend(self::absent::<u32>());
        }
        if !world.v6.is_empty() {
            absent.extend(self::absent::<u128>());
        }
        for (rivals, source, get) in absent {
            say.note(format_args!("absent: {} ({source}); to have them, {get}", rivals.join(", ")));
        }
    }

    /// The contestants of one family.
    pub(super) fn contestants<K: Key>(&self) -> Vec<Contestant<K>> {
        let mut all = Contestant::all(Limits::default());
        all.extend(sources::<K>().into_iter().filter_map(|source| source.contestants).flatten());
        let named = |contestant: &Contestant<K>| self.names.contains(&contestant.name);
        all.retain(|contestant| match contestant.rival {
            true => self.rivals || named(contestant),
            // What judges is no contestant of what is to be reached.
            false if self.reach && matches!(contestant.role, Role::Oracle { .. }) => false,
            false => self.names.is_empty() || named(contestant),
        });
        all
    }
}

/// A rival's name, and how to get it where it is absent.
#[derive(Clone)]
struct Rival {
    name: &'static str,
    get: Option<&'static str>,
}

fn all_rivals<K: Key>() -> Vec<Rival> {
    let of = |source: Source<K>| {
        let get = source.contestants.is_none().then_some(source.get);
        source.rivals.into_iter().map(move |name| Rival { name, get })
    };
    sources::<K>().into_iter().flat_map(of).collect()
}

/// Rivals that are absent, their source and how to get it.
fn absent<K: Key>() -> Vec<(Vec<&'static str>, &'static str, &'static str)> {
    let absent = sources::<K>().into_iter().filter(|source| source.contestants.is_none());
    absent.map(|source| (source.rivals, source.name, source.get)).collect()
}
