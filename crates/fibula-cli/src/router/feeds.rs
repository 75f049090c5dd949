//! `fibula router feeds`.

use std::io::{self, Write};

use serde_json::Value;

use super::show::{count, list};
use crate::text::thousands;

/// Prints the feeds of a router: a line each, then what is out of the ordinary.
pub(super) fn print(out: &mut impl Write, answer: &Value) -> io::Result<()> {
    if list(answer).is_empty() {
        return writeln!(out, "no feeds: add a [[feed]] to the configuration");
    }
    writeln!(
        out,
        "{:<16}{:<8}{:>9}  {:<15}{:>12}{:>12}{:>12}",
        "feed", "kind", "distance", "state", "routes", "objects", "changes/s"
    )?;
    for feed in list(answer) {
        let text = |name: &str| feed[name].as_str().unwrap_or("-").to_owned();
        let number = |name: &str| thousands(count(feed, name));
        writeln!(
            out,
            "{:<16}{:<8}{:>9}  {:<15}{:>12}{:>12}{:>12}",
            text("name"),
            text("kind"),
            number("distance"),
            text("state"),
            number("routes"),
            number("next_hop_objects"),
            number("changes_per_second")
        )?;
        if let Some(listen) = feed["listen"].as_str() {
            writeln!(out, "  listens at {listen}")?;
        }
        if feed["peer_routes"].is_u64() {
            let peers =
                if feed["peers"].is_u64() { format!("{} peers, ", number("peers")) } else { String::new() };
            writeln!(out, "  {peers}{} routes of peers", number("peer_routes"))?;
        }
        let answers = &feed["acknowledgements"];
        if answers.is_object() {
            let (waiting, ready) = (count(answers, "waiting"), count(answers, "ready"));
            let (waiting, ready) = (thousands(waiting), thousands(ready));
            writeln!(out, "  acknowledgements: {waiting} routes not used yet, {ready} answers to be sent")?;
        }
        let unresolved = count(feed, "unresolved");
        if unresolved > 0 {
            let unresolved = thousands(unresolved);
            writeln!(out, "  {unresolved} routes lead to no interface of the router, and are not used")?;
        }
        for rule in feed["rules_not_heeded"].as_array().into_iter().flatten().filter_map(|rule| rule.as_str())
        {
            writeln!(out, "  the kernel has a rule that the router does not heed: {rule}")?;
        }
        let full_vrfs = list(&feed["full_vrfs"]);
        for vrf in full_vrfs {
            let (name, limit) = (vrf["name"].as_str().unwrap_or("-"), thousands(count(vrf, "limit")));
            writeln!(
                out,
                "  at the limit of VRF {name}, {limit} routes of all feeds: raise 'routes' of its [[vrf]]"
            )?;
        }
        if feed["overrun"].as_bool() == Some(true) && full_vrfs.is_empty() {
            writeln!(out, "  at its limit of {} routes: raise 'routes'", number("limit"))?;
        }
        let counts = feed["counts"].as_object();
        let counts: Vec<String> = counts
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| {
                let value = value.as_u64().filter(|&value| value > 0)?;
                Some(format!("{} {name}", thousands(value)))
            })
            .collect();
        if !counts.is_empty() {
            writeln!(out, "  {}", counts.join(", "))?;
        }
        if let Some(error) = feed["last_error"].as_str() {
            writeln!(out, "  {} s ago: {error}", number("last_error_seconds_ago"))?;
        }
    }
    Ok(())
}
