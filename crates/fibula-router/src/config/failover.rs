//! What happens when a next hop dies: the table `[bfd]` and the list `[[backup]]`.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::read::{Text, vrf};
use super::{Config, ConfigError};

/// The table `[bfd]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BfdKeys {
    socket: Option<Spanned<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupLine {
    of: Spanned<String>,
    via: Spanned<String>,
    vrf: Option<Spanned<String>>,
}

/// A gateway that takes the packets of another one while that is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Number of the VRF.
    pub vrf: usize,
    /// The gateway whose packets it takes.
    pub of: IpAddr,
    /// The gateway that takes them.
    pub via: IpAddr,
    /// Line in the file.
    pub line: usize,
}

/// Longest path of a socket: `sockaddr_un` has 108 bytes, the last of which is 0.
const PATH_BYTES: usize = 107;

pub(super) fn socket(
    text: &Text<'_>,
    config: &Config,
    keys: Option<&BfdKeys>,
) -> Result<Option<PathBuf>, ConfigError> {
    let Some(place) = keys.and_then(|keys| keys.socket.as_ref()) else { return Ok(None) };
    if config.bridge {
        return Err(text.error(place, "bfd: a bridge has no next hops: leave the table out"));
    }
    let path = place.get_ref();
    if path.as_os_str().is_empty() {
        return Err(text.error(place, "bfd.socket: empty: FRR's is /var/run/frr/bfdd.sock"));
    }
    if path.as_os_str().len() > PATH_BYTES {
        return Err(
            text.error(place, format!("bfd.socket: longer than the {PATH_BYTES} bytes of a socket's path"))
        );
    }
    Ok(Some(path.clone()))
}

pub(super) fn backups(
    text: &Text<'_>,
    config: &Config,
    lines: &[BackupLine],
) -> Result<Vec<Backup>, ConfigError> {
    let mut backups: Vec<Backup> = Vec::new();
    for line in lines {
        if config.bridge {
            return Err(text.error(&line.of, "backup: a bridge has no next hops: leave the backups out"));
        }
        let vrf = vrf(text, config, line.vrf.as_ref())?;
        let (of, via) = (gateway(text, &line.of, "of")?, gateway(text, &line.via, "via")?);
        if of == via {
            return Err(text.error(&line.via, format!("backup.via: {via} is no backup of itself")));
        }
        if let Some(first) = backups.iter().find(|backup| (backup.vrf, backup.of) == (vrf, of)) {
            let reason = format!("backup.of: {of} has a backup already, on line {}", first.line);
            return Err(text.error(&line.of, reason));
        }
        if of.is_ipv6() && via.is_ipv4() {
            let reason = format!("backup.via: IPv6 packets of {of} cannot go to {via}: name an IPv6 address");
            return Err(text.error(&line.via, reason));
        }
        backups.push(Backup { vrf, of, via, line: text.line(&line.of.span()) });
    }
    Ok(backups)
}

fn gateway(text: &Text<'_>, place: &Spanned<String>, key: &str) -> Result<IpAddr, ConfigError> {
    let given = place.get_ref();
    let Ok(address) = given.parse::<IpAddr>() else {
        return Err(text.error(place, format!("backup.{key}: '{given}' is not an address")));
    };
    let is_station = match address {
        IpAddr::V4(ip) => {
            !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast() && !ip.is_loopback()
        }
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback(),
    };
    if !is_station {
        return Err(text.error(place, format!("backup.{key}: {address} is no address of a router")));
    }
    // Its interface would have to be named too, and one address may be on several.
    if matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local()) && key == "via" {
        let reason = format!("backup.via: {address} is link-local: name a global address of that router");
        return Err(text.error(place, reason));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[bfd]
socket = \"/run/frr/bfdd.sock\"
[[backup]]
of = \"192.0.2.1\"
via = \"198.51.100.1\"
[[backup]]
of = \"fe80::1\"
via = \"2001:db8::1\"
vrf = \"blue\"
[[vrf]]
name = \"blue\"
[[interface]]
name = \"wan\"
backend = \"tap\"
device = \"tap0\"
";

    #[test]
    fn the_socket_and_backups_are_read() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!(config.bfd_socket.as_deref(), Some("/run/frr/bfdd.sock".as_ref()));
        let backup = |vrf, of: &str, via: &str, line| Backup {
            vrf,
            of: of.parse().unwrap(),
            via: via.parse().unwrap(),
            line,
        };
        assert_eq!(
            config.backups,
            [backup(0, "192.0.2.1", "198.51.100.1", 4), backup(1, "fe80::1", "2001:db8::1", 7)]
        );
        let none = Config::parse(&GOOD[GOOD.find("[[vrf]]").unwrap()..]).unwrap();
        assert_eq!((none.bfd_socket, none.backups), (None, vec![]));
    }

    #[test]
    fn mistakes_have_their_line_and_reason() {
        for (from, to, line, part) in [
            ("/run/frr/bfdd.sock", "", 2, "bfd.socket: empty"),
            ("/run/frr", &"/x".repeat(60), 2, "longer than the 107 bytes"),
            ("192.0.2.1", "192.0.2", 4, "backup.of: '192.0.2' is not an address"),
            ("192.0.2.1", "224.0.0.5", 4, "backup.of: 224.0.0.5 is no address of a router"),
            ("198.51.100.1", "192.0.2.1", 5, "192.0.2.1 is no backup of itself"),
            ("\"2001:db8::1", "\"192.0.2.1", 8, "IPv6 packets of fe80::1 cannot go to 192.0.2.1"),
            ("\"2001:db8::1", "\"fe80::2", 8, "backup.via: fe80::2 is link-local"),
            ("vrf = \"blue\"", "vrf = \"red\"", 9, "no VRF 'red'"),
            (
                "fe80::1",
                "192.0.2.1\"\nvia = \"192.0.2.9\"\n[[backup]]\nof = \"192.0.2.1",
                7,
                "a backup already, on line 4",
            ),
            ("socket =", "sockets =", 2, "unknown field `sockets`"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(error.reason.contains(part), "{from} -> {to}: {error:?}");
            assert_eq!(error.line, Some(line), "{from} -> {to}: {error:?}");
        }
        let bridge = GOOD
            .replace("[[vrf]]", "[[interface]]\nname = \"b\"\nbackend = \"tap\"\ndevice = \"tap1\"\n[[vrf]]");
        let error = Config::parse(&format!("mode = \"bridge\"\n{bridge}")).unwrap_err();
        assert!(error.reason.contains("a bridge has no next hops"), "{error}");
    }
}
