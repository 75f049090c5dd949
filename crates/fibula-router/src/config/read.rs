//! Reads and checks a configuration file.

use core::ops::Range;
use std::net::{IpAddr, SocketAddr};

use fibula::fib::registry::{self, Engine, Engines};
use fibula::net::{HostBits, IpPrefix, Key, Prefix};
use toml::Spanned;

use super::file;
use super::{
    Backend, Config, ConfigError, HISTORY, Interface, Member, Route, RunTime, SOCKET, Shape, TableFile,
    Target, XdpMode, release,
};
use crate::forward::fabric::Urpf;
use crate::neighbour::Limits;
use crate::packet::ethernet::{self, Tags};
use crate::packet::flow::FlowHash;
use crate::packet::martian::Martians;
use crate::packet::{ipv4, ipv6};

/// Seconds after which forwarding begins though a feed has no full table.
const START_AFTER: u32 = 60;
/// Seconds that an unused neighbour is kept.
const UNUSED_NEIGHBOURS: u32 = 600;
/// Bytes of paths and next-hop objects of all feeds, unless the file says otherwise: a full table has some thousand paths of
/// some hundred bytes each.
const PATH_BYTES: usize = 256 << 20;
/// Most routes that a limit may allow.
pub(super) const MOST_ROUTES: usize = 100_000_000;

/// Most threads; a fanout group of the kernel has no more members.
const MOST_THREADS: usize = 256;
/// Default number of frames of a ring.
const FRAMES: usize = 512;
/// Default number of prefixes compared per second: a full table in a quarter of an hour.
const VERIFY_RATE: u32 = 1000;

/// The text, to turn places into lines.
pub(super) struct Text<'t>(pub(super) &'t str);

impl Text<'_> {
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        1 + self.0.bytes().take(span.start).filter(|&byte| byte == b'\n').count()
    }

    pub(super) fn error<T>(&self, at: &Spanned<T>, reason: impl Into<String>) -> ConfigError {
        ConfigError { line: Some(self.line(&at.span())), reason: reason.into() }
    }
}

/// Refuses a name that an earlier entry has. `all` are the names of all entries.
pub(super) fn unique<'n>(
    text: &Text<'_>,
    what: &str,
    name: &Spanned<String>,
    all: impl IntoIterator<Item = &'n Spanned<String>>,
) -> Result<(), ConfigError> {
    let same = |other: &&Spanned<String>| other.get_ref() == name.get_ref();
    match all.into_iter().find(same).filter(|first| first.span().start < name.span().start) {
        Some(first) => {
            let line = text.line(&first.span());
            Err(text.error(name, format!("duplicate {what} '{}' (first on line {line})", name.get_ref())))
        }
        None => Ok(()),
    }
}

/// Reads a text of TOML.
pub(super) fn toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| Text(text).line(&span));
        ConfigError { line, reason: error.message().to_owned() }
    })
}

pub(super) fn config(text: &str, engines: Engines) -> Result<Config, ConfigError> {
    let file: file::File = toml(text)?;
    let text = Text(text);
    for (old, family) in [(&file.ipv4_algorithm, "ipv4"), (&file.ipv6_algorithm, "ipv6")] {
        if let Some(old) = old {
            return Err(text.error(old, format!("'{family}_algorithm' is now '{family}_engine'")));
        }
    }
    let mut config = general(&text, &file, engines)?;
    vrfs(&text, &file.vrf, &mut config)?;
    for line in &file.interface {
        unique(&text, "interface name", &line.name, file.interface.iter().map(|other| &other.name))?;
        let interface = interface(&text, &config, &file.interface, line)?;
        config.interfaces.push(interface);
    }
    if config.interfaces.is_empty() {
        return Err(ConfigError {
            line: None,
            reason: "no [[interface]]: nothing to forward between".into(),
        });
    }
    check_shape(&text, &file, &config)?;
    super::fast::check(&text, &file, &mut config)?;
    for line in &file.route {
        let route = route(&text, &config, line)?;
        let same = |other: &&Route| other.vrf == route.vrf && other.prefix == route.prefix;
        if let Some(first) = config.routes.iter().find(same) {
            let prefix = line.prefix.get_ref();
            let reason = format!("duplicate route '{prefix}' (first on line {})", first.line);
            return Err(text.error(&line.prefix, reason));
        }
        config.routes.push(route);
    }
    for line in &file.table {
        let table = table(&text, &config, line)?;
        config.tables.push(table);
    }
    for line in &file.feed {
        unique(&text, "feed name", &line.name, file.feed.iter().map(|other| &other.name))?;
        let feed = super::feed::read(&text, &config, line)?;
        config.feeds.push(feed);
    }
    config.filter = super::filter::read(&text, &config, &file.filter, &file.prefix_list)?;
    config.policers = super::policer::read(&text, &config, &file.policer)?;
    config.sampling = super::sampling::read(&text, &config, file.sampling.as_ref())?;
    config.bfd_socket = super::failover::socket(&text, &config, file.bfd.as_ref())?;
    config.backups = super::failover::backups(&text, &config, &file.backup)?;
    config.gate = super::filter::gate(&text, &config, &file.filter, &file.policer, release::version())?;
    Ok(config)
}

