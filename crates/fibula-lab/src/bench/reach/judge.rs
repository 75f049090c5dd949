//! Judges whether an engine meets a target, and finds the best of its peers.

use fibula::net::Key;
use fibula_workload::interval::Interval;
use serde::Serialize;

use super::super::peers;
use super::super::row::Row;
use super::live::Live;
use super::targets::{Bound, Figure, Peers, Race, TARGETS, Target, Variant};
use super::{Measured, Small};

/// One of our own engines against one target. Scripts rely on the names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// The measurement, in words for people.
    pub work: &'static str,
    /// Our own engine; none if the family has none.
    pub engine: Option<String>,
    /// Its fastest instruction set for this, where it matters.
    pub isa: Option<String>,
    /// Keys a call.
    pub batch: Option<usize>,
    /// The unit of `measured`.
    pub unit: &'static str,
    /// The measured figure.
    pub measured: Option<f64>,
    /// The lower end of its 95 % interval.
    pub measured_low: Option<f64>,
    /// The upper end.
    pub measured_high: Option<f64>,
    /// The target, in words.
    pub target: String,
    /// The figure that the target needs, where it is known.
    pub target_value: Option<f64>,
    /// Whether the target is met.
    pub verdict: TargetVerdict,
    /// The part of the target that was reached: 1 or more if it is met.
    pub reached: Option<f64>,
    /// A further goal, in words.
    pub goal: Option<String>,
    /// The figure that the goal needs.
    pub goal_value: Option<f64>,
    /// Whether the goal is met.
    pub goal_verdict: Option<TargetVerdict>,
    /// The best of the engines it is compared with.
    pub peer: Option<Peer>,
    /// How many times better than the best peer: the median of the ratios in the same run.
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// The upper end.
    pub ratio_high: Option<f64>,
    /// Peers that were absent, and other remarks.
    pub notes: Vec<String>,
}

/// An engine that is compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// The name.
    pub engine: String,
    /// The instruction set it looked up with.
    pub isa: String,
    /// Keys a call.
    pub batch: usize,
    /// Its figure.
    pub measured: f64,
}

/// Whether a target is met. The interval of the measured figure, or of its ratio to that of the best peer, decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TargetVerdict {
    /// The whole interval reaches it.
    #[serde(rename = "met")]
    Met,
    /// No part of the interval reaches it.
    #[serde(rename = "missed")]
    Missed,
    /// A part of the interval reaches it: the measurement was too noisy to tell.
    #[serde(rename = "undecided")]
    Undecided,
    /// There is only a goal.
    #[serde(rename = "goal only")]
    GoalOnly,
    /// Something it has to be compared with was absent.
    #[serde(rename = "not measured")]
    NotMeasured,
}

impl TargetVerdict {
    /// Returns the name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Undecided => "undecided",
            Self::GoalOnly => "goal only",
            Self::NotMeasured => "not measured",
        }
    }

    /// Compares an interval with a bound.
    fn of(figure: Interval, bound: f64, less_is_better: bool) -> Self {
        let (all, none) = match less_is_better {
            true => (figure.high <= bound, figure.low > bound),
            false => (figure.low >= bound, figure.high < bound),
        };
        match (all, none) {
            (true, _) => Self::Met,
            (_, true) => Self::Missed,
            (false, false) => Self::Undecided,
        }
    }
}

/// A figure with the row it comes from, if it comes from one.
#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    interval: Interval,
    row: Option<&'a Row>,
}

/// Judges every target of the family for each of our own engines.
pub(super) fn all<K: Key>(measured: &Measured, ours: &[String]) -> Vec<Outcome> {
    let family = K::FAMILY.name();
    let targets = TARGETS.iter().filter(|target| target.families.contains(K::FAMILY));
    let mut outcomes = Vec::new();
    for target in targets {
        if ours.is_empty() {
            let notes = vec![format!("there is no engine of our own for {} yet", K::FAMILY)];
            outcomes.push(Outcome { notes, ..blank::<K>(family, target) });
        }
        outcomes.extend(ours.iter().map(|name| outcome::<K>(family, target, measured, name)));
    }
    outcomes
}

fn blank<K: Key>(family: &'static str, target: &Target) -> Outcome {
    let in_words = |bound| words::<K>(bound, target.figure);
    Outcome {
        family,
        work: target.work,
        engine: None,
        isa: None,
        batch: None,
        unit: unit(target.figure),
        measured: None,
        measured_low: None,
        measured_high: None,
        target: target.reach.map_or(String::new(), in_words),
        target_value: None,
        verdict: if target.reach.is_some() { TargetVerdict::NotMeasured } else { TargetVerdict::GoalOnly },
        reached: None,
        goal: target.goal.map(in_words),
        goal_value: None,
        goal_verdict: None,
        peer: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        notes: Vec::new(),
    }
}

