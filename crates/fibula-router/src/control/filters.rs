//! The rules in use: compiled at the start and at a reload, and again when a file of prefixes is replaced.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use super::metrics::{head, quoted};
use super::{ControlError, Level, Router};
use crate::acl::{self, HeaderFields, Logged, RulePlace, RuleSet};
use crate::api;
use crate::config::{Config, ConfigError, RuleSets};
use crate::forward::fabric::Fabric;
use crate::kernel::sys;
use crate::police::{PolicerClass, Policers};

/// How often files are looked at, and packets that were left out of the log are counted there.
const PERIOD_NS: u64 = 1_000_000_000;

/// The state of a file, by which a change is noticed: time, length and number. `None` while there is none.
pub(super) type Stamp = Option<(SystemTime, u64, u64)>;

/// The rules in use.
#[derive(Debug, Default)]
pub(super) struct FiltersInUse {
    pub(super) sets: RuleSets,
    pub(super) policers: Arc<Policers>,
    /// The files whose prefixes are in use, or were refused.
    tried: Vec<Stamp>,
    /// The files when they were looked at last.
    seen: Vec<Stamp>,
    /// Rules that are being compiled.
    pending: Option<JoinHandle<Result<RuleSets, ConfigError>>>,
    /// Why the present files are not in use.
    refused: Option<ConfigError>,
    next_ns: u64,
    /// Packets that were left out of the log since the last line about them.
    left_out: u64,
}

/// Returns the state of a file.
pub(super) fn stamp(file: &Path) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len(), found.ino()))
}

fn stamps(config: &Config, folder: &Path) -> Vec<Stamp> {
    let files = config.filter.lists.iter().filter_map(|list| list.file.as_ref());
    files.map(|file| stamp(&folder.join(file))).collect()
}

impl FiltersInUse {
    /// Reads the prefix lists, and compiles the rules.
    pub(super) fn load(config: &Config, folder: &Path) -> Result<Self, ControlError> {
        // Before the files are read, so that a change in between is noticed.
        let tried = stamps(config, folder);
        let sets = config.rule_sets(folder).map_err(ControlError::Rules)?;
        let policers = Arc::new(Policers::new(config.policers));
        Ok(Self { sets, policers, seen: tried.clone(), tried, ..Self::default() })
    }

    /// Returns the filters of a new configuration. Rules that are the same go on with their counters.
    pub(super) fn again(&self, before: &Config, after: &Config, folder: &Path) -> Result<Self, ControlError> {
        let names = |config: &Config| -> Vec<String> {
            config.interfaces.iter().map(|line| line.name.clone()).collect()
        };
        let is_same = before.filter == after.filter
            && (names(before), &before.vrfs) == (names(after), &after.vrfs)
            && self.refused.is_none()
            && stamps(after, folder) == self.tried;
        let mut filters = match is_same {
            true => {
                let (sets, tried) = (self.sets.clone(), self.tried.clone());
                let policers = Arc::new(Policers::new(after.policers));
                Self { sets, policers, seen: tried.clone(), tried, ..Self::default() }
            }
            false => Self::load(after, folder)?,
        };
        // New buckets are full, so a reload for another reason must not bring them.
        if before.policers == after.policers {
            filters.policers = Arc::clone(&self.policers);
        }
        Ok(filters)
    }

    /// Puts the rules into a fabric.
    pub(super) fn enter(&self, fabric: &mut Fabric) {
        fabric.forward_rules.clone_from(&self.sets.forward);
        fabric.local_rules.clone_from(&self.sets.local);
        fabric.policers = Some(Arc::clone(&self.policers));
    }

    /// Adds the counts of earlier rules. Call it when no worker counts there any more.
    pub(super) fn go_on_from(&self, before: &RuleSets, policers: &Arc<Policers>) {
        // The same ones have their counts already.
        if !Arc::ptr_eq(&self.policers, policers) {
            self.policers.go_on_from(policers);
        }
        for place in [RulePlace::Forward, RulePlace::Local] {
            if let (Some(new), Some(old)) = (self.sets.of(place), before.of(place))
                && !Arc::ptr_eq(new, old)
            {
                new.go_on_from(old);
            }
        }
    }
}

