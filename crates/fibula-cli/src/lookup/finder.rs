//! Looks up addresses: in the table itself at first, in a faster engine once there are many. A compiled table without
//! routes answers by its engine alone, which does not know the matched prefix.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fibula::auto::{self, Workload};
use fibula::fib::registry::{self, Engine};
use fibula::fib::{BuildError, Fib, Match, WithLength};
use fibula::file::{Part, StoredRoutes};
use fibula::memory::Limits;
use fibula::net::{Key, Keys, Prefix, Route, Routes};
use fibula::rib::Rib;

use crate::calibration;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::text::{bytes, thousands};

/// Addresses of a family that the table answers before an engine is built. Building one for a full table takes about
/// as long as this many lookups in the table.
const TABLE_ANSWERS: usize = 65_536;

/// The routes of one family.
#[derive(Clone, Copy)]
pub(super) enum Table<'a, K: Key> {
    Rib(&'a Rib<K>),
    /// Those of a compiled table.
    File(&'a StoredRoutes<K>),
}

impl<'a, K: Key> Table<'a, K> {
    fn routes(self) -> &'a dyn Routes<K> {
        match self {
            Self::Rib(rib) => rib,
            Self::File(routes) => routes,
        }
    }

    fn lookup_prefix(self, key: K) -> Option<Route<K>> {
        match self {
            Self::Rib(rib) => rib.lookup_prefix(key),
            Self::File(routes) => routes.lookup_prefix(key),
        }
    }
}

/// The length of a prefix that is not known.
pub(super) const NO_PREFIX: u8 = u8::MAX;

/// Finds the routes of one family.
pub(super) struct Finder<'a, K: Key> {
    table: Option<Table<'a, K>>,
    limits: Limits,
    stage: Stage<'a, K>,
    /// The stage after the table, once building an engine has paid. Threads that come first wait for it.
    next: OnceLock<Result<Stage<'a, K>, String>>,
    answered_by_table: AtomicUsize,
    answered_by_structure: AtomicUsize,
}

enum Stage<'a, K: Key> {
    /// The table answers until building an engine pays.
    Table { forced: Option<Engine<K>> },
    /// No engine could be built.
    TableForGood,
    /// The engine of a compiled table, by its name.
    Compiled(&'static str, &'a dyn Fib<K>),
    /// The same, where it knows the length of the matched prefix.
    CompiledWithLength(&'static str, &'a WithLength<K>),
    Structure {
        name: &'static str,
        structure: WithLength<K>,
        build_time: Duration,
        /// Why it was chosen, if the user did not choose it.
        why: Option<String>,
    },
}

impl<'a, K: Key> Finder<'a, K> {
    /// Uses `engine` from the first address on, if it supports this family.
    pub(super) fn new(table: Table<'a, K>, limits: Limits, engine: Option<&str>) -> Self {
        let forced = engine.and_then(|name| registry::find(name).ok());
        let stage = if table.routes().is_empty() { Stage::TableForGood } else { Stage::Table { forced } };
        Self::with(Some(table), limits, stage)
    }

    /// Uses a compiled table: its engine if that knows the matched prefix, or its routes, or its engine alone.
    pub(super) fn compiled(part: &'a Part<K>, limits: Limits, engine: Option<&str>) -> Self {
        let with_length = part.fib.as_deref().and_then(Fib::with_length).zip(part.engine);
        if let Some((fib, name)) = with_length.filter(|&(_, name)| engine.is_none_or(|wanted| wanted == name))
        {
            return Self::with(None, limits, Stage::CompiledWithLength(name, fib));
        }
        if let Some(routes) = &part.routes {
            return Self::new(Table::File(routes), limits, engine);
        }
        let stage = match (part.engine, part.fib.as_deref()) {
            (Some(name), Some(fib)) => Stage::Compiled(name, fib),
            _ => Stage::TableForGood,
        };
        Self::with(None, limits, stage)
    }

    fn with(table: Option<Table<'a, K>>, limits: Limits, stage: Stage<'a, K>) -> Self {
        let (answered_by_table, answered_by_structure) = Default::default();
        Self { table, limits, stage, next: OnceLock::new(), answered_by_table, answered_by_structure }
    }

