//! Measures the figures that the targets need.

use core::time::Duration;

use fibula::fib::registry::Role;
use fibula::net::{Key, Routes};
use fibula::simd::Isa;

use super::super::contestant::{Contestant, least_with};
use super::super::field::{Entry, Field, KeySet, LaneStart, race};
use super::super::key_sets::Traffic;
use super::super::peers;
use super::super::plan::{Estimate, Order, Plan, RUNS_MIN};
use super::super::row::Row;
use super::super::runner::{BenchError, Progress, Steps, cells_of, entries, estimate, survey};
use super::live::{self, Amount};
use super::targets::{Bound, Figure, Peers, Race, SMALL, TARGETS, Target, Variant};
use super::{Measured, RUNS, Small, in_order, tables};

pub(super) struct Measure<'a, K: Key> {
    pub(super) plan: &'a Plan,
    pub(super) contestants: &'a [Contestant<K>],
    /// Names of our own engines.
    pub(super) ours: &'a [String],
    pub(super) progress: &'a mut dyn FnMut(Progress<'_>),
}

/// Of each group of peers, this many of the fastest are in a race.
const FASTEST: usize = 2;

/// Shares of the plan's time.
const SURVEY: f64 = 0.4;
const RACES: f64 = 0.35;
const PAIRS: f64 = 0.05;
const HOSTS: f64 = 0.05;
const SMALLS: f64 = 0.1 / SMALL.len() as f64;

impl<'a, K: Key> Measure<'a, K> {
    pub(super) fn everything(
        &mut self,
        routes: &dyn Routes<K>,
        hosts: usize,
        measured: &mut Measured,
    ) -> Result<(), BenchError> {
        self.small(measured)?;
        self.bytes(routes, measured);
        self.live(routes, measured);
        let plan = self.part(SURVEY, &["rnd", "match", "zipf", "seq"]);
        let traffic = Traffic::of_plan(&plan, routes)?;
        let ours = self.ours;
        let is_own = |c: &Contestant<K>| !c.rival && ours.contains(&c.name);
        let is_in = |c: &Contestant<K>| is_own(c) || peers::is_peer(&c.name);
        let (field, rows) = self.survey(&plan, routes, &is_in, &traffic)?;
        measured.survey = rows;
        let sets: Vec<KeySet<'_, K>> = traffic.iter().map(|traffic| field.set(traffic, false)).collect();
        let set = |name: &str| sets.iter().zip(&traffic).find(|(_, of)| of.name == name).map(|(set, _)| set);
        let races = races::<K>(None);
        for race in &races {
            let Some(set) = set(race.traffic) else { continue };
            let starts = self.starts(&field, set, &measured.survey, *race);
            let rows = self.race(&starts, RACES / races.len() as f64);
            measured.races.push((*race, rows));
        }
        if let Some(set) = set("match") {
            self.cores(&field, set, measured);
        }
        self.hosts(routes, hosts, &field, &sets, &traffic, measured)
    }

    fn is_own(&self, contestant: &Contestant<K>) -> bool {
        !contestant.rival && self.ours.contains(&contestant.name)
    }

    /// Returns the plan of a survey with this share of the time. It only has to find the fastest ways, among all.
    fn part(&self, share: f64, traffic: &[&str]) -> Plan {
        Plan {
            traffic: traffic.iter().map(|&name| name.to_owned()).collect(),
            seconds: self.plan.seconds * share,
            every_isa: true,
            runs: RUNS_MIN,
            ..self.plan.clone()
        }
    }

