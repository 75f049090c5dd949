//! The sampling of packets: the table `[sampling]`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::read::{Text, number};
use super::{Config, ConfigError};
use crate::sampling::exporter::ExportSettings;

/// The table `[sampling]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SamplingKeys {
    rate: Spanned<u32>,
    #[serde(default)]
    collectors: Vec<Spanned<String>>,
    source: Option<Spanned<String>>,
    domain: Option<u32>,
    templates: Option<Spanned<u32>>,
    message_bytes: Option<Spanned<usize>>,
    origins: Option<Spanned<PathBuf>>,
}

/// Packets of which one may be drawn, at most.
const MOST_RATE: u32 = 1 << 24;
/// Most collectors.
const MOST_COLLECTORS: usize = 16;
/// Seconds after which templates are sent again: a collector that was started later waits no longer for them.
const TEMPLATES: u32 = 60;
/// Bytes of a message: with the headers of IPv6 and UDP, the 1,280 bytes that any link of IPv6 takes (RFC 8200, section 5).
const MESSAGE_BYTES: usize = 1232;

/// The packets that are sampled, and their collectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingPlan {
    /// One of so many packets is drawn.
    pub interval: u32,
    /// The export to collectors.
    pub export: ExportSettings,
    /// A table of prefixes and the ASes that announce them, from the folder of the configuration file.
    pub origins: Option<PathBuf>,
    /// Line of that table in the configuration file.
    pub origins_line: usize,
}

pub(super) fn read(
    text: &Text<'_>,
    config: &Config,
    keys: Option<&SamplingKeys>,
) -> Result<Option<SamplingPlan>, ConfigError> {
    let Some(keys) = keys else { return Ok(None) };
    let interval = number(text, Some(&keys.rate), 0, 0, MOST_RATE, "sampling.rate")?;
    let export = export(text, keys)?;
    // A rate of 0 is off, so that a reload can switch sampling off and leave the rest of the table.
    if interval == 0 {
        return Ok(None);
    }
    if config.bridge {
        return Err(
            text.error(&keys.rate, "sampling: a bridge reads no packets: its frames pass as they are")
        );
    }
    if let Some(line) = config.interfaces.iter().find(|line| line.backend.is_fast()) {
        let reason = format!(
            "sampling: interface '{}' has 'fast = true', and its program forwards packets that nobody samples: leave one of the two out",
            line.name
        );
        return Err(text.error(&keys.rate, reason));
    }
    let origins = keys.origins.as_ref();
    let origins_line = origins.map_or(0, |place| text.line(&place.span()));
    Ok(Some(SamplingPlan {
        interval,
        export,
        origins: origins.map(|place| place.get_ref().clone()),
        origins_line,
    }))
}

fn export(text: &Text<'_>, keys: &SamplingKeys) -> Result<ExportSettings, ConfigError> {
    let source = keys.source.as_ref().map(|place| source(text, place)).transpose()?;
    let mut collectors = Vec::new();
    for place in &keys.collectors {
        let collector = collector(text, place)?;
        if collectors.contains(&collector) {
            return Err(text.error(place, format!("sampling.collectors: '{collector}' is there twice")));
        }
        if let Some(source) = source.filter(|source| source.is_ipv4() != collector.is_ipv4()) {
            let reason =
                format!("sampling.collectors: '{collector}' is not of the family of 'source', {source}");
            return Err(text.error(place, reason));
        }
        collectors.push(collector);
    }
    if let Some(place) = keys.collectors.get(MOST_COLLECTORS) {
        return Err(text.error(place, format!("sampling.collectors: at most {MOST_COLLECTORS}")));
    }
    let bytes = keys.message_bytes.as_ref();
    Ok(ExportSettings {
        collectors,
        source,
        domain: keys.domain.unwrap_or(1),
        templates_s: number(text, keys.templates.as_ref(), TEMPLATES, 1, 86_400, "sampling.templates")?,
        message_bytes: number(text, bytes, MESSAGE_BYTES, 512, 9000, "sampling.message_bytes")?,
    })
}

fn collector(text: &Text<'_>, place: &Spanned<String>) -> Result<SocketAddr, ConfigError> {
    let given = place.get_ref();
    match given.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 && !address.ip().is_unspecified() => Ok(address),
        _ => {
            let reason = "is not an address and a port, as in 192.0.2.5:4739 or [2001:db8::5]:4739";
            Err(text.error(place, format!("sampling.collectors: '{given}' {reason}")))
        }
    }
}

