//! The committed records, and what they are judged by.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::programs::{output, root};

use super::Chosen;
use super::crates::Folder;

const KILLED_PERCENT: f64 = 95.0;
/// Mutants that time out count neither as killed nor as survivors.
const TIMEOUT_PERCENT: usize = 5;

/// What became of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fate {
    Caught,
    Missed,
    Timeout,
    Unviable,
}

impl Fate {
    /// Returns the fate that cargo-mutants calls so.
    pub(super) fn of(summary: &str) -> Option<Self> {
        Some(match summary {
            "CaughtMutant" => Self::Caught,
            "MissedMutant" => Self::Missed,
            "Timeout" => Self::Timeout,
            "Unviable" => Self::Unviable,
            _ => return None,
        })
    }
}

/// The record of a folder.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    folder: String,
    commit: String,
    date: String,
    /// Which sample; none where every mutant was chosen.
    seed: Option<u64>,
    mutants: usize,
    sampled: usize,
    run: usize,
    caught: usize,
    missed: usize,
    timeout: usize,
    unviable: usize,
    killed_percent: f64,
    /// Of this run, and with an explanation those that shares since have found, or that are to be run again.
    survivors: Vec<Survivor>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    mutant: String,
    /// Why no test notices, written by hand.
    why: String,
}

impl Record {
    fn path(folder: &str) -> PathBuf {
        root().join("records/mutants").join(format!("{folder}.json"))
    }

    fn parse(text: &str) -> Outcome<Self> {
        Ok(serde_json::from_str(text)?)
    }

    fn text(&self) -> Outcome<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the record of these fates; explanations are those of `before`, also of mutants that `is_left` says have no result yet.
    fn new(
        folder: &str,
        seed: Option<u64>,
        [mutants, sampled]: [usize; 2],
        fates: &BTreeMap<&str, Fate>,
        is_left: impl Fn(&str) -> bool,
        before: Option<&Self>,
    ) -> Self {
        let count = |fate| fates.values().filter(|&&one| one == fate).count();
        let (caught, missed) = (count(Fate::Caught), count(Fate::Missed));
        let old = before.map_or(&[][..], |record| &record.survivors);
        let why = |name: &str| old.iter().find(|one| one.mutant == name).map(|one| one.why.clone());
        let survived = fates.iter().filter(|&(_, &fate)| fate == Fate::Missed);
        let survivors = survived
            .map(|(&name, _)| Survivor { mutant: name.to_owned(), why: why(name).unwrap_or_default() });
        let left = old.iter().filter(|one| !one.why.is_empty() && is_left(&one.mutant)).cloned();
        let mut survivors: Vec<_> = survivors.chain(left).collect();
        survivors.sort_by(|one, other| one.mutant.cmp(&other.mutant));
        Self {
            folder: folder.to_owned(),
            commit: String::new(),
            date: String::new(),
            seed,
            mutants,
            sampled,
            run: fates.len(),
            caught,
            missed,
            timeout: count(Fate::Timeout),
            unviable: count(Fate::Unviable),
            killed_percent: percent(caught, caught + missed),
            survivors,
        }
    }

    /// Prints the verdict and returns whether it is good.
    fn judge(&self) -> bool {
        let Self { folder, sampled, run, missed, timeout, killed_percent, survivors, .. } = self;
        println!("{folder}: {run} of {sampled} run, {killed_percent:?} % killed, {missed} survived");
        let unexplained: Vec<_> = survivors.iter().filter(|survivor| survivor.why.is_empty()).collect();
        for survivor in &unexplained {
            println!("  no explanation: {}", survivor.mutant);
        }
        let slow = 100 * timeout > TIMEOUT_PERCENT * run;
        if slow {
            println!(
                "  {timeout} of {run} timed out, more than {TIMEOUT_PERCENT} %, and prove nothing: run {folder} again with \
                 --fresh on an idle machine"
            );
        }
        run == sampled && *killed_percent >= KILLED_PERCENT && unexplained.is_empty() && !slow
    }
}

/// Returns a share in percent with one decimal; 0 of nothing.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { (1000.0 * part as f64 / whole as f64).round_ties_even() / 10.0 }
}

/// Returns the committed record of a folder.
fn before(folder: &Folder) -> Outcome<Option<Record>> {
    let path = Record::path(folder.name);
    Ok(match std::fs::read_to_string(&path) {
        Ok(text) => Some(Record::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?),
        Err(_) => None,
    })
}

/// Prints what became of a share of a folder's mutants, and returns whether all were run and every survivor is explained in the record.
pub(super) fn judge_share(folder: &Folder, chosen: usize, fates: &BTreeMap<&str, Fate>) -> Outcome<bool> {
    let record = Record::new(folder.name, None, [chosen, chosen], fates, |_| false, before(folder)?.as_ref());
    record.judge();
    Ok(record.run == chosen && record.survivors.iter().all(|survivor| !survivor.why.is_empty()))
}

