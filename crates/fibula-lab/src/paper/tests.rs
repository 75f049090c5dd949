//! Definitions that fit together, verdicts on made-up values, and a quick run of every paper, with its page.

use std::collections::BTreeSet;

use super::definition::{Expected, Judge, OURS};
use super::record::FinishedPart;
use super::verdict::{JudgedRange, Tally, findings as findings_of};
use super::*;

fn settings() -> Settings {
    Settings { routes: 300, keys: 512, many_keys: 1_024, ..Settings::quick() }
}

fn measured(paper: &Paper, record: PaperRecord) -> (PaperRecord, usize) {
    let mut saved = 0;
    let save = &mut |_: &PaperRecord| {
        saved += 1;
        Ok(())
    };
    let record = run(paper, &settings(), &Nothing, record, save, &mut |_| ()).unwrap();
    (record, saved)
}

#[test]
fn definitions_name_their_own_rows_and_columns() {
    for paper in papers() {
        let mut names = BTreeSet::new();
        for exhibit in &paper.exhibits {
            let place = format!("{}, {}", paper.name, exhibit.name);
            assert!(names.insert(&exhibit.name), "{place}: two exhibits have one name");
            assert!(exhibit.title.contains(':'), "{place}: a title is a name and a subject");
            let columns: Vec<&str> = exhibit.columns.iter().map(|column| column.name.as_str()).collect();
            let known = |name: &str| columns.contains(&name);
            assert!(exhibit.published.iter().all(|value| known(&value.column)), "{place}");
            assert!(exhibit.published.is_empty() || !exhibit.setting.is_empty(), "{place}: published where?");
            assert!(exhibit.against.as_deref().is_none_or(known), "{place}");
            for claim in &exhibit.claims {
                match &claim.judge {
                    Judge::Ratio { of, over, is } => {
                        assert!(known(&of.1) && known(&over.1), "{place}");
                        two_sided(claim, is);
                    }
                    Judge::Value { of, is } => {
                        assert!(known(&of.1), "{place}");
                        two_sided(claim, is);
                    }
                    Judge::Construction { of, .. } => assert!(known(&of.1), "{place}"),
                    Judge::Missing(_) => {}
                }
            }
            let published: Vec<_> =
                exhibit.published.iter().map(|value| (&value.row, &value.column)).collect();
            assert_eq!(
                published.iter().collect::<BTreeSet<_>>().len(),
                published.len(),
                "{place}: published twice"
            );
            let parts: BTreeSet<&str> = exhibit.parts.iter().map(|part| part.name.as_str()).collect();
            assert_eq!(parts.len(), exhibit.parts.len(), "{place}: two parts have one name");
        }
    }
}

