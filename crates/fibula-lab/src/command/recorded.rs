//! The records that every program keeps, their date, and how long the rest takes.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula::net::Key;
use fibula::rib::{DualRib, Rib};
use fibula_cli::plumbing::{Failure, Messages, create_folder, write_file};
use indicatif::ProgressBar;

use crate::bench::{FamilyInfo, Progress};

/// Returns a time in words.
pub(super) fn about(time: Duration) -> String {
    match time.as_secs() + 1 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

/// Shows a step on a bar.
pub(super) fn show(bar: &ProgressBar, step: &Progress<'_>) {
    bar.set_length(step.total as u64);
    bar.set_position(step.done as u64);
    bar.set_message(format!("{}, {} left", step.step, about(step.left)));
}

/// Returns the sizes of the tables that have routes.
pub(super) fn sizes(ribs: &DualRib) -> Vec<FamilyInfo> {
    [size(&ribs.v4), size(&ribs.v6)].into_iter().flatten().collect()
}

fn size<K: Key>(rib: &Rib<K>) -> Option<FamilyInfo> {
    let mut next_hops: Vec<u32> = rib.iter().map(|route| route.next_hop.id()).collect();
    next_hops.sort_unstable();
    next_hops.dedup();
    let family = K::FAMILY.name().to_owned();
    (!rib.is_empty()).then(|| FamilyInfo { family, routes: rib.len(), next_hops: next_hops.len() })
}

/// Writes the text of a benchmark record to its path, and says so.
pub(super) fn write_record(path: &Path, json: &str, messages: Messages) -> Result<(), Failure> {
    if let Some(machine) = path.parent() {
        create_folder(machine)?;
    }
    write_file(path, [], json.as_bytes())?;
    messages.note(format_args!("result saved in {}", path.display()));
    Ok(())
}

/// Returns the date in UTC, as 2026-01-31.
pub(super) fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date((seconds / 86_400) as i64)
}

/// Returns the date of the day this many days after 1970-01-01, by 400-year eras that begin in March (Hinnant,
/// "chrono-compatible low-level date engines").
fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + i64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(11_017), "2000-03-01");
        assert_eq!(date(20_819), "2027-01-01");
    }
}