/// Reads the settings that belong to no VRF, interface, route or feed.
pub(super) fn general(text: &Text<'_>, file: &file::File, engines: Engines) -> Result<Config, ConfigError> {
    let run_times = [("threads", RunTime::Threads), ("rayon", RunTime::Rayon)];
    let modes = [("route", false), ("bridge", true)];
    Ok(Config {
        threads: threads(text, file.threads.as_ref())?,
        shape: shape(text, file)?,
        run_time: choice(text, "run_time", file.run_time.as_ref(), run_times)?,
        pin: file.pin,
        bridge: choice(text, "mode", file.mode.as_ref(), modes)?,
        metrics: metrics(text, file.metrics.as_ref())?,
        dpdk: file.dpdk.clone(),
        socket: file.socket.as_deref().unwrap_or(SOCKET).into(),
        ipv4: engine(text, file.ipv4_engine.as_ref(), fibula::live::Options::default().ipv4, engines)?,
        ipv6: engine(text, file.ipv6_engine.as_ref(), fibula::live::Options::default().ipv6, engines)?,
        hash: FlowHash { seed: file.flows.seed, symmetric: file.flows.symmetric },
        icmp_rate: (file.icmp.rate, file.icmp.burst),
        martians: martians(text, &file.martians.accept)?,
        limits: Limits {
            neighbours: file.neighbours.most,
            requests: file.neighbours.requests,
            requests_prefix: file.neighbours.requests_prefix,
            unused_ns: 1_000_000_000
                * u64::from(number(
                    text,
                    file.neighbours.unused.as_ref(),
                    UNUSED_NEIGHBOURS,
                    1,
                    86_400,
                    "neighbours.unused",
                )?),
        },
        verify_rate: number(text, file.verify.rate.as_ref(), VERIFY_RATE, 0, 10_000_000, "verify.rate")?,
        history: number(text, file.history.changes.as_ref(), HISTORY, 0, 1_000_000, "history.changes")?,
        require_devices: false,
        take_over: false,
        start_after_s: number(text, file.start_after.as_ref(), START_AFTER, 0, 3600, "start_after")?,
        path_bytes: number(
            text,
            file.feeds.path_bytes.as_ref(),
            PATH_BYTES,
            1 << 16,
            1 << 40,
            "feeds.path_bytes",
        )?,
        vrfs: vec!["default".to_owned()],
        vrf_limits: vec![None],
        interfaces: Vec::new(),
        routes: Vec::new(),
        tables: Vec::new(),
        feeds: Vec::new(),
        filter: super::FilterLines::default(),
        policers: crate::police::usual_rates(),
        sampling: None,
        bfd_socket: None,
        backups: Vec::new(),
        gate: false,
    })
}

fn martians(text: &Text<'_>, names: &[Spanned<String>]) -> Result<Martians, ConfigError> {
    let mut accepted = Martians::default();
    for name in names {
        if !accepted.insert(name.get_ref()) {
            let names = Martians::NAMES.map(|name| format!("'{name}'")).join(", ");
            return Err(text.error(name, format!("martians.accept: must be a list of {names}")));
        }
    }
    Ok(accepted)
}

/// Reads the VRFs. The one that is always there may be named to give it a limit.
fn vrfs(text: &Text<'_>, lines: &[file::Vrf], config: &mut Config) -> Result<(), ConfigError> {
    for line in lines {
        unique(text, "VRF", &line.name, lines.iter().map(|other| &other.name))?;
        let name = line.name.get_ref();
        let most = line.routes.as_ref();
        let limit = most.map(|_| number(text, most, 0, 1, MOST_ROUTES, "routes")).transpose()?;
        if *name == config.vrfs[0] {
            config.vrf_limits[0] = limit;
        } else {
            config.vrfs.push(name.clone());
            config.vrf_limits.push(limit);
        }
    }
    Ok(())
}

fn engine<K: Key>(
    text: &Text<'_>,
    name: Option<&Spanned<String>>,
    default: Engine<K>,
    engines: Engines,
) -> Result<Engine<K>, ConfigError> {
    let Some(name) = name.filter(|name| name.get_ref() != "auto") else { return Ok(default) };
    engines.find(name.get_ref()).map_err(|_| {
        let (named, family) = (name.get_ref(), K::FAMILY);
        text.error(
            name,
            match registry::is_published(named) && engines == Engines::OWN {
                true => format!("'{named}' for {family} is for comparison: 'fibula-lab router' takes it"),
                false => format!("no engine '{named}' for {family}: 'fibula engines' lists them"),
            },
        )
    })
}

/// Returns the value of a word. The first word is the default.
pub(super) fn choice<T: Copy, const COUNT: usize>(
    text: &Text<'_>,
    key: &str,
    word: Option<&Spanned<String>>,
    choices: [(&str, T); COUNT],
) -> Result<T, ConfigError> {
    let Some(word) = word else { return Ok(choices[0].1) };
    let found = choices.iter().find(|choice| choice.0 == word.get_ref());
    found.map(|choice| choice.1).ok_or_else(|| {
        text.error(
            word,
            format!("{key}: must be one of {}", choices.map(|choice| format!("'{}'", choice.0)).join(", ")),
        )
    })
}

