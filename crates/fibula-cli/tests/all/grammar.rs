//! One grammar for all commands: tables, help, manual pages, and exit codes.

use crate::support;
use crate::support::{Folder, TABLE, fibula, run};

#[test]
fn the_environment_names_the_table_of_every_command() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let with = |args: &[&str]| -> support::Run {
        fibula().args(args).env("FIBULA_TABLE", &table).output().unwrap().into()
    };
    assert_eq!(with(&["lookup", "192.0.2.1"]).out, "192.0.2.1 192.0.2.0/24 via 64500\n");
    let out = folder.path().join("t.fibula");
    for args in [
        &["route", "show"][..],
        &["table", "stats"],
        &["table", "convert", "--to", "text"],
        &["choose"],
        &["compile", "-q", "-o", out.to_str().unwrap()],
    ] {
        assert_eq!(with(args).code, 0, "{args:?}");
        // Without it, a table must be named.
        let without = run(args);
        assert_eq!((without.code, without.out.as_str()), (2, ""), "{args:?}");
        assert!(without.err.contains("fibula table synth"), "{args:?}: {}", without.err);
    }
    // An option goes before the environment, and --table names a table everywhere.
    let other = folder.write("other.txt", "10.0.0.0/8 7\n");
    let other = other.to_str().unwrap();
    assert_eq!(with(&["lookup", "-t", other, "10.1.1.1"]).out, "10.1.1.1 10.0.0.0/8 via 7\n");
    for command in [&["table", "stats"][..], &["table", "convert", "--to", "text"], &["choose"]] {
        let named = with(&[command, &["--table", other]].concat());
        let alone = with(&[command, &[other]].concat());
        // The rates of `choose` are estimates for this machine, which is measured each time.
        let of = |run: &support::Run| match command {
            ["choose"] => run.out.lines().next().map(str::to_owned),
            _ => Some(run.out.clone()),
        };
        assert_eq!((named.code, of(&named)), (0, of(&alone)), "{command:?}");
        assert_eq!(with(&[command, &["--table", other, other]].concat()).code, 2);
    }
}

