//! Pins: made whole, opened, refused, left by a follower that dies, removed.

use std::fs;
use std::io::BufRead as _;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fibula::net::{NextHop, Prefix};
use fibula_bpf::{BpfError, BpfTable, Engine, FollowOptions, Follower, Options, Order, live_table, unload};
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::program::Programs;
use super::support::{
    Bpffs, Form, compile_bpf, crate_path, defines, done, no_bpf, no_programs, rib_of, table_of, trial,
};

/// In the environment of a child: the pins that it follows, until it is killed.
const CHILD: &str = "FIBULA_BPF_TEST_FOLLOWS";
/// How many stores of changes the child makes.
const STORES: &str = "FIBULA_BPF_TEST_STORES";

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        trial("pins/refused".to_owned(), no_bpf, refused),
        trial("pins/other-programs".to_owned(), no_programs, other_programs),
    ];
    for form in Form::both(Engine::Dir18Lines) {
        let end = if form.is_arena() { "/arena" } else { "" };
        let mut test = |name: &str, run: fn(Form) -> Result<(), Failure>| {
            trials.push(trial(format!("pins/{name}{end}"), form.no_maps(), move || run(form)));
        };
        test("used-again", used_again);
        test("killed", killed);
        test("killed-at-each-store", killed_at_each_store);
        test("nothing-left", |form| nothing_left(Form::both(Engine::DirBtree)[usize::from(form.is_arena())]));
        if form.is_arena() {
            trials.push(trial("pins/refused/arena".to_owned(), form.no_maps(), arena_refused));
            let programs = form.no_programs();
            trials.push(trial("pins/other-programs/arena".to_owned(), programs, other_programs_of_arenas));
        }
    }
    trials
}

fn table_with(prefix: &str, hop: u32) -> Result<fibula::Table, Failure> {
    let table = live_table(fibula::rib::DualRib::default(), &[Engine::Dir18Lines])?;
    let _ = table.insert(prefix.parse::<Prefix<u32>>()?, NextHop::try_from(hop)?)?;
    Ok(table)
}

fn get(maps: &BpfTable, address: &str) -> Result<u32, Failure> {
    maps.get(address.parse::<IpAddr>()?).map_err(|family| format!("maps of {family}").into())
}

fn used_again(form: Form) -> Result<(), Failure> {
    let bpffs = Bpffs::mount()?;
    let pins = bpffs.path().join("a");
    let maps = BpfTable::create(&form.usual())?;
    maps.fill(&table_with("10.0.0.0/8", 7)?)?;
    maps.pin(&pins)?;
    assert_eq!(get(&BpfTable::open(&pins)?, "10.1.2.3")?, 7);
    // Another process' routes, in the maps that are there: programs go over to them at once.
    let again = BpfTable::open(&pins)?;
    let table = table_with("10.1.0.0/16", 9)?;
    let before = maps.state();
    let follower = again.follow(&table)?;
    // Into the other halves: lookups that have begun stay in words that are whole.
    let after = maps.state();
    assert_eq!(after.halves, before.halves.map(|half| 1 - half));
    assert_eq!(after.generation, before.generation + 1);
    assert_eq!([get(&maps, "10.1.2.3")?, get(&maps, "10.2.2.3")?], [9, 0]);
    let _ = table.insert("10.2.0.0/16".parse::<Prefix<u32>>()?, NextHop::try_from(300)?)?;
    assert_eq!(get(&maps, "10.2.2.3")?, 300);
    let state = maps.state();
    assert!(
        state.is_followed && state.follower == u64::from(std::process::id()) && state.heartbeat > 0,
        "{state:?}"
    );
    // Two followers, and an end while one follows.
    let second = BpfTable::open(&pins)?.follow(&table).map(drop).expect_err("two followers");
    assert!(
        matches!(second, BpfError::Busy { .. }) && second.to_string().contains("follows a table there"),
        "{second}"
    );
    assert!(matches!(unload(&pins), Err(BpfError::Busy { .. })));
    drop(follower);
    unload(&pins)?;
    assert_eq!(get(&maps, "10.2.2.3")?, 300);
    Ok(())
}

