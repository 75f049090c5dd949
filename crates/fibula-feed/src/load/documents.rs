//! The routes of a document, taken into the table.

use std::borrow::Cow;

use fibula::net::{Family, IpPrefix};

use super::Progress;
use super::error::{LoadError, LoadErrorKind, LoadPosition};
use super::lines::{Lines, MAX_LINE_BYTES, RawLine};
use super::pass::{JUDGED_LINES, PROGRESS_BYTES, Pass, Source};
use super::report::{BadLine, Content};
use super::{LoadOptions, MAX_UNSETTLED_BYTES};
use crate::document::{Addresses, ByRule, Document, JsonReader, Stop, TableRecord, Take};
use crate::event::{Action, Announcement, Event, Time};
use crate::next_hops::Label;
use crate::text::{LineError, LineErrorKind};
use crate::value::Value;

/// Most names of VRFs that are kept for the message.
const MOST_VRFS: usize = 1000;

/// Takes the routes of a document into the table.
pub(super) struct Taker<'t, 'a, 'b> {
    pass: &'t mut Pass<'a, 'b>,
    /// The reason why reading stops.
    failure: Option<LoadError>,
    /// Whether a route was read, in whatever VRF.
    found: bool,
    /// Whether one was in the VRF that is read.
    found_in_vrf: bool,
    defaults: Defaults,
    /// Whether the present line had a route or a fault; otherwise it is a comment.
    spoke: bool,
}

/// Routes to all addresses whose family is not known before the end of the file.
#[derive(Default)]
struct Defaults {
    /// The families of the other routes.
    seen: [bool; 2],
    /// The family of the last route, and of the first one.
    last: Option<Family>,
    /// The best of those with a next hop of IPv4, of IPv6, and of neither.
    waiting: [Option<Waiting>; 3],
}

struct Waiting {
    rank: Option<u64>,
    label: Label,
    line: u64,
    /// The family of the routes before it.
    before: Option<Family>,
}

fn slot(family: Family) -> usize {
    usize::from(family == Family::Ipv6)
}

fn all_of(family: Family) -> IpPrefix {
    match family {
        Family::Ipv4 => fibula::net::Prefix::<u32>::ALL.into(),
        Family::Ipv6 => fibula::net::Prefix::<u128>::ALL.into(),
    }
}

impl<'t, 'a, 'b> Taker<'t, 'a, 'b> {
    pub(super) fn new(pass: &'t mut Pass<'a, 'b>) -> Self {
        pass.report.content = Content::Document;
        Self {
            pass,
            failure: None,
            found: false,
            found_in_vrf: false,
            defaults: Defaults::default(),
            spoke: false,
        }
    }

    /// Keeps the error, which ends the reading.
    fn fail<T>(&mut self, error: LoadError) -> Result<T, Stop> {
        self.failure = Some(error);
        Err(Stop)
    }

    fn or_fail<T>(&mut self, outcome: Result<T, LoadError>) -> Result<T, Stop> {
        outcome.or_else(|error| self.fail(error))
    }

    fn failure(&mut self, _: Stop) -> LoadError {
        self.failure.take().expect("reading stops for a reason")
    }

    /// Reads a text line by line.
    pub(super) fn lines(
        &mut self,
        input: Source<'_>,
        document: &mut dyn Document,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        let mut lines = Lines::new(input);
        lines.give_up_at(MAX_UNSETTLED_BYTES);
        let mut due = PROGRESS_BYTES;
        loop {
            match lines.next() {
                Ok(None) => break,
                Ok(Some(line)) => {
                    self.spoke = false;
                    self.pass.steps += 1;
                    self.pass.report.lines += 1;
                    let number = self.pass.report.lines;
                    self.line(&line, number, document).map_err(|stop| self.failure(stop))?;
                    self.pass.report.comments += u64::from(!self.spoke);
                }
                Err(error) => {
                    self.pass.fault(lines.input().inner(), error)?;
                    break;
                }
            }
            if self.found {
                lines.give_up_at(u64::MAX);
            }
            self.judge_once()?;
            if lines.bytes_read() >= due {
                due = lines.bytes_read() + PROGRESS_BYTES;
                progress(self.pass.progress(lines.input()));
            }
        }
        self.pass.report.text_bytes = lines.bytes_read();
        document.end(self).map_err(|stop| self.failure(stop))?;
        progress(self.pass.progress(lines.input()));
        if !self.found && lines.gave_up() {
            return Err(self.pass.error(LoadErrorKind::Unsettled { bytes: MAX_UNSETTLED_BYTES }));
        }
        self.finish()
    }