fn outcome<K: Key>(family: &'static str, target: &Target, measured: &Measured, name: &str) -> Outcome {
    let figure = target.figure;
    let mut outcome = Outcome { engine: Some(name.to_owned()), ..blank::<K>(family, target) };
    let own = match value(figure, measured, name) {
        Ok(own) => own,
        Err(why) => {
            outcome.notes.push(why);
            return outcome;
        }
    };
    let Interval { low, median, high } = own.interval;
    outcome.measured = Some(round(median));
    (outcome.measured_low, outcome.measured_high) = (Some(round(low)), Some(round(high)));
    if let Some(row) = own.row.filter(|_| !less_is_better(figure)) {
        (outcome.isa, outcome.batch) = (Some(row.isa.clone()), Some(row.batch));
    }
    outcome.notes.extend(remark(figure, measured, own, name));
    // The ratio to the peer of the target, or of the goal if there is no other.
    for bound in target.reach.iter().chain(&target.goal) {
        if let Bound::Times(_, peers) = *bound
            && outcome.peer.is_none()
            && let Some((peer, ratio)) = best_peer(peers, figure, measured, own)
        {
            outcome.peer = peer.row.map(|row| Peer {
                engine: row.engine.clone(),
                isa: row.isa.clone(),
                batch: row.batch,
                measured: round(peer.interval.median),
            });
            (outcome.ratio_low, outcome.ratio_high) = (Some(round(ratio.low)), Some(round(ratio.high)));
            outcome.ratio = Some(round(ratio.median));
        }
    }
    if let Some(reach) = target.reach {
        let judged = judge::<K>(reach, figure, own, measured);
        outcome.notes.extend(judged.missing);
        (outcome.verdict, outcome.target_value) = (judged.verdict, judged.bound.map(round));
        outcome.reached = judged.reached.map(round);
    }
    if let Some(goal) = target.goal {
        let judged = judge::<K>(goal, figure, own, measured);
        (outcome.goal_verdict, outcome.goal_value) = (Some(judged.verdict), judged.bound.map(round));
    }
    outcome
}

/// A figure compared with a bound.
struct JudgedFigure {
    verdict: TargetVerdict,
    /// The figure that the bound needs.
    bound: Option<f64>,
    /// The part of the bound that was reached.
    reached: Option<f64>,
    /// Peers that were absent.
    missing: Vec<String>,
}

fn judge<K: Key>(bound: Bound, figure: Figure, own: Value<'_>, measured: &Measured) -> JudgedFigure {
    let (factor, peers) = match bound {
        Bound::AtLeast(bound) | Bound::AtMost(bound) => {
            let less = less_is_better(figure);
            let (value, verdict) = (own.interval.median, TargetVerdict::of(own.interval, bound, less));
            let reached = if less { bound / value } else { value / bound };
            return JudgedFigure { verdict, bound: Some(bound), reached: Some(reached), missing: Vec::new() };
        }
        Bound::Times(factor, peers) => (factor.here(), peers),
    };
    let (missing, vital) = missing::<K>(peers, figure, measured);
    let Some((peer, ratio)) = best_peer(peers, figure, measured, own) else {
        let none = "none of them has a figure".to_owned();
        let missing = if missing.is_empty() { vec![none] } else { missing };
        return JudgedFigure { verdict: TargetVerdict::NotMeasured, bound: None, reached: None, missing };
    };
    let best = peer.interval.median;
    let needed = if less_is_better(figure) { best / factor } else { best * factor };
    // A figure that misses against the peers that were measured has missed; one that does not might have missed
    // against the absent ones.
    let verdict = match TargetVerdict::of(ratio, factor, false) {
        TargetVerdict::Missed => TargetVerdict::Missed,
        _ if vital => TargetVerdict::NotMeasured,
        verdict => verdict,
    };
    JudgedFigure { verdict, bound: Some(needed), reached: Some(ratio.median / factor), missing }
}

/// Returns the peer to which our engine has the least ratio, and the ratio: greater than 1 if ours is better.
fn best_peer<'a>(
    peers: Peers,
    figure: Figure,
    measured: &'a Measured,
    own: Value<'_>,
) -> Option<(Value<'a>, Interval)> {
    let rows: &[Row] = match figure {
        Figure::Rate(race) => race_of(measured, race)?,
        Figure::Build => &measured.survey,
        _ => return None,
    };
    let ratio = |row: &'a Row| match figure {
        Figure::Build => {
            // Builds are not timed in turn: the least favourable ends of both.
            let theirs = build(row)?;
            let ratio = Interval {
                low: theirs.low / own.interval.high,
                median: theirs.median / own.interval.median,
                high: theirs.high / own.interval.low,
            };
            Some((Value { interval: theirs, row: Some(row) }, ratio))
        }
        _ => {
            let interval = Interval::of(&row.mlps_runs)?;
            let ratio = Interval::of_ratios(&own.row?.mlps_runs, &row.mlps_runs)?;
            Some((Value { interval, row: Some(row) }, ratio))
        }
    };
    let all = rows.iter().filter(|row| peers.contain(row)).filter_map(ratio);
    all.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
}