    /// Appends the longest match of each key to `found`.
    #[inline]
    pub(super) fn find(
        &self,
        keys: &[K],
        found: &mut Vec<Option<Match>>,
        messages: Messages,
    ) -> Result<(), Failure> {
        if keys.is_empty() {
            return Ok(());
        }
        let stage = self.stage(keys.len(), messages)?;
        let answered = match stage {
            Stage::Structure { structure, .. } => {
                let first = found.len();
                found.resize(first + keys.len(), None);
                structure.batch(Keys::Host(keys)).run(&mut found[first..]);
                &self.answered_by_structure
            }
            Stage::CompiledWithLength(_, fib) => {
                let first = found.len();
                found.resize(first + keys.len(), None);
                fib.batch(Keys::Host(keys)).run(&mut found[first..]);
                &self.answered_by_structure
            }
            Stage::Compiled(_, fib) => {
                let mut next_hops = vec![None; keys.len()];
                fib.lookup_batch(keys, &mut next_hops);
                let unknown = |next_hop| Match { next_hop, prefix_len: NO_PREFIX };
                found.extend(next_hops.into_iter().map(|next_hop| next_hop.map(unknown)));
                &self.answered_by_structure
            }
            Stage::Table { .. } | Stage::TableForGood => {
                found.extend(keys.iter().map(|&key| {
                    let route = self.table?.lookup_prefix(key)?;
                    Some(Match { next_hop: route.next_hop, prefix_len: route.prefix.len() })
                }));
                &self.answered_by_table
            }
        };
        answered.fetch_add(keys.len(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the engine or routes that answer the next `count` keys. Builds an engine if it is worth it now.
    fn stage(&self, count: usize, messages: Messages) -> Result<&Stage<'a, K>, Failure> {
        let Stage::Table { forced } = self.stage else { return Ok(&self.stage) };
        let so_far = self.answered_by_table.load(Ordering::Relaxed);
        if forced.is_none() && self.next.get().is_none() && so_far + count <= TABLE_ANSWERS {
            return Ok(&self.stage);
        }
        match self.next.get_or_init(|| self.build(forced, count, messages)) {
            Ok(stage) => Ok(stage),
            Err(reason) => Err(Failure::BadInput(reason.clone())),
        }
    }

    fn build(
        &self,
        forced: Option<Engine<K>>,
        batch: usize,
        messages: Messages,
    ) -> Result<Stage<'a, K>, String> {
        let Some(table) = self.table else { return Ok(Stage::TableForGood) };
        if let Some(engine) = forced {
            return self.build_one(table, engine).map_err(|error| reason(table, &error));
        }
        let machine = calibration::cached(messages);
        let wanted = Workload { batch, machine, ..Workload::default() }.with_table(table.routes());
        let chosen = auto::choose::<K>(&wanted, None);
        let others = auto::rank::<K>(&wanted);
        let mut refused = None;
        for choice in chosen.into_iter().chain(others) {
            match self.build_one(table, choice.engine) {
                Ok(Stage::Structure { name, structure, build_time, .. }) => {
                    let why = Some(choice.reason.to_string());
                    return Ok(Stage::Structure { name, structure, build_time, why });
                }
                Ok(stage) => return Ok(stage),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        if let Some(error) = refused {
            let reason = reason(table, &error);
            messages.warning(format_args!("{reason}; using the table itself, which is slower"));
        }
        Ok(Stage::TableForGood)
    }

    fn build_one(&self, table: Table<'_, K>, engine: Engine<K>) -> Result<Stage<'a, K>, BuildError> {
        let start = Instant::now();
        let structure = WithLength::build(&engine, table.routes(), self.limits)?;
        let build_time = start.elapsed();
        Ok(Stage::Structure { name: engine.name, structure, build_time, why: None })
    }

    /// Returns the engines used and how many addresses each answered, as text; `None` if there were none.
    pub(super) fn stats(&self) -> Option<String> {
        let mut parts = Vec::new();
        let by_table = self.answered_by_table.load(Ordering::Relaxed);
        let by_structure = thousands(self.answered_by_structure.load(Ordering::Relaxed));
        if by_table > 0 {
            parts.push(format!("{} by the table (RIB)", thousands(by_table)));
        }
        let stage = self.next.get().and_then(|next| next.as_ref().ok()).unwrap_or(&self.stage);
        if let Stage::Structure { name, structure, build_time, why } = stage {
            parts.push(format!(
                "{by_structure} by {name} ({}{}, built in {:.0} ms)",
                why.as_ref().map(|why| format!("{why}; ")).unwrap_or_default(),
                bytes(structure.memory().lookup_bytes),
                build_time.as_secs_f64() * 1e3,
            ));
        }
        let compiled = match stage {
            Stage::Compiled(name, fib) => Some((name, fib.memory())),
            Stage::CompiledWithLength(name, fib) => Some((name, fib.memory())),
            _ => None,
        };
        if let Some((name, memory)) = compiled
            && by_structure != "0"
        {
            let size = bytes(memory.lookup_bytes);
            parts.push(format!("{by_structure} by {name} ({size}, as compiled)"));
        }
        (!parts.is_empty()).then(|| format!("{} answers: {}", K::FAMILY, parts.join(", ")))
    }
}

/// Returns why an engine could not be built, counted in next hops of the table: the engine counts each next
/// hop once for every prefix length it occurs with.
fn reason<K: Key>(table: Table<'_, K>, error: &BuildError) -> String {
    let Some((_, limit, _)) = error.exceeded().filter(|(what, ..)| what.starts_with("next hops")) else {
        return error.to_string();
    };
    let mut all = HashSet::new();
    let _ = table.routes().visit(Prefix::ALL, &mut |route| {
        all.insert(route.next_hop);
        ControlFlow::Continue(())
    });
    let next_hops = all.len();
    let (name, most, count) = (error.engine(), thousands(limit), thousands(next_hops));
    if next_hops as u64 > limit {
        format!("{name}: at most {most} next hops, this table has {count}")
    } else {
        format!(
            "{name}: this table's {count} next hops occur with too many prefix lengths: at most {most} combinations \
             fit"
        )
    }
}
