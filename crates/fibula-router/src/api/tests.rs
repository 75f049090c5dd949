use core::fmt::Debug;

use serde_json::{Map, Value};

use super::*;

const COUNTERS: &str = concat!(
    r#""received":10,"received_bytes":640,"forwarded":5,"delivered":1,"consumed":1,"dropped":2,"sent":6,"sent_bytes":384,"#,
    r#""waiting":-1,"drops":{"no-route":2,"blackhole":0},"made":{"arp-request":1,"arp-reply":0}"#
);

/// Every object of an answer, by its JSON pointer. Maps by name are left out, because they may have any names.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.push(path.to_owned());
            for (name, value) in object {
                if !["drops", "made", "counts"].contains(&name.as_str()) {
                    objects(value, &format!("{path}/{name}"), found);
                }
            }
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, value)| objects(value, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

/// Reads a line and writes it again, as it was; then reads it without each field, with each field renamed, and with fields that are unknown.
fn check<A: Serialize + DeserializeOwned + PartialEq + Debug>(line: &str, may_be_absent: &[&str]) {
    let answer: A = read(line).unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), line);
    let (value, mut found) = (serde_json::from_str::<Value>(line).unwrap(), Vec::new());
    objects(&value, "", &mut found);
    for path in found {
        let changed = |change: &dyn Fn(&mut Map<String, Value>)| {
            let mut value = value.clone();
            change(value.pointer_mut(&path).unwrap().as_object_mut().unwrap());
            read::<A>(&value.to_string())
        };
        let object = value.pointer(&path).unwrap().as_object().unwrap();
        let unknown = changed(&|object| _ = object.insert("later".to_owned(), Value::Null)).unwrap();
        assert_eq!(unknown, answer, "{path}");
        for name in object.keys() {
            let has_both = object.contains_key("via") && object.contains_key("interface");
            let is_way = ["via", "interface"].contains(&name.as_str());
            let without = changed(&|object| _ = object.shift_remove(name));
            let renamed = changed(&|object| {
                let value = object.shift_remove(name).unwrap();
                object.insert(format!("{name}s"), value);
            });
            for result in [without, renamed] {
                let is_optional = may_be_absent.iter().any(|optional| match optional.split_once('/') {
                    Some((list, optional)) => optional == name && path.contains(list),
                    None => optional == name,
                });
                if is_optional || (is_way && has_both) {
                    assert_ne!(result.unwrap(), answer, "{path}/{name}");
                } else {
                    let error = result.expect_err(&format!("{path} without '{name}'")).to_string();
                    let is_named = error.contains("missing field") && error.contains(&format!("`{name}`"));
                    assert!(is_named, "{path} without '{name}': {error}");
                    assert!(error.starts_with("the router answered something else: "), "{error}");
                    assert!(error.ends_with("; is it of another version?"), "{error}");
                }
            }
        }
    }
}

