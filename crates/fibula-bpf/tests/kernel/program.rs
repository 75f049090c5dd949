//! Programs in the kernel: answers to 2^20 keys of each pattern, what the verifier looks at, words of any content.

use std::path::{Path, PathBuf};
use std::process::Command;

use fibula::rib::Rib;
use fibula_bpf::{BpfTable, Engine, Options};
use fibula_proof::tables::Random;
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::support::{
    Bpffs, Form, PATTERNS, Words, compile, compile_bpf, crate_path, defines, done, hostile, judge, keys_of,
    read_words, rib_of, table_of, trial, write_words,
};

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = of_family::<u32>();
    trials.extend(of_family::<u128>());
    trials
}

fn of_family<K: Words>() -> Vec<Trial> {
    let all = Form::all::<K>().flat_map(|form| {
        let name = |kind: &str| format!("program/{kind}/{}", form.name());
        let missing = form.no_programs();
        [
            trial(name("shaped"), missing, move || {
                answers::<K>(
                    form,
                    &rib_of(K::shaped(if K::BITS == 32 { 300_000 } else { 100_000 })),
                    &PATTERNS,
                )
            }),
            trial(name("hostile"), missing, move || {
                answers::<K>(form, &hostile(20_000, 9), &["edges", "match"])
            }),
            trial(name("verifier"), missing, move || verifier(form)),
            trial(name("any-words"), missing, move || any_words(form)),
        ]
    });
    all.collect()
}

/// The programs of the tests, compiled for maps, and maps in pins.
pub(crate) struct Programs {
    folder: tempfile::TempDir,
    _bpffs: Bpffs,
    pub(crate) pins: PathBuf,
    pub(crate) maps: BpfTable,
}

impl Programs {
    pub(crate) fn of(options: &Options, more: &[String]) -> Result<Self, Failure> {
        let (folder, bpffs) = (tempfile::tempdir()?, Bpffs::mount()?);
        let pins = bpffs.path().join("table");
        let maps = BpfTable::create(options)?;
        maps.pin(&pins)?;
        let defines = [defines(options), more.to_vec()].concat();
        compile_bpf(&crate_path("tests/c/keys.bpf.c"), &defines, &folder.path().join("keys.o"))?;
        compile(&crate_path("tests/c/run.c"), &[], &["-lbpf"], &folder.path().join("run"))?;
        Ok(Self { folder, _bpffs: bpffs, pins, maps })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&Path]) -> Command {
        let mut command = Command::new(self.path("run"));
        command.arg(self.path("keys.o")).arg(&self.pins).args(arguments);
        command
    }
}

fn answers<K: Words>(form: Form, rib: &Rib<K>, patterns: &[&str]) -> Result<(), Failure> {
    let table = table_of(rib, form.engine)?;
    let programs = Programs::of(&form.fitting(&table)?, &[])?;
    programs.maps.fill(&table)?;
    for pattern in patterns {
        let keys = keys_of(pattern, rib, 1 << 20);
        let (file, to) = (programs.path("keys"), programs.path("answers"));
        write_words(&file, keys.iter().flat_map(|key| key.words()))?;
        done(&mut programs.command(&["run_fibula".as_ref(), &file, &to]))?;
        let found = read_words(&std::fs::read(programs.path("answers.run_fibula"))?);
        judge(&keys, &found, rib, pattern)?;
    }
    Ok(())
}

/// The most instructions that the verifier may look at for a program of one lookup.
const fn most_verified(engine: Engine) -> u64 {
    match engine {
        Engine::Dir18Lines => 1_000,
        Engine::Dir17Bitmap => 7_000,
        _ => 12_000,
    }
}

fn verifier(form: Form) -> Result<(), Failure> {
    let (engine, programs) = (form.engine, Programs::of(&form.usual(), &[])?);
    let said = done(&mut programs.command(&["load".as_ref()]))?.stdout;
    let said = String::from_utf8(said)?;
    let of_one = said.lines().find_map(|line| line.strip_prefix("verified run_one ")).unwrap_or("none");
    let count: u64 = of_one.parse()?;
    println!("the verifier looks at {count} instructions for a lookup in {}", form.name());
    if (1..=most_verified(engine)).contains(&count) {
        return Ok(());
    }
    Err(format!("{count} instructions, of {}", most_verified(engine)).into())
}

/// Maps that nothing was written into have no routes, and words of any content end with some answer.
fn any_words(form: Form) -> Result<(), Failure> {
    let (engine, programs) = (form.engine, Programs::of(&form.usual(), &[])?);
    let mut random = Random(13);
    let keys: Vec<u32> = (0..4 << 20).map(|_| random.below(1 << 32) as u32).collect();
    let file = programs.path("keys");
    let bytes = if engine == Engine::DirBtree { 4 << 20 } else { 1 << 20 };
    write_words(&file, keys[..bytes].iter().copied())?;
    done(&mut programs.command(&["run_fibula".as_ref(), &file, &programs.path("answers")]))?;
    let found = read_words(&std::fs::read(programs.path("answers.run_fibula"))?);
    if found.len() != 1 << 20 || found.iter().any(|&answer| answer != 0) {
        return Err("an answer from maps that nothing was written into".into());
    }
    // In an arena, each page that is looked at takes memory.
    let looked_up = if form.is_arena() { 500 } else { 20_000 };
    for round in 0..6u32 {
        let mut state = random.below(1 << 32) as u32;
        if round < 4 {
            state = round << 8 | (state & 0xf);
        }
        // Few bits of each word in some rounds, which reach deeper.
        let mask = [u32::MAX, 0xff, 0x8000_ffff, 0xffff_0fff][round as usize % 4];
        let mut next = u64::from(round) + 1;
        programs.maps.scribble(state, || {
            next ^= next << 13;
            next ^= next >> 7;
            next ^= next << 17;
            next as u32 & mask
        });
        let to = Path::new("-");
        done(&mut programs.command(&["run_fibula".as_ref(), &file, to]))?;
        for key in keys.iter().take(looked_up) {
            let address = if engine == Engine::DirBtree {
                (u128::from(*key) << 97 | u128::from(*key)).to_be_bytes().into()
            } else {
                key.to_be_bytes().into()
            };
            let _ = programs.maps.get(address);
        }
    }
    Ok(())
}
