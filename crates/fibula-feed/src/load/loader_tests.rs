//! Several feeds make one table; each has its own report.

use std::path::PathBuf;

use super::*;
use crate::event::Action;
use crate::select::Rule;

/// Files that are removed with the test.
struct Files(Vec<PathBuf>);

impl Files {
    fn new(test: &str, contents: &[&str]) -> Self {
        let path = |index: usize| {
            std::env::temp_dir().join(format!("fibula-{test}-{}-{index}.txt", std::process::id()))
        };
        let paths = contents.iter().enumerate().map(|(index, content)| {
            std::fs::write(path(index), content).unwrap();
            path(index)
        });
        Self(paths.collect())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

const FIRST: &str = "\
10.0.0.0/8 1
10.1.0.0/16 1
10.2.0.0/16 1
2001:db8::/32 1
";

const SECOND: &str = "\
10.0.0.0/8 1
10.1.0.0/16 2
10.3.0.0/16 2
";

/// A route with a path and a peer gives way to one of a table without peers.
const THIRD: &str = "\
TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|7 8|IGP|192.0.2.9|0|0||NAG||
TABLE_DUMP2|1|B|192.0.2.1|7|10.4.0.0/16|7 8|IGP|192.0.2.9|0|0||NAG||
";

/// The same path lengths from a higher address, and a shorter path.
const FOURTH: &str = "\
TABLE_DUMP2|1|B|192.0.2.2|7|10.0.0.0/8|7 8|IGP|192.0.2.10|0|0||NAG||
TABLE_DUMP2|1|B|192.0.2.2|7|10.4.0.0/16|7|IGP|192.0.2.10|0|0||NAG||
";

#[test]
fn feeds_that_differ_are_counted_by_the_rule_that_decides() {
    let files = Files::new("differ", &[FIRST, SECOND, THIRD, FOURTH]);
    let table = Loader::new(LoadOptions::default()).load(&files.0).unwrap();
    let via = |prefix: &str| {
        let next_hop = table.ribs.v4.get(prefix.parse().unwrap()).unwrap();
        table.next_hops.label(next_hop).unwrap().to_string()
    };
    assert_eq!([via("10.0.0.0/8"), via("10.1.0.0/16"), via("10.3.0.0/16")], ["1", "1", "2"]);
    assert_eq!(via("10.4.0.0/16"), "192.0.2.10");
    let reports: Vec<_> = table
        .reports
        .iter()
        .map(|report| (report.prefixes, report.differing.clone().into_iter().collect::<Vec<_>>()))
        .collect();
    let expected = [
        ([3, 1], vec![]),
        // 10.0.0.0/8 has the same next hop in both.
        ([3, 0], vec![(Rule::Feed, 1)]),
        ([2, 0], vec![(Rule::OwnTable, 1)]),
        ([2, 0], vec![(Rule::OwnTable, 1), (Rule::PathLength, 1)]),
    ];
    assert_eq!(reports, expected);
    let order = |order: TableOrder| {
        let table = Loader::new(LoadOptions { order, ..LoadOptions::default() }).load(&files.0).unwrap();
        ["10.0.0.0/8", "10.1.0.0/16", "10.4.0.0/16"].map(|prefix| {
            let next_hop = table.ribs.v4.get(prefix.parse().unwrap()).unwrap();
            table.next_hops.label(next_hop).unwrap().to_string()
        })
    };
    assert_eq!(order(TableOrder::LaterWins), ["192.0.2.10", "2", "192.0.2.10"]);
    assert_eq!(order(TableOrder::FirstWins), ["1", "1", "192.0.2.9"]);
    assert_eq!(order(TableOrder::MoreSpecific), order(TableOrder::FirstWins));
    // A table by itself has its prefixes as well.
    for (content, prefixes) in [(FIRST, [3, 1]), (THIRD, [2, 0]), ("", [0, 0])] {
        let table =
            Loader::new(LoadOptions::default()).load(Source::reader("x", content.as_bytes())).unwrap();
        assert_eq!((table.report().prefixes, table.report().differing.len()), (prefixes, 0));
    }
}

#[test]
fn surveys_and_events_have_a_report_a_feed() {
    let files = Files::new("reports", &[THIRD, SECOND, FOURTH]);
    let mut progress = 0;
    let reports =
        Loader::new(LoadOptions::default()).on_progress(|_| progress += 1).survey(&files.0).unwrap();
    assert_eq!(reports.iter().map(|report| report.peers.len()).collect::<Vec<_>>(), [1, 0, 1]);
    assert_eq!(progress, 3);
    let mut said = Vec::new();
    let best = LoadOptions { selection: Selection::Best, ..LoadOptions::default() };
    let each = |event: crate::event::Event| {
        if let Action::Announce(route) = event.action {
            said.push(route.next_hop.to_string());
        }
        Ok(())
    };
    let reports = Loader::new(best.clone()).events(&files.0, each).unwrap();
    assert_eq!(said, ["192.0.2.9", "192.0.2.9", "1", "2", "2", "192.0.2.10", "192.0.2.10"]);
    assert_eq!(reports.iter().map(|report| report.lines).collect::<Vec<_>>(), [2, 3, 2]);
    let stop = |_| Err(std::io::Error::other("enough"));
    let stopped = Loader::new(best).events(&files.0, stop).unwrap_err().stopped().unwrap();
    assert_eq!(stopped.to_string(), "enough");
}

#[test]
fn no_file_is_an_error() {
    let mut loader = Loader::new(LoadOptions::default());
    let none: [&str; 0] = [];
    assert_eq!(loader.load(none).unwrap_err().to_string(), "no file to load");
    assert_eq!(loader.survey(none).unwrap_err().to_string(), "no file to load");
    assert!(!loader.events(none, |_| Ok(())).unwrap_err().is_bad_input());
}
