//! What holds between the types of this module.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::ControlFlow;

use super::*;

fn hop(id: u32) -> NextHop {
    NextHop::new(id).unwrap()
}

/// All prefixes of three bits, in order.
fn prefixes() -> Vec<Prefix<Toy<3>>> {
    let mut all: Vec<_> = (0..=3)
        .flat_map(|len| (0..8).map(move |bits| Prefix::masked(Toy::from_bits(bits), len).unwrap()))
        .collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 15);
    all
}

#[test]
fn a_slice_of_routes_finds_parents_and_subnets() {
    let prefixes = prefixes();
    // Tables of every density: each holds the prefixes whose number has a bit in common with the mask.
    for mask in 0..16 {
        let routes: Vec<_> = prefixes
            .iter()
            .zip(1..)
            .filter(|&(_, id)| id & mask != 0)
            .map(|(&prefix, id)| Route::new(prefix, hop(id)))
            .collect();
        let slice = RouteSlice::new(&routes).unwrap();
        assert_eq!(Routes::len(&slice), routes.len());
        assert_eq!(slice.is_empty(), mask == 0);
        for &prefix in &prefixes {
            let around = routes.iter().filter(|route| route.prefix != prefix && route.prefix.covers(prefix));
            let longest = around.max_by_key(|route| route.prefix.len()).copied();
            assert_eq!(slice.parent(prefix), longest, "{prefix} in {routes:?}");
            let mut inside = Vec::new();
            let _ = slice.visit(prefix, &mut |route| {
                inside.push(route);
                ControlFlow::Continue(())
            });
            let expected: Vec<_> =
                routes.iter().filter(|route| prefix.covers(route.prefix)).copied().collect();
            assert_eq!(inside, expected, "{prefix} in {routes:?}");
        }
    }
}

#[test]
fn a_walk_ends_at_the_first_error() {
    let routes: Vec<_> = prefixes().into_iter().map(|prefix| Route::new(prefix, hop(1))).collect();
    let slice = RouteSlice::new(&routes).unwrap();
    let mut seen = 0;
    let walk = (&slice as &dyn Routes<_>).try_for_each(Prefix::ALL, |route| {
        seen += 1;
        if seen == 4 { Err(route.prefix) } else { Ok(()) }
    });
    assert_eq!((walk, seen), (Err(routes[3].prefix), 4));
}

#[test]
fn routes_out_of_order_are_named() {
    let route = |text: &str| Route::new(text.parse::<Prefix<u32>>().unwrap(), hop(1));
    let error = |texts: &[&str]| {
        RouteSlice::new(&texts.iter().map(|text| route(text)).collect::<Vec<_>>()).map(|_| ()).unwrap_err()
    };
    let swapped = error(&["10.0.0.0/8", "10.0.0.0/9", "9.0.0.0/8"]);
    assert_eq!(swapped.index(), 2);
    assert!(swapped.to_string().starts_with("route 2 sorts before"), "{swapped}");
    let twice = error(&["10.0.0.0/8", "10.0.0.0/8"]);
    assert_eq!(twice.index(), 1);
    assert!(twice.to_string().starts_with("route 1 repeats"), "{twice}");
}

#[test]
fn batches_know_their_length() {
    let bytes = [0; 64];
    for count in [0, 1, 2] {
        let strided = Strided::<u32>::new(&bytes, 0, 8, count).unwrap();
        for keys in
            [Keys::Host(&[0, 1][..count]), Keys::Network(&[[0; 4], [1; 4]][..count]), Keys::Strided(strided)]
        {
            assert_eq!((keys.len(), keys.is_empty()), (count, count == 0), "{keys:?}");
        }
    }
}

#[test]
fn a_batch_of_other_length_than_its_results_is_an_error() {
    assert_eq!(BatchError::check(3, 3), Ok(()));
    let error = BatchError::check(3, 2).unwrap_err();
    assert_eq!((error.keys(), error.results()), (3, 2));
    assert!(error.to_string().ends_with("3 keys, 2 results"), "{error}");
}

