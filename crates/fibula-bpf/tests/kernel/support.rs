//! Tools, folders and tables of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use fibula::Table;
use fibula::net::{Change, Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib};
use fibula_bpf::{Backend, BpfTable, Engine, Options};
use fibula_proof::tables::Random;
use fibula_proof::verdict::{Failure, edges};
use fibula_workload::table::{Profile, TableSpec, generate};
use libtest_mimic::{Completion, Trial};

/// Makes a test that is ignored, with the reason, where something is missing.
pub(crate) fn trial(
    name: String,
    missing: fn() -> Option<String>,
    run: impl FnOnce() -> Result<(), Failure> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || match missing() {
        Some(reason) => Ok(Completion::ignored_with(reason)),
        None => {
            run()?;
            Ok(Completion::Completed)
        }
    })
}

pub(crate) fn crate_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn compiles(compiler: &str, options: &[&str], code: &str) -> bool {
    compiled(compiler, options, code).is_some()
}

/// Returns what the compiler makes of the code, as text, if it does.
fn compiled(compiler: &str, options: &[&str], code: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("try.c");
    fs::write(&file, code).expect("a file");
    let output = folder.path().join("try");
    let done = Command::new(compiler).arg(&file).args(options).arg("-o").arg(&output).output().ok()?;
    let made = done.status.success().then(|| fs::read(output).unwrap_or_default())?;
    Some(String::from_utf8_lossy(&made).into_owned())
}

/// Returns why the header cannot be compiled as plain C.
pub(crate) fn no_compiler() -> Option<String> {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found =
        *FOUND.get_or_init(|| compiles("cc", &[], "#include <linux/types.h>\nint main(void) { return 0; }"));
    (!found).then(|| "no C compiler with the kernel's headers: apt-get install gcc linux-libc-dev".to_owned())
}

/// Returns why no maps can be made.
pub(crate) fn no_bpf() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let why =
        || BpfTable::create(&Options::of(Engine::Dir18Lines)).err().map(|error| format!("no BPF: {error}"));
    WHY.get_or_init(why).clone()
}

/// Returns why programs cannot be compiled and loaded.
pub(crate) fn no_programs() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let why = || {
        no_compiler().or_else(no_bpf).or_else(|| {
            let code = "#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nint x;";
            if !compiles("clang", &["-target", "bpf", "-c", "-I", headers()], code) {
                return Some("no clang for BPF: apt-get install clang libbpf-dev".to_owned());
            }
            let code = "#include <bpf/libbpf.h>\nint main(void) { return !libbpf_version_string(); }";
            (!compiles("cc", &["-lbpf"], code)).then(|| "no libbpf: apt-get install libbpf-dev".to_owned())
        })
    };
    WHY.get_or_init(why).clone()
}

/// Returns why no arenas can be made.
pub(crate) fn no_arenas() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let options = Options::of(Engine::Dir18Lines).in_arena();
    let why = || BpfTable::create(&options).err().map(|error| format!("no arena: {error}"));
    no_bpf().or_else(|| WHY.get_or_init(why).clone())
}

/// Returns why programs with arenas cannot be compiled and loaded.
pub(crate) fn no_arena_programs() -> Option<String> {
    let no_clang =
        || clang_of_arenas().is_none().then(|| "no clang 19 for arenas: apt-get install clang-19".to_owned());
    no_programs().or_else(no_arenas).or_else(no_clang)
}

/// Returns a clang that knows address spaces of BPF.
fn clang_of_arenas() -> Option<&'static str> {
    static FOUND: OnceLock<Option<&'static str>> = OnceLock::new();
    let code = "int f(int at) { return *(int __attribute__((address_space(1))) *)(long)at; }";
    let find = || {
        let all = ["clang-19", "clang-20", "clang-21", "clang"];
        // Others take the attribute and read another address.
        all.into_iter().find(|clang| {
            let listing = compiled(clang, &["-O2", "-target", "bpf", "-S"], code).unwrap_or_default();
            listing.contains("addr_space_cast")
        })
    };
    *FOUND.get_or_init(find)
}

