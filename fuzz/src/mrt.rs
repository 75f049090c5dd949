//! MRT records: ours against `bgpkit-parser`, which reads whole records; ours uses its decoder of path attributes only.
//!
//! Where both read a record without a fault, they must report the same routes of the same peers. The bytes are also loaded
//! as a file, by one thread and by several, which must give the same table, and read as messages of BMP.

use std::net::IpAddr;

use bgpkit_parser::Elementor;
use bgpkit_parser::models::{Bgp4MpEnum, ElemType, MrtMessage};
use bgpkit_parser::parser::mrt::mrt_record::parse_mrt_record;
use bytes::Bytes;
use fibula::net::{Dual, Family, IpPrefix};
use fibula_feed::bmp::{self, PeerHeader, Peers};
use fibula_feed::event::{Action, Event, Path, Peer};
use fibula_feed::mrt::{self, Fault, Frame, Header, Mention, PeerIndexTable, Record, Sink, Skipped};
use fibula_feed::{LoadOptions, LoadedRoutes, Loader, Selection, Source};

/// Whether announced, by which peer, the prefix, and the next hop.
type Said = (bool, IpAddr, u32, String, Option<IpAddr>);

pub(crate) fn compare(bytes: &[u8]) {
    let mut rest = bytes;
    let mut peers: Option<(PeerIndexTable, Elementor)> = None;
    loop {
        match Frame::next(rest, true) {
            Frame::Record(header) => {
                let (record, following) = rest.split_at(header.record_bytes());
                record_alone(header, record, &mut peers);
                rest = following;
            }
            Frame::Lost(count) => {
                assert!((1..=rest.len()).contains(&count));
                rest = &rest[count..];
            }
            Frame::Cut => break,
            Frame::More => panic!("there is no more"),
        }
    }
    whole(bytes);
    monitored(bytes);
}