fn refused() -> Result<(), Failure> {
    let bpffs = Bpffs::mount()?;
    let maps = BpfTable::create(&Options::of(Engine::DirBtree))?;
    let message = |result: Result<(), BpfError>| result.expect_err("refused").to_string();
    let folder = tempfile::tempdir()?;
    let said = message(maps.pin(&folder.path().join("a")));
    assert!(said.contains("not in a file system of BPF: mount -t bpf"), "{said}");
    assert!(fs::read_dir(folder.path())?.next().is_none());
    let pins = bpffs.path().join("a");
    maps.pin(&pins)?;
    let said = message(maps.pin(&pins));
    assert!(said.contains("something is pinned there: unload it"), "{said}");
    let said = message(BpfTable::open(&bpffs.path().join("b")).map(drop));
    assert!(said.contains("not a table of Fibula"), "{said}");
    // Another family than the table's; and a table of IPv6 in maps of IPv6 has only its family.
    assert_eq!(maps.get("10.0.0.1".parse()?), Err(fibula::net::Family::Ipv6));
    // Whoever asks at the same time is no follower.
    let asking = fs::File::open(&pins)?;
    asking.try_lock_shared().map_err(std::io::Error::from)?;
    assert!(!maps.state().is_followed);
    // Nor does it keep one away that starts meanwhile, unless it never ends.
    let table = table_of(&rib_of::<u128>([]), Engine::DirBtree)?;
    let has_asked = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<(), Failure> {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            has_asked.store(true, Ordering::SeqCst);
            drop(asking);
        });
        let follower = maps.clone().follow(&table)?;
        assert!(has_asked.load(Ordering::SeqCst), "two locks");
        drop(follower);
        Ok(())
    })?;
    let asking = fs::File::open(&pins)?;
    asking.try_lock_shared().map_err(std::io::Error::from)?;
    assert!(message(maps.clone().follow(&table).map(drop)).contains("follows a table there"));
    drop(asking);
    // A folder is refused if one of its maps belongs to another table.
    let other = BpfTable::create(&Options::of(Engine::Dir18Lines))?;
    other.pin(&bpffs.path().join("other"))?;
    let mixed = bpffs.path().join("mixed");
    fs::create_dir(&mixed)?;
    fs::rename(pins.join("h"), mixed.join("h"))?;
    fs::rename(bpffs.path().join("other/0"), mixed.join("0"))?;
    let said = message(BpfTable::open(&mixed).map(drop));
    assert!(said.contains("array 0 has another size than its header says"), "{said}");
    fs::rename(bpffs.path().join("other/1"), mixed.join("h"))?;
    let said = message(BpfTable::open(&mixed).map(drop));
    assert!(said.contains("its header map has another first word"), "{said}");
    assert!(matches!(unload(&mixed), Err(BpfError::Foreign { .. })));
    assert!(mixed.join("h").exists());
    // A layout that this version does not know.
    let strange = BpfTable::create(&Options::of(Engine::Dir18Lines))?;
    strange.set_layout(7);
    strange.pin(&bpffs.path().join("strange"))?;
    let said = message(BpfTable::open(&bpffs.path().join("strange")).map(drop));
    assert!(said.contains("a table of layout 7, and this version has layout 1"), "{said}");
    unload(&bpffs.path().join("strange"))?;
    // Without rights.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--"]);
    let output = command.arg(std::env::current_exe()?).env(CHILD, "create").output()?;
    let said = String::from_utf8(output.stderr)?;
    assert!(said.contains("run it as root or with CAP_BPF"), "{said}");
    Ok(())
}

/// The child: follows a table that changes all the time. Its routes say what may be found: each /16 below 10.0.0.0/8 has one of two next
/// hops, and sometimes a /25 has 7.
pub(crate) fn child() -> Option<ExitCode> {
    let pins = std::env::var_os(CHILD)?;
    let run = || -> Result<(), Failure> {
        if pins == "create" {
            BpfTable::create(&Options::of(Engine::Dir18Lines))?;
            return Ok(());
        }
        let table = table_with("10.0.0.0/8", 1)?;
        if let Some(stores) = std::env::var_os(STORES) {
            let order = Order::Halted(stores.to_string_lossy().parse()?);
            let options = FollowOptions { order, ..FollowOptions::default() };
            let _follower = Follower::start(vec![BpfTable::open(Path::new(&pins))?], &table, options)?;
            (0..STEPS).try_for_each(|step| change(&table, step))?;
            println!("done");
            return Ok(());
        }
        let _follower = BpfTable::open(Path::new(&pins))?.follow(&table)?;
        println!("follows");
        for round in 0u32.. {
            let at = round.wrapping_mul(0x9e37_79b1);
            let (wide, long) = (10 << 24 | (at & 0xff) << 16, 10 << 24 | (at & 0xf_ffff) << 4);
            let hop = NextHop::try_from(2 + (round & 1))?;
            let _ = table.insert(Prefix::<u32>::masked(wide, 16)?, hop)?;
            let long = Prefix::<u32>::masked(long, 25)?;
            let _ = if round & 4 == 0 {
                table.insert(long, NextHop::try_from(7)?)?
            } else {
                table.remove(long)?
            };
            if round % 64 == 0 {
                let _ = table.apply_atomic(&[], &[])?;
            }
        }
        Ok(())
    };
    match run() {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("{}", error.message().unwrap_or("failed"));
            Some(ExitCode::FAILURE)
        }
    }
}