    /// Builds these contestants, and times them with this traffic.
    fn survey<'f>(
        &mut self,
        plan: &Plan,
        routes: &'f dyn Routes<K>,
        is_in: &dyn Fn(&Contestant<K>) -> bool,
        traffic: &[Traffic<K>],
    ) -> Result<(Field<'f, K>, Vec<Row>), BenchError>
    where
        'a: 'f,
    {
        let mut entries: Vec<Entry<'a, K>> = entries(plan, self.contestants)?;
        entries.retain(|(contestant, _)| is_in(contestant));
        let cells = cells_of(plan, traffic);
        let estimate = estimate(plan, &entries, &cells);
        let mut steps = Steps::new(estimate, self.progress);
        let field = Field::new(plan, routes, entries, &mut steps)?;
        let rows = survey(plan, &field, traffic, &cells, estimate, &mut steps)?;
        Ok((field, rows))
    }

    /// Returns our own engines and the fastest of their peers, each in the fastest way of the survey.
    fn starts<'f>(
        &self,
        field: &'f Field<'f, K>,
        set: &'f KeySet<'f, K>,
        survey: &[Row],
        race: Race,
    ) -> Vec<LaneStart<'f, K>> {
        let mut chosen: Vec<&Row> = Vec::new();
        for name in self.ours {
            chosen.extend(fastest(survey, race, race.own, &|row| row.is_ours() && row.engine == *name));
        }
        for group in groups::<K>(race) {
            // The fastest of each engine, and of these the fastest ones.
            let mut best: Vec<&Row> = Vec::new();
            for racer in &field.racers {
                let name = &racer.contestant.name;
                let is = |row: &Row| row.engine == *name && group.contain(row);
                best.extend(fastest(survey, race, race.theirs, &is));
            }
            best.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
            for row in best.into_iter().take(FASTEST) {
                if !chosen.contains(&row) {
                    chosen.push(row);
                }
            }
        }
        chosen.into_iter().filter_map(|row| start(field, set, row, 1)).collect()
    }

    /// Times these in turn, with this share of the time.
    fn race(&mut self, starts: &[LaneStart<'_, K>], share: f64) -> Vec<Row> {
        let runs = self.plan.runs.max(RUNS);
        let lanes = Plan { runs, seconds: self.plan.seconds * share, ..self.plan.clone() };
        let estimate = Estimate { steps: starts.len() * (runs + 1), ..lanes.estimate(0, starts.len(), 0, 0) };
        race(starts, runs, estimate.slot, &mut Steps::new(estimate, self.progress))
    }

    /// Times two ways of each of our engines in turn.
    fn pairs(&mut self, figure: Figure, pairs: Vec<[LaneStart<'_, K>; 2]>, measured: &mut Measured) {
        let starts: Vec<_> = pairs.into_iter().flatten().collect();
        let rows = self.race(&starts, PAIRS / 2.0);
        measured.pairs.extend(rows.as_chunks::<2>().0.iter().map(|pair| (figure, pair.clone())));
    }

    fn cores(&mut self, field: &Field<'_, K>, set: &KeySet<'_, K>, measured: &mut Measured) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if cores == 1 {
            return;
        }
        let pair = |name: &String| {
            let row = any_way(&measured.survey, "match", name)?;
            Some([start(field, set, row, cores)?, start(field, set, row, 1)?])
        };
        let pairs = self.ours.iter().filter_map(pair).collect();
        self.pairs(Figure::Cores, pairs, measured);
    }

    /// The table with host routes, the same cut to /64, and the given one, in turn.
    fn hosts(
        &mut self,
        routes: &dyn Routes<K>,
        hosts: usize,
        field: &Field<'_, K>,
        sets: &[KeySet<'_, K>],
        traffic: &[Traffic<K>],
        measured: &mut Measured,
    ) -> Result<(), BenchError> {
        let table = tables::with_hosts(routes, hosts)?;
        let table = in_order(&table);
        let plan = self.part(HOSTS, &["rnd", "match"]);
        let host_traffic = Traffic::of_plan(&plan, &table)?;
        let ours = self.ours;
        let is_own = |c: &Contestant<K>| !c.rival && ours.contains(&c.name);
        let (host_field, survey) = self.survey(&plan, &table, &is_own, &host_traffic)?;
        for host_traffic in &host_traffic {
            let name = if host_traffic.name == "rnd" { "rnd" } else { "match" };
            let Some(set) = sets.iter().zip(traffic).find(|(_, of)| of.name == name).map(|(set, _)| set)
            else {
                continue;
            };
            let host_set = host_field.set(host_traffic, false);
            let pair = |own: &String| {
                let (with, plain) = (any_way(&survey, name, own)?, any_way(&measured.survey, name, own)?);
                Some([start(&host_field, &host_set, with, 1)?, start(field, set, plain, 1)?])
            };
            let pairs = ours.iter().filter_map(pair).collect();
            self.pairs(Figure::Hosts { traffic: name }, pairs, measured);
        }
        if K::BITS < 128 {
            return Ok(());
        }
        let cut = tables::cut_to_64(&table);
        let cut = in_order(&cut);
        let plan = self.part(0.0, &["match"]);
        let (cut_field, _) = self.survey(&plan, &cut, &is_own, &[])?;
        for (beyond, traffic) in [(false, traffic), (true, &host_traffic)] {
            let Some(traffic) = traffic.iter().find(|traffic| traffic.name == "match") else { continue };
            let (full_set, cut_set) = (host_field.set(traffic, false), cut_field.set(traffic, false));
            let pair = |own: &String| {
                let row = any_way(&survey, "match", own)?;
                Some([start(&host_field, &full_set, row, 1)?, start(&cut_field, &cut_set, row, 1)?])
            };
            let pairs = ours.iter().filter_map(pair).collect();
            self.pairs(Figure::Exact { beyond }, pairs, measured);
        }
        Ok(())
    }

    /// Our engines with changed tables, only built.
    fn bytes(&mut self, routes: &dyn Routes<K>, measured: &mut Measured) {
        let wanted = |variant| {
            let is = |target: &Target| target.figure == Figure::Bytes(variant);
            TARGETS.iter().any(|target| target.families.contains(K::FAMILY) && is(target))
        };
        for (variant, make) in [
            (Variant::Exotic, tables::with_exotic::<K> as fn(&dyn Routes<K>) -> _),
            (Variant::WideNextHops, tables::with_wide_next_hops::<K>),
        ] {
            if !wanted(variant) {
                continue;
            }
            let table = make(routes);
            for contestant in self.contestants.iter().filter(|contestant| self.is_own(contestant)) {
                let bytes = (contestant.build)(&in_order(&table)).map_err(|error| error.to_string());
                let bytes =
                    bytes.map(|built| built.fib().memory().lookup_bytes as f64 / table.len().max(1) as f64);
                measured.bytes.push((variant, contestant.name.clone(), bytes));
            }
        }
    }

    /// Our engines in live tables.
    fn live(&mut self, routes: &dyn Routes<K>, measured: &mut Measured) {
        let amount = match self.plan.seconds {
            seconds if seconds < 10.0 => Amount { runs: 2, changes: 200, idle: Duration::from_millis(2) },
            _ => Amount { runs: 7, changes: 200_000, idle: Duration::from_millis(200) },
        };
        for name in self.ours {
            measured.live.push((name.clone(), live::measure(name, routes, amount)));
        }
    }

    fn small(&mut self, measured: &mut Measured) -> Result<(), BenchError> {
        for routes in SMALL {
            let table = tables::small::<K>(routes);
            let table = in_order(&table);
            let plan = self.part(SMALLS * 0.7, &["match"]);
            let traffic = Traffic::of_plan(&plan, &table)?;
            // `rte_lpm` and `rte_lpm6` need seconds to make even such a table.
            let is_in = |c: &Contestant<K>| {
                let oracle = matches!(c.role, Role::Oracle { .. });
                if c.rival { peers::is_rte_fib(&c.name) || peers::is_rte_fib6(&c.name) } else { !oracle }
            };
            let (field, rows) = self.survey(&plan, &table, &is_in, &traffic)?;
            let set = field.set(&traffic[0], false);
            for race in races::<K>(Some(routes)) {
                let starts = self.starts(&field, &set, &rows, race);
                let rows = self.race(&starts, SMALLS * 0.3);
                measured.races.push((race, rows));
            }
            let array_bytes = tables::sorted_array_bytes(&table);
            measured.small.push(Small { routes, array_bytes, rows });
        }
        Ok(())
    }
}

/// Returns the races of a family with this table, each once.
fn races<K: Key>(routes: Option<usize>) -> Vec<Race> {
    let mut races = Vec::new();
    for target in TARGETS.iter().filter(|target| target.families.contains(K::FAMILY)) {
        if let Figure::Rate(race) = target.figure
            && race.routes == routes
            && !races.contains(&race)
        {
            races.push(race);
        }
    }
    races
}

/// Returns the groups of peers of a race.
fn groups<K: Key>(race: Race) -> Vec<Peers> {
    let targets = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY));
    let bounds = targets
        .filter(|target| target.figure == Figure::Rate(race))
        .flat_map(|target| target.reach.into_iter().chain(target.goal));
    let mut groups = Vec::new();
    for bound in bounds {
        if let Bound::Times(_, peers) = bound
            && !groups.contains(&peers)
        {
            groups.push(peers);
        }
    }
    groups
}

