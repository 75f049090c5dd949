//! Answers why packets go where they go: for packets that nobody sent (`explain`), and for packets under way (`trace`).

use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use fibula::net::{IpPrefix, NextHop};

use super::answer::{refuse, send};
use super::filters::packet;
use super::{ControlError, Router};
use crate::acl::{self, Condition, Field, HeaderFields, RulePlace};
use crate::api::{self, PacketOutcome, StepKind};
use crate::config::Config;
use crate::forward::Shared;
use crate::forward::fabric::{Fabric, Gateway, Hop};
use crate::forward::predict::{UnsentPacket, predict};
use crate::forward::trace::{Fate, Sighting, Trace};
use crate::kernel::sys;
use crate::neighbour::{Answer, Key};
use crate::packet::ethernet::Tags;

/// Sightings that wait for the thread that writes them.
const WAITING: usize = 256;
/// How often that thread looks whether its reader is gone.
const LOOK: Duration = Duration::from_millis(200);
/// How long the reader of a trace may stall.
const STALLED: Duration = Duration::from_secs(5);
/// Most packets of a trace.
const MOST: u64 = 1_000_000;
/// Most seconds of a trace.
const MOST_S: u64 = 3600;
const EXPLAIN: &str = "explain SOURCE DESTINATION INTERFACE PROTOCOL SOURCE-PORT DESTINATION-PORT DSCP";
const TRACE: &str = "trace COUNT SECONDS FILTER";

/// Answers to `explain`.
pub(super) fn explain(router: &Router<'_>, words: &[&str]) -> Result<api::Explanation, ControlError> {
    let [source, destination, input, protocol, from, to, dscp] = *words else {
        return Err(ControlError::Form(EXPLAIN));
    };
    let address = |text: &str| text.parse::<IpAddr>().map_err(|_| ControlError::Address(text.to_owned()));
    let bits = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => ip.into(),
    };
    let (source, destination) = (address(source)?, address(destination)?);
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(ControlError::Question("the addresses are not of one family".into()));
    }
    let input = router
        .config
        .number_of(Field::In, input)
        .ok_or_else(|| ControlError::NoInterface(input.to_owned()))?;
    let wrong = |error: &dyn core::fmt::Display| ControlError::Question(error.to_string());
    let port = |text: &str| text.parse::<u16>().map_err(|_| wrong(&format!("'{text}' is not a port")));
    let question = UnsentPacket {
        v6: source.is_ipv6(),
        source: bits(source),
        destination: bits(destination),
        input,
        protocol: acl::protocol_number(protocol).map_err(|error| wrong(&error))?,
        ports: (port(from)?, port(to)?),
        dscp: acl::code_point(dscp).map_err(|error| wrong(&error))?,
    };
    Ok(answer(&router.shared, &router.config, &question))
}

/// Explains a packet that nobody sent.
pub(super) fn answer(shared: &Shared, config: &Config, question: &UnsentPacket) -> api::Explanation {
    let fabric = shared.fabric();
    let look_up = |vrf: usize, v6: bool, address: u128| -> Option<NextHop> {
        found(&fabric, vrf, v6, address).map(|found| found.1)
    };
    let sighting = predict(shared, question, look_up);
    render(&fabric, config, &sighting)
}

/// Returns the route of an address, with its prefix.
fn found(fabric: &Fabric, vrf: usize, v6: bool, address: u128) -> Option<(IpPrefix, NextHop)> {
    let address = match v6 {
        true => IpAddr::V6(address.into()),
        false => IpAddr::V4((address as u32).into()),
    };
    fabric.vrfs.get(vrf)?.table.lookup_prefix(address).ok()?
}