impl Router<'_> {
    /// Follows the files of prefix lists, and writes the log of rules.
    pub(super) fn follow_filters(&mut self) {
        self.log_packets();
        if let Some(done) = self.filters.pending.take_if(|pending| pending.is_finished()) {
            match done.join() {
                Ok(Ok(sets)) => self.take_up_rules(sets),
                Ok(Err(error)) => {
                    (self.log)(Level::Warning, &format!("the rules in use stay: {error}"));
                    self.filters.refused = Some(error);
                }
                Err(_) => (self.log)(Level::Warning, "the rules in use stay: compiling others has failed"),
            }
        }
        let now_ns = sys::now_ns();
        if now_ns < self.filters.next_ns {
            return;
        }
        self.filters.next_ns = now_ns + PERIOD_NS;
        let left_out = std::mem::take(&mut self.filters.left_out);
        if left_out > 0 {
            (self.log)(
                Level::Note,
                &format!("filter: {left_out} packets more, which 'filter.log_rate' left out"),
            );
        }
        if self.filters.tried.is_empty() || self.filters.pending.is_some() {
            return;
        }
        let now = stamps(&self.config, &self.folder);
        // Not while a file still changes, because somebody is writing it.
        if now != self.filters.tried && now == self.filters.seen {
            self.filters.tried.clone_from(&now);
            let (config, folder) = (self.config.clone(), self.folder.clone());
            let compile = move || {
                // Drop capabilities, because reading files needs none.
                let _ = sys::keep_capabilities(0);
                config.rule_sets(&folder)
            };
            match std::thread::Builder::new().name("rules".into()).spawn(compile) {
                Ok(pending) => self.filters.pending = Some(pending),
                Err(error) => (self.log)(Level::Warning, &format!("prefix lists are not read: {error}")),
            }
        }
        self.filters.seen = now;
    }

    fn take_up_rules(&mut self, sets: RuleSets) {
        for (name, len) in
            sets.lists.iter().filter(|list| self.filters.sets.lists.get(list.0) != Some(list.1))
        {
            (self.log)(Level::Note, &format!("prefix list {name}: {len} prefixes"));
        }
        self.filters.refused = None;
        let before = std::mem::replace(&mut self.filters.sets, sets);
        let policers = Arc::clone(&self.filters.policers);
        let mut fabric = (*self.shared.fabric()).clone();
        self.filters.enter(&mut fabric);
        self.publish(fabric);
        self.filters.go_on_from(&before, &policers);
        (self.log)(Level::Note, "prefix lists have changed: taken up");
    }

    /// Writes the packets that rules want in the log.
    fn log_packets(&mut self) {
        let fabric = self.shared.fabric();
        for (place, set) in
            [(RulePlace::Forward, &self.filters.sets.forward), (RulePlace::Local, &self.filters.sets.local)]
        {
            let Some(set) = set else { continue };
            let (logged, left_out) = set.take_logged();
            self.filters.left_out += left_out;
            for packet in logged {
                (self.log)(Level::Note, &line(&fabric, place, set, &packet));
            }
        }
    }

    /// Returns the rules and their hits.
    pub(super) fn filter_counts(&self) -> api::Filters {
        let lists = self.config.filter.lists.iter().map(|list| api::ListedPrefixes {
            name: list.name.clone(),
            file: list.file.as_ref().map(|file| file.display().to_string()),
            prefixes: self.filters.sets.lists.get(&list.name).map_or(0, |&len| len as u64),
            error: self
                .filters
                .refused
                .as_ref()
                .filter(|error| error.line == Some(list.line))
                .map(ConfigError::to_string),
        });
        let table = |place: RulePlace| {
            let set = self.filters.sets.of(place)?;
            let lines = match place {
                RulePlace::Forward => &self.config.filter.forward,
                RulePlace::Local => &self.config.filter.local,
            };
            let counts = set.counts();
            let rule = |(number, (rule, line)): (usize, &(acl::Rule, usize))| api::ListedRule {
                number: number as u64 + 1,
                line: *line as u64,
                rule: rule.to_string(),
                packets: counts[number].packets,
                bytes: counts[number].bytes,
            };
            let default = counts.last().copied().unwrap_or_default();
            Some(api::RuleTable {
                rules: lines.rules.iter().enumerate().map(rule).collect(),
                default: set.default_action().name().to_owned(),
                default_packets: default.packets,
                default_bytes: default.bytes,
            })
        };
        api::Filters {
            forward: table(RulePlace::Forward),
            local: table(RulePlace::Local),
            lists: lists.collect(),
            policers: self.policer_counts(),
        }
    }

    fn policer_counts(&self) -> Vec<api::ListedPolicer> {
        let (policers, counts) = (&self.filters.policers, self.filters.policers.counts());
        let listed = |&class: &PolicerClass| {
            let (rate, [passed, dropped]) = (policers.rates()[class as usize], counts[class as usize]);
            api::ListedPolicer {
                class: class.name().to_owned(),
                rate: rate.map(|rate| rate.rate.into()),
                burst: rate.map(|rate| rate.burst.into()),
                passed,
                dropped,
            }
        };
        PolicerClass::ALL.iter().map(listed).collect()
    }
}