/// An engine in one kind of maps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) engine: Engine,
    backend: Backend,
}

impl Form {
    pub(crate) const fn arrays(engine: Engine) -> Self {
        Self { engine, backend: Backend::Arrays }
    }

    /// Returns those of a family.
    pub(crate) fn all<K: Words>() -> impl Iterator<Item = Self> {
        let both = |&engine| [Backend::Arrays, Backend::Arena].map(|backend| Self { engine, backend });
        K::ENGINES.iter().flat_map(both)
    }

    /// Returns both of an engine.
    pub(crate) fn both(engine: Engine) -> [Self; 2] {
        [Backend::Arrays, Backend::Arena].map(|backend| Self { engine, backend })
    }

    pub(crate) fn is_arena(self) -> bool {
        self.backend == Backend::Arena
    }

    /// Returns its name in those of tests.
    pub(crate) fn name(self) -> String {
        format!("{}{}", self.engine.name(), if self.is_arena() { "/arena" } else { "" })
    }

    /// Returns what says why such maps cannot be made.
    pub(crate) fn no_maps(self) -> fn() -> Option<String> {
        if self.is_arena() { no_arenas } else { no_bpf }
    }

    /// Returns what says why programs for such maps cannot be compiled and loaded.
    pub(crate) fn no_programs(self) -> fn() -> Option<String> {
        if self.is_arena() { no_arena_programs } else { no_programs }
    }

    fn of(self, options: Options) -> Options {
        if self.is_arena() { options.in_arena() } else { options }
    }

    pub(crate) fn usual(self) -> Options {
        self.of(Options::of(self.engine))
    }

    pub(crate) fn fitting(self, table: &Table) -> Result<Options, Failure> {
        Ok(self.of(Options::fitting(self.engine, table, 254)?))
    }
}

/// Where Debian has the kernel's headers of the machine.
pub(crate) fn headers() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "/usr/include/aarch64-linux-gnu"
    } else {
        "/usr/include/x86_64-linux-gnu"
    }
}

pub(crate) fn done(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Err(format!("{command:?}: {}\n{}", output.status, said.concat()).into())
}

/// Compiles a program for BPF.
pub(crate) fn compile_bpf(source: &Path, options: &[String], output: &Path) -> Result<(), Failure> {
    let is_arena = options.iter().any(|option| option == "-DFIBULA_ARENA");
    let clang = if is_arena { clang_of_arenas().unwrap_or("clang-19") } else { "clang" };
    let mut command = Command::new(clang);
    command.args([
        "-O2",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-target",
        "bpf",
        "-mcpu=v3",
        "-I",
        headers(),
        "-I",
    ]);
    command.arg(crate_path("include")).args(options).arg("-c").arg(source).arg("-o").arg(output);
    done(&mut command).map(drop)
}

/// Compiles a program of this machine.
pub(crate) fn compile(
    source: &Path,
    options: &[String],
    libraries: &[&str],
    output: &Path,
) -> Result<(), Failure> {
    let mut command = Command::new(std::env::var_os("FIBULA_BPF_CC").unwrap_or_else(|| "cc".into()));
    command.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(crate_path("include")).args(options);
    done(command.arg(source).arg("-o").arg(output).args(libraries)).map(drop)
}

/// Returns the options of a compiler for maps of these options.
pub(crate) fn defines(options: &Options) -> Vec<String> {
    let header = options.c_header();
    let mut all: Vec<String> = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "))
        .map(|line| format!("-D{}", line.replacen(' ', "=", 1)))
        .collect();
    if options.engine == Engine::DirBtree {
        all.push("-DIPV6".to_owned());
    }
    all
}

/// A file system of BPF of this test alone.
pub(crate) struct Bpffs(tempfile::TempDir);

