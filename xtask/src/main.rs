//! Chores of this workspace, which need no library of it: `cargo xtask NAME`.

mod build_cost;
mod circles;
mod fast;
mod instructions;
mod instructions_c;
mod mutants;
mod package;
mod picture;
mod programs;
mod times_c;
mod words;

use std::process::ExitCode;

use instructions::{LOOKUPS, NEON, ROUTER};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
cargo xtask instructions [--record]   count the instructions of a lookup by every engine under callgrind, and compare them with
                                      records/instructions.json; --record writes it anew
cargo xtask instructions-aarch64 [--record]   the same for the kernels of NEON, under QEMU, and records/instructions-aarch64.json
cargo xtask instructions-router [--record]   the same for a packet through the router, and records/instructions-router.json
cargo xtask instructions-c            what a call of the C library costs more than the same lookup in Rust; 1 where it is too much
cargo xtask times-c [--record]        nanoseconds of the same lookups in C and in Rust, in pairs; --record keeps them in records/c.json
cargo xtask build-cost [--check | --record]
                                      what a user's program costs to build: processor time, memory, bytes of code, lines of LLVM IR;
                                      --check compares what needs no clock with records/build-cost.json, --record writes it anew
cargo xtask picture [--check]         docs/crates.svg and the table of crates in ARCHITECTURE.md, from cargo metadata; --check compares
cargo xtask words [--check]           type names with several meanings within a crate, circles of imports, and how comments are
                                      written, into records/words.json; --check refuses what got worse
cargo xtask fast [--check | FILE]     compiles the router's program for XDP, with clang, into crates/fibula-router/src/kernel/fast/program.txt or
                                      another file; --check compares the hash of its sources, and where that clang is, the program
cargo xtask mutants FOLDER... [--sample N] [--seed N] [--all] [--share K/N] [--fresh] [--check]
                                      mutation tests of a folder, into records/mutants/FOLDER.json; --sample and --seed choose some
                                      (200, 1), --all takes every mutant, and every folder where none is named; --share
                                      runs one in N of them, and writes the record when none is left; --fresh forgets earlier runs;
                                      --check runs the tests once, without a mutant. Needs cargo-mutants
cargo xtask package [--output DIR] [--profile NAME] [deb | rpm | archive | container]...
                                      packages to install, static archives, the file system of a container, lists of what is inside and
                                      checksums, into target/packages; --profile compiles faster, for tests

Exit codes: 0, 1 a difference, 2 wrong use, 3 it failed, 77 skipped, with the reason";

/// What a chore came to.
enum End {
    Good,
    /// Something differs from what is recorded.
    Differs,
    Skipped(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let end = match arguments[..] {
        ["instructions"] => instructions::compare(&LOOKUPS),
        ["instructions", "--record"] => instructions::record(&LOOKUPS),
        ["instructions-aarch64"] => instructions::compare(&NEON),
        ["instructions-aarch64", "--record"] => instructions::record(&NEON),
        ["instructions-router"] => instructions::compare(&ROUTER),
        ["instructions-router", "--record"] => instructions::record(&ROUTER),
        ["instructions-c"] => instructions_c::compare(),
        ["times-c"] => times_c::show(),
        ["times-c", "--record"] => times_c::record(),
        ["build-cost"] => build_cost::show(),
        ["build-cost", "--check"] => build_cost::check(),
        ["build-cost", "--record"] => build_cost::record(),
        ["picture"] => picture::write(),
        ["picture", "--check"] => picture::check(),
        ["words"] => words::record(),
        ["words", "--check"] => words::check(),
        ["fast"] => fast::write(None),
        ["fast", "--check"] => fast::check(),
        ["fast", file] if !file.starts_with('-') => fast::write(Some(file)),
        ["mutants", ref rest @ ..] => match mutants::mutants(rest).transpose() {
            Some(end) => end,
            None => return ExitCode::from(2),
        },
        ["package", ref rest @ ..] => match package::package(rest).transpose() {
            Some(end) => end,
            None => return ExitCode::from(2),
        },
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match end {
        Ok(End::Good) => ExitCode::SUCCESS,
        Ok(End::Differs) => ExitCode::FAILURE,
        Ok(End::Skipped(why)) => {
            println!("SKIPPED: {why}");
            ExitCode::from(77)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}