fn threads(text: &Text<'_>, threads: Option<&Spanned<usize>>) -> Result<usize, ConfigError> {
    match threads {
        Some(threads) if !(1..=MOST_THREADS).contains(threads.get_ref()) => {
            Err(text.error(threads, format!("threads: must be from 1 to {MOST_THREADS}")))
        }
        threads => Ok(threads.map_or(1, |threads| *threads.get_ref())),
    }
}

fn shape(text: &Text<'_>, file: &file::File) -> Result<Shape, ConfigError> {
    let receive = threads(text, file.receive_threads.as_ref())?;
    let send = threads(text, file.send_threads.as_ref())?;
    let shape = match file.shape.as_ref().map(|name| (name, name.get_ref().as_str())) {
        None | Some((_, "run-to-completion")) => Shape::Complete,
        Some((_, "two-stages")) => Shape::Two { receive },
        Some((_, "three-stages")) => Shape::Three { receive, send },
        Some((place, _)) => {
            return Err(text.error(place, format!("shape: must be one of {}", Shape::NAMES.join(", "))));
        }
    };
    match (shape, &file.receive_threads, &file.send_threads) {
        (Shape::Complete, Some(place), _) => {
            Err(text.error(place, "receive_threads: only with shape two-stages or three-stages"))
        }
        (Shape::Complete | Shape::Two { .. }, _, Some(place)) => {
            Err(text.error(place, "send_threads: only with shape three-stages"))
        }
        _ => Ok(shape),
    }
}

/// Checks that the interfaces fit the shape and the mode.
fn check_shape(text: &Text<'_>, file: &file::File, config: &Config) -> Result<(), ConfigError> {
    for (line, interface) in file.interface.iter().zip(&config.interfaces) {
        let both = |other: &Interface| matches!(other.backend, Backend::Xdp { .. });
        if matches!(interface.backend, Backend::Dpdk { .. }) && config.interfaces.iter().any(both) {
            return Err(text.error(&line.name, "back ends af-xdp and dpdk cannot be used together"));
        }
        let is_port = matches!(interface.backend, Backend::Dpdk { host: Some(_), .. });
        let of_port = line.host.as_ref().filter(|_| is_port && interface.host.is_none());
        if let Some(place) = of_port.filter(|_| config.shape != Shape::Complete || config.bridge) {
            return Err(text.error(place, "host: only with the shape run-to-completion, and not in a bridge"));
        }
        if config.bridge
            && (!interface.tags.is_none() || interface.vrf != 0 || !interface.addresses.is_empty())
        {
            return Err(text.error(&line.name, "a bridge cannot have VLANs, VRFs or addresses"));
        }
    }
    match &file.mode {
        Some(place) if config.bridge && !config.interfaces.len().is_multiple_of(2) => Err(text.error(
            place,
            "a bridge needs an even number of interfaces: it joins the first with the second, the third with the fourth, ...",
        )),
        Some(place) if config.bridge && !(file.route.is_empty() && file.table.is_empty()) => {
            Err(text.error(place, "a bridge cannot have routes"))
        }
        _ => Ok(()),
    }
}

fn metrics(text: &Text<'_>, address: Option<&Spanned<String>>) -> Result<Option<SocketAddr>, ConfigError> {
    let Some(place) = address else { return Ok(None) };
    match place.get_ref().parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(Some(address)),
        _ => Err(text.error(place, "metrics: must be a loopback address and a port, as in 127.0.0.1:9180")),
    }
}

pub(super) fn vrf(
    text: &Text<'_>,
    config: &Config,
    name: Option<&Spanned<String>>,
) -> Result<usize, ConfigError> {
    let Some(name) = name else { return Ok(0) };
    let found = config.vrfs.iter().position(|vrf| vrf == name.get_ref());
    found.ok_or_else(|| text.error(name, format!("no VRF '{}': add a [[vrf]] of this name", name.get_ref())))
}

