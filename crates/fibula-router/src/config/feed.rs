//! `[[feed]]`: routes from elsewhere.

use core::ops::Range;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use fibula::net::IpPrefix;
use fibula_feed::bmp::Distinguisher;
use fibula_feed::{PeerName, Selection};
use serde::Deserialize;
use toml::Spanned;

use super::accounts::{self, Accounts};
use super::read::{MOST_ROUTES, Text, choice, number, vrf};
use super::{Config, ConfigError};

/// Where zebra expects a server for FPM.
const FPM_PORT: u16 = 2620;
/// The kernel's main table.
const MAIN: u32 = 254;
/// Routes of a feed unless the file says otherwise: several full tables.
const ROUTES: usize = 4_000_000;
/// Longest time, in seconds: a week.
const LONGEST: u64 = 7 * 24 * 3600;
/// Most bytes of a message of BMP: two messages of BGP as long as they may be fit twice.
const BMP_BYTES: usize = 262_144;
/// Fastest replay: a day in about a second.
const FASTEST: u32 = 100_000;

/// A feed of routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed {
    /// Name.
    pub name: String,
    /// Administrative distance. If two feeds have a route of the same prefix, the nearer one is used. Routes of the configuration
    /// have 1.
    pub distance: u8,
    /// Most routes, and most next-hop objects.
    pub routes: usize,
    /// Its kind.
    pub kind: FeedKind,
}

/// The list of kinds of feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedKind {
    /// FRR's zebra, by FPM.
    Fpm {
        /// The VRF of each of the kernel's tables that is of interest.
        tables: Vec<(u32, u16)>,
        /// Where and how to listen.
        server: FeedServer,
        /// Whether zebra gets answers about its routes.
        acknowledge: bool,
    },
    /// The kernel's tables.
    Kernel {
        /// The VRF of each of the tables that is of interest.
        tables: Vec<(u32, u16)>,
    },
    /// A router, by BMP.
    Bmp {
        /// Our VRF for each VRF of the router that is of interest.
        vrfs: Vec<(Distinguisher, u16)>,
        /// Where and how to listen.
        server: FeedServer,
        /// Which tables are taken.
        view: BmpView,
        /// Which routes of peers are taken.
        policy: BmpPolicy,
        /// Most peers.
        peers: usize,
    },
    /// Recorded tables and updates, which are played.
    Mrt {
        /// The files, or folders of them.
        files: Vec<PathBuf>,
        /// The VRF of the routes.
        vrf: u16,
        /// How fast updates are played.
        rate: MrtRate,
        /// Whether the files are played again and again.
        repeat: bool,
        /// Whose routes are taken.
        selection: Selection,
        /// Seconds for which routes are kept after files could not be read to their end.
        keep: u64,
    },
}

/// Where and how to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedServer {
    /// The address.
    pub listen: SocketAddr,
    /// Addresses that may connect; all, if there are none.
    pub allow: Vec<IpPrefix>,
    /// Accounts of this machine whose programs may connect.
    pub accounts: Accounts,
    /// Seconds for which routes are kept after the end of a session.
    pub keep: u64,
    /// Seconds after the beginning of a session until the routes are removed that it has not sent again.
    pub sweep: u64,
    /// Most connections at once.
    pub sessions: usize,
    /// Most bytes of a frame.
    pub frame_bytes: usize,
}

/// The tables to take from a router's BMP messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BmpView {
    /// The routes that its peers announce. The best ones are chosen here.
    AdjRibIn,
    /// The routes that it uses itself.
    LocRib,
}

/// The routes of peers to take from a router's BMP messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BmpPolicy {
    /// Routes accepted by its policy, if it sends these. Otherwise all.
    Either,
    /// All that peers announce.
    Pre,
    /// Those that its policy lets in.
    Post,
}

/// How fast recorded updates are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MrtRate {
    /// As fast as possible.
    Max,
    /// So many times as fast as they came.
    Times(u32),
    /// So many a second.
    PerSecond(u64),
}

