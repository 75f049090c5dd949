//! Messages are read back by a reader that knows templates and nothing of this router.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::time::Duration;

use proptest::prelude::*;

use super::elements::Element;
use super::exporter::{ExportSettings, Exporter, Moment};
use super::observed::{Observed, Origin};
use super::origins::Origins;
use super::status::forwarding_status;
use super::templates::interface_number;
use super::top::{KEPT, Recent, by_origin, top};
use crate::acl::HeaderFields;
use crate::api::{Top, TopBy};
use crate::drops::DropReason;
use crate::forward::fabric::Gateway;
use crate::forward::sample::Sample;
use crate::forward::trace::Fate;

/// The bytes of a record, by element.
type Values = Vec<(u16, Vec<u8>)>;

/// A collector: it has the templates that it was sent, and refuses whatever the RFC does not allow.
#[derive(Default)]
struct Reader {
    /// Fields and scope fields, by number.
    templates: HashMap<u16, (Vec<(u16, u16)>, usize)>,
    sequence: u32,
    /// The records: number of the template, and the bytes of each element.
    records: Vec<(u16, Values)>,
    messages: usize,
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at_checked(count).expect("bytes");
        self.0 = rest;
        taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }
}

impl Reader {
    fn read(&mut self, message: &[u8], domain: u32) {
        let mut bytes = Bytes(message);
        assert_eq!(bytes.u16(), 10);
        assert_eq!(usize::from(bytes.u16()), message.len());
        bytes.u32();
        assert_eq!(bytes.u32(), self.sequence, "records were lost");
        assert_eq!(bytes.u32(), domain);
        self.messages += 1;
        while !bytes.0.is_empty() {
            let (id, len) = (bytes.u16(), bytes.u16());
            assert!(len > 4, "a set without records");
            let mut set = Bytes(bytes.take(usize::from(len) - 4));
            match id {
                2 | 3 => self.template(&mut set, id == 3),
                _ => {
                    while !set.0.is_empty() {
                        self.data(id, &mut set);
                    }
                }
            }
        }
    }

    fn template(&mut self, set: &mut Bytes<'_>, options: bool) {
        while !set.0.is_empty() {
            let (id, fields) = (set.u16(), set.u16());
            assert!(id > 255 && fields > 0);
            let scope = if options { set.u16() } else { 0 };
            assert_eq!(options, scope > 0, "options have a scope");
            let fields = (0..fields).map(|_| (set.u16(), set.u16())).collect();
            self.templates.insert(id, (fields, scope.into()));
        }
    }

    fn data(&mut self, id: u16, set: &mut Bytes<'_>) {
        let (fields, _) = self.templates.get(&id).expect("the template comes before its records");
        let mut values = Vec::new();
        for &(element, len) in fields {
            let len = match len {
                u16::MAX => match set.take(1)[0] {
                    255 => set.u16(),
                    short => short.into(),
                },
                len => len,
            };
            values.push((element, set.take(len.into()).to_vec()));
        }
        self.records.push((id, values));
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Returns the values of the samples: element by element, as numbers.
    fn samples(&self) -> Vec<HashMap<u16, u128>> {
        let samples = self.records.iter().filter(|record| record.0 < 258);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
        samples.map(|(_, values)| values.iter().map(|(id, bytes)| (*id, number(bytes))).collect()).collect()
    }
}

fn settings(collectors: &[&UdpSocket]) -> ExportSettings {
    ExportSettings {
        collectors: collectors.iter().map(|socket| socket.local_addr().unwrap()).collect(),
        source: None,
        domain: 3,
        templates_s: 60,
        message_bytes: 512,
    }
}

fn listening() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn read_all(socket: &UdpSocket, reader: &mut Reader) {
    let mut bytes = [0; 2000];
    while let Ok(len) = socket.recv(&mut bytes) {
        assert!(len <= 512, "a message of {len} bytes");
        reader.read(&bytes[..len], 3);
    }
}

fn at(milliseconds: u64) -> Moment {
    Moment { monotonic: Duration::from_millis(milliseconds), unix_ms: 1_700_000_000_000 + milliseconds }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Forwarded),
        Just(Fate::Waiting),
        Just(Fate::Delivered),
        Just(Fate::Consumed),
        (0..DropReason::ALL.len()).prop_map(|at| Fate::Dropped(DropReason::ALL[at])),
    ]
}

