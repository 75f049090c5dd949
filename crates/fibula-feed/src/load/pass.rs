//! One reading of a feed.

use std::io::{self, Read};
use std::sync::Arc;

use fibula::net::{HostBits, IpPrefix};

use super::blocks::{self, Batch, BlockDecoder};
use super::choice::{Tally, Wanted, slot};
use super::documents::{Taker, plain_event};
use super::error::{LoadError, LoadErrorKind, LoadPosition};
use super::framer::Framer;
use super::input::Readings;
use super::lines::{Lines, MAX_LINE_BYTES, RawLine};
use super::live::{Change, Live};
use super::peek::Peeked;
use super::report::{BadLine, Content, Report, Truncation};
use super::routes::{Refusal, Routes};
use super::{Each, LoadOptions, MAX_UNSETTLED_BYTES, Progress};
use crate::compression::{Decompressor, OtherForm, ReadFault};
use crate::document::{self, Addresses, JsonReader, Reader, Settings, Settled, TableForm, TextHead};
use crate::event::{Action, Event, Peer};
use crate::ledger::{Held, Ledger};
use crate::mrt::{self, Skipped};
use crate::next_hops::Label;
use crate::text::{self, Entry, LineError, LineErrorKind, RangeEntry};
use crate::value::{self, Facts, Value};

/// Text between two calls of the progress function.
pub(super) const PROGRESS_BYTES: u64 = 256 << 10;

/// Number of lines, apart from blank ones and comments, after which a text is judged for the first time, and again at
/// its end: it is refused if more than half of its lines are not routes.
pub(super) const JUDGED_LINES: u64 = 1000;

pub(super) type Source<'a> = Peeked<&'a mut dyn Read>;

/// One reading of a feed.
pub(super) struct Pass<'a, 'b> {
    pub(super) options: &'a LoadOptions,
    pub(super) ledger: Ledger,
    pub(super) routes: &'b mut Routes,
    pub(super) each: Option<Each<'b>>,
    pub(super) report: Report,
    pub(super) wanted: Wanted,
    /// Whether the peers are only counted and no routes are taken.
    pub(super) counting: bool,
    pub(super) tally: Tally,
    /// The routes of all peers, while they are counted.
    pub(super) live: Live,
    /// Whether the lines of a text have peers; `None` before the first line with content.
    pub(super) peers: Option<bool>,
    pub(super) readings: Option<Arc<Readings>>,
    pub(super) bytes_total: Option<u64>,
    /// The form of a text that this program wrote.
    pub(super) form: Option<&'static TableForm>,
    /// The cost of finding and counting so far: places, bytes and peers examined.
    pub(super) steps: u64,
}

/// The result of a reading.
pub(super) struct Outcome {
    pub(super) report: Report,
    pub(super) tally: Tally,
    pub(super) wanted: Wanted,
    /// Whether there are peers that were only counted.
    pub(super) counted: bool,
    /// See [`Pass::steps`].
    #[cfg_attr(not(test), expect(dead_code, reason = "tests bound it by the length of the file"))]
    pub(super) steps: u64,
}

impl Outcome {
    /// Returns the report, with the counts of the peers; `held` takes the charge for those.
    pub(super) fn finish(self, held: &mut Held) -> Result<Report, LoadError> {
        let Self { mut report, tally, wanted, .. } = self;
        let peers = tally.finish(&wanted, held);
        let failed = |error| LoadError::new(&report.name, Refusal::Memory(error).at(LoadPosition::End));
        report.peers = peers.map_err(failed)?;
        Ok(report)
    }
}

impl Pass<'_, '_> {
    pub(super) fn run(
        &mut self,
        input: &mut dyn Read,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), LoadError> {
        let input = Decompressor::charged(input, &self.ledger)
            .map_err(|error| self.error(LoadErrorKind::Read { bytes: 0, error }))?
            .with_any_ratio(self.options.any_ratio);
        let compression = input.compression();
        self.report.compression = compression;
        let input = Peeked::new(input);
        // MRT is recognised first, because the time at the beginning of a record may be equal to the mark of another
        // form.
        if mrt::begins_with_header(input.head()) {
            self.mrt(input, progress)
        } else if let Some(form) = OtherForm::recognise(input.head()) {
            Err(self.error(LoadErrorKind::OtherForm { compression, form }))
        } else if mrt::is_mrt(input.head()) {
            self.mrt(input, progress)
        } else {
            self.text(input, progress)
        }
    }

