//! BGP (RFC 6396 appendix B.2): the messages of a session as they were recorded until about 2001, before `BGP4MP`.
//!
//! Peers have IPv4 addresses and AS numbers of two bytes. A message is its body alone: marker, length and type are left
//! out, because the subtype gives the type.

use fibula::net::Dual;

use super::bgp4mp::state;
use super::{Cursor, FaultKind, Header, Kind, PeerIndexTable, Reading, Record, Sink, Skipped};
use crate::bgp::{self, AsWidth, PeerSession};
use crate::event::Peer;

pub(super) const KIND: Kind = Kind { name: "BGP", number: 5, subtypes: 8, decode };

fn decode(record: &Record, _: Option<&PeerIndexTable>, sink: &mut dyn Sink) -> Reading<()> {
    let at = record.cursor();
    let skipped = match record.header.subtype {
        0 => Skipped::without_routes("BGP_NULL"),
        1 => return update(record, at, sink),
        // Its layout was never published.
        2 => Skipped::with_routes("BGP_PREF_UPDATE"),
        3 => return state_change(record, at, sink),
        // Names the file that has the table.
        4 => Skipped::without_routes("BGP_SYNC"),
        5 => Skipped::without_routes("BGP OPEN"),
        6 => Skipped::without_routes("BGP NOTIFICATION"),
        7 => Skipped::without_routes("BGP KEEPALIVE"),
        subtype => return Err(FaultKind::Subtype { kind: KIND.name, subtype }.at(6)),
    };
    sink.skipped(skipped, 6);
    Ok(())
}

fn peer(at: &mut Cursor<'_>) -> Reading<Peer> {
    let asn = at.asn(false)?;
    Ok(Peer { address: at.address(false)?, asn })
}

fn update(record: &Record, mut at: Cursor<'_>, sink: &mut dyn Sink) -> Reading<()> {
    let remote = peer(&mut at)?;
    // The recorder's own end.
    peer(&mut at)?;
    let base = at.position();
    let session = PeerSession {
        time: record.header.time,
        peer: remote,
        width: Some(AsWidth::Two),
        add_path: Dual::default(),
    };
    bgp::update(&record.body.slice(base - Header::BYTES..), base, &session, sink)
}