fn backend(
    text: &Text<'_>,
    line: &file::Interface,
    port_host: Option<&Spanned<String>>,
) -> Result<Backend, ConfigError> {
    let otherwise = || Backend::default_name(release::version());
    let name = line.backend.as_ref().map_or_else(otherwise, |name| name.get_ref());
    let device = || match &line.device {
        Some(device) if (1..=15).contains(&device.get_ref().len()) && !device.get_ref().contains('/') => {
            Ok(device.get_ref().clone())
        }
        Some(device) => Err(text.error(device, "a device name must have 1 to 15 bytes, without '/'")),
        None => Err(text.error(&line.name, "'device' is missing, which this back end needs")),
    };
    let frames = match &line.frames {
        Some(frames) if !(15..=65_536).contains(frames.get_ref()) => {
            return Err(text.error(frames, "frames: must be from 15 to 65,536 for each ring"));
        }
        frames => frames.as_ref().map_or(FRAMES, |frames| *frames.get_ref()),
    };
    let modes = [("auto", XdpMode::Auto), ("native", XdpMode::Native), ("generic", XdpMode::Generic)];
    let mode = choice(text, "xdp", line.xdp.as_ref(), modes)?;
    if let Some(place) = line.xdp.as_ref().filter(|_| name != "af-xdp") {
        return Err(text.error(place, "xdp: only with back end af-xdp"));
    }
    if let Some(place) = line.fast.as_ref().filter(|_| name != "af-xdp") {
        return Err(text.error(place, "fast: only with back end af-xdp"));
    }
    let fast = line.fast.as_ref().is_some_and(|fast| *fast.get_ref());
    match (name, &line.backend) {
        ("dpdk", Some(place)) if !Backend::HAS_DPDK => {
            Err(text
                .error(place, "this program was built without DPDK: build it with '--features router-dpdk'"))
        }
        ("dpdk", _) => dpdk(text, line, port_host, frames),
        ("af-xdp", _) => {
            Ok(Backend::Xdp { device: device()?, frames: frames.next_power_of_two(), mode, fast })
        }
        ("af-packet", _) => Ok(Backend::Packet { device: device()?, frames }),
        ("tap", _) => Ok(Backend::Tap { device: device()?, is_side: false }),
        ("pcap", _) if line.input.is_none() && line.output.is_none() => {
            Err(text.error(&line.name, "'input' and 'output' are missing: back end pcap needs one or both"))
        }
        ("pcap", _) => Ok(Backend::Pcap { input: line.input.clone(), output: line.output.clone() }),
        (other, Some(place)) => {
            Err(text
                .error(place, format!("no back end '{other}'; choose one of {}", Backend::NAMES.join(", "))))
        }
        (other, None) => Err(text.error(&line.name, format!("no back end '{other}'"))),
    }
}

fn dpdk(
    text: &Text<'_>,
    line: &file::Interface,
    host: Option<&Spanned<String>>,
    frames: usize,
) -> Result<Backend, ConfigError> {
    let Some(device) = &line.device else {
        return Err(text.error(&line.name, "'device' is missing, which this back end needs"));
    };
    if !(1..=63).contains(&device.get_ref().len()) || device.get_ref().contains('\0') {
        return Err(
            text.error(device, "a port name must have 1 to 63 bytes, as in 0000:03:00.0 or net_null0")
        );
    }
    let host = host.map(|host| host.get_ref().clone());
    Ok(Backend::Dpdk { device: device.get_ref().clone(), host, frames })
}

/// Reads the VLAN, or the pair of VLANs, of an interface.
fn tags(text: &Text<'_>, line: &file::Interface) -> Result<Tags, ConfigError> {
    for (key, vlan) in [("vlan", &line.vlan), ("outer_vlan", &line.outer_vlan)] {
        if let Some(place) = vlan.as_ref().filter(|vlan| !(1..=4094).contains(vlan.get_ref())) {
            return Err(text.error(place, format!("{key}: must be from 1 to 4094")));
        }
    }
    let kinds = [("802.1ad", ethernet::VLAN_OUTER), ("802.1q", ethernet::VLAN)];
    let kind = choice(text, "outer_tag", line.outer_tag.as_ref(), kinds)?;
    if let Some(place) = line.outer_tag.as_ref().filter(|_| line.outer_vlan.is_none()) {
        return Err(text.error(place, "outer_tag: only with 'outer_vlan'"));
    }
    match (&line.vlan, &line.outer_vlan) {
        (None, None) => Ok(Tags::NONE),
        (Some(vlan), None) => Ok(Tags::one(*vlan.get_ref())),
        (Some(vlan), Some(outer)) => Ok(Tags::two(kind, *outer.get_ref(), *vlan.get_ref())),
        (None, Some(place)) => {
            Err(text.error(place, "outer_vlan: needs 'vlan', the VLAN of the inner tag, too"))
        }
    }
}

/// Reads the name of the tap through which the kernel has an interface with VLANs. Returns `None` for interfaces without VLANs,
/// whose port may have a tap.
fn side(
    text: &Text<'_>,
    config: &Config,
    line: &file::Interface,
    backend: &Backend,
) -> Result<Option<String>, ConfigError> {
    let Some(place) = &line.host else { return Ok(None) };
    let host = place.get_ref();
    if !(1..=15).contains(&host.len()) || host.contains('/') {
        return Err(text.error(place, "a tap name must have 1 to 15 bytes, without '/'"));
    }
    match backend {
        Backend::Dpdk { .. } if line.vlan.is_none() => return Ok(None),
        // Lines of a port of DPDK may repeat the name of its tap.
        Backend::Dpdk { host: Some(port), .. } if port == host => return Ok(None),
        Backend::Pcap { .. } => return Err(text.error(place, "host: not with files")),
        _ if line.vlan.is_none() => {
            return Err(text.error(place, "host: only with back end dpdk, and for interfaces with 'vlan'"));
        }
        _ => {}
    }
    let has = |other: &Interface| {
        other.host.as_ref() == Some(host)
            || other.backend.device() == *host
            || other.backend.link() == Some(host)
    };
    if backend.device() == *host || backend.link() == Some(host) {
        return Err(text.error(place, "host: the tap needs another name than the device"));
    }
    match config.interfaces.iter().find(|other| has(other)) {
        Some(other) => Err(text.error(place, format!("interface '{}' has this device already", other.name))),
        None => Ok(Some(host.clone())),
    }
}

