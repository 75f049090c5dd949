//! `fibula-lab updates`, as scripts and people use it. No speed is asserted here.

use crate::support;
use crate::support::{Folder, TABLE, run};
use serde_json::Value;

/// Runs the command on little, quietly.
fn updates(options: &[&str]) -> support::Run {
    run(&[&["updates", "--seconds", "0", "--keys", "1000", "--quiet"], options].concat())
}

#[test]
fn what_changes_cost() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let recorded = "1546300800 a 10.2.0.0/16 192.0.2.1 192.0.2.1 64501 64501\n\
                   1546300801 w 10.2.0.0/16 - 192.0.2.1 64501 -\n\
                   1546300801 a 2001:db8:77::/48 192.0.2.1 192.0.2.1 64501 64501\n";
    let trace = folder.write("trace.txt", recorded);
    let [table, trace] = [&table, &trace].map(|path| path.to_str().unwrap());
    let records = folder.path().join("records");
    let options = ["--table", table, "--trace", trace, "--runs", "5"];
    let some = ["--engine", "dir-17-bitmap", "--engine", "dir-btree", "--engine", "planb"];
    let options = [&options[..], &some].concat();
    let run = updates(&[&options[..], &["--json", "--record", records.to_str().unwrap()]].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    for family in ["ipv4", "ipv6"] {
        for part in ["length", "batch", "trace", "build"] {
            let is = |row: &&Value| row["family"] == family && row["part"] == part;
            let mut some = rows.iter().filter(is).peekable();
            assert!(some.peek().is_some(), "{family} {part}");
            some.for_each(|row| assert!(row["median"].is_number() && row["wrong"] == 0, "{row}"));
        }
    }
    let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    assert!(machine.join("table.json").exists());
    let text = updates(&[&options[..], &["--format", "text"]].concat()).out;
    for part in ["a change, 64 a call", "of the trace", "building 1000 routes", "planb", "rebuild"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // A trace follows a table as it is.
    for wrong in [
        &["--synth", "ipv4/300"][..],
        &["--table", table, "--hosts", "5"],
        &["--table", table, "--one-in", "2"],
    ] {
        let run = updates(&[wrong, &["--trace", trace]].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{wrong:?}");
        assert!(run.err.contains("leave out --synth"), "{}", run.err);
    }
    for other in ["--traffic=rnd", "--reach", "--many-keys=5"] {
        assert_eq!(updates(&["--table", table, other]).code, 2, "{other}");
    }
}