/// Checks that both ends can be missed, or that the claim has the word that leaves one open.
fn two_sided(claim: &Claim, bounds: &Expected) {
    let said = |word: &str| claim.text.contains(word) || claim.published.contains(word);
    match bounds {
        Expected::Near([least, most]) | Expected::Within([least, most]) => {
            assert!(0.0 < *least && least <= most && most.is_finite(), "{}: no interval", claim.text);
        }
        Expected::Above(end, word) | Expected::Below(end, word) => {
            assert!(0.0 < *end && end.is_finite() && !word.is_empty(), "{}: no bound", claim.text);
            assert!(said(word), "{}: nothing says '{word}'", claim.text);
        }
    }
    // A figure that is published is the one that is judged.
    if let Expected::Near(ends) = bounds {
        let printed: Vec<f64> = claim
            .published
            .split(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .filter_map(|number| number.parse().ok())
            .collect();
        assert!(ends.iter().all(|end| printed.contains(end)), "{}: {ends:?} is not published", claim.text);
    }
}

#[test]
fn every_function_is_named_by_a_file() {
    let parts = papers().iter().flat_map(|paper| &paper.exhibits).flat_map(|exhibit| &exhibit.parts);
    let named: BTreeSet<&str> = parts
        .filter_map(|part| match &part.work {
            Work::Values(values) => Some(values.function.as_str()),
            Work::Ipv4(_) | Work::Ipv6(_) => None,
        })
        .collect();
    let there: Vec<&str> = FUNCTIONS.iter().copied().flatten().map(|&(name, _)| name).collect();
    assert_eq!(there.iter().copied().collect::<BTreeSet<_>>(), named);
    assert_eq!(there.len(), named.len(), "two functions have one name");
}

#[test]
fn faults_of_a_file_have_their_line() {
    let shared =
        |summary: &str, machine: &str| format!("summary = \"{summary}\"\n[shared]\nmachine = {machine}\n");
    let summary = "summary = \"\"\n";
    for (from, to, line, reason) in [
        ("rows = \"threads\"", "rows = threads", 10, "invalid boolean"),
        ("about = \"\"", "abuot = \"\"", 9, "unknown field `abuot`"),
        ("chart = \"lines\"", "chart = \"pie\"", 14, "unknown variant `pie`"),
        ("[\"2\", [4]]", "[\"2\", [4, 5]]", 12, "row '2' has 2 values for 1 columns"),
        ("planb/capacity", "planb/capacities", 15, "no function 'planb/capacities'"),
        (", levels = []", "", 15, "missing field `levels`"),
        ("levels = []", "levels = [], heights = []", 15, "unknown field `heights`"),
        ("levels = []", "levels = [\"five\"]", 15, "invalid type: string \"five\""),
        ("\"a machine\"", "\"@machine\"", 13, "nothing is shared as 'machine'"),
        ("setting = \"a machine\"", "like = \"machine\"", 13, "nothing is shared as 'machine'"),
        (summary, &shared("", "\"a machine\""), 6, "nothing takes the shared 'machine'"),
        (summary, &shared("@machine", "\"@machine\""), 6, "nothing is shared as 'machine'"),
        (summary, &shared("@machine", "{ like = \"machine\" }"), 6, "nothing is shared as 'machine'"),
        (summary, &shared("@machine", "[]"), 6, "invalid type: sequence"),
    ] {
        assert!(FIGURE.contains(from), "{from}");
        let fault = file::read(&FIGURE.replace(from, to)).unwrap_err();
        assert!(fault.0 == line && fault.1.starts_with(reason), "{to}: {fault:?}");
    }
}

#[test]
fn quick_runs_measure_everything_and_make_a_page() {
    for paper in papers() {
        let (record, _) = measured(paper, PaperRecord::new(paper, "2026-11-24", true));
        let failed: Vec<_> = record.parts.iter().filter_map(|done| done.error.as_ref()).collect();
        assert!(failed.is_empty(), "{}: {failed:?}", paper.name);
        for exhibit in &paper.exhibits {
            let columns: Vec<&str> = exhibit.columns.iter().map(|column| column.name.as_str()).collect();
            for point in record.points(exhibit) {
                assert!(
                    columns.contains(&point.column.as_str()),
                    "{}: no column '{}'",
                    exhibit.name,
                    point.column
                );
            }
        }
        let page = report(paper, &record, "fibula-lab paper");
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(
            page.contains("A quick run.") && page.contains("<svg") && page.contains("prefers-color-scheme")
        );
        assert!(
            !page.contains("http://") || page.matches("http://").count() == page.matches("xmlns=").count()
        );
        for exhibit in &paper.exhibits {
            assert!(page.contains(&format!("<h2 id=\"{}\">", exhibit.name)));
        }
    }
}

/// Some exhibits of a paper.
fn of(paper: &Paper, names: &[&str]) -> Paper {
    let exhibit = |name: &&str| paper.exhibits.iter().find(|exhibit| exhibit.name == *name).unwrap().clone();
    Paper { exhibits: names.iter().map(exhibit).collect(), ..paper.clone() }
}

/// Routers of a fixed speed.
struct Fast;

impl Supply for Fast {
    fn ipv4(&self, _: &str) -> Result<Option<fibula::rib::Rib<u32>>, String> {
        Ok(None)
    }

    fn ipv6(&self, _: &str) -> Result<Option<fibula::rib::Rib<u128>>, String> {
        Ok(None)
    }

    fn routers(&self) -> Option<&dyn Routers> {
        Some(self)
    }
}

impl Routers for Fast {
    fn lacks(&self, _: PacketPath) -> Option<&'static str> {
        None
    }

    fn open(&self, routes: fibula::rib::DualRib, engine: &str) -> Result<Box<dyn Router>, String> {
        assert!(routes.v4.is_empty() != routes.v6.is_empty());
        Ok(Box::new(if engine == "planb" { 50.0 } else { 20.0 }))
    }
}