fn interface(
    text: &Text<'_>,
    config: &Config,
    lines: &[file::Interface],
    line: &file::Interface,
) -> Result<Interface, ConfigError> {
    let name = line.name.get_ref();
    if name.is_empty() {
        return Err(text.error(&line.name, "empty interface name"));
    }
    // A port of DPDK may have a tap too, which the line without a VLAN names.
    let is_port = |other: &&file::Interface| {
        let device = |line: &file::Interface| line.device.as_ref().map(|device| device.get_ref().clone());
        other.vlan.is_none() && device(other) == device(line)
    };
    let port_host = lines.iter().find(is_port).and_then(|port| port.host.as_ref());
    let backend = backend(text, line, port_host)?;
    let tags = tags(text, line)?;
    let host = side(text, config, line, &backend)?;
    let same = |other: &&Interface| other.backend.device() == backend.device();
    if let Some(other) = config.interfaces.iter().filter(same).find(|other| other.tags == tags) {
        let reason = format!("interface '{}' has this device and VLAN already", other.name);
        return Err(text.error(&line.name, reason));
    }
    if let Some(other) = config.interfaces.iter().find(|other| {
        other.host.is_some()
            && (other.host == Some(backend.device()) || other.host.as_deref() == backend.link())
    }) {
        return Err(text.error(&line.name, format!("the tap of interface '{}' has this name", other.name)));
    }
    if let Some(other) = config.interfaces.iter().find(same).filter(|other| other.backend != backend) {
        let reason = format!("interface '{}' has this device with other options", other.name);
        return Err(text.error(&line.name, reason));
    }
    let mac = match &line.mac {
        Some(place) => match place.get_ref().parse::<ethernet::Mac>() {
            Ok(mac) if mac.is_station() => Some(mac),
            _ => return Err(text.error(place, "mac: must be a unicast address, as in 02:00:00:00:00:01")),
        },
        None => None,
    };
    let addresses = line.addresses.iter().map(|place| address(text, place)).collect::<Result<Vec<_>, _>>()?;
    let mtu = line.mtu.as_ref().map(|mtu| *mtu.get_ref());
    let least = if addresses.iter().any(|address| address.0.is_ipv6()) { ipv6::MIN_MTU } else { 68 };
    if let Some(place) = line.mtu.as_ref().filter(|mtu| !(least..=9216).contains(mtu.get_ref())) {
        return Err(text.error(place, format!("mtu: must be from {least} to 9216")));
    }
    let kernel = backend.is_device() && tags.is_none();
    if let Some(place) = line.addresses.first().filter(|_| kernel) {
        return Err(text.error(place, "the kernel owns this device: give it addresses with 'ip address add'"));
    }
    if let Some(place) = line.mac.as_ref().filter(|_| backend.is_device()) {
        return Err(text.error(place, "the kernel owns this device: its MAC address is the kernel's"));
    }
    let urpfs = [("off", Urpf::Off), ("strict", Urpf::Strict), ("loose", Urpf::Loose)];
    let urpf = choice(text, "urpf", line.urpf.as_ref(), urpfs)?;
    let vrf = vrf(text, config, line.vrf.as_ref())?;
    Ok(Interface { name: name.clone(), backend, tags, host, mac, mtu, addresses, vrf, urpf, removed: false })
}

fn address(text: &Text<'_>, place: &Spanned<String>) -> Result<(IpAddr, u8), ConfigError> {
    let address = place.get_ref();
    let wrong = || {
        let reason = "is not an address with the length of its network, as in 192.0.2.1/24";
        text.error(place, format!("'{address}' {reason}"))
    };
    let (ip, len) = address.split_once('/').ok_or_else(wrong)?;
    let (ip, len): (IpAddr, u8) = (ip.parse().map_err(|_| wrong())?, len.parse().map_err(|_| wrong())?);
    let most = if ip.is_ipv4() { 32 } else { 128 };
    if len == 0 || len > most || ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
        return Err(text.error(place, format!("'{address}' cannot be the address of an interface")));
    }
    Ok((ip, len))
}

fn gateway(text: &Text<'_>, place: Option<&Spanned<String>>) -> Result<Option<IpAddr>, ConfigError> {
    let Some(place) = place else { return Ok(None) };
    match place.get_ref().parse::<IpAddr>() {
        Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => Ok(Some(ip)),
        _ => Err(text.error(place, format!("'{}' is not the address of a gateway", place.get_ref()))),
    }
}

fn member(
    text: &Text<'_>,
    config: &Config,
    via: Option<&Spanned<String>>,
    interface: Option<&Spanned<String>>,
    weight: u32,
) -> Result<Member, ConfigError> {
    let gateway = gateway(text, via)?;
    if let Some(place) = interface.filter(|place| config.interface(place.get_ref()).is_none()) {
        return Err(text.error(place, format!("no interface '{}'", place.get_ref())));
    }
    match (gateway, via, interface) {
        (Some(IpAddr::V6(ip)), Some(place), None) if ipv6::is_link_local(ip.into()) => {
            Err(text.error(place, "a link-local gateway needs its 'interface'"))
        }
        _ => Ok(Member { gateway, interface: interface.map(|place| place.get_ref().clone()), weight }),
    }
}

