//! The route half of the router in one process without threads, sockets and clock: FPM, BMP and the kernel's netlink as the far ends
//! speak them, and files of MRT, into the RIB, from there into live tables, under the eyes of readers. Every step follows from a seed, and with it every fault:
//! frames torn at any byte, sessions cut, replaced and starved, garbage; messages that the kernel loses, what it deletes without a word,
//! answers that are changed under way, come late or are refused; devices that go and come; files that are
//! replaced, cut or gone; feeds and tables at their limits; a router that stops and starts again, or takes over from another one.
//!
//! After each rest, plain maps say what the tables must have. Each lookup in between must find the old answer or the new one, and a next
//! hop that the workers know. What fails says its seed:
//!
//! ```sh
//! cargo test -p fibula-router --test simulation                          # 430 seeds
//! FIBULA_SEEDS=1000000 cargo test --release -p fibula-router --test simulation
//! FIBULA_SEED=17 cargo test -p fibula-router --test simulation           # this one, with its steps
//! ```
#![cfg(target_os = "linux")]
#![allow(unreachable_pub)]

mod archive;
mod collector;
mod kernel;
mod netlink;
mod oracle;
#[path = "../support/random.rs"]
mod random;
mod watch;
mod world;
mod zebra;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use world::World;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a seed. Returns whether everything fitted in its tables at the end.
fn run(seed: u64, is_traced: bool) -> bool {
    let mut world = World::new(seed, is_traced);
    for _ in 0..1 + world.random.below(2) {
        for _ in 0..20 + world.random.below(100) {
            world.step();
        }
        world.rest();
        world.check();
    }
    world.shrink();
    world.rest();
    world.check();
    world.end()
}

#[test]
fn every_seed_ends_right() {
    if let Some(seed) = number("FIBULA_SEED") {
        run(seed, true);
        return;
    }
    let seeds = number("FIBULA_SEEDS").unwrap_or(430);
    let first = number("FIBULA_FIRST_SEED").unwrap_or(0);
    let (next, fitted, failed) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= first + seeds || failed.load(Relaxed) != u64::MAX {
                break;
            }
            match catch_unwind(AssertUnwindSafe(|| run(seed, false))) {
                Ok(fits) => fitted.fetch_add(u64::from(fits), Relaxed),
                Err(_) => failed.fetch_min(seed, Relaxed),
            };
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (fitted, failed) = (fitted.into_inner(), failed.into_inner());
    assert!(
        failed == u64::MAX,
        "seed {failed} failed: FIBULA_SEED={failed} cargo test -p fibula-router --test simulation"
    );
    assert!(
        fitted * 10 >= seeds * 9,
        "{fitted} of {seeds} seeds end with all of their routes in their tables"
    );
    println!("{seeds} seeds from {first} on");
}
