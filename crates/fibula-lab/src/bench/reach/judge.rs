//! Whether a line has reached a target, and who came next.

use fibula::net::Key;
use fibula::simd::Isa;
use serde::Serialize;

use super::super::contestant::least_with;
use super::super::row::Row;
use super::super::runner::family_name;
use super::Measured;
use super::targets::{Bound, Figure, Peers, TARGETS, Target};

/// One line of ours against one target. The names are those scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// What is asked.
    pub work: &'static str,
    /// The line of ours; none where the family has none.
    pub algorithm: Option<String>,
    /// Its best kernel for this, and batch, where that matters.
    pub isa: Option<String>,
    /// Keys a call.
    pub batch: Option<usize>,
    /// What `measured` counts.
    pub unit: &'static str,
    /// What was measured.
    pub measured: Option<f64>,
    /// What was asked for.
    pub target: String,
    /// What `measured` had to be, where that is known.
    pub target_value: Option<f64>,
    /// Whether it is.
    pub verdict: Verdict,
    /// How much of what is asked was reached: 1 and more where it is met.
    pub reached: Option<f64>,
    /// Where the project is going.
    pub goal: Option<String>,
    /// What `measured` would have to be.
    pub goal_value: Option<f64>,
    /// Whether it is.
    pub goal_verdict: Option<Verdict>,
    /// The best of those it was held against.
    pub peer: Option<Peer>,
    /// How many times better than the best peer.
    pub ratio: Option<f64>,
    /// Who was not there, and what else is to be known.
    pub notes: Vec<String>,
}

/// Somebody who is not ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// The name.
    pub algorithm: String,
    /// The instruction set it looked up with.
    pub isa: String,
    /// Keys a call.
    pub batch: usize,
    /// What it did.
    pub measured: f64,
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Reached.
    #[serde(rename = "met")]
    Met,
    /// Not reached.
    #[serde(rename = "missed")]
    Missed,
    /// Something that it is held against was not there.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl Verdict {
    /// The name that outputs use.
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

/// A figure of a line, or of a peer.
#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    value: f64,
    row: &'a Row,
}

/// Every target of the family, line by line.
pub(super) fn all<K: Key>(measured: &Measured, ours: &[String]) -> Vec<Outcome> {
    let family = family_name(K::FAMILY);
    let asked = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY));
    let mut outcomes = Vec::new();
    for target in asked {
        if ours.is_empty() {
            let nobody = vec![format!("no line of ours serves {} yet", K::FAMILY)];
            outcomes.push(Outcome { notes: nobody, ..blank(family, target) });
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

/// What came of holding a figure against a bound.
struct Judged<'a> {
    verdict: Verdict,
    /// What the figure had to be.
    bound: Option<f64>,
    peer: Option<Value<'a>>,
    /// Who was not there.
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
        let nobody = "none of them has a figure".to_owned();
        let missing = if missing.is_empty() { vec![nobody] } else { missing };
        return Judged { verdict: Verdict::NotMeasured, bound: None, peer, missing };
    };
    let bound = if less_is_better(figure) { best.value / times } else { best.value * times };
    let met = if less_is_better(figure) { own.value <= bound } else { own.value >= bound };
    // Who misses against those that were there has missed; who does not may owe it to those that were not.
    let verdict = if met && vital { Verdict::NotMeasured } else { Verdict::of(met) };
    Judged { verdict, bound: Some(bound), peer, missing }
}

/// Members of the peers that have no figure, in words; and whether one of them could be had.
fn missing(peers: Peers, figure: Figure, measured: &Measured) -> (Vec<String>, bool) {
    let there =
        |is: fn(&Row) -> bool| value(figure, measured, &|row: &Row| peers.contain(row) && is(row)).is_some();
    // Where lookups are restricted, some have nothing to show: that is no gap, as long as they were asked.
    let asked = |is: fn(&Row) -> bool| measured.plain.iter().any(|row| !row.is_ours() && is(row));
    let absent = peers.members().iter().filter(|(_, is, _)| !there(*is) && !asked(*is));
    let notes: Vec<_> = absent.map(|(name, _, get)| format!("{name}: {get}")).collect();
    let vital = notes.iter().any(|note| note.contains("not measured"));
    (notes, vital)
}

/// The best figure of those rows; none where there are none.
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
            // Of the kernel and batch that are fastest together, not of those that scale best.
            let row =
                rows.max_by(|a, b| a.mlps_median.unwrap_or(0.0).total_cmp(&b.mlps_median.unwrap_or(0.0)))?;
            Some(Value { value: row.scaling?, row })
        }
    }
}

/// The greatest rate of one thread.
fn rate<'a>(rows: &'a [Row], is: &dyn Fn(&Row) -> bool, asked: &dyn Fn(&Row) -> bool) -> Option<Value<'a>> {
    let rows = rows.iter().filter(|row| row.threads == 1 && is(row) && asked(row));
    let values = rows.filter_map(|row| Some(Value { value: row.mlps_median?, row }));
    values.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Why a line has no figure.
fn why_not(figure: Figure, measured: &Measured, name: &str) -> String {
    let every =
        measured.plain.iter().chain(&measured.hosts).chain(measured.small.iter().flat_map(|(.., rows)| rows));
    let mut errors = every.filter(|row| row.algorithm == name).filter_map(|row| row.error.clone());
    match (figure, errors.next()) {
        (_, Some(error)) => error,
        (Figure::Cores, None) => "there is one core".to_owned(),
        (Figure::Exact, None) => "no route is longer than /64".to_owned(),
        _ => "it has no figure".to_owned(),
    }
}

/// Whether less is better.
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

/// Three decimals are more than a measurement holds.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
