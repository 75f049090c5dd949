//! What shows a claim: tests that run, scripts that a step runs, records, texts of files, standards.

use std::collections::BTreeMap;

use fibula_workload::interval::Interval;
use serde::Deserialize;
use serde_json::Value;

use super::Read;

/// The steps of every change, and those that somebody starts.
const STEPS: [&str; 2] = [".ci/run", ".ci/scheduled"];

/// The list of claims.
const LIST: &str = "docs/claims.toml";

/// What a text says of a record without a day.
const MARKS: [&str; 2] = ["measured before", "recorded on"];

/// What shows a claim.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Shown {
    /// A test that `cargo test` runs, or that it ignores and a step runs: its file, and the name of its function or the text that
    /// names it.
    Test { file: String, name: String },
    /// A script or a case that is no test of Rust, and the text of the step that runs it.
    Script { file: String, step: String },
    /// A record with its mark in the text: its day, or where it has none the words of [`MARKS`]; and what the record must say.
    Record { file: String, says: Vec<Says> },
    /// A text that a file has.
    Has { file: String, text: String },
    /// A text that a file lacks.
    Lacks { file: String, text: String },
    /// A standard.
    Rfc(u32),
    /// Another claim of the list, with its text: one that says what was measured, where this one says what to do.
    Claim(String),
    /// Nothing: the sentence claims nothing, for this reason.
    NoClaim(String),
}

/// Names of fields with their values.
type Fields = BTreeMap<String, Value>;

/// What a benchmark record says, by the rows of one thread and of engines of this project's lists.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Says {
    /// In calls of these sizes (of all, where none is named) an engine is faster than each other one, by the whole interval of their
    /// ratio.
    Fastest { engine: String, traffic: String, batches: Vec<u64> },
    /// As [`Self::Fastest`] of two engines, for each of these kinds of traffic.
    Faster { engine: String, than: String, traffic: Vec<String>, batches: Vec<u64> },
    /// No engine has a higher median in calls of this size, and 1 is in the interval of its ratio to another one.
    Level { engine: String, with: String, traffic: String, batch: u64 },
    /// An engine makes so many million lookups a second or more.
    AtLeast { engine: String, traffic: String, batch: u64, millions: f64 },
    /// An engine takes so many bytes a prefix, to the digits that are given.
    BytesAPrefix { engine: String, is: String },
    /// An engine takes so many bytes, to the whole of 10^6.
    Megabytes { engine: String, is: u64 },
    /// No engine takes fewer bytes a prefix.
    LeastBytes { engine: String },
    /// Of the rows with these fields, rivals' rows too, the greatest or the least value of a field, to the digits that are given.
    Value {
        of: Fields,
        field: String,
        #[serde(default)]
        least: bool,
        is: String,
        /// What one of its units has of the record's.
        #[serde(default = "one")]
        unit: f64,
    },
    /// Of two sets of rows, the greatest value of a field, or where they are summed the sum of all, the first's by the second's, to the
    /// digits that are given. Neither greatest value is of a row that is too noisy to be compared; a ratio of rates is the median of
    /// those of their rounds.
    Ratio {
        field: String,
        of: Fields,
        to: Fields,
        #[serde(default)]
        summed: bool,
        is: String,
    },
    /// Of the rows with these fields, the one with the highest median is too noisy to be compared.
    Noisy(Fields),
    /// A value of a record that is no list of rows: its path by names and numbers, with `/` between them.
    At { path: String, is: String },
}

