//! Ratios of what was measured, and whether the claims of a paper hold here.

use core::fmt;

use super::definition::{At, Claim, Judge};
use super::record::Point;
use crate::bench::Interval;

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

/// Whether a claim holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It holds: the whole interval is between its bounds.
    Holds(Found),
    /// It does not: the whole interval is beyond them.
    Fails(Found),
    /// The spread is too wide to decide it, or it holds in some rows and not in others.
    Undecided(Found),
    /// What it rests on was not measured.
    Missing(String),
}

/// What a claim was judged by: the least and the greatest of its values, with the ends of their intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
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

impl fmt::Display for Found {
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
            Judge::Value { of, least, most } => {
                let ends = |point: &&Point| {
                    let value = point.value?;
                    Some([point.low.unwrap_or(value), value, point.high.unwrap_or(value)])
                };
                (at(points, of).iter().filter_map(ends).collect::<Vec<_>>(), (*least, *most))
            }
            Judge::Ratio { of, over, least, most } => {
                let dividends = at(points, of);
                let ratio = |point: &&Point| {
                    let row = if over.0 == "*" { &point.row } else { &over.0 };
                    let over = points.iter().find(|other| other.row == *row && other.column == over.1)?;
                    let ratio = Ratio::of(point, over)?;
                    Some([ratio.low, ratio.median, ratio.high])
                };
                (dividends.iter().filter_map(ratio).collect(), (*least, *most))
            }
        };
        Self::between(&values, bounds)
    }

    /// Returns what the claim was judged by, and whether it holds, in words.
    #[must_use]
    pub fn words(&self) -> (String, String) {
        match self {
            Self::Holds(found) => (found.to_string(), "yes".to_owned()),
            Self::Fails(found) => (found.to_string(), "no".to_owned()),
            Self::Undecided(found) if found.rows > 1 => {
                (found.to_string(), "in some rows, or undecidable by the spread".to_owned())
            }
            Self::Undecided(found) => (found.to_string(), "undecidable: the spread is too wide".to_owned()),
            Self::Missing(why) => (String::new(), format!("not measured: {why}")),
        }
    }

    fn between(values: &[[f64; 3]], (least, most): (f64, f64)) -> Self {
        if values.is_empty() {
            return Self::Missing("its values are missing".to_owned());
        }
        let fold = |place: usize, by: fn(f64, f64) -> f64| {
            values.iter().map(|value| value[place]).reduce(by).unwrap_or_default()
        };
        let found = Found {
            low: fold(0, f64::min),
            least: fold(1, f64::min),
            most: fold(1, f64::max),
            high: fold(2, f64::max),
            rows: values.len(),
        };
        let holds = |value: &[f64; 3]| value[0] >= least && value[2] <= most;
        let fails = |value: &[f64; 3]| value[2] < least || value[0] > most;
        match () {
            () if values.iter().all(holds) => Self::Holds(found),
            () if values.iter().all(fails) => Self::Fails(found),
            () => Self::Undecided(found),
        }
    }
}

/// Returns the values of a place.
fn at<'a>(points: &[&'a Point], (row, column): &At) -> Vec<&'a Point> {
    let is_there = |point: &&&Point| (row == "*" || point.row == *row) && point.column == *column;
    points.iter().filter(is_there).copied().filter(|point| point.value.is_some()).collect()
}