    fn line(&mut self, line: &RawLine<'_>, number: u64, document: &mut dyn Document) -> Result<(), Stop> {
        match *line {
            RawLine::Whole(mut bytes) => {
                if number == 1 {
                    bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
                }
                match core::str::from_utf8(bytes) {
                    Ok(text) => document.line(text, number, self),
                    Err(_) => document.line(&String::from_utf8_lossy(bytes), number, self),
                }
            }
            RawLine::TooLong(bytes) => {
                let kind = LineErrorKind::LineTooLong { limit_bytes: MAX_LINE_BYTES };
                let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
                self.bad(number, LineError::new(kind, MAX_LINE_BYTES), &text)
            }
        }
    }

    /// Reads JSON.
    pub(super) fn json(
        &mut self,
        mut json: JsonReader<Source<'_>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        loop {
            let more = json.read_on(PROGRESS_BYTES, self).map_err(|stop| self.failure(stop))?;
            self.pass.report.lines = json.line();
            progress(self.pass.progress(json.input()));
            self.judge_once()?;
            if !more {
                break;
            }
            if !self.found && json.offset() > MAX_UNSETTLED_BYTES {
                return Err(self.pass.error(LoadErrorKind::Unsettled { bytes: MAX_UNSETTLED_BYTES }));
            }
        }
        let report = &mut self.pass.report;
        report.bad_bytes += json.lost_bytes();
        report.text_bytes = json.offset();
        self.pass.steps += json.steps();
        if let Some(error) = json.take_failure() {
            self.pass.fault(json.input().inner(), error)?;
        }
        self.finish()
    }

    /// Refuses a text most of whose entries cannot be read, before all of it is read.
    fn judge_once(&self) -> Result<(), LoadError> {
        if self.pass.report.bad_lines >= JUDGED_LINES { self.pass.judge() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), LoadError> {
        self.take_defaults().map_err(|stop| self.failure(stop))?;
        let report = &self.pass.report;
        if !self.found_in_vrf && !report.other_vrfs.is_empty() {
            let name = self.pass.options.vrf.clone().unwrap_or_else(|| "default".into());
            let mut others: Vec<String> = report.other_vrfs.keys().cloned().collect();
            if self.pass.options.vrf.is_some() && report.by_default_vrf > 0 {
                others.insert(0, "default".to_owned());
            }
            return Err(self.pass.error(LoadErrorKind::NoVrf { name, others }));
        }
        if let Some(vrf) = &self.pass.options.vrf
            && !self.found_in_vrf
            && self.found
        {
            let others = vec!["default".to_owned()];
            return Err(self.pass.error(LoadErrorKind::NoVrf { name: vrf.clone(), others }));
        }
        self.pass.judge()
    }

    /// Returns whether the route is in the VRF that is read.
    fn is_in_vrf(&mut self, vrf: Option<&str>) -> bool {
        let wanted = self.pass.options.vrf.as_deref().filter(|&name| name != "default");
        if vrf == wanted {
            self.found_in_vrf = true;
            return true;
        }
        let report = &mut self.pass.report;
        match vrf {
            None => report.by_default_vrf += 1,
            Some(name) => {
                let name: String = name.chars().take(64).collect();
                if report.other_vrfs.len() < MOST_VRFS || report.other_vrfs.contains_key(&name) {
                    *report.other_vrfs.entry(name).or_default() += 1;
                }
            }
        }
        report.left_out += 1;
        false
    }

    fn wait(&mut self, record: &TableRecord<'_>, line: u64) {
        let label = record.label(&self.pass.options.values, self.pass.options.implied_origin);
        let at = record.next_hop_family().map_or(2, slot);
        let waiting = &mut self.defaults.waiting[at];
        // With a rank the lowest counts, of equals the first; without one, the last.
        let stays =
            waiting.as_ref().is_some_and(|before| record.rank.is_some() && before.rank <= record.rank);
        if waiting.is_some() {
            self.pass.report.repeated += 1;
            let changed = waiting.as_ref().is_some_and(|before| before.label != label);
            self.pass.report.repeated_changed += u64::from(changed);
        }
        if !stays {
            *waiting = Some(Waiting { rank: record.rank, label, line, before: self.defaults.last });
        }
    }

    /// Takes the routes to all addresses, now that the families of the others are known.
    fn take_defaults(&mut self) -> Result<(), Stop> {
        let waiting = core::mem::take(&mut self.defaults.waiting);
        let named = self.pass.options.family;
        let only = match self.defaults.seen {
            [true, false] => Some(Family::Ipv4),
            [false, true] => Some(Family::Ipv6),
            _ => None,
        };
        let mut all: Vec<(usize, Waiting)> =
            waiting.into_iter().enumerate().filter_map(|(at, waiting)| Some((at, waiting?))).collect();
        all.sort_by_key(|(_, waiting)| waiting.line);
        for (at, Waiting { rank, label, line, before }) in all {
            // If the other routes do not give the family, the next hop does.
            let own = [Some(Family::Ipv4), Some(Family::Ipv6), None][at];
            let family = named.or(only).or(own).or(before).or(self.defaults.last).unwrap_or(Family::Ipv4);
            self.take(all_of(family), rank, label, line)?;
        }
        Ok(())
    }

    fn take(&mut self, prefix: IpPrefix, rank: Option<u64>, label: Label, line: u64) -> Result<(), Stop> {
        let pass = &mut *self.pass;
        if pass.options.family.is_some_and(|family| family != prefix.family()) {
            pass.report.left_out += 1;
            return Ok(());
        }
        let place = LoadPosition::Line(line);
        let taken = if pass.each.is_some() {
            pass.said(plain_event(prefix, label), place)
        } else {
            let taken = match rank {
                Some(rank) => pass.routes.ranked(prefix, rank, label, &mut pass.report),
                None => pass.routes.plain(prefix, label, &mut pass.report),
            };
            taken.map_err(|refusal| pass.error(refusal.at(place)))
        };
        self.or_fail(taken)
    }
}

