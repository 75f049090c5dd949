//! Figures of a table, for people to read on a terminal and on a page.

use std::collections::HashMap;

use fibula::net::{Family, Key, NextHop};
use fibula::rib::Rib;
use fibula_feed::NextHops;
use fibula_workload::table::{Shape, shape};

use crate::text::{bytes, plural, thousands};

/// Next hops that are listed.
const TOP: usize = 8;

/// The figures of a family.
pub(super) struct FamilyFigures {
    pub(super) family: Family,
    pub(super) shape: Shape,
    pub(super) memory_bytes: usize,
    /// The most frequent next hops and their routes.
    pub(super) top: Vec<(String, usize)>,
}

/// Returns the figures of the routes of a family.
pub(super) fn figures<K: Key>(rib: &Rib<K>, next_hops: &NextHops) -> FamilyFigures {
    let mut counts: HashMap<NextHop, usize> = HashMap::new();
    for route in rib {
        *counts.entry(route.next_hop).or_default() += 1;
    }
    let mut top: Vec<(NextHop, usize)> = counts.into_iter().collect();
    top.sort_unstable_by_key(|&(next_hop, count)| (std::cmp::Reverse(count), next_hop));
    let name = |next_hop| next_hops.label(next_hop).map(ToString::to_string).unwrap_or_default();
    FamilyFigures {
        family: K::FAMILY,
        shape: shape(rib, &[]),
        memory_bytes: rib.memory().held_bytes(),
        top: top.into_iter().take(TOP).map(|(next_hop, count)| (name(next_hop), count)).collect(),
    }
}

/// Returns the figures of a family that are one number each.
pub(super) fn facts(figures: &FamilyFigures) -> [(&'static str, String); 7] {
    let FamilyFigures { shape, memory_bytes, .. } = figures;
    let nested: usize = shape.depths.iter().skip(1).sum();
    let announced = 100.0 * shape.announced;
    [
        ("routes", thousands(shape.routes)),
        ("next hops", thousands(shape.popularity.len())),
        ("announced", format!("{} % of the address space", significant(announced))),
        ("nested", nested_text(percent(nested, shape.routes), shape.depths.len().max(1) - 1)),
        (
            "same next hop",
            format!(
                "{} of nested routes have that of the route around them",
                percent(shape.same_as_cover, nested)
            ),
        ),
        (
            "ranges",
            format!(
                "{} ({} after merging equal neighbours)",
                thousands(shape.ranges),
                thousands(shape.merged)
            ),
        ),
        ("memory", format!("{} as a RIB", bytes(*memory_bytes))),
    ]
}

/// Returns a share as text.
pub(super) fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn nested_text(share: String, levels: usize) -> String {
    format!("{share} of routes, up to {levels} {} deep", plural(levels as u64, "level", "levels"))
}

/// Returns a percentage with two decimals, or with one significant digit if it is smaller than that.
fn significant(percent: f64) -> String {
    let decimals = if percent > 0.0 && percent < 0.01 { -percent.log10().floor() as usize } else { 2 };
    format!("{percent:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_are_not_zero() {
        let shares = [0.0, 12.345, 0.0123, 0.00218, 0.000_021_8, 7.1e-30];
        let texts = shares.map(significant);
        assert_eq!(texts[..4], ["0.00", "12.35", "0.01", "0.002"]);
        assert_eq!(texts[4], "0.00002");
        assert!(texts[5].ends_with("0007"));
        assert_eq!(nested_text("71.3 %".to_owned(), 4), "71.3 % of routes, up to 4 levels deep");
        assert_eq!(nested_text("1.0 %".to_owned(), 1), "1.0 % of routes, up to 1 level deep");
    }
}