#[test]
fn answers_go_to_files() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let dump =
        folder.write("dump.txt", "TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|7|IGP|192.0.2.1|0|0||NAG||\n");
    let (t, d, o) = (table.to_str().unwrap(), dump.to_str().unwrap(), folder.path().join("out"));
    for args in [
        &["route", "show", "-t", t][..],
        &["route", "show", "-t", d, "--all-peers", "10.0.0.0/8"],
        &["route", "get", "-t", d, "--all-peers", "10.0.0.1"],
        &["table", "stats", t],
        &["table", "convert", t, "--format", "csv"],
        &["table", "diff", t, d],
        &["verify", t, d],
        &["peers", d],
        &["peers", "--table", d, "--json"],
        &["engines"],
    ] {
        let (printed, written) = (run(args), run(&[args, &["-o", o.to_str().unwrap()]].concat()));
        assert_eq!((written.code, written.out.as_str()), (printed.code, ""), "{args:?}: {}", written.err);
        assert_eq!(std::fs::read_to_string(&o).unwrap(), printed.out, "{args:?}");
        assert!(!printed.out.is_empty(), "{args:?}");
    }
    assert_eq!(run(&["doctor", "-o", o.to_str().unwrap()]).code, 0);
    assert!(std::fs::read_to_string(&o).unwrap().starts_with("check "));
    // Never over what is read.
    for args in [&["route", "show", "-t", t, "-o", t][..], &["peers", d, "-o", d], &["verify", t, d, "-o", d]]
    {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
    assert_eq!(std::fs::read_to_string(&table).unwrap(), TABLE);
    assert_eq!(
        run(&["table", "convert", t, "--json"]).out,
        run(&["table", "convert", t, "--to", "json"]).out
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_router_is_another_source_of_routes() {
    let folder = Folder::new();
    let router = format!("--router={}", folder.path().join("socket").display());
    for command in ["get", "show"] {
        let none = run(&["route", command, &router, "192.0.2.1"]);
        assert_eq!((none.code, none.out.as_str()), (3, ""), "{}", none.err);
        assert!(none.err.contains("no router answers at "), "{}", none.err);
        // Neither a table nor what tables are read with.
        let table = folder.write("table.txt", TABLE);
        for other in
            [&["--table", table.to_str().unwrap()][..], &["--peer", "192.0.2.9"], &["--origin-as", "7"]]
        {
            assert_eq!(
                run(&[&["route", command, &router], other, &["192.0.2.1"]].concat()).code,
                2,
                "{other:?}"
            );
        }
        assert_eq!(run(&["route", command, "--vrf", "red", "192.0.2.1"]).code, 2);
    }
    assert_eq!(run(&["route", "get", &router]).code, 2, "without an address");
}

#[test]
#[cfg(target_os = "linux")]
fn an_answer_of_a_router_that_lacks_a_field_is_an_error() {
    use std::io::{BufRead, BufReader, Write};

    let folder = Folder::new();
    let socket = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let answered = |args: &[&str], answer: &str| -> support::Run {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream).read_line(&mut String::new()).unwrap();
                writeln!(stream, "{answer}").unwrap();
            });
            run(args)
        })
    };
    let name = socket.to_str().unwrap();
    let neigh = ["router", "neigh", "--json", "--socket", name];
    let line = r#"[{"interface":"a","address":"::1","mac":null,"state":"own","later":[1.10]}]"#;
    let good = answered(&neigh, line);
    assert_eq!((good.code, good.out.trim_end(), good.err.as_str()), (0, line, ""));
    let bad = answered(&neigh, r#"[{"interface":"a","address":"::1","state":"own"}]"#);
    assert_eq!((bad.code, bad.out.as_str()), (3, ""), "{}", bad.err);
    let text = "the router answered something else: missing field `mac`; is it of another version?";
    assert!(bad.err.contains(text), "{}", bad.err);
    let bad =
        answered(&["route", "show", &format!("--router={name}")], r#"{"prefix":"10.0.0.0/8","hop":null}"#);
    assert!(bad.code == 3 && bad.err.contains("missing field `next_hop`"), "{}", bad.err);
}

#[test]
fn help_and_manual_pages_name_paths() {
    assert_eq!(run(&["help", "lookup"]).out, run(&["lookup", "--help"]).out);
    assert_eq!(run(&["help", "route", "get"]).out, run(&["route", "get", "--help"]).out);
    let page = run(&["man", "route", "get"]);
    assert!(page.code == 0 && page.out.contains("\n.TH fibula-route-get 1 "), "{}", page.out);
    assert_eq!(run(&["man", "route get"]).out, page.out);
    let unknown = run(&["man", "route", "nonsuch"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("no command 'nonsuch'; there are: show, get"), "{}", unknown.err);
}

#[test]
fn the_doctor_says_what_is_slow() {
    let text = run(&["doctor"]);
    assert_eq!((text.code, text.err.as_str()), (0, ""));
    for check in ["build", "instruction sets", "processor", "caches", "huge pages", "arithmetic", "memory"] {
        assert!(text.out.contains(&format!("\n{check} ")), "{check}: {}", text.out);
    }
    let csv = run(&["doctor", "--format", "csv"]).out;
    assert!(csv.starts_with("check,state,finding\nbuild,"), "{csv}");
    assert!(csv.lines().skip(1).all(|line| matches!(line.split(',').nth(1), Some("ok" | "slow"))), "{csv}");
}

/// The exit codes of `fibula --help`: 0 success, 1 nothing found, 2 wrong use, 3 bad input, 4 not available.
#[test]
fn exit_codes_are_those_of_the_help() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let dump =
        folder.write("dump.txt", "TABLE_DUMP2|1|B|192.0.2.1|7|10.0.0.0/8|7|IGP|192.0.2.1|0|0||NAG||\n");
    let (t, d) = (table.to_str().unwrap(), dump.to_str().unwrap());
    let noise = folder.write("noise", "\x7fELF");
    let n = noise.to_str().unwrap();
    let o = folder.path().join("out");
    let o = o.to_str().unwrap();
    let (addresses, empty) = (folder.write("a", "192.0.2.1\n"), folder.write("e", ""));
    let (a, e) = (addresses.to_str().unwrap(), empty.to_str().unwrap());
    let rows: &[(i32, &[&str])] = &[
        (0, &["lookup", "-t", t, "192.0.2.1"]),
        (1, &["lookup", "-t", t, "8.8.8.8"]),
        (2, &["lookup", "192.0.2.1"]),
        (2, &["lookup", "-t", t, "--engine", "abacus", "192.0.2.1"]),
        (3, &["lookup", "-t", n, "192.0.2.1"]),
        (3, &["lookup", "-t", t, "x"]),
        (0, &["enrich", "-t", t, "-c", "1", a]),
        (1, &["enrich", "-t", t, "-c", "1", e]),
        (2, &["enrich", "-t", t, a]),
        (3, &["enrich", "-t", t, "-c", "7", a]),
        (0, &["count", "-t", t, "--by", "value", a]),
        (1, &["count", "-t", t, "--by", "value", e]),
        (2, &["count", "-t", t, "--by", "colour", a]),
        (3, &["count", "-t", t, "--by", "value", "/nowhere"]),
        (0, &["route", "show", "-t", t, "192.0.2.0/24"]),
        (1, &["route", "show", "-t", t, "8.8.8.0/24"]),
        (2, &["route", "show", "-t", t, "8.8.8.0/33"]),
        (3, &["route", "show", "-t", n]),
        (0, &["route", "get", "-t", t, "192.0.2.1"]),
        (1, &["route", "get", "-t", d, "--all-peers", "8.8.8.8"]),
        (3, &["route", "get", "-t", d, "--all-peers", "x"]),
        (0, &["table", "stats", t]),
        (1, &["table", "stats", "-q", e]),
        (3, &["table", "stats", n]),
        (0, &["table", "convert", t, "--to", "csv"]),
        (2, &["table", "convert", t, "--to", "colour"]),
        (3, &["table", "convert", n, "--to", "csv"]),
        (0, &["table", "diff", t, t]),
        (1, &["table", "diff", t, d]),
        (3, &["table", "diff", t, n]),
        (0, &["verify", t, t]),
        (1, &["verify", t, d]),
        (3, &["verify", t, n]),
        (0, &["peers", d]),
        (1, &["peers", t]),
        (3, &["peers", n]),
        (0, &["compile", "-q", t, "-o", o]),
        (2, &["compile", t, "-o", t]),
        (3, &["compile", n, "-o", o]),
        (0, &["engines"]),
        (0, &["engines"]),
        (2, &["bench", "-t", t]),
        (2, &["paper"]),
        (0, &["doctor"]),
        (0, &["help"]),
        (2, &["nonsuch"]),
    ];
    for &(code, args) in rows {
        let run = run(args);
        assert_eq!(run.code, code, "{args:?}: {}", run.err);
        // Errors are explained, and nothing else is said where nothing was found.
        assert!(
            code < 2 || run.err.starts_with("error: ") || run.err.contains("not an IP address"),
            "{args:?}: {}",
            run.err
        );
    }
    #[cfg(not(feature = "parquet"))]
    assert_eq!(run(&["table", "convert", t, "--to", "intervals-parquet"]).code, 4);
}
