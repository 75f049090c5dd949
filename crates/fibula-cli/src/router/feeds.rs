//! `fibula router feeds`.

use std::io::{self, Write};

use fibula_router::api::{Feed, MissingInterface};

use crate::text::thousands;

/// Prints the feeds of a router: a line each, then notes on anything unusual.
pub(super) fn print(out: &mut impl Write, feeds: &[Feed]) -> io::Result<()> {
    if feeds.is_empty() {
        return writeln!(out, "no feeds: add a [[feed]] to the configuration");
    }
    writeln!(
        out,
        "{:<16}{:<8}{:>9}  {:<15}{:>12}{:>12}{:>12}",
        "feed", "kind", "distance", "state", "routes", "objects", "changes/s"
    )?;
    for feed in feeds {
        writeln!(
            out,
            "{:<16}{:<8}{:>9}  {:<15}{:>12}{:>12}{:>12}",
            feed.name,
            feed.kind.name(),
            feed.distance,
            feed.state.name(),
            thousands(feed.routes),
            thousands(feed.next_hop_objects),
            thousands(feed.changes_per_second)
        )?;
        if let Some(listen) = feed.listen {
            writeln!(out, "  listens at {listen}")?;
        }
        if let Some(routes) = feed.peer_routes {
            let peers = feed.peers.map_or_else(String::new, |peers| format!("{} peers, ", thousands(peers)));
            writeln!(out, "  {peers}{} routes of peers", thousands(routes))?;
        }
        if let Some(answers) = feed.acknowledgements {
            let (waiting, ready) = (thousands(answers.waiting), thousands(answers.ready));
            writeln!(out, "  acknowledgements: {waiting} routes not used yet, {ready} answers to be sent")?;
        }
        if feed.unresolved > 0 {
            let unresolved = thousands(feed.unresolved);
            writeln!(out, "  {unresolved} routes lead to no interface of the router, and are not used")?;
        }
        for rule in &feed.rules_not_heeded {
            writeln!(out, "  the kernel has a rule that the router does not heed: {rule}")?;
        }
        for vrf in &feed.full_vrfs {
            let (name, limit) = (vrf.name.as_deref().unwrap_or("-"), thousands(vrf.limit.unwrap_or(0)));
            writeln!(
                out,
                "  at the limit of VRF {name}, {limit} routes of all feeds: raise 'routes' of its [[vrf]]"
            )?;
        }
        if feed.lacks_memory {
            writeln!(
                out,
                "  at the limit on the memory of paths and next-hop objects: raise 'feeds.path_bytes'"
            )?;
        } else if feed.overrun && feed.full_vrfs.is_empty() {
            writeln!(out, "  at its limit of {} routes: raise 'routes'", thousands(feed.limit))?;
        }
        let counts = feed.counts.iter().filter(|count| count.1 > 0);
        let counts: Vec<String> =
            counts.map(|(name, count)| format!("{} {name}", thousands(count))).collect();
        if !counts.is_empty() {
            writeln!(out, "  {}", counts.join(", "))?;
        }
        if let Some(error) = &feed.last_error {
            let ago = thousands(feed.last_error_seconds_ago.unwrap_or(0));
            writeln!(out, "  {ago} s ago: {error}")?;
        }
    }
    // The same with every feed.
    for missing in feeds.first().into_iter().flat_map(|feed| &feed.missing_interfaces) {
        missing_interface(out, missing)?;
    }
    Ok(())
}

/// Prints an interface whose device is missing.
pub(super) fn missing_interface(out: &mut impl Write, missing: &MissingInterface) -> io::Result<()> {
    let MissingInterface { name, device, .. } = missing;
    writeln!(
        out,
        "interface {name}: there is no device {device}; what leads there is dropped as interface-missing"
    )
}

#[cfg(test)]
mod tests {
    use fibula_router::api;

    use super::*;

    #[test]
    fn a_feed_is_a_line_and_whatever_is_out_of_the_ordinary() {
        let feeds = concat!(
            r#"[{"name":"zebra","kind":"fpm","distance":20,"state":"established","state_seconds":7,"overrun":true,"#,
            r#""routes":1000,"unresolved":1,"next_hop_objects":2,"limit":100,"changes_per_second":3,"#,
            r#""counts":{"messages":4000,"swept":0,"lost":1},"last_error":"reset","last_error_seconds_ago":9,"#,
            r#""full_vrfs":[{"name":"red","limit":5}],"rules_not_heeded":["from all fwmark 1"],"#,
            r#""missing_interfaces":[{"name":"wan","device":"eth1"}],"listen":"127.0.0.1:2620","acknowledgements":{"waiting":1,"ready":2},"peers":1,"peer_routes":2},"#,
            r#"{"name":"k","kind":"kernel","distance":9,"state":"kept","state_seconds":7,"overrun":true,"routes":1,"#,
            r#""unresolved":0,"next_hop_objects":0,"limit":100,"changes_per_second":0,"counts":{},"last_error":null,"#,
            r#""last_error_seconds_ago":null}]"#
        );
        let (feeds, mut out): (Vec<Feed>, _) = (api::read(feeds).unwrap(), Vec::new());
        print(&mut out, &feeds).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "feed            kind     distance  state                routes     objects   changes/s\n\
             zebra           fpm            20  established           1,000           2           3\n\
             \x20 listens at 127.0.0.1:2620\n\
             \x20 1 peers, 2 routes of peers\n\
             \x20 acknowledgements: 1 routes not used yet, 2 answers to be sent\n\
             \x20 1 routes lead to no interface of the router, and are not used\n\
             \x20 the kernel has a rule that the router does not heed: from all fwmark 1\n\
             \x20 at the limit of VRF red, 5 routes of all feeds: raise 'routes' of its [[vrf]]\n\
             \x20 4,000 messages, 1 lost\n\
             \x20 9 s ago: reset\n\
             k               kernel          9  kept                      1           0           0\n\
             \x20 at its limit of 100 routes: raise 'routes'\n\
             interface wan: there is no device eth1; what leads there is dropped as interface-missing\n"
        );
    }
}