impl Router for f64 {
    fn load(&mut self, packets: &Packets<'_>) -> Result<(), String> {
        assert!(packets.bytes >= 64 && packets.ports >= 1 && packets.threads >= 1);
        Ok(())
    }

    fn run(&mut self, way: PacketPath, _: core::time::Duration) -> Result<f64, String> {
        Ok(if way == PacketPath::Bridge { 2.0 * *self } else { *self })
    }
}

#[test]
fn packets_are_forwarded_by_the_router_that_is_supplied() {
    for (name, figure, holds) in [
        ("planb", "figure-7", 3),
        ("planb", "figure-7-stages", 3),
        ("multibit", "figure-5", 0),
        ("multibit", "figure-8", 1),
    ] {
        let whole = find(name).unwrap();
        let paper = &of(whole, &[figure]);
        let exhibit = &paper.exhibits[0];
        let measure = |supply: &dyn Supply| {
            let record = PaperRecord::new(paper, "2026-11-25", true);
            let record = run(paper, &settings(), supply, record, &mut |_| Ok(()), &mut |_| ()).unwrap();
            assert!(record.parts.iter().all(|done| done.error.is_none()), "{record:?}");
            record.points(exhibit).into_iter().cloned().collect::<Vec<_>>()
        };
        // Every cell has a value or says why it has none, once.
        let there = measure(&Fast);
        assert_eq!(there.len(), measure(&Nothing).len());
        let cells: BTreeSet<_> = there.iter().map(|point| (&point.row, &point.column)).collect();
        assert_eq!(cells.len(), there.len());
        assert!(there.iter().all(|point| point.value.is_some() || point.column == "kernel"));
        let points: Vec<&Point> = there.iter().collect();
        let verdicts = exhibit.claims.iter().map(|claim| Verdict::of(claim, &points));
        assert_eq!(verdicts.filter(|verdict| matches!(verdict, Verdict::Reproduced(_))).count(), holds);
    }
}

/// Recorded addresses, and no tables.
struct Addresses;

impl Supply for Addresses {
    fn ipv4(&self, _: &str) -> Result<Option<fibula::rib::Rib<u32>>, String> {
        Ok(None)
    }

    fn ipv6(&self, _: &str) -> Result<Option<fibula::rib::Rib<u128>>, String> {
        Ok(None)
    }

    fn addresses(&self, name: &str) -> Result<Option<RecordedAddresses>, String> {
        assert!(name == "v4-apache2015-clients" || name == "v6-addrminer-seeds100k", "{name}");
        Ok(Some(RecordedAddresses { v4: vec![1, 2, 3], v6: Vec::new() }))
    }
}

#[test]
fn recorded_addresses_and_larger_sets_have_rows_and_what_is_not_there_keeps_its_place() {
    let whole = find("bloomfwd").unwrap();
    let paper = &of(whole, &["figure-4", "recorded-ipv6", "addresses", "schedules"]);
    let exhibits = &paper.exhibits;
    let settings = Settings { quick: false, cores: 1, ..settings() };
    let record = PaperRecord::new(paper, "2026-11-24", false);
    let record = run(paper, &settings, &Addresses, record, &mut |_| Ok(()), &mut |_| ()).unwrap();
    let point = |exhibit: &Exhibit, row: &str, column: &str| {
        let points = record.points(exhibit);
        let found = points.iter().find(|point| point.row == row && point.column == column);
        found.map(|point| (point.value.is_some(), point.note.clone().unwrap_or_default())).unwrap()
    };
    assert!(point(&exhibits[0], "recorded", "miht").0);
    let (there, why) = point(&exhibits[1], "recorded", "bloomfwd");
    assert!(!there && why.starts_with("needs the recorded addresses 'v6-addrminer-seeds100k'"), "{why}");
    for keys in [settings.keys, settings.many_keys] {
        assert!(point(&exhibits[2], &keys.to_string(), "bloomfwd").0, "{keys}");
    }
    assert!(point(&exhibits[3], "miht, rayon, chunks of 16", "1").0);
    let (there, why) = point(&exhibits[3], "miht, static", "2");
    assert!(!there && why.starts_with("takes 2 cores, and this machine has"), "{why}");
    let page = findings(paper, &record);
    assert!(
        page.contains("| recorded | ") && page.contains("Missing (recorded): needs the recorded"),
        "{page}"
    );
}

