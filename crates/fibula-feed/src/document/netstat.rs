//! Output of `netstat -rn` and `route -n` on Linux: columns under a header. The route with the lowest metric is in use.

use super::head::TextHead;
use super::ip_route::is_prompt;
use super::record::{NamedFields, RouteScope, TableRecord};
use super::{ByRule, Document, Settings, Stop, Take};
use crate::text::{LineError, LineErrorKind};

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    if head.lines().iter().any(|line| header(line).is_some()) { head.lines().len() } else { 0 }
}

pub(super) fn read() -> Box<dyn Document> {
    Box::<Netstat>::default()
}

#[derive(Default)]
struct Netstat {
    columns: Option<Vec<String>>,
}

/// Returns the names of the columns, if a line is their header.
fn header(line: &str) -> Option<Vec<String>> {
    // 'Next Hop' is the only name of two words.
    let line = line.replace("Next Hop", "Gateway");
    let names: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
    let is_linux = names.first().is_some_and(|name| name == "Destination")
        && names.iter().any(|name| name == "Gateway")
        && names.last().is_some_and(|name| name == "Iface" || name == "If");
    is_linux.then_some(names)
}

impl Document for Netstat {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let text = line.trim();
        if let Some(names) = header(text) {
            self.columns = Some(names);
            return Ok(());
        }
        if text.is_empty() || text.starts_with('#') || text.starts_with("Kernel IP") || is_prompt(text) {
            return Ok(());
        }
        let not_a_route = || LineError::new(LineErrorKind::NotARoute, 0);
        let Some(names) = &self.columns else { return take.bad(number, not_a_route(), text) };
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        // IPv6 prints '[::]' for no gateway and leaves flags such as '!n' in their column.
        if words.len() < names.len().saturating_sub(1) || words.len() > names.len() {
            return take.bad(number, not_a_route(), text);
        }
        if words.len() < names.len() {
            words.push("");
        }
        let get =
            |wanted: &[&str]| names.iter().position(|name| wanted.contains(&&**name)).map(|at| words[at]);
        let (Some(destination), Some(gateway), Some(flags)) =
            (get(&["Destination"]), get(&["Gateway"]), get(&["Flags", "Flag"]))
        else {
            return take.bad(number, not_a_route(), text);
        };
        if !flags.contains('U') && !flags.contains('!') {
            take.by_rule(ByRule::NotInUse);
            return Ok(());
        }
        let iface = get(&["Iface", "If"]).unwrap_or_default();
        let is_none = matches!(gateway, "0.0.0.0" | "*" | "::" | "[::]" | "-");
        let mut fields = NamedFields::default();
        fields.push(
            "next_hop",
            if flags.contains('!') {
                "unreachable"
            } else if is_none {
                iface
            } else {
                gateway
            },
        );
        fields.push("dev", iface);
        fields.push("flags", flags);
        let metric = get(&["Metric", "Met"]);
        fields.push("metric", metric.unwrap_or_default());
        let rank = Some(metric.and_then(|metric| metric.parse().ok()).unwrap_or(0));
        let place = match get(&["Genmask"]) {
            Some(mask) if destination != "default" => RouteScope::Masked(destination, mask),
            Some(_) => RouteScope::Prefix("0.0.0.0/0"),
            None if destination == "[::]/0" => RouteScope::Prefix("::/0"),
            None => RouteScope::Prefix(destination),
        };
        take.record(&TableRecord { rank, ..TableRecord::plain(place, &fields) }, number, text)
    }
}
