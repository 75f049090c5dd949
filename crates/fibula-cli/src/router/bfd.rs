//! Shows the sessions of BFD.

use std::io::{self, Write};

use fibula_router::api::Bfd;

use crate::text::thousands;

pub(super) fn print(out: &mut impl Write, answer: &Bfd) -> io::Result<()> {
    let Some(socket) = &answer.socket else {
        return writeln!(out, "no [bfd] in the configuration: only links say which next hops are dead");
    };
    match (answer.connected, &answer.last_error) {
        (true, _) => writeln!(out, "bfdd at {socket}: connected")?,
        (false, Some(error)) => writeln!(out, "bfdd at {socket}: not connected: {error}")?,
        (false, None) => writeln!(out, "bfdd at {socket}: not connected yet")?,
    }
    let (failures, damped) = (thousands(answer.failures), thousands(answer.damped));
    writeln!(out, "{failures} failures; {damped} times longer out of use, because a session flapped")?;
    if answer.malformed + answer.refused > 0 {
        let (malformed, refused) = (thousands(answer.malformed), thousands(answer.refused));
        writeln!(out, "{malformed} messages that could not be read, {refused} sessions without room")?;
    }
    if answer.sessions.is_empty() {
        return writeln!(out, "no sessions of one hop");
    }
    writeln!(out, "{:<40}{:<16}{:<12}{:>9}  neighbour", "peer", "device", "session", "failures")?;
    for session in &answer.sessions {
        let neighbour = match (session.dead, session.held_ms) {
            (false, _) => "in use".to_owned(),
            (true, None) => "dead".to_owned(),
            (true, Some(ms)) => format!("in use again in {} s", thousands(ms.div_ceil(1000))),
        };
        let why = session.diagnostic.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let (peer, failures) = (session.peer.to_string(), thousands(session.failures));
        let (device, state) = (session.device.as_deref().unwrap_or("-"), session.state.name());
        writeln!(out, "{peer:<40}{device:<16}{state:<12}{failures:>9}  {neighbour}{why}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fibula_router::api;

    use super::*;
    use crate::router::show;

    fn printed(line: &str) -> String {
        show::tests::printed(|out| print(out, &api::read(line).unwrap()))
    }

    #[test]
    fn sessions_have_a_line_each() {
        let session = |state: &str, diagnostic: &str, dead: bool, held: &str| {
            format!(
                r#"{{"peer":"192.0.2.1","device":"eth0","state":"{state}","diagnostic":{diagnostic},"dead":{dead},"failures":1200,"held_ms":{held}}}"#
            )
        };
        let sessions = [
            session("up", "null", false, "null"),
            session("down", "\"its time has run out\"", true, "null"),
            session("up", "null", true, "1200"),
        ];
        let line = format!(
            r#"{{"socket":"/run/bfdd.sock","connected":true,"last_error":null,"failures":3600,"damped":2,"malformed":0,"refused":0,"sessions":[{}]}}"#,
            sessions.join(",")
        );
        let row = |state: &str, rest: &str| {
            format!("{:<40}{:<16}{state:<12}    1,200  {rest}\n", "192.0.2.1", "eth0")
        };
        assert_eq!(
            printed(&line),
            format!(
                "bfdd at /run/bfdd.sock: connected\n3,600 failures; 2 times longer out of use, because a session flapped\n\
                 {:<40}{:<16}{:<12}{:>9}  neighbour\n{}{}{}",
                "peer",
                "device",
                "session",
                "failures",
                row("up", "in use"),
                row("down", "dead: its time has run out"),
                row("up", "in use again in 2 s")
            )
        );
        let empty = r#"{"socket":null,"connected":false,"last_error":null,"failures":0,"damped":0,"malformed":0,"refused":0,"sessions":[]}"#;
        assert!(printed(empty).starts_with("no [bfd] in the configuration"));
        let gone = empty.replacen("null", "\"/x\"", 1).replacen("null", "\"No such file\"", 1);
        assert!(
            printed(&gone).starts_with("bfdd at /x: not connected: No such file\n"),
            "{}",
            printed(&gone)
        );
    }
}
