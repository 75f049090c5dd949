//! Packets of the rules of filters between two readings of their counters, as a `Top`.
//!
//! Rules count each packet, so nothing is estimated, and nothing needs to be sampled.

use std::collections::HashMap;

use crate::acl::Action;
use crate::api::{Filters, RuleTable, Top, TopBy, TopRow};

/// A rule between two readings.
struct Count {
    name: String,
    packets: u64,
    bytes: u64,
    /// Whether it is about packets that no other row has. A rule of the action `count` is about packets that a later one decides.
    decides: bool,
}

/// Returns the `count` rules of the most packets since an earlier reading, then of the most bytes. Rules without a packet are left out.
///
/// A rule keeps its count over a reload, whatever its number is then. A rule that is new, or whose count has begun again, has all of its
/// packets in this time.
#[must_use]
pub fn by_rule(before: &Filters, after: &Filters, seconds: f64, count: usize) -> Top {
    let mut counts = Vec::new();
    for (place, before, after) in
        [("forward", &before.forward, &after.forward), ("local", &before.local, &after.local)]
    {
        if let Some(after) = after {
            since(place, before.as_ref(), after, &mut counts);
        }
    }
    let deciding = || counts.iter().filter(|count| count.decides);
    let all =
        row("all", deciding().map(|count| count.packets).sum(), deciding().map(|count| count.bytes).sum());
    // Stable, so that equal rows stay in the order of the rules.
    counts.sort_by_key(|count| std::cmp::Reverse((count.packets, count.bytes)));
    let rows = counts.iter().filter(|count| count.packets > 0).take(count);
    let rows = rows.map(|count| row(&count.name, count.packets, count.bytes)).collect();
    let drawn = all.packets;
    Top {
        by: TopBy::Rule,
        seconds,
        interval: 1,
        all,
        rows,
        drawn,
        lost: 0,
        unreadable: 0,
        collectors: Vec::new(),
    }
}

fn row(name: &str, packets: u64, bytes: u64) -> TopRow {
    TopRow { name: name.to_owned(), samples: packets, packets, packets_error: 0, bytes, bytes_error: 0 }
}

fn since(place: &str, before: Option<&RuleTable>, after: &RuleTable, counts: &mut Vec<Count>) {
    let mut known: HashMap<&str, Vec<[u64; 2]>> = HashMap::new();
    for rule in before.iter().flat_map(|table| &table.rules).rev() {
        known.entry(&rule.rule).or_default().push([rule.packets, rule.bytes]);
    }
    // Of equal rules, the first is that of before, and so on.
    let less = |[packets, bytes]: [u64; 2], before: Option<[u64; 2]>| match before {
        Some([some, more]) if some <= packets && more <= bytes => (packets - some, bytes - more),
        _ => (packets, bytes),
    };
    for rule in &after.rules {
        let before = known.get_mut(&*rule.rule).and_then(Vec::pop);
        let (packets, bytes) = less([rule.packets, rule.bytes], before);
        counts.push(Count {
            name: format!("{place} rule {} (line {}): {}", rule.number, rule.line, rule.rule),
            packets,
            bytes,
            decides: rule.rule.split(' ').next() != Some(Action::Count.name()),
        });
    }
    let before = before.map(|table| [table.default_packets, table.default_bytes]);
    let (packets, bytes) = less([after.default_packets, after.default_bytes], before);
    counts.push(Count { name: format!("{place} default: {}", after.default), packets, bytes, decides: true });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ListedRule;

    fn table(rules: &[(&str, u64)], default_packets: u64) -> Option<RuleTable> {
        let rule = |(at, &(rule, packets)): (usize, &(&str, u64))| ListedRule {
            number: at as u64 + 1,
            line: at as u64 + 10,
            rule: rule.to_owned(),
            packets,
            bytes: packets * 100,
        };
        Some(RuleTable {
            rules: rules.iter().enumerate().map(rule).collect(),
            default: "permit".to_owned(),
            default_packets,
            default_bytes: default_packets * 100,
        })
    }

    fn filters(forward: Option<RuleTable>, local: Option<RuleTable>) -> Filters {
        Filters { forward, local, lists: Vec::new(), policers: Vec::new() }
    }

    fn rows(before: &Filters, after: &Filters, count: usize) -> Vec<(String, u64)> {
        let top = by_rule(before, after, 10.0, count);
        let exact = |row: &TopRow| (row.samples, row.packets_error, row.bytes_error) == (row.packets, 0, 0);
        assert!(top.rows.iter().chain([&top.all]).all(|row| exact(row) && row.bytes == row.packets * 100));
        assert_eq!((top.by, top.interval, top.lost), (TopBy::Rule, 1, 0));
        top.rows.iter().chain([&top.all]).map(|row| (row.name.clone(), row.packets)).collect()
    }

    fn row(name: &str, packets: u64) -> (String, u64) {
        (name.to_owned(), packets)
    }

    #[test]
    fn rows_are_the_packets_between_two_readings() {
        let before = filters(table(&[("deny a", 5), ("count b", 7), ("permit c", 9)], 100), table(&[], 3));
        let after = filters(table(&[("deny a", 5), ("count b", 19), ("permit c", 29)], 130), table(&[], 5));
        assert_eq!(
            rows(&before, &after, 9),
            [
                row("forward default: permit", 30),
                row("forward rule 3 (line 12): permit c", 20),
                row("forward rule 2 (line 11): count b", 12),
                row("local default: permit", 2),
                // Without those of a rule that only counts.
                row("all", 52),
            ]
        );
        assert_eq!(rows(&before, &after, 1).len(), 2);
        assert_eq!(rows(&after, &after, 9), [row("all", 0)]);
    }

    #[test]
    fn a_reload_moves_rules_and_may_begin_counts_again() {
        let before = filters(table(&[("deny a", 50), ("deny a", 7), ("permit c", 9)], 0), None);
        // Another rule is first, the first of two equal ones has counted on, the last one has begun again.
        let after = filters(
            table(&[("deny z", 4), ("deny a", 51), ("deny a", 7), ("permit c", 2)], 0),
            table(&[], 8),
        );
        assert_eq!(
            rows(&before, &after, 9),
            [
                row("local default: permit", 8),
                row("forward rule 1 (line 10): deny z", 4),
                row("forward rule 4 (line 13): permit c", 2),
                row("forward rule 2 (line 11): deny a", 1),
                row("all", 15),
            ]
        );
    }
}