#[test]
fn runs_continue_where_they_ended() {
    let paper = find("multibit").unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(PaperRecord::read(folder.path()), Ok(None));
    let mut rest = 2;
    let ended = run(
        paper,
        &settings(),
        &Nothing,
        PaperRecord::new(paper, "2026-11-24", true),
        &mut |record| {
            record.write(folder.path())?;
            rest -= 1;
            if rest == 0 { Err(PaperError("interrupted".to_owned())) } else { Ok(()) }
        },
        &mut |_| (),
    );
    assert_eq!(ended, Err(PaperError("interrupted".to_owned())));

    let mut before = PaperRecord::read(folder.path()).unwrap().unwrap();
    assert_eq!(before.parts.len(), 2);
    PaperRecord::new(paper, "2026-11-25", true).continues(&before).unwrap();
    let other = PaperRecord::new(paper, "2026-11-25", false).continues(&before).unwrap_err().to_string();
    assert_eq!(
        other,
        "the record is of another kind of run ('quick', this is 'full'): measure it anew, without resuming"
    );

    // A part that failed is tried again.
    before.parts[1].error = Some("no memory".to_owned());
    let total = paper.exhibits.iter().map(|exhibit| exhibit.parts.len()).sum::<usize>();
    let (record, saved) = measured(paper, before);
    assert_eq!((record.parts.len(), saved), (total, total - 1));
    assert_eq!(record.date, "2026-11-24");
}

#[test]
fn records_of_another_schema_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let record =
        PaperRecord { schema: 99, ..PaperRecord::new(find("multibit").unwrap(), "2026-11-24", true) };
    record.write(folder.path()).unwrap();
    let error = PaperRecord::read(folder.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("a record of schema 99; this program reads schema 1: measure it anew"),
        "{error}"
    );
    std::fs::write(PaperRecord::path(folder.path()), "{").unwrap();
    assert!(PaperRecord::read(folder.path()).unwrap_err().to_string().contains("record.json: EOF"));
}

fn timed(row: &str, column: &str, race: &str, runs: &[f64]) -> Point {
    let median = fibula_workload::interval::Interval::of(runs).unwrap();
    Point {
        low: Some(median.low),
        high: Some(median.high),
        runs: runs.to_vec(),
        race: Some(race.to_owned()),
        ..Point::new(row, column, median.median)
    }
}

#[test]
fn claims_are_judged_by_paired_ratios_and_their_spread() {
    // Both are disturbed alike.
    let slow = [1.0, 2.0, 3.0, 4.0, 5.0];
    let fast = slow.map(|rate| 2.0 * rate);
    let points =
        [timed("a", "new", "1", &fast), timed("a", "old", "1", &slow), timed("b", "new", "2", &slow)];
    let points: Vec<&Point> = points.iter().collect();
    let at = |row: &str, column: &str| (row.to_owned(), column.to_owned());
    let claim = |least, most| Claim {
        text: String::new(),
        published: String::new(),
        judge: Judge::Ratio { of: at("*", "new"), over: at("*", "old"), is: Expected::Within([least, most]) },
    };
    let found = JudgedRange { low: 2.0, least: 2.0, most: 2.0, high: 2.0, rows: 1 };
    assert_eq!(Verdict::of(&claim(1.5, 3.0), &points), Verdict::Reproduced(found));
    assert_eq!(Verdict::of(&claim(2.5, 3.0), &points), Verdict::NotReproduced(found, 1));

    // The same values of two races say little.
    let apart = [timed("a", "new", "1", &fast), timed("a", "old", "2", &slow)];
    let ratio = Ratio::of(&apart[0], &apart[1]).unwrap();
    assert_eq!((ratio.median, ratio.low, ratio.high, ratio.paired), (2.0, 0.4, 10.0, false));
    let apart: Vec<&Point> = apart.iter().collect();
    assert!(matches!(Verdict::of(&claim(1.5, 3.0), &apart), Verdict::Undecided(_)));
    assert!(apart[0].is_noisy());

    let none = Verdict::of(&claim(1.0, 2.0), &[]);
    assert_eq!(none, Verdict::Missing("its values are missing".to_owned()));
    let is = Expected::Within([0.5, 10.0]);
    let value = Claim { judge: Judge::Value { of: at("b", "new"), is }, ..claim(0.0, 0.0) };
    assert!(matches!(Verdict::of(&value, &points), Verdict::Reproduced(_)));
}