impl FeedKind {
    /// The names of all kinds.
    pub const NAMES: [&str; 4] = ["fpm", "kernel", "bmp", "mrt"];

    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fpm { .. } => Self::NAMES[0],
            Self::Kernel { .. } => Self::NAMES[1],
            Self::Bmp { .. } => Self::NAMES[2],
            Self::Mrt { .. } => Self::NAMES[3],
        }
    }

    /// Returns where it listens, if it does.
    #[must_use]
    pub const fn server(&self) -> Option<&FeedServer> {
        match self {
            Self::Fpm { server, .. } | Self::Bmp { server, .. } => Some(server),
            Self::Kernel { .. } | Self::Mrt { .. } => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) name: Spanned<String>,
    kind: Spanned<String>,
    distance: Option<Spanned<u8>>,
    routes: Option<Spanned<usize>>,
    tables: Option<Spanned<Vec<TableLine>>>,
    acknowledge: Option<Spanned<bool>>,
    listen: Option<Spanned<String>>,
    allow: Option<Spanned<Vec<Spanned<String>>>>,
    allow_uid: Option<Spanned<accounts::AccountsValue>>,
    keep: Option<Spanned<u64>>,
    sweep: Option<Spanned<u64>>,
    sessions: Option<Spanned<usize>>,
    frame_bytes: Option<Spanned<usize>>,
    vrf: Option<Spanned<String>>,
    distinguishers: Option<Spanned<Vec<DistinguisherLine>>>,
    view: Option<Spanned<String>>,
    policy: Option<Spanned<String>>,
    peers: Option<Spanned<usize>>,
    files: Option<Spanned<Vec<PathBuf>>>,
    rate: Option<Spanned<RateLine>>,
    #[serde(rename = "loop")]
    repeat: Option<Spanned<bool>>,
    peer: Option<Spanned<String>>,
}

impl Line {
    /// Returns the VRFs that the line names.
    #[cfg(target_os = "linux")]
    pub(super) fn vrfs(&self) -> impl Iterator<Item = &Spanned<String>> {
        let tables = self.tables.iter().flat_map(Spanned::get_ref).filter_map(|entry| entry.vrf.as_ref());
        let others =
            self.distinguishers.iter().flat_map(Spanned::get_ref).filter_map(|entry| entry.vrf.as_ref());
        self.vrf.iter().chain(tables).chain(others)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableLine {
    table: Spanned<u32>,
    vrf: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DistinguisherLine {
    distinguisher: Spanned<String>,
    vrf: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RateLine {
    PerSecond(u64),
    Word(String),
}

pub(super) fn read(text: &Text<'_>, config: &Config, line: &Line) -> Result<Feed, ConfigError> {
    let name = line.name.get_ref();
    if name.is_empty() {
        return Err(text.error(&line.name, "empty feed name"));
    }
    if config.bridge {
        return Err(text.error(&line.name, "a bridge cannot have routes"));
    }
    check_keys(text, line)?;
    let (kind, distance) = match line.kind.get_ref().as_str() {
        "fpm" => {
            let listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, FPM_PORT)));
            let server = server(text, config, line, listen, (65_535, 65_535))?;
            let acknowledge = line.acknowledge.as_ref().is_some_and(|wanted| *wanted.get_ref());
            (FeedKind::Fpm { tables: tables(text, config, line)?, server, acknowledge }, 20)
        }
        "kernel" => (FeedKind::Kernel { tables: tables(text, config, line)? }, 30),
        "bmp" => (bmp(text, config, line)?, 20),
        "mrt" => (mrt(text, config, line)?, 200),
        other => {
            let names = FeedKind::NAMES.join(", ");
            return Err(text.error(&line.kind, format!("no kind of feed '{other}'; choose one of {names}")));
        }
    };
    if let Some(place) = line.distance.as_ref().filter(|distance| *distance.get_ref() < 2) {
        return Err(text.error(place, "distance: must be from 2 to 255; routes of this file have 1"));
    }
    let distance = line.distance.as_ref().map_or(distance, |distance| *distance.get_ref());
    let routes = number(text, line.routes.as_ref(), ROUTES, 1, MOST_ROUTES, "routes")?;
    Ok(Feed { name: name.clone(), distance, routes, kind })
}

/// Checks that every key is one of the kind.
fn check_keys(text: &Text<'_>, line: &Line) -> Result<(), ConfigError> {
    type Key<'a> = (&'a str, Option<Range<usize>>, &'a [&'a str]);
    fn at<T>(place: Option<&Spanned<T>>) -> Option<Range<usize>> {
        place.map(Spanned::span)
    }
    let keys: [Key<'_>; 18] = [
        ("tables", at(line.tables.as_ref()), &["fpm", "kernel"]),
        ("acknowledge", at(line.acknowledge.as_ref()), &["fpm"]),
        ("listen", at(line.listen.as_ref()), &["fpm", "bmp"]),
        ("allow", at(line.allow.as_ref()), &["fpm", "bmp"]),
        ("allow_uid", at(line.allow_uid.as_ref()), &["fpm", "bmp"]),
        ("keep", at(line.keep.as_ref()), &["fpm", "bmp", "mrt"]),
        ("sweep", at(line.sweep.as_ref()), &["fpm", "bmp"]),
        ("sessions", at(line.sessions.as_ref()), &["fpm", "bmp"]),
        ("frame_bytes", at(line.frame_bytes.as_ref()), &["fpm", "bmp"]),
        ("vrf", at(line.vrf.as_ref()), &["bmp", "mrt"]),
        ("distinguishers", at(line.distinguishers.as_ref()), &["bmp"]),
        ("view", at(line.view.as_ref()), &["bmp"]),
        ("policy", at(line.policy.as_ref()), &["bmp"]),
        ("peers", at(line.peers.as_ref()), &["bmp"]),
        ("files", at(line.files.as_ref()), &["mrt"]),
        ("rate", at(line.rate.as_ref()), &["mrt"]),
        ("loop", at(line.repeat.as_ref()), &["mrt"]),
        ("peer", at(line.peer.as_ref()), &["mrt"]),
    ];
    let kind = line.kind.get_ref().as_str();
    for (key, place, kinds) in keys {
        if let Some(place) = place.filter(|_| FeedKind::NAMES.contains(&kind) && !kinds.contains(&kind)) {
            let reason = format!("{key}: only with kind {}", kinds.join(" or "));
            return Err(ConfigError { line: Some(text.line(&place)), reason });
        }
    }
    Ok(())
}

