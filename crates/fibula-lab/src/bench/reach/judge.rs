//! Judges whether a structure meets a target, and finds the best of its peers.

use fibula::net::Key;
use fibula::simd::Isa;
use serde::Serialize;

use super::super::contestant::least_with;
use super::super::row::Row;
use super::super::runner::family_name;
use super::Measured;
use super::targets::{Bound, Figure, Peers, TARGETS, Target};

/// One of our own structures against one target. Scripts rely on the names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// What is measured, for people.
    pub work: &'static str,
    /// Our own structure; none if the family has none.
    pub algorithm: Option<String>,
    /// Its fastest instruction set for this, where it matters.
    pub isa: Option<String>,
    /// Keys a call.
    pub batch: Option<usize>,
    /// The unit of `measured`.
    pub unit: &'static str,
    /// The measured figure.
    pub measured: Option<f64>,
    /// The target, in words.
    pub target: String,
    /// The figure that the target needs, where it is known.
    pub target_value: Option<f64>,
    /// Whether the target is met.
    pub verdict: Verdict,
    /// The part of the target that was reached: 1 or more if it is met.
    pub reached: Option<f64>,
    /// A further goal, in words.
    pub goal: Option<String>,
    /// The figure that the goal needs.
    pub goal_value: Option<f64>,
    /// Whether the goal is met.
    pub goal_verdict: Option<Verdict>,
    /// The best of the structures it is compared with.
    pub peer: Option<Peer>,
    /// How many times better than the best peer.
    pub ratio: Option<f64>,
    /// Peers that were absent, and other remarks.
    pub notes: Vec<String>,
}

/// A structure that is compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// The name.
    pub algorithm: String,
    /// The instruction set it looked up with.
    pub isa: String,
    /// Keys a call.
    pub batch: usize,
    /// Its figure.
    pub measured: f64,
}

/// Whether a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Reached.
    #[serde(rename = "met")]
    Met,
    /// Not reached.
    #[serde(rename = "missed")]
    Missed,
    /// Something it has to be compared with was absent.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl Verdict {
    /// Returns the name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
        }
    }

    fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }
}

/// A figure with the row it comes from.
#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    value: f64,
    row: &'a Row,
}

/// Judges every target of the family for each of our own structures.
pub(super) fn all<K: Key>(measured: &Measured, ours: &[String]) -> Vec<Outcome> {
    let family = family_name(K::FAMILY);
    let targets = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY));
    let mut outcomes = Vec::new();
    for target in targets {
        if ours.is_empty() {
            let notes = vec![format!("there is no structure of our own for {} yet", K::FAMILY)];
            outcomes.push(Outcome { notes, ..blank(family, target) });
        }
        outcomes.extend(ours.iter().map(|name| outcome(family, target, measured, name)));
    }
    outcomes
}

fn blank(family: &'static str, target: &Target) -> Outcome {
    Outcome {
        family,
        work: target.work,
        algorithm: None,
        isa: None,
        batch: None,
        unit: unit(target.figure),
        measured: None,
        target: words(target.reach, target.figure),
        target_value: None,
        verdict: Verdict::NotMeasured,
        reached: None,
        goal: target.goal.map(|goal| words(goal, target.figure)),
        goal_value: None,
        goal_verdict: None,
        peer: None,
        ratio: None,
        notes: Vec::new(),
    }
}