impl Bpffs {
    pub(crate) fn mount() -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        done(Command::new("mount").args(["-t", "bpf", "bpf"]).arg(folder.path()))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Bpffs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

/// A key that both kinds of programs take as words of 32 bits.
pub(crate) trait Words: Key + fibula::live::TableKey {
    const ENGINES: &'static [Engine];
    fn words(self) -> Vec<u32>;
    fn dual(rib: Rib<Self>) -> DualRib;
    fn shaped(routes: usize) -> Vec<Route<Self>>;
    fn one(ribs: DualRib) -> Rib<Self>;
    const REAL: &'static str;
}

impl Words for u32 {
    const ENGINES: &'static [Engine] = &[Engine::Dir18Lines, Engine::Dir17Bitmap];
    const REAL: &'static str = "dfz4-2023";

    fn words(self) -> Vec<u32> {
        vec![self]
    }

    fn dual(rib: Rib<Self>) -> DualRib {
        DualRib::new(rib, Rib::default())
    }

    fn shaped(routes: usize) -> Vec<Route<Self>> {
        generate(&TableSpec { routes, ..TableSpec::ipv4() }, &Profile::ipv4()).expect("a table")
    }

    fn one(ribs: DualRib) -> Rib<Self> {
        ribs.v4
    }
}

impl Words for u128 {
    const ENGINES: &'static [Engine] = &[Engine::DirBtree];
    const REAL: &'static str = "dfz6-2024";

    fn words(self) -> Vec<u32> {
        vec![(self >> 96) as u32, (self >> 64) as u32, (self >> 32) as u32, self as u32]
    }

    fn dual(rib: Rib<Self>) -> DualRib {
        DualRib::new(Rib::default(), rib)
    }

    fn shaped(routes: usize) -> Vec<Route<Self>> {
        generate(&TableSpec { routes, ..TableSpec::ipv6() }, &Profile::ipv6()).expect("a table")
    }

    fn one(ribs: DualRib) -> Rib<Self> {
        ribs.v6
    }
}

pub(crate) fn rib_of<K: Words>(routes: impl IntoIterator<Item = Route<K>>) -> Rib<K> {
    let mut rib = Rib::default();
    for route in routes {
        rib.insert(route).expect("a route");
    }
    rib
}

pub(crate) fn word(next_hop: Option<NextHop>) -> u32 {
    next_hop.map_or(0, NextHop::id)
}

/// Returns a live table of routes with the engine.
pub(crate) fn table_of<K: Words>(rib: &Rib<K>, engine: Engine) -> Result<Table, Failure> {
    Ok(fibula_bpf::live_table(K::dual(rib.clone()), &[engine])?)
}

/// Returns changes by family.
pub(crate) fn split<K: Words>(changes: &[Change<K>]) -> (Vec<Change<u32>>, Vec<Change<u128>>) {
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for change in changes {
        let (prefix, hop) = match change {
            Change::Insert(route) => (route.prefix, Some(route.next_hop)),
            Change::Remove(prefix) => (*prefix, None),
        };
        let (bits, len) = (prefix.addr().to_bits(), prefix.len());
        if K::BITS == 32 {
            let prefix = Prefix::masked(bits as u32, len).expect("a prefix");
            v4.push(hop.map_or(Change::Remove(prefix), |hop| Change::Insert(Route::new(prefix, hop))));
        } else {
            let prefix = Prefix::masked(bits, len).expect("a prefix");
            v6.push(hop.map_or(Change::Remove(prefix), |hop| Change::Insert(Route::new(prefix, hop))));
        }
    }
    (v4, v6)
}

/// Patterns of keys.
pub(crate) const PATTERNS: [&str; 4] = ["random", "match", "edges", "sequential"];

/// Returns keys of a pattern.
pub(crate) fn keys_of<K: Words>(pattern: &str, rib: &Rib<K>, count: usize) -> Vec<K> {
    let mut random = Random(61);
    let routes: Vec<Route<K>> = rib.iter().collect();
    let mut keys: Vec<K> = match pattern {
        "match" => (0..count)
            .map(|_| {
                let route = routes[random.below(routes.len())];
                random.inside(route.prefix)
            })
            .collect(),
        "edges" => {
            let mut some: Vec<Prefix<K>> = routes.iter().map(|route| route.prefix).collect();
            // All lengths, and the whole space.
            some.sort_unstable_by_key(|prefix| (prefix.addr().to_bits() as u32).wrapping_mul(0x9e37_79b1));
            edges(some.into_iter().take(count / 3))
        }
        "sequential" => {
            let first = routes[routes.len() / 2].prefix.addr().to_bits();
            (0..count as u128).map(|at| K::from_bits(first.wrapping_add(at * 37))).collect()
        }
        _ => (0..count).map(|_| random.key()).collect(),
    };
    keys.truncate(count);
    while keys.len() < count {
        keys.push(random.key());
    }
    keys
}

pub(crate) fn write_words(path: &Path, words: impl IntoIterator<Item = u32>) -> Result<(), Failure> {
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    Ok(fs::write(path, bytes)?)
}

pub(crate) fn read_words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&word| u32::from_ne_bytes(word)).collect()
}

