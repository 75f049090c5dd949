//! Lookups of user space over the words that a follower writes, in memory alone.

use fibula::live::TableError;
use fibula::net::{Change, NextHop, Prefix, Route};
use fibula_bpf::{BpfError, BpfTable, Engine, FollowOptions, Follower, Grace, Options};
use fibula_proof::tables::Random;
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::support::{Words, hostile, rib_of, split, table_of, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = of_family::<u32>();
    trials.extend(of_family::<u128>());
    trials.push(trial("memory/other-engine".to_owned(), nothing, other_engine));
    trials.push(trial("memory/rooms".to_owned(), nothing, rooms));
    trials
}

fn nothing() -> Option<String> {
    None
}

fn of_family<K: Words>() -> Vec<Trial> {
    let all = K::ENGINES.iter().flat_map(|&engine| {
        [
            trial(format!("memory/changes/{}", engine.name()), nothing, move || changes::<K>(engine)),
            trial(format!("memory/outgrown/{}", engine.name()), nothing, move || outgrown::<K>(engine)),
        ]
    });
    all.collect()
}

fn right<K: Words>(maps: &BpfTable, table: &fibula::Table, when: &str) -> Result<(), Failure> {
    let (_, wrong) = maps.check(&table.routes()?);
    wrong.map_or(Ok(()), |(address, found, right)| {
        Err(format!("{when}: {address}: {found}, not {right}").into())
    })
}

/// Changes of every kind, each compared: in place, at once, by another structure, by another follower.
fn changes<K: Words>(engine: Engine) -> Result<(), Failure> {
    let rib = hostile::<K>(1_500, 3);
    let table = table_of(&rib, engine)?;
    let options = Options::fitting(engine, &table, u32::MAX)?;
    let maps = BpfTable::in_memory(&options)?;
    let mut follower = maps.clone().follow(&table)?;
    right::<K>(&maps, &table, "at first")?;
    let mut random = Random(11);
    for round in 0..30 {
        let mut changes: Vec<Change<K>> = Vec::new();
        for route in hostile::<K>(60, 100 + round).iter() {
            let remove = random.below(3) == 0;
            changes.push(if remove { Change::Remove(route.prefix) } else { Change::Insert(route) });
        }
        let done = if round % 3 == 1 {
            let (v4, v6) = split(&changes);
            table.apply_atomic(&v4, &v6)
        } else {
            table.apply(&changes)
        };
        let _ = done?;
        right::<K>(&maps, &table, &format!("round {round}"))?;
        match round % 10 {
            4 => drop(table.maintain()?),
            // A follower of other routes goes on in the same maps.
            8 => {
                drop(follower);
                let grace = if round == 8 { Grace::MapOfMaps } else { Grace::Auto };
                let options = FollowOptions { grace, ..FollowOptions::default() };
                follower = match Follower::start(vec![maps.clone()], &table, options) {
                    // Without BPF there is one way alone.
                    Err(BpfError::Permission) => maps.clone().follow(&table)?,
                    started => started?,
                };
            }
            _ => {}
        }
    }
    follower.health()?;
    drop(follower);
    let state = maps.state();
    assert!(state.generation > 10 && state.bytes > 0 && state.follower == 0, "{state:?}");
    assert_eq!(state.routes, table.len_of::<K>()? as u64);
    right::<K>(&maps, &table, "at the end")
}

/// A table that needs more than the maps have is refused by name, and the maps answer as before.
fn outgrown<K: Words>(engine: Engine) -> Result<(), Failure> {
    let mut options = Options::of(engine);
    options.rooms[1] = match engine {
        Engine::Dir18Lines => 17,
        _ => 16,
    };
    let table = table_of(&rib_of::<K>([]), engine)?;
    let maps = BpfTable::in_memory(&options)?;
    let follower = maps.clone().follow(&table)?;
    let mut random = Random(5);
    let mut refused = 0;
    for _ in 0..20_000 {
        let route = |random: &mut Random| {
            let len = if K::BITS == 32 { 24 } else { 48 };
            let prefix = Prefix::masked(random.key::<K>(), len).expect("a prefix");
            Change::Insert(Route::new(
                prefix,
                NextHop::try_from(1 + random.below(200) as u32).expect("a next hop"),
            ))
        };
        let some: Vec<_> = (0..32).map(|_| route(&mut random)).collect();
        match table.apply(&some) {
            Ok(_) => {}
            Err(TableError::Room { array: 1, .. }) => refused += 1,
            Err(other) => return Err(format!("refused otherwise: {other}").into()),
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3);
    right::<K>(&maps, &table, "after refusals")?;
    follower.health()?;
    // A follower that comes later is refused at once, and leaves the maps as they are.
    drop(follower);
    let large = table_of(&rib_of(K::shaped(60_000)), engine)?;
    let error = maps.clone().follow(&large).map(drop).expect_err("no room");
    assert!(matches!(error, BpfError::Table(TableError::Room { array: 1, .. })), "{error}");
    right::<K>(&maps, &table, "after a follower without room")
}

fn other_engine() -> Result<(), Failure> {
    let table = table_of(&rib_of::<u32>([]), Engine::Dir17Bitmap)?;
    let maps = BpfTable::in_memory(&Options::of(Engine::Dir18Lines))?;
    let error = maps.follow(&table).map(drop).expect_err("another engine");
    assert_eq!(
        error.to_string(),
        "the maps are of dir-18-lines, the table is of dir-17-bitmap: load maps of the table's engine"
    );
    Ok(())
}

fn rooms() -> Result<(), Failure> {
    let mut options = Options::of(Engine::DirBtree);
    options.rooms[2] = 29;
    let error = BpfTable::in_memory(&options).map(drop).expect_err("too large");
    assert_eq!(error.to_string(), "array 2 cannot have 2^29 bytes: programs reach at most 2^28");
    // Wider values take more entries.
    for (greatest, room) in [(254, 20), (255, 21), (65_534, 21), (65_535, 22)] {
        let options = Options::of(Engine::Dir18Lines).with_room_for(&[0; 4], greatest)?;
        assert_eq!(options.rooms[0], room, "{greatest}");
    }
    Ok(())
}
