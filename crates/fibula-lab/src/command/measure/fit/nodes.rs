//! How the leaves below the nodes of a binary trie part, measured depth by depth.

use fibula::net::{Key, Route};
use fibula_workload::table::{Parting, SIZES};

/// Counts of one depth.
#[derive(Clone, Default)]
struct Depth {
    /// Nodes by size class.
    nodes: [u64; SIZES],
    /// Those whose leaves are all in one half.
    one_sided: [u64; SIZES],
    /// Octaves by which the smaller half falls short of a quarter of the leaves, and the chances to do so.
    octaves: [u64; SIZES],
    chances: [u64; SIZES],
    /// Nodes with a single leaf, and those where it is in the lower half.
    alone: u64,
    alone_low: u64,
    /// Nodes whose halves differ, and those where the lower half has more.
    uneven: u64,
    uneven_low: u64,
}

/// The shares of one depth.
pub(crate) struct DepthShares {
    depth: u8,
    low: f64,
    alone_low: f64,
    one_sided: [f64; SIZES],
    skew: [f64; SIZES],
    /// The one-sided share of all nodes.
    pub(crate) one_sided_mean: f64,
}

/// The routes that cover no other.
pub(crate) fn leaves<K: Key>(routes: &[Route<K>]) -> Vec<Route<K>> {
    let leaf = |at: usize| routes.get(at + 1).is_none_or(|next| !routes[at].prefix.covers(next.prefix));
    (0..routes.len()).filter(|&at| leaf(at)).map(|at| routes[at]).collect()
}

/// The lines of a table, down to the last depth with a hundred nodes.
pub(crate) fn lines<K: Key>(routes: &[Route<K>]) -> Vec<DepthShares> {
    let mut depths = vec![Depth::default(); usize::from(K::BITS) + 1];
    part(&leaves(routes), 0, &mut depths);
    let nodes = |depth: &Depth| depth.nodes.iter().sum::<u64>() + depth.alone;
    let deepest = depths.iter().rposition(|depth| nodes(depth) > 99).unwrap_or(0);
    (0..=deepest).map(|at| line(&depths, at)).collect()
}

fn part<K: Key>(routes: &[Route<K>], depth: u8, depths: &mut [Depth]) {
    if routes.first().is_none_or(|route| route.prefix.len() == depth) {
        return;
    }
    let (low, high) = routes.split_at(routes.partition_point(|route| !route.prefix.addr().bit(depth)));
    let line = &mut depths[usize::from(depth)];
    if let [_] = routes {
        line.alone += 1;
        line.alone_low += low.len() as u64;
    } else {
        let class = (routes.len().ilog2() as usize - 1).min(SIZES - 1);
        let small = low.len().min(high.len());
        line.nodes[class] += 1;
        line.one_sided[class] += u64::from(small == 0);
        if small > 0 {
            let most = (routes.len() / 2).ilog2();
            let octaves = (routes.len() / (2 * small)).ilog2().min(most);
            line.octaves[class] += u64::from(octaves);
            line.chances[class] += u64::from((octaves + 1).min(most));
        }
        if low.len() != high.len() {
            line.uneven += 1;
            line.uneven_low += u64::from(low.len() > high.len());
        }
    }
    part(low, depth + 1, depths);
    part(high, depth + 1, depths);
}

/// The shares of a depth. A count that is too small there is taken together with the depths around it, or else the
/// share of the next smaller class is used.
fn line(depths: &[Depth], at: usize) -> DepthShares {
    let share = |count: &dyn Fn(&Depth) -> (u64, u64)| {
        let (mut part, mut whole) = count(&depths[at]);
        for around in 1..=4 {
            if whole >= 40 {
                break;
            }
            for depth in [at.checked_sub(around), Some(at + around)].into_iter().flatten() {
                let more = depths.get(depth).map_or((0, 0), count);
                (part, whole) = (part + more.0, whole + more.1);
            }
        }
        (whole >= 10).then(|| part as f64 / whole as f64)
    };
    let by_class = |count: &dyn Fn(&Depth, usize) -> (u64, u64)| {
        let shares: Vec<Option<f64>> = (0..SIZES).map(|class| share(&|depth| count(depth, class))).collect();
        let mut before = shares.iter().flatten().next().copied().unwrap_or(0.0);
        core::array::from_fn(|class| {
            before = shares[class].unwrap_or(before);
            before
        })
    };
    let Depth { nodes, one_sided, .. } = &depths[at];
    DepthShares {
        depth: at as u8,
        low: share(&|depth| (depth.uneven_low, depth.uneven)).unwrap_or(0.5),
        alone_low: share(&|depth| (depth.alone_low, depth.alone)).unwrap_or(0.5),
        one_sided: by_class(&|depth, class| (depth.one_sided[class], depth.nodes[class])),
        skew: by_class(&|depth, class| (depth.octaves[class], depth.chances[class])),
        one_sided_mean: one_sided.iter().sum::<u64>() as f64 / nodes.iter().sum::<u64>().max(1) as f64,
    }
}

impl DepthShares {
    /// The line of a profile, with the odds of one-sided nodes multiplied by e to the power of `shift`.
    pub(crate) fn parting(&self, shift: f64) -> Parting {
        let percent = |share: f64| (100.0 * share).round() as u8;
        Parting {
            depth: self.depth,
            low_percent: percent(self.low),
            alone_low_percent: percent(self.alone_low),
            one_sided_percent: self.one_sided.map(|share| percent(shifted(share, shift))),
            skew_percent: self.skew.map(percent),
        }
    }
}

fn shifted(share: f64, shift: f64) -> f64 {
    // A share that was never or always seen gets the odds of half a hundredth.
    let share = if shift == 0.0 { share } else { share.clamp(0.005, 0.995) };
    let odds = share / (1.0 - share) * shift.exp();
    if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 }
}
