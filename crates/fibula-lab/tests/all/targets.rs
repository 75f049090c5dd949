//! `fibula-lab targets`, as scripts and people use it. No speed is asserted here.

use crate::support;
use crate::support::run;
use fibula::fib::registry::Role;
use serde_json::Value;

/// Runs the command on little, quietly.
fn targets(options: &[&str]) -> support::Run {
    run(&[&["targets", "--seconds", "0", "--keys", "1000", "--quiet"], options].concat())
}

/// Names of the project's own engines for IPv4.
fn engines() -> Vec<&'static str> {
    let all = fibula_published::engines::<u32>();
    all.iter().filter(|entry| entry.role == Role::Own).map(|entry| entry.name).collect()
}

#[test]
fn what_is_reached() {
    let options = ["--synth", "ipv4/400", "--synth", "ipv6/400", "--batch", "1", "--batch", "64"];
    let engines = engines();
    let some = ["--engine", engines[0], "--engine", "planb", "--engine", "radix", "--isa", "scalar"];
    let options = [&options[..], &some].concat();
    let json = targets(&[&options[..], &["--json"]].concat());
    assert_eq!((json.code, json.err.as_str()), (0, ""));
    let outcomes: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    let of = |family: &str| outcomes.iter().filter(|outcome| outcome["family"] == family).count();
    assert!(of("ipv4") >= 25 && of("ipv6") >= 25, "{} {}", of("ipv4"), of("ipv6"));
    for outcome in &outcomes {
        let verdicts = ["met", "missed", "undecided", "goal only", "not measured"];
        assert!(verdicts.contains(&outcome["verdict"].as_str().unwrap()));
        assert!(outcome["measured"].is_number() || !outcome["notes"].as_array().unwrap().is_empty());
        assert_eq!(outcome["target"].as_str().unwrap().is_empty(), outcome["verdict"] == "goal only");
    }
    let text = targets(&options).out;
    for part in [
        "IPv4",
        "IPv6",
        "rows met",
        "required",
        "verdict",
        "RND",
        "batch of 1, MATCH",
        "ahead of contestants",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let of_engine = |outcome: &&Value| outcome["engine"] == engines[0];
    assert!(outcomes.iter().filter(of_engine).any(|outcome| outcome["measured"].is_number()));
    assert_eq!(targets(&[&options[..], &["--traffic", "rnd"]].concat()).code, 2);
    // Two engines of ours in one family, each by itself.
    let lines = ["--synth", "ipv4/400", "--batch", "64", "--isa", "scalar"];
    let some = ["--engine", engines[0], "--engine", engines[engines.len() - 1], "--engine", "radix"];
    let text = targets(&[&lines[..], &some].concat()).out;
    for part in [
        "rows met by engine",
        &format!("{}: ", engines[0]),
        &format!("{}: ", engines[engines.len() - 1]),
        "of it)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