/// Returns the peers without a figure, in words, and whether one of them was not measured.
fn missing<K: Key>(peers: Peers, figure: Figure, measured: &Measured) -> (Vec<String>, bool) {
    let small = |routes: Option<usize>| {
        measured.small.iter().find(|small| Some(small.routes) == routes).map(|small| &small.rows)
    };
    let rows = match figure {
        Figure::Rate(race) => small(race.routes).unwrap_or(&measured.survey),
        _ => &measured.survey,
    };
    // A peer that was measured is there, even if it refused the table, or has no lookup for a restricted set.
    let absent = peers.of(K::FAMILY).filter(|member| !rows.iter().any(|row| member.has(row)));
    let notes: Vec<_> = absent.map(|member| format!("{}: {}", member.name, member.get)).collect();
    let vital = !notes.is_empty();
    (notes, vital)
}

fn race_of(measured: &Measured, race: Race) -> Option<&[Row]> {
    measured.races.iter().find(|(of, _)| *of == race).map(|(_, rows)| rows.as_slice())
}

fn build(row: &Row) -> Option<Interval> {
    Some(Interval { low: row.build_low_ms?, median: row.build_time_ms?, high: row.build_high_ms? })
}

/// Returns the figure of one of our engines, or why it has none.
fn value<'a>(figure: Figure, measured: &'a Measured, name: &str) -> Result<Value<'a>, String> {
    let own = |row: &&Row| row.is_ours() && row.engine == name;
    let exactly = |value: f64| Interval { low: value, median: value, high: value };
    let small = |routes| measured.small.iter().find(|small: &&Small| small.routes == routes);
    let found = match figure {
        Figure::Rate(race) => race_of(measured, race).and_then(|rows| {
            let row = rows.iter().find(own)?;
            Some(Value { interval: Interval::of(&row.mlps_runs)?, row: Some(row) })
        }),
        Figure::Bytes(Variant::Plain) => measured
            .survey
            .iter()
            .find(own)
            .and_then(|row| Some(Value { interval: exactly(row.bytes_per_prefix?), row: Some(row) })),
        Figure::Bytes(variant) => {
            let found = measured.bytes.iter().find(|(of, own, _)| *of == variant && own == name);
            let bytes = found.map(|(_, _, bytes)| bytes.clone()).transpose()?;
            bytes.map(|bytes| Value { interval: exactly(bytes), row: None })
        }
        Figure::Build => measured
            .survey
            .iter()
            .find(own)
            .and_then(|row| Some(Value { interval: build(row)?, row: Some(row) })),
        Figure::SmallBytes(routes) => small(routes).and_then(|small| {
            let row = small.rows.iter().find(own)?;
            let value = row.lookup_bytes? as f64 / small.array_bytes as f64;
            Some(Value { interval: exactly(value), row: Some(row) })
        }),
        Figure::SmallBuild(routes) => small(routes).and_then(|small| {
            let row = small.rows.iter().find(own)?;
            let Interval { low, median, high } = build(row)?;
            let interval = Interval { low: low * 1e3, median: median * 1e3, high: high * 1e3 };
            Some(Value { interval, row: Some(row) })
        }),
        Figure::Live(live) => {
            let found = measured.live.iter().find(|(own, _)| own == name);
            let figures = found.map(|(_, figures)| figures.as_ref().map_err(Clone::clone)).transpose()?;
            figures.and_then(|figures| Some(Value { interval: figures.of(live)?, row: None }))
        }
        Figure::Hosts { .. } | Figure::Exact { .. } | Figure::Cores => {
            measured.pairs.iter().find(|(of, [row, _])| *of == figure && own(&row)).and_then(
                |(_, [row, base])| {
                    let ratio = Interval::of_ratios(&row.mlps_runs, &base.mlps_runs)?;
                    let by = if figure == Figure::Cores { row.threads as f64 } else { 1.0 };
                    let Interval { low, median, high } = ratio;
                    let interval = Interval { low: low / by, median: median / by, high: high / by };
                    Some(Value { interval, row: Some(row) })
                },
            )
        }
    };
    found.ok_or_else(|| why_not(figure, measured, name))
}

