//! RuleLines and prefix lists of the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fibula::net::{HostBits, IpPrefix};
use serde::Deserialize;
use toml::Spanned;

use super::policer::PolicerKeys;
use super::read::{Text, choice, number, unique};
use super::{Config, ConfigError, release};
use crate::acl::{Action, Field, LogRate, MOST_RULES, PrefixLists, Rule, RulePlace, RuleSet, ValueTest};

/// The table `[filter]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FilterKeys {
    forward: RuleKeys,
    local: RuleKeys,
    log_rate: Option<Spanned<u32>>,
    log_burst: Option<Spanned<u32>>,
}

/// The tables `[filter.forward]` and `[filter.local]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RuleKeys {
    default: Option<Spanned<String>>,
    rules: Vec<Spanned<String>>,
}

impl RuleKeys {
    /// Returns the place of the first rule; without rules, that of the default.
    fn span(&self) -> Option<core::ops::Range<usize>> {
        let default = self.default.as_ref().map(Spanned::span);
        self.rules.first().map(Spanned::span).or(default)
    }
}

/// A line of `[[prefix_list]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListLine {
    name: Spanned<String>,
    #[serde(default)]
    prefixes: Vec<Spanned<String>>,
    file: Option<PathBuf>,
}

/// RuleLines for the packets of one place, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLines {
    /// The action for packets that no rule decides: permit, deny or reject.
    pub default: Action,
    /// The rules, each with its line in the file.
    pub rules: Vec<(Rule, usize)>,
}

impl Default for RuleLines {
    fn default() -> Self {
        Self { default: Action::Permit, rules: Vec::new() }
    }
}

impl RuleLines {
    /// Returns whether all packets pass uncounted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.default == Action::Permit
    }
}

/// A named list of prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixList {
    /// Name.
    pub name: String,
    /// Prefixes in the configuration.
    pub prefixes: Vec<IpPrefix>,
    /// A file with more of them, relative to the folder of the configuration file.
    pub file: Option<PathBuf>,
    /// Line in the configuration file.
    pub line: usize,
}

/// The filter of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilterLines {
    /// RuleLines for packets that are forwarded.
    pub forward: RuleLines,
    /// RuleLines for packets to the router itself.
    pub local: RuleLines,
    /// How many packets are logged.
    pub log_rate: LogRate,
    /// The lists that rules may name.
    pub lists: Vec<PrefixList>,
}

/// The compiled rules of a configuration.
#[derive(Debug, Clone, Default)]
pub struct RuleSets {
    /// RuleLines for packets that are forwarded; `None` if all pass uncounted.
    pub forward: Option<Arc<RuleSet>>,
    /// RuleLines for packets to the router itself.
    pub local: Option<Arc<RuleSet>>,
    /// The number of prefixes of each list.
    pub lists: BTreeMap<String, usize>,
}

impl RuleSets {
    /// Returns the rules of a place.
    #[must_use]
    pub const fn of(&self, place: RulePlace) -> Option<&Arc<RuleSet>> {
        match place {
            RulePlace::Forward => self.forward.as_ref(),
            RulePlace::Local => self.local.as_ref(),
        }
    }
}

pub(super) fn read(
    text: &Text<'_>,
    config: &Config,
    keys: &FilterKeys,
    lines: &[ListLine],
) -> Result<FilterLines, ConfigError> {
    let usual = LogRate::default();
    let mut filter = FilterLines {
        log_rate: LogRate {
            rate: number(text, keys.log_rate.as_ref(), usual.rate, 0, 10_000, "filter.log_rate")?,
            burst: number(text, keys.log_burst.as_ref(), usual.burst, 0, 10_000, "filter.log_burst")?,
        },
        ..FilterLines::default()
    };
    for line in lines {
        unique(text, "prefix list", &line.name, lines.iter().map(|other| &other.name))?;
        let name = line.name.get_ref();
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ',') {
            return Err(text.error(&line.name, "the name of a prefix list is one word, without commas"));
        }
        let prefix = |place: &Spanned<String>| {
            IpPrefix::parse(place.get_ref().as_bytes(), HostBits::Refuse)
                .map_err(|error| text.error(place, format!("'{}': {}", place.get_ref(), error.reason())))
        };
        filter.lists.push(PrefixList {
            name: name.clone(),
            prefixes: line.prefixes.iter().map(prefix).collect::<Result<_, _>>()?,
            file: line.file.clone(),
            line: text.line(&line.name.span()),
        });
    }
    filter.forward = rules(text, config, &filter.lists, RulePlace::Forward, &keys.forward)?;
    filter.local = rules(text, config, &filter.lists, RulePlace::Local, &keys.local)?;
    let place = |keys: &RuleKeys| keys.span().map(|span| text.line(&span));
    if config.bridge && !(filter.forward.is_empty() && filter.local.is_empty()) {
        let line = place(&keys.forward).or_else(|| place(&keys.local));
        return Err(ConfigError {
            line,
            reason: "a bridge has no filter: its frames pass as they are".into(),
        });
    }
    let fast = config.interfaces.iter().find(|line| line.backend.is_fast());
    if let (false, Some(line)) = (filter.forward.is_empty(), fast) {
        let reason = format!(
            "filter.forward: interface '{}' has 'fast', whose program forwards packets without the rules: leave one of the two out",
            line.name
        );
        return Err(ConfigError { line: place(&keys.forward), reason });
    }
    Ok(filter)
}

