//! `[[feed]]`: routes from elsewhere.

use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;
use toml::Spanned;

use super::read::{Text, vrf};
use super::{Config, ConfigError};

/// Where zebra expects a server for FPM.
const FPM_PORT: u16 = 2620;
/// The kernel's main table.
const MAIN: u32 = 254;
/// Routes of a feed unless the file says otherwise: several full tables.
const ROUTES: usize = 4_000_000;
/// Longest time, in seconds: a week.
const LONGEST: u64 = 7 * 24 * 3600;

/// A feed of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// Name.
    pub name: String,
    /// Administrative distance: of two feeds with a route of the same prefix, the nearer one counts. Routes of the configuration have 1.
    pub distance: u8,
    /// The VRF of each of the kernel's tables that is of interest.
    pub tables: Vec<(u32, u16)>,
    /// Most routes, and most next-hop objects.
    pub routes: usize,
    /// What it is.
    pub kind: FeedKind,
}

/// The list of kinds of feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedKind {
    /// FRR's zebra, by FPM.
    Fpm {
        /// Where to listen.
        listen: SocketAddr,
        /// Seconds for which routes are kept after the end of a session.
        keep: u64,
        /// Seconds after the beginning of a session after which routes go that it has not told again.
        sweep: u64,
        /// Most connections at once.
        sessions: usize,
        /// Most bytes of a frame.
        frame_bytes: usize,
    },
    /// The kernel's tables.
    Kernel,
}

impl FeedKind {
    /// The names of all kinds.
    pub const NAMES: [&str; 2] = ["fpm", "kernel"];

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fpm { .. } => Self::NAMES[0],
            Self::Kernel => Self::NAMES[1],
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    name: Spanned<String>,
    kind: Spanned<String>,
    distance: Option<Spanned<u8>>,
    #[serde(default)]
    tables: Vec<TableLine>,
    routes: Option<Spanned<usize>>,
    listen: Option<Spanned<String>>,
    keep: Option<Spanned<u64>>,
    sweep: Option<Spanned<u64>>,
    sessions: Option<Spanned<usize>>,
    frame_bytes: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableLine {
    table: Spanned<u32>,
    vrf: Option<Spanned<String>>,
}

pub(super) fn read(text: &Text<'_>, config: &Config, line: &Line) -> Result<Feed, ConfigError> {
    let name = line.name.get_ref();
    if name.is_empty() || config.feeds.iter().any(|feed| feed.name == *name) {
        return Err(text.error(&line.name, format!("feed '{name}' has no name of its own")));
    }
    if config.bridge {
        return Err(text.error(&line.name, "a bridge has no routes"));
    }
    let (kind, distance) = match line.kind.get_ref().as_str() {
        "fpm" => (fpm(text, config, line)?, 20),
        "kernel" => (kernel(text, line)?, 30),
        other => {
            let names = FeedKind::NAMES.join(", ");
            return Err(text.error(&line.kind, format!("no kind of feed '{other}': there are {names}")));
        }
    };
    if let Some(place) = line.distance.as_ref().filter(|distance| *distance.get_ref() < 2) {
        return Err(text.error(place, "distance: from 2 to 255; routes of this file have 1"));
    }
    let distance = line.distance.as_ref().map_or(distance, |distance| *distance.get_ref());
    let routes = number(text, line.routes.as_ref(), ROUTES, 1, 100_000_000, "routes")?;
    Ok(Feed { name: name.clone(), distance, tables: tables(text, config, line)?, routes, kind })
}

fn tables(text: &Text<'_>, config: &Config, line: &Line) -> Result<Vec<(u32, u16)>, ConfigError> {
    let mut tables = Vec::new();
    for entry in &line.tables {
        let table = *entry.table.get_ref();
        if table == 0 || tables.iter().any(|known: &(u32, u16)| known.0 == table) {
            return Err(text.error(&entry.table, format!("table {table} is 0, or there twice")));
        }
        tables.push((table, vrf(text, config, entry.vrf.as_ref())? as u16));
    }
    if tables.is_empty() {
        tables.push((MAIN, 0));
    }
    Ok(tables)
}

fn fpm(text: &Text<'_>, config: &Config, line: &Line) -> Result<FeedKind, ConfigError> {
    let listen = match &line.listen {
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, FPM_PORT)),
        Some(place) => place
            .get_ref()
            .parse::<SocketAddr>()
            .map_err(|_| text.error(place, "listen: an address and a port, as in 127.0.0.1:2620"))?,
    };
    let same = |kind: &FeedKind| matches!(kind, FeedKind::Fpm { listen: other, .. } if *other == listen);
    if let Some(other) = config.feeds.iter().find(|feed| same(&feed.kind)) {
        return Err(text.error(&line.name, format!("feed '{}' listens at {listen} already", other.name)));
    }
    Ok(FeedKind::Fpm {
        listen,
        keep: number(text, line.keep.as_ref(), 120, 0, LONGEST, "keep")?,
        sweep: number(text, line.sweep.as_ref(), 60, 0, LONGEST, "sweep")?,
        sessions: number(text, line.sessions.as_ref(), 4, 1, 64, "sessions")?,
        frame_bytes: number(text, line.frame_bytes.as_ref(), 65_535, 256, 65_535, "frame_bytes")?,
    })
}