fn route(text: &Text<'_>, config: &Config, line: &file::Route) -> Result<Route, ConfigError> {
    let prefix = IpPrefix::parse(line.prefix.get_ref().as_bytes(), HostBits::Refuse)
        .map_err(|error| text.error(&line.prefix, format!("'{}': {error}", line.prefix.get_ref())))?;
    if is_group(prefix) {
        let reason = format!("'{}' is a group of stations: multicast is not routed", line.prefix.get_ref());
        return Err(text.error(&line.prefix, reason));
    }
    let one = line.via.is_some() || line.interface.is_some();
    let ways = usize::from(one) + usize::from(line.kind.is_some()) + usize::from(!line.group.is_empty());
    if ways != 1 {
        let reason = "a route needs exactly one of: 'via' with or without 'interface', a 'group', a 'kind'";
        return Err(text.error(&line.prefix, reason));
    }
    let target = match line.kind.as_ref().map(|kind| (kind, kind.get_ref().as_str())) {
        Some((_, "blackhole")) => Target::Blackhole,
        Some((_, "unreachable")) => Target::Unreachable,
        Some((_, "prohibit")) => Target::Prohibit,
        Some((place, _)) => {
            return Err(text.error(place, "kind: must be 'blackhole', 'unreachable' or 'prohibit'"));
        }
        None if one => {
            let only = member(text, config, line.via.as_ref(), line.interface.as_ref(), 1)?;
            Target::Group(vec![only])
        }
        None => Target::Group(group(text, config, line)?),
    };
    if let (IpPrefix::V6(_), Target::Group(members)) = (&prefix, &target)
        && members.iter().any(|member| matches!(member.gateway, Some(IpAddr::V4(_))))
    {
        return Err(text.error(&line.prefix, "an IPv6 route cannot have an IPv4 gateway"));
    }
    let vrf = vrf(text, config, line.vrf.as_ref())?;
    Ok(Route { vrf, prefix, target, line: text.line(&line.prefix.span()) })
}

/// Returns whether all addresses of a prefix are groups.
fn is_group(prefix: IpPrefix) -> bool {
    match prefix {
        IpPrefix::V4(prefix) => prefix.len() >= 4 && ipv4::is_multicast(prefix.addr()),
        IpPrefix::V6(prefix) => prefix.len() >= 8 && ipv6::is_multicast(prefix.addr()),
    }
}

fn group(text: &Text<'_>, config: &Config, line: &file::Route) -> Result<Vec<Member>, ConfigError> {
    let mut members = Vec::new();
    for way in &line.group {
        let weight = way.weight.as_ref().map_or(1, |weight| *weight.get_ref());
        if let Some(place) = way.weight.as_ref().filter(|_| !(1..=256).contains(&weight)) {
            return Err(text.error(place, "weight: must be from 1 to 256"));
        }
        if way.via.is_none() && way.interface.is_none() {
            return Err(text.error(&line.prefix, "a member of a group needs 'via', 'interface' or both"));
        }
        members.push(member(text, config, way.via.as_ref(), way.interface.as_ref(), weight)?);
    }
    Ok(members)
}

fn table(text: &Text<'_>, config: &Config, line: &file::Table) -> Result<TableFile, ConfigError> {
    let target = match (&line.via, &line.interface) {
        (None, None) => None,
        (via, interface) => {
            Some(Target::Group(vec![member(text, config, via.as_ref(), interface.as_ref(), 1)?]))
        }
    };
    let vrf = vrf(text, config, line.vrf.as_ref())?;
    Ok(TableFile { path: line.file.get_ref().clone(), vrf, target, line: text.line(&line.file.span()) })
}