fn outcome(family: &'static str, target: &Target, measured: &Measured, name: &str) -> Outcome {
    let figure = target.figure;
    let mut outcome = Outcome { algorithm: Some(name.to_owned()), ..blank(family, target) };
    let is_line = |row: &Row| row.is_ours() && row.algorithm == name;
    let Some(own) = value(figure, measured, &is_line) else {
        outcome.notes.push(why_not(figure, measured, name));
        return outcome;
    };
    outcome.measured = Some(round(own.value));
    if !matches!(figure, Figure::Bytes | Figure::Build | Figure::SmallBytes(_) | Figure::SmallBuild(_)) {
        (outcome.isa, outcome.batch) = (Some(own.row.isa.clone()), Some(own.row.batch));
    }
    if let Figure::Hosts { .. } = figure {
        let bytes = own.row.bytes_per_prefix.unwrap_or(0.0);
        outcome
            .notes
            .push(format!("{:.1} M/s, {bytes:.2} bytes a prefix", own.row.mlps_median.unwrap_or(0.0)));
    }
    if let Figure::Build = figure {
        outcome.notes.push(format!("{} routes", own.row.routes));
    }
    let judged = judge(target.reach, figure, own, measured);
    outcome.notes.extend(judged.missing.clone());
    (outcome.verdict, outcome.target_value) = (judged.verdict, judged.bound.map(round));
    let better = |own: f64, other: f64| if less_is_better(figure) { other / own } else { own / other };
    outcome.reached = judged.bound.map(|bound| round(better(own.value, bound)));
    if let Some(peer) = judged.peer {
        let Row { algorithm, isa, batch, .. } = peer.row.clone();
        outcome.peer = Some(Peer { algorithm, isa, batch, measured: round(peer.value) });
        outcome.ratio = Some(round(better(own.value, peer.value)));
    }
    if let Some(goal) = target.goal {
        let judged = judge(goal, figure, own, measured);
        (outcome.goal_verdict, outcome.goal_value) = (Some(judged.verdict), judged.bound.map(round));
    }
    outcome
}

/// A figure compared with a bound.
struct Judged<'a> {
    verdict: Verdict,
    /// The figure that the bound needs.
    bound: Option<f64>,
    peer: Option<Value<'a>>,
    /// Peers that were absent.
    missing: Vec<String>,
}

fn judge<'a>(bound: Bound, figure: Figure, own: Value<'_>, measured: &'a Measured) -> Judged<'a> {
    let fixed = |bound, met| Judged {
        verdict: Verdict::of(met),
        bound: Some(bound),
        peer: None,
        missing: Vec::new(),
    };
    let (times, peers) = match bound {
        Bound::AtLeast(bound) => return fixed(bound, own.value >= bound),
        Bound::AtMost(bound) => return fixed(bound, own.value <= bound),
        Bound::Times(times, peers) => (times, peers),
    };
    let peer = value(figure, measured, &|row: &Row| peers.contain(row));
    let (missing, vital) = missing(peers, figure, measured);
    let Some(best) = peer else {
        let none = "none of them has a figure".to_owned();
        let missing = if missing.is_empty() { vec![none] } else { missing };
        return Judged { verdict: Verdict::NotMeasured, bound: None, peer, missing };
    };
    let bound = if less_is_better(figure) { best.value / times } else { best.value * times };
    let met = if less_is_better(figure) { own.value <= bound } else { own.value >= bound };
    // A figure that misses against the peers that were measured has missed; one that does not might have missed
    // against the absent ones.
    let verdict = if met && vital { Verdict::NotMeasured } else { Verdict::of(met) };
    Judged { verdict, bound: Some(bound), peer, missing }
}

/// Returns the peers without a figure, in words, and whether one of them was not measured.
fn missing(peers: Peers, figure: Figure, measured: &Measured) -> (Vec<String>, bool) {
    let there =
        |is: fn(&Row) -> bool| value(figure, measured, &|row: &Row| peers.contain(row) && is(row)).is_some();
    // Where instruction sets are restricted, some peers have no figure. They are not absent if they were measured.
    let measured_at_all = |is: fn(&Row) -> bool| measured.plain.iter().any(|row| !row.is_ours() && is(row));
    let absent = peers.members().iter().filter(|(_, is, _)| !there(*is) && !measured_at_all(*is));
    let notes: Vec<_> = absent.map(|(name, _, get)| format!("{name}: {get}")).collect();
    let vital = notes.iter().any(|note| note.contains("not measured"));
    (notes, vital)
}

