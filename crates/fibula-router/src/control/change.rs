//! The changes of ports and interfaces by a reload, and those that need a restart.

use super::{ControlError, plan};
use crate::config::{Backend, Config, Interface, Shape};
use crate::packet::ethernet::Tags;

/// The changes of the ports by a reload, each by its number.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) added: Vec<(usize, Backend)>,
    pub(super) removed: Vec<(usize, Backend)>,
    /// Lines of the log about the interfaces.
    pub(super) names: Vec<String>,
}

/// Ports that may be added while the router runs.
const SPARE: usize = 64;

/// Returns how many ports there may be, those that are added later included. None can be added between stages, because the rings of all
/// ports are made at the start.
pub(super) fn most_ports(config: &Config) -> usize {
    let spare = if config.shape == Shape::Complete { SPARE } else { 0 };
    plan::ports(config).len() + spare
}

/// The identity of an interface: with another one of these it is another interface.
#[derive(Debug, PartialEq)]
struct NamedPort<'c> {
    name: &'c str,
    backend: &'c Backend,
    tags: Tags,
    host: Option<&'c str>,
}

fn lines(config: &Config) -> Vec<NamedPort<'_>> {
    let lines = config.interfaces.iter().filter(|line| !line.removed);
    lines
        .map(|line| {
            let (backend, tags, host) = line.identity();
            NamedPort { name: &line.name, backend, tags, host }
        })
        .collect()
}