/// Returns whether the kernel has an interface's packets to the machine, unless a gate keeps them from it.
pub(super) fn past(line: &super::Interface) -> bool {
    line.backend.is_device() && line.tags.is_none()
}

/// Returns whether the configuration needs a gate, where the running kernel has one.
pub(super) fn gate(
    text: &Text<'_>,
    config: &Config,
    keys: &FilterKeys,
    policers: &PolicerKeys,
    kernel: Option<(u32, u32)>,
) -> Result<bool, ConfigError> {
    let rates = policers.keys().map(Spanned::span).min_by_key(|span| span.start);
    let rules = keys.local.span().filter(|_| !config.filter.local.is_empty());
    let Some((name, place)) =
        rules.map(|span| ("filter.local", span)).or(rates.map(|span| ("policer", span)))
    else {
        return Ok(false);
    };
    let Some(line) = config.interfaces.iter().find(|line| past(line)) else { return Ok(false) };
    match lacks(kernel) {
        Some(reason) => Err(ConfigError {
            line: Some(text.line(&place)),
            reason: format!(
                "{name}: interface '{}' has back end {}, where {reason}",
                line.name,
                line.backend.name()
            ),
        }),
        None => Ok(true),
    }
}

/// Returns why a kernel of this version has no gate.
fn lacks(kernel: Option<(u32, u32)>) -> Option<String> {
    let (major, minor) = kernel.filter(|&version| version < release::TCX)?;
    Some(format!("{}; this is {major}.{minor}", release::NO_GATE))
}

fn rules(
    text: &Text<'_>,
    config: &Config,
    lists: &[PrefixList],
    place: RulePlace,
    keys: &RuleKeys,
) -> Result<RuleLines, ConfigError> {
    let defaults = [("permit", Action::Permit), ("deny", Action::Deny), ("reject", Action::Reject)];
    let name = place.name();
    let default = choice(text, &format!("filter.{name}.default"), keys.default.as_ref(), defaults)?;
    let mut rules = Vec::new();
    for (number, line) in keys.rules.iter().enumerate() {
        let wrong = |reason: &dyn core::fmt::Display| {
            text.error(line, format!("rule {} of filter.{name}: {reason}", number + 1))
        };
        let rule: Rule = line.get_ref().parse().map_err(|error| wrong(&error))?;
        if let Some(reason) = unknown(config, lists, place, &rule) {
            return Err(wrong(&reason));
        }
        if number >= MOST_RULES {
            return Err(wrong(&format!("there may be {MOST_RULES} rules")));
        }
        rules.push((rule, text.line(&line.span())));
    }
    Ok(RuleLines { default, rules })
}

/// Returns why a rule cannot be used, for example because it names an unknown list.
fn unknown(config: &Config, lists: &[PrefixList], place: RulePlace, rule: &Rule) -> Option<String> {
    let addresses = [&rule.condition.source, &rule.condition.destination];
    for name in addresses.into_iter().flatten().flat_map(|addresses| &addresses.lists) {
        if !lists.iter().any(|list| list.name == *name) {
            return Some(format!("no prefix list '{name}': add a [[prefix_list]] of this name"));
        }
    }
    if place == RulePlace::Local && rule.condition.tests(Field::Out) {
        return Some("'out' is for filter.forward: packets to the router leave by no interface".into());
    }
    for (field, test) in &rule.condition.tests {
        let ValueTest::Names { names, .. } = test else { continue };
        let kind = if *field == Field::Vrf { "VRF" } else { "interface" };
        if let Some(name) = names.iter().find(|name| find(config, *field, name).is_none()) {
            return Some(format!("{}: no {kind} '{name}'", field.name()));
        }
    }
    None
}

/// Returns the number of an interface or a VRF.
fn find(config: &Config, field: Field, name: &str) -> Option<u16> {
    let number = match field {
        Field::Vrf => config.vrfs.iter().position(|vrf| vrf == name),
        _ => config.interface(name),
    };
    number.and_then(|number| u16::try_from(number).ok())
}

