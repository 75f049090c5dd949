//! The file of feeds of a program that is not a router. It gives each next hop a number, which the program gets from lookups.

use std::collections::BTreeMap;
use std::net::IpAddr;

use fibula::fib::registry::Engines;
use fibula::net::NextHop;
use serde::Deserialize;
use toml::Spanned;

use super::read::{Text, unique};
use super::{Config, ConfigError, feed, file, read};
use crate::feed::{Out, Path};

/// Feeds, and the numbers of their next hops.
#[derive(Debug, Clone)]
pub struct NumberedConfig {
    pub(crate) config: Config,
    pub(crate) numbers: HopNumbers,
}

/// The number of each next hop that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HopNumbers {
    named: BTreeMap<HopName, NextHop>,
    others: Option<NextHop>,
}

/// A name of a next hop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum HopName {
    Gateway(IpAddr),
    Device(String),
    Blackhole,
    Unreachable,
    Prohibit,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberedFile {
    start_after: Option<Spanned<u32>>,
    others: Option<Spanned<u32>>,
    #[serde(default)]
    numbers: BTreeMap<String, Spanned<u32>>,
    #[serde(default)]
    feeds: file::FeedsKeys,
    #[serde(default)]
    feed: Vec<feed::Line>,
}

impl HopName {
    fn parse(text: &str) -> Option<Self> {
        let is_device = (1..=15).contains(&text.len())
            && !text.contains(|sign: char| sign == '/' || sign.is_whitespace());
        match text {
            "blackhole" => Some(Self::Blackhole),
            "unreachable" => Some(Self::Unreachable),
            "prohibit" => Some(Self::Prohibit),
            _ => {
                text.parse().ok().map(Self::Gateway).or_else(|| is_device.then(|| Self::Device(text.into())))
            }
        }
    }
}

impl HopNumbers {
    /// Returns whether the number of a next hop may depend on its device.
    #[must_use]
    pub fn name_devices(&self) -> bool {
        self.named.keys().any(|name| matches!(name, HopName::Device(_)))
    }

    /// Returns the number of a path: of several ways, that of the first that has one. A gateway goes before its device. `device`
    /// returns the name of a device.
    #[must_use]
    pub fn of(&self, path: &Path, device: impl Fn(u32) -> Option<String>) -> Option<NextHop> {
        let named = |name: &HopName| self.named.get(name).copied();
        let found = match path {
            Path::Blackhole => named(&HopName::Blackhole),
            Path::Unreachable => named(&HopName::Unreachable),
            Path::Prohibit => named(&HopName::Prohibit),
            // Whoever asks has replaced objects by their ways.
            Path::Object { .. } => return None,
            Path::Ways(ways) => ways.iter().find_map(|way| {
                let by_device = || match way.out {
                    Out::Device(number) => named(&HopName::Device(device(number)?)),
                    Out::Near(_) => None,
                };
                way.gateway.and_then(|gateway| named(&HopName::Gateway(gateway))).or_else(by_device)
            }),
        };
        found.or(self.others)
    }
}

