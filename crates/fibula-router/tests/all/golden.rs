//! Golden frames: `testdata/router/*.txt` say what goes in and, to the byte, what comes out.
//!
//! ```text
//! case NAME                 begins a case: a fresh router of the network in testdata/router/README.md
//! in PORT LAYERS            a frame is received
//! wait MILLISECONDS         time passes
//! rule RULE                 a rule for packets that are forwarded, before the first frame
//! police RATE BURST         rates of every class of packets to the machine, before the first frame
//! own PORT ADDRESS...       these addresses of the router are new: it looks whether another station has them
//! out PORT LAYERS           a frame that must have been sent, in order for each port
//! host PORT LAYERS          a frame that must have been given to the kernel
//! count PORT NAME N         a counter; a case names every counter of drops and of what the router made that is not 0
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fibula_router::acl::{Action, LogRate, PrefixLists, Rule, RuleSet};
use fibula_router::count::Made;
use fibula_router::drops::DropReason;
use fibula_router::io::memory::Frame;
use fibula_router::neighbour::Key;
use fibula_router::police::{PolicerClass, PolicerRate, Policers};

use crate::support::cases::{Case, cases};
use crate::support::frames::{self, Words};
use crate::support::network::{Network, PORTS};

fn port(name: &str) -> usize {
    PORTS.iter().position(|&port| port == name).unwrap_or_else(|| panic!("no port '{name}'"))
}

fn play(case: &Case) -> Result<(), String> {
    let mut network = Network::new();
    let mut last = Vec::new();
    let (mut out, mut host): (BTreeMap<usize, Vec<Words>>, BTreeMap<usize, Vec<Words>>) = Default::default();
    let mut counts = BTreeMap::new();
    let rules = case.lines.iter().filter_map(|(_, line)| line.strip_prefix("rule "));
    let rules: Vec<Rule> = rules
        .map(|rule| rule.parse().map_err(|error| format!("{rule}: {error}")))
        .collect::<Result<_, _>>()?;
    if !rules.is_empty() {
        let mut fabric = (*network.shared.fabric()).clone();
        let lists = PrefixLists::default();
        let rules = RuleSet::compile(rules, Action::Permit, LogRate::default(), &lists, &|_, name| {
            Some(port(name) as u16)
        });
        fabric.forward_rules = Some(Arc::new(rules.map_err(|error| error.to_string())?));
        network.shared.replace(fabric);
    }
    for (number, line) in &case.lines {
        let (word, rest) = line.split_once(' ').ok_or(format!("line {number}: too short"))?;
        let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
        match word {
            "in" => {
                let frame = frames::build(text, &last);
                last.clone_from(&frame.bytes);
                let frame = Frame { bytes: frame.bytes, tag: frame.tag.map(Into::into), ..Frame::default() };
                network.io.ports[port(first)].input.push_back(frame);
                network.run();
            }
            "rule" => {}
            "police" => {
                let rate =
                    PolicerRate { rate: frames::number(first) as u32, burst: frames::number(text) as u32 };
                let mut fabric = (*network.shared.fabric()).clone();
                fabric.policers = Some(Arc::new(Policers::new([Some(rate); PolicerClass::COUNT])));
                network.shared.replace(fabric);
            }
            "wait" => network.wait(frames::number(first)),
            "own" => {
                let keys = text.split(' ').map(|address| match address.contains(':') {
                    true => Key::v6(port(first) as u16, u128::from_be_bytes(frames::v6(address))),
                    false => Key::v4(port(first) as u16, u32::from_be_bytes(frames::v4(address))),
                });
                network.shared.own.set(keys);
            }
            "out" => out.entry(port(first)).or_default().push(frames::build(text, &last)),
            "host" => host.entry(port(first)).or_default().push(frames::build(text, &last)),
            "count" => {
                let (name, count) =
                    text.split_once(' ').ok_or(format!("line {number}: count PORT NAME N"))?;
                counts.insert((port(first), name.to_owned()), frames::number(count));
            }
            other => return Err(format!("line {number}: no '{other}'")),
        }
    }
    network.check();
    for (number, name) in PORTS.iter().enumerate() {
        let sent = std::mem::take(&mut network.io.ports[number].output);
        compare("sent by", number, &sent, out.get(&number).map_or(&[], Vec::as_slice))?;
        let delivered = std::mem::take(&mut network.io.ports[number].delivered);
        compare("delivered from", number, &delivered, host.get(&number).map_or(&[], Vec::as_slice))?;
        let totals = network.totals(number);
        let drops = DropReason::ALL.iter().map(|reason| (reason.name(), totals.dropped[reason.index()]));
        let made = Made::ALL.iter().map(|&made| (made.name(), totals.made[made as usize]));
        for (counter, count) in drops.chain(made) {
            let expected = counts.remove(&(number, counter.to_owned())).unwrap_or(0);
            if count != expected {
                return Err(format!("{name} {counter}: {count}, expected {expected}"));
            }
        }
    }
    match counts.first_key_value() {
        Some(((_, name), _)) => Err(format!("no counter '{name}'")),
        None => Ok(()),
    }
}

