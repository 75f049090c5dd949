use std::collections::BTreeMap;
use std::sync::Mutex;

use fibula::Table;
use fibula::net::{Dual, IpPrefix, NextHop};

use super::*;
use crate::control::hops::Hops;
use crate::control::install::Install;
use crate::feed::path::Path;
use crate::feed::routes::Routes;
use crate::feed::{Place, Rib};
use crate::forward::fabric::Vrf;

/// A RIB, two tables, and the way between them.
struct Bench {
    rib: Mutex<Rib>,
    install: Install,
    hops: Hops,
    vrfs: Vec<Vrf>,
}

fn place(vrf: u16, text: &str) -> Place {
    (vrf, text.parse().unwrap())
}

impl Bench {
    fn new(count: u32) -> Self {
        let mut rib = Rib::new(vec![Routes::new("feed", 20, 100_000, 2)]);
        for n in 0..count {
            let place = place((n % 2) as u16, &format!("10.{}.{}.0/24", n >> 8, n & 255));
            rib.insert(0, place, 0, Path::Blackhole).unwrap();
        }
        rib.insert(0, place(1, "2001:db8::/32"), 0, Path::Unreachable).unwrap();
        rib.insert(0, place(1, "10.0.0.0/8"), 0, Path::Prohibit).unwrap();
        let vrf = |name: &str| Vrf { name: name.into(), table: Table::new().unwrap() };
        let vrfs = vec![vrf("default"), vrf("red")];
        let mut bench =
            Self { rib: Mutex::new(rib), install: Install::default(), hops: Hops::default(), vrfs };
        bench.enter();
        bench
    }

    fn enter(&mut self) {
        let devices = BTreeMap::new();
        let taken = self.install.take(&self.rib, (&[], &devices), &mut self.hops, None, usize::MAX);
        self.install.enter(&self.rib, &taken, &self.vrfs, &mut [Dual::default(); 2]).unwrap();
    }

    /// Compares everything, `most` prefixes at a time.
    fn walk(&self, most: usize) -> (u64, Vec<TableDifference>) {
        let (mut walk, rib) = (Walk::default(), lock(&self.rib));
        let scene = Scene { rib: &rib, install: &self.install, vrfs: &self.vrfs };
        while !walk.step(&scene, most).unwrap() {}
        (walk.compared(), walk.differences(&scene).unwrap())
    }
}

#[test]
fn equal_tables_are_walked_whole_in_any_steps() {
    let bench = Bench::new(1000);
    for most in [1, 7, 256, 1002, 5000] {
        assert_eq!(bench.walk(most), (1002, vec![]), "{most} at a time");
    }
}

#[test]
fn what_differs_is_named_and_changes_under_way_are_not() {
    let mut bench = Bench::new(10);
    let other = NextHop::try_from(77).unwrap();
    let prefix = |text: &str| text.parse::<IpPrefix>().unwrap();
    let right = bench.vrfs[1].table.get(prefix("2001:db8::/32")).unwrap();
    bench.vrfs[0].table.remove(prefix("10.0.4.0/24")).unwrap();
    bench.vrfs[0].table.insert(prefix("192.0.2.0/24"), other).unwrap();
    bench.vrfs[1].table.insert(prefix("2001:db8::/32"), other).unwrap();
    let (compared, found) = bench.walk(3);
    assert_eq!((compared, found.len()), (13, 3));
    assert_eq!(found[1].place, place(0, "192.0.2.0/24"));
    assert_eq!(found[1].found, Found::Table { rib: None, fib: Some(other) });
    assert_eq!(
        (found[2].place, found[2].found),
        (place(1, "2001:db8::/32"), Found::Table { rib: right, fib: Some(other) })
    );
    let Found::Table { rib: Some(_), fib: None } = found[0].found else { panic!("{found:?}") };
    // A prefix that is given back has a change under way, and is right afterwards.
    lock(&bench.rib).put_back(found.iter().map(|difference| difference.place), false);
    assert_eq!(bench.walk(3), (10, vec![]));
    bench.enter();
    assert_eq!(bench.walk(3), (12, vec![]));
    // So is everything.
    lock(&bench.rib).put_back([], true);
    assert_eq!(bench.walk(3), (0, vec![]));
}

/// How long a pass takes: `cargo test --release -p fibula-router --lib a_full_table -- --ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn the_cost_of_a_full_table() {
    let mut rib = Rib::new(vec![Routes::new("feed", 20, 2_000_000, 1)]);
    for n in 0..900_000u32 {
        let prefix = fibula::net::Prefix::masked(0x0100_0000 + (n << 8), 24).unwrap();
        rib.insert(0, (0, IpPrefix::V4(prefix)), 0, Path::Blackhole).unwrap();
    }
    for n in 0..200_000u128 {
        let prefix = fibula::net::Prefix::masked(0x2001_0000 << 96 | n << 80, 48).unwrap();
        rib.insert(0, (0, IpPrefix::V6(prefix)), 0, Path::Blackhole).unwrap();
    }
    let vrfs = vec![Vrf { name: "default".into(), table: Table::new().unwrap() }];
    let mut bench = Bench { rib: Mutex::new(rib), install: Install::default(), hops: Hops::default(), vrfs };
    let begin = Instant::now();
    bench.enter();
    println!("entered in {:.2} s", begin.elapsed().as_secs_f64());
    for most in [STEP, STEP_OF_CLIENT] {
        let begin = Instant::now();
        let (compared, found) = bench.walk(most);
        assert_eq!((compared, found.len()), (1_100_000, 0));
        let ns = begin.elapsed().as_nanos() / u128::from(compared);
        println!("{most} at a time: {ns} ns a prefix");
    }
}