impl NumberedConfig {
    /// Reads a file of feeds: `[[feed]]` as of a router, `[numbers]`, and `others` and `start_after` above them.
    ///
    /// # Errors
    /// When the text is not TOML, has an unknown key, or has an impossible setting.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let NumberedFile { start_after, others, numbers, feeds, feed: lines } = read::toml(text)?;
        let nothing = |reason: &str| ConfigError { line: None, reason: reason.to_owned() };
        let general = file::File { start_after, feeds, ..read::toml("")? };
        let text = Text(text);
        let number = |place: &Spanned<u32>| {
            NextHop::new(*place.get_ref())
                .ok_or_else(|| text.error(place, "numbers of next hops begin at 1, because 0 is no route"))
        };
        let mut config = read::general(&text, &general, Engines::OWN)?;
        for line in &lines {
            unique(&text, "feed name", &line.name, lines.iter().map(|other| &other.name))?;
            if let Some(place) = line.vrfs().find(|place| *place.get_ref() != config.vrfs[0]) {
                return Err(
                    text.error(place, "vrf: the feeds of this file share one table, and no VRF has a name")
                );
            }
            config.feeds.push(feed::read(&text, &config, line)?);
        }
        let mut of = HopNumbers { others: others.as_ref().map(number).transpose()?, ..HopNumbers::default() };
        for (name, place) in &numbers {
            let known = HopName::parse(name).ok_or_else(|| {
                text.error(
                    place,
                    format!("numbers: '{name}' is neither an address, a device, nor one of blackhole, unreachable, prohibit"),
                )
            })?;
            if of.named.insert(known, number(place)?).is_some() {
                return Err(text.error(place, format!("numbers: '{name}' is there twice, in another form")));
            }
        }
        if lines.is_empty() {
            return Err(nothing("no [[feed]]: nothing to follow"));
        }
        if of == HopNumbers::default() {
            return Err(nothing(
                "no next hop has a number: list them in [numbers], as in \"192.0.2.1\" = 1, or say 'others = 1' above all tables",
            ));
        }
        Ok(Self { config, numbers: of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::Way;

    const FILE: &str = "\
others = 9
[numbers]
\"192.0.2.1\" = 1
\"2001:db8::1\" = 2
eth1 = 3
blackhole = 4
[[feed]]
name = \"zebra\"
kind = \"fpm\"
keep = 7
";

    #[test]
    fn next_hops_have_the_numbers_of_their_names() {
        let NumberedConfig { config, numbers } = NumberedConfig::parse(FILE).unwrap();
        assert_eq!((config.feeds.len(), config.start_after_s, numbers.name_devices()), (1, 60, true));
        let device = |number| (number == 7).then(|| "eth1".to_owned());
        let number = |ways: &[(&str, u32)]| {
            let way = |&(gateway, out): &(&str, u32)| Way::new(gateway.parse().ok(), Out::Device(out));
            numbers.of(&Path::Ways(ways.iter().map(way).collect()), device).map(NextHop::id)
        };
        assert_eq!(number(&[("192.0.2.1", 7)]), Some(1), "the gateway before its device");
        assert_eq!(number(&[("192.0.2.8", 7)]), Some(3));
        assert_eq!(number(&[("", 7)]), Some(3));
        assert_eq!(number(&[("192.0.2.8", 8), ("2001:db8::1", 8), ("192.0.2.1", 8)]), Some(2));
        assert_eq!(number(&[("192.0.2.8", 8)]), Some(9));
        assert_eq!(numbers.of(&Path::Blackhole, device).map(NextHop::id), Some(4));
        assert_eq!(numbers.of(&Path::Prohibit, device).map(NextHop::id), Some(9));
        let without = NumberedConfig::parse(&FILE.replace("others = 9\n", "")).unwrap().numbers;
        assert_eq!(without.of(&Path::Prohibit, device), None);
    }

    #[test]
    fn faults_of_the_file_have_their_line() {
        for (from, to, line, part) in [
            ("others = 9", "others = 0", Some(1), "begin at 1"),
            ("eth1 = 3", "eth1 = 0", Some(5), "begin at 1"),
            ("eth1 = 3", "\"eth1/2\" = 3", Some(5), "'eth1/2' is neither"),
            ("eth1 = 3", "\"2001:db8:0::1\" = 3", Some(4), "twice, in another form"),
            ("eth1 = 3", "eth1 = \"three\"", Some(5), "invalid type"),
            ("others = 9", "threads = 2", Some(1), "unknown field"),
            ("keep = 7", "tables = [{ table = 10, vrf = \"blue\" }]", Some(10), "share one table"),
            ("keep = 7", "rate = \"max\"", Some(10), "only with kind mrt"),
            ("\"fpm\"", "\"table\"", Some(9), "choose one of fpm, kernel, bmp, mrt"),
            ("[[feed]]\nname = \"zebra\"\nkind = \"fpm\"\nkeep = 7\n", "", None, "no [[feed]]"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = NumberedConfig::parse(&FILE.replacen(from, to, 1)).unwrap_err();
            assert!(error.line == line && error.reason.contains(part), "{to}: {error:?}");
        }
        let from = FILE.find("[[feed]]").unwrap();
        let error = NumberedConfig::parse(&FILE[from..]).unwrap_err();
        assert!(error.reason.contains("no next hop has a number"), "{error:?}");
    }
}