fn compare(what: &str, port: usize, frames: &[Frame], expected: &[Words]) -> Result<(), String> {
    let dump = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if frames.len() != expected.len() {
        let list: Vec<String> = frames.iter().map(|frame| dump(&frame.bytes)).collect();
        return Err(format!(
            "{} frames {what} {}, expected {}: {list:#?}",
            frames.len(),
            PORTS[port],
            expected.len()
        ));
    }
    for (frame, expected) in frames.iter().zip(expected) {
        if frame.bytes != expected.bytes {
            let at = frame.bytes.iter().zip(&expected.bytes).take_while(|(a, b)| a == b).count();
            let (is, should) = (dump(&frame.bytes), dump(&expected.bytes));
            return Err(format!("{what} {}, byte {at}:\n  is     {is}\n  should {should}", PORTS[port]));
        }
    }
    Ok(())
}

#[test]
fn every_case() {
    let cases = cases();
    let mut failed = 0;
    for (file, case) in &cases {
        if let Err(error) = play(case) {
            println!("{file}, {}: {error}", case.name);
            failed += 1;
        }
    }
    assert!(cases.len() > 60, "{} cases", cases.len());
    assert_eq!(failed, 0, "of {} cases", cases.len());
}

/// Each difference from the kernel that the guide names is shown by a case here or by a test.
#[test]
fn every_difference_from_the_kernel_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|_| panic!("{path}"));
    let list: toml::Table = read("netlab/differences.toml").parse().unwrap();
    let names: Vec<String> = cases().into_iter().map(|(_, case)| case.name).collect();
    let differences = list["difference"].as_array().unwrap();
    for difference in differences {
        let test = difference["test"].as_str().unwrap();
        let is_shown = match test.split_once(": ") {
            Some((file, name)) if file.ends_with(".rs") => read(file).contains(&format!("fn {name}(")),
            _ => names.iter().any(|name| name == test),
        };
        assert!(is_shown, "{:?}: no test '{test}'", difference["name"]);
    }
    assert!(differences.len() > 10);
}

/// Reasons that need more than one frame in and out; the file of tests that has them.
const ELSEWHERE: [&str; 8] = [
    "offload-too-big",
    "offload-unsupported",
    "neighbour-queue",
    "neighbour-limit",
    "neighbour-timeout",
    "stage-full",
    "transmit-full",
    "host-full",
];

#[test]
fn every_reason_has_a_case() {
    let mut text = String::new();
    for (_, case) in cases() {
        case.lines.iter().for_each(|(_, line)| text.push_str(&format!("{line} ")));
    }
    for reason in DropReason::ALL {
        let here = text.contains(&format!(" {} ", reason.name()));
        assert_eq!(here, !ELSEWHERE.contains(&reason.name()), "{}", reason.name());
    }
}
