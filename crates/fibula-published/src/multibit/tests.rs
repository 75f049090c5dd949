//! Strides that no registry entry has, and the numbers of nodes and reads that the paper's tables have.

use super::Multibit;
use fibula::fib::{Applied, Fib, Updatable};
use fibula::net::{Change, Key, NextHop, Prefix, Route, RouteSlice, Toy};
use fibula::rib::Rib;
use fibula::unstable::memory::Limits;
use fibula::unstable::testing::Random;

fn route<K: Key>(bits: u128, len: u8, id: u32) -> Route<K> {
    Route::new(Prefix::masked(K::from_bits(bits), len).unwrap(), NextHop::new(id).unwrap())
}

fn build<K: Key>(routes: &[Route<K>], stride: u32) -> Multibit<K> {
    let trie = Multibit::build(&RouteSlice::new(routes).unwrap(), stride, Limits::default()).unwrap();
    trie.check().unwrap();
    trie
}

#[test]
fn the_chapter_s_example() {
    let table = [route(0, 1, 1), route(0b0100 << 4, 2, 2), route(0b0110 << 4, 4, 3)];
    let trie = build::<Toy<8>>(&table, 2);
    assert_eq!(trie.nodes(), 2);
    let slots: Vec<_> = trie.slots.iter().map(|slot| (slot.next_hop, slot.node)).collect();
    assert_eq!(slots, [(1, 0), (2, 1), (0, 0), (0, 0), (0, 0), (0, 0), (3, 0), (0, 0)]);
    assert_eq!(trie.lens.iter().as_slice(), [2, 3, 0, 0, 0, 0, 3, 0]);
}

#[test]
fn a_host_route_takes_a_node_and_a_read_a_level() {
    for stride in 1..=16 {
        let (ipv4, ipv6) =
            (build::<u32>(&[route(7, 32, 1)], stride), build::<u128>(&[route(7, 128, 1)], stride));
        assert_eq!(
            (ipv4.reads(7), ipv4.nodes()),
            (32_u32.div_ceil(stride), 32_usize.div_ceil(stride as usize))
        );
        assert_eq!((ipv6.reads(7), ipv6.reads(1 << 127)), (128_u32.div_ceil(stride), 1));
        assert_eq!(Multibit::<u128>::most_reads(stride), ipv6.reads(7));
    }
    assert_eq!((Multibit::<u32>::most_reads(4), Multibit::<u128>::most_reads(4)), (8, 32));
}

/// The paper's tables, smaller by 2^8: all hosts of one block, and all prefixes of one length.
#[test]
fn full_blocks_fill_their_nodes() {
    let hosts: Vec<Route<u32>> = (0..1 << 16).map(|host| route(0x0a00_0000 | host, 32, 1)).collect();
    let trie = build(&hosts, 4);
    assert_eq!((trie.nodes(), trie.reads(0x0a00_1234)), (4 + (1 + 16 + 256 + 4096), 8));
    let sites: Vec<Route<u32>> = (0..1 << 16).map(|site| route(site << 16, 16, 1)).collect();
    let trie = build(&sites, 4);
    assert_eq!((trie.nodes(), trie.reads(0x0a00_1234)), (1 + 16 + 256 + 4096, 4));
    assert_eq!(trie.memory().lookup_bytes, trie.nodes() * 128);
}

#[test]
fn strides_that_no_node_can_have_are_errors() {
    for stride in [0, 17, 32, u32::MAX] {
        let error = Multibit::<u32>::build(&Rib::default(), stride, Limits::default()).unwrap_err();
        let text = format!("multibit: at most 16 bits a level, and not 0, this table needs {stride}");
        assert_eq!(error.to_string(), text);
        assert!(error.is_limit());
    }
}

/// Tables of a few prefixes that change at random, at every stride, compared with the RIB at every address.
#[test]
fn every_stride_follows_changes() {
    let mut random = Random(5);
    for stride in 1..=12 {
        let mut rib = Rib::<Toy<8>>::default();
        let mut trie = Multibit::build(&rib, stride, Limits::default()).unwrap();
        for _ in 0..300 {
            let changes: Vec<_> = (0..1 + random.below(4))
                .map(|_| {
                    let route =
                        route(random.below(256).into(), random.below(9) as u8, 1 + random.below(3) as u32);
                    if random.below(5) < 3 { Change::Insert(route) } else { Change::Remove(route.prefix) }
                })
                .collect();
            rib.apply(&changes).unwrap();
            assert_eq!(trie.apply(&changes, &rib), Ok(Applied::InPlace));
            trie.check().unwrap();
            for key in (0..256).map(Toy::from_bits) {
                assert_eq!(trie.lookup_key(key), rib.lookup(key), "stride {stride}, {changes:?}");
            }
        }
        let routes: Vec<_> = rib.iter().collect();
        assert_eq!(build(&routes, stride).nodes(), trie.nodes(), "empty nodes are freed");
    }
}