impl Config {
    /// Returns the number of an interface ([`Field::In`], [`Field::Out`]) or of a VRF by its name.
    #[must_use]
    pub fn number_of(&self, field: Field, name: &str) -> Option<u16> {
        find(self, field, name)
    }

    /// Reads the prefix lists, whose files are relative to `folder`.
    ///
    /// # Errors
    /// When a file cannot be read, or has a line that is not a prefix.
    pub fn prefix_lists(&self, folder: &Path) -> Result<PrefixLists, ConfigError> {
        let mut lists = PrefixLists::default();
        for list in &self.filter.lists {
            let file = list.file.as_ref().map(|file| folder.join(file));
            lists.add(&list.name, &list.prefixes, file.as_deref()).map_err(|error| ConfigError {
                line: Some(list.line),
                reason: format!("prefix list '{}': {error}", list.name),
            })?;
        }
        Ok(lists)
    }

    /// Reads the prefix lists, and compiles the rules.
    ///
    /// # Errors
    /// As [`prefix_lists`](Self::prefix_lists), and when rules need too much memory.
    pub fn rule_sets(&self, folder: &Path) -> Result<RuleSets, ConfigError> {
        let lists = self.prefix_lists(folder)?;
        let compile = |place: RulePlace, rules: &RuleLines| {
            if rules.is_empty() {
                return Ok(None);
            }
            let (texts, rate) =
                (rules.rules.iter().map(|rule| rule.0.clone()).collect(), self.filter.log_rate);
            let find = |field: Field, name: &str| find(self, field, name);
            let set = RuleSet::compile(texts, rules.default, rate, &lists, &find);
            set.map(|set| Some(Arc::new(set))).map_err(|error| ConfigError {
                line: rules.rules.first().map(|rule| rule.1),
                reason: format!("filter.{}: {error}", place.name()),
            })
        };
        Ok(RuleSets {
            forward: compile(RulePlace::Forward, &self.filter.forward)?,
            local: compile(RulePlace::Local, &self.filter.local)?,
            lists: lists.iter().map(|(name, len)| (name.to_owned(), len)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[filter]
log_rate = 5

[filter.forward]
default = \"deny\"
rules = [
  \"permit established in wan\",
  \"permit protocol tcp destination @servers destination-port 80,443\",
]

[[prefix_list]]
name = \"servers\"
prefixes = [\"192.0.2.0/24\"]

[[interface]]
name = \"wan\"
backend = \"tap\"
device = \"tap0\"
";

    #[test]
    fn rules_and_lists_are_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!((config.filter.forward.default, config.filter.forward.rules.len()), (Action::Deny, 2));
        assert_eq!(config.filter.forward.rules[1].1, 8, "the line of a rule");
        assert_eq!(
            (config.filter.log_rate, config.filter.local.is_empty()),
            (LogRate { rate: 5, burst: 20 }, true)
        );
        let sets = config.rule_sets(Path::new("")).unwrap();
        assert!(sets.forward.is_some() && sets.local.is_none());
        assert_eq!(sets.lists["servers"], 1);
        // No rules and no default but the usual one: nothing in the way of packets.
        let none = Config::parse(&GOOD[GOOD.find("[[prefix_list]]").unwrap()..]).unwrap();
        assert!(none.rule_sets(Path::new("")).unwrap().forward.is_none());
    }

    #[test]
    fn mistakes_have_their_line_and_reason() {
        for (from, to, line, part) in [
            (
                "established in wan",
                "established in lan",
                7,
                "rule 1 of filter.forward: in: no interface 'lan'",
            ),
            ("protocol tcp", "protocol tpc", 8, "rule 2 of filter.forward: protocol: 'tpc' is not"),
            ("@servers", "@server", 8, "no prefix list 'server': add a [[prefix_list]]"),
            ("\"deny\"", "\"drop\"", 5, "filter.forward.default: must be one of 'permit', 'deny', 'reject'"),
            ("192.0.2.0/24", "192.0.2.1/24", 13, "'192.0.2.1/24': "),
            ("\"servers\"", "\"my servers\"", 12, "one word, without commas"),
            ("log_rate = 5", "log_rate = 50000", 2, "filter.log_rate: must be from 0 to 10000"),
            ("[filter.forward]", "[filter.forwards]", 4, "unknown field `forwards`"),
            (
                "[filter.forward]",
                "[filter.local]\nrules = [\"permit out wan\"]\n[filter.forward]",
                5,
                "'out' is for",
            ),
            (
                "[filter.forward]",
                "[[interface]]\nname = \"lan\"\nbackend = \"af-xdp\"\nfast = true\ndevice = \"eth0\"\n[filter.forward]",
                12,
                "filter.forward: interface 'lan' has 'fast'",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.line, Some(line), "{from} -> {to}: {error:?}");
            assert!(error.reason.contains(part), "{from} -> {to}: {error:?}");
        }
        let bridge = format!(
            "mode = \"bridge\"\n{GOOD}[[interface]]\nname = \"b\"\nbackend = \"tap\"\ndevice = \"tap1\"\n"
        );
        let error = Config::parse(&bridge).unwrap_err();
        assert_eq!(
            (error.line, error.reason.as_str()),
            (Some(8), "a bridge has no filter: its frames pass as they are")
        );
    }

    #[test]
    fn packets_that_the_kernel_would_take_past_the_router_need_a_gate() {
        const RULES: &str = "[filter.local]\nrules = [\"deny any\"]\n";
        const RATES: &str = "[policer]\nicmp = \"unlimited\"\n";
        let interface = |backend: &str, more: &str| {
            format!(
                "[[interface]]\nname = \"i{}\"\nbackend = \"{backend}\"\ndevice = \"eth0\"\n{more}",
                more.len()
            )
        };
        let vlan = "vlan = 7\naddresses = [\"192.0.2.1/24\"]\n";
        for (rules, lines, expected) in [
            (RULES, vec![interface("af-packet", "")], true),
            (RULES, vec![interface("af-xdp", "")], true),
            (RULES, vec![interface("af-xdp", "fast = true\n")], true),
            (RATES, vec![interface("af-packet", "")], true),
            ("[filter.local]\ndefault = \"deny\"\n", vec![interface("af-packet", "")], true),
            (RULES, vec![interface("af-packet", vlan), interface("af-packet", "")], true),
            // The router has the packets to the machine of these anyway.
            (RULES, vec![interface("tap", "")], false),
            (RULES, vec![interface("af-packet", vlan)], false),
            (RULES, vec![interface("af-xdp", vlan)], false),
            // There is nothing to judge by.
            ("", vec![interface("af-packet", "")], false),
            ("[filter.local]\nrules = []\n", vec![interface("af-xdp", "")], false),
            ("[filter.forward]\nrules = [\"deny any\"]\n", vec![interface("af-packet", "")], false),
        ] {
            let text = format!("{rules}{}", lines.concat());
            match Config::parse(&text) {
                Ok(config) => {
                    assert_eq!(config.gate, expected, "{text}");
                    assert_eq!(config.has_gate(&config.interfaces[0].backend), expected, "{text}");
                }
                Err(error) => {
                    assert!(expected && error.reason.contains(release::NO_GATE), "{text}: {error}");
                    assert!(lacks(release::version()).is_some() && error.line == Some(2), "{text}: {error}");
                }
            }
        }
        let old = lacks(Some((6, 1))).unwrap();
        assert!(old.starts_with(release::NO_GATE) && old.ends_with("; this is 6.1"), "{old}");
        assert_eq!((lacks(Some(release::TCX)), lacks(None)), (None, None));
    }

    #[test]
    fn files_of_prefixes_are_read_and_mistakes_have_their_line() {
        let folder = std::env::temp_dir().join(format!("fibula-lists-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config =
            Config::parse(&GOOD.replace("prefixes = [", "file = \"list.txt\"\nprefixes = [")).unwrap();
        let missing = config.rule_sets(&folder).unwrap_err();
        assert!(missing.line == Some(12) && missing.reason.contains("list.txt: "), "{missing}");
        std::fs::write(
            folder.join("list.txt"),
            "# ours\n10.0.0.0/8 AS 1\n\n192.0.2.0/24 # again\n2001:db8::1\n",
        )
        .unwrap();
        assert_eq!(config.rule_sets(&folder).unwrap().lists["servers"], 3);
        std::fs::write(folder.join("list.txt"), "10.0.0.0/8\n10.0.0.1/8\n").unwrap();
        let wrong = config.rule_sets(&folder).unwrap_err();
        assert!(wrong.reason.contains("list.txt: line 2: '10.0.0.1/8': "), "{wrong}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_rules_of_the_guide_are_rules() {
        let guide =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
        let guide = guide.expect("docs/guide/router.md");
        let start = guide.find("[filter.forward]\n").expect("an example of rules");
        let text = &guide[start..start + guide[start..].find("```").expect("its end")];
        let interface = |name: &str| {
            format!("[[interface]]\nname = \"{name}\"\nbackend = \"tap\"\ndevice = \"{name}\"\n")
        };
        let config = Config::parse(&format!("{text}{}{}", interface("lan"), interface("wan"))).unwrap();
        assert_eq!((config.filter.forward.rules.len(), config.filter.lists[0].prefixes.len()), (8, 4));
    }
}