impl Shown {
    /// The error says what is wrong.
    pub(super) fn holds(&self, paragraph: &str, read: Read<'_>) -> Result<(), String> {
        let open = |file: &str| read(file).ok_or_else(|| format!("there is no {file}"));
        match self {
            Self::Test { file, name } => {
                runs(&open(file)?, name, read).map_err(|why| format!("{file}: {why}"))
            }
            Self::Script { file, step } => {
                open(file)?;
                let has = STEPS.iter().any(|steps| read(steps).is_some_and(|text| text.contains(step)));
                if has { Ok(()) } else { Err(format!("no step has '{step}'")) }
            }
            Self::Record { file, says } => {
                let record: Value =
                    serde_json::from_str(&open(file)?).map_err(|error| format!("{file}: {error}"))?;
                match record["date"].as_str() {
                    Some(day) if !paragraph.contains(day) => {
                        return Err(format!("the paragraph does not say that it was measured on {day}"));
                    }
                    None if !MARKS.iter().any(|mark| paragraph.contains(mark)) => {
                        return Err(format!("{file} has no day, and the paragraph none of {MARKS:?}"));
                    }
                    _ => {}
                }
                says.iter().try_for_each(|says| says.holds(&record)).map_err(|why| format!("{file}: {why}"))
            }
            Self::Has { file, text } if open(file)?.contains(text) => Ok(()),
            Self::Has { file, text } => Err(format!("{file} has no '{text}'")),
            Self::Lacks { file, text } if open(file)?.contains(text) => Err(format!("{file} has '{text}'")),
            Self::Lacks { .. } => Ok(()),
            Self::Rfc(number) if *number > 0 => Ok(()),
            Self::Rfc(_) => Err("there is no RFC 0".to_owned()),
            Self::Claim(text) if open(LIST)?.contains(&format!("\ntext = \"{text}")) => Ok(()),
            Self::Claim(text) => Err(format!("no claim begins with '{text}'")),
            Self::NoClaim(why) if why.is_empty() => Err("no reason is given".to_owned()),
            Self::NoClaim(_) => Ok(()),
        }
    }
}

/// Whether a source has a test of this name that `cargo test` runs, or that it ignores and a step runs: a function with the
/// attribute, or a name made at run time.
fn runs(source: &str, name: &str, read: Read<'_>) -> Result<(), String> {
    let made = ["trial(\"", "trial(&format!(\"", "Trial::test(\""];
    if made.iter().any(|made| source.contains(&format!("{made}{name}"))) {
        return Ok(());
    }
    let at = source.find(&format!("fn {name}(")).ok_or_else(|| format!("no test is called '{name}'"))?;
    // The attributes are the lines above, up to an empty one or the end of what is before.
    let attributes: Vec<&str> = source[..at]
        .lines()
        .rev()
        .skip(usize::from(!source[..at].ends_with('\n')))
        .take_while(|line| line.trim_start().starts_with(['#', '/']))
        .collect();
    let has = |what: &str| attributes.iter().any(|line| line.trim_start().starts_with(what));
    match (has("#[test]"), has("#[ignore")) {
        (false, _) => Err(format!("'{name}' is no test")),
        (true, true) if !is_in_a_step(name, read) => Err(format!("'{name}' is ignored, and no step runs it")),
        (true, _) => Ok(()),
    }
}

/// Whether a step names an ignored test, as a whole or by a part of its name.
fn is_in_a_step(name: &str, read: Read<'_>) -> bool {
    STEPS.iter().filter_map(|steps| read(steps)).any(|text| {
        text.split("-- --ignored ").skip(1).any(|rest| {
            let part = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            part.is_some_and(|part| !part.is_empty() && name.contains(part))
        })
    })
}

