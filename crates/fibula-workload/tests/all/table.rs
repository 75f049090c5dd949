//! Generated tables keep every promise of their spec and profile.

use fibula::net::{Key, Prefix, Route, RouteSlice, Toy};
use fibula_workload::table::{Block, Profile, TableError, TableSpec, Zone, generate};

fn spec(routes: usize, seed: u64) -> TableSpec {
    TableSpec { routes, next_hops: 256, seed }
}

/// A table, held against the promises that every table keeps.
fn table<K: Key>(spec: &TableSpec, profile: &Profile) -> Vec<Route<K>> {
    let routes = generate::<K>(spec, profile).unwrap();
    assert_eq!(routes.len(), spec.routes);
    RouteSlice::new(&routes).unwrap();
    let inside = |block: Block, prefix: Prefix<K>| {
        Prefix::new(K::from_bits(block.addr), block.len).unwrap().covers(prefix)
    };
    for route in &routes {
        let prefix = route.prefix;
        assert!(profile.lengths.iter().any(|line| line.len == prefix.len()), "{prefix}");
        assert!(profile.zones.iter().any(|zone| inside(zone.block, prefix)), "{prefix}");
        for &block in &profile.reserved {
            assert!(!Prefix::new(K::from_bits(block.addr), block.len).unwrap().overlaps(prefix), "{prefix}");
        }
        assert!(route.next_hop.id() <= spec.next_hops);
    }
    routes
}