fn tables(text: &Text<'_>, config: &Config, line: &Line) -> Result<Vec<(u32, u16)>, ConfigError> {
    let mut tables = Vec::new();
    for entry in line.tables.iter().flat_map(Spanned::get_ref) {
        let table = *entry.table.get_ref();
        if table == 0 {
            return Err(text.error(&entry.table, "table: must not be 0, which the kernel reserves"));
        }
        if tables.iter().any(|known: &(u32, u16)| known.0 == table) {
            return Err(text.error(&entry.table, format!("table {table} is listed twice")));
        }
        tables.push((table, vrf(text, config, entry.vrf.as_ref())? as u16));
    }
    if tables.is_empty() {
        tables.push((MAIN, 0));
    }
    Ok(tables)
}

/// Reads where to listen, and how. The lengths of frames are the one without a word of the file, and the most.
fn server(
    text: &Text<'_>,
    config: &Config,
    line: &Line,
    listen: Option<SocketAddr>,
    bytes: (usize, usize),
) -> Result<FeedServer, ConfigError> {
    let listen = match (&line.listen, listen) {
        (None, Some(listen)) => listen,
        (None, None) => {
            return Err(
                text.error(&line.name, "listen: an address and a port are needed, as in 127.0.0.1:11019")
            );
        }
        (Some(place), _) => place
            .get_ref()
            .parse::<SocketAddr>()
            .map_err(|_| text.error(place, "listen: must be an address and a port, as in 127.0.0.1:2620"))?,
    };
    let same = |feed: &&Feed| feed.kind.server().is_some_and(|server| server.listen == listen);
    if let Some(other) = config.feeds.iter().find(same) {
        return Err(text.error(&line.name, format!("feed '{}' listens at {listen} already", other.name)));
    }
    let allow = allow(text, line)?;
    if let Some(place) = line.listen.as_ref().filter(|_| allow.is_empty() && !listen.ip().is_loopback()) {
        let kind = line.kind.get_ref().to_uppercase();
        let reason = format!(
            "listen: {kind} has no authentication: name the routers in 'allow', or listen on loopback"
        );
        return Err(text.error(place, reason));
    }
    let (frame_bytes, most) = bytes;
    Ok(FeedServer {
        listen,
        allow,
        accounts: accounts::read(text, line.allow_uid.as_ref())?,
        keep: number(text, line.keep.as_ref(), 120, 0, LONGEST, "keep")?,
        sweep: number(text, line.sweep.as_ref(), 60, 0, LONGEST, "sweep")?,
        sessions: number(text, line.sessions.as_ref(), 4, 1, 64, "sessions")?,
        frame_bytes: number(text, line.frame_bytes.as_ref(), frame_bytes, 256, most, "frame_bytes")?,
    })
}

