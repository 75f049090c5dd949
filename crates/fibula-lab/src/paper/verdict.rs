//! Ratios of measured values, and whether the claims of a paper hold here.

use core::fmt;

use fibula_workload::interval::Interval;

use super::definition::{At, Claim, Exhibit, Judge, OURS};
use super::record::Point;

/// A ratio of two values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The ratio, or the median of the ratios of the same runs.
    pub median: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Whether both values were timed in turn, so that runs could be paired.
    pub paired: bool,
}

impl Ratio {
    /// Returns the ratio of two values, by the runs of a race if both are of the same one. Else a disturbance of the machine
    /// may have slowed one of the two, and the interval is that of the worst case.
    #[must_use]
    pub fn of(of: &Point, over: &Point) -> Option<Self> {
        let same_race = of.race.is_some() && of.race == over.race && !of.runs.is_empty();
        if same_race && let Some(found) = Interval::of_ratios(&of.runs, &over.runs) {
            let Interval { low, median, high } = found;
            return Some(Self { median, low, high, paired: true });
        }
        let (a, b) = (of.value?, over.value?);
        let ends = |point: &Point, value: f64| (point.low.unwrap_or(value), point.high.unwrap_or(value));
        let ((a_low, a_high), (b_low, b_high)) = (ends(of, a), ends(over, b));
        if b_low <= 0.0 {
            return None;
        }
        Some(Self { median: a / b, low: a_low / b_high, high: a_high / b_low, paired: false })
    }
}

/// Whether a claim is reproduced.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is: every interval is between the bounds.
    Reproduced(JudgedRange),
    /// It is not: in this many rows, the whole interval is beyond the bounds.
    NotReproduced(JudgedRange, usize),
    /// An interval reaches over a bound, and no row is beyond it.
    Undecided(JudgedRange),
    /// It could not be otherwise, for this reason, and so it shows nothing.
    ByConstruction(JudgedRange, String),
    /// A value that it rests on was not measured.
    Missing(String),
}

/// The values that a claim was judged by: the least and the greatest of its values, with the ends of their intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedRange {
    /// The lowest end of an interval.
    pub low: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub most: f64,
    /// The highest end of an interval.
    pub high: f64,
    /// Values, one a row.
    pub rows: usize,
}

impl JudgedRange {
    fn of(values: &[[f64; 3]]) -> Option<Self> {
        let fold = |place: usize, by: fn(f64, f64) -> f64| values.iter().map(|value| value[place]).reduce(by);
        Some(Self {
            low: fold(0, f64::min)?,
            least: fold(1, f64::min)?,
            most: fold(1, f64::max)?,
            high: fold(2, f64::max)?,
            rows: values.len(),
        })
    }
}

impl fmt::Display for JudgedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, least, most, high, rows } = *self;
        let number = super::report::number;
        match rows {
            1 if low == high => f.write_str(&number(least)),
            1 => write!(f, "{} ({} to {})", number(least), number(low), number(high)),
            _ if low == least && most == high => {
                write!(f, "{} to {} in {rows} rows", number(least), number(most))
            }
            _ => write!(
                f,
                "{} to {} in {rows} rows ({} to {})",
                number(least),
                number(most),
                number(low),
                number(high)
            ),
        }
    }
}

impl Verdict {
    /// Judges a claim by the values of its exhibit.
    #[must_use]
    pub fn of(claim: &Claim, points: &[&Point]) -> Self {
        let (values, bounds) = match &claim.judge {
            Judge::Missing(why) => return Self::Missing(why.clone()),
            Judge::Construction { of, why } => {
                return JudgedRange::of(&intervals(points, of))
                    .map_or_else(Self::unmeasured, |found| Self::ByConstruction(found, why.clone()));
            }
            Judge::Value { of, is } => (intervals(points, of), is),
            Judge::Ratio { of, over, is } => {
                let ratio = |point: &&Point| {
                    let row = if over.0 == "*" { &point.row } else { &over.0 };
                    let over = points.iter().find(|other| other.row == *row && other.column == over.1)?;
                    let ratio = Ratio::of(point, over)?;
                    Some([ratio.low, ratio.median, ratio.high])
                };
                (at(points, of).iter().filter_map(ratio).collect(), is)
            }
        };
        let Some(found) = JudgedRange::of(&values) else { return Self::unmeasured() };
        let (least, most) = bounds.ends();
        let beyond = values.iter().filter(|value| value[2] < least || value[0] > most).count();
        match () {
            () if beyond > 0 => Self::NotReproduced(found, beyond),
            () if found.low >= least && found.high <= most => Self::Reproduced(found),
            () => Self::Undecided(found),
        }
    }