/// Writes the record of the shares of a folder that were run, for the explanations of their survivors. A record of a whole run stays,
/// and only gets the survivors that it has not, and loses those that a test has caught since.
pub(super) fn write_part(
    folder: &Folder,
    chosen: &Chosen,
    counts: [usize; 2],
    fates: &BTreeMap<&str, Fate>,
    is_left: impl Fn(&str) -> bool,
) -> Outcome {
    match before(folder)? {
        Some(mut whole) if whole.run == whole.sampled => {
            let part = Record::new(folder.name, None, counts, fates, |_| false, Some(&whole));
            let is_caught =
                |one: &Survivor| fates.get(&*one.mutant).is_some_and(|&fate| fate == Fate::Caught);
            whole.survivors.retain(|one| !is_caught(one));
            let is_new = |one: &Survivor| whole.survivors.iter().all(|other| other.mutant != one.mutant);
            let new: Vec<_> = part.survivors.into_iter().filter(is_new).collect();
            whole.survivors.extend(new);
            Ok(std::fs::write(Record::path(folder.name), whole.text()?)?)
        }
        _ => write_record(folder, chosen, counts, fates, is_left).map(|_| ()),
    }
}

/// Writes the record of a folder, and returns whether it is good: all chosen mutants were run, enough were killed, every survivor is
/// explained, and few timed out.
pub(super) fn write(
    folder: &Folder,
    chosen: &Chosen,
    counts: [usize; 2],
    fates: &BTreeMap<&str, Fate>,
) -> Outcome<bool> {
    Ok(write_record(folder, chosen, counts, fates, |_| false)?.judge())
}

fn write_record(
    folder: &Folder,
    chosen: &Chosen,
    counts: [usize; 2],
    fates: &BTreeMap<&str, Fate>,
    is_left: impl Fn(&str) -> bool,
) -> Outcome<Record> {
    let path = Record::path(folder.name);
    let before = before(folder)?;
    let seed = (!chosen.all).then_some(chosen.seed);
    let mut record = Record::new(folder.name, seed, counts, fates, is_left, before.as_ref());
    let commit = output(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()))?;
    record.commit = commit.trim().to_owned();
    record.date = output(Command::new("date").arg("+%F"))?.trim().to_owned();
    std::fs::write(&path, record.text()?)?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_records_are_written_back_byte_for_byte() {
        let folder = root().join("records/mutants");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let record = Record::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(Record::path(&record.folder).file_name(), path.file_name());
            assert_eq!(record.text().unwrap(), text, "{}", path.display());
            let judged = record.caught + record.missed;
            assert_eq!(percent(record.caught, judged), record.killed_percent, "{}", path.display());
            count += 1;
        }
        assert!(count >= 8, "{count}");
    }

    #[test]
    fn explanations_are_kept() {
        let fates =
            BTreeMap::from([("x: a", Fate::Missed), ("x: b", Fate::Caught), ("x: c", Fate::Unviable)]);
        let mut before = Record::new("net", None, [3, 3], &fates, |_| false, None);
        assert_eq!((before.run, before.caught, before.missed, before.unviable), (3, 1, 1, 1));
        assert_eq!(before.killed_percent, 50.0);
        assert!(!before.judge());
        before.survivors[0].why = "equivalent".to_owned();
        let after = |fates: &BTreeMap<&str, Fate>, is_left: fn(&str) -> bool| {
            Record::new("net", Some(1), [3, 3], fates, is_left, Some(&before)).survivors
        };
        assert_eq!(after(&fates, |_| false), before.survivors);
        // It is to be run again, it is caught, or there is no such mutant any more.
        let fewer = BTreeMap::from([("x: b", Fate::Caught)]);
        assert_eq!(after(&fewer, |name| name == "x: a"), before.survivors);
        let caught = BTreeMap::from([("x: a", Fate::Caught)]);
        assert_eq!(after(&caught, |_| false), []);
        assert_eq!(after(&fewer, |_| false), []);
    }

    #[test]
    fn a_record_is_good_when_all_ran_and_nearly_all_were_killed() {
        let names: Vec<String> = (0..40).map(|number| format!("x: {number}")).collect();
        let mut fates: BTreeMap<&str, Fate> =
            names.iter().map(|name| (name.as_str(), Fate::Caught)).collect();
        let good = |sampled, fates: &BTreeMap<_, _>| {
            Record::new("net", None, [50, sampled], fates, |_| false, None).judge()
        };
        assert!(good(40, &fates));
        assert!(!good(41, &fates));
        for name in &names[..3] {
            fates.insert(name, Fate::Timeout);
        }
        assert!(!good(40, &fates), "7.5 % timed out");
    }
}