/// Writes a sighting in words.
pub(super) fn render(fabric: &Fabric, config: &Config, sighting: &Sighting) -> api::Explanation {
    let HeaderFields { v6, destination, input, vrf, .. } = sighting.packet;
    let name =
        |number: u16| fabric.interfaces.get(usize::from(number)).map_or("?", |line| line.name.as_str());
    let mut steps = Vec::new();
    let mut step = |step: StepKind, found: String| steps.push(api::Step { step, found });
    let vlan = fabric.interfaces.get(usize::from(input)).map_or(Tags::NONE, |line| line.tags);
    let vlan = if vlan.is_none() { String::new() } else { format!(", VLAN {vlan}") };
    step(StepKind::In, format!("{}{vlan}", name(input)));
    step(StepKind::Vrf, fabric.vrfs.get(usize::from(vrf)).map_or("?", |vrf| &vrf.name).to_owned());
    if let Some(route) = sighting.route {
        let now = found(fabric, usize::from(vrf), v6, destination);
        step(
            StepKind::Route,
            match (route, now) {
                (None, _) => "no route".to_owned(),
                (Some(number), Some((prefix, same))) if same == number => {
                    format!("{prefix} {}", way(fabric, number))
                }
                // Routes change while packets flow, because workers do not wait for this thread.
                (Some(number), _) => format!("{}, a route that has changed since", way(fabric, number)),
            },
        );
    }
    // A route to one next hop says it all.
    let is_group = sighting
        .route
        .flatten()
        .is_some_and(|number| matches!(fabric.hops.get(number.id() as usize), Some(Some(Hop::Group(_)))));
    if let Some(hop) = sighting.hop.as_ref().filter(|_| is_group) {
        step(StepKind::NextHop, of_hop(fabric, hop));
    }
    if let Some(decision) = sighting.decision {
        let lines = match decision.place {
            RulePlace::Forward => &config.filter.forward,
            RulePlace::Local => &config.filter.local,
        };
        let place = decision.place.name();
        let rule = decision.rule.and_then(|rule| Some((rule, lines.rules.get(rule)?)));
        step(
            StepKind::Rule,
            match rule {
                Some((number, (rule, line))) => {
                    format!("filter.{place} rule {} (line {line}): {rule}", number + 1)
                }
                None => format!("filter.{place} default: {}", decision.action.name()),
            },
        );
    }
    if let (Some(class), Some(policers)) = (sighting.class, &fabric.policers) {
        let limit = policers.rates()[class as usize];
        let limit = limit.map_or("no limit".to_owned(), |limit| {
            format!("{} packets a second, {} at once", limit.rate, limit.burst)
        });
        step(StepKind::Policer, format!("{}: {limit}", class.name()));
    }
    if let Some((key, answer)) = sighting.neighbour {
        let Key { interface, .. } = key;
        step(
            StepKind::Neighbour,
            match answer {
                Answer::Known(mac) => format!("{} has {mac}", key.ip()),
                Answer::Waiting => format!("{} is being looked for", key.ip()),
                Answer::Unknown => format!("{} is not known yet", key.ip()),
                Answer::Failed => format!("{} does not answer", key.ip()),
            },
        );
        step(StepKind::Out, name(interface).to_owned());
    } else if let Some(output) = sighting.packet.output {
        step(StepKind::Out, name(output).to_owned());
    }
    let reason = match sighting.fate {
        Fate::Dropped(reason) => Some(reason),
        _ => None,
    };
    api::Explanation {
        packet: packet(fabric, &sighting.packet),
        steps,
        outcome: match sighting.fate {
            Fate::Forwarded => PacketOutcome::Forwarded,
            Fate::Waiting => PacketOutcome::Waiting,
            Fate::Delivered => PacketOutcome::Delivered,
            Fate::Consumed => PacketOutcome::Consumed,
            Fate::Dropped(_) => PacketOutcome::Dropped,
        },
        reason: reason.map(|reason| reason.name().to_owned()),
        meaning: reason.map(|reason| reason.meaning().to_owned()),
        advice: reason.map(|reason| reason.advice().to_owned()),
    }
}

/// Returns where a next hop leads.
fn way(fabric: &Fabric, number: NextHop) -> String {
    match fabric.hops.get(number.id() as usize).and_then(Option::as_ref) {
        Some(hop) => of_hop(fabric, hop),
        None => "to a next hop that the router does not know".to_owned(),
    }
}

fn of_hop(fabric: &Fabric, hop: &Hop) -> String {
    let name =
        |number: u16| fabric.interfaces.get(usize::from(number)).map_or("?", |line| line.name.as_str());
    match hop {
        Hop::Via { interface, gateway: Gateway::V4(ip) } => {
            format!("via {} dev {}", std::net::Ipv4Addr::from(*ip), name(*interface))
        }
        Hop::Via { interface, gateway: Gateway::V6(ip) } => {
            format!("via {} dev {}", std::net::Ipv6Addr::from(*ip), name(*interface))
        }
        Hop::Connected { interface } => format!("dev {}", name(*interface)),
        Hop::Local => "local".to_owned(),
        Hop::Blackhole => "blackhole".to_owned(),
        Hop::Unreachable => "unreachable".to_owned(),
        Hop::Prohibit => "prohibit".to_owned(),
        Hop::Group(members) => format!("group of {}", members.len()),
    }
}

