//! Lines fit into 80 columns, where their words do.

mod support;

use support::{Folder, Run, fibula, run};

/// A command's output for a terminal of 80 columns.
fn at(columns: &str, args: &[&str]) -> Run {
    fibula().args(args).env("COLUMNS", columns).output().unwrap().into()
}

/// Asserts that no line is longer. The path of the program is longer here than where it is installed.
fn fits(width: usize, text: &str, what: &dyn std::fmt::Debug) {
    let text = text.replace(env!("CARGO_BIN_EXE_fibula"), "fibula");
    for line in text.lines() {
        // Objects of JSON, in examples, have no place to break at.
        let is_object = line.trim_start().starts_with("json-line  {");
        assert!(is_object || line.chars().count() <= width, "{what:?}: {line:?}");
    }
}

/// All commands, by the help of those that they are in.
fn commands(of: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = of.iter().map(String::as_str).chain(["--help"]).collect();
    let help = run(&args).out;
    let list = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let names = list.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  "));
    let names = names
        .filter_map(|line| line[2..].split(' ').next().filter(|name| !name.is_empty() && *name != "help"));
    let mut all = vec![of.to_vec()];
    for name in names {
        all.extend(commands(&[of, &[name.to_owned()]].concat()));
    }
    all
}

#[test]
fn help_fits() {
    let all = commands(&[]);
    assert!(all.len() > 25, "{all:?}");
    for command in &all {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        for (columns, width) in [("80", 80), ("50", 50), ("300", 100), ("", 80)] {
            for help in ["-h", "--help"] {
                let out = at(columns, &[&args[..], &[help]].concat()).out;
                // Words that are longer than a narrow terminal stay whole.
                let most = if width == 50 { 72 } else { width };
                fits(most, &out, &(&args, columns));
            }
        }
    }
    let bench = at("80", &["bench", "--help"]).out;
    assert!(bench.contains(
        "\n  fibula bench --synth ipv6 --algorithm radix --algorithm range-search \\\n      --threads"
    ));
}

#[test]
fn reports_fit() {
    let folder = Folder::new();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (both, other) = (file("both.txt"), file("other.txt"));
    for (out, seed) in [(&both, "1"), (&other, "2")] {
        let synth = ["table", "synth", "ipv4", "ipv6", "--routes", "2000", "--seed", seed, "-o", out];
        assert_eq!(run(&synth).code, 0);
    }
    let flows = folder.write("flows.csv", "ip,bytes\n1.1.1.1,5\n");
    let flows = flows.to_str().unwrap();
    let quick =
        ["--batch", "256", "--seconds", "0", "--keys", "1000", "-a", "dxr-18-branch-free", "-a", "planb"];
    let bench = |args: &[&'static str]| [&["bench", "-t", &both][..], &quick, args].concat();
    for args in [
        vec!["algorithms"],
        vec!["table", "stats", &both],
        vec!["table", "diff", &both, &other],
        vec!["verify", &both, &other],
        vec!["choose", &both],
        vec!["doctor"],
        vec!["paper"],
        vec!["count", "-t", &both, "--by", "prefix", "-c", "ip", "--bytes-column", "bytes", flows],
        vec!["tour", "--routes", "1000", "--seconds", "0"],
        bench(&["--traffic", "rnd"]),
        bench(&["--traffic", "rnd", "--schedule"]),
        vec!["bench", "-t", &both, "--updates", "--seconds", "0", "--keys", "1000", "-a", "planb"],
    ] {
        let report = at("80", &args);
        assert!(report.code <= 1 && !report.out.is_empty(), "{args:?}: {}", report.err);
        fits(80, &report.out, &args);
        // Names and numbers are not broken.
        let whole = |word: &str| report.out.split_whitespace().any(|found| found == word);
        assert!(args[0] != "bench" || whole("planb"), "{args:?}: {}", report.out);
    }
    // Without a terminal and without COLUMNS the width is 80, too.
    let unknown = fibula().args(["algorithms"]).env_remove("COLUMNS").output().unwrap();
    assert_eq!(String::from_utf8(unknown.stdout).unwrap(), at("80", &["algorithms"]).out);
}