    /// Returns the values that a claim was judged by, if there are any.
    fn range(&self) -> Option<&JudgedRange> {
        match self {
            Self::Reproduced(found)
            | Self::NotReproduced(found, _)
            | Self::Undecided(found)
            | Self::ByConstruction(found, _) => Some(found),
            Self::Missing(_) => None,
        }
    }

    fn unmeasured() -> Self {
        Self::Missing("its values are missing".to_owned())
    }

    /// Returns the values that a claim was judged by, and the verdict in words.
    #[must_use]
    pub fn words(&self, claim: &Claim) -> (String, String) {
        let ours = claim.published == OURS;
        match self {
            Self::Reproduced(found) => {
                (found.to_string(), if ours { "holds here" } else { "reproduced" }.to_owned())
            }
            Self::NotReproduced(found, beyond) => {
                let no = if ours { "does not hold here" } else { "not reproduced" };
                let rows = if found.rows > 1 {
                    format!(" ({beyond} of {} rows)", found.rows)
                } else {
                    String::new()
                };
                (found.to_string(), format!("{no}{rows}"))
            }
            Self::Undecided(found) => {
                (found.to_string(), "undecidable: an interval reaches over a bound".to_owned())
            }
            Self::ByConstruction(found, why) => (found.to_string(), format!("by construction: {why}")),
            Self::Missing(why) => (String::new(), format!("not measured: {why}")),
        }
    }
}

/// Returns the findings of an exhibit with the figures of a record in their places. One that has a place without a value is left out:
/// the record does not say it.
pub(super) fn findings(exhibit: &Exhibit, points: &[&Point]) -> Vec<String> {
    let place = |place: &str| {
        let number = super::report::number;
        if let Some((row, column)) = place.split_once('|') {
            let point = points.iter().find(|point| point.row == row && point.column == column)?;
            return Some(number(point.value?));
        }
        let verdict = Verdict::of(exhibit.claims.get(place.parse::<usize>().ok()?)?, points);
        let JudgedRange { least, most, .. } = *verdict.range()?;
        let (least, most) = (number(least), number(most));
        Some(if least == most { least } else { format!("{least} to {most}") })
    };
    let filled = |finding: &String| {
        let mut parts = finding.split("[=");
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (name, rest) = part.split_once(']')?;
            text.push_str(&place(name)?);
            text.push_str(rest);
        }
        Some(text)
    };
    exhibit.findings.iter().filter_map(filled).collect()
}

/// How many conclusions of a paper have each verdict. Those that are this project's own do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    reproduced: usize,
    not_reproduced: usize,
    undecided: usize,
    by_construction: usize,
    missing: usize,
}

impl Tally {
    /// Counts a verdict.
    pub(super) fn add(&mut self, claim: &Claim, verdict: &Verdict) {
        if claim.published == OURS {
            return;
        }
        *match verdict {
            Verdict::Reproduced(_) => &mut self.reproduced,
            Verdict::NotReproduced(..) => &mut self.not_reproduced,
            Verdict::Undecided(_) => &mut self.undecided,
            Verdict::ByConstruction(..) => &mut self.by_construction,
            Verdict::Missing(_) => &mut self.missing,
        } += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reproduced, not_reproduced, undecided, by_construction, missing } = self;
        write!(
            f,
            "Of the paper's {} conclusions that can be judged, {reproduced} are reproduced, {not_reproduced} are not, and \
             {undecided} are undecidable. {by_construction} hold by construction and {missing} are not measured: these do \
             not count.",
            reproduced + not_reproduced + undecided
        )
    }
}

/// Returns the values of a place with the ends of their intervals.
fn intervals(points: &[&Point], place: &At) -> Vec<[f64; 3]> {
    let ends = |point: &&Point| {
        let value = point.value?;
        Some([point.low.unwrap_or(value), value, point.high.unwrap_or(value)])
    };
    at(points, place).iter().filter_map(ends).collect()
}

/// Returns the values of a place.
fn at<'a>(points: &[&'a Point], (row, column): &At) -> Vec<&'a Point> {
    let is_there = |point: &&&Point| (row == "*" || point.row == *row) && point.column == *column;
    points.iter().filter(is_there).copied().filter(|point| point.value.is_some()).collect()
}