fn source(text: &Text<'_>, place: &Spanned<String>) -> Result<IpAddr, ConfigError> {
    let given = place.get_ref();
    match given.parse::<IpAddr>() {
        Ok(address) if !address.is_unspecified() && !address.is_multicast() => Ok(address),
        _ => Err(text.error(place, format!("sampling.source: '{given}' is not an address of this machine"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[sampling]
rate = 1000
collectors = [\"192.0.2.5:4739\", \"192.0.2.6:2055\"]
source = \"192.0.2.1\"
domain = 7
templates = 30
message_bytes = 1400
origins = \"origins.txt\"

[[interface]]
name = \"wan\"
device = \"eth0\"
backend = \"af-xdp\"
";

    #[test]
    fn a_table_with_everything() {
        let plan = Config::parse(GOOD).unwrap().sampling.unwrap();
        assert_eq!((plan.interval, plan.export.domain, plan.export.templates_s), (1000, 7, 30));
        assert_eq!(plan.export.collectors[1], "192.0.2.6:2055".parse().unwrap());
        assert_eq!(
            (plan.export.source, plan.export.message_bytes),
            (Some("192.0.2.1".parse().unwrap()), 1400)
        );
        assert_eq!((plan.origins.unwrap().to_str(), plan.origins_line), (Some("origins.txt"), 8));
        let interfaces = &GOOD[GOOD.find("[[interface]]").unwrap()..];
        assert_eq!(Config::parse(interfaces).unwrap().sampling, None, "off without the table");
        assert_eq!(Config::parse(&GOOD.replace("= 1000", "= 0")).unwrap().sampling, None, "off with rate 0");
        let least = Config::parse(&format!("[sampling]\nrate = 1\n{interfaces}")).unwrap().sampling.unwrap();
        let export = least.export;
        assert_eq!((export.domain, export.templates_s, export.message_bytes), (1, 60, 1232));
        assert!(export.collectors.is_empty() && least.origins.is_none());
    }

    #[test]
    fn mistakes_have_their_line_and_reason() {
        for (from, to, line, part) in [
            ("rate = 1000", "rate = 16777217", 2, "sampling.rate: must be from 0 to 16777216"),
            ("rate = 1000", "rate = -1", 2, "invalid value: integer `-1`"),
            ("rate = 1000", "interval = 1000", 2, "unknown field `interval`"),
            ("rate = 1000\n", "", 1, "missing field `rate`"),
            ("192.0.2.5:4739", "192.0.2.5", 3, "'192.0.2.5' is not an address and a port"),
            ("192.0.2.5:4739", "collector:4739", 3, "'collector:4739' is not an address and a port"),
            ("192.0.2.5:4739", "0.0.0.0:4739", 3, "is not an address and a port"),
            ("192.0.2.5:4739", "192.0.2.5:0", 3, "is not an address and a port"),
            ("192.0.2.5:4739", "192.0.2.6:2055", 3, "'192.0.2.6:2055' is there twice"),
            ("192.0.2.5:4739", "[2001:db8::5]:4739", 3, "is not of the family of 'source', 192.0.2.1"),
            ("\"192.0.2.1\"", "\"lan\"", 4, "sampling.source: 'lan' is not an address"),
            ("domain = 7", "domain = -7", 5, "invalid value"),
            ("templates = 30", "templates = 0", 6, "sampling.templates: must be from 1 to 86400"),
            (
                "message_bytes = 1400",
                "message_bytes = 100",
                7,
                "sampling.message_bytes: must be from 512 to 9000",
            ),
            (
                "\"af-xdp\"\n",
                "\"af-xdp\"\nfast = true\nxdp = \"generic\"\n",
                2,
                "interface 'wan' has 'fast = true'",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.reason.contains(part), "{from} -> {to}: {error:?}");
            assert_eq!(error.line, Some(line), "{from} -> {to}: {error:?}");
        }
        let many: Vec<String> = (0..17).map(|port| format!("\"192.0.2.5:{}\"", port + 1)).collect();
        let many = GOOD.replace("\"192.0.2.5:4739\", \"192.0.2.6:2055\"", &many.join(", "));
        assert!(Config::parse(&many).unwrap_err().reason.contains("at most 16"));
        let bridge = GOOD.replace("\"af-xdp\"", "\"tap\"");
        let bridge = format!(
            "mode = \"bridge\"\n{bridge}[[interface]]\nname = \"b\"\nbackend = \"tap\"\ndevice = \"tap1\"\n"
        );
        assert!(Config::parse(&bridge).unwrap_err().reason.contains("a bridge reads no packets"));
    }
}