    /// Returns the result of the reading.
    pub(super) fn outcome(self) -> Outcome {
        let Self { report, mut tally, live, wanted, counting, steps, .. } = self;
        if counting {
            tally.settle(&live);
        }
        Outcome { counted: counting && !tally.is_empty(), report, tally, wanted, steps }
    }

    fn mrt(&mut self, input: Source<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        self.report.content = Content::Mrt;
        self.report.names_next_hop = true;
        self.settle(self.counting);
        let (threads, family) = (self.options.threads, self.options.family);
        let (counting, bytes_total) = (self.counting, self.bytes_total);
        let mut tell = |framer: &Framer<Source<'_>>| {
            let bytes_read = framer.input().inner().bytes_read();
            progress(Progress { bytes_read, bytes_total, lines: framer.records(), counting });
        };
        let wanted = self.wanted.clone();
        let mut framer = Framer::new(input);
        let (filter, values) = (&self.options.filter, &self.options.values[..]);
        let attributes = self.each.is_some();
        let decoder = BlockDecoder { wanted: &wanted, family, counting, attributes, filter, values };
        let outcome = blocks::run(&mut framer, threads, &decoder, |batch| self.take(batch), &mut tell);
        outcome.map_err(|error| self.error(LoadErrorKind::Threads(error)))??;
        tell(&framer);
        self.report.lines = framer.records();
        self.steps += framer.steps();
        if framer.is_unsettled() {
            return Err(self.error(LoadErrorKind::Unsettled { bytes: MAX_UNSETTLED_BYTES }));
        }
        match framer.take_failure() {
            Some(error) => self.fault(framer.input().inner(), error),
            None => Ok(()),
        }
    }

    /// Takes some of the events of a block of an MRT file.
    fn take(&mut self, batch: Batch) -> Result<(), LoadError> {
        let Batch { offset, events, faults, skipped, changes, counts, listed, steps } = batch;
        let listed = listed.iter().flat_map(|table| table.peers());
        self.steps += steps + counts.len() as u64;
        let mut counted = counts.iter().try_for_each(|counts| self.tally.add(counts));
        for &peer in listed {
            self.steps += 1;
            counted = counted.and_then(|()| self.tally.of(peer).map(|_| ()));
        }
        counted.map_err(|error| self.error(Refusal::Memory(error).at(LoadPosition::Byte(offset))))?;
        for (peer, change) in changes {
            self.follow(peer, change, LoadPosition::Byte(offset))?;
        }
        for (kind, count) in skipped {
            self.report.skip(kind, count);
        }
        for fault in faults {
            if self.options.strict && !fault.is_warning() {
                return Err(self.error(LoadErrorKind::Fault(fault)));
            }
            self.report.fault(fault);
        }
        events.into_iter().try_for_each(|event| self.said(event, LoadPosition::Byte(offset)))
    }

    fn text(&mut self, input: Source<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let options = self.options;
        let text = TextHead::text(input.head()).into_owned();
        let head = TextHead::of(&text, input.goes_on());
        let settings = Settings { columns: &options.columns, values: &options.values };
        let form = match self.form.or(options.form) {
            Some(form) => form,
            None => match document::settle(&head, &settings, is_plain) {
                Settled::Form(form) => form,
                Settled::Unread(form, instead) => {
                    return Err(self.error(LoadErrorKind::Unread { form, instead }));
                }
            },
        };
        self.report.form = Some(form);
        self.report.of_paths = form.name == "show-bgp";
        match form.reader {
            Reader::Lines | Reader::Binary => {
                self.report.names_next_hop = true;
                self.plain_text(input, progress)
            }
            Reader::Json { .. } => {
                let json = JsonReader::new(input, &head);
                Taker::new(self).json(json, progress)
            }
            Reader::Document { open, .. } => {
                let opened = open(&head, &settings);
                let mut document = opened.map_err(|reason| self.error(LoadErrorKind::NoColumns(reason)))?;
                Taker::new(self).lines(input, &mut *document, progress)
            }
        }
    }

    /// Reads lines, each of which may be in a form of its own.
    fn plain_text(&mut self, input: Source<'_>, progress: &mut dyn FnMut(Progress)) -> Result<(), LoadError> {
        let mut lines = Lines::new(input);
        lines.give_up_at(MAX_UNSETTLED_BYTES);
        let mut due = PROGRESS_BYTES;
        loop {
            match lines.next() {
                Ok(None) => break,
                Ok(Some(line)) => {
                    self.line(&line)?;
                    if self.peers.is_some() {
                        lines.give_up_at(u64::MAX);
                    }
                }
                Err(error) => {
                    self.fault(lines.input().inner(), error)?;
                    break;
                }
            }
            if self.judged_lines() == JUDGED_LINES {
                self.judge()?;
            }
            if lines.bytes_read() >= due {
                due = lines.bytes_read() + PROGRESS_BYTES;
                progress(self.progress(lines.input()));
            }
        }
        self.report.text_bytes = lines.bytes_read();
        progress(self.progress(lines.input()));
        if self.peers.is_none() && lines.gave_up() {
            return Err(self.error(LoadErrorKind::Unsettled { bytes: MAX_UNSETTLED_BYTES }));
        }
        self.judge()
    }

    /// Returns the number of lines so far, apart from blank ones and comments.
    fn judged_lines(&self) -> u64 {
        self.report.entries()
    }

    /// Refuses a text most of whose lines are not routes.
    pub(super) fn judge(&self) -> Result<(), LoadError> {
        let (bad, lines) = (self.report.bad_lines, self.judged_lines());
        if bad <= lines / 2 {
            return Ok(());
        }
        let first = self.report.first_bad.first().cloned();
        Err(self.error(LoadErrorKind::NoRoutes { bad, lines, first }))
    }

    fn line(&mut self, line: &RawLine<'_>) -> Result<(), LoadError> {
        self.report.lines += 1;
        let (text, said) = match *line {
            RawLine::Whole(mut text) => {
                // Editors of some systems write a byte order mark first.
                if self.report.lines == 1 {
                    text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
                }
                (text, text::decode(text, self.options.host_bits))
            }
            RawLine::TooLong(text) => {
                let kind = LineErrorKind::LineTooLong { limit_bytes: MAX_LINE_BYTES };
                (text, Err(LineError::new(kind, MAX_LINE_BYTES)))
            }
        };
        let taken = match said {
            Ok(None) => {
                self.report.comments += 1;
                return Ok(());
            }
            Ok(Some(text::Line::Route(entry))) => self.entry(entry)?,
            Ok(Some(text::Line::Range(range))) => self.range(range)?,
            Ok(Some(text::Line::Event(event))) => {
                if !self.options.filter.is_in_time(event.time.seconds) {
                    self.report.left_out += 1;
                    return Ok(());
                }
                self.event(event, text)?
            }
            Err(error) => Err(error),
        };
        taken.or_else(|error| self.bad_line(error, text))
    }

    /// Tells a stream whether it will be read again.
    fn settle(&self, again: bool) {
        match &self.readings {
            Some(readings) if again => readings.twice(),
            Some(readings) => readings.once(),
            None => {}
        }
    }

    /// Records that the text is a plain table.
    pub(super) fn settle_plain(&mut self) {
        self.settle(false);
        self.peers = Some(false);
    }

    /// Refuses a line of another kind than the first line.
    fn is_of_kind(&mut self, peers: bool) -> Result<(), LineError> {
        if self.peers.is_none() {
            self.settle(peers && self.counting);
        }
        if *self.peers.get_or_insert(peers) == peers {
            Ok(())
        } else {
            Err(LineError::new(LineErrorKind::OtherKind, 0))
        }
    }

    fn range(&mut self, range: RangeEntry) -> Result<Result<(), LineError>, LoadError> {
        let RangeEntry { first, last, next_hop } = range;
        let (prefixes, size) = match Addresses::of_range(first, last) {
            Addresses::One(prefix) => return self.entry(Entry { prefix, next_hop }),
            Addresses::Several(prefixes, size) => (prefixes, size),
            Addresses::Default => return Ok(Ok(())),
        };
        let Some(label) = self.plain_label(next_hop) else { return Ok(Ok(())) };
        if let Err(error) = self.is_of_kind(false) {
            return Ok(Err(error));
        }
        for prefix in prefixes {
            if self.options.family.is_some_and(|family| family != prefix.family()) {
                self.report.left_out += 1;
                return Ok(Ok(()));
            }
            self.piece(prefix, size, label.clone(), self.report.lines)?;
        }
        Ok(Ok(()))
    }

    /// Takes a prefix of a range.
    pub(super) fn piece(
        &mut self,
        prefix: IpPrefix,
        size: u128,
        label: Label,
        line: u64,
    ) -> Result<(), LoadError> {
        let place = LoadPosition::Line(line);
        if self.each.is_some() {
            return self.said(plain_event(prefix, label), place);
        }
        let taken = self.routes.piece(prefix, size, label);
        taken.map_err(|refusal| self.error(refusal.at(place)))
    }

    /// Returns the label of a route of a plain table; `None` if the filter leaves the route out.
    fn plain_label(&mut self, next_hop: Label) -> Option<Label> {
        if !self.options.filter.passes_plain(&next_hop) {
            self.report.left_out += 1;
            return None;
        }
        let values = &self.options.values;
        if values.is_empty() {
            return Some(next_hop);
        }
        // A name is a next hop already, so it is not shown as an origin, too.
        let is_name = self.options.implied_origin && matches!(next_hop, Label::Text(_));
        Some(value::label(values, |value| match value {
            Value::OriginAs if is_name => Label::Absent,
            value => value::plain(&next_hop, value),
        }))
    }

    fn entry(&mut self, Entry { prefix, next_hop }: Entry) -> Result<Result<(), LineError>, LoadError> {
        let Some(next_hop) = self.plain_label(next_hop) else { return Ok(Ok(())) };
        if let Err(error) = self.is_of_kind(false) {
            return Ok(Err(error));
        }
        if self.options.family.is_some_and(|family| family != prefix.family()) {
            self.report.left_out += 1;
            return Ok(Ok(()));
        }
        let place = LoadPosition::Line(self.report.lines);
        if self.each.is_some() {
            return self.said(plain_event(prefix, next_hop), place).map(Ok);
        }
        let taken = self.routes.plain(prefix, next_hop, &mut self.report);
        taken.map_err(|refusal| self.error(refusal.at(place)))?;
        Ok(Ok(()))
    }

    fn event(&mut self, event: Event, line: &[u8]) -> Result<Result<(), LineError>, LoadError> {
        if let Err(error) = self.is_of_kind(true) {
            return Ok(Err(error));
        }
        let Some(peer) = event.peer else { return Ok(Ok(())) };
        self.report.of_paths = text::BgpdumpFields::is_of_other_tool(line);
        let counts = match self.tally.of(peer) {
            Ok(counts) => counts,
            Err(error) => {
                let place = LoadPosition::Line(self.report.lines);
                return Err(LoadError::new(&self.report.name, Refusal::Memory(error).at(place)));
            }
        };
        let (family, change) = match &event.action {
            Action::Announce(route) => {
                let family = route.path.prefix.family();
                counts.announced[slot(family)] += 1;
                counts.listed[slot(family)] += u64::from(route.dumped);
                (Some(family), (!route.dumped).then_some(Change::Announced(route.path)))
            }
            Action::Withdraw(path) => {
                let family = path.prefix.family();
                counts.withdrawn[slot(family)] += 1;
                (Some(family), Some(Change::Withdrawn(*path)))
            }
            Action::SessionEnd => (None, Some(Change::SessionEnd)),
            Action::Nothing => {
                self.report.skip(Skipped::STATE_CHANGE, 1);
                (None, None)
            }
        };
        if self.counting {
            let place = LoadPosition::Line(self.report.lines);
            return change.map_or(Ok(()), |change| self.follow(peer, change, place)).map(Ok);
        }
        let wanted = match family {
            Some(family) if self.options.family.is_some_and(|only| only != family) => {
                self.report.left_out += 1;
                return Ok(Ok(()));
            }
            Some(family) => self.wanted.includes(&peer, family),
            None => true,
        };
        if wanted && let Some(event) = self.labelled(event, line) {
            self.said(event, LoadPosition::Line(self.report.lines))?;
        }
        Ok(Ok(()))
    }

    /// Returns the event of a line as the filter judges it, with the values that were requested as its label.
    fn labelled(&self, event: Event, line: &[u8]) -> Option<Event> {
        let LoadOptions { filter, values, .. } = self.options;
        let values = &values[..];
        if values.is_empty() && !filter.needs_attributes() {
            return Some(event);
        }
        let fields = text::BgpdumpFields::of(line);
        let mut event = filter.judge(event, fields)?;
        let label = Facts::of(&event, fields).filter(|_| !values.is_empty()).map(|facts| facts.label(values));
        if let (Action::Announce(route), Some(label)) = (&mut event.action, label) {
            route.next_hop = label;
        }
        Some(event)
    }

    fn follow(&mut self, peer: Peer, change: Change, place: LoadPosition) -> Result<(), LoadError> {
        let followed = self.live.follow(peer, change, &mut self.tally);
        followed.map_err(|error| self.error(LoadErrorKind::Counting { place, error }))
    }

    /// Takes the event into the routes, or passes it to the callback.
    pub(super) fn said(&mut self, event: Event, place: LoadPosition) -> Result<(), LoadError> {
        let taken = match &mut self.each {
            Some(each) => each(event).map_err(Refusal::Stopped),
            None => self.routes.event(event, &mut self.report),
        };
        taken.map_err(|refusal| self.error(refusal.at(place)))
    }

    fn bad_line(&mut self, error: LineError, text: &[u8]) -> Result<(), LoadError> {
        self.report.bad_bytes += text.len() as u64;
        self.bad(BadLine::new(&self.report.name, self.report.lines, error, text))
    }

    /// Counts a line that cannot be read.
    pub(super) fn bad(&mut self, bad: BadLine) -> Result<(), LoadError> {
        self.report.bad_lines += 1;
        if self.options.strict {
            return Err(self.error(LoadErrorKind::Line(bad)));
        }
        if self.report.first_bad.len() < Report::MOST_BAD {
            self.report.first_bad.push(bad);
        }
        Ok(())
    }

    /// Decides whether an error of the input is an early end, which is reported, or makes the load fail.
    pub(super) fn fault(
        &mut self,
        input: &Decompressor<&mut dyn Read>,
        error: io::Error,
    ) -> Result<(), LoadError> {
        let compression = input.compression();
        let bytes = input.bytes_read();
        let damage = match input.fault() {
            ReadFault::Input => return Err(self.error(LoadErrorKind::Read { bytes, error })),
            ReadFault::TooLarge => return Err(self.error(LoadErrorKind::Window(error))),
            ReadFault::EndsEarly => None,
            ReadFault::Damaged => Some(error),
        };
        let report = &mut self.report;
        // A stream that is damaged from the beginning has no usable content.
        let fatal = self.options.strict || (damage.is_some() && report.lines == 0);
        let bytes = if damage.is_some() { input.position() } else { bytes };
        let Report { content, lines, .. } = *report;
        let truncation = |damage| {
            let name = Arc::clone(&report.name);
            Truncation { name, compression, bytes, content, lines, damage }
        };
        let kind = match damage {
            Some(error) if fatal => LoadErrorKind::Damaged { compression, bytes, error },
            None if fatal => LoadErrorKind::Truncated(truncation(None)),
            damage => {
                report.truncated = Some(truncation(damage.map(|error| error.to_string().into())));
                return Ok(());
            }
        };
        Err(self.error(kind))
    }

    pub(super) fn progress(&self, input: &Source<'_>) -> Progress {
        Progress {
            bytes_read: input.inner().bytes_read(),
            bytes_total: self.bytes_total,
            lines: self.report.lines,
            counting: self.counting && self.peers == Some(true),
        }
    }

    pub(super) fn error(&self, kind: LoadErrorKind) -> LoadError {
        LoadError::new(&self.report.name, kind)
    }
}

/// Returns whether a line can be read without the lines around it.
fn is_plain(line: &str) -> bool {
    text::decode(line.as_bytes(), HostBits::Mask).is_ok_and(|said| said.is_some())
}