/// FNV-1a over all fields.
fn checksum<K: Key>(routes: &[Route<K>]) -> u64 {
    let fields = routes.iter().flat_map(|route| {
        [route.prefix.addr().to_bits(), route.prefix.len().into(), route.next_hop.id().into()]
    });
    fields.flat_map(u128::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn sizes<K: Key>(profile: &Profile, most: usize) {
    for routes in [0, 1, 2, 3, 10, 100, 1_000, most] {
        for seed in 0..3 {
            table::<K>(&spec(routes.min(most), seed), profile);
        }
    }
}

#[test]
fn every_size_is_met_exactly_in_every_family() {
    sizes::<u32>(&Profile::ipv4(), 30_000);
    sizes::<u128>(&Profile::ipv6(), 30_000);
    sizes::<u32>(&Profile::ipv4().with_long_prefixes::<u32>(20_000), 30_000);
    sizes::<u128>(&Profile::ipv6().with_long_prefixes::<u128>(20_000), 30_000);
    sizes::<Toy<16>>(&Profile::toy(16), 2_000);
    sizes::<Toy<8>>(&Profile::toy(8), 200);
}

#[test]
fn a_space_can_be_filled_to_the_last_slot_and_no_further() {
    let profile = Profile::toy(8);
    let limit: usize = profile.lengths.iter().map(|line| 1 << line.len).sum();
    for routes in [limit / 2, limit - 1, limit] {
        table::<Toy<8>>(&spec(routes, 7), &profile);
    }
    let error = generate::<Toy<8>>(&spec(limit + 1, 7), &profile).unwrap_err();
    assert_eq!(error, TableError::Full { limit: limit as u128, need: limit + 1 });
    for bits in [1, 3, 16] {
        assert_eq!(Profile::toy(bits).lengths.last().unwrap().len, bits);
    }
    table::<Toy<3>>(&spec(8, 1), &Profile::toy(3));
    table::<Toy<1>>(&spec(2, 1), &Profile::toy(1));
    assert!(matches!(
        generate::<u32>(&spec(40_000_000, 1), &Profile::ipv4()),
        Err(TableError::Full { need: 40_000_000, .. })
    ));
}

#[test]
fn impossible_demands_are_errors() {
    let none = TableSpec { next_hops: 0, ..spec(1, 1) };
    assert_eq!(generate::<u32>(&none, &Profile::ipv4()), Err(TableError::NoNextHops));
    assert!(generate::<u32>(&TableSpec { routes: 0, ..none }, &Profile::ipv4()).unwrap().is_empty());
    assert!(matches!(generate::<u32>(&spec(1, 1), &Profile::ipv6()), Err(TableError::Profile(_))));
    let zone = |addr, len| Zone { block: Block { addr, len }, weight: 1 };
    let broken: [fn(&mut Profile); 6] = [
        |profile| profile.lengths.reverse(),
        |profile| profile.partings.clear(),
        |profile| profile.partings.reverse(),
        |profile| profile.partings[0].skew_percent[0] = 101,
        |profile| profile.next_hops.own_permille = 1001,
        |profile| profile.reserved[0].addr += 1,
    ];
    for (index, break_it) in broken.iter().enumerate() {
        let mut profile = Profile::ipv4();
        break_it(&mut profile);
        let outcome = generate::<u32>(&spec(10, 1), &profile);
        assert!(matches!(outcome, Err(TableError::Profile(_))), "fault {index} passes");
    }
    let overlapping = Profile { zones: vec![zone(0, 1), zone(1 << 30, 2)], ..Profile::ipv4() };
    assert!(matches!(generate::<u32>(&spec(10, 1), &overlapping), Err(TableError::Profile(_))));
    let nowhere = Profile { zones: Vec::new(), ..Profile::ipv4() };
    assert_eq!(generate::<u32>(&spec(1, 1), &nowhere), Err(TableError::Full { limit: 0, need: 1 }));
}

#[test]
fn a_seed_gives_the_same_table_everywhere() {
    // These change only when the profiles or the generator are meant to change: records name a table by its spec.
    let checksums = [
        checksum(&table::<u32>(&spec(5_000, 1), &Profile::ipv4())),
        checksum(&table::<u128>(&spec(5_000, 1), &Profile::ipv6())),
        checksum(&table::<Toy<16>>(&spec(500, 1), &Profile::toy(16))),
    ];
    assert_eq!(checksums, [11_578_295_525_086_547_159, 143_015_823_331_960_415, 3_306_643_416_082_999_325]);
    assert_ne!(checksums[0], checksum(&table::<u32>(&spec(5_000, 2), &Profile::ipv4())));
}

fn shape<K: Key>(spec: &TableSpec, profile: &Profile, nested: core::ops::Range<f64>) {
    let routes = table::<K>(spec, profile);
    let share = |count: usize| count as f64 / routes.len() as f64;
    let weight: u32 = profile.lengths.iter().map(|line| line.weight).sum();
    for line in &profile.lengths {
        let count = routes.iter().filter(|route| route.prefix.len() == line.len).count();
        // The shortest lengths have more weight in a small table than there are slots.
        let off = share(count) - f64::from(line.weight) / f64::from(weight);
        assert!(off.abs() < 0.001, "/{}: off by {off}", line.len);
    }
    let shape = fibula_workload::table::shape(&RouteSlice::new(&routes).unwrap(), &[]);
    assert!(nested.contains(&shape.nested()), "{} nested", shape.nested());
    assert!(
        shape.depths.windows(2).all(|pair| pair[0] > pair[1]) && shape.depths.len() > 5,
        "{:?}",
        shape.depths
    );
    assert_eq!(shape.popularity.len(), spec.next_hops as usize);
    let top = [1, 8, 64].map(|count| shape.top(count));
    assert!((0.17..0.27).contains(&top[0]), "{top:?}");
    assert!((0.55..0.70).contains(&top[1]), "{top:?}");
    assert!((0.85..0.95).contains(&top[2]), "{top:?}");
}

#[test]
fn tables_have_the_shape_of_the_internet() {
    shape::<u32>(&TableSpec::ipv4(), &Profile::ipv4(), 0.45..0.60);
    shape::<u128>(&TableSpec::ipv6(), &Profile::ipv6(), 0.45..0.65);
}

#[test]
fn long_prefixes_come_on_demand_only() {
    let long = |routes: &[Route<u32>]| routes.iter().filter(|route| route.prefix.len() > 24).count();
    assert_eq!(long(&table(&spec(10_000, 1), &Profile::ipv4())), 0);
    let profile = Profile::ipv4().with_long_prefixes::<u32>(100_000);
    let found = long(&table(&spec(10_000, 1), &profile));
    assert!((850..970).contains(&found), "{found}");
}

#[test]
fn a_smaller_table_stays_as_dense_where_it_is() {
    fn ranges_per_route<K: Key>(spec: TableSpec, profile: &Profile) -> f64 {
        let routes = table::<K>(&spec, profile);
        let shape = fibula_workload::table::shape(&RouteSlice::new(&routes).unwrap(), &[]);
        shape.ranges as f64 / spec.routes as f64
    }
    let of_ipv4 = |routes| ranges_per_route::<u32>(spec(routes, 1), &Profile::ipv4());
    let of_ipv6 = |routes| ranges_per_route::<u128>(spec(routes, 2), &Profile::ipv6());
    assert!((0.9..1.15).contains(&(of_ipv4(250_000) / of_ipv4(900_000))));
    assert!((0.9..1.15).contains(&(of_ipv6(76_342) / of_ipv6(230_000))));
}

#[test]
fn presets_are_made_by_name() {
    let preset = fibula_workload::table::preset("ipv6-2019").unwrap();
    assert_eq!(preset.spec(), TableSpec { routes: 76_342, ..TableSpec::ipv6() });
    table::<u128>(&preset.spec(), &Profile::ipv6());
}