fn allow(text: &Text<'_>, line: &Line) -> Result<Vec<IpPrefix>, ConfigError> {
    let Some(places) = &line.allow else { return Ok(Vec::new()) };
    if places.get_ref().is_empty() {
        return Err(text.error(places, "allow: the list is empty, so nothing may connect"));
    }
    let read = |place: &Spanned<String>| {
        let word = place.get_ref();
        let found = word.parse::<IpAddr>().ok().map(IpPrefix::from).or_else(|| word.parse().ok());
        found.ok_or_else(|| {
            text.error(
                place,
                format!("allow: '{word}' is neither an address nor a prefix, as in 192.0.2.0/24"),
            )
        })
    };
    places.get_ref().iter().map(read).collect()
}

fn bmp(text: &Text<'_>, config: &Config, line: &Line) -> Result<FeedKind, ConfigError> {
    let server = server(text, config, line, None, (BMP_BYTES, 64 * BMP_BYTES))?;
    let mut vrfs = vec![(Distinguisher(0), vrf(text, config, line.vrf.as_ref())? as u16)];
    for entry in line.distinguishers.iter().flat_map(Spanned::get_ref) {
        let place = &entry.distinguisher;
        let distinguisher = place.get_ref().parse::<Distinguisher>();
        let distinguisher =
            distinguisher.map_err(|error| text.error(place, format!("distinguisher: {error}")))?;
        let vrf = vrf(text, config, entry.vrf.as_ref())? as u16;
        if distinguisher == Distinguisher(0) {
            return Err(
                text.error(place, "distinguisher 0 cannot be listed: its routes go to the feed's 'vrf'")
            );
        }
        if vrfs.iter().any(|known| known.0 == distinguisher) {
            return Err(text.error(place, format!("distinguisher {distinguisher} is listed twice")));
        }
        if let Some((other, _)) = vrfs.iter().find(|known| known.1 == vrf) {
            let name = &config.vrfs[usize::from(vrf)];
            let reason = match other {
                Distinguisher(0) => format!("VRF '{name}' already has the routes without a distinguisher"),
                other => format!("VRF '{name}' already has distinguisher {other}"),
            };
            return Err(text.error(place, reason));
        }
        vrfs.push((distinguisher, vrf));
    }
    let views = [("adj-rib-in", BmpView::AdjRibIn), ("loc-rib", BmpView::LocRib)];
    let policies =
        [("either", BmpPolicy::Either), ("pre-policy", BmpPolicy::Pre), ("post-policy", BmpPolicy::Post)];
    let view = choice(text, "view", line.view.as_ref(), views)?;
    if let Some(place) = line.policy.as_ref().filter(|_| view == BmpView::LocRib) {
        return Err(text.error(place, "policy: only with view adj-rib-in"));
    }
    let policy = choice(text, "policy", line.policy.as_ref(), policies)?;
    let peers = number(text, line.peers.as_ref(), 1024, 1, 100_000, "peers")?;
    Ok(FeedKind::Bmp { vrfs, server, view, policy, peers })
}

fn mrt(text: &Text<'_>, config: &Config, line: &Line) -> Result<FeedKind, ConfigError> {
    let files = line.files.as_ref().map_or_else(Vec::new, |files| files.get_ref().clone());
    if files.is_empty() {
        return Err(text.error(&line.name, "files: a table dump and updates are needed, or folders of them"));
    }
    let selection = match line.peer.as_ref().map(|peer| (peer, peer.get_ref().as_str())) {
        None | Some((_, "best")) => Selection::Best,
        Some((_, "most")) => Selection::MostRoutes,
        Some((place, peer)) => {
            let reason = "peer: must be 'best', 'most', or an address or AS, such as 192.0.2.1 or AS64500";
            let name: PeerName = peer.parse().map_err(|_| text.error(place, reason))?;
            Selection::Peers(vec![name])
        }
    };
    Ok(FeedKind::Mrt {
        files,
        vrf: vrf(text, config, line.vrf.as_ref())? as u16,
        rate: rate(text, line.rate.as_ref())?,
        repeat: line.repeat.as_ref().is_some_and(|repeat| *repeat.get_ref()),
        selection,
        keep: number(text, line.keep.as_ref(), 120, 0, LONGEST, "keep")?,
    })
}