#[test]
fn stats() {
    let port = format!(r#"{{"name":"left",{COUNTERS},"ring_lost":3,"queues":[{{{COUNTERS}}}]}}"#);
    let vrf = |limit| {
        format!(r#"{{"name":"default","ipv4_routes":1,"ipv6_routes":2,"feed_routes":3,"limit":{limit}}}"#)
    };
    let verify = concat!(
        r#"{"rate":1000,"passes":1,"compared":2,"compared_kernel":3,"#,
        r#""differences":{"rib-fib":1,"fib-lookup":2,"kernel-rib":3},"busy_seconds":0.25}"#
    );
    let vrfs = [vrf("null"), vrf("5")].join(",");
    let line = format!(r#"{{"threads":2,"ports":[{port}],"vrfs":[{vrfs}],"verify":{verify}}}"#);
    check::<Stats>(&line, &[]);
    let with_fast = line.replacen("]}],", &format!("],\"fast\":{{{COUNTERS}}}}}],"), 1);
    assert_ne!(with_fast, line);
    check::<Stats>(&with_fast, &["fast"]);
    let stats: Stats = read(&line).unwrap();
    assert_eq!(stats.ports[0].counters, stats.ports[0].queues[0]);
    assert_eq!(stats.ports[0].counters.drops.get("no-route"), Some(2));
    assert_eq!(stats.ports[0].counters.drops.get("nonesuch"), None);
    assert_eq!(stats.verify.differences.total(), 6);
}

#[test]
fn neighbours() {
    let mut list = Vec::new();
    for state in NeighbourState::ALL {
        let mac = if *state == NeighbourState::Waiting { "null" } else { r#""02:00:00:00:00:01""# };
        let (address, state) = ("fe80::1", state.name());
        list.push(format!(r#"{{"interface":"left","address":"{address}","mac":{mac},"state":"{state}"}}"#));
    }
    check::<Vec<Neighbour>>(&format!("[{}]", list.join(",")), &[]);
    let wrong = list[1].replace(":01", ":1");
    let error = read::<Neighbour>(&wrong).unwrap_err().to_string();
    assert!(error.contains("'02:00:00:00:00:1': a MAC address is six pairs"), "{error}");
}

#[test]
fn bfd() {
    let session = |state: &BfdState| {
        let state = state.name();
        let (peer, diagnostic) = ("2001:db8::1", "its time has run out");
        format!(
            r#"{{"peer":"{peer}","device":"eth0","state":"{state}","diagnostic":"{diagnostic}","dead":true,"failures":2,"held_ms":5}}"#
        )
    };
    let mut sessions: Vec<String> = BfdState::ALL.iter().map(session).collect();
    sessions.push(
        sessions[0]
            .replace("\"eth0\"", "null")
            .replace("\"its time has run out\"", "null")
            .replace(":5}", ":null}"),
    );
    let line = format!(
        concat!(
            r#"{{"socket":"/run/frr/bfdd.sock","connected":false,"last_error":"gone","failures":3,"damped":1,"#,
            r#""malformed":0,"refused":0,"sessions":[{}]}}"#
        ),
        sessions.join(",")
    );
    check::<Bfd>(&line, &[]);
    check::<Bfd>(&line.replace("\"/run/frr/bfdd.sock\"", "null").replace("\"gone\"", "null"), &[]);
}

#[test]
fn feeds() {
    let begin = |kind, state, error, ago| {
        format!(
            concat!(
                r#"{{"name":"zebra","kind":"{}","distance":20,"state":"{}","state_seconds":7,"overrun":true,"routes":10,"#,
                r#""unresolved":1,"next_hop_objects":2,"limit":100,"changes_per_second":3,"counts":{{"messages":4,"swept":0}},"#,
                r#""last_error":{},"last_error_seconds_ago":{}"#
            ),
            kind, state, error, ago
        )
    };
    let full = concat!(
        r#","full_vrfs":[{"name":"red","limit":5},{"name":null,"limit":null}],"rules_not_heeded":["from all fwmark 1"],"#,
        r#""listen":"127.0.0.1:2620","acknowledgements":{"waiting":1,"ready":2},"peers":1,"peer_routes":2}"#
    );
    let may_be_absent =
        ["full_vrfs", "rules_not_heeded", "listen", "acknowledgements", "peers", "peer_routes"];
    let line = begin("fpm", "established", r#""connection reset""#, "9") + full;
    check::<Vec<Feed>>(&format!("[{line}]"), &may_be_absent);
    for kind in FeedKind::ALL {
        for state in FeedPhase::ALL {
            check::<Feed>(&(begin(kind.name(), state.name(), "null", "null") + "}"), &[]);
        }
    }
    let error = read::<Feed>(&line.replace("established", "paused")).unwrap_err().to_string();
    assert!(error.contains("unknown variant `paused`, expected one of `waiting`"), "{error}");
}

#[test]
fn routes_of_an_address() {
    check::<FoundRoute>(r#"{"prefix":null,"next_hop":null}"#, &[]);
    let change = |feed, next_hop| {
        format!(
            r#"{{"seconds_ago":1.5,"change":"removed","feed":{feed},"metric":20,"next_hop":{next_hop},"prefix":"10.0.0.0/8"}}"#
        )
    };
    let changes = [change(r#""zebra""#, r#"{"next_hop_object":7}"#), change("null", "null")].join(",");
    let line = format!(
        r#"{{"prefix":"10.0.0.0/8","next_hop":{{"via":"10.0.0.1","interface":"left"}},"changes":[{changes}]}}"#
    );
    check::<FoundRoute>(&line, &["changes", "changes/prefix"]);
}

#[test]
fn lines_of_a_listing() {
    let group = concat!(
        r#"[{"via":"10.0.0.1","interface":"left","weight":2},{"via":"fe80::1","weight":1},"#,
        r#"{"interface":"right","weight":1}]"#
    );
    for next_hop in ["null", r#"{"via":"10.0.0.1"}"#, r#"{"interface":"left"}"#, group, "[]"] {
        for feed in ["", r#","feed":null"#, r#","feed":"zebra""#] {
            let line = format!(r#"{{"prefix":"2001:db8::/32","next_hop":{next_hop}{feed}}}"#);
            check::<ListedRoute>(&line, &["feed"]);
        }
    }
    for word in NextHopWord::ALL {
        for change in ChangeKind::ALL {
            let (word, change) = (word.name(), change.name());
            let line = format!(
                concat!(
                    r#"{{"prefix":"10.0.0.0/8","next_hop":"{}","changes":[{{"seconds_ago":60.0,"change":"{}","#,
                    r#""feed":null,"metric":0,"next_hop":null}}]}}"#
                ),
                word, change
            );
            check::<ListedRoute>(&line, &["changes"]);
        }
    }
    check::<ListingEnd>(r#"{"routes":4}"#, &[]);
    let error = |next_hop: &str| {
        let line = format!(r#"{{"prefix":"10.0.0.0/8","next_hop":{next_hop}}}"#);
        read::<ListedRoute>(&line).unwrap_err().to_string()
    };
    assert!(error(r#""nowhere""#).contains("unknown variant `nowhere`, expected one of `local`"));
    assert!(error("7").contains("expected a next hop: a word, an object or a list"));
    assert!(error("[{}]").contains("missing field"));
}

#[test]
fn comparisons() {
    let differences = [
        r#"{"between":"rib-fib","vrf":"default","prefix":"10.0.0.0/8","rib":{"via":"10.0.0.1"},"fib":null}"#,
        r#"{"between":"fib-lookup","vrf":"red","prefix":"::/0","address":"::","fib":"blackhole","lookup":null}"#,
        concat!(
            r#"{"between":"kernel-rib","vrf":"red","prefix":"10.1.0.0/16","feed":"k","#,
            r#""kernel":[{"metric":0,"next_hop":"local"},{"metric":5,"next_hop":null}],"rib":null}"#
        ),
    ];
    let line = |differences: &str, more, not: &str| {
        format!(
            concat!(
                r#"{{"compared":1200,"compared_kernel":3,"seconds":0.5,"differences":[{}],"more_differences":{},"#,
                r#""not_compared":[{}]}}"#
            ),
            differences, more, not
        )
    };
    let all = line(&differences.join(","), 4, r#""feed a: refused""#);
    check::<Comparison>(&all, &[]);
    assert_eq!(read::<Comparison>(&all).unwrap().count(), 7);
    let is_good = |line: &str| read::<Comparison>(line).unwrap().is_good();
    assert!(is_good(&line("", 0, "")));
    assert!(![all, line("", 1, ""), line("", 0, r#""tables: full""#)].iter().any(|line| is_good(line)));
}

#[test]
fn refusals_are_in_the_routers_own_words() {
    let line = serde_json::to_string(&Refusal { error: "no VRF 'red'".to_owned() }).unwrap();
    assert_eq!(line, r#"{"error":"no VRF 'red'"}"#);
    let errors = [
        read::<Stats>(&line).unwrap_err(),
        read::<Vec<Feed>>(&line).unwrap_err(),
        read::<FoundRoute>(&line).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.to_string(), "no VRF 'red'");
    }
    let error = read::<Stats>("no JSON").unwrap_err().to_string();
    assert_eq!(error, "the router answered something else: expected ident; is it of another version?");
}

#[test]
fn the_largest_of_the_samples() {
    let row = |name| {
        format!(
            r#"{{"name":"{name}","samples":4,"packets":4000,"packets_error":3918,"bytes":400000,"bytes_error":391800}}"#
        )
    };
    let collector = |fault| {
        format!(
            r#"{{"address":"192.0.2.5:4739","well":true,"messages":1,"records":4,"left_out":0,"faults":1,"last_fault":{fault}}}"#
        )
    };
    for by in TopBy::ALL {
        let (by, all, rows) = (by.name(), row("all"), [row("AS64500"), row("unknown")].join(","));
        let collectors = [collector("null"), collector(r#""Connection refused""#)].join(",");
        let line = format!(
            concat!(
                r#"{{"by":"{}","seconds":10.0,"interval":1000,"all":{},"rows":[{}],"drawn":9,"lost":1,"unreadable":2,"#,
                r#""collectors":[{}]}}"#
            ),
            by, all, rows, collectors
        );
        check::<Top>(&line, &[]);
    }
    let error = read::<Top>(r#"{"by":"colour"}"#).unwrap_err().to_string();
    assert!(error.contains("unknown variant `colour`, expected one of `as`"), "{error}");
}
