//! What the test machine does not compare with its model: copies, limits, accounts and errors.

use core::error::Error;

use super::*;

fn table(routes: &[(&str, u32)]) -> Rib<u32> {
    let mut rib = Rib::default();
    for &(prefix, id) in routes {
        rib.insert(Route::new(prefix.parse().unwrap(), NextHop::new(id).unwrap())).unwrap();
    }
    rib
}

fn routes(rib: &Rib<u32>) -> Vec<Route<u32>> {
    rib.into_iter().collect()
}

#[test]
fn a_copy_has_the_same_routes_and_changes_alone() {
    let rib = table(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
    let mut copy = rib.clone();
    assert_eq!(routes(&copy), routes(&rib));
    copy.clear();
    assert_eq!((copy.len(), rib.len()), (0, 2));
}

#[test]
fn limits_hold_from_when_they_are_set() {
    let mut rib = table(&[("10.0.0.0/8", 1)]);
    rib.set_limits(Limits::within(0));
    let held = rib.memory();
    let many: Vec<_> = (0..100_u32)
        .map(|at| Change::Insert(Route::new(Prefix::masked(at << 16, 16).unwrap(), NextHop::new(1).unwrap())))
        .collect();
    let error = rib.apply(&many).unwrap_err();
    assert_eq!(error.out_of_memory().limit_bytes, Some(0));
    assert!(error.to_string().starts_with("the table cannot grow: the memory limit is 0 bytes"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), error.out_of_memory().to_string());
    assert_eq!((rib.len(), rib.memory()), (1, held));
    rib.set_limits(Limits::default());
    rib.apply(&many).unwrap();
    assert_eq!(rib.len(), 101);
}

#[test]
fn every_next_hop_can_be_replaced() {
    let mut rib = table(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
    rib.map_next_hops(|route| NextHop::new(route.next_hop.id() + 10).unwrap());
    assert_eq!(routes(&rib), routes(&table(&[("10.0.0.0/8", 11), ("10.1.0.0/16", 12)])));
}

#[test]
fn spare_memory_is_given_back() {
    let mut rib = table(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
    let before = rib.memory();
    assert!(before.held_bytes() > before.lookup_bytes);
    rib.shrink();
    assert_eq!(rib.memory().lookup_bytes, before.lookup_bytes);
    assert_eq!(rib.memory().held_bytes(), before.lookup_bytes);
    rib.check().unwrap();
}

#[test]
fn the_table_is_a_set_of_routes() {
    let rib = table(&[("10.0.0.0/8", 1), ("10.1.0.0/16", 2)]);
    let set: &dyn Routes<u32> = &rib;
    assert_eq!((set.len(), set.is_empty()), (2, false));
    assert_eq!(set.parent("10.1.0.0/16".parse().unwrap()), rib.iter().next());
    let mut walked = 0;
    let end = set.visit("10.1.0.0/16".parse().unwrap(), &mut |_| {
        walked += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((end, walked), (ControlFlow::Continue(()), 1));
}