prop_compose! {
    fn observed()(
        v6 in any::<bool>(), addresses in any::<[u128; 3]>(), bytes in any::<[u8; 8]>(), ports in any::<Option<(u16, u16)>>(),
        tcp_flags in any::<Option<u8>>(), icmp in any::<Option<(u8, u8)>>(), interfaces in any::<(u16, Option<u16>)>(),
        sizes in any::<(u32, u16)>(), numbers in any::<[u32; 2]>(), times in 0..u64::MAX / 2, fate in fate(),
    ) -> Observed {
        let cut = |address: u128| if v6 { address } else { address & u128::from(u32::MAX) };
        let packet = HeaderFields {
            v6, source: cut(addresses[0]), destination: cut(addresses[1]), protocol: bytes[0], ports, tcp_flags, icmp,
            length: sizes.1, dscp: bytes[1] >> 2, fragment: 0, input: interfaces.0, output: interfaces.1, vrf: sizes.1,
        };
        let gateway = match bytes[2] & 3 {
            0 => None,
            1 => Some(Gateway::V4(addresses[2] as u32)),
            _ => Some(Gateway::V6(addresses[2])),
        };
        let sample = Sample {
            packet, traffic_class: bytes[1], ttl: bytes[3], bytes: sizes.0, packets: sizes.1, gateway, fate, interval: 10,
        };
        let most = if v6 { 129 } else { 33 };
        let origin = |at: usize| Origin { len: bytes[4 + at] % most, has_route: true, origin: numbers[at] };
        Observed { sample, at_ms: times, source: origin(0), destination: origin(1) }
    }
}

