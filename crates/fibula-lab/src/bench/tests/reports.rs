//! Rows, records, charts and documents.

use std::path::Path;

use fibula::memory::Limits;

use super::super::*;
use super::{bench, contestant, plan, table};

#[test]
fn short_times_are_in_microseconds() {
    let cases = [
        (0.001_234, "1.23 us"),
        (0.0123, "12.3 us"),
        (0.123, "123 us"),
        (1.234, "1.23 ms"),
        (45.89, "45.9 ms"),
        (171.83, "172 ms"),
        (44_937.56, "44.9 s"),
    ];
    for (ms, text) in cases {
        assert_eq!(duration(ms), text);
    }
}

/// The names that scripts rely on, in the documented order.
const DOCUMENTED: [&str; 14] = [
    "engine",
    "rival",
    "family",
    "traffic",
    "batch",
    "threads",
    "isa",
    "mlps_median",
    "mlps_min",
    "mlps_max",
    "lookup_bytes",
    "bytes_per_prefix",
    "build_time_ms",
    "wrong",
];

fn some_rows() -> Vec<Row> {
    let mut contestants = Contestant::all(Limits::default());
    contestants.push(contestant("refuses", Box::new(|_| Err("no room for <this> & that".into()))));
    bench(&Plan { threads: vec![1, 2], ..plan() }, &table::<u32>(500), &contestants)
}

#[test]
fn rows_have_the_documented_names_and_always_all_of_them() {
    for row in some_rows() {
        let text = serde_json::to_string(&row).unwrap();
        let value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
        let at =
            |name: &str| text.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} in {text}"));
        assert!(Row::COLUMNS.is_sorted_by_key(|name| at(name)));
        assert_eq!(Row::COLUMNS.len(), value.len());
        assert_eq!(Row::COLUMNS[..DOCUMENTED.len()], DOCUMENTED);
        assert!(value["wrong"].is_u64() && value["rival"].is_boolean() && value["batch"].is_u64());
    }
}

#[test]
fn records_come_back_as_they_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let record = Record::new("2026-01-31", "A table, 1", plan(), some_rows());
    let path = record.write(folder.path()).unwrap();
    assert_eq!(path, folder.path().join(record.machine.slug()).join("a-table-1.json"));
    assert_eq!(Record::read(&path).unwrap(), record);
    assert_eq!(record.table.families.len(), 1);
    let later = Record { date: "2026-02-01".into(), ..record };
    later.write(folder.path()).unwrap();
    std::fs::write(folder.path().join("instructions.json"), "not a record").unwrap();
    std::fs::create_dir(folder.path().join("mutants")).unwrap();
    std::fs::write(folder.path().join("mutants/net.json"), "{}").unwrap();
    assert_eq!(<Record>::read_all(folder.path()).unwrap(), std::slice::from_ref(&later));
    // A line a row, so that differences can be read.
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("{\"engine\":")).count(), later.rows.len());
    for (text, parts) in [
        ("{}", ["schema 1", "measure it again"]),
        ("{\"schema\":3}", ["schema 3", "reads schema 2"]),
        ("{\"schema\":2}", ["date", "missing"]),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = <Record>::read_all(folder.path()).unwrap_err().to_string();
        assert!(
            error.contains("a-table-1.json: ") && parts.iter().all(|part| error.contains(part)),
            "{error}"
        );
    }
    assert!(<Record>::read_all(Path::new("/nowhere")).is_err());
}

#[test]
fn charts_are_svg_with_a_bar_a_row() {
    let rows = some_rows();
    let rows: Vec<_> = rows.iter().filter(|row| row.traffic == "match").collect();
    let chart = svg("IPv4 <MATCH>", "a & b", &rows).unwrap();
    assert!(chart.starts_with("<svg ") && chart.trim_end().ends_with("</svg>"));
    assert!(chart.contains("<title>IPv4 &lt;MATCH&gt;. a &amp; b</title>"));
    assert!(!chart.contains("<MATCH>") && !chart.contains("NaN"));
    // Every element is closed, here or by its end.
    let count = |what: &str| chart.matches(what).count();
    assert_eq!(count("<text"), count("</text>"));
    assert_eq!(count("<svg") + count("<text") + count("<title") + count("<style"), count("</"));
    // The ground, the legend of three colours, and the bars.
    let bars = chart::best(&rows).into_iter().filter(|row| row.rates().is_some()).count();
    assert!(rows.iter().any(|row| row.role == "oracle") && !chart.contains("binary-trie"));
    assert_eq!(count("<rect"), 1 + 3 + bars);
    for name in [
        "range-search",
        "refuses (rival)",
        "refuses this table",
        "fastest batch and instruction set, 2 threads",
    ] {
        assert!(chart.contains(name), "{name}");
    }
    let refused: Vec<_> = rows.iter().copied().filter(|row| row.error.is_some()).collect();
    assert!(svg("", "", &refused).unwrap_err().to_string().contains("no row has a rate"));
    assert!(svg("", "", &[]).is_err());
}

