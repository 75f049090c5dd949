//! The commands around the lookup: help, the list of engines, the tour, completions, manual pages.

#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use std::process::Command;

use crate::support::{Folder, Run, TABLE, fibula, run};
use fibula::simd::Isa;
use serde_json::Value;

#[test]
fn alone_it_prints_help_that_ends_by_naming_the_tour() {
    let bare = run(&[]);
    assert_eq!((bare.code, bare.err.as_str()), (0, ""));
    assert!(bare.out.trim_end().ends_with("fibula tour"), "{}", bare.out);
    for command in [
        "lookup",
        "enrich",
        "count",
        "doctor",
        "route",
        "router",
        "table",
        "verify",
        "peers",
        "engines",
        "choose",
        "compile",
        "tour",
        "completions",
        "man",
    ] {
        assert!(bare.out.contains(&format!("\n  {command} ")), "{command}");
        let help = run(&[command, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""));
        assert!(help.out.contains("Examples:"), "{command}");
        assert!(help.out.lines().all(|line| line.chars().count() <= 110), "{command}");
    }
    assert!(run(&["--version"]).out.starts_with("fibula "));
}

#[test]
fn engines_as_json_have_the_documented_fields() {
    let first = run(&["engines", "--json"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    let list: Vec<Value> = serde_json::from_str(&first.out).unwrap();
    assert!(!list.is_empty());
    for entry in &list {
        for field in ["name", "paper", "summary", "use_when"] {
            assert!(entry[field].as_str().is_some_and(|text| !text.is_empty()), "{field} of {entry}");
        }
        let strings = |field: &str| -> Vec<&str> {
            entry[field].as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
        };
        assert!(!strings("families").is_empty());
        assert!(strings("families").iter().all(|family| ["ipv4", "ipv6"].contains(family)));
        assert!(strings("isas").contains(&"scalar"));
        assert!(["in-place", "exclusive", "rebuild"].contains(&entry["update"].as_str().unwrap()));
        assert!(["oracle", "published", "described", "own"].contains(&entry["role"].as_str().unwrap()));
    }
    let mut names: Vec<_> = list.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), list.len(), "a name stands once");
    assert_eq!(run(&["engines", "--format", "json"]).out, first.out);
}

#[test]
fn engines_in_the_other_forms() {
    let count = serde_json::from_str::<Vec<Value>>(&run(&["engines", "--json"]).out).unwrap().len();
    let csv = run(&["engines", "--format", "csv"]).out;
    assert_eq!(csv.lines().next(), Some("name,paper,families,isas,update,role,summary,use_when"));
    assert_eq!(csv.lines().count(), count + 1);
    let lines = run(&["engines", "--format", "json-line"]).out;
    assert_eq!(lines.lines().count(), count);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["name"].is_string()));
    let text = run(&["engines"]).out;
    assert!(text.starts_with("To use ") && text.contains("\nbinary-trie "), "{text}");
    assert!(!text.contains('\x1b'), "no colour in a pipe");
}

/// The registry is the home of the sentences.
#[test]
fn the_readme_says_when_to_take_which_engine_as_the_registry_does() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let mut said: Vec<&str> = readme.lines().filter(|line| line.starts_with("- Take `")).collect();
    let list: Vec<Value> = serde_json::from_str(&run(&["engines", "--json"]).out).unwrap();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let sentence = |entry| format!("- Take `{}` when {}.", text(entry, "name"), text(entry, "use_when"));
    let mut expected: Vec<String> = list.iter().map(sentence).collect();
    said.sort_unstable();
    expected.sort_unstable();
    assert_eq!(said, expected);
}

#[test]
fn colour_obeys_the_environment() {
    let forced = fibula().arg("engines").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(String::from_utf8(forced.stdout).unwrap().contains('\x1b'));
    let none = fibula().arg("engines").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!String::from_utf8(none.stdout).unwrap().contains('\x1b'));
}