#[test]
fn network_order_and_addresses_are_keys() {
    assert_eq!(Keys::<u32>::from(&[[0; 4]; 3][..]).len(), 3);
    assert_eq!(Keys::<u128>::from(&[[0; 16]; 2][..]).len(), 2);
    assert_eq!(IntoKey::<u32>::into_key(Ipv4Addr::new(192, 0, 2, 1)), 0xc000_0201);
    assert_eq!(IntoKey::<u128>::into_key(Ipv6Addr::LOCALHOST), 1);
    assert_eq!(IntoKey::<u32>::into_key(7_u32), 7);
}

#[test]
fn a_pair_gives_references_to_both() {
    let mut pair = Dual::new(1, "x");
    assert_eq!((*pair.as_ref().v4, *pair.as_ref().v6), (1, "x"));
    *pair.as_mut().v4 = 2;
    *pair.as_mut().v6 = "y";
    assert_eq!(pair, Dual { v4: 2, v6: "y" });
}

#[test]
fn kernels_of_a_family_get_the_keys_themselves() {
    let (v4, v6, toy) = ([1, 2, 3_u32], [1, 2, 3_u128], [Toy::<8>::MAX]);
    assert_eq!(Key::as_ipv4(&v4).map(<[u32]>::as_ptr), Some(v4.as_ptr()));
    assert_eq!(Key::as_ipv6(&v6).map(<[u128]>::as_ptr), Some(v6.as_ptr()));
    assert_eq!((u32::as_ipv4(&v4), u32::as_ipv6(&v4)), (Some(&v4[..]), None));
    assert_eq!((u128::as_ipv4(&v6), u128::as_ipv6(&v6)), (None, Some(&v6[..])));
    assert_eq!((Toy::as_ipv4(&toy), Toy::as_ipv6(&toy)), (None, None));
}

#[test]
fn addresses_of_both_families_convert() {
    let (v4, v6): (Ipv4Addr, Ipv6Addr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
    for (address, text, len) in [(IpAddr::V4(v4), "192.0.2.1/32", 32), (v6.into(), "2001:db8::1/128", 128)] {
        let prefix = IpPrefix::from(address);
        assert_eq!((prefix.to_string().as_str(), prefix.len()), (text, len));
        assert_eq!(parse_address(address.to_string().as_bytes()), Ok(address));
    }
    assert_eq!(IpPrefix::from(v4), IpPrefix::V4(v4.into()));
    assert_eq!(IpPrefix::from(v6), IpPrefix::V6(v6.into()));
    let v4_net: Prefix<u32> = "192.0.2.0/24".parse().unwrap();
    let v6_net: Prefix<u128> = "2001:db8::/32".parse().unwrap();
    assert_eq!((v4_net.network(), v6_net.network()), ([192, 0, 2, 0].into(), "2001:db8::".parse().unwrap()));
    assert_eq!(Prefix::try_from(IpPrefix::V4(v4_net)), Ok(v4_net));
    assert_eq!(Prefix::<u128>::try_from(IpPrefix::V4(v4_net)), Err(IpPrefix::V4(v4_net)));
    assert_eq!(ipnet::Ipv4Net::from(v4_net).to_string(), "192.0.2.0/24");
    assert_eq!(ipnet::Ipv6Net::from(v6_net).to_string(), "2001:db8::/32");
}

#[test]
fn a_prefix_contains_addresses_of_its_family_alone() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    let (v4, v6): (IpPrefix, IpPrefix) = ("192.0.2.0/24".parse().unwrap(), "::/0".parse().unwrap());
    assert_eq!((v4.family(), v6.family()), (Family::Ipv4, Family::Ipv6));
    assert!(v4.contains(address("192.0.2.255")) && !v4.contains(address("192.0.3.0")));
    assert!(v6.contains(address("::ffff:192.0.2.1")) && !v6.contains(address("192.0.2.1")));
    assert!(!v4.contains(address("::ffff:192.0.2.1")));
}

