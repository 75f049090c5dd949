//! `fibula rpki` and the value `rpki`: the cases of the standards, by the command.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::support::{Folder, run};

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    roas: Vec<String>,
    routes: Vec<String>,
}

/// A line of bgpdump; the path of a route without one origin ends with a set.
fn line(prefix: &str, asn: &str) -> String {
    let path = if asn == "-" { "64999 {64500,64501}".to_owned() } else { format!("64999 {asn}") };
    format!("TABLE_DUMP2|1|B|192.0.2.1|64999|{prefix}|{path}|IGP|192.0.2.1|0|0||NAG||\n")
}

/// Returns the payloads as routinator writes them.
fn export(case: &Case) -> String {
    let mut csv = "ASN,IP Prefix,Max Length,Trust Anchor\n".to_owned();
    for roa in &case.roas {
        let (prefix, asn) = roa.split_once(' ').unwrap();
        let (prefix, max_len) = prefix.rsplit_once('-').unwrap();
        csv += &format!("AS{asn},{prefix},{max_len},x\n");
    }
    csv
}

#[test]
fn the_cases_of_the_standards() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rpki/origin-validation.toml");
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let folder = Folder::new();
    let mut judged = 0;
    for case in &file.case {
        let vrps = folder.write("vrps.csv", export(case));
        let mut left: Vec<Vec<&str>> = case.routes.iter().map(|route| route.split(' ').collect()).collect();
        // A table has a prefix once.
        while !left.is_empty() {
            let mut table = HashMap::new();
            let mut again = Vec::new();
            for route in left {
                if table.contains_key(route[0]) {
                    again.push(route);
                } else {
                    table.insert(route[0], route);
                }
            }
            left = again;
            let text: String = table.values().map(|route| line(route[0], route[1])).collect();
            let path = folder.write("table.txt", text);
            let (path, vrps) = (path.to_str().unwrap(), vrps.to_str().unwrap());
            let shown = run(&[
                "route", "show", "-q", "-t", path, "--vrps", vrps, "--value", "rpki", "--format", "csv",
            ]);
            if case.roas.is_empty() {
                assert!(shown.code == 3 && shown.err.contains("no payload in it"), "{}", shown.err);
                judged += table.len();
                continue;
            }
            let mut invalid = 0;
            for row in shown.out.lines().skip(1) {
                let fields: Vec<&str> = row.split(',').collect();
                let expected = table[fields[0]][2];
                let state = fields[2].split_once("-as").or(fields[2].split_once("-length"));
                let state = state.map_or(fields[2], |(state, _)| state);
                assert_eq!(state, expected, "{}: {row}", case.name);
                invalid += usize::from(state == "invalid");
                judged += 1;
            }
            let summary = run(&["rpki", "-q", "-t", path, "--vrps", vrps, "--json"]).out;
            let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
            let count = |state: &str| {
                let families = &summary["states"][state];
                families["ipv4"].as_u64().unwrap() + families["ipv6"].as_u64().unwrap()
            };
            assert_eq!(count("invalid_as") + count("invalid_length"), invalid as u64, "{}", case.name);
            assert_eq!(summary["payloads"], case.roas.len(), "{}", case.name);
            assert_eq!(summary["left_out"], 0, "{}", case.name);
        }
    }
    assert_eq!(judged, file.case.iter().map(|case| case.routes.len()).sum::<usize>());
    assert!(judged > 40);
}
