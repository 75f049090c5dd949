//! Follows the sessions of bfdd: takes the next hops of failed ones out of use, and tells of them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::mem;
use std::path::Path;

use super::machine::Machine;
use super::metrics::head;
use super::plan::near;
use super::{Level, Router};
use crate::api;
use crate::bfd::client::{BfddClient, Told};
use crate::bfd::message::{SessionKey, SessionState};
use crate::bfd::sessions::{BfdSessions, SessionChange, diagnostic};
use crate::config::Config;
use crate::forward::fabric::{Gateway, Interface};
use crate::kernel::sys;

/// Most lines of the log about sessions in a second. Many sessions may fail at once, and flap.
const LINES: u32 = 20;
const SECOND_NS: u64 = 1_000_000_000;

/// What the router knows of BFD.
#[derive(Debug, Default)]
pub(super) struct BfdInUse {
    client: Option<BfddClient>,
    sessions: BfdSessions,
    /// Lines of the log in this second, and when it ends.
    lines: u32,
    second_ns: u64,
    is_missing_told: bool,
}

impl BfdInUse {
    pub(super) fn new(config: &Config, folder: &Path) -> Self {
        let client = config.bfd_socket.as_ref().map(|path| BfddClient::new(folder.join(path)));
        Self { client, ..Self::default() }
    }

    /// Returns the file to wait for.
    pub(super) fn readable(&self) -> libc::pollfd {
        self.client.as_ref().and_then(BfddClient::fd).map_or_else(sys::nothing, |fd| sys::readable(&fd))
    }

    /// Returns the gateways of failed sessions. A session without a device is one of the first VRF.
    pub(super) fn dead(
        &self,
        machine: &Machine,
        interfaces: &[Interface],
        devices: &BTreeMap<u32, u16>,
    ) -> HashSet<(u16, Gateway)> {
        let interface = |key: &SessionKey| match &key.device {
            Some(name) => devices.get(&machine.link(name)?.index).copied(),
            None => near(interfaces, key.peer, 0).map(|number| number as u16),
        };
        self.sessions.dead().filter_map(|key| Some((interface(key)?, key.peer.into()))).collect()
    }
}

impl Router<'_> {
    /// Reads the messages of bfdd, and takes next hops out of use or into it again. Returns whether there was anything.
    pub(super) fn follow_bfd(&mut self) -> bool {
        if self.bfd.client.is_none() {
            return false;
        }
        let (now_ns, mut told) = (sys::now_ns(), Vec::new());
        let BfdInUse { client, sessions, .. } = &mut self.bfd;
        if let Some(client) = client {
            client.turn(now_ns, |what| told.push(what));
        }
        let (mut changes, mut ends) = (Vec::new(), Vec::new());
        for what in told {
            match what {
                Told::Began => {}
                Told::Notice(notice) => changes.extend(sessions.take(notice, now_ns)),
                Told::Ended(reason) => {
                    sessions.ended(now_ns);
                    ends.push(reason);
                }
            }
        }
        changes.extend(sessions.tick(now_ns).into_iter().map(|key| (key, SessionChange::Restored)));
        let has_changed = !changes.is_empty();
        if has_changed {
            // Before the log, which may be slow.
            self.leave_dead_gateways();
        }
        self.tell_bfd(now_ns, ends, changes);
        has_changed
    }

    fn leave_dead_gateways(&mut self) {
        let fabric = self.shared.fabric();
        let dead = self.bfd.dead(&self.machine, &fabric.interfaces, &self.devices);
        if dead == self.outage.dead {
            return;
        }
        self.outage.dead = dead;
        let hops = self.outage.in_use(&self.hops, &fabric.interfaces);
        if hops != fabric.hops {
            self.publish(fabric.with_hops(hops));
        }
    }

    fn tell_bfd(&mut self, now_ns: u64, ends: Vec<String>, changes: Vec<(SessionKey, SessionChange)>) {
        let bfd = &mut self.bfd;
        let Some(client) = &bfd.client else { return };
        let path = client.path().display();
        for reason in ends {
            let text = format!("bfd: {path}: {reason}; failures that it told of hold for a minute");
            (self.log)(Level::Warning, &text);
        }
        let is_missing = client.last_error().filter(|_| !client.is_connected());
        let was_told = mem::replace(&mut bfd.is_missing_told, is_missing.is_some());
        match is_missing {
            Some(reason) if !was_told => {
                let text = format!("bfd: {path}: {reason}: tried again every second; is bfdd running?");
                (self.log)(Level::Warning, &text);
            }
            None if was_told => {
                (self.log)(Level::Note, &format!("bfd: {path}: bfdd tells of its sessions"));
            }
            _ => {}
        }
        if now_ns >= bfd.second_ns {
            let left_out = mem::take(&mut bfd.lines).saturating_sub(LINES);
            bfd.second_ns = now_ns + SECOND_NS;
            if left_out > 0 {
                (self.log)(Level::Note, &format!("bfd: {left_out} changes of sessions more"));
            }
        }
        for (key, change) in changes {
            bfd.lines = bfd.lines.saturating_add(1);
            if bfd.lines > LINES {
                continue;
            }
            let (level, text) = match change {
                SessionChange::Failed(number) => (Level::Warning, format!("dead: {}", diagnostic(number))),
                SessionChange::Held(held_ns) => {
                    let seconds = held_ns / SECOND_NS;
                    (Level::Note, format!("up again, and used in {seconds} s, because its session flaps"))
                }
                SessionChange::Restored => (Level::Note, "in use again".to_owned()),
            };
            (self.log)(level, &format!("bfd: {key}: {text}"));
        }
    }

    /// Takes up another socket.
    pub(super) fn take_up_bfd(&mut self) {
        let next = BfdInUse::new(&self.config, &self.folder);
        let path = |bfd: &BfdInUse| bfd.client.as_ref().map(|client| client.path().to_owned());
        if path(&next) != path(&self.bfd) {
            self.bfd = next;
            self.leave_dead_gateways();
        }
    }

    /// Returns the sessions and their events.
    pub(super) fn bfd_state(&self) -> api::Bfd {
        let now_ns = sys::now_ns();
        let session = |(key, session): (&SessionKey, &crate::bfd::sessions::Session)| {
            let (state, number) = match session.state {
                SessionState::Up => (api::BfdState::Up, 0),
                SessionState::Init => (api::BfdState::Init, 0),
                SessionState::Down(number) => (api::BfdState::Down, number),
                SessionState::AdminDown => (api::BfdState::AdminDown, 7),
            };
            api::BfdSession {
                peer: key.peer,
                device: key.device.clone(),
                state,
                diagnostic: (number > 0).then(|| diagnostic(number).to_owned()),
                dead: session.is_dead,
                failures: session.failures,
                held_ms: session.due_ns.map(|due_ns| due_ns.saturating_sub(now_ns).div_ceil(1_000_000)),
            }
        };
        let (client, counts) = (self.bfd.client.as_ref(), self.bfd.sessions.counts());
        api::Bfd {
            socket: client.map(|client| client.path().display().to_string()),
            connected: client.is_some_and(BfddClient::is_connected),
            last_error: client.and_then(BfddClient::last_error).map(str::to_owned),
            failures: counts.failures,
            damped: counts.damped,
            malformed: counts.malformed,
            refused: counts.refused,
            sessions: self.bfd.sessions.all().map(session).collect(),
        }
    }
}

