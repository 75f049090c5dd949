//! Changes while a program runs: each answer is of a prefix that contains the key, before or after a change.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fibula::net::{Change, NextHop, Prefix, Route};
use fibula_bpf::{Engine, FollowOptions, Follower, Grace, Order};
use fibula_proof::tables::Random;
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::program::Programs;
use super::support::{Form, Words, no_programs, rib_of, split, table_of, trial, write_words};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = of_family::<u32>();
    trials.extend(of_family::<u128>());
    let by_maps = || right::<u32>(Form::arrays(Engine::Dir18Lines), Grace::MapOfMaps);
    trials.push(trial("live/map-of-maps/dir-18-lines".to_owned(), no_programs, by_maps));
    let reversed = || {
        let (lookups, wrong) =
            run::<u32>(Form::arrays(Engine::Dir17Bitmap), Grace::Auto, Order::Reversed, 4)?;
        println!("{wrong} of {lookups} lookups were wrong with entries before units");
        if wrong > 0 {
            Ok(())
        } else {
            Err("entries before units, and no lookup was wrong: the check sees nothing".into())
        }
    };
    trials.push(trial("live/reversed/dir-17-bitmap".to_owned(), no_programs, reversed));
    trials
}

fn of_family<K: Words>() -> Vec<Trial> {
    let one = |form: Form| {
        let name = format!("live/changes/{}", form.name());
        trial(name, form.no_programs(), move || right::<K>(form, Grace::Auto))
    };
    Form::all::<K>().map(one).collect()
}

fn right<K: Words>(form: Form, grace: Grace) -> Result<(), Failure> {
    let (lookups, wrong) = run::<K>(form, grace, Order::AsTold, 3)?;
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} of {lookups} lookups were wrong").into()) }
}

/// The number of a prefix, as the program of the test makes it.
fn mixed(bits: u32) -> u32 {
    (bits.wrapping_mul(2_654_435_761) >> 16) % 80
}

const KEYS: usize = 1 << 14;

/// Runs changes while a program looks keys up, until enough of both is done: a grace period takes seconds where others take the processors.
/// Returns the lookups, and how many were wrong.
fn run<K: Words>(form: Form, grace: Grace, order: Order, seconds: u64) -> Result<(u64, u64), Failure> {
    let mut before = String::new();
    for seconds in [seconds, 4 * seconds, 16 * seconds] {
        let Done { changes, lookups, wrong, turns } = run_for::<K>(form, grace, order, seconds)?;
        if wrong > 0 || (changes >= 1_000 && lookups >= 100_000 && turns > 0) {
            return Ok((lookups, wrong));
        }
        before.push_str(&format!("; in {seconds} s {changes} changes, {lookups} lookups, {turns} turns"));
    }
    Err(format!("too little was done{before}").into())
}

/// How much a run did.
struct Done {
    changes: u64,
    lookups: u64,
    wrong: u64,
    turns: u64,
}

/// Runs changes for some seconds while a program looks keys up.
fn run_for<K: Words>(form: Form, grace: Grace, order: Order, seconds: u64) -> Result<Done, Failure> {
    // Each key has a route of 16 bits of its word always, and sometimes routes of 24 and 28.
    let mut random = Random(23);
    let keys: Vec<u32> = (0..KEYS).map(|_| 10 << 24 | random.below(1 << 22) as u32).collect();
    // IPv6: the word is bits 32 to 63, across the end of what tables and trees search.
    let (above, before) = if K::BITS == 32 { (0u128, 0u8) } else { (0x2001_0db8u128 << 96, 32) };
    let at = |word: u32| above | u128::from(word) << (u32::from(K::BITS) - 32 - u32::from(before));
    let route = |word: u32, len: u8, first: u32| {
        let prefix = Prefix::masked(K::from_bits(at(word)), before + len).expect("a prefix");
        Route::new(prefix, NextHop::try_from(first + mixed(word >> (32 - len))).expect("a next hop"))
    };
    let table = table_of(&rib_of(keys.iter().map(|&word| route(word, 16, 1))), form.engine)?;
    let programs = Programs::of(&form.usual(), &[format!("-DKEYS={KEYS}")])?;
    let options = FollowOptions { grace, order };
    let follower = Follower::start(vec![programs.maps.clone()], &table, options)?;
    let file = programs.path("keys");
    write_words(&file, keys.iter().flat_map(|&word| K::from_bits(at(word)).words()))?;
    let time = seconds.to_string();
    let mut command = programs.command(&["run_check".as_ref(), &file, "-".as_ref(), time.as_ref()]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut changes, mut round) = (0u64, 0u64);
    while Instant::now() < end {
        let some: Vec<Change<K>> = (0..64)
            .map(|_| {
                let word = keys[random.below(KEYS)];
                let route = if random.below(2) == 0 { route(word, 24, 81) } else { route(word, 28, 161) };
                if random.below(2) == 0 { Change::Insert(route) } else { Change::Remove(route.prefix) }
            })
            .collect();
        round += 1;
        // Every now and then all at once, by other words: a structure that is built again.
        let _ = if round % 500 == 100 && order == Order::AsTold {
            let (v4, v6) = split(&some);
            table.apply_atomic(&v4, &v6)?
        } else {
            table.apply(&some)?
        };
        changes += some.len() as u64;
    }
    let mut rest = String::new();
    output.read_to_string(&mut rest)?;
    if !child.wait()?.success() {
        return Err(format!("the program's runner failed: {rest}").into());
    }
    follower.health()?;
    let number = |name: &str| -> Result<u64, Failure> {
        let line = rest.lines().find_map(|line| line.strip_prefix(name)).ok_or("no count")?;
        Ok(line.trim().parse()?)
    };
    let (lookups, wrong) = (number("lookups")?, number("wrong")?);
    let (turns, way) = follower.turns();
    println!("{changes} changes, {lookups} lookups, {wrong} wrong, {turns} turns by {way}");
    Ok(Done { changes, lookups, wrong, turns })
}