impl Says {
    fn holds(&self, record: &Value) -> Result<(), String> {
        let rows: Vec<&Value> =
            record["rows"].as_array().into_iter().flatten().filter(|row| row["rival"] == false).collect();
        let bytes = |name: &str, field: &str| {
            let row = rows.iter().find(|row| row["engine"] == name);
            row.and_then(|row| row[field].as_f64()).ok_or_else(|| format!("no bytes of {name}"))
        };
        match self {
            Self::Fastest { engine, traffic, batches } => fastest(&rows, engine, traffic, batches),
            Self::Level { engine, with, traffic, batch } => level(&rows, [engine, with], traffic, *batch),
            Self::Faster { engine, than, traffic, batches } => {
                let mut two = rows;
                two.retain(|row| row["engine"] == *engine || row["engine"] == *than);
                if !two.iter().any(|row| row["engine"] == *than) {
                    return Err(format!("{than} is not measured"));
                }
                traffic.iter().try_for_each(|traffic| fastest(&two, engine, traffic, batches))
            }
            Self::AtLeast { engine, traffic, batch, millions } => {
                let is_meant = |row: &&&Value| {
                    row["engine"] == *engine
                        && row["traffic"] == *traffic
                        && row["batch"] == *batch
                        && row["threads"] == 1
                };
                let rates = rows.iter().filter(is_meant).filter_map(|row| row["mlps_median"].as_f64());
                let best = rates.fold(0.0, f64::max);
                if best >= *millions {
                    Ok(())
                } else {
                    Err(format!("{engine} makes {best} million, not {millions}"))
                }
            }
            Self::BytesAPrefix { engine, is } => {
                let digits = is.split_once('.').map_or(0, |(_, digits)| digits.len());
                let found = format!("{:.digits$}", bytes(engine, "bytes_per_prefix")?);
                if found == *is {
                    Ok(())
                } else {
                    Err(format!("{engine} takes {found} bytes a prefix, not {is}"))
                }
            }
            Self::Megabytes { engine, is } => {
                let found = (bytes(engine, "lookup_bytes")? / 1e6).round();
                if found == *is as f64 { Ok(()) } else { Err(format!("{engine} takes {found} MB, not {is}")) }
            }
            Self::LeastBytes { engine } => {
                let own = bytes(engine, "bytes_per_prefix")?;
                let less =
                    rows.iter().find(|row| row["bytes_per_prefix"].as_f64().is_some_and(|bytes| bytes < own));
                less.map_or(Ok(()), |row| Err(format!("{} takes less than {engine}", row["engine"])))
            }
            Self::Value { of, field, least, is, unit } => {
                let found = extreme(record, of, field, *least)? / unit;
                same(found, is).map_err(|found| format!("{field} of {of:?} is {found}, not {is}"))
            }
            Self::Ratio { field, of, to, summed: true, is } => {
                let found = sum(record, of, field)? / sum(record, to, field)?;
                same(found, is).map_err(|found| format!("{field} of {of:?} by {to:?} is {found}, not {is}"))
            }
            Self::Ratio { field, of, to, summed: false, is } => {
                let [of_row, to_row] = [greatest(record, of, field)?, greatest(record, to, field)?];
                if let Some((of, _)) =
                    [(of, of_row), (to, to_row)].iter().find(|(_, row)| row["noisy"] == true)
                {
                    return Err(format!("{of:?} is too noisy to be compared"));
                }
                let found = match field.as_str() {
                    "mlps_median" => by_rounds(of_row, to_row)?.median,
                    field => number(of_row, field) / number(to_row, field),
                };
                same(found, is).map_err(|found| format!("{field} of {of:?} by {to:?} is {found}, not {is}"))
            }
            Self::Noisy(of) if greatest(record, of, "mlps_median")?["noisy"] == true => Ok(()),
            Self::Noisy(of) => Err(format!("{of:?} is not too noisy to be compared")),
            Self::At { path, is } => {
                let pointer = format!("/{path}");
                let found = record.pointer(&pointer).ok_or_else(|| format!("there is no {path}"))?;
                let number = found.as_f64().or_else(|| found.as_str().and_then(|text| text.parse().ok()));
                let number = number.ok_or_else(|| format!("{path} is no number"))?;
                same(number, is).map_err(|found| format!("{path} is {found}, not {is}"))
            }
        }
    }
}

/// Whether an engine is faster than each other one of these rows in calls of these sizes.
fn fastest(rows: &[&Value], engine: &str, traffic: &str, batches: &[u64]) -> Result<(), String> {
    let by_size = leaders(rows, traffic, batches)?;
    for (size, leaders) in by_size {
        let (best, others) = (leaders[0], &leaders[1..]);
        if best["engine"] != engine {
            let best = &best["engine"];
            return Err(format!("in calls of {size}, {traffic}, {best} is the fastest, not {engine}"));
        }
        for other in others {
            let Interval { low, high, .. } = by_rounds(best, other)?;
            if low <= 1.0 {
                let other = &other["engine"];
                return Err(format!(
                    "in calls of {size}, {traffic}, {engine} makes {low:.2}-{high:.2} of {other}: undecided"
                ));
            }
        }
    }
    Ok(())
}

