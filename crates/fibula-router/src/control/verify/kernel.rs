//! Compares the routes of a feed of the kernel with the kernel's tables.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fibula::net::IpPrefix;

use crate::feed::enter::Entrance;
use crate::feed::kernel;
use crate::feed::path::Path;
use crate::feed::{Place, Rib, lock};

/// Prefixes that are compared while the RIB is locked.
const PAGE: usize = 512;
/// Most differences that are examined.
const MOST: usize = 10_000;
/// How often a difference is checked again before it is reported, and after which pause.
const ROUNDS: usize = 2;
const PAUSE: Duration = Duration::from_millis(300);
/// How long to wait for a feed that is reading again itself. Until it has done so, it may differ without a fault.
const PATIENCE: Duration = Duration::from_secs(30);

/// The routes of a prefix: their metrics and paths.
pub(super) type MetricPaths = Vec<(u32, Option<Path>)>;

/// A prefix with different routes in the kernel and the RIB.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KernelDifference {
    pub(super) place: Place,
    pub(super) kernel: MetricPaths,
    pub(super) rib: MetricPaths,
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) prefixes: u64,
    pub(super) differences: Vec<KernelDifference>,
}

/// A feed of the kernel.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    pub(super) entrance: Entrance,
    pub(super) name: String,
    pub(super) vrfs: usize,
}

/// Reads the kernel's tables and compares them with a feed. Differences are compared again after a new reading, twice, and
/// reported only if neither side has changed meanwhile. This takes the time and the memory of a second copy of the feed.
pub(super) fn compare(rib: &Mutex<Rib>, feed: &Feed) -> io::Result<Compared> {
    let number = feed.entrance.feed;
    wait(rib, number)?;
    let mut compared = Compared::default();
    let kernel = kernel::read(&feed.entrance, feed.vrfs, PATIENCE)?;
    for vrf in 0..feed.vrfs {
        let mut after = None;
        loop {
            let rib = lock(rib);
            let Some(page) = page(&kernel, &rib, number, vrf, after) else { break };
            after = page.last().copied();
            for prefix in page {
                let place = (vrf as u16, prefix);
                compared.prefixes += 1;
                let (kernel, rib) = (kernel.routes_of(0, place), rib.routes_of(number, place));
                if kernel != rib && compared.differences.len() < MOST {
                    compared.differences.push(KernelDifference { place, kernel, rib });
                }
            }
        }
    }
    // Free the copy before the next reading, so that there are never two of them.
    drop(kernel);
    for _ in 0..ROUNDS {
        if compared.differences.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        wait(rib, number)?;
        let kernel = kernel::read(&feed.entrance, feed.vrfs, PATIENCE)?;
        let rib = lock(rib);
        compared.differences.retain(|difference| {
            kernel.routes_of(0, difference.place) == difference.kernel
                && rib.routes_of(number, difference.place) == difference.rib
        });
    }
    Ok(compared)
}

/// Waits until the feed has nothing left to read again.
fn wait(rib: &Mutex<Rib>, feed: usize) -> io::Result<()> {
    let begin = Instant::now();
    while lock(rib).feeds()[feed].state.is_in_doubt {
        if begin.elapsed() > PATIENCE {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "it changes so fast that it is being read again on and on",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Returns the next prefixes that are in the kernel or in the RIB; `None` at the end.
fn page(
    kernel: &Rib,
    rib: &Rib,
    feed: usize,
    vrf: usize,
    after: Option<IpPrefix>,
) -> Option<BTreeSet<IpPrefix>> {
    let mut page: BTreeSet<_> = kernel.feed_places_after(0, vrf, after).take(PAGE).collect();
    page.extend(rib.feed_places_after(feed, vrf, after).take(PAGE));
    // Keep only the first prefixes. Past these, one side may have prefixes in between that are not in the page yet.
    while page.len() > PAGE {
        page.pop_last();
    }
    (!page.is_empty()).then_some(page)
}