#[test]
fn documents_hold_all_that_records_do() {
    let folder = tempfile::tempdir().unwrap();
    let records = [Record::new("2026-01-31", "Toy 1", plan(), some_rows())];
    let document = document(&records, &[], "the command", "benchmarks");
    let first = document.text.lines().next().unwrap();
    assert!(first.contains("Generated by `the command`"), "{first}");
    for traffic in traffic_names::<u32>() {
        assert!(document.text.contains(&format!("\n### IPv4, {}\n", traffic.to_uppercase())));
        let chart = format!("benchmarks/{}-toy-1-ipv4-{traffic}.svg", records[0].machine.slug());
        assert!(document.text.contains(&format!("]({chart})")), "{chart}");
        assert!(document.charts.iter().any(|(name, svg)| *name == chart && svg.starts_with("<svg ")));
    }
    assert!(document.text.contains("no room for <this> & that"));
    let commit = document::commit;
    let words = commit(records[0].program.commit.as_deref());
    assert!(document.text.contains(&format!("- Commit: {words}\n")));
    assert_eq!(commit(Some("1a2b-dirty")), "1a2b-dirty, with changes that were not committed");
    assert_eq!((commit(Some("1a2b")), &commit(None)[..7]), ("1a2b".to_owned(), "unknown"));
    assert!(document.text.contains("Ratios to the best of DPDK's tables and the published engines"));
    let size = format!("500 prefixes, {} next hops", records[0].rows[0].next_hops);
    assert!(document.text.contains(&size), "{size}");
    document.write(folder.path(), "benchmarks.md").unwrap();
    assert!(folder.path().join(&document.charts[0].0).is_file());
    assert!(folder.path().join("benchmarks.md").is_file());
}

#[test]
fn the_summary_has_eight_bars_by_colour() {
    let any = some_rows().swap_remove(0);
    let row = |family: &str, engine: &str, rival, role: &str, mlps| Row {
        family: family.into(),
        engine: engine.into(),
        rival,
        role: role.into(),
        traffic: "match".into(),
        mlps_median: Some(mlps),
        wrong: 0,
        many_keys: false,
        ..any.clone()
    };
    let mut rows = vec![
        row("ipv4", "ours-4", false, "own", 9.0),
        row("ipv4", "dir-24-8", false, "published", 8.0),
        row("ipv4", "poptrie", false, "published", 5.0),
        row("ipv4", "rte-fib-2b-uni", true, "published", 3.0),
        row("ipv4", "rte-fib-2b-avx512", true, "published", 6.0),
        row("ipv6", "ours-6", false, "own", 4.0),
        row("ipv6", "planb", false, "published", 3.0),
        row("ipv6", "rte-fib6-2b-scalar", true, "published", 1.0),
        row("ipv6", "iptrie", true, "published", 0.5),
    ];
    let summary = |rows: &[Row]| {
        let record = Record::new("2026-01-31", "table", plan(), rows.to_vec());
        document(&[record], &[], "the command", "benchmarks")
            .charts
            .into_iter()
            .find(|(name, _)| name.ends_with("summary.svg"))
    };
    let (_, svg) = summary(&rows).unwrap();
    for (class, bars) in [("bar2", 2), ("bar0", 3), ("bar1", 3)] {
        let count = svg.matches(&format!("<rect class=\"{class}\"")).count();
        assert_eq!(count, 1 + bars, "{class}, its legend included");
    }
    assert!(svg.contains("IPv4: ours-4 9.00, DIR-24-8 8.00, DPDK rte_fib 6.00, Poptrie 5.00,"), "{svg}");
    assert!(svg.contains("prefers-color-scheme: dark"));
    // Of two machines the one whose record is of today's code.
    let [mut before, mut now] = [(); 2].map(|()| Record::new("2026-01-31", "table", plan(), rows.clone()));
    before.sources.clear();
    "A machine of today".clone_into(&mut now.machine.cpu);
    let svg = |records: &[Record]| summary::svg(records).unwrap();
    assert!(svg(&[before.clone()]).contains(sources::STALE));
    for records in [[before.clone(), now.clone()], [now, before]] {
        let svg = svg(&records);
        assert!(svg.contains("A machine of today") && !svg.contains(sources::STALE), "{svg}");
    }
    rows.retain(|row| row.engine != "ours-6");
    assert!(summary(&rows).is_none());
}
