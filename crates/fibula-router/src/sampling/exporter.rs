//! Exports samples to collectors: when, in which messages, and with which templates before them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::collector::{Collector, CollectorHealth};
use super::message::{IpfixMessage, SealedMessage};
use super::observed::Observed;
use super::templates::{self, INTERFACES, V4, V6};

/// Samples that wait for a message, at most. They are several messages.
const PENDING: usize = 256;
/// How long a sample waits for others at most.
const WAIT: Duration = Duration::from_secs(1);

/// The settings of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSettings {
    /// The collectors.
    pub collectors: Vec<SocketAddr>,
    /// The source address of messages; `None` leaves the choice to the machine.
    pub source: Option<IpAddr>,
    /// The observation domain.
    pub domain: u32,
    /// Seconds after which templates are sent again.
    pub templates_s: u32,
    /// Most bytes of a message.
    pub message_bytes: usize,
}

/// Moments, which the caller reads from its clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time since any moment, from a clock that does not go back.
    pub monotonic: Duration,
    /// Milliseconds since 1970.
    pub unix_ms: u64,
}

impl Moment {
    fn seconds(self) -> u32 {
        // It wraps around in 2106, as the field does (RFC 7011, section 3.1).
        (self.unix_ms / 1000) as u32
    }
}

/// An export to collectors.
#[derive(Debug)]
pub struct Exporter {
    settings: ExportSettings,
    collectors: Vec<Collector>,
    /// The interval that collectors know, or are about to.
    interval: u32,
    /// Names of interfaces, by number.
    interfaces: Vec<String>,
    pending: Vec<Observed>,
    /// When the samples that wait go out.
    due: Option<Duration>,
}

impl Exporter {
    /// Begins an export. `interfaces` are the names of interfaces by number.
    #[must_use]
    pub fn new(settings: ExportSettings, interval: u32, interfaces: Vec<String>) -> Self {
        let mut exporter = Self {
            settings: ExportSettings { collectors: Vec::new(), ..settings.clone() },
            collectors: Vec::new(),
            interval,
            interfaces: Vec::new(),
            pending: Vec::new(),
            due: None,
        };
        exporter.set_up(settings, interfaces);
        exporter
    }

    fn set_up(&mut self, settings: ExportSettings, interfaces: Vec<String>) {
        let source = settings.source;
        let mut before = std::mem::take(&mut self.collectors);
        for &address in &settings.collectors {
            let same = before.iter().position(|collector| collector.is(address, source));
            self.collectors.push(match same {
                Some(at) => before.swap_remove(at),
                None => Collector::new(address, source),
            });
        }
        self.settings = settings;
        self.interfaces = interfaces;
        self.announce();
    }

    /// Sends templates, the interval and the names of interfaces before the next samples.
    fn announce(&mut self) {
        self.collectors.iter_mut().for_each(|collector| collector.templates_due = None);
    }

    /// Changes the settings. Sessions with collectors that stay go on.
    pub fn change(&mut self, settings: ExportSettings, interfaces: Vec<String>, now: Moment) {
        if settings != self.settings || interfaces != self.interfaces {
            self.flush(now);
            // The domain is a part of the session, so another one begins it again.
            if settings.domain != self.settings.domain {
                self.collectors.clear();
            }
            self.set_up(settings, interfaces);
        }
    }

    /// Returns the state of each collector.
    #[must_use]
    pub fn health(&self) -> Vec<Arc<CollectorHealth>> {
        self.collectors.iter().map(|collector| Arc::clone(&collector.health)).collect()
    }

    /// Adds a sample.
    pub fn put(&mut self, observed: Observed, now: Moment) {
        if self.collectors.is_empty() {
            return;
        }
        if observed.sample.interval != self.interval {
            // Each record belongs to the interval that was announced before it.
            self.flush(now);
            self.interval = observed.sample.interval;
            self.announce();
        }
        self.pending.push(observed);
        self.due.get_or_insert(now.monotonic + WAIT);
        if self.pending.len() >= PENDING {
            self.flush(now);
        }
    }

    /// Sends the messages that are due. Call it some times a second.
    pub fn turn(&mut self, now: Moment) {
        if self.due.is_some_and(|due| now.monotonic >= due) {
            self.flush(now);
        }
        self.send_templates(now);
    }

    /// Sends the samples that wait.
    pub fn flush(&mut self, now: Moment) {
        self.due = None;
        if self.pending.is_empty() {
            return;
        }
        self.send_templates(now);
        let mut pending = std::mem::take(&mut self.pending);
        // Families apart, because a set has one template.
        let (v6, v4): (Vec<_>, Vec<_>) = pending.iter().partition(|observed| observed.sample.packet.v6);
        let mut message = IpfixMessage::new(self.settings.message_bytes);
        for (template, samples) in [(V4, v4), (V6, v6)] {
            message.begin_set(template.id);
            for observed in samples {
                if templates::put_sample(&mut message, observed) {
                    continue;
                }
                self.send(
                    std::mem::replace(&mut message, IpfixMessage::new(self.settings.message_bytes)),
                    now,
                );
                message.begin_set(template.id);
                // One record fits into any message that the configuration allows.
                templates::put_sample(&mut message, observed);
            }
        }
        self.send(message, now);
        pending.clear();
        self.pending = pending;
    }

    fn send(&mut self, message: IpfixMessage, now: Moment) {
        if message.is_empty() {
            return;
        }
        let mut ended = message.finish(now.seconds(), self.settings.domain);
        for collector in &mut self.collectors {
            collector.send(&mut ended, now.monotonic);
        }
    }

    /// Sends templates to the collectors that are due for them.
    fn send_templates(&mut self, now: Moment) {
        let at = now.monotonic;
        let is_due = |collector: &Collector| {
            collector.is_open(at) && collector.templates_due.is_none_or(|due| at >= due)
        };
        if !self.collectors.iter().any(is_due) {
            return;
        }
        let mut messages = self.announcement(now);
        for collector in self.collectors.iter_mut().filter(|collector| is_due(collector)) {
            if messages.iter_mut().all(|message| collector.send(message, at)) {
                collector.templates_due = Some(at + Duration::from_secs(self.settings.templates_s.into()));
            }
        }
    }

    /// Returns the messages that describe records.
    fn announcement(&self, now: Moment) -> Vec<SealedMessage> {
        let (most, domain) = (self.settings.message_bytes, self.settings.domain);
        let mut message = IpfixMessage::new(most);
        templates::put_templates(&mut message);
        templates::put_selector(&mut message, self.interval);
        let mut messages = Vec::new();
        message.begin_set(INTERFACES.id);
        for (number, name) in self.interfaces.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let number = templates::interface_number(u16::try_from(number).ok());
            if !templates::put_interface(&mut message, number, name) {
                messages.push(std::mem::replace(&mut message, IpfixMessage::new(most)));
                message.begin_set(INTERFACES.id);
                // A name that is longer than a message is left out.
                templates::put_interface(&mut message, number, name);
            }
        }
        messages.push(message);
        let messages = messages.into_iter().filter(|message| !message.is_empty());
        messages.map(|message| message.finish(now.seconds(), domain)).collect()
    }
}
