//! Next hops that VRFs have in common.

use super::{NextHops, Resolved};
use crate::memory::Limits;
use crate::net::{Change, IpPrefix, NextHop, Prefix, Route};
use crate::random::Random;
use crate::rib::{DualRib, Rib};
use crate::vrf::{Options, Vrf, Vrfs};

fn prefix(text: &str) -> IpPrefix {
    text.parse().unwrap()
}

#[test]
fn vrfs_have_their_next_hops_in_common() {
    let vrfs = Vrfs::new().unwrap();
    let hops = NextHops::new(&vrfs).unwrap();
    let (one, two) = (hops.add("one").unwrap(), hops.add("two").unwrap());
    let both = hops.add_group(&[(one, 1), (two, 1)]).unwrap();
    let (red, blue) = (vrfs.create().unwrap(), vrfs.create().unwrap());
    vrfs.insert(red, prefix("192.0.2.0/24"), both).unwrap();
    vrfs.insert(blue, prefix("192.0.2.0/24"), one).unwrap();
    vrfs.insert(blue, prefix("2001:db8::/32"), two).unwrap();
    assert_eq!((hops.routes_of(one), hops.routes_of(both)), (Ok(1), Ok(1)));

    let mut reader = hops.reader().unwrap();
    let pin = reader.pin();
    let key = 0xc000_0201_u32;
    assert_eq!(pin.lookup(blue, key, 7).value(), Some(&"one"));
    assert_eq!(pin.lookup(Vrf::new(9), key, 7), Resolved::NoRoute);
    let hashes: Vec<u32> = (0..300).collect();
    let columns: Vec<Vrf> = hashes.iter().map(|hash| if hash % 3 == 0 { blue } else { red }).collect();
    let mut members = vec![None; hashes.len()];
    let counts = pin.lookup_batch(&columns, &vec![key; hashes.len()], &hashes, &mut members);
    assert_eq!(counts.found, hashes.len());
    for ((&vrf, &hash), &member) in columns.iter().zip(&hashes).zip(&members) {
        assert_eq!(member, pin.lookup(vrf, key, hash).member());
        assert!(vrf == red || member == Some(one));
    }
    hops.withdraw(one).unwrap();
    assert!((0..300).all(|hash| pin.lookup(red, key, hash).member() == Some(two)));
    assert_eq!(pin.lookup(blue, key, 7), Resolved::Withdrawn(one));
    hops.check().unwrap();
    assert!(NextHops::<()>::new(&crate::Table::new().unwrap()).is_ok());
    assert!(NextHops::<u8, _>::new(&vrfs).is_err(), "numbered already");
}

#[test]
fn numbers_come_back_when_no_vrf_has_them() {
    // Tables of more than four routes are structures, so that VRFs move from blocks to structures and back.
    let options = Options { small_routes: 4, limits: Limits::default(), ..Options::default() };
    let vrfs = Vrfs::with_options(options).unwrap();
    let hops = NextHops::new(&vrfs).unwrap();
    let (mut random, unknown) = (Random(5), NextHop::new(99).unwrap());
    let mut there: Vec<Vrf> = (0..3).map(|_| vrfs.create().unwrap()).collect();
    let ids: Vec<NextHop> = (0..6).map(|number| hops.add(number).unwrap()).collect();
    for _ in 0..400 {
        let at = random.below(there.len() as u64) as usize;
        let id = ids[random.below(ids.len() as u64) as usize];
        let number = random.below(8) as u32;
        let prefix = Prefix::<u32>::new(number << 24, 8).unwrap();
        match random.below(8) {
            0 => {
                let mut rib = Rib::default();
                rib.insert(Route::new(prefix, id)).unwrap();
                vrfs.swap(there[at], &mut DualRib::new(rib, Rib::default())).unwrap();
            }
            1 => {
                vrfs.delete(there[at]).unwrap();
                there[at] = vrfs.create().unwrap();
            }
            2..4 => drop(vrfs.apply(there[at], &[Change::Remove(prefix)]).unwrap()),
            // A number that was not given out is counted apart.
            4 => drop(vrfs.apply(there[at], &[Change::Insert(Route::new(prefix, unknown))]).unwrap()),
            _ => drop(vrfs.apply(there[at], &[Change::Insert(Route::new(prefix, id))]).unwrap()),
        }
        hops.check().unwrap();
        vrfs.maintain().unwrap();
    }
    for id in ids {
        hops.remove(id).unwrap();
    }
    for vrf in there {
        vrfs.delete(vrf).unwrap();
    }
    hops.maintain().unwrap();
    let statistics = hops.statistics().unwrap();
    assert_eq!((statistics.hops, statistics.leaving, statistics.free), (0, 0, statistics.numbers));
    hops.check().unwrap();
    vrfs.check().unwrap();
}
