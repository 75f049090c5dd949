//! Measures lookups in BPF programs by an engine in arrays and in an arena, by LPM_TRIE and by HASH: `measure TABLE ENGINE [TIMES]`. The
//! program runs as root and needs clang and libbpf, and clang-19 for the arena. It prints lines of names and figures, as `records/bpf/` has
//! them. The figure of a lookup is the least of TIMES runs over 2^20 keys. Subtract the figure of the empty loop from it. Objects take
//! turns, a run each, so that what else the machine does meets all of them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fibula::live::{TableError, TableKey};
use fibula::net::{Change, Family, NextHop, Route};
use fibula::rib::{DualRib, Rib};
use fibula_bpf::{Backend, BpfTable, Engine, Options, live_table, unload};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, table, engine, ..] = &arguments[..] else { return Err("measure TABLE ENGINE [TIMES]".into()) };
    let engine = Engine::named(engine).ok_or("no such engine")?;
    let times = arguments.get(3).map_or("10", String::as_str).parse()?;
    let ribs = fibula_feed::Loader::new(fibula_feed::LoadOptions::default()).load(Path::new(table))?.ribs;
    for path in ["/proc/loadavg", "/proc/sys/kernel/osrelease"] {
        println!("{path} {}", fs::read_to_string(path)?.trim());
    }
    match engine.family() {
        Family::Ipv4 => {
            measure(ribs.v4, engine, times, |rib| DualRib::new(rib, Rib::default()), |key| vec![key])
        }
        Family::Ipv6 => measure(
            ribs.v6,
            engine,
            times,
            |rib| DualRib::new(Rib::default(), rib),
            |key| vec![(key >> 96) as u32, (key >> 64) as u32, (key >> 32) as u32, key as u32],
        ),
    }
}

fn run(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Numbers that look random, the same ones in every run.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u128 {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u128::from(self.0 >> 32)
        };
        next() << 96 | next() << 64 | next() << 32 | next()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.bits() >> 64) as usize % end
    }
}