fn kernel(text: &Text<'_>, line: &Line) -> Result<FeedKind, ConfigError> {
    let only = |key: &str| format!("{key}: only with kind fpm");
    match (&line.listen, &line.keep, &line.sweep, &line.sessions, &line.frame_bytes) {
        (Some(place), ..) => Err(text.error(place, only("listen"))),
        (_, Some(place), ..) => Err(text.error(place, only("keep"))),
        (_, _, Some(place), ..) => Err(text.error(place, only("sweep"))),
        (_, _, _, Some(place), _) => Err(text.error(place, only("sessions"))),
        (.., Some(place)) => Err(text.error(place, only("frame_bytes"))),
        (None, None, None, None, None) => Ok(FeedKind::Kernel),
    }
}

pub(super) fn number<N: Copy + PartialOrd + core::fmt::Display>(
    text: &Text<'_>,
    given: Option<&Spanned<N>>,
    default: N,
    least: N,
    most: N,
    name: &str,
) -> Result<N, ConfigError> {
    match given {
        Some(place) if *place.get_ref() < least || *place.get_ref() > most => {
            Err(text.error(place, format!("{name}: from {least} to {most}")))
        }
        given => Ok(given.map_or(default, |given| *given.get_ref())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
[[vrf]]
name = \"blue\"
[[interface]]
name = \"lan\"
device = \"eth0\"
[[feed]]
name = \"zebra\"
kind = \"fpm\"
keep = 5
tables = [{ table = 254 }, { table = 10, vrf = \"blue\" }]
[[feed]]
name = \"kernel\"
kind = \"kernel\"
distance = 200
";

    #[test]
    fn feeds_and_what_is_wrong_with_them() {
        let config = Config::parse(FILE).unwrap();
        let [zebra, kernel] = &config.feeds[..] else { panic!() };
        assert_eq!((zebra.distance, &zebra.tables[..]), (20, &[(254, 0), (10, 1)][..]));
        let FeedKind::Fpm { listen, keep, sweep, .. } = zebra.kind else { panic!() };
        assert_eq!((listen.to_string().as_str(), keep, sweep), ("127.0.0.1:2620", 5, 60));
        assert_eq!(
            (kernel.distance, &kernel.tables[..], kernel.kind.name()),
            (200, &[(254, 0)][..], "kernel")
        );
        for (from, to, line, part) in [
            ("\"kernel\"\nkind", "\"zebra\"\nkind", 12, "no name of its own"),
            ("kind = \"kernel\"", "kind = \"netlink\"", 13, "there are fpm, kernel"),
            ("distance = 200", "distance = 1", 14, "from 2 to 255"),
            ("distance = 200", "keep = 1", 14, "only with kind fpm"),
            ("table = 10", "table = 254", 10, "twice"),
            ("\"blue\" }", "\"red\" }", 10, "no VRF 'red'"),
            ("keep = 5", "listen = \"localhost\"", 9, "an address and a port"),
            ("keep = 5", "frame_bytes = 70000", 9, "from 256 to 65535"),
            ("keep = 5", "routes = 0", 9, "from 1 to"),
            ("kind = \"kernel\"\ndistance = 200", "kind = \"fpm\"", 12, "listens at 127.0.0.1:2620 already"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = Config::parse(&FILE.replacen(from, to, 1)).unwrap_err();
            assert!(error.line == Some(line) && error.reason.contains(part), "{to}: {error:?}");
        }
    }
}