fn killed(form: Form) -> Result<(), Failure> {
    let bpffs = Bpffs::mount()?;
    let pins = bpffs.path().join("a");
    let maps = BpfTable::create(&form.usual())?;
    maps.pin(&pins)?;
    for round in 0..20u64 {
        let mut child =
            Command::new(std::env::current_exe()?).env(CHILD, &pins).stdout(Stdio::piped()).spawn()?;
        let begin = Instant::now();
        while {
            let state = maps.state();
            state.version < 50 || state.follower != u64::from(child.id())
        } {
            if begin.elapsed() > Duration::from_secs(20) {
                child.kill()?;
                return Err("the child does not follow".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(round * 777));
        child.kill()?;
        child.wait()?;
        // Whole words: every address has one of its answers.
        for at in 0..1u32 << 20 {
            let found = maps.get((10 << 24 | at << 4).to_be_bytes().into()).unwrap_or(0);
            if ![1, 2, 3, 7].contains(&found) {
                return Err(format!("round {round}: {found} at {at:x}").into());
            }
        }
        let state = maps.state();
        assert!(
            !state.is_followed && state.follower == u64::from(child.id()) && state.heartbeat > 0,
            "{state:?}"
        );
    }
    // Another follower goes on.
    let table = table_with("10.0.0.0/8", 5)?;
    let _follower = maps.clone().follow(&table)?;
    assert_eq!(maps.check(&table.routes()?).1, None);
    Ok(())
}

/// Changes of the child that is killed at each of its stores.
const STEPS: usize = 12;

/// Makes one of the changes: routes of all lengths that engines treat apart, which come, change and go, and all of them at once.
fn change(table: &fibula::Table, step: usize) -> Result<(), Failure> {
    let prefix = |text: &str| text.parse::<Prefix<u32>>();
    let hop = |hop: u32| NextHop::try_from(hop);
    let _ = match step {
        0 => table.insert(prefix("10.7.0.0/16")?, hop(2)?)?,
        1 => table.insert(prefix("10.7.8.0/24")?, hop(3)?)?,
        2 => table.insert(prefix("10.7.8.128/25")?, hop(4)?)?,
        3 => table.insert(prefix("10.7.8.130/32")?, hop(5)?)?,
        4 => table.insert(prefix("10.7.8.0/24")?, hop(6)?)?,
        5 => table.insert(prefix("10.7.9.64/26")?, hop(300)?)?,
        6 => table.remove(prefix("10.7.8.128/25")?)?,
        7 => table.insert(prefix("10.7.8.0/27")?, hop(7)?)?,
        8 => table.remove(prefix("10.7.0.0/16")?)?,
        9 => table.remove(prefix("10.7.8.130/32")?)?,
        10 => table.insert(prefix("10.0.0.0/9")?, hop(9)?)?,
        _ => table.remove(prefix("10.7.8.0/24")?)?,
    };
    Ok(())
}

/// A follower that is killed before any of its stores leaves, for each address, an answer of before the change or of after it, and
/// another follower goes on there.
fn killed_at_each_store(form: Form) -> Result<(), Failure> {
    let probes: Vec<IpAddr> = (0..1u32 << 12)
        .map(|at| 10 << 24 | 7 << 16 | (at << 4 & 0xffff) | at >> 12)
        .chain((0..256).map(|at| 0x0a07_0800 | at))
        .chain((0..256).map(|at| 10 << 24 | at << 16))
        .map(|address| address.to_be_bytes().into())
        .collect();
    let answers = |maps: &BpfTable| -> Vec<u32> {
        probes.iter().map(|&address| maps.get(address).unwrap_or(0)).collect()
    };
    // The answers after each step.
    let table = table_with("10.0.0.0/8", 1)?;
    let mut states = Vec::new();
    for step in 0..=STEPS {
        let maps = BpfTable::in_memory(&Options::of(Engine::Dir18Lines))?;
        maps.fill(&table)?;
        states.push(answers(&maps));
        if step < STEPS {
            change(&table, step)?;
        }
    }
    let bpffs = Bpffs::mount()?;
    let pins = bpffs.path().join("a");
    let maps = BpfTable::create(&form.usual())?;
    maps.pin(&pins)?;
    // The follower makes the same stores in both kinds of maps, so that some of them are enough for the other one.
    for stores in (0..).step_by(if form.is_arena() { 17 } else { 1 }) {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CHILD, &pins).env(STORES, stores.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        std::io::BufReader::new(out).read_line(&mut line)?;
        child.kill()?;
        child.wait()?;
        let found = answers(&maps);
        let fits = |pair: &[Vec<u32>]| {
            found.iter().enumerate().all(|(at, answer)| [pair[0][at], pair[1][at]].contains(answer))
        };
        // Before the first publication, the maps have the answers of the follower before: none, or those of its end.
        let is_of_before = stores == 0 && found.iter().all(|&answer| answer == 0);
        match line.trim() {
            "halted" if is_of_before || states.windows(2).any(fits) => {}
            "done" if found == states[STEPS] && stores > STEPS as u64 => {
                println!(
                    "killed before {} of {stores} stores",
                    if form.is_arena() { "some" } else { "each" }
                );
                return Ok(());
            }
            other => return Err(format!("killed after {stores} stores ('{other}'): other answers").into()),
        }
    }
    Ok(())
}

/// Programs for another family, engine or room do not get the maps.
fn other_programs() -> Result<(), Failure> {
    let lines = Options::of(Engine::Dir18Lines);
    let mut smaller = lines;
    smaller.rooms[1] -= 1;
    refuse_others(
        &lines,
        &[
            (defines(&Options::of(Engine::Dir17Bitmap)), "another engine"),
            (defines(&smaller), "another room"),
            (defines(&Options::of(Engine::DirBtree)), "another family"),
            ([defines(&lines), vec!["-DFIBULA_BPF_LAYOUT=2".to_owned()]].concat(), "another layout"),
        ],
    )
}

/// Programs for another family, engine or kind of map do not get the maps.
fn other_programs_of_arenas() -> Result<(), Failure> {
    let lines = Options::of(Engine::Dir18Lines);
    let arena = lines.in_arena();
    refuse_others(
        &arena,
        &[
            (defines(&Options::of(Engine::Dir17Bitmap).in_arena()), "another engine"),
            (defines(&Options::of(Engine::DirBtree).in_arena()), "another family"),
            (defines(&lines), "arrays"),
            ([defines(&arena), vec!["-DFIBULA_BPF_LAYOUT=2".to_owned()]].concat(), "another layout"),
        ],
    )?;
    refuse_others(&lines, &[(defines(&arena), "an arena")])
}

/// Loads a program for the maps, and fails unless the others are refused.
fn refuse_others(options: &Options, others: &[(Vec<String>, &str)]) -> Result<(), Failure> {
    let programs = Programs::of(options, &[])?;
    done(&mut programs.command(&["load".as_ref()]))?;
    for (defines, what) in others {
        compile_bpf(&crate_path("tests/c/keys.bpf.c"), defines, &programs.path("keys.o"))?;
        let output = programs.command(&["load".as_ref()]).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.code() != Some(3) || !said.contains("refused: Wrong medium type") {
            return Err(format!("a program of {what} took the maps: {said}").into());
        }
    }
    // libbpf itself refuses them too, where a loader sets the path of the pin.
    Ok(())
}

/// Arenas of something else are refused, and an address that is taken.
fn arena_refused() -> Result<(), Failure> {
    let bpffs = Bpffs::mount()?;
    let maps = BpfTable::create(&Options::of(Engine::Dir18Lines).in_arena())?;
    let pins = bpffs.path().join("a");
    maps.pin(&pins)?;
    let arrays = BpfTable::create(&Options::of(Engine::Dir18Lines))?;
    arrays.pin(&bpffs.path().join("arrays"))?;
    let mixed = bpffs.path().join("mixed");
    fs::create_dir(&mixed)?;
    fs::rename(pins.join("h"), mixed.join("h"))?;
    fs::rename(bpffs.path().join("arrays/0"), mixed.join("a"))?;
    let said = BpfTable::open(&mixed).expect_err("an array").to_string();
    assert!(said.contains("not an arena of a table"), "{said}");
    fs::remove_file(mixed.join("a"))?;
    let said = BpfTable::open(&mixed).expect_err("no arena").to_string();
    assert!(said.contains("mixed/a: not a table of Fibula"), "{said}");
    Ok(())
}

/// Made, filled, pinned, removed: no pin and no map is left.
fn nothing_left(form: Form) -> Result<(), Failure> {
    let maps = || -> Result<usize, Failure> {
        let output = match Command::new("bpftool").args(["map", "list"]).output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(_) => return Ok(0),
        };
        Ok(output.lines().filter(|line| line.contains("name fib6btree")).count())
    };
    let bpffs = Bpffs::mount()?;
    let before = maps()?;
    {
        let table = table_of(&rib_of::<u128>([]), form.engine)?;
        let made = BpfTable::create(&form.usual())?;
        made.fill(&table)?;
        made.pin(&bpffs.path().join("a"))?;
        unload(&bpffs.path().join("a"))?;
    }
    // The kernel has files of its own there.
    let folders = fs::read_dir(bpffs.path())?.filter_map(Result::ok).filter(|entry| entry.path().is_dir());
    assert_eq!(folders.count(), 0);
    // Other tests may have made and dropped maps meanwhile, and the kernel frees them a moment later.
    let begin = Instant::now();
    while maps()? > before && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(maps()? <= before, "maps are left");
    Ok(())
}