/// Returns the elements of a sample, from the sample itself.
fn expected(observed: &Observed) -> HashMap<u16, u128> {
    let (sample, packet) = (&observed.sample, &observed.sample.packet);
    let ports = packet.ports.unwrap_or_default();
    let icmp = packet.icmp.unwrap_or_default();
    let next_hop = match (packet.v6, sample.gateway) {
        (false, Some(Gateway::V4(gateway))) => u128::from(gateway),
        (true, Some(Gateway::V6(gateway))) => gateway,
        _ => 0,
    };
    let [source, destination, via, from_len, to_len, icmp_type] =
        if packet.v6 { [27, 28, 62, 29, 30, 139] } else { [8, 12, 15, 9, 13, 32] };
    HashMap::from([
        (source, packet.source),
        (destination, packet.destination),
        (via, next_hop),
        (from_len, observed.source.len.into()),
        (to_len, observed.destination.len.into()),
        (icmp_type, u128::from(icmp.0) << 8 | u128::from(icmp.1)),
        (4, packet.protocol.into()),
        (5, sample.traffic_class.into()),
        (192, sample.ttl.into()),
        (89, forwarding_status(sample.fate).into()),
        (7, ports.0.into()),
        (11, ports.1.into()),
        (6, packet.tcp_flags.unwrap_or(0).into()),
        (10, interface_number(Some(packet.input)).into()),
        (14, interface_number(packet.output).into()),
        (234, packet.vrf.into()),
        (16, observed.source.origin.into()),
        (17, observed.destination.origin.into()),
        (1, sample.bytes.into()),
        (2, sample.packets.into()),
        (152, observed.at_ms.into()),
        (153, observed.at_ms.into()),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn samples_are_read_back_as_they_were(list in proptest::collection::vec(observed(), 1..300)) {
        let socket = listening();
        let mut exporter = Exporter::new(settings(&[&socket]), 10, vec!["lan".into(), "wan".into()]);
        let mut reader = Reader::default();
        for (number, observed) in list.iter().enumerate() {
            exporter.put(*observed, at(number as u64));
            read_all(&socket, &mut reader);
        }
        exporter.flush(at(1000));
        read_all(&socket, &mut reader);
        let health = &exporter.health()[0];
        prop_assert_eq!(u64::from(reader.sequence), health.records.load(std::sync::atomic::Ordering::Relaxed));
        // Families are apart within each part that was sent at once, so the order within a family stays.
        for v6 in [false, true] {
            let is_v6 = |record: &&HashMap<u16, u128>| record.contains_key(&27) == v6;
            let got: Vec<_> = reader.samples().iter().filter(is_v6).cloned().collect();
            let wanted: Vec<_> = list.iter().filter(|one| one.sample.packet.v6 == v6).map(expected).collect();
            prop_assert_eq!(got, wanted);
        }
    }
}

fn simple(destination: u32, interval: u32, at_ms: u64) -> Observed {
    let packet = HeaderFields { destination: destination.into(), output: Some(1), ..HeaderFields::default() };
    let sample = Sample {
        packet,
        traffic_class: 0,
        ttl: 64,
        bytes: 100,
        packets: 1,
        gateway: None,
        fate: Fate::Forwarded,
        interval,
    };
    let known = Origin { len: 24, has_route: true, origin: destination >> 8 };
    Observed { sample, at_ms, source: Origin::default(), destination: known }
}

#[test]
fn templates_come_first_and_again_by_time() {
    let socket = listening();
    let mut exporter =
        Exporter::new(settings(&[&socket]), 10, vec!["lan".into(), String::new(), "wan".into()]);
    let mut templates = 0;
    for second in 0..200 {
        let mut reader = Reader::default();
        exporter.turn(at(second * 1000));
        let mut bytes = [0; 2000];
        while let Ok(len) = socket.recv(&mut bytes) {
            reader.sequence = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
            reader.read(&bytes[..len], 3);
        }
        if reader.messages > 0 {
            templates += 1;
            assert_eq!(second % 60, 0);
            let names: Vec<_> = reader.records.iter().filter(|record| record.0 == 259).collect();
            assert_eq!(names.len(), 2, "an interface that was removed has no name");
            assert_eq!(names[1].1, [(10, vec![0, 0, 0, 3]), (82, b"wan".to_vec())]);
            let selector = &reader.records.iter().find(|record| record.0 == 258).unwrap().1;
            let value =
                |element: Element| &selector.iter().find(|field| field.0 == element as u16).unwrap().1;
            assert_eq!(value(Element::SamplingPacketSpace)[..], [0, 0, 0, 9]);
            assert_eq!(value(Element::SamplingProbability)[..], 0.1_f64.to_be_bytes());
        }
    }
    assert_eq!(templates, 4);
}

#[test]
fn samples_wait_a_second_at_most_and_go_out_when_they_are_many() {
    let socket = listening();
    let mut exporter = Exporter::new(settings(&[&socket]), 10, Vec::new());
    let mut reader = Reader::default();
    exporter.put(simple(1, 10, 5), at(0));
    exporter.turn(at(999));
    read_all(&socket, &mut reader);
    assert_eq!(reader.samples().len(), 0);
    exporter.turn(at(1000));
    read_all(&socket, &mut reader);
    assert_eq!(reader.samples().len(), 1);
    for number in 0..256 {
        exporter.put(simple(number, 10, 5), at(1001));
    }
    read_all(&socket, &mut reader);
    assert_eq!(reader.samples().len(), 257);
}

#[test]
fn another_interval_is_announced_before_its_samples() {
    let socket = listening();
    let mut exporter = Exporter::new(settings(&[&socket]), 10, Vec::new());
    for (number, interval) in [10, 10, 500, 500, 500].into_iter().enumerate() {
        exporter.put(simple(number as u32, interval, 5), at(0));
    }
    exporter.flush(at(0));
    let mut reader = Reader::default();
    read_all(&socket, &mut reader);
    let spaces = reader.records.iter().map(|(id, values)| match id {
        258 => u64::from(u32::from_be_bytes(values.last().unwrap().1[..].try_into().unwrap())),
        _ => 0,
    });
    assert_eq!(spaces.collect::<Vec<_>>(), [9, 0, 0, 499, 0, 0, 0]);
}

#[test]
fn a_collector_that_refuses_costs_the_others_nothing() {
    let (silent, good) = (listening(), listening());
    let gone = listening();
    let settings = settings(&[&silent, &gone, &good]);
    drop(gone);
    let mut exporter = Exporter::new(settings, 10, Vec::new());
    let mut reader = Reader::default();
    for number in 0..2000 {
        exporter.put(simple(number, 10, 5), at(u64::from(number)));
        exporter.turn(at(u64::from(number)));
        read_all(&good, &mut reader);
    }
    exporter.flush(at(2000));
    read_all(&good, &mut reader);
    assert_eq!(reader.samples().len(), 2000);
    let health = exporter.health();
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    assert!(count(&health[1].faults) > 0 && count(&health[1].left_out) > 0, "{:?}", health[1]);
    assert!(count(&health[1].messages) < count(&health[2].messages) / 2, "{:?}", health[1]);
    // Over UDP, one that only stays silent is like one that hears.
    assert_eq!((count(&health[0].faults), count(&health[0].records)), (0, count(&health[2].records)));
}

#[test]
fn sessions_go_on_with_collectors_that_stay() {
    let (one, other) = (listening(), listening());
    let mut exporter = Exporter::new(settings(&[&one]), 10, Vec::new());
    let (mut reader, mut second) = (Reader::default(), Reader::default());
    exporter.put(simple(1, 10, 5), at(0));
    exporter.change(settings(&[&other, &one]), vec!["lan".into()], at(1));
    exporter.put(simple(2, 10, 5), at(2));
    exporter.flush(at(3));
    read_all(&one, &mut reader);
    read_all(&other, &mut second);
    assert_eq!((reader.samples().len(), second.samples().len()), (2, 1));
    // Nothing changes, so nothing is announced.
    exporter.change(settings(&[&other, &one]), vec!["lan".into()], at(4));
    exporter.turn(at(5));
    let messages = second.messages;
    read_all(&other, &mut second);
    assert_eq!(second.messages, messages);
}

#[test]
fn the_largest_come_first_with_their_errors() {
    let mut samples = Vec::new();
    for number in 0..400_u32 {
        let mut one = simple(0x0a00_0000 + ((number % 4) << 8) + number % 7, 100, 5);
        one.sample.packet.input = if number % 4 == 0 { 2 } else { 0 };
        if number % 10 == 0 {
            (one.sample.fate, one.sample.packet.output) = (Fate::Dropped(DropReason::NoRoute), None);
            one.destination = Origin::default();
        }
        samples.push(one);
    }
    let interfaces = ["lan".to_owned(), "wan".to_owned(), "dmz".to_owned()];
    let (all, rows) = top(&samples, TopBy::Interface, 10, &interfaces);
    assert_eq!((all.samples, all.packets, all.bytes), (400, 40_000, 4_000_000));
    // 1.96 * sqrt(400 * 100 * 99)
    assert_eq!((all.packets_error, all.bytes_error), (3900, 390_035));
    let named = |rows: &[crate::api::TopRow]| -> Vec<(String, u64)> {
        rows.iter().map(|row| (row.name.clone(), row.samples)).collect()
    };
    let wanted = [("lan > wan", 280), ("dmz > wan", 80), ("lan > -", 20), ("dmz > -", 20)];
    assert_eq!(named(&rows), wanted.map(|(name, count)| (name.to_owned(), count)));
    let (_, rows) = top(&samples, TopBy::Prefix, 3, &interfaces);
    let wanted = [("10.0.1.0/24", 100), ("10.0.3.0/24", 100), ("10.0.0.0/24", 80)];
    assert_eq!(named(&rows), wanted.map(|(name, count)| (name.to_owned(), count)));
    let (_, rows) = top(&samples, TopBy::Outcome, 3, &interfaces);
    assert_eq!(named(&rows), [("forwarded".to_owned(), 360), ("dropped: no-route".to_owned(), 40)]);
    let (_, rows) = top(&samples, TopBy::As, 1, &interfaces);
    assert_eq!(rows[0].name, "AS655361");
    let (_, rows) = top(&samples, TopBy::SourcePrefix, 1, &interfaces);
    assert_eq!(named(&rows), [("no route".to_owned(), 400)]);
    let (all, rows) = top(&[], TopBy::Source, 10, &interfaces);
    assert!(all.packets == 0 && rows.is_empty());
    // As the guide says: 20 % with 100 samples, 2 % with 10,000, and less where most packets are drawn.
    for (count, percent) in [(100, 19.6), (10_000, 1.96)] {
        for (interval, most) in [(10, 0.06), (100, 0.006), (100_000, 0.001)] {
            let (all, _) = top(&vec![simple(1, interval, 5); count], TopBy::Source, 1, &interfaces);
            for (sum, error) in [(all.packets, all.packets_error), (all.bytes, all.bytes_error)] {
                let found = 100.0 * error as f64 / sum as f64;
                assert!((1.0 - most..1.001).contains(&(found / percent)), "{count} {interval}: {found}");
            }
        }
    }
    // All packets drawn are an exact count.
    let (all, _) = top(&[simple(1, 1, 5), simple(2, 1, 5)], TopBy::Source, 1, &interfaces);
    assert_eq!((all.packets, all.packets_error, all.bytes_error), (2, 0, 0));
}

#[test]
fn rows_by_address_become_rows_by_as() {
    let path = std::env::temp_dir().join(format!("fibula-top-{}", std::process::id()));
    std::fs::write(&path, "10.0.0.0/8 64500\n10.0.1.0/24 64501\n").unwrap();
    let origins = Origins::load(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let samples: Vec<_> = (0..90).map(|number| simple(0x0a00_0000 + ((number % 3) << 8), 100, 5)).collect();
    let (all, rows) = top(&samples, TopBy::Destination, KEPT, &[]);
    assert_eq!(rows.len(), 3);
    let (by, collectors) = (TopBy::Destination, Vec::new());
    let answer =
        Top { by, seconds: 1.0, interval: 100, all, rows, drawn: 90, lost: 0, unreadable: 0, collectors };
    let folded = by_origin(answer.clone(), TopBy::As, &origins, 10);
    let names: Vec<_> = folded.rows.iter().map(|row| (row.name.as_str(), row.samples, row.packets)).collect();
    assert_eq!(names, [("AS64500", 60, 6000), ("AS64501", 30, 3000)]);
    // As if the samples had been added up by AS: 1.96 * sqrt(60 * 100 * 99), but for rounding.
    assert!(folded.rows[0].packets_error.abs_diff(1511) <= 2, "{:?}", folded.rows);
    assert_eq!((folded.by, &folded.all), (TopBy::As, &answer.all));
    assert_eq!(by_origin(answer, TopBy::As, &origins, 1).rows.len(), 1);
}

#[test]
fn the_latest_samples_are_kept() {
    // The guide says some 10 MB.
    assert!((8_500_000..=10_500_000).contains(&(size_of::<Observed>() * KEPT)));
    let mut recent = Recent::new(1000);
    for at_ms in 1001..=5000 {
        recent.push(simple(1, 10, at_ms));
    }
    assert_eq!(recent.last(1, 5000).0.len(), 1000);
    let (samples, seconds) = recent.last(3600, 5000);
    assert_eq!((samples.len(), seconds), (4000, 4.0), "no longer than samples are kept");
    for _ in 0..KEPT {
        recent.push(simple(1, 10, 6000));
    }
    let (samples, seconds) = recent.last(60, 7000);
    assert_eq!((samples.len(), seconds), (KEPT, 2.0));
}

#[test]
fn the_guide_has_each_property_and_each_element() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/router.md"));
    let guide = guide.expect("docs/guide/router.md");
    let begin = guide.find("## Samples").expect("its section");
    let section = &guide[begin..guide[begin + 4..].find("\n## ").map_or(guide.len(), |end| begin + 4 + end)];
    for by in TopBy::ALL {
        assert!(
            section.contains(&format!("| `{}` | ", by.name())),
            "docs/guide/router.md lacks '{}'",
            by.name()
        );
    }
    // Addresses, ports and prefix lengths are there by their kinds.
    let by_kind = |name: &str| {
        ["Address", "Port", "PrefixLength"].iter().any(|end| name.ends_with(end))
            && !name.starts_with("ipNextHop")
    };
    for element in Element::ALL.iter().filter(|element| !by_kind(element.name())) {
        assert!(
            section.contains(&format!("`{}`", element.name())),
            "docs/guide/router.md lacks '{}'",
            element.name()
        );
    }
}