/// A claim about the column `new`.
fn about_new(published: &str, is: Expected) -> Claim {
    let of = ("*".to_owned(), "new".to_owned());
    Claim { text: String::new(), published: published.to_owned(), judge: Judge::Value { of, is } }
}

fn between(row: &str, [low, value, high]: [f64; 3]) -> Point {
    Point { low: Some(low), high: Some(high), ..Point::new(row, "new", value) }
}

/// The figures before "times" in a finding: each must be a place of the record.
fn ratios_by_hand(finding: &str) -> Vec<&str> {
    let words: Vec<&str> = finding.split_whitespace().collect();
    words
        .windows(2)
        .filter(|pair| pair[1].starts_with("times") && pair[0].parse::<f64>().is_ok())
        .map(|pair| pair[0])
        .collect()
}

#[test]
fn findings_take_their_figures_from_the_record() {
    assert_eq!(ratios_by_hand("it is 7 to 11 times as fast, and [=0] times as fast"), ["11"]);
    for paper in papers() {
        for exhibit in &paper.exhibits {
            for finding in &exhibit.findings {
                assert!(ratios_by_hand(finding).is_empty(), "{}: {finding}", exhibit.title);
            }
        }
    }
    let mut exhibit = find("planb").unwrap().exhibits[0].clone();
    exhibit.claims = vec![about_new("1 to 2", Expected::Near([1.0, 2.0]))];
    exhibit.findings = vec!["is [=0] here, and [=a|new] in a".to_owned(), "is [=b|old]".to_owned()];
    let points = [between("a", [1.0, 1.5, 2.0]), between("b", [2.0, 3.0, 4.0])];
    let found = findings_of(&exhibit, &points.iter().collect::<Vec<_>>());
    assert_eq!(found, ["is 1.50 to 3 here, and 1.50 in a"]);
}

#[test]
fn a_published_range_is_missed_above_as_well_as_below() {
    let claim = about_new("1.4 to 5.6", Expected::Near([1.4, 5.6]));
    let verdict = |points: &[Point]| Verdict::of(&claim, &points.iter().collect::<Vec<_>>());
    let words = |points: &[Point]| verdict(points).words(&claim).1;
    let inside = between("a", [1.3, 2.0, 6.1]);
    assert_eq!(words(std::slice::from_ref(&inside)), "reproduced");
    assert_eq!(words(&[between("b", [6.75, 6.95, 7.2])]), "not reproduced");
    assert_eq!(words(&[between("b", [1.0, 1.1, 1.2])]), "not reproduced");
    let across = "undecidable: an interval reaches over a bound";
    assert_eq!(words(&[between("b", [6.0, 6.1, 6.3])]), across);
    assert_eq!(words(&[between("b", [1.2, 1.4, 1.6])]), across);
    // One row that is surely beyond decides, whatever the others are.
    let rows = [inside, between("b", [6.0, 6.1, 6.3]), between("c", [9.0, 9.5, 9.9])];
    assert_eq!(words(&rows[..2]), across);
    assert_eq!(words(&rows), "not reproduced (1 of 3 rows)");
    assert!(matches!(verdict(&rows), Verdict::NotReproduced(_, 1)));
}