fn rate(text: &Text<'_>, rate: Option<&Spanned<RateLine>>) -> Result<MrtRate, ConfigError> {
    let Some(place) = rate else { return Ok(MrtRate::Times(1)) };
    let found = match place.get_ref() {
        RateLine::PerSecond(count) => (*count > 0).then_some(MrtRate::PerSecond(*count)),
        RateLine::Word(word) if word == "max" => Some(MrtRate::Max),
        RateLine::Word(word) => {
            let times = word.strip_suffix('x').and_then(|times| times.parse().ok());
            times.filter(|times| (1..=FASTEST).contains(times)).map(MrtRate::Times)
        }
    };
    found.ok_or_else(|| {
        text.error(place, "rate: must be \"max\", a factor such as \"10x\", or a number of updates a second")
    })
}

#[cfg(test)]
mod tests {
    use super::super::Account;
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
acknowledge = true
tables = [{ table = 254 }, { table = 10, vrf = \"blue\" }]
[[feed]]
name = \"kernel\"
kind = \"kernel\"
distance = 200
[[feed]]
name = \"station\"
kind = \"bmp\"
listen = \"192.0.2.9:11019\"
allow = [\"192.0.2.1\", \"2001:db8::/32\"]
distinguishers = [{ distinguisher = \"64500:7\", vrf = \"blue\" }]
policy = \"post-policy\"
[[feed]]
name = \"played\"
kind = \"mrt\"
files = [\"rib\", \"updates\"]
vrf = \"blue\"
rate = \"10x\"
loop = true
peer = \"AS64500\"
";

    #[test]
    fn feeds_and_what_is_wrong_with_them() {
        let config = Config::parse(FILE).unwrap();
        let [zebra, kernel, station, played] = &config.feeds[..] else { panic!() };
        let FeedKind::Fpm { server, tables, acknowledge: true } = &zebra.kind else { panic!() };
        assert_eq!((zebra.distance, &tables[..]), (20, &[(254, 0), (10, 1)][..]));
        assert_eq!(
            (server.listen.to_string().as_str(), server.keep, server.sweep),
            ("127.0.0.1:2620", 5, 60)
        );
        assert_eq!(config.vrf_limits, [None, None]);
        let limited = "[[vrf]]\nname = \"default\"\nroutes = 1000\n";
        let limited =
            Config::parse(&format!("{limited}{}", FILE.replacen("\"blue\"", "\"blue\"\nroutes = 7", 1)))
                .unwrap();
        assert_eq!((limited.vrf_limits, limited.vrfs), (vec![Some(1000), Some(7)], config.vrfs.clone()));
        assert_eq!(server.accounts, Accounts::Usual);
        for (line, accounts) in [
            ("allow_uid = \"any\"", Accounts::Any),
            (
                "allow_uid = [7, \"bird\"]",
                Accounts::Only(vec![Account::Number(7), Account::Name("bird".into())]),
            ),
        ] {
            let config = Config::parse(&FILE.replacen("keep = 5", line, 1)).unwrap();
            assert_eq!(config.feeds[0].kind.server().unwrap().accounts, accounts);
        }
        let FeedKind::Kernel { tables } = &kernel.kind else { panic!() };
        assert_eq!((kernel.distance, &tables[..], kernel.kind.name()), (200, &[(254, 0)][..], "kernel"));
        let FeedKind::Bmp { vrfs, server, view, policy, peers } = &station.kind else { panic!() };
        assert_eq!((&vrfs[1..], *peers), (&[(Distinguisher(0xfbf4 << 32 | 7), 1)][..], 1024));
        assert_eq!((*view, *policy), (BmpView::AdjRibIn, BmpPolicy::Post));
        let allow: Vec<_> = server.allow.iter().map(ToString::to_string).collect();
        assert_eq!(
            (allow, server.frame_bytes),
            (vec!["192.0.2.1/32".into(), "2001:db8::/32".to_owned()], BMP_BYTES)
        );
        let FeedKind::Mrt { files, vrf, rate, repeat, selection, keep } = &played.kind else { panic!() };
        assert_eq!((files.len(), *vrf, *rate, *repeat, *keep), (2, 1, MrtRate::Times(10), true, 120));
        assert_eq!((selection, played.distance), (&Selection::Peers(vec![PeerName::As(64500)]), 200));
        for (from, to, line, part) in [
            ("\"kernel\"\nkind", "\"zebra\"\nkind", 13, "duplicate feed name 'zebra' (first on line 7)"),
            ("kind = \"kernel\"", "kind = \"netlink\"", 14, "choose one of fpm, kernel"),
            ("distance = 200", "distance = 1", 15, "from 2 to 255"),
            ("distance = 200", "keep = 1", 15, "only with kind fpm"),
            ("acknowledge = true", "acknowledge = 1", 10, "boolean"),
            ("distance = 200", "acknowledge = true", 15, "only with kind fpm"),
            ("table = 10", "table = 254", 11, "table 254 is listed twice"),
            ("table = 10", "table = 0", 11, "must not be 0"),
            ("\"blue\" }", "\"red\" }", 11, "no VRF 'red'"),
            ("keep = 5", "listen = \"localhost\"", 9, "an address and a port"),
            (
                "keep = 5",
                "listen = \"0.0.0.0:2620\"",
                9,
                "FPM has no authentication: name the routers in 'allow'",
            ),
            (
                "keep = 5",
                "listen = \"[::]:2620\"",
                9,
                "FPM has no authentication: name the routers in 'allow'",
            ),
            ("keep = 5", "allow_uid = \"all\"", 9, "\"any\", or a list of accounts"),
            ("keep = 5", "allow_uid = []", 9, "nothing may connect"),
            ("keep = 5", "allow_uid = [\"a:b\"]", 9, "'a:b' is no name of an account"),
            ("keep = 5", "allow_uid = [-1]", 9, "\"any\", or a list of accounts"),
            ("distance = 200", "allow_uid = \"any\"", 15, "only with kind fpm or bmp"),
            ("keep = 5", "frame_bytes = 70000", 9, "from 256 to 65535"),
            ("keep = 5", "routes = 0", 9, "from 1 to"),
            ("name = \"blue\"", "name = \"blue\"\nroutes = 0", 3, "from 1 to 100000000"),
            ("name = \"blue\"", "name = \"blue\"\nroutes = \"all\"", 3, "invalid type"),
            ("[[interface]]", "[[vrf]]\nname = \"blue\"\nroutes = 7\n[[interface]]", 4, "duplicate VRF"),
            ("kind = \"kernel\"\ndistance = 200", "kind = \"fpm\"", 13, "listens at 127.0.0.1:2620 already"),
            ("allow = [\"192.0.2.1\", \"2001:db8::/32\"]\n", "", 19, "name the routers in 'allow'"),
            ("\"192.0.2.1\", \"2001", "\"192.0.2.300\", \"2001", 20, "'192.0.2.300' is neither"),
            ("[\"192.0.2.1\", \"2001:db8::/32\"]", "[]", 20, "nothing may connect"),
            ("listen = \"192.0.2.9:11019\"\n", "", 17, "a port are needed"),
            ("192.0.2.9:11019", "127.0.0.1:2620", 17, "'zebra' listens at"),
            ("64500:7", "0", 21, "0 cannot be listed"),
            ("}]\npolicy", "}, { distinguisher = \"64500:7\" }]\npolicy", 21, "64500:7 is listed twice"),
            (
                "}]\npolicy",
                "}, { distinguisher = \"64500:8\", vrf = \"blue\" }]\npolicy",
                21,
                "VRF 'blue' already has distinguisher 64500:7",
            ),
            ("64500:7", "64500:", 21, "not a route distinguisher"),
            (", vrf = \"blue\" }]\npolicy", " }]\npolicy", 21, "VRF 'default' already has the routes"),
            ("\"post-policy\"", "\"post\"", 22, "one of 'either', 'pre-policy', 'post-policy'"),
            ("policy =", "view = \"loc-rib\"\npolicy =", 23, "only with view adj-rib-in"),
            ("policy = \"post-policy\"", "peers = 0", 22, "from 1 to"),
            ("policy = \"post-policy\"", "rate = 7", 22, "only with kind mrt"),
            ("policy = \"post-policy\"", "tables = []", 22, "only with kind fpm or kernel"),
            ("files = [\"rib\", \"updates\"]\n", "", 24, "are needed"),
            ("\"10x\"", "0", 28, "updates a second"),
            ("\"10x\"", "\"fast\"", 28, "updates a second"),
            ("AS64500", "ASx", 30, "'best', 'most'"),
            ("loop = true", "sweep = 1", 29, "only with kind fpm or bmp"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = Config::parse(&FILE.replacen(from, to, 1)).unwrap_err();
            assert!(error.line == Some(line) && error.reason.contains(part), "{to}: {error:?}");
        }
    }
}