/// Returns the changes of the ports between two configurations, the second with the numbers of the first. `most` is the number
/// of ports that there may be, and `has_filter` whether the kernel's filter is loaded.
///
/// # Errors
/// With each interface that cannot be added or removed while the router runs, and why.
pub(super) fn change(
    before: &Config,
    after: &Config,
    most: usize,
    has_filter: bool,
) -> Result<Change, ControlError> {
    let (old, new) = (lines(before), lines(after));
    let gone: Vec<_> = old.iter().filter(|line| !new.contains(line)).collect();
    let come: Vec<_> = new.iter().filter(|line| !old.contains(line)).collect();
    let has = |lines: &[NamedPort<'_>], port: &Backend| lines.iter().any(|line| line.backend == port);
    let mut refused: Vec<String> = Vec::new();
    for (line, is_new) in gone.iter().map(|line| (line, false)).chain(come.iter().map(|line| (line, true))) {
        let has_port = has(if is_new { &old } else { &new }, line.backend);
        let has_side = line.host.is_some() && is_new;
        if let Some(why) = fixed(line, is_new, has_port && !has_side, after, has_filter) {
            refused.push(format!("interface {}: {why}", line.name));
        }
    }
    let ports = plan::ports(after);
    // Of the machine's sides, which are ports too.
    let sides = |config: &Config| -> Vec<Backend> {
        config.interfaces.iter().filter(|line| !line.removed).filter_map(Interface::side).collect()
    };
    let (old_sides, new_sides) = (sides(before), sides(after));
    if refused.is_empty() && ports.len() > most {
        let names = come.iter().filter(|line| !has(&old, line.backend)).map(|line| line.name);
        let names = names.collect::<Vec<_>>().join(", ");
        refused.push(format!(
            "interfaces {names}: there is no room for more than {SPARE} ports since the start"
        ));
    }
    if !refused.is_empty() {
        return Err(ControlError::Interfaces(refused));
    }
    let mut change = Change::default();
    change.names.extend(gone.iter().map(|line| format!("interface {}: removed", line.name)));
    change.names.extend(come.iter().map(|line| format!("interface {}: added", line.name)));
    for (number, port) in ports.iter().enumerate() {
        match (has(&old, port) || old_sides.contains(port), has(&new, port) || new_sides.contains(port)) {
            (false, true) => change.added.push((number, port.clone())),
            (true, false) => change.removed.push((number, port.clone())),
            _ => {}
        }
    }
    Ok(change)
}

/// Returns why an interface cannot be added or removed while the router runs, if it cannot. `has_port` says whether its port is there
/// before and after.
fn fixed(
    line: &NamedPort<'_>,
    is_new: bool,
    has_port: bool,
    after: &Config,
    has_filter: bool,
) -> Option<&'static str> {
    match line.backend {
        _ if after.bridge => Some("a bridge keeps the pairs of interfaces that it has"),
        // Its VLANs too, because the program at the device was made for those that it has.
        Backend::Xdp { .. } if is_new => {
            Some("interfaces of af-xdp are added at a start alone, which makes their programs and memory")
        }
        backend if backend.is_device() && line.tags.is_none() && has_port && after.gate => Some(
            "frames without a tag begin or end to be the router's at a start alone where packets to the machine are judged",
        ),
        Backend::Dpdk { .. } if !has_port => Some("ports of dpdk are added and removed at a start alone"),
        Backend::Pcap { .. } if !has_port => Some("files are added and removed at a start alone"),
        _ if is_new && !has_port && after.shape != Shape::Complete => {
            Some("ports between stages are added at a start alone, which makes the rings of all")
        }
        Backend::Packet { .. } if is_new && !has_filter => {
            Some("the first device of the kernel is added at a start alone, which makes its filter")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A configuration of interfaces, each in three words: name, back end and device.
    fn config(head: &str, interfaces: &[&str]) -> Config {
        let line = |words: &&str| {
            let [name, backend, device] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("{words}") };
            let (device, vlan) = device.split_once('.').unwrap_or((device, "0"));
            let key = if backend == "pcap" { "input" } else { "device" };
            let vlan = if vlan == "0" { String::new() } else { format!("vlan = {vlan}\n") };
            let mut text = format!("[[interface]]\nname = \"{name}\"\nbackend = \"{backend}\"\n");
            text += &format!("{key} = \"{device}\"\n{vlan}");
            if matches!(backend, "tap" | "pcap" | "dpdk") && !head.contains("bridge") {
                text += "addresses = [\"192.0.2.1/24\"]\n";
            }
            text
        };
        let text: String = interfaces.iter().map(line).collect();
        Config::parse(&format!("{head}\n{text}")).unwrap_or_else(|error| panic!("{error}: {head}{text}"))
    }

    fn changed(head: &str, before: &[&str], after: &[&str], has_filter: bool) -> Result<Vec<String>, String> {
        let before = config(head, before);
        let mut after = config(head, after);
        after.keep_numbers(&before);
        // As it is after a start, whatever the kernel that this runs on has.
        after.gate = head == "# gate";
        let change = change(&before, &after, most_ports(&before), has_filter);
        change.map(|change| change.names).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_change_is_refused_by_name() {
        let stages = "shape = \"two-stages\"";
        let gate = "# gate";
        for (head, before, after, has_filter, names) in [
            (
                "",
                &["a af-xdp x0"][..],
                &["a af-xdp x0", "b af-xdp x1"][..],
                true,
                &["b: interfaces of af-xdp"][..],
            ),
            ("", &["a af-xdp x0"], &["a af-xdp x0", "v af-xdp x0.7"], true, &["v: interfaces of af-xdp"]),
            (
                "",
                &["a af-xdp x0", "b af-packet e"],
                &["c af-xdp x0", "b af-packet e"],
                true,
                &["c: interfaces of af-xdp"],
            ),
            ("", &["a tap t"], &["a tap t", "b pcap f"], false, &["b: files"]),
            ("", &["a tap t", "b pcap f"], &["a tap t"], false, &["b: files"]),
            (
                stages,
                &["a tap t"],
                &["a tap t", "b tap u", "c af-packet e"],
                true,
                &["b: ports between stages", "c: ports between"],
            ),
            ("", &["a tap t"], &["a tap t", "b af-packet e"], false, &["b: the first device of the kernel"]),
            (
                "mode = \"bridge\"",
                &["a tap t", "b tap u"],
                &["a tap t", "c tap v"],
                false,
                &["b: a bridge", "c: a bridge"],
            ),
            (
                gate,
                &["v af-packet e.7"],
                &["v af-packet e.7", "a af-packet e"],
                true,
                &["a: frames without a tag"],
            ),
            (
                gate,
                &["v af-packet e.7", "a af-packet e"],
                &["v af-packet e.7"],
                true,
                &["a: frames without a tag"],
            ),
        ] {
            let refused = changed(head, before, after, has_filter).unwrap_err();
            for name in names {
                assert!(refused.contains(&format!("interface {name}")), "{after:?}: {refused}");
            }
            assert_eq!(refused.matches("interface ").count(), names.len(), "{refused}");
            assert!(refused.ends_with(": restart needed"), "{refused}");
        }
        let many: Vec<String> = (0..66).map(|number| format!("n{number} tap t{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let refused = changed("", &many[..1], &many, false).unwrap_err();
        assert!(refused.contains("n65: there is no room for more than 64 ports"), "{refused}");
        assert!(changed("", &many[..1], &many[..65], false).is_ok());
    }

    #[cfg(feature = "dpdk")]
    #[test]
    fn ports_of_dpdk_are_refused_by_name() {
        let (one, two) = (&["a dpdk net_null0"][..], &["a dpdk net_null0", "b dpdk net_null1"][..]);
        for (before, after) in [(one, two), (two, one)] {
            let refused = changed("", before, after, false).unwrap_err();
            assert!(refused.contains("interface b: ports of dpdk"), "{refused}");
        }
        let vlan = changed("", one, &["a dpdk net_null0", "v dpdk net_null0.7"], false);
        assert_eq!(vlan.unwrap(), ["interface v: added"]);
    }

    #[test]
    fn what_can_change_is_named() {
        let stages = "shape = \"two-stages\"";
        for (head, before, after, names) in [
            ("", &["a af-packet e"][..], &["a af-packet e", "b af-packet f"][..], &["b: added"][..]),
            ("", &["a af-packet e", "b tap t"], &["a af-packet e"], &["b: removed"]),
            ("", &["a af-packet e"], &["a af-packet e", "v af-packet e.7"], &["v: added"]),
            ("", &["a af-xdp x", "b af-packet e"], &["b af-packet e"], &["a: removed"]),
            (stages, &["a tap t", "b tap u"], &["a tap t"], &["b: removed"]),
            (stages, &["a af-packet e"], &["a af-packet e", "v af-packet e.7"], &["v: added"]),
            ("", &["a tap t"], &["b tap t"], &["a: removed", "b: added"]),
        ] {
            let names: Vec<String> = names.iter().map(|name| format!("interface {name}")).collect();
            assert_eq!(changed(head, before, after, true), Ok(names), "{after:?}");
        }
    }
}
