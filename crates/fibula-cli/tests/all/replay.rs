//! `fibula replay`: what is replayed, how, and what is said of it.

use std::path::PathBuf;

use crate::support::{Folder, Run, run};
use serde_json::Value;

const TABLE: &str = "10.0.0.0/8 192.0.2.9\n10.1.0.0/16 192.0.2.9\n2001:db8::/32 192.0.2.9\n";

/// Two peers; the second says less. One route is announced twice, and one withdrawn that is not there.
const UPDATES: &str = "\
1546300800 a 10.2.0.0/16 192.0.2.1 192.0.2.1 64501 64501
1546300800 a 10.2.0.0/16 192.0.2.2 192.0.2.2 64502 64502
1546300801 a 10.2.0.0/16 192.0.2.1 192.0.2.1 64501 64501
1546300801 w 10.9.0.0/16 - 192.0.2.1 64501 -
1546300801 a 2001:db8:1::/48 192.0.2.1 192.0.2.1 64501 64501
1546300802 w 10.2.0.0/16 - 192.0.2.1 64501 -
1546300802 a 10.1.0.0/16 192.0.2.2 192.0.2.2 64502 64502
";

fn files(folder: &Folder) -> [PathBuf; 2] {
    [folder.write("table.txt", TABLE), folder.write("updates.txt", UPDATES)]
}

fn replay(options: &[&str]) -> Run {
    let folder = Folder::new();
    let [table, updates] = files(&folder);
    let mut args = vec!["replay", "--table", table.to_str().unwrap(), "--updates", updates.to_str().unwrap()];
    args.extend(options);
    run(&args)
}

/// Runs with `--json`, and returns the one object.
fn measured(options: &[&str]) -> Value {
    let run = replay(&[options, &["--json", "--verify", "1"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let objects: Value = serde_json::from_str(run.out.trim()).unwrap();
    let object = objects[0].clone();
    assert_eq!(object["wrong"], 0, "{run:?}");
    assert!(object["verified"].as_u64().unwrap() > 0);
    object
}

fn counts(object: &Value) -> [u64; 4] {
    ["routes", "changes", "unchanged", "absent"].map(|name| object[name].as_u64().unwrap())
}

#[test]
fn the_busiest_peer_is_replayed_unless_another_is_named() {
    assert_eq!(counts(&measured(&[])), [3, 3, 1, 1]);
    assert_eq!(counts(&measured(&["--updates-peer", "192.0.2.2"])), [3, 2, 0, 0]);
    assert_eq!(counts(&measured(&["--updates-peer", "AS64501", "--batch", "1"])), [3, 3, 1, 1]);
}

#[test]
fn the_best_routes_of_all_peers_are_replayed() {
    // 10.2/16 by the first peer, then by the second; 10.1/16 and the /48, which have one route.
    assert_eq!(counts(&measured(&["--best"])), [3, 4, 0, 0]);
    let run = replay(&["--best"]);
    assert!(run.err.contains("4 changes of the best routes by 7 updates; 6 routes of all peers"), "{run:?}");
    assert_eq!(replay(&["--best", "--updates-peer", "192.0.2.2"]).code, 2);
}

#[test]
fn every_way_of_updating_gives_the_same_answers() {
    for options in [
        &["--engine", "planb"][..],
        &["--engine", "planb", "--background"],
        &["--engine", "range-btree", "--coalesce", "5"],
        &["--coalesce", "1000"],
        &["--rate", "1000", "--readers", "2"],
        &["--rate", "100x", "--readers", "0"],
        &["--loop", "3", "--batch", "2"],
    ] {
        let object = measured(options);
        let changes = object["changes"].as_u64().unwrap();
        assert_eq!(changes, if options[0] == "--loop" { 12 } else { 3 }, "{options:?}");
        let in_place = object["in_place_percent"].as_f64().unwrap();
        assert_eq!(in_place == 100.0, options[0] != "--engine", "{options:?} {object}");
        let readers = object["readers_busy_mlps"].as_array().unwrap().len();
        assert_eq!(readers == 0, options.contains(&"0"));
    }
}

#[test]
fn text_says_what_was_measured() {
    let run = replay(&["--verify", "1"]);
    for part in
        ["3 routes; 3 route changes in ", "changed nothing: 1 announced again, 1 withdrawn", "0 wrong"]
    {
        assert!(run.out.contains(part), "{run:?}");
    }
}

#[test]
fn wrong_use_is_said() {
    for (options, code) in [
        (&["--rate", "fast"][..], 2),
        (&["--batch", "0"], 2),
        (&["--coalesce", "-1"], 2),
        (&["--engine", "abacus"], 2),
        (&["--updates-peer", "192.0.2.77"], 2),
        (&["--updates", "/nowhere/updates.txt"], 3),
    ] {
        let run = replay(options);
        assert!(run.code == code && run.err.contains("error"), "{options:?} {run:?}");
    }
    // A table in place of updates.
    let folder = Folder::new();
    let [table, _] = files(&folder);
    let table = table.to_str().unwrap();
    let run = run(&["replay", "--table", table, "--updates", table]);
    let message = "table.txt: not an update file: its routes name no peers; give updates";
    assert!(run.code == 3 && run.err.contains(message), "{run:?}");
}
