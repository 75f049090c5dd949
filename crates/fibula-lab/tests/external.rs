//! Rivals in programs of their own. This file is such a program as well: started with a name of what is to go wrong, it
//! speaks the protocol and does that. Rivals that are installed are checked against the oracle; absent ones are ignored.

use std::io::{BufRead, Read, Write};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use fibula::fib::Fib;
use fibula::memory::Limits;
use fibula::net::{Key, NextHop, Prefix, Route, RouteSlice};
use fibula_lab::bench::{self, Plan, Row};
use fibula_lab::rival::{Tools, external::External, sources};
use fibula_workload::table::{Profile, TableSpec, generate};
use libtest_mimic::{Arguments, Completion, Trial};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("program") {
        program(&args.next().unwrap_or_default());
        return ExitCode::SUCCESS;
    }
    let mut trials: Vec<_> = TESTS
        .iter()
        .map(|&(name, test)| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        })
        .collect();
    trials.extend(installed::<u32>());
    trials.extend(installed::<u128>());
    // One at a time: both families of a rival compile the same program.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials).exit_code()
}

const TESTS: &[(&str, fn())] = &[
    ("a_right_rival_has_figures", a_right_rival_has_figures),
    ("wrong_answers_are_counted_and_do_not_fail", wrong_answers_are_counted_and_do_not_fail),
    ("a_failure_gives_rows_with_the_reason", a_failure_gives_rows_with_the_reason),
    ("a_late_failure_leaves_the_figures_before_it", a_late_failure_leaves_the_figures_before_it),
];

/// A program that speaks the protocol for IPv4 and uses one of our engines.
fn program(fault: &str) {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut fib: Option<Box<dyn Fib<u32>>> = None;
    let mut keys = Vec::new();
    let mut timed = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).unwrap() == 0 {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        match (words[0], fault) {
            ("table", "refuses") => writeln!(output, "refused it is too large").unwrap(),
            ("table", "dies") => {
                eprintln!("one thing\nand another\n");
                std::process::exit(1);
            }
            ("table", "stalls") => std::thread::sleep(Duration::from_secs(600)),
            ("table", "babbles") => writeln!(output, "good morning").unwrap(),
            ("table", _) => {
                assert_eq!(words[2], "ipv4");
                let mut routes = Vec::new();
                for _ in 0..number(3) {
                    let mut record = [0; 9];
                    input.read_exact(&mut record).unwrap();
                    let addr = u32::from_be_bytes(record[..4].try_into().unwrap());
                    let hop = NextHop::new(u32::from_le_bytes(record[5..].try_into().unwrap())).unwrap();
                    routes.push(Route::new(Prefix::new(addr, record[4]).unwrap(), hop));
                }
                let routes = RouteSlice::new(&routes).unwrap();
                let line = fibula_published::find::<u32>("binary-trie").unwrap();
                fib = Some(line.build(&routes, Limits::default()).unwrap());
                writeln!(output, "built 5000000 1234 5678").unwrap();
            }
            ("keys", _) => {
                let mut bytes = vec![0; 4 * number(1)];
                input.read_exact(&mut bytes).unwrap();
                keys = bytes.as_chunks().0.iter().map(|&key| u32::from_be_bytes(key)).collect();
                writeln!(output, "ready").unwrap();
            }
            ("answer", "short") => writeln!(output, "answers 0").unwrap(),
            ("answer", _) => {
                writeln!(output, "answers {}", keys.len()).unwrap();
                for (at, &key) in keys.iter().enumerate() {
                    let hop = fib.as_ref().unwrap().lookup(key).map_or(0, NextHop::id);
                    let wrong = u32::from(fault == "wrong" && at == 3);
                    output.write_all(&(hop + wrong).to_le_bytes()).unwrap();
                }
            }
            ("time", "dies-late") if timed == 12 => panic!("enough is enough"),
            ("time", _) => {
                assert!(number(3) + number(4) <= keys.len());
                timed += 1;
                // A million lookups a second by the thread's clock, half of that by the wall's.
                let time = 1_000 * number(4) * number(5);
                writeln!(output, "time {} {time}", 2 * time).unwrap();
            }
            _ => panic!("not a request: {line}"),
        }
        output.flush().unwrap();
    }
}

fn rival(fault: &'static str) -> External {
    let start = move || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["program", fault]);
        Ok(command)
    };
    External {
        name: "fake",
        isa: "scalar",
        keys: 2_000,
        limit: Duration::from_secs(60),
        start: Arc::new(start),
    }
}

fn table<K: Key>() -> Vec<Route<K>> {
    let spec = TableSpec { routes: 500, next_hops: 20, seed: 5 };
    let mut routes = generate::<K>(&spec, &Profile::of::<K>()).unwrap();
    // Ends of the space, and what lies within the last bits of a key.
    for (at, (addr, len)) in [(K::ZERO, K::BITS), (K::MAX, K::BITS), (K::MAX, 1)].into_iter().enumerate() {
        let hop = NextHop::new(100 + at as u32).unwrap();
        routes.push(Route::new(Prefix::masked(addr, len).unwrap(), hop));
    }
    routes.sort_unstable_by_key(|route| route.prefix);
    routes.dedup_by_key(|route| route.prefix);
    routes
}