/// Compares answers with those of the routes.
pub(crate) fn judge<K: Words>(keys: &[K], found: &[u32], rib: &Rib<K>, what: &str) -> Result<(), Failure> {
    if found.len() != keys.len() {
        return Err(format!("{what}: {} answers to {} keys", found.len(), keys.len()).into());
    }
    for (&key, &found) in keys.iter().zip(found) {
        let right = word(rib.lookup_prefix(key).map(|route| route.next_hop));
        if found != right {
            let address = key.address();
            return Err(format!("{what}: {address}: {found} where {right} is right (0: no route)").into());
        }
    }
    Ok(())
}

/// Returns many tables of a space of three bits beside each other, each at a place of its own `shift` bits from the end: from the
/// boundaries of what engines cut keys by.
pub(crate) fn narrow<K: Words>(shift: u8, first: usize, step: usize, count: usize) -> Rib<K> {
    let mut rib = Rib::default();
    // Places from the first bits on, spread so that several share an entry and several do not.
    let places = u128::from(K::BITS - 3 - shift).min(14) as u32;
    for table in 0..count.min(1 << places) {
        // A number of base 3 says which of the 15 prefixes is absent, A or B.
        let mut number = (first + table * step) % 14_348_907;
        let base = (table as u128) << (3 + shift);
        for len in 0..4u8 {
            for at in 0..1u128 << len {
                let hop = (number % 3) as u32;
                number /= 3;
                if hop > 0 {
                    let bits = base | at << (3 - len) << shift;
                    let prefix =
                        Prefix::masked(K::from_bits(bits), K::BITS - 3 - shift + len).expect("a prefix");
                    // Wide next hops now and then, which have a way of their own.
                    let wide = if table % 7 == 3 { 70_000 } else { 0 };
                    rib.insert(Route::new(prefix, NextHop::try_from(hop + wide).expect("a next hop")))
                        .expect("a route");
                }
            }
        }
    }
    rib
}

/// Returns routes of many lengths and next hops of every width.
pub(crate) fn hostile<K: Words>(count: usize, seed: u64) -> Rib<K> {
    let mut random = Random(seed);
    let mut rib = Rib::default();
    let crowd: Vec<K> = (0..1 + count / 50).map(|_| random.key()).collect();
    for _ in 0..count {
        let len = 1 + random.below(usize::from(K::BITS)) as u8;
        let near = crowd[random.below(crowd.len())].to_bits();
        let bits = near ^ (random.below(1 << 16) as u128) << random.below(usize::from(K::BITS) - 15);
        let hop = match random.below(8) {
            0 => 1 + random.below(1 << 24),
            1 => 1 + random.below(1 << 30),
            _ => 1 + random.below(250),
        };
        let prefix =
            Prefix::masked(K::from_bits(bits & (u128::MAX >> (128 - K::BITS))), len).expect("a prefix");
        rib.insert(Route::new(prefix, NextHop::try_from(hop as u32).expect("a next hop"))).expect("a route");
    }
    rib
}