/// Returns the best figure of these rows.
fn value<'a>(figure: Figure, measured: &'a Measured, is: &dyn Fn(&Row) -> bool) -> Option<Value<'a>> {
    let best_rate = |rows: &'a [Row], traffic: &str| rate(rows, is, &|row| row.traffic == traffic);
    let least = |rows: &'a [Row], of: fn(&Row) -> Option<f64>| {
        let values = rows.iter().filter(|row| is(row)).filter_map(|row| Some(Value { value: of(row)?, row }));
        values.min_by(|a, b| a.value.total_cmp(&b.value))
    };
    let small = |routes| measured.small.iter().find(|(count, ..)| *count == routes);
    let by = |rows: &'a [Row], traffic| {
        let (own, plain) = (best_rate(rows, traffic)?, best_rate(&measured.plain, traffic)?);
        Some(Value { value: own.value / plain.value, ..own })
    };
    match figure {
        Figure::Rate { traffic, batch, within } => rate(&measured.plain, is, &|row| {
            row.traffic == traffic
                && batch.is_none_or(|batch| row.batch == batch)
                && within.is_none_or(|isa: Isa| least_with(&row.isa) <= isa)
        }),
        Figure::Bytes => least(&measured.plain, |row| row.bytes_per_prefix),
        Figure::Build => least(&measured.plain, |row| row.build_time_ms),
        Figure::Hosts { traffic } => by(&measured.hosts, traffic),
        Figure::Exact => {
            let (full, short) = (best_rate(&measured.plain, "match")?, best_rate(&measured.to_64, "match")?);
            Some(Value { value: full.value / short.value, ..full })
        }
        Figure::SmallBytes(routes) => {
            let (_, array, rows) = small(routes)?;
            let own = least(rows, |row| row.lookup_bytes.map(|bytes| bytes as f64))?;
            Some(Value { value: own.value / *array as f64, ..own })
        }
        Figure::SmallBuild(routes) => least(&small(routes)?.2, |row| row.build_time_ms),
        Figure::SmallRate(routes) => best_rate(&small(routes)?.2, "match"),
        Figure::Cores => {
            let many = |row: &&Row| row.threads > 1 && is(row);
            let rows = measured.cores.iter().filter(many);
            // The scaling of the fastest kernel and batch, not the best scaling.
            let row =
                rows.max_by(|a, b| a.mlps_median.unwrap_or(0.0).total_cmp(&b.mlps_median.unwrap_or(0.0)))?;
            Some(Value { value: row.scaling?, row })
        }
    }
}

/// Returns the greatest rate of one thread.
fn rate<'a>(rows: &'a [Row], is: &dyn Fn(&Row) -> bool, filter: &dyn Fn(&Row) -> bool) -> Option<Value<'a>> {
    let rows = rows.iter().filter(|row| row.threads == 1 && is(row) && filter(row));
    let values = rows.filter_map(|row| Some(Value { value: row.mlps_median?, row }));
    values.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Returns why a structure has no figure.
fn why_not(figure: Figure, measured: &Measured, name: &str) -> String {
    let every =
        measured.plain.iter().chain(&measured.hosts).chain(measured.small.iter().flat_map(|(.., rows)| rows));
    let mut errors = every.filter(|row| row.algorithm == name).filter_map(|row| row.error.clone());
    match (figure, errors.next()) {
        (_, Some(error)) => error,
        (Figure::Cores, None) => "there is one core".to_owned(),
        (Figure::Exact, None) => "no route is longer than /64".to_owned(),
        _ => "there is no figure".to_owned(),
    }
}

/// Returns whether less is better.
fn less_is_better(figure: Figure) -> bool {
    matches!(figure, Figure::Bytes | Figure::Build | Figure::SmallBytes(_) | Figure::SmallBuild(_))
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Rate { .. } | Figure::SmallRate(_) => "M/s",
        Figure::Bytes => "bytes a prefix",
        Figure::Build | Figure::SmallBuild(_) => "ms",
        Figure::Hosts { .. } => "of the plain rate",
        Figure::SmallBytes(_) => "x sorted array",
        Figure::Exact => "of the rate to /64",
        Figure::Cores => "scaling efficiency",
    }
}

fn words(bound: Bound, figure: Figure) -> String {
    let ahead = if less_is_better(figure) { "of the time of" } else { "x" };
    match bound {
        Bound::AtLeast(least) => format!(">= {least}"),
        Bound::AtMost(most) => format!("<= {most}"),
        Bound::Times(1.0, _) if !less_is_better(figure) => "ahead of all others".to_owned(),
        Bound::Times(times, peers) => {
            let names: Vec<_> = peers.members().iter().map(|(name, ..)| *name).collect();
            match less_is_better(figure) {
                true => format!("1/{times} {ahead} {}", names.join(", ")),
                false => format!("{times} {ahead} {}", names.join(", ")),
            }
        }
    }
}

/// Rounds to three decimals, more than a measurement is exact to.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