/// Whether the first of two engines leads in calls of this size, and not by the whole interval of its ratio to the second.
fn level(rows: &[&Value], [engine, with]: [&str; 2], traffic: &str, batch: u64) -> Result<(), String> {
    let by_size = leaders(rows, traffic, &[batch])?;
    let leaders = &by_size[&batch];
    let best = &leaders[0]["engine"];
    if *best != engine {
        return Err(format!("in calls of {batch}, {traffic}, {best} is the fastest, not {engine}"));
    }
    let other = leaders.iter().find(|row| row["engine"] == with);
    let Interval { low, .. } =
        by_rounds(leaders[0], other.ok_or_else(|| format!("{with} is not measured"))?)?;
    if low <= 1.0 { Ok(()) } else { Err(format!("{engine} makes at least {low:.2} of {with}")) }
}

/// By the size of calls, the row of each engine with its highest median, the highest first.
fn leaders<'r>(
    rows: &[&'r Value],
    traffic: &str,
    batches: &[u64],
) -> Result<BTreeMap<u64, Vec<&'r Value>>, String> {
    let is_meant = |row: &&&Value| {
        row["traffic"] == *traffic
            && row["threads"] == 1
            && row["many_keys"] == false
            && row["batch"].as_u64().is_some_and(|batch| batches.is_empty() || batches.contains(&batch))
    };
    let mut by_size = BTreeMap::<u64, Vec<&Value>>::new();
    for row in rows.iter().filter(is_meant) {
        by_size.entry(row["batch"].as_u64().unwrap_or(0)).or_default().push(row);
    }
    if by_size.is_empty() || batches.iter().any(|batch| !by_size.contains_key(batch)) {
        return Err(format!("calls of {batches:?}, {traffic}, are not measured"));
    }
    for rows in by_size.values_mut() {
        rows.sort_by(|a, b| number(b, "mlps_median").total_cmp(&number(a, "mlps_median")));
        let mut seen = Vec::new();
        rows.retain(|row| {
            let is_new = !seen.contains(&&row["engine"]);
            seen.push(&row["engine"]);
            is_new
        });
    }
    Ok(by_size)
}

/// The ratio of two rows' rates: of the runs of each round.
fn by_rounds(of: &Value, to: &Value) -> Result<Interval, String> {
    let runs = |row: &Value| -> Vec<f64> {
        row["mlps_runs"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    Interval::of_ratios(&runs(of), &runs(to))
        .ok_or_else(|| format!("{} and {} have no runs of the same rounds", of["engine"], to["engine"]))
}

/// The value of a field, the least number where there is none.
fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or(f64::MIN)
}

/// The rows with these fields.
fn with<'r>(record: &'r Value, of: &'r Fields) -> impl Iterator<Item = &'r Value> {
    let is_meant = |row: &&Value| of.iter().all(|(name, value)| row[name] == *value);
    record["rows"].as_array().into_iter().flatten().filter(is_meant)
}

/// The values of a field of the rows with these fields.
fn values<'r>(record: &'r Value, of: &'r Fields, field: &'r str) -> impl Iterator<Item = f64> + 'r {
    with(record, of).filter_map(move |row| row[field].as_f64())
}

/// The row with the greatest value of a field, of the rows with these fields.
fn greatest<'r>(record: &'r Value, of: &'r Fields, field: &str) -> Result<&'r Value, String> {
    let rows = with(record, of).filter(|row| row[field].is_number());
    rows.max_by(|a, b| number(a, field).total_cmp(&number(b, field)))
        .ok_or_else(|| format!("no row has {field} and {of:?}"))
}

/// The greatest or the least value of a field of the rows with these fields.
fn extreme(record: &Value, of: &Fields, field: &str, least: bool) -> Result<f64, String> {
    let values = values(record, of, field);
    let found = if least { values.reduce(f64::min) } else { values.reduce(f64::max) };
    found.ok_or_else(|| format!("no row has {field} and {of:?}"))
}

/// The sum of a field of the rows with these fields.
fn sum(record: &Value, of: &Fields, field: &str) -> Result<f64, String> {
    values(record, of, field).reduce(|a, b| a + b).ok_or_else(|| format!("no row has {field} and {of:?}"))
}

fn one() -> f64 {
    1.0
}

/// Whether a number is this text, to its digits. The error is the number to as many.
fn same(number: f64, is: &str) -> Result<(), String> {
    let digits = is.split_once('.').map_or(0, |(_, digits)| digits.len());
    let found = format!("{number:.digits$}");
    if found == is { Ok(()) } else { Err(found) }
}