/// A trace that runs.
#[derive(Debug)]
pub(super) struct Running(Arc<Trace>);

impl Router<'_> {
    /// Begins a trace, whose packets a thread of its own writes to the client.
    pub(super) fn begin_trace(&mut self, stream: UnixStream, words: &[&str]) -> io::Result<()> {
        let mut stream = stream;
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(STALLED))?;
        let begun = self.prepare_trace(words);
        let (trace, sightings, seconds) = match begun {
            Ok(begun) => begun,
            Err(error) => return refuse(&mut stream, error.to_string()),
        };
        let (shared, config) = (Arc::clone(&self.shared), self.config.clone());
        let written = Arc::clone(&trace);
        let write = move || {
            // Drop capabilities, because writing needs none. A reader that goes away early gets no answer, which is not an error.
            let _ = sys::keep_capabilities(0);
            let _ = write(&mut stream, &written, &sightings, &shared, &config, seconds);
            written.end();
        };
        let thread = std::thread::Builder::new().name("trace".into()).spawn(write);
        if thread.is_ok() {
            self.shared.set_trace(Some(Arc::clone(&trace)));
            self.trace = Some(Running(trace));
        }
        thread.map(drop)
    }

    fn prepare_trace(&self, words: &[&str]) -> Result<(Arc<Trace>, Receiver<Sighting>, u64), ControlError> {
        let [count, seconds, ref filter @ ..] = *words else { return Err(ControlError::Form(TRACE)) };
        if self.trace.as_ref().is_some_and(|running| !running.0.is_over()) {
            return Err(ControlError::Question("another trace runs: try again when it has ended".into()));
        }
        let number = |text: &str, most: u64, what: &str| match text.parse::<u64>() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(ControlError::Question(format!("{what}: '{text}' is not a number from 1 to {most}"))),
        };
        let wrong = |error: acl::RuleError| ControlError::Question(format!("filter: {error}"));
        let condition: Condition = filter.join(" ").parse().map_err(wrong)?;
        let lists = self.config.prefix_lists(&self.folder).map_err(ControlError::Rules)?;
        let find = |field: Field, name: &str| self.config.number_of(field, name);
        let condition = condition.resolve(&lists, &find).map_err(wrong)?;
        let (sender, receiver) = sync_channel(WAITING);
        let trace = Arc::new(Trace::new(condition, number(count, MOST, "count")?, sender));
        Ok((trace, receiver, number(seconds, MOST_S, "seconds")?))
    }

    /// Ends a trace that is over, so that packets cost nothing more.
    pub(super) fn end_trace(&mut self) {
        if self.trace.as_ref().is_some_and(|running| running.0.is_over()) {
            self.trace = None;
            self.shared.set_trace(None);
        }
    }
}

/// Writes the packets of a trace as they come, and at the end how many were left out.
fn write(
    stream: &mut UnixStream,
    trace: &Trace,
    sightings: &Receiver<Sighting>,
    shared: &Shared,
    config: &Config,
    seconds: u64,
) -> io::Result<()> {
    let (begin, mut traced) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(seconds) {
        match sightings.recv_timeout(LOOK) {
            Ok(sighting) => {
                traced += 1;
                send(stream, &render(&shared.fabric(), config, &sighting))?;
            }
            Err(RecvTimeoutError::Timeout) if !trace.is_over() && !is_gone(stream) => {}
            Err(_) => break,
        }
    }
    trace.end();
    // Once more, because a worker may have been about to report one.
    for sighting in sightings.try_iter() {
        traced += 1;
        send(stream, &render(&shared.fabric(), config, &sighting))?;
    }
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (left_out, skipped) = (count(&trace.left_out), count(&trace.skipped));
    send(stream, &api::TraceEnd { traced, left_out, skipped, unreadable: count(&trace.unreadable) })?;
    stream.flush()
}

/// Returns whether the other side has closed the connection.
fn is_gone(stream: &UnixStream) -> bool {
    let mut fds = [sys::readable(stream)];
    // Anything to read is the end, because a client sends nothing more.
    sys::poll(&mut fds, 0).is_ok() && fds[0].revents != 0
}