#[test]
fn words_that_moved_name_their_place() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let (table, chart) = (table.to_str().unwrap(), folder.path().join("rates.svg"));
    for (args, now) in [
        (&["bench", "-t", table, "--svg", chart.to_str().unwrap()][..], "rates"),
        (&["bench", "-t", table, "--updates"], "updates"),
        (&["bench", "--schedule=rayon"], "schedule"),
        (&["bench", "--device", "-t", table], "device"),
        (&["bench", "--reach", "--rivals", "--nonsense"], "targets"),
        (&["bench", "--help"], "rates"),
        (&["paper", "dxr", "-o", chart.to_str().unwrap()], "paper"),
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.ends_with(&format!("is now 'fibula-lab {now}'\n")), "{args:?}: {}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
    assert!(!chart.exists());
    // Words whose place is the same.
    for (args, now) in [
        (&["algorithms", "--json"][..], "'fibula algorithms' is now 'fibula engines'\n"),
        (&["lookup", "-t", table, "--algorithm", "planb"], "'--algorithm' is now '--engine'\n"),
        (&["compile", table, "--algorithm=planb"], "'--algorithm' is now '--engine'\n"),
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.ends_with(now) && run.err.lines().count() == 1, "{args:?}: {}", run.err);
    }
    assert!(!run(&["--help"]).out.contains("algorithms"));
}

#[test]
fn completions_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let run = run(&["completions", shell]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(run.out.contains("fibula") && run.out.contains("engines"), "{shell}");
    }
    assert_eq!(run(&["completions", "cmd.exe"]).code, 2);
}