/// Returns why an engine has no figure.
fn why_not(figure: Figure, measured: &Measured, name: &str) -> String {
    let small = measured.small.iter().flat_map(|small| &small.rows);
    let pairs = measured.pairs.iter().flat_map(|(_, rows)| rows);
    let every = measured.survey.iter().chain(small).chain(pairs);
    let mut errors = every.filter(|row| row.engine == name).filter_map(|row| row.error.clone());
    match (figure, errors.next()) {
        (_, Some(error)) => error,
        (Figure::Cores | Figure::Live(_), None) => "there is one core".to_owned(),
        (Figure::Rate(Race { own: Some(batch), .. }), None) => {
            format!("batches of {batch} were not measured")
        }
        _ => "there is no figure".to_owned(),
    }
}

/// Returns a remark on a figure, if there is one.
fn remark(figure: Figure, measured: &Measured, own: Value<'_>, name: &str) -> Option<String> {
    match (figure, own.row) {
        (Figure::Live(Live::VisibleMost), _) => {
            let (_, figures) = measured.live.iter().find(|(own, _)| own == name)?;
            Some(format!(
                "a change of the default route takes {:.0} us",
                figures.as_ref().ok()?.default_route
            ))
        }
        (Figure::Hosts { .. }, Some(row)) => {
            let bytes = row.bytes_per_prefix.unwrap_or(0.0);
            Some(format!("{:.1} M/s, {bytes:.2} bytes a prefix", row.mlps_median.unwrap_or(0.0)))
        }
        (Figure::Build, Some(row)) => Some(format!("{} routes", row.routes)),
        (Figure::SmallBytes(routes), _) => {
            let small = measured.small.iter().find(|small| small.routes == routes)?;
            smallest(small)
        }
        _ => None,
    }
}

/// Returns the smallest engine that is faster than `rte_fib` or `rte_fib6`, each in its fastest way.
fn smallest(small: &Small) -> Option<String> {
    let rate = |is: &dyn Fn(&Row) -> bool| {
        small.rows.iter().filter(|row| is(row)).filter_map(|row| row.mlps_median).reduce(f64::max)
    };
    let is_fib = |row: &Row| peers::is_rte_fib(&row.engine) || peers::is_rte_fib6(&row.engine);
    let theirs = rate(&is_fib)?;
    let ahead = |row: &&Row| !row.rival && row.mlps_median.is_some_and(|mlps| mlps > theirs);
    let rows = small.rows.iter().filter(ahead);
    let row = rows.min_by_key(|row| row.lookup_bytes.unwrap_or(usize::MAX))?;
    let ours = rate(&|other: &Row| other.engine == row.engine)?;
    let (name, bytes) = (&row.engine, row.lookup_bytes?);
    Some(format!(
        "{} routes: the smallest engine ahead of rte_fib is {name}, {bytes} bytes ({ours:.0} M/s, rte_fib {theirs:.0})",
        small.routes
    ))
}

/// Returns whether less is better.
fn less_is_better(figure: Figure) -> bool {
    match figure {
        Figure::Bytes(_) | Figure::Build | Figure::SmallBytes(_) | Figure::SmallBuild(_) => true,
        Figure::Live(live) => !matches!(live, Live::Rate | Live::InPlace),
        Figure::Rate(_) | Figure::Hosts { .. } | Figure::Exact { .. } | Figure::Cores => false,
    }
}

fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Rate(_) => "M/s",
        Figure::Bytes(_) => "bytes a prefix",
        Figure::Build => "ms",
        Figure::SmallBuild(_) => "us",
        Figure::Hosts { .. } => "of the plain rate",
        Figure::SmallBytes(_) => "x sorted array",
        Figure::Exact { .. } => "of the rate to /64",
        Figure::Cores => "scaling efficiency",
        Figure::Live(live) => match live {
            Live::Change | Live::VisibleMedian | Live::VisibleMost | Live::Atomic => "us",
            Live::Rate => "M changes/s",
            Live::Loss => "of its rate",
            Live::InPlace => "of the calls",
            Live::Churned => "x fresh build",
        },
    }
}

fn words<K: Key>(bound: Bound, figure: Figure) -> String {
    match bound {
        Bound::AtLeast(least) => format!(">= {least}"),
        Bound::AtMost(most) => format!("<= {most}"),
        Bound::Times(factor, peers) => {
            let factor = factor.here();
            let names: Vec<_> = peers.of(K::FAMILY).map(|member| member.name).collect();
            let names = if peers == Peers::Contestants { "contestants".to_owned() } else { names.join(", ") };
            match less_is_better(figure) {
                true => format!("1/{factor} of the time of {names}"),
                false if factor == 1.0 => format!("ahead of {names}"),
                false => format!("{factor} x {names}"),
            }
        }
    }
}

/// Rounds to three decimals, more than a measurement is exact to.
fn round(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