fn measure<K: TableKey>(
    rib: Rib<K>,
    engine: Engine,
    times: usize,
    dual: fn(Rib<K>) -> DualRib,
    words: fn(K) -> Vec<u32>,
) -> Outcome {
    // Of LPM_TRIE, a default route would be a key of no bits.
    let routes: Vec<Route<K>> = rib.iter().filter(|route| route.prefix.len() > 0).collect();
    let mut rib = Rib::default();
    routes.iter().try_for_each(|&route| rib.insert(route).map(drop))?;
    println!("routes {}", rib.len());
    let folder = std::env::temp_dir().join(format!("fibula-bpf-measure-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let bpffs = folder.join("bpf");
    fs::create_dir(&bpffs)?;
    run(Command::new("mount").args(["-t", "bpf", "bpf"]).arg(&bpffs))?;
    let done = in_folder(&rib, &routes, engine, times, dual, words, &folder);
    let _ = unload(&bpffs.join("table"));
    let _ = unload(&bpffs.join("arena"));
    run(Command::new("umount").arg(&bpffs))?;
    fs::remove_dir_all(&folder)?;
    done
}

fn in_folder<K: TableKey>(
    rib: &Rib<K>,
    routes: &[Route<K>],
    engine: Engine,
    times: usize,
    dual: fn(Rib<K>) -> DualRib,
    words: fn(K) -> Vec<u32>,
    folder: &Path,
) -> Outcome {
    let begin = Instant::now();
    let table = live_table(dual(rib.clone()), &[engine])?;
    println!("build-ms {:.1}", begin.elapsed().as_secs_f64() * 1e3);
    let options = Options::fitting(engine, &table, 254)?;
    let pins = folder.join("bpf/table");
    let maps = BpfTable::create(&options)?;
    // Twice, so that the words are in the first halves, where the variant without a choice of halves looks.
    maps.fill(&table)?;
    let begin = Instant::now();
    maps.fill(&table)?;
    println!("fill-ms {:.1} (with two waits for programs)", begin.elapsed().as_secs_f64() * 1e3);
    maps.pin(&pins)?;
    println!("map-bytes {}\nused-bytes {}", options.map_bytes(), maps.state().bytes);
    let in_arena = options.in_arena();
    let arena = BpfTable::create(&in_arena).and_then(|arena| {
        arena.fill(&table)?;
        arena.fill(&table)?;
        arena.pin(&folder.join("bpf/arena"))
    });
    if let Err(error) = &arena {
        println!("SKIPPED arena: {error}");
    }

    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let compiled = |name: &str, options: &Options, more: &[&str]| -> Result<PathBuf, Box<dyn Error>> {
        let object = folder.join(name);
        let is_arena = options.backend == Backend::Arena;
        let mut command = Command::new(if is_arena { "clang-19" } else { "clang" });
        command.args(["-O2", "-g", "-target", "bpf", "-mcpu=v3"]).args(more);
        command.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
        command.arg("-I").arg(here.join("include"));
        for line in options.c_header().lines() {
            command.arg(format!("-D{}", line.trim_start_matches("#define ").replacen(' ', "=", 1)));
        }
        if engine == Engine::DirBtree {
            command.arg("-DIPV6");
        }
        run(command.arg("-c").arg(here.join("tests/c/keys.bpf.c")).arg("-o").arg(&object))?;
        Ok(object)
    };
    let runner = folder.join("run");
    let source = here.join("tests/c/run.c");
    run(Command::new("cc")
        .arg("-O2")
        .arg("-I")
        .arg(here.join("include"))
        .arg(source)
        .arg("-o")
        .arg(&runner)
        .arg("-lbpf"))?;
    let lines: String = routes
        .iter()
        .map(|route| {
            let key: String = words(route.prefix.addr()).iter().map(|word| format!(" {word:x}")).collect();
            format!("{} {}{key}\n", route.prefix.len(), route.next_hop.id())
        })
        .collect();
    fs::write(folder.join("routes"), lines)?;
    let slab = || -> Result<u64, Box<dyn Error>> {
        let text = fs::read_to_string("/proc/meminfo")?;
        let line = text.lines().find(|line| line.starts_with("SUnreclaim")).ok_or("no SUnreclaim")?;
        Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
    };
    println!("slab-before-kb {}", slab()?);

    let mut random = Random(7);
    for pattern in ["random", "match"] {
        let keys: Vec<K> = (0..1 << 20)
            .map(|_| match pattern {
                // Of IPv6, 2000::/3 is what is routed.
                "random" if K::BITS == 128 => K::from_bits(random.bits() >> 3 | 1 << 125),
                "random" => K::from_bits(random.bits() >> 96),
                _ => {
                    let prefix = routes[random.below(routes.len())].prefix;
                    let free = prefix.addr().to_bits() ^ prefix.last().to_bits();
                    K::from_bits(prefix.addr().to_bits() | random.bits() & free)
                }
            })
            .collect();
        let file = folder.join("keys");
        let bytes: Vec<u8> = keys.iter().flat_map(|&key| words(key)).flat_map(u32::to_ne_bytes).collect();
        fs::write(&file, bytes)?;
        let usual = compiled("usual.o", &options, &[])?;
        let begin = Instant::now();
        let from = format!("{}:{}", pins.display(), folder.join("routes").display());
        let looked_up = |object: &Path, pins: &str, programs: &str, times: usize| {
            let mut command = Command::new(&runner);
            command.arg(object).args([pins, programs]).arg(&file).arg(folder.join("answers"));
            run(command.arg(times.to_string()))
        };
        let right = |program: &str| -> Result<String, Box<dyn Error>> {
            let found = fs::read(folder.join(format!("answers.{program}")))?;
            let wrong = keys.iter().zip(found.as_chunks::<4>().0).filter(|&(&key, &found)| {
                let right = rib.lookup_prefix(key).map_or(0, |route| NextHop::id(route.next_hop));
                u32::from_ne_bytes(found) != right
            });
            Ok(format!("wrong {program} {} of {}", wrong.count(), keys.len()))
        };
        let rivals = looked_up(&usual, &from, "run_empty,run_fibula,run_outer,run_trie,run_hash", times)?;
        println!("{pattern} usual: {} s in all", begin.elapsed().as_secs());
        print!("{rivals}");
        println!("{}\n{}", right("run_fibula")?, right("run_trie")?);
        let mut objects = vec![
            ("usual", usual, pins.clone()),
            ("one-half", compiled("one-half.o", &options, &["-DFIBULA_HALF(number,state)=0"])?, pins.clone()),
        ];
        if arena.is_ok() {
            objects.push(("arena", compiled("arena.o", &in_arena, &[])?, folder.join("bpf/arena")));
        }
        let mut least = BTreeMap::new();
        for _ in 0..times {
            for (at, (_, object, pins)) in objects.iter().enumerate() {
                let said = looked_up(object, &pins.display().to_string(), "run_empty,run_fibula", 2)?;
                for line in said.lines().filter_map(|line| line.strip_prefix("ns ")) {
                    let (program, ns) = line.split_once(' ').ok_or("no figure")?;
                    let ns: f64 = ns.parse()?;
                    let least = least.entry((at, program.to_owned())).or_insert(ns);
                    *least = least.min(ns);
                }
            }
        }
        println!("{pattern} in turns, 2 runs each time");
        for ((at, program), ns) in least {
            println!("ns {} {program} {ns:.2}", objects[at].0);
        }
        println!("last: {}", right("run_fibula")?);
    }

    // Changes in calls of 64: made up alone, in a table alone, and through the mapping too, RIB included.
    println!("made-up {}", changes(routes, &mut random, |_| Ok(()))?);
    println!("table-alone {}", changes(routes, &mut random, |some| table.apply(some).map(drop))?);
    let follower = maps.clone().follow(&table)?;
    println!("followed {}", changes(routes, &mut random, |some| table.apply(some).map(drop))?);
    println!("turns {:?}", follower.turns());
    drop(follower);
    println!("wrong after changes {:?}", maps.check(&table.routes()?).1);
    unload(&pins)?;
    if arena.is_ok() {
        let pins = folder.join("bpf/arena");
        let maps = BpfTable::open(&pins)?;
        let follower = maps.clone().follow(&table)?;
        let changed = changes(routes, &mut random, |some| table.apply(some).map(drop))?;
        println!("arena followed {changed}");
        drop(follower);
        println!("arena: wrong after changes {:?}", maps.check(&table.routes()?).1);
        unload(&pins)?;
    }
    let begin = Instant::now();
    drop(maps);
    println!(
        "free-ms {:.1} (munmap and close; the kernel frees the pages later)",
        begin.elapsed().as_secs_f64() * 1e3
    );
    Ok(())
}

/// Makes changes for three seconds. Returns what one took, of the clock and of this thread's time on a processor.
fn changes<K: TableKey>(
    routes: &[Route<K>],
    random: &mut Random,
    mut apply: impl FnMut(&[Change<K>]) -> Result<(), TableError>,
) -> Result<String, Box<dyn Error>> {
    let on_processor_ns = || -> Result<u64, Box<dyn Error>> {
        let text = fs::read_to_string("/proc/thread-self/schedstat")?;
        Ok(text.split_whitespace().next().ok_or("no time of the thread")?.parse()?)
    };
    let (mut count, begin, before_ns) = (0, Instant::now(), on_processor_ns()?);
    while begin.elapsed().as_secs() < 3 {
        let some: Vec<Change<K>> = (0..64)
            .map(|_| {
                let route = routes[random.below(routes.len())];
                let hop = NextHop::try_from(1 + random.below(250) as u32).unwrap_or(route.next_hop);
                match random.below(4) {
                    0 => Change::Remove(route.prefix),
                    _ => Change::Insert(Route::new(route.prefix, hop)),
                }
            })
            .collect();
        apply(&some)?;
        count += some.len();
    }
    let wall_us = begin.elapsed().as_secs_f64() * 1e6 / count as f64;
    let processor_us = (on_processor_ns()? - before_ns) as f64 / 1e3 / count as f64;
    Ok(format!("change-us {wall_us:.2}, {processor_us:.2} on a processor (calls of 64)"))
}
