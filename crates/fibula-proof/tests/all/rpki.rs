//! The example of route origin validation: the cases of `testdata/rpki/`, and generated payloads against the definition.

#[path = "../../../fibula/examples/rpki.rs"]
#[expect(dead_code, reason = "`main` prints, for people")]
mod example;

use std::path::Path;

use example::{Payload, Random, State, Validator, by_definition};
use fibula::net::{Family, IpPrefix};
use fibula::net::{Key, Prefix};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    source: String,
    roas: Vec<String>,
    routes: Vec<String>,
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn is_of<K: Key>(line: &str) -> bool {
    words(line)[0].split('-').next().unwrap().parse::<IpPrefix>().unwrap().family() == K::FAMILY
}

fn payload<K: Key>(line: &str) -> Payload<K> {
    let [what, asn] = words(line)[..] else { panic!("{line}: a payload is a prefix and an AS") };
    let (prefix, max_len) = what.split_once('-').unwrap_or_else(|| panic!("{line}: no maximum length"));
    Payload { prefix: prefix.parse().unwrap(), max_len: max_len.parse().unwrap(), asn: asn.parse().unwrap() }
}

fn judge<K: Key>(case: &Case) -> usize {
    let payloads: Vec<_> =
        case.roas.iter().filter(|line| is_of::<K>(line)).map(|line| payload::<K>(line)).collect();
    let routes: Vec<_> = case.routes.iter().filter(|line| is_of::<K>(line)).map(|line| words(line)).collect();
    let prefixes: Vec<Prefix<K>> = routes.iter().map(|route| route[0].parse().unwrap()).collect();
    let origins: Vec<Option<u32>> = routes.iter().map(|route| route[1].parse().ok()).collect();
    let mut states = vec![State::Valid; routes.len()];
    Validator::new(&payloads).unwrap().validate(&prefixes, &origins, &mut states);
    for ((route, &state), at) in routes.iter().zip(&states).zip(0..) {
        assert_eq!(state.to_string(), route[2], "{} ({}): {route:?}", case.name, case.source);
        assert_eq!(by_definition(&payloads, prefixes[at], origins[at]), state, "{}: {route:?}", case.name);
    }
    routes.len()
}

#[test]
fn the_cases_of_the_standards() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/rpki");
    let text = std::fs::read_to_string(folder.join("origin-validation.toml")).unwrap();
    let file: File = toml::from_str(&text).unwrap();
    let judged: usize = file.case.iter().map(|case| judge::<u32>(case) + judge::<u128>(case)).sum();
    assert_eq!(judged, file.case.iter().map(|case| case.routes.len()).sum::<usize>());
    assert!(judged > 40);
    assert_eq!([u32::FAMILY, u128::FAMILY], [Family::Ipv4, Family::Ipv6]);
}

fn generated<K: Key>() {
    for seed in 0..6 {
        let mut random = Random(seed);
        // Few allocations first, so that payloads nest.
        let payloads = example::generate::<K>(&mut random, 300);
        let (prefixes, origins) = example::routes(&mut random, &payloads, 2_000);
        let mut states = vec![State::NotFound; prefixes.len()];
        Validator::new(&payloads).unwrap().validate(&prefixes, &origins, &mut states);
        for ((&prefix, &origin), &state) in prefixes.iter().zip(&origins).zip(&states) {
            assert_eq!(state, by_definition(&payloads, prefix, origin), "seed {seed}: {prefix} {origin:?}");
        }
        for wanted in [State::NotFound, State::Invalid, State::Valid] {
            assert!(states.iter().filter(|&&state| state == wanted).count() > 100, "seed {seed}: {wanted}");
        }
    }
}

#[test]
fn generated_payloads_and_routes() {
    generated::<u32>();
    generated::<u128>();
}

#[test]
fn the_guide_shows_what_the_example_prints() {
    let mut printed = Vec::new();
    example::run(&mut printed).unwrap();
    let (printed, guide) =
        (String::from_utf8(printed).unwrap(), include_str!("../../../../docs/guide/maps.md"));
    assert!(
        guide.contains(&format!("```text\n{printed}```")),
        "docs/guide/maps.md does not show:\n{printed}"
    );
}