/// Returns the event of a route that names no peer.
pub(super) fn plain_event(prefix: IpPrefix, next_hop: Label) -> Event {
    let route =
        Announcement { path: prefix.into(), next_hop, path_len: None, dumped: true, attributes: None };
    Event { time: Time::default(), peer: None, action: Action::Announce(route) }
}

impl Take for Taker<'_, '_, '_> {
    fn record(&mut self, record: &TableRecord<'_>, line: u64, text: &str) -> Result<(), Stop> {
        let LoadOptions { filter, values, host_bits, family, implied_origin, .. } = self.pass.options;
        let addresses = match record.addresses(*host_bits) {
            Ok(addresses) => addresses,
            Err(error) => return self.bad(line, error, text),
        };
        self.spoke = true;
        self.found = true;
        let report = &mut self.pass.report;
        report.entries += 1;
        report.names_next_hop = report.names_next_hop || record.fields.text(&Value::NextHop).is_some();
        if self.pass.peers.is_none() {
            self.pass.settle_plain();
        }
        if !self.is_in_vrf(record.vrf) {
            return Ok(());
        }
        if !record.passes(filter) {
            self.pass.report.left_out += 1;
            return Ok(());
        }
        let mut see = |prefix: &IpPrefix| {
            self.defaults.seen[slot(prefix.family())] = true;
            self.defaults.last = Some(prefix.family());
        };
        match addresses {
            Addresses::One(prefix) => {
                see(&prefix);
                self.take(prefix, record.rank, record.label(values, *implied_origin), line)
            }
            Addresses::Default => match record.family {
                Some(family) => {
                    self.take(all_of(family), record.rank, record.label(values, *implied_origin), line)
                }
                None => {
                    self.wait(record, line);
                    Ok(())
                }
            },
            Addresses::Several(range, size) => {
                let label = record.label(values, *implied_origin);
                for prefix in range {
                    see(&prefix);
                    if family.is_some_and(|family| family != prefix.family()) {
                        self.pass.report.left_out += 1;
                        return Ok(());
                    }
                    let taken = self.pass.piece(prefix, size, label.clone(), line);
                    if let Err(error) = taken {
                        self.failure = Some(error);
                        return Err(Stop);
                    }
                }
                Ok(())
            }
        }
    }

    fn bad(&mut self, line: u64, error: LineError, text: &str) -> Result<(), Stop> {
        self.spoke = true;
        self.pass.report.entries += 1;
        self.pass.report.bad_bytes += text.len() as u64;
        let bad = BadLine::new(&self.pass.report.name, line, error, text.as_bytes());
        let taken = self.pass.bad(bad);
        self.or_fail(taken)
    }

    fn by_rule(&mut self, rule: ByRule) {
        self.spoke = true;
        self.found = true;
        self.pass.report.entries += 1;
        *self.pass.report.by_rule.entry(rule).or_default() += 1;
    }

    fn work(&mut self, bytes: usize) {
        self.pass.steps += bytes as u64;
    }
}