/// Writes the metrics of rules.
pub(super) fn metrics(out: &mut String, filters: &api::Filters) {
    let tables = [("forward", &filters.forward), ("local", &filters.local)];
    let tables = || tables.iter().filter_map(|(name, table)| Some((name, table.as_ref()?)));
    type Read = fn(&api::ListedRule) -> u64;
    let packets: (Read, fn(&api::RuleTable) -> u64) = (|rule| rule.packets, |table| table.default_packets);
    let bytes: (Read, fn(&api::RuleTable) -> u64) = (|rule| rule.bytes, |table| table.default_bytes);
    for (name, what, (of_rule, of_default)) in [
        ("filter_packets_total", "Packets that a rule of the filter was about, by rule.", packets),
        ("filter_bytes_total", "Bytes of these packets, IP headers included.", bytes),
    ] {
        head(out, (name, "counter", what));
        for (place, table) in tables() {
            for rule in &table.rules {
                let text = quoted(&rule.rule);
                let _ = writeln!(
                    out,
                    "fibula_router_{name}{{filter=\"{place}\",number=\"{}\",rule=\"{text}\"}} {}",
                    rule.number,
                    of_rule(rule)
                );
            }
            let _ = writeln!(
                out,
                "fibula_router_{name}{{filter=\"{place}\",number=\"default\",rule=\"{}\"}} {}",
                table.default,
                of_default(table)
            );
        }
    }
    head(
        out,
        (
            "policer_packets_total",
            "counter",
            "Packets to the machine, by class: passed or dropped by the policer.",
        ),
    );
    for policer in &filters.policers {
        for (result, count) in [("passed", policer.passed), ("dropped", policer.dropped)] {
            let class = &policer.class;
            let _ = writeln!(
                out,
                "fibula_router_policer_packets_total{{class=\"{class}\",result=\"{result}\"}} {count}"
            );
        }
    }
    head(out, ("prefix_list_prefixes", "gauge", "Prefixes of a list."));
    for list in &filters.lists {
        let name = quoted(&list.name);
        let _ = writeln!(out, "fibula_router_prefix_list_prefixes{{list=\"{name}\"}} {}", list.prefixes);
    }
}

/// Returns a line of the log about a packet.
fn line(fabric: &Fabric, place: RulePlace, set: &RuleSet, logged: &Logged) -> String {
    let rule = set.rules().get(logged.rule).map(ToString::to_string).unwrap_or_default();
    format!("filter.{} rule {} ({rule}): {}", place.name(), logged.rule + 1, packet(fabric, &logged.packet))
}

/// Returns a packet in words: protocol, addresses, ports, interfaces, bytes.
pub(super) fn packet(fabric: &Fabric, packet: &HeaderFields) -> String {
    let address = |address: u128, port: Option<u16>| match (packet.v6, port) {
        (true, Some(port)) => format!("[{}]:{port}", Ipv6Addr::from(address)),
        (true, None) => Ipv6Addr::from(address).to_string(),
        (false, Some(port)) => format!("{}:{port}", Ipv4Addr::from(address as u32)),
        (false, None) => Ipv4Addr::from(address as u32).to_string(),
    };
    let name =
        |number: u16| fabric.interfaces.get(usize::from(number)).map_or("?", |line| line.name.as_str());
    let mut text = format!(
        "{} {} > {}",
        acl::protocol_name(packet.protocol),
        address(packet.source, packet.ports.map(|ports| ports.0)),
        address(packet.destination, packet.ports.map(|ports| ports.1))
    );
    if let Some((kind, code)) = packet.icmp {
        let _ = write!(text, " type {kind} code {code}");
    }
    let _ = write!(text, " in {}", name(packet.input));
    if let Some(output) = packet.output {
        let _ = write!(text, " out {}", name(output));
    }
    let _ = write!(text, " length {}", packet.length);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_a_line_for_each_rule_and_the_default() {
        let rule = api::ListedRule { number: 1, line: 7, rule: "deny any".into(), packets: 3, bytes: 180 };
        let table = api::RuleTable {
            rules: vec![rule],
            default: "permit".into(),
            default_packets: 4,
            default_bytes: 240,
        };
        let list = api::ListedPrefixes { name: "own".into(), file: None, prefixes: 2, error: None };
        let mut out = String::new();
        let policer =
            api::ListedPolicer { class: "icmp".into(), rate: Some(5), burst: Some(1), passed: 8, dropped: 9 };
        let policers = vec![policer];
        metrics(&mut out, &api::Filters { forward: Some(table), local: None, lists: vec![list], policers });
        for line in [
            "fibula_router_filter_packets_total{filter=\"forward\",number=\"1\",rule=\"deny any\"} 3\n",
            "fibula_router_filter_packets_total{filter=\"forward\",number=\"default\",rule=\"permit\"} 4\n",
            "fibula_router_filter_bytes_total{filter=\"forward\",number=\"1\",rule=\"deny any\"} 180\n",
            "fibula_router_prefix_list_prefixes{list=\"own\"} 2\n",
            "fibula_router_policer_packets_total{class=\"icmp\",result=\"passed\"} 8\n",
            "fibula_router_policer_packets_total{class=\"icmp\",result=\"dropped\"} 9\n",
        ] {
            assert!(out.contains(line), "{out}");
        }
    }
}