fn plan() -> Plan {
    let traffic = vec!["match".into(), "seq".into()];
    let (batches, threads, runs) = (vec![1, 64], vec![1, 2], bench::RUNS_MIN);
    Plan { keys: 3_000, seconds: 0.0, batches, threads, traffic, runs, ..Plan::default() }
}

fn rows(external: External) -> Vec<Row> {
    let routes = table::<u32>();
    let contestants = [external.contestant()];
    bench::run(&plan(), &RouteSlice::new(&routes).unwrap(), &contestants, Vec::new(), &mut |_| ()).unwrap()
}

fn a_right_rival_has_figures() {
    let rows = rows(rival(""));
    // On one thread, whatever the plan says.
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!((row.wrong, row.threads, row.runs, row.error.as_deref()), (0, 1, 5, None), "{row:?}");
        assert_eq!((row.keys, row.sample, row.clock.as_str()), (2_000, true, "thread"));
        assert_eq!((row.rates(), row.mlps_wall), (Some([1.0; 3]), Some(0.5)));
        assert_eq!((row.lookup_bytes, row.allocated_bytes), (Some(1234), Some(5678)));
        assert_eq!(row.build_time_ms, Some(5.0));
    }
}

fn wrong_answers_are_counted_and_do_not_fail() {
    for row in rows(rival("wrong")) {
        // One among the ends of prefixes, one among the keys.
        assert_eq!((row.wrong, row.error.as_deref()), (2, None), "{row:?}");
        assert!(row.rates().is_some());
    }
}

fn a_failure_gives_rows_with_the_reason() {
    let absent: External =
        External { start: Arc::new(|| Ok(Command::new("/nowhere/program"))), ..rival("absent") };
    let impatient = External { limit: Duration::from_millis(200), ..rival("stalls") };
    for (rival, reason) in [
        (rival("refuses"), "fake: it is too large"),
        (rival("dies"), "fake: the program ended: and another"),
        (rival("babbles"), "fake: 'good morning' is not an answer"),
        (rival("short"), "fake: 'answers 0' and 0 answers do not answer "),
        (impatient, "fake: no answer for 0 s"),
        (absent, "fake: /nowhere/program does not start: "),
    ] {
        for row in rows(rival) {
            let error = row.error.unwrap();
            assert!(error.starts_with(reason), "{error}");
            assert_eq!((row.runs, row.mlps_median, row.lookup_bytes, row.wrong), (0, None, None, 0));
        }
    }
}

/// The first cell takes ten requests, with those to warm up: that of the largest batch, which compares instruction sets.
fn a_late_failure_leaves_the_figures_before_it() {
    let rows = rows(rival("dies-late"));
    let (before, after): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.batch == 64);
    assert_eq!((before.len(), after.len()), (1, 2));
    assert!(before[0].error.is_none() && before[0].rates().is_some(), "{:?}", before[0]);
    for row in after {
        assert!(row.error.as_deref().is_some_and(|error| error.contains("program ended")), "{row:?}");
        assert_eq!((row.rates(), row.build_time_ms, row.runs, row.checked), (None, None, 0, 0));
    }
}

/// What `FIBULA_PYTHON` and `FIBULA_RIVALS` name, as for the command. Without a folder nothing is compiled, nor fetched.
fn tools() -> Tools {
    let mut tools = Tools::default();
    if let Some(python) = std::env::var_os("FIBULA_PYTHON") {
        tools.python = python.into();
    }
    tools.folder = std::env::var_os("FIBULA_RIVALS").map(Into::into);
    tools
}

/// The sources whose rivals are programs. The others are libraries, which `rival.rs` tests.
const PROGRAMS: [&str; 7] = ["bart", "pytricia", "py-radix", "pyasn", "maxminddb", "NumPy", "LPM_TRIE"];

/// A test for each program with rivals of this family.
fn installed<K: Key>() -> Vec<Trial> {
    let listed = sources::<K>(&tools()).into_iter().map(|source| source.name);
    let trial = |name: &'static str| {
        Trial::ignorable_test(format!("answers/{name}/{}", K::FAMILY.name()), move || Ok(answers::<K>(name)))
    };
    listed.filter(|name| PROGRAMS.contains(name)).map(trial).collect()
}

/// The rivals of a source answer as the oracle does, unless they are absent.
fn answers<K: Key>(name: &str) -> Completion {
    let source = sources::<K>(&tools()).into_iter().find(|source| source.name == name).unwrap();
    let Some(contestants) = source.contestants else {
        return Completion::ignored_with(source.get);
    };
    let routes = table::<K>();
    let routes = RouteSlice::new(&routes).unwrap();
    for row in bench::run(&plan(), &routes, &contestants, Vec::new(), &mut |_| ()).unwrap() {
        // Without a network, bart cannot be fetched; in some containers, root may not load BPF.
        let here = ["go failed", "bpf: Operation not permitted"];
        if let Some(error) = row.error.as_ref().filter(|error| here.iter().any(|why| error.contains(why))) {
            return Completion::ignored_with(format!("{}: {error}", row.engine));
        }
        assert_eq!((row.error.as_deref(), row.wrong, row.runs), (None, 0, 5), "{row:?}");
        assert!(row.rates().is_some_and(|[min, ..]| min > 0.0) && row.build_time_ms > Some(0.0), "{row:?}");
    }
    Completion::Completed
}