/// Writes the metrics of BFD, where the configuration has a socket.
pub(super) fn metrics(out: &mut String, bfd: &api::Bfd) {
    if bfd.socket.is_none() {
        return;
    }
    let dead = bfd.sessions.iter().filter(|session| session.dead).count() as u64;
    let up = bfd.sessions.iter().filter(|session| session.state == api::BfdState::Up).count() as u64;
    for (name, kind, help, value) in [
        ("bfd_connected", "gauge", "Whether bfdd sends its notifications.", u64::from(bfd.connected)),
        ("bfd_sessions", "gauge", "BfdSessions of BFD.", bfd.sessions.len() as u64),
        ("bfd_sessions_up", "gauge", "BfdSessions of BFD that are up.", up),
        (
            "bfd_neighbours_dead",
            "gauge",
            "Neighbours that are not used, because their sessions failed.",
            dead,
        ),
        ("bfd_failures_total", "counter", "Failures of sessions of BFD.", bfd.failures),
        (
            "bfd_damped_total",
            "counter",
            "Ends of failures that were put off, because a session flapped.",
            bfd.damped,
        ),
    ] {
        head(out, (name, kind, help));
        let _ = writeln!(out, "fibula_router_{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_there_where_a_socket_is() {
        let mut out = String::new();
        let session = api::BfdSession {
            peer: [192, 0, 2, 1].into(),
            device: None,
            state: api::BfdState::Down,
            diagnostic: None,
            dead: true,
            failures: 3,
            held_ms: None,
        };
        let mut bfd = api::Bfd {
            socket: None,
            connected: true,
            last_error: None,
            failures: 3,
            damped: 1,
            malformed: 0,
            refused: 0,
            sessions: vec![session],
        };
        metrics(&mut out, &bfd);
        assert_eq!(out, "");
        bfd.socket = Some("/run/frr/bfdd.sock".to_owned());
        metrics(&mut out, &bfd);
        for line in [
            "bfd_connected 1",
            "bfd_sessions 1",
            "bfd_sessions_up 0",
            "bfd_neighbours_dead 1",
            "bfd_failures_total 3",
        ] {
            assert!(out.contains(&format!("\nfibula_router_{line}\n")), "{line}: {out}");
        }
    }
}