#[test]
fn a_word_of_the_paper_leaves_one_side_open() {
    let points = [between("a", [40.0, 50.0, 60.0]), between("b", [1.1, 1.2, 1.3])];
    let points: Vec<&Point> = points.iter().collect();
    let verdict = |is| Verdict::of(&about_new("", is), &points);
    assert!(matches!(verdict(Expected::Above(1.0, "faster".to_owned())), Verdict::Reproduced(_)));
    assert!(matches!(verdict(Expected::Above(1.25, "faster".to_owned())), Verdict::Undecided(_)));
    assert!(matches!(verdict(Expected::Above(2.0, "faster".to_owned())), Verdict::NotReproduced(_, 1)));
    assert!(matches!(verdict(Expected::Below(100.0, "slower".to_owned())), Verdict::Reproduced(_)));
    assert!(matches!(verdict(Expected::Below(45.0, "slower".to_owned())), Verdict::Undecided(_)));
    assert!(matches!(verdict(Expected::Below(1.0, "slower".to_owned())), Verdict::NotReproduced(_, 2)));
}

#[test]
fn circular_comparisons_and_our_own_do_not_count() {
    let point = between("a", [2.0, 2.0, 2.0]);
    let of = ("*".to_owned(), "new".to_owned());
    let judge = Judge::Construction { of, why: "it was made so".to_owned() };
    let circular = Claim { judge, ..about_new("2", Expected::Near([2.0, 2.0])) };
    let verdict = Verdict::of(&circular, &[&point]);
    assert_eq!(verdict.words(&circular), ("2".to_owned(), "by construction: it was made so".to_owned()));
    assert!(matches!(Verdict::of(&circular, &[]), Verdict::Missing(_)));

    let ours = about_new(OURS, Expected::Within([1.0, 3.0]));
    let held = Verdict::of(&ours, &[&point]);
    assert_eq!(held.words(&ours).1, "holds here");
    let theirs = about_new("2", Expected::Near([2.0, 2.0]));
    let mut tally = Tally::default();
    for (claim, verdict) in [(&circular, verdict), (&ours, held), (&theirs, Verdict::of(&theirs, &[&point]))]
    {
        tally.add(claim, &verdict);
    }
    let said = tally.to_string();
    assert!(
        said.starts_with("Of the paper's 1 conclusions that can be judged, 1 are reproduced, 0 are not"),
        "{said}"
    );
    assert!(said.contains("1 hold by construction"), "{said}");
}

/// A paper of one figure.
const FIGURE: &str = r#"
title = "A < B"
citation = ""
summary = ""

[[exhibits]]
name = "figure"
title = "Fig. 0: <of> nothing"
about = ""
rows = "threads"
columns = [{ unit = "M/s", names = ["a & b"] }]
published = [{ columns = ["a & b"], rows = [["2", [4]], ["10", [8]]] }]
setting = "a machine"
chart = "lines"
parts = [{ name = "all", work.values = { function = "planb/capacity", levels = [] } }]
"#;

#[test]
fn pages_say_what_is_missing_and_escape_what_they_quote() {
    let paper = file::read(FIGURE).unwrap();
    let mut record = PaperRecord::new(&paper, "2026-11-24", false);
    let points = vec![
        Point::new("1", "a & b", 2.0).noted("avx2"),
        Point::absent("10", "a & b", "takes 10 cores, and this machine has 2"),
    ];
    record.parts.push(FinishedPart {
        exhibit: "figure".into(),
        part: "all".into(),
        seconds: 1.0,
        error: None,
        points,
    });
    let page = report(&paper, &record, "fibula-lab paper p");
    assert!(
        page.contains("A &lt; B")
            && page.contains("Fig. 0: &lt;of&gt; nothing")
            && page.contains("a &amp; b")
    );
    assert!(page.contains("Missing (10): takes 10 cores, and this machine has 2."));
    assert!(!page.contains("A quick run.") && page.contains("1 in part"));
    // Rows are numbers, and in their order.
    let at = |text: &str| page.find(text).unwrap();
    assert!(at("<td>1</td>") < at("<td>2</td>") && at("<td>2</td>") < at("<td>10</td>"));
    assert_eq!(page.matches("<polyline").count(), 2, "one measured, one published");
}

#[test]
fn numbers_have_the_digits_that_mean_something() {
    let all = [0.0, 0.000_04, 0.012_34, 0.5, 1.0, 2.345, 12.345, 123.45, 999.6, 1_234_567.0, -5_000.0];
    let texts = all.map(report::number);
    assert_eq!(
        texts,
        ["0", "4.0e-5", "0.0123", "0.5000", "1", "2.35", "12.3", "123", "1,000", "1,234,567", "-5,000"]
    );
}
