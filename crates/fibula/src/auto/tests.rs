//! The choice against what was measured.

use super::measured::curves;
use super::*;
use crate::net::{NextHop, Route, RouteSlice};

/// Every use that was measured as it stands.
fn measured_uses<K: Key>() -> Vec<Use> {
    let mut uses = Vec::new();
    for curve in curves().iter().filter(|curve| curve.family == K::FAMILY.name()) {
        for point in &curve.points {
            let routes = point.routes as usize;
            let host_routes = if curve.hosts { routes } else { 0 };
            let wanted = Use {
                routes,
                host_routes,
                batch: curve.batch,
                isa: curve.isa,
                l2_bytes: None,
                bytes_most: None,
            };
            if !uses.contains(&wanted) {
                uses.push(wanted);
            }
        }
    }
    uses
}

fn the_choice_is_within_five_percent<K: Key>() {
    let uses = measured_uses::<K>();
    assert!(!uses.is_empty());
    for wanted in uses {
        let choice = choose::<K>(&wanted, None).unwrap();
        // Everybody whose kernels for this set were measured over this table in this batch.
        let best = curves()
            .iter()
            .filter(|curve| curve.serves::<K>(&wanted) && curve.batch == wanted.batch)
            .flat_map(|curve| &curve.points)
            .filter(|point| point.routes as usize == wanted.routes)
            .map(|point| point.mlps)
            .fold(0.0, f64::max);
        assert!(choice.mlps >= TIE * best, "{wanted:?}: {choice}, where {best} was measured");
        assert!(choice.algorithm.families.contains(K::FAMILY));
    }
}

#[test]
fn every_choice_is_within_five_percent_of_the_best_measured() {
    the_choice_is_within_five_percent::<u32>();
    the_choice_is_within_five_percent::<u128>();
}

#[test]
fn what_is_in_use_stays_until_another_is_a_tenth_faster() {
    for wanted in measured_uses::<u128>() {
        let ranked = rank::<u128>(&wanted);
        let fastest = ranked[0];
        for choice in &ranked {
            let kept = choose::<u128>(&wanted, Some(choice.algorithm.name)).unwrap();
            if fastest.mlps <= choice.mlps * CHANGE {
                assert_eq!(kept.algorithm.name, choice.algorithm.name);
            } else {
                assert!(kept.mlps >= fastest.mlps * TIE);
            }
        }
        // What nobody knows is not in use.
        assert_eq!(
            choose::<u128>(&wanted, Some("abacus")).unwrap().algorithm.name,
            choose::<u128>(&wanted, None).unwrap().algorithm.name
        );
    }
}

#[test]
fn bytes_and_sets_are_limits() {
    let wanted = Use { routes: 900_000, batch: 256, isa: Isa::Scalar, ..Use::default() };
    let choices = rank::<u32>(&wanted);
    assert!(choices.iter().all(|choice| choice.isa == Isa::Scalar));
    let most = choices.iter().map(|choice| choice.bytes).min().unwrap();
    let smallest = rank::<u32>(&Use { bytes_most: Some(most), ..wanted });
    assert!(!smallest.is_empty() && smallest.iter().all(|choice| choice.bytes <= most));
    assert!(choose::<u32>(&Use { bytes_most: Some(1), ..wanted }, None).is_none());
}

#[test]
fn a_larger_cache_makes_a_table_smaller() {
    let wanted = Use { routes: 900_000, ..Use::default() };
    let rate = |l2_bytes| rank::<u32>(&Use { l2_bytes: Some(l2_bytes), ..wanted })[0].mlps;
    let scaled = rank::<u32>(&Use { routes: 450_000, ..wanted })[0].mlps;
    assert!((rate(2 * l2_bytes()) - scaled).abs() < 1e-6 * scaled);
}

#[test]
fn the_routes_of_a_table_are_counted() {
    let routes: Vec<_> = [("10.0.0.0/8", 1), ("10.1.0.0/30", 2), ("10.1.0.1/32", 3), ("10.2.0.0/31", 4)]
        .map(|(prefix, id)| Route::<u32>::new(prefix.parse().unwrap(), NextHop::new(id).unwrap()))
        .into();
    let wanted = Use::default().with_table(&RouteSlice::new(&routes).unwrap());
    assert_eq!((wanted.routes, wanted.host_routes), (4, 2));
}

#[test]
fn a_choice_says_why() {
    let wanted = Use { routes: 900_000, ..Use::default() };
    let choice = choose::<u32>(&wanted, None).unwrap();
    let text = choice.to_string();
    assert!(text.starts_with(choice.algorithm.name) && text.contains("M/s expected"), "{text}");
}