/// The words that bash offers after these.
#[cfg(unix)]
fn offered(script: &Path, words: &[&str]) -> Vec<String> {
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = words.len() - 1;
    let ask = format!(
        "PATH='{}':$PATH; source '{}'; COMP_WORDS=({list}); COMP_CWORD={last}; _fibula fibula '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap().display(),
        script.display(),
        words[last],
        words[last - 1],
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[cfg(unix)]
#[ignore = "needs bash: .ci/run"]
fn names_that_are_known_are_completed() {
    let folder = Folder::new();
    let script = folder.write("fibula.bash", run(&["completions", "bash"]).out);
    for (words, name) in [
        (&["fibula", "lookup", "--engine", ""][..], "dir-24-8"),
        (&["fibula", "lookup", "-a", "dir-1"], "dir-17-bitmap"),
        (&["fibula", "compile", "-a", "dir-1"], "dir-18-lines"),
        (&["fibula", "replay", "--engine", "dir-b"], "dir-btree"),
        (&["fibula", "table", "synth", "ipv6-20"], "ipv6-2024"),
        (&["fibula", "enrich", "--value", "or"], "origin-as"),
        (&["fibula", "lookup", "--isa", "sc"], "scalar"),
    ] {
        let offered = offered(&script, words);
        assert!(offered.iter().any(|word| word == name), "{words:?}: {offered:?}");
        let typed = words[words.len() - 1];
        assert!(offered.iter().all(|word| word.starts_with(typed)), "{words:?}: {offered:?}");
    }
    let dump = "TABLE_DUMP2|1|B|192.0.2.9|64500|10.0.0.0/8|64500|IGP|192.0.2.9|0|0||NAG||\n\
                TABLE_DUMP2|1|B|198.51.100.7|64501|10.0.0.0/8|64501|IGP|198.51.100.7|0|0||NAG||\n";
    let table = folder.write("peers.txt", dump);
    let words = ["fibula", "lookup", "--table", table.to_str().unwrap(), "--peer", "19"];
    assert_eq!(offered(&script, &words), ["192.0.2.9", "198.51.100.7"]);
    // The help says where names are, and does not list them; other names are taken where they have a meaning.
    assert!(!run(&["lookup", "--help"]).out.contains("possible values: linear"));
    assert!(run(&["completions", "zsh"]).out.contains("dir-24-8"));
}

#[test]
fn manual_pages() {
    let page = run(&["man"]);
    assert_eq!(page.code, 0);
    assert!(page.out.contains("\n.TH fibula 1 "), "{}", page.out);
    let lookup = run(&["man", "lookup"]);
    assert!(lookup.out.contains("\n.TH fibula-lookup 1 "), "{}", lookup.out);
    let unknown = run(&["man", "nonsuch"]);
    assert_eq!(unknown.code, 2);
    // Maps of the kernel are Linux's.
    let bpf = if cfg!(target_os = "linux") { "bpf, " } else { "" };
    assert!(
        unknown.err.contains(&format!(
            "lookup, enrich, count, route, router, rpki, table, verify, peers, engines, choose, compile, {bpf}replay, doctor, tour"
        )),
        "{}",
        unknown.err
    );

    let folder = Folder::new();
    let pages = folder.path().join("share/man1");
    let written = run(&["man", "--output", pages.to_str().unwrap()]);
    assert_eq!((written.code, written.out.as_str()), (0, ""));
    for name in ["fibula.1", "fibula-lookup.1", "fibula-engines.1", "fibula-tour.1"] {
        assert!(std::fs::read_to_string(pages.join(name)).unwrap().contains(".TH "), "{name}");
    }
    let file = folder.write("file", "");
    assert_eq!(run(&["man", "--output", file.to_str().unwrap()]).code, 3);
}

const TINY: [&str; 5] = ["tour", "--routes", "2000", "--seconds", "0"];

#[test]
fn a_tiny_tour_as_json() {
    let run = run(&[&TINY[..], &["--json", "--quiet"]].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let tour: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(tour["wrong"], 0);
    assert_eq!(tour["tables"][0]["routes"], 2000);
    assert_eq!(tour["tables"][1]["routes"], 500);
    let structures = tour["engines"].as_array().unwrap();
    assert_eq!(structures.len(), 6, "what was chosen and two plain engines, for each family");
    let named = |name: &str, family: &str| {
        structures.iter().find(|row| row["engine"] == name && row["family"] == family).unwrap()
    };
    for family in ["ipv4", "ipv6"] {
        for (name, kind) in [("binary-trie", "plain"), ("hash-by-length", "plain")] {
            let row = named(name, family);
            assert_eq!((&row["kind"], &row["wrong"]), (&kind.into(), &0.into()));
            assert!(row["bytes_per_prefix"].as_f64().unwrap() > 1.0);
            let [low, median, high] =
                ["mlps_match_low", "mlps_match", "mlps_match_high"].map(|field| row[field].as_f64().unwrap());
            assert!(0.0 < low && low <= median && median <= high, "{row}");
            assert!(row["rounds"].as_u64().unwrap() >= 7 && row["checked"].as_u64().unwrap() > 1000);
        }
        assert_eq!(
            structures.iter().filter(|row| row["kind"] == "chosen" && row["family"] == family).count(),
            1
        );
    }
    let lookups = tour["lookups"].as_array().unwrap();
    assert_eq!(lookups.len(), 2);
    for lookup in lookups {
        let prefix = lookup["prefix"].as_str().unwrap();
        let len = |prefix: &str| prefix.split_once('/').unwrap().1.parse::<u8>().unwrap();
        let others = lookup["less_specific"].as_array().unwrap();
        assert!(others.iter().all(|other| len(other["prefix"].as_str().unwrap()) < len(prefix)), "{lookup}");
    }
}

#[test]
fn a_tiny_tour_for_people() {
    let first = run(&[&TINY[..], &["--quiet"]].concat());
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    for part in
        ["The table\n", "<- the answer", "answers were those of the table.", "lookup --table routes.txt"]
    {
        assert!(first.out.contains(part), "{part}: {}", first.out);
    }
    assert!(first.out.lines().all(|line| line.chars().count() <= 100), "{}", first.out);
    assert!(!first.out.contains('\x1b'), "no colour in a pipe");
    let csv = run(&[&TINY[..], &["--quiet", "--format", "csv"]].concat());
    assert!(csv.out.starts_with("engine,kind,family,routes,lookup_bytes,"), "{}", csv.out);
}

#[test]
fn a_tour_of_the_users_table() {
    let folder = Folder::new();
    let table = folder.write("routes.txt", "192.0.2.0/24 first\n192.0.2.128/25 second\n192.0.0.0/8 third\n");
    let path = table.to_str().unwrap();
    let text = run(&["tour", "--table", path, "--seconds", "0", "--quiet"]);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    for part in ["via second  <- the answer: 25 bits match", "via third   loses: only 8 bits"] {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
    // A family without routes is left out, and what to do next names the file.
    assert!(!text.out.contains("IPv6") && text.out.contains(&format!("choose {path}")), "{}", text.out);
    assert_eq!(run(&["tour", "--table", path, "--routes", "1000"]).code, 2);
    let empty = run(&["tour", "--table", folder.write("empty.txt", "").to_str().unwrap()]);
    assert_eq!((empty.code, empty.out.as_str()), (3, ""), "{}", empty.err);
}

#[test]
fn tours_of_impossible_size_are_refused() {
    assert_eq!(run(&["tour", "--routes", "7"]).code, 2);
    assert_eq!(run(&["tour", "--seconds", "-1"]).code, 2);
}

#[test]
fn instruction_sets_are_forced_or_refused() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let table = table.to_str().unwrap();
    let lookup = |options: &[&str], variable: &str| -> Run {
        let args = ["lookup", "--table", table, "192.0.2.1"];
        fibula().args(args).args(options).env("FIBULA_ISA", variable).output().unwrap().into()
    };
    for &isa in Isa::ALL {
        for run in [lookup(&["--isa", isa.name()], ""), lookup(&[], isa.name())] {
            match isa.present() {
                Ok(_) => assert_eq!((run.code, run.err.as_str()), (0, "")),
                Err(_) => {
                    assert_eq!((run.code, run.out.as_str()), (4, ""));
                    assert!(run.err.contains("it has: scalar"), "{}", run.err);
                }
            }
        }
    }
    for (run, part) in [
        (lookup(&["--isa", "sse9"], ""), "--isa"),
        (lookup(&[], "sse9"), "FIBULA_ISA: no instruction set 'sse9'; this machine has: scalar"),
    ] {
        assert_eq!((run.code, run.out.as_str()), (2, ""));
        assert!(run.err.contains(part) && run.err.contains("this machine has: scalar"), "{}", run.err);
    }
    assert_eq!(run(&["tour", "--isa", "sse9"]).code, 2);
}

#[test]
fn choose_names_a_structure_of_each_family_and_says_why() {
    let folder = Folder::new();
    let table = folder.write("routes.txt", TABLE);
    let path = table.to_str().unwrap();
    let text = run(&["choose", path]);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    assert!(
        text.out.contains("IPv4: ") && text.out.contains("IPv6: ") && text.out.contains("for this table")
    );
    let json = run(&["choose", path, "--batch", "1", "--isa", "scalar", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    for family in ["ipv4", "ipv6"] {
        let rows: Vec<_> = rows.iter().filter(|row| row["family"] == family).collect();
        assert_eq!(rows.iter().filter(|row| row["chosen"] == true).count(), 1);
        assert!(rows[0]["why"].is_string() && rows[0]["mlps"].as_f64().unwrap() > 0.0);
        assert!(rows.iter().all(|row| row["isa"] == "scalar" && row["batch"] == 1 && row["routes"] == 3));
        // What is in use stays.
        let name = rows[0]["engine"].as_str().unwrap();
        let kept =
            run(&["choose", path, "--batch", "1", "--isa", "scalar", "--in-use", name, "--format", "csv"]);
        assert!(
            kept.out.lines().any(|line| line.starts_with(&format!("{family},{name},true,"))),
            "{}",
            kept.out
        );
    }
    // Measured on this table, with the user's keys and with others.
    let keys = folder.write("keys.txt", "10.1.2.3\n2001:db8::1\n192.0.2.1\n");
    for more in [&["--addresses", keys.to_str().unwrap()][..], &["--keys", keys.to_str().unwrap()], &[]] {
        let measured = run(&[&["choose", path, "--measure", "--json"], more].concat());
        let rows: Vec<Value> = serde_json::from_str(&measured.out).unwrap();
        assert!(rows.iter().all(|row| row["mlps"].as_f64().unwrap() > 0.0), "{}", measured.out);
        assert_eq!(rows.iter().filter(|row| row["chosen"] == true).count(), 2);
    }
    assert_eq!(run(&["choose", path, "--addresses", path]).code, 2, "--addresses without --measure");
    // A calibration is measured once, then read.
    let calibration = folder.path().join("calibration.txt");
    let with = ["choose", path, "--calibration", calibration.to_str().unwrap()];
    assert_eq!(run(&with).code, 0);
    let written = std::fs::read_to_string(&calibration).unwrap();
    assert!(written.starts_with("cpu ") && written.contains("\nl2_bytes "), "{written}");
    assert_eq!(run(&with).code, 0);
    assert_eq!(std::fs::read_to_string(&calibration).unwrap(), written);
    // The user's file may be anything, and stays; the choice is made all the same.
    std::fs::write(&calibration, "step_ns 1\n").unwrap();
    let damaged = run(&with);
    assert!(damaged.code == 0 && damaged.err.contains("measured this machine again"), "{}", damaged.err);
    assert_eq!(std::fs::read_to_string(&calibration).unwrap(), "step_ns 1\n");
    // So with one that has no rates of the engines, as those of earlier versions.
    let bare: String =
        written.lines().filter(|line| !line.starts_with("rates ")).flat_map(|line| [line, "\n"]).collect();
    assert!(bare.len() < written.len(), "{written}");
    std::fs::write(&calibration, &bare).unwrap();
    let older = run(&with);
    assert!(older.code == 0 && older.err.contains("by another version of fibula"), "{}", older.err);
    assert_eq!(std::fs::read_to_string(&calibration).unwrap(), bare);
    assert_eq!(run(&["choose", path, "--bytes", "1"]).code, 1);
    assert_eq!(run(&["choose", path, "--in-use", "abacus"]).code, 2);
    assert_eq!(run(&["choose", "/nowhere/routes"]).code, 3);
}
