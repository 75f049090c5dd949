//! `fibula-lab rates` as scripts and people use it. No speed is asserted here.

use crate::support;
use crate::support::{Folder, TABLE, fibula, run};
use fibula::simd::{Isa, Present};
use serde_json::Value;

const TINY: [&str; 6] = ["rates", "--seconds", "0", "--keys", "1000", "--quiet"];

fn rates(options: &[&str]) -> support::Run {
    run(&[&TINY[..], options].concat())
}

#[test]
fn json_has_the_documented_fields() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let few = ["--traffic", "rnd", "--traffic", "match", "--traffic", "seq", "--batch", "1", "--batch", "64"];
    let options = ["--table", table.to_str().unwrap(), "--json", "--threads", "1", "--threads", "2"];
    let run = rates(&[&options[..], &few].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    for family in ["ipv4", "ipv6"] {
        assert!(rows.iter().any(|row| row["family"] == family));
    }
    for traffic in ["rnd", "match", "seq"] {
        assert!(rows.iter().any(|row| row["traffic"] == traffic));
    }
    for row in &rows {
        for number in ["mlps_median", "mlps_min", "mlps_max", "bytes_per_prefix", "build_time_ms"] {
            assert!(row[number].as_f64().is_some_and(|number| number > 0.0), "{number} of {row}");
        }
        assert!(row["lookup_bytes"].is_u64() && [1, 64].map(Value::from).contains(&row["batch"]));
        assert!([1, 2].map(Value::from).contains(&row["threads"]));
        assert_eq!(row["rival"], false);
        assert!(row["isa"].as_str().unwrap().parse::<Isa>().unwrap().present().is_ok());
        assert_eq!((&row["wrong"], &row["routes"]), (&0.into(), &3.into()));
        let prefetch = if row["batch"] == 1 { &["none"][..] } else { &["next batch", "kernel"] };
        assert!(prefetch.contains(&row["key_prefetch"].as_str().unwrap()) && row["order"] == "host");
        let one = row["threads"] == 1;
        assert_eq!((row["clock"] == "thread", row["scaling"].is_null()), (one && cfg!(unix), one));
    }
}

/// The sets in the rows of all engines over a small table.
fn isas(options: &[&str], variable: &str) -> Vec<String> {
    let synth = ["--synth", "ipv4/300", "--synth", "ipv6/300", "--traffic", "rnd", "--batch", "64", "--json"];
    let some = ["--engine", "planb", "--engine", "radix"];
    let run = fibula()
        .args(TINY)
        .args(synth)
        .args(some)
        .args(options)
        .env("FIBULA_ISA", variable)
        .output()
        .unwrap();
    let run: support::Run = run.into();
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{options:?}");
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let mut isas: Vec<_> = rows.iter().map(|row| row["isa"].as_str().unwrap().to_owned()).collect();
    isas.sort();
    isas.dedup();
    isas
}

#[test]
fn one_set_restricts_everybody() {
    let all = isas(&[], "");
    for present in Present::all() {
        let isa = present.isa();
        let within = |name: &&String| name.parse::<Isa>().unwrap() <= isa;
        let within: Vec<_> = all.iter().filter(within).cloned().collect();
        assert_eq!(isas(&["--isa", isa.name()], ""), within);
        assert_eq!(isas(&[], isa.name()), within);
        // The option wins.
        assert_eq!(isas(&["--isa", "scalar"], isa.name()), ["scalar"]);
    }
}

/// Hash pairs, false-positive ratios, matching ratios and more addresses than caches hold: what the Bloomfwd paper varies.
#[test]
fn the_parameters_of_bloom_filters_are_options() {
    let structures = ["bloomfwd:h2+h2:30", "bloomfwd:murmur+knuth:5", "bloomfwd:knuth+h2:60", "miht"];
    let mut options = vec!["--synth", "ipv4/300", "--isa", "scalar", "--batch", "256", "--many-keys", "3000"];
    options.extend(["--traffic", "mix:0", "--traffic", "mix:100", "--traffic", "rnd", "--json"]);
    options.extend(structures.iter().flat_map(|name| ["--engine", name]));
    let run = rates(&options);
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    assert!(rows.iter().all(|row| row["wrong"] == 0), "{}", run.err);
    for name in structures {
        let of = rows.iter().filter(|row| row["engine"] == name);
        let found: Vec<_> =
            of.map(|row| (row["traffic"].as_str().unwrap(), row["key_set"].as_u64().unwrap())).collect();
        // Engines that are named look up the larger set too.
        assert_eq!(found, [("mix:0", 1_000), ("mix:100", 1_000), ("rnd", 1_000), ("rnd", 3_000)], "{name}");
    }
    let unknown = rates(&["--synth", "ipv4/300", "--engine", "bloomfwd:h2+h2:31"]);
    assert!(unknown.code == 2 && unknown.err.contains("no engine 'bloomfwd:h2+h2:31'"), "{unknown:?}");
}

