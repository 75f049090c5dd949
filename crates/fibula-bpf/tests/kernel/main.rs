//! Words in maps and the header of programs: `cargo test -p fibula-bpf --test kernel [NAME]`.
//!
//! `plain/` compiles the header as plain C and needs a compiler; `memory/` needs nothing. The others run programs in the kernel and need
//! root, BPF, clang and libbpf; without them they are ignored, with the reason.

mod live;
mod memory;
mod pins;
mod plain;
mod program;
mod programs;
mod support;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if let Some(code) = pins::child().or_else(programs::child) {
        return code;
    }
    let mut trials = memory::trials();
    trials.extend(plain::trials());
    trials.extend(program::trials());
    trials.extend(live::trials());
    trials.extend(pins::trials());
    trials.extend(programs::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
