//! Writes a table dump the size of a route collector's: `TABLE_DUMP_V2`, every peer with every prefix, compressed by
//! gzip. The routes are generated; do not commit the file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use fibula_workload::random::Random;
use fibula_workload::table::{Profile, TableSpec, generate};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Outcome;

pub(super) fn run(path: &str, peers: u16, prefixes: usize) -> Outcome {
    let start = Instant::now();
    let spec = TableSpec { routes: prefixes, ..TableSpec::ipv4() };
    let routes = generate::<u32>(&spec, &Profile::ipv4())?;
    let mut out = BufWriter::new(GzEncoder::new(File::create(path)?, Compression::fast()));
    let mut bytes = 0;
    let mut write = |record: &[u8]| {
        bytes += record.len();
        out.write_all(record)
    };
    write(&peer_table(peers))?;
    let mut random = Random::new(1);
    for (sequence, route) in routes.iter().enumerate() {
        let prefix = route.prefix;
        let mut body = Vec::with_capacity(usize::from(peers) * 80);
        body.extend((sequence as u32).to_be_bytes());
        body.push(prefix.len());
        body.extend(&prefix.addr().to_be_bytes()[..usize::from(prefix.len().div_ceil(8))]);
        body.extend(peers.to_be_bytes());
        // One origin and its upstream; the rest of the path differs from peer to peer.
        let tail =
            [route.next_hop.id() + 2_000, route.next_hop.id() % 97 + 60_000, sequence as u32 % 70_000 + 1];
        let hops = random.word();
        for peer in 0..peers {
            entry(&mut body, peer, &tail, hops >> (peer % 32));
        }
        write(&record(2, &body))?;
    }
    drop(out.into_inner()?.finish()?);
    println!(
        "{path}: {} routes, {bytes} bytes before compression, {} s",
        usize::from(peers) * routes.len(),
        start.elapsed().as_secs()
    );
    Ok(())
}

/// An MRT record of type `TABLE_DUMP_V2` (RFC 6396 section 4.3).
fn record(subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(12 + body.len());
    record.extend(1_700_000_000u32.to_be_bytes());
    record.extend(13u16.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

fn peer_address(peer: u16) -> [u8; 4] {
    [198, 18, (peer >> 8) as u8, peer as u8]
}

fn peer_table(peers: u16) -> Vec<u8> {
    let mut body = vec![192, 0, 2, 1, 0, 0];
    body.extend(peers.to_be_bytes());
    for peer in 0..peers {
        // An IPv4 address and an AS of four bytes.
        body.push(2);
        body.extend(peer_address(peer));
        body.extend(peer_address(peer));
        body.extend((64_500 + u32::from(peer)).to_be_bytes());
    }
    record(1, &body)
}

fn entry(body: &mut Vec<u8>, peer: u16, tail: &[u32], hops: u64) {
    let mut attributes = vec![0x40, 1, 1, 0, 0x40, 2];
    let mut path = vec![64_500 + u32::from(peer)];
    path.extend((0..hops % 3).map(|hop| 3_000 + u32::from(peer) * 3 + hop as u32));
    path.extend(tail);
    attributes.push(2 + 4 * path.len() as u8);
    attributes.extend([2, path.len() as u8]);
    attributes.extend(path.iter().flat_map(|asn| asn.to_be_bytes()));
    attributes.extend([0x40, 3, 4]);
    attributes.extend(peer_address(peer));
    if hops & 4 != 0 {
        attributes.extend([0x80, 4, 4, 0, 0, 0, (hops >> 3) as u8]);
    }
    let communities = hops % 5;
    if communities > 0 {
        attributes.extend([0xc0, 8, 4 * communities as u8]);
        for community in 0..communities {
            attributes.extend((64_500 + u32::from(peer)).to_be_bytes()[2..].iter());
            attributes.extend((1_000 + community as u16).to_be_bytes());
        }
    }
    body.extend(peer.to_be_bytes());
    body.extend(1_699_000_000u32.to_be_bytes());
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
}