#[test]
fn host_routes_and_larger_sets_of_keys() {
    let folder = Folder::new();
    let records = folder.path().join("records");
    let options =
        ["--synth", "ipv6/300", "--hosts", "50", "--engine", "planb", "--traffic", "match", "--isa"];
    let more =
        ["scalar", "--batch", "32", "--many-keys", "2000", "--json", "--record", records.to_str().unwrap()];
    let run = rates(&[&options[..], &more].concat());
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let keys = |row: &Value| (row["many_keys"].as_bool().unwrap(), row["key_set"].as_u64().unwrap());
    assert_eq!(rows.iter().map(keys).collect::<Vec<_>>(), [(false, 1_000), (true, 2_000)], "{}", run.err);
    // Of 50 /128 and 5 /126 or /127, none is a route already.
    assert!(rows.iter().all(|row| row["routes"] == 355 && row["mlps_runs"].as_array().unwrap().len() == 9));
    let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    let record = std::fs::read_to_string(machine.join("synth-ipv6-300-hosts-50.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!((&record["schema"], &record["plan"]["many_keys"]), (&2.into(), &2_000.into()));
    assert_eq!(rates(&["--synth", "ipv4/9", "--many-keys", "1000"]).code, 2);
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = folder.join("../../.git").exists();
    // There is one in a checkout, if there is git too.
    assert!(checkout || record["program"]["commit"].is_null());
}

#[test]
fn keys_in_network_order() {
    let options = ["--synth", "ipv6/300", "--engine", "planb", "--traffic", "match", "--isa", "scalar"];
    let orders =
        ["--order", "host", "--order", "network", "--batch", "1", "--batch", "64", "--format", "csv"];
    let csv = rates(&[&options[..], &orders].concat()).out;
    let at = csv.lines().next().unwrap().split(',').position(|name| name == "order").unwrap();
    let order = |line: &str| line.split(',').nth(at).unwrap().to_owned();
    assert_eq!(csv.lines().skip(1).map(order).collect::<Vec<_>>(), ["host", "host", "network"]);
}

#[test]
fn the_other_forms() {
    let options =
        ["--synth", "ipv4/500", "--engine", "radix", "--traffic", "match", "--batch", "64", "--runs", "6"];
    let form = |more: &[&str]| rates(&[&options[..], more].concat());
    let csv = form(&["--format", "csv"]).out;
    assert!(csv.starts_with("engine,rival,family,traffic,batch,threads,isa,mlps_median,"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("radix,false,ipv4,match,64,1,scalar,"), "{csv}");
    assert_eq!(csv.lines().count(), 2);
    assert_eq!(form(&["--format", "json-line"]).out.lines().count(), 1);
    let text = form(&[]).out;
    for part in [
        "IPv4: 500 prefixes, ",
        "IPv4 MATCH, 1,000 keys",
        "median of 6 runs",
        "95 % interval",
        "answers were right.",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn recorded_addresses_charts_and_records() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let addresses =
        folder.write("addresses.txt", "# clients\n192.0.2.1\n\n2001:db8::1\n10.0.0.9\nno address\n");
    let options =
        ["--synth", "ipv4/300", "--synth", "ipv6/300", "--traffic", "rnd", "--batch", "1", "--json"];
    let outputs = [
        "--addresses".to_owned(),
        addresses.to_str().unwrap().to_owned(),
        "--svg".to_owned(),
        at("rates.svg"),
        "--record".to_owned(),
        at("records"),
    ];
    let run = rates(&[&options[..], &outputs.each_ref().map(String::as_str)].concat());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let keys = |family: &str| {
        rows.iter().find(|row| row["traffic"] == "recorded" && row["family"] == family).unwrap()["keys"]
            .clone()
    };
    assert_eq!((keys("ipv4"), keys("ipv6")), (2.into(), 1.into()));
    for name in ["ipv4-rnd", "ipv4-recorded", "ipv6-rnd", "ipv6-recorded"] {
        assert!(std::fs::read_to_string(at(&format!("rates-{name}.svg"))).unwrap().starts_with("<svg "));
    }
    let machine = std::fs::read_dir(at("records")).unwrap().next().unwrap().unwrap().path();
    let record = std::fs::read_to_string(machine.join("synth-ipv4-300-ipv6-300.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["rows"], Value::from(rows));
    assert_eq!(record["date"].as_str().unwrap().len(), 10);
    assert!(record["machine"]["cpu"].is_string() && record["program"]["rustc"].is_string());
    // A chart whose file is the addresses is refused.
    let taken = folder.write("rates-ipv4-rnd.svg", "192.0.2.1\n");
    let outputs = ["--addresses".to_owned(), at("rates-ipv4-rnd.svg"), "--svg".to_owned(), at("rates.svg")];
    let run = rates(&[&options[..], &outputs.each_ref().map(String::as_str)].concat());
    assert_eq!(
        (run.code, std::fs::read_to_string(taken).unwrap().as_str()),
        (2, "192.0.2.1\n"),
        "{}",
        run.err
    );
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let synth = ["--synth", "ipv4/300"];
    for (options, code, part) in [
        (vec![], 2, "--table"),
        (vec!["--synth", "ipv5"], 2, "there are: ipv4, ipv6"),
        (vec!["--synth", "ipv4/0"], 3, "the table is empty"),
        (vec!["--synth", "ipv4", "--table", "x"], 2, "cannot be used with"),
        (vec!["--table", "/nowhere"], 3, "/nowhere"),
        ([&synth[..], &["--engine", "dirt"]].concat(), 2, "no engine 'dirt'; 'fibula-lab engines' lists all"),
        ([&synth[..], &["--traffic", "jam"]].concat(), 2, "there are: rnd, match"),
        ([&synth[..], &["--runs", "4"]].concat(), 2, "4 is not in 5..=1000"),
        ([&synth[..], &["--batch", "0"]].concat(), 2, "0 is not in 1"),
        ([&synth[..], &["--isa", "sse9"]].concat(), 2, "this machine has: scalar"),
        ([&synth[..], &["--order", "middle"]].concat(), 2, "possible values: host, network"),
        ([&synth[..], &["--addresses", "/nowhere"]].concat(), 3, "/nowhere"),
    ] {
        let run = rates(&options);
        assert_eq!(run.code, code, "{options:?}: {}", run.err);
        assert!(run.err.contains(part), "{part} in {}", run.err);
        assert_eq!(run.out, "");
    }
}

/// Of each feature, and how many rows each has in one traffic of both families and two batches.
const DPDK: [(&str, usize); 4] =
    [("rte-fib-2b-inline", 2), ("rte-lpm", 2), ("rte-fib6-4b-scalar", 2), ("rte-lpm6", 2)];
const PLAIN: [(&str, usize); 1] = [("planb-cpp-scalar", 2)];
const CRATES: [(&str, usize); 4] =
    [("prefix-trie", 4), ("ip-network-table", 4), ("iptrie", 4), ("poptrie-crate", 4)];

#[test]
fn rivals_join_or_are_named_as_absent() {
    let options = ["--synth", "ipv4/300", "--synth", "ipv6/300", "--traffic", "match", "--keys", "1000"];
    let batches = ["--batch", "1", "--batch", "256"];
    let options =
        [&["rates", "--seconds", "0", "--rivals", "--engine", "radix"], &options[..], &batches].concat();
    let json = run(&[&options[..], &["--json", "--quiet"]].concat());
    assert_eq!(json.code, 0, "{}", json.err);
    let rows: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    let of = |name: &str| rows.iter().filter(|row| row["engine"] == name).collect::<Vec<_>>();
    assert_eq!(of("radix").len(), 4);
    assert!(rows.iter().all(|row| row["rival"] == (row["engine"] != "radix")));
    assert!(rows.iter().all(|row| row["wrong"] == 0));
    let said = run(&options).err;
    let features = [
        (cfg!(feature = "dpdk"), &DPDK[..], &["DPDK", "libdpdk-dev", "--features dpdk"][..]),
        (cfg!(feature = "plain"), &PLAIN, &["g++", "--features plain"]),
        (cfg!(feature = "crates"), &CRATES, &["--features crates"]),
    ];
    for (present, rivals, get) in features {
        for (name, count) in rivals {
            let row = |row: &&Value| row["isa"] == "scalar" && row["error"].is_null();
            assert_eq!(
                of(name).iter().copied().filter(row).count(),
                if present { *count } else { 0 },
                "{name}"
            );
        }
        let parts = rivals.iter().map(|(name, _)| name).chain(get).filter(|_| !present);
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    for part in [
        "not installed: bart-table, bart-fast (bart); to get them: ",
        "pip install pytricia",
        "numpy-searchsorted",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

/// Measures a rival in Python with this text in the place of its package.
fn measure_pytricia(folder: &Folder, module: &str, python: &str, more: &[&str]) -> support::Run {
    folder.write("pytricia.py", module);
    let options = ["rates", "--synth", "ipv4/300", "--traffic", "match", "--batch", "64", "--keys", "1000"];
    let mut command = fibula();
    command.args(options).args(["--seconds", "0", "--engine", "pytricia", "--json"]).args(more);
    command.env("FIBULA_PYTHON", python).env("PYTHONPATH", folder.path());
    support::Run::from(command.output().unwrap())
}

#[test]
fn a_rival_whose_interpreter_is_absent_says_which() {
    let run = measure_pytricia(&Folder::new(), "", "/nowhere/python3", &[]);
    assert_eq!(run.code, 4);
    for part in ["'pytricia' is not installed", "/nowhere/python3 does not start", "FIBULA_PYTHON"] {
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
}

#[test]
#[ignore = "needs python3"]
fn a_rival_in_python_that_refuses_gives_rows_with_the_reason() {
    let run = measure_pytricia(&Folder::new(), "raise ImportError('no such tree')", "python3", &[]);
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, rows.len()), (0, 1), "{}", run.err);
    assert_eq!(rows[0]["error"], "pytricia: no such tree", "{}", run.err);
    assert!(rows[0]["mlps_median"].is_null() && rows[0]["runs"] == 0, "{}", rows[0]);
}

#[test]
#[ignore = "needs python3"]
fn wrong_answers_of_a_rival_in_python_are_named_and_recorded() {
    let folder = Folder::new();
    let module = "\
class PyTricia:
    def __init__(self, *_): pass
    def insert(self, *_): pass
    def freeze(self): pass
    def get(self, key): return 123456
";
    let records = folder.path().join("records");
    let record = ["--record", records.to_str().unwrap()];
    let run = measure_pytricia(&folder, module, "python3", &record);
    let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, rows.len()), (0, 1), "{}", run.err);
    assert!(run.err.contains("the rival IPv4 pytricia gave wrong answers"), "{}", run.err);
    assert!(rows[0]["wrong"].as_u64() > Some(1_000) && rows[0]["mlps_median"].is_number(), "{}", rows[0]);
    let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    assert!(machine.join("synth-ipv4-300.json").is_file());
}

#[test]
fn rivals_go_by_their_names() {
    let asked = ["--engine", "rte-fib-2b-inline", "--batch", "256", "--json"];
    let run = rates(&[&["--synth", "ipv4/300", "--traffic", "match"], &asked[..]].concat());
    if cfg!(feature = "dpdk") {
        let rows: Vec<Value> = serde_json::from_str(&run.out).unwrap();
        assert_eq!(rows.len(), 1, "{}", run.err);
        assert!(rows.iter().all(|row| row["engine"] == "rte-fib-2b-inline" && row["rival"] == true));
    } else {
        assert_eq!(run.code, 4);
        assert!(
            run.err.contains("'rte-fib-2b-inline' is not installed") && run.err.contains("libdpdk-dev"),
            "{}",
            run.err
        );
    }
    let begun = rates(&["--synth", "ipv4", "--engine", "rte"]);
    assert!(begun.err.contains("did you mean 'rte-fib-2b-macro'?"), "{}", begun.err);
}