#[test]
fn next_hops_are_words_without_zero() {
    assert_eq!(NextHop::new(0), None);
    assert!(NextHop::try_from(0).is_err());
    for id in [1, 7, u32::MAX] {
        let next_hop = hop(id);
        assert_eq!((next_hop.id(), u32::from(next_hop), next_hop.to_string()), (id, id, id.to_string()));
        assert_eq!(NextHop::try_from(id).ok(), Some(next_hop));
        assert_eq!(NextHop::from(core::num::NonZeroU32::new(id).unwrap()), next_hop);
        assert_eq!(NextHop::word(Some(next_hop)), id);
    }
    assert_eq!(NextHop::word(None), 0);
    let mut results = [None, Some(hop(9))];
    NextHop::words(&mut results).copy_from_slice(&[3, 0]);
    assert_eq!(results, [Some(hop(3)), None]);
}

#[test]
fn a_change_names_its_prefix() {
    let prefix: Prefix<u32> = "10.0.0.0/8".parse().unwrap();
    assert_eq!(Change::Insert(Route::new(prefix, hop(1))).prefix(), prefix);
    assert_eq!(Change::Remove(prefix).prefix(), prefix);
}

#[test]
fn families_have_names_for_scripts_and_for_people() {
    let names = [Family::Ipv4, Family::Ipv6].map(|family| (family.name(), family.to_string()));
    assert_eq!(names, [("ipv4", "IPv4".to_owned()), ("ipv6", "IPv6".to_owned())]);
    assert_eq!(format!("[{:>6}]", Family::Ipv4), "[  IPv4]");
}

#[test]
fn faults_have_a_place_and_a_reason() {
    let address = u32::parse(b"10.0.300.1").unwrap_err();
    assert_eq!((address.offset(), address.reason().to_string()), (5, "a number is above 255".to_owned()));
    let toy = Toy::<3>::parse(b"8").unwrap_err();
    assert_eq!((toy.offset(), toy.reason().to_string()), (0, "above 7".to_owned()));
    let letter = Toy::<3>::parse(b"1x").unwrap_err();
    assert_eq!((letter.offset(), letter.reason().to_string()), (1, "unexpected 'x'".to_owned()));
    assert_eq!(Toy::<3>::parse(b"").unwrap_err().reason().to_string(), "empty");
    let prefix = "10.0.0.0/33".parse::<Prefix<u32>>().unwrap_err();
    assert_eq!(prefix.offset(), Some(9));
    assert_eq!(prefix.reason().to_string(), "prefix length 33 is above the 32 bits of IPv4");
    assert!(!prefix.is_host_bits());
    let of_numbers = Prefix::<u32>::masked(0, 33).unwrap_err();
    assert_eq!((of_numbers.offset(), of_numbers.to_string()), (None, prefix.reason().to_string()));
}

#[test]
fn ranges_are_the_fewest_prefixes() {
    let aligned = |from: u128, len: u32| from.is_multiple_of(1 << (6 - len));
    for (first, last) in (0..64_u128).flat_map(|first| (0..64).map(move |last| (first, last))) {
        let parts: Vec<_> = prefixes_of(Toy::<6>::from_bits(first)..=Toy::from_bits(last)).collect();
        let mut next = first;
        for part in &parts {
            assert_eq!(part.addr().to_bits(), next);
            next = part.last().to_bits() + 1;
            // None could be wider: the block that is twice as large does not begin here, or ends too late.
            let wider = u32::from(part.len()).checked_sub(1);
            assert!(wider.is_none_or(|len| !aligned(part.addr().to_bits(), len)
                || part.addr().to_bits() + (1 << (6 - len)) > last + 1));
        }
        assert_eq!(next, first.max(last + 1).min(if first > last { first } else { 64 }));
    }
    assert_eq!(prefixes_of::<u128, _>(0..=u128::MAX).collect::<Vec<_>>(), [Prefix::ALL]);
    assert_eq!(prefixes_of::<u128, _>(1..=u128::MAX).count(), 128);
    assert_eq!(prefixes_of::<u128, _>(1..=u128::MAX - 1).count(), 254);
    assert_eq!(prefixes_of(u32::MAX..=u32::MAX).collect::<Vec<_>>(), [Prefix::host(u32::MAX)]);
}