/// Returns the prefix of an interface's network; `None` for a length that its family does not have.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn network(ip: IpAddr, len: u8) -> Option<IpPrefix> {
    match ip {
        IpAddr::V4(ip) => Prefix::masked(ip.into(), len).ok().map(IpPrefix::V4),
        IpAddr::V6(ip) => Prefix::masked(ip.into(), len).ok().map(IpPrefix::V6),
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
            Err(text.error(place, format!("{name}: must be from {least} to {most}")))
        }
        given => Ok(given.map_or(default, |given| *given.get_ref())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[[vrf]]
name = \"blue\"

[[interface]]
name = \"lan\"
device = \"eth0\"
urpf = \"strict\"

[[interface]]
name = \"guests\"
backend = \"tap\"
device = \"tap0\"
mac = \"02:00:00:00:00:01\"
vrf = \"blue\"
addresses = [\"192.0.2.1/24\", \"2001:db8::1/64\"]

[[route]]
prefix = \"0.0.0.0/0\"
group = [{ via = \"192.0.2.9\", weight = 2 }, { via = \"192.0.2.8\" }]

[[route]]
prefix = \"2001:db8:1::/48\"
vrf = \"blue\"
via = \"fe80::1\"
interface = \"guests\"

[[route]]
prefix = \"198.51.100.0/24\"
kind = \"blackhole\"
";

    #[test]
    fn vlans_pairs_of_vlans_and_their_taps() {
        let text = |lines: &str| {
            format!("[[interface]]\nname = \"t\"\nbackend = \"tap\"\ndevice = \"tap0\"\n{lines}")
        };
        let first = |lines: &str| Config::parse(&text(lines)).map(|config| config.interfaces[0].clone());
        let pair = first("vlan = 7\nouter_vlan = 100\nhost = \"seven\"").unwrap();
        assert_eq!(pair.tags, Tags::two(ethernet::VLAN_OUTER, 100, 7));
        assert_eq!((pair.host.as_deref(), pair.machine()), (Some("seven"), Some("seven")));
        let pair = first("vlan = 7\nouter_vlan = 100\nouter_tag = \"802.1q\"").unwrap();
        assert_eq!((pair.tags, pair.machine()), (Tags::two(ethernet::VLAN, 100, 7), None));
        for (lines, part) in [
            ("outer_vlan = 100", "needs 'vlan'"),
            ("vlan = 7\nouter_vlan = 4095", "outer_vlan: must be from 1 to 4094"),
            ("vlan = 7\nouter_tag = \"802.1q\"", "only with 'outer_vlan'"),
            ("vlan = 7\nouter_vlan = 9\nouter_tag = \"802.3\"", "'802.1ad', '802.1q'"),
            ("host = \"seven\"", "for interfaces with 'vlan'"),
            ("vlan = 7\nhost = \"tap0\"", "another name than the device"),
            ("vlan = 7\nhost = \"a/b\"", "1 to 15 bytes"),
        ] {
            let error = first(lines).unwrap_err();
            assert!(error.reason.contains(part) && error.line.is_some(), "{lines}: {error:?}");
        }
        // Two interfaces.
        let next = "[[interface]]\nname = \"u\"\nbackend = \"tap\"\n";
        for (one, other, part) in [
            ("vlan = 7\nhost = \"seven\"", "device = \"seven\"", "the tap of interface 't'"),
            (
                "vlan = 7\nhost = \"seven\"",
                "device = \"tap0\"\nvlan = 8\nhost = \"seven\"",
                "has this device",
            ),
            (
                "vlan = 7\nouter_vlan = 9",
                "device = \"tap0\"\nvlan = 7\nouter_vlan = 9",
                "has this device and VLAN",
            ),
        ] {
            let error = Config::parse(&format!("{}\n{next}{other}\n", text(one))).unwrap_err();
            assert!(error.reason.contains(part), "{other}: {error:?}");
        }
        let both = format!("{}\n{next}device = \"tap0\"\nvlan = 7\n", text("vlan = 7\nouter_vlan = 9"));
        assert_eq!(Config::parse(&both).unwrap().interfaces.len(), 2);
    }

    #[test]
    fn a_file_with_everything() {
        let config = Config::parse(GOOD).unwrap();
        assert_eq!((config.interfaces.len(), config.routes.len(), config.threads), (2, 3, 1));
        assert_eq!(config.interfaces[1].vrf, 1);
        assert_eq!(config.routes[2].target, Target::Blackhole);
        assert_eq!(config.routes[1].line, 22);
    }

    #[test]
    fn wrong_files_are_refused_with_line_and_reason() {
        for (from, to, line, part) in [
            ("device = \"eth0\"", "device = eth0", Some(6), ""),
            ("urpf = \"strict\"", "urpf = \"both\"", Some(7), "'off', 'strict', 'loose'"),
            ("urpf = \"strict\"", "urfp = \"strict\"", Some(7), "unknown field `urfp`"),
            ("device = \"tap0\"", "device = \"eth0\"", Some(10), "with this device"),
            ("vrf = \"blue\"\naddr", "vrf = \"red\"\naddr", Some(14), "no VRF 'red'"),
            ("192.0.2.1/24", "192.0.2.1", Some(15), "'192.0.2.1' is not an address with"),
            ("0.0.0.0/0", "10.0.0.1/8", Some(18), "10.0.0.1/8"),
            ("0.0.0.0/0", "224.0.0.0/4", Some(18), "'224.0.0.0/4' is a group of stations"),
            ("2001:db8:1::/48", "ff0e::/16", Some(22), "'ff0e::/16' is a group of stations"),
            ("weight = 2", "weight = 0", Some(19), "from 1 to 256"),
            ("interface = \"guests\"", "", Some(24), "needs its 'interface'"),
            ("kind = \"blackhole\"", "kind = \"black\"", Some(29), "'blackhole', 'unreachable'"),
            ("kind = \"blackhole\"", "", Some(28), "exactly one of"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Config::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            let known = error.line == line || part == "with this device";
            assert!(known, "{from} -> {to}: {error:?}");
            assert!(error.reason.contains(part) || part == "with this device", "{from} -> {to}: {error:?}");
        }
        assert_eq!(Config::parse("").unwrap_err().line, None);
        for (text, line, part) in [
            ("shape = \"one\"\n", 1, "run-to-completion, two-stages"),
            ("receive_threads = 2\n", 1, "only with shape"),
            ("shape = \"two-stages\"\nsend_threads = 2\n", 2, "only with shape three-stages"),
            ("mode = \"bridge\"\n", 9, "cannot have VLANs"),
            ("run_time = \"openmp\"\n", 1, "run_time: must be one of 'threads', 'rayon'"),
            ("metrics = \"0.0.0.0:9180\"\n", 1, "a loopback address"),
            (
                "[martians]\naccept = [\"reserved\", \"loopback\"]\n",
                2,
                "a list of 'this-network', 'link-local', 'reserved'",
            ),
            (
                "[[interface]]\nname = \"lan\"\ndevice = \"eth9\"\n",
                8,
                "duplicate interface name 'lan' (first on line 2)",
            ),
            ("[[interface]]\nname = \"\"\n", 2, "empty interface name"),
            ("[[vrf]]\nname = \"blue\"\n", 4, "duplicate VRF 'blue' (first on line 2)"),
            (
                "[[route]]\nprefix = \"0.0.0.0/0\"\nkind = \"blackhole\"\n",
                21,
                "duplicate route '0.0.0.0/0' (first on line 2)",
            ),
        ] {
            let error = Config::parse(&format!("{text}{GOOD}")).unwrap_err();
            assert!(error.reason.contains(part), "{text}: {error:?}");
            assert!(error.line == Some(line) || part == "cannot have VLANs", "{text}: {error:?}");
        }
        let accepting = Config::parse(&format!("[martians]\naccept = [\"reserved\"]\n{GOOD}")).unwrap();
        assert_eq!(accepting.martians, Martians { reserved: true, ..Martians::default() });
        assert_eq!(Config::parse(GOOD).unwrap().martians, Martians::default());
        let stages = format!("shape = \"three-stages\"\nthreads = 3\nsend_threads = 2\n{GOOD}");
        let config = Config::parse(&stages).unwrap();
        assert_eq!(config.shape, Shape::Three { receive: 1, send: 2 });
        assert_eq!((config.shape.receiving(3), config.shape.sending(3)), (1, 2));
        let xdp = stages.replace("device = \"eth0\"", "device = \"eth0\"\nbackend = \"af-xdp\"");
        assert_eq!(Config::parse(&xdp).unwrap().interfaces[0].backend.name(), "af-xdp");
    }

    #[test]
    fn interfaces_keep_their_numbers_when_others_come_and_go() {
        let lines = |lines: &[(&str, &str)]| {
            let line = |(name, device): &(&str, &str)| {
                format!("[[interface]]\nname = \"{name}\"\ndevice = \"{device}\"\n")
            };
            Config::parse(&lines.iter().map(line).collect::<String>()).unwrap()
        };
        let names = |config: &Config| -> Vec<String> {
            config.interfaces.iter().map(|line| format!("{} {}", line.name, line.backend.device())).collect()
        };
        let mut running = lines(&[("a", "eth0"), ("b", "eth1"), ("c", "eth2")]);
        for (next, expected) in [
            // Gone, and another order.
            (&[("c", "eth2"), ("a", "eth0")][..], &["a eth0", " eth1", "c eth2"][..]),
            // Another device of the same name, which is new.
            (&[("c", "eth3"), ("a", "eth0")], &["a eth0", " eth1", " eth2", "c eth3"]),
            // The device of before with another name has the number of before.
            (&[("x", "eth1"), ("a", "eth0"), ("c", "eth3")], &["a eth0", "x eth1", " eth2", "c eth3"]),
        ] {
            let mut config = lines(next);
            config.keep_numbers(&running);
            assert_eq!(names(&config), expected);
            assert!(config.interfaces.iter().all(|line| line.removed == line.name.is_empty()));
            running = config;
        }
    }

    #[test]
    fn a_program_may_know_other_structures() {
        // The library's oracle under another name.
        let abacus = || {
            let mut engine = registry::find::<u32>("binary-trie").unwrap();
            engine.name = "abacus";
            vec![engine]
        };
        let engines = Engines::new(abacus, Vec::new);
        let text = |family: &str, name: &str| format!("{family}_engine = \"{name}\"\n{GOOD}");
        let config = Config::parse_among(&text("ipv4", "abacus"), engines).unwrap();
        assert_eq!((config.ipv4.name, config.ipv6), ("abacus", Config::parse(GOOD).unwrap().ipv6));
        let error = Config::parse_among(&text("ipv6", "abacus"), engines).unwrap_err();
        assert!(error.to_string().contains("no engine 'abacus' for IPv6"), "{error}");
        let error = Config::parse(&text("ipv4", "poptrie")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1: 'poptrie' for IPv4 is for comparison: 'fibula-lab router' takes it"
        );
        assert!(Config::parse(&text("ipv4", "abacus")).is_err());
        let error = Config::parse(&format!("\nipv6_algorithm = \"planb\"\n{GOOD}")).unwrap_err();
        assert_eq!(error.to_string(), "line 2: 'ipv6_algorithm' is now 'ipv6_engine'");
    }
}