/// Returns the fastest row of a race with these keys a call.
fn fastest<'r>(
    rows: &'r [Row],
    race: Race,
    batch: Option<usize>,
    is: &dyn Fn(&Row) -> bool,
) -> Option<&'r Row> {
    let takes_part = |row: &&Row| {
        row.traffic == race.traffic
            && row.threads == 1
            && row.mlps_median.is_some()
            && batch.is_none_or(|batch| row.batch == batch)
            && race.within.is_none_or(|isa: Isa| least_with(&row.isa) <= isa)
            && is(row)
    };
    rows.iter().filter(takes_part).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// Returns the fastest row of one of our engines: among batches if any were measured, else among single lookups.
fn any_way<'r>(rows: &'r [Row], traffic: &'static str, name: &str) -> Option<&'r Row> {
    let race = Race { routes: None, traffic, own: None, theirs: None, within: None };
    let own = |row: &Row| row.is_ours() && row.engine == name;
    fastest(rows, race, None, &|row| own(row) && row.batch > 1).or_else(|| fastest(rows, race, None, &own))
}

fn rate(row: &Row) -> f64 {
    row.mlps_median.unwrap_or(0.0)
}

/// Returns the engine of a row in the same way, with these keys.
fn start<'f, K: Key>(
    field: &'f Field<'f, K>,
    set: &'f KeySet<'f, K>,
    row: &Row,
    threads: usize,
) -> Option<LaneStart<'f, K>> {
    let racer = field.racers.iter().position(|racer| racer.contestant.name == row.engine)?;
    let kernel = field.racers[racer].kernels.iter().position(|kernel| kernel.isa == row.isa)?;
    Some(LaneStart { field, racer, kernel, set, batch: row.batch, threads, order: Order::Host })
}
