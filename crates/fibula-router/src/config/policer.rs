//! Policers of the configuration.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::read::Text;
use super::{Config, ConfigError};
use crate::police::{PolicerClass, PolicerRate, PolicerRates, usual_rates};

/// The table `[policer]`.
pub(super) type PolicerKeys = BTreeMap<Spanned<String>, Spanned<Value>>;

/// A rate, or the word `unlimited`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "must be 'unlimited' or a table with 'rate' and 'burst'")]
pub(super) enum Value {
    Word(String),
    Rate(RateKeys),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RateKeys {
    rate: i64,
    burst: Option<i64>,
}

/// Most packets a second, and at once.
const MOST: u32 = 10_000_000;

pub(super) fn read(
    text: &Text<'_>,
    config: &Config,
    keys: &PolicerKeys,
) -> Result<PolicerRates, ConfigError> {
    let mut rates = usual_rates();
    for (name, value) in keys {
        let class = PolicerClass::ALL.iter().find(|class| class.name() == name.get_ref());
        let Some(&class) = class else {
            let names: Vec<String> =
                PolicerClass::ALL.iter().map(|class| format!("'{}'", class.name())).collect();
            let reason = format!("policer: no class '{}': there are {}", name.get_ref(), names.join(", "));
            return Err(text.error(name, reason));
        };
        rates[class as usize] = match value.get_ref() {
            Value::Word(word) if word == "unlimited" => None,
            Value::Word(word) => {
                let reason = format!("policer.{}: '{word}' is neither 'unlimited' nor a table", class.name());
                return Err(text.error(value, reason));
            }
            Value::Rate(keys) => {
                let number = |key: &str, number: i64| match u32::try_from(number) {
                    Ok(number) if (1..=MOST).contains(&number) => Ok(number),
                    _ => {
                        let reason = format!("policer.{}.{key}: must be from 1 to {MOST}", class.name());
                        Err(text.error(name, reason))
                    }
                };
                let rate = number("rate", keys.rate)?;
                // A tenth of a second, because senders come in bursts.
                let burst = keys.burst.map_or(Ok((rate / 10).max(1)), |burst| number("burst", burst))?;
                Some(PolicerRate { rate, burst })
            }
        };
    }
    let Some(first) = keys.keys().min_by_key(|name| name.span().start) else { return Ok(rates) };
    if config.bridge {
        return Err(text.error(first, "a bridge has no policers: its frames pass as they are"));
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[policer]
icmp = { rate = 50, burst = 7 }
rest = \"unlimited\"
[policer.bgp]
rate = 2000

[[interface]]
name = \"wan\"
backend = \"tap\"
device = \"tap0\"
";

    #[test]
    fn rates_are_read_and_the_others_stay_as_usual() {
        let rates = Config::parse(GOOD).unwrap().policers;
        let rate = |rate, burst| Some(PolicerRate { rate, burst });
        assert_eq!(rates[PolicerClass::Icmp as usize], rate(50, 7));
        assert_eq!(rates[PolicerClass::Bgp as usize], rate(2000, 200), "a burst of a tenth of a second");
        assert_eq!(rates[PolicerClass::Rest as usize], None);
        assert_eq!(rates[PolicerClass::Bfd as usize], PolicerClass::Bfd.usual());
        let none = Config::parse(&GOOD[GOOD.find("[[interface]]").unwrap()..]).unwrap();
        assert_eq!(none.policers, usual_rates());
    }

    #[test]
    fn no_default_limits_what_routing_needs() {
        for class in [
            PolicerClass::Bgp,
            PolicerClass::Bfd,
            PolicerClass::Ospf,
            PolicerClass::Vrrp,
            PolicerClass::Neighbour,
        ] {
            assert_eq!(class.usual(), None, "{}", class.name());
        }
    }

    #[test]
    fn mistakes_have_their_line_and_reason() {
        for (from, to, line, part) in [
            ("icmp =", "imcp =", 2, "policer: no class 'imcp': there are 'bgp', 'bfd'"),
            ("rate = 50,", "rate = 0,", 2, "policer.icmp.rate: must be from 1 to 10000000"),
            ("burst = 7", "burst = -1", 2, "policer.icmp.burst: must be from 1 to 10000000"),
            ("rate = 50, ", "", 2, "must be 'unlimited' or a table with 'rate' and 'burst'"),
            ("\"unlimited\"", "\"none\"", 3, "policer.rest: 'none' is neither 'unlimited' nor a table"),
            ("\"unlimited\"", "5", 3, "must be 'unlimited' or a table"),
            ("rate = 2000", "rate = 2000\nbrust = 5", 4, "must be 'unlimited' or a table"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.reason.contains(part), "{from} -> {to}: {error:?}");
            assert_eq!(error.line, Some(line), "{from} -> {to}: {error:?}");
        }
        let bridge = format!(
            "mode = \"bridge\"\n{GOOD}[[interface]]\nname = \"b\"\nbackend = \"tap\"\ndevice = \"tap1\"\n"
        );
        assert!(Config::parse(&bridge).unwrap_err().reason.contains("a bridge has no policers"));
    }
}