/// Reads a state change. Unlike an UPDATE, it has the peer's end only.
fn state_change(record: &Record, mut at: Cursor<'_>, sink: &mut dyn Sink) -> Reading<()> {
    let peer = peer(&mut at)?;
    state(record.header.time, peer, at, sink)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use crate::mrt::tests::{attributes, legacy_state, legacy_update, nlri, record, told, update};

    const PEER: &str = "192.0.2.1";

    #[test]
    fn updates_and_states_of_the_early_format() {
        let announced = update(&nlri("10.1.0.0/16"), &attributes(2, 2, "192.0.2.9"), &nlri("10.0.0.0/8"));
        let bytes = [
            legacy_state(PEER, 64_501, 5, 6),
            legacy_update(PEER, 64_501, &announced),
            legacy_state(PEER, 64_501, 6, 1),
        ];
        assert_eq!(
            told(&bytes.concat()),
            [
                "byte 18: session state changes",
                "192.0.2.1 - 10.1.0.0/16",
                "192.0.2.1 + 10.0.0.0/8 via 192.0.2.9 (2)",
                "192.0.2.1 ends",
            ]
        );
    }

    #[test]
    fn other_subtypes_are_named_and_damage_is_placed() {
        let kinds = [(0, "BGP_NULL"), (2, "BGP_PREF_UPDATE"), (4, "BGP_SYNC"), (5, "BGP OPEN")];
        for (subtype, name) in kinds.into_iter().chain([(6, "BGP NOTIFICATION"), (7, "BGP KEEPALIVE")]) {
            assert_eq!(told(&record(5, subtype, &[])), [format!("byte 6: {name}")]);
        }
        // Where the body is too short for both ends, the states, the attributes.
        assert_eq!(told(&record(5, 1, &[0; 11])), ["byte 20: address: 4 bytes needed, 3 left"]);
        assert_eq!(told(&record(5, 3, &[0; 9])), ["byte 20: new state: 2 bytes needed, 1 left"]);
        let mut cut = legacy_update(PEER, 64_501, &update(&[], &attributes(2, 2, PEER), &[]));
        cut.truncate(cut.len() - 1);
        cut[11] -= 1;
        assert_eq!(told(&cut), ["byte 28: attributes: 20 bytes needed, 19 left"]);
    }

    /// The lines of `bgpdump -m` for these bytes.
    fn bgpdump(bytes: &[u8]) -> Vec<String> {
        let path = std::env::temp_dir().join(format!("fibula-legacy-{}.mrt", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let output = Command::new("bgpdump").arg("-m").arg(&path).output();
        std::fs::remove_file(&path).unwrap();
        let lines = String::from_utf8(output.expect("bgpdump is installed").stdout).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    /// Of a withdrawal bgpdump prints the peer's address before the length.
    #[test]
    #[ignore = "needs bgpdump"]
    fn bgpdump_reads_the_same() {
        let announced = update(&nlri("10.1.0.0/16"), &attributes(3, 2, "192.0.2.9"), &nlri("10.0.0.0/8"));
        let two = [nlri("172.16.0.0/12"), nlri("0.0.0.0/0")].concat();
        let bytes = [
            legacy_state(PEER, 64_501, 5, 6),
            legacy_update(PEER, 64_501, &announced),
            legacy_update("192.0.2.2", 7, &update(&[], &attributes(1, 2, "192.0.2.8"), &two)),
            legacy_state(PEER, 64_501, 6, 1),
        ]
        .concat();
        let theirs = bgpdump(&bytes);
        let brief = |line: &String| {
            let fields: Vec<&str> = line.split('|').collect();
            match fields[2] {
                "A" => {
                    let path_len = fields[6].split(' ').count();
                    format!("{} + {} via {} ({path_len})", fields[3], fields[5], fields[8])
                }
                "W" => format!("{} - /{}", fields[3], fields[5].rsplit('/').next().unwrap()),
                _ if (fields[5], fields[6]) == ("6", "1") => format!("{} ends", fields[3]),
                _ => "byte 18: session state changes".to_owned(),
            }
        };
        let theirs: Vec<String> = theirs.iter().map(brief).collect();
        let ours = told(&bytes).join("\n").replace("- 10.1.0.0/16", "- /16");
        assert_eq!(ours.lines().collect::<Vec<_>>(), theirs);
    }

    proptest! {
        /// A message says the same whether it was recorded as `BGP` or as `BGP4MP`.
        #[test]
        fn both_recordings_say_the_same(
            withdrawn in proptest::collection::vec((any::<u8>(), 0u8..=32), 0..5),
            announced in proptest::collection::vec((any::<u8>(), 0u8..=32), 0..5),
            path_len in 0u8..4,
            asn in any::<u16>(),
        ) {
            let field = |prefixes: &[(u8, u8)]| -> Vec<u8> {
                let one = |&(first, len): &(u8, u8)| {
                    let octets = [first, 0, 0, 0];
                    let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                    let masked = u32::from_be_bytes(octets) & mask;
                    [&[len][..], &masked.to_be_bytes()[..usize::from(len.div_ceil(8))]].concat()
                };
                prefixes.iter().flat_map(one).collect()
            };
            let update = update(&field(&withdrawn), &attributes(path_len, 2, "192.0.2.9"), &field(&announced));
            let modern = {
                let ends = [&asn.to_be_bytes()[..], &[0x33, 0x33, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0]].concat();
                record(16, 1, &[ends, update.clone()].concat())
            };
            let without_places = |bytes: &[u8]| -> Vec<String> {
                told(bytes).iter().map(|line| line.rsplit("byte ").next().unwrap().to_owned()).collect()
            };
            let (modern, legacy) = (without_places(&modern), without_places(&legacy_update(PEER, asn, &update)));
            let routes = |lines: &[String]| lines.iter().filter(|line| line.starts_with(PEER)).cloned().collect::<Vec<_>>();
            prop_assert_eq!(routes(&modern), routes(&legacy));
            prop_assert_eq!(modern.len(), legacy.len());
        }

        #[test]
        fn bytes_never_panic(subtype in 0u16..8, body in proptest::collection::vec(any::<u8>(), 0..80)) {
            told(&record(5, subtype, &body));
        }
    }
}