fn record_alone(header: Header, bytes: &[u8], peers: &mut Option<(PeerIndexTable, Elementor)>) {
    let record = Record { header, body: Bytes::copy_from_slice(&bytes[Header::BYTES..]) };
    let theirs = parse_mrt_record(&mut &bytes[..]);
    if let Some(table) = PeerIndexTable::read(&record) {
        *peers = None;
        if let (Ok(table), Ok(theirs)) = (table, theirs) {
            let mut elementor = Elementor::new();
            if elementor.set_peer_table(theirs).is_ok() {
                *peers = Some((table, elementor));
            }
        }
        return;
    }
    let mut ours = Gatherer::default();
    let outcome = mrt::decode(&record, peers.as_ref().map(|(table, _)| table), &mut ours);
    for fault in ours.faults.iter().chain(outcome.as_ref().err()) {
        assert!(fault.offset() <= bytes.len() as u64, "{fault}");
    }
    let Ok(theirs) = theirs else { return };
    // Their reader takes a prefix of length 0 for a path identifier, reads labels as prefixes, and reports messages that
    // the recorder itself sent.
    let comparable = outcome.is_ok() && ours.faults.is_empty() && !ours.skipped && !ours.has_default;
    if !comparable || !is_plain(&theirs.message) {
        return;
    }
    let mut empty = Elementor::new();
    let elementor = peers.as_mut().map_or(&mut empty, |(_, elementor)| elementor);
    let mut theirs: Vec<Said> = elementor
        .record_to_elems(theirs)
        .iter()
        .map(|elem| {
            let announced = elem.elem_type == ElemType::ANNOUNCE;
            let prefix = elem.prefix.prefix.trunc().to_string();
            (announced, elem.peer_ip, elem.peer_asn.into(), prefix, elem.next_hop.filter(|_| announced))
        })
        .collect();
    theirs.sort();
    ours.said.sort();
    let without =
        |said: &[Said]| said.iter().map(|said| (said.0, said.1, said.2, said.3.clone())).collect::<Vec<_>>();
    assert_eq!(without(&ours.said), without(&theirs));
    // Of NEXT_HOP and MP_REACH_NLRI theirs may return the one that belongs to the other family.
    for (ours, theirs) in ours.said.iter().zip(&theirs) {
        let same_family =
            ours.4.map(|address| address.is_ipv4()) == theirs.4.map(|address| address.is_ipv4());
        assert!(
            !same_family || ours.4 == theirs.4 || ours.4.is_some_and(is_link_local),
            "{ours:?} {theirs:?}"
        );
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn is_plain(message: &MrtMessage) -> bool {
    match message {
        MrtMessage::TableDumpMessage(_) | MrtMessage::TableDumpV2Message(_) => true,
        MrtMessage::Bgp4Mp(Bgp4MpEnum::Message(message)) => !message.is_local(),
        _ => false,
    }
}

#[derive(Default)]
struct Gatherer {
    said: Vec<Said>,
    faults: Vec<Fault>,
    has_default: bool,
    skipped: bool,
}

impl Gatherer {
    fn say(&mut self, announced: bool, peer: Option<Peer>, path: Path, next_hop: Option<IpAddr>) {
        let Some(peer) = peer else { panic!("records name their peers") };
        let prefix = match path.prefix {
            IpPrefix::V4(prefix) => prefix.to_string(),
            IpPrefix::V6(prefix) => prefix.to_string(),
        };
        self.has_default |= path.prefix.len() == 0;
        self.said.push((announced, peer.address, peer.asn, prefix, next_hop));
    }
}

impl Sink for Gatherer {
    fn wants(&mut self, _: &Peer, _: Option<u16>, _: &Path, _: Mention) -> bool {
        true
    }

    fn event(&mut self, event: Event) {
        match event.action {
            Action::Announce(route) => {
                let next_hop = route.attributes.as_ref().and_then(|attributes| attributes.next_hop());
                self.say(true, event.peer, route.path, next_hop);
            }
            Action::Withdraw(path) => self.say(false, event.peer, path, None),
            Action::SessionEnd | Action::Nothing => {}
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    fn skipped(&mut self, kind: Skipped, _: usize) {
        self.skipped |= kind.loses_routes();
    }
}

/// The bytes as messages of BMP: none panics, whatever came before it.
fn monitored(bytes: &[u8]) {
    let (mut peers, mut gatherer, mut rest) = (Peers::default(), Gatherer::default(), bytes);
    while let bmp::Frame::Message(header) = bmp::Frame::next(rest, 1 << 16) {
        let (message, following) = rest.split_at(header.len as usize);
        if let Err(fault) = bmp::decode(&bmp::Message::new(header, message), &mut peers, &mut gatherer) {
            assert!(fault.offset() <= message.len() as u64, "{fault}");
            break;
        }
        rest = following;
    }
}

impl bmp::Sink for Gatherer {
    fn up(&mut self, _: &PeerHeader, _: Dual<bool>) {}

    fn down(&mut self, _: &PeerHeader, _: u8) {}

    fn routes(&mut self, _: &PeerHeader) -> bool {
        true
    }

    fn end_of_rib(&mut self, _: &PeerHeader, _: Family) {}

    fn router(&mut self, _: &str) {}

    fn ends(&mut self, _: &str) {}
}

fn whole(bytes: &[u8]) {
    let load = |selection: Selection, threads| {
        let mut options = LoadOptions::default();
        options.selection = selection;
        options.threads = threads;
        Loader::new(options).load(Source::reader("fuzz", bytes))
    };
    for selection in [Selection::MostRoutes, Selection::Best] {
        match (load(selection.clone(), 1), load(selection, 2)) {
            (Ok(one), Ok(two)) => {
                assert_eq!(routes(&one), routes(&two));
                one.ribs.v4.check().unwrap();
                one.ribs.v6.check().unwrap();
            }
            (Err(one), Err(two)) => assert_eq!(one.to_string(), two.to_string()),
            (one, two) => panic!("{:?} {:?}", one.err(), two.err()),
        }
    }
}

fn routes(table: &LoadedRoutes) -> (String, String) {
    (
        format!("{:?}", table.ribs.v4.iter().collect::<Vec<_>>()),
        format!("{:?}", table.ribs.v6.iter().collect::<Vec<_>>()),
    )
}
