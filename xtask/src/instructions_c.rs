//! What a call of the C library costs more than the same lookup in Rust, in instructions under callgrind: both programs make the same lookups
//! in the same table, so no counts are recorded.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::instructions::Counter;
use crate::programs::{is_there, output, root, run, target};
use crate::{End, Outcome};

/// Most that a call for 32 addresses may cost more.
const BULK_PERCENT: f64 = 5.0;

/// Most instructions that a call for one address may cost more.
const SINGLE: f64 = 20.0;

/// Two numbers of passes, of which start and build cancel, and the lookups of a pass.
const PASSES: [u32; 2] = [1, 11];
pub(crate) const KEYS: f64 = 4096.0;

pub(crate) fn compare() -> Outcome<End> {
    if let Some(missing) = ["valgrind", "cc"].into_iter().find(|name| !is_there(name)) {
        return Ok(End::Skipped(format!("no {missing}")));
    }
    let [rust, c] = programs()?;
    let mut beyond = false;
    for kind in ["bulk", "single"] {
        check_answers(&[&rust, &c], kind)?;
        let (rust, c) = (per_lookup(&rust, kind)?, per_lookup(&c, kind)?);
        let (more, is_beyond) = match kind {
            "bulk" => {
                (format!("{:+.2} %", 100.0 * (c - rust) / rust), c > rust * (1.0 + BULK_PERCENT / 100.0))
            }
            _ => (format!("{:+.1} instructions", c - rust), c > rust + SINGLE),
        };
        println!(
            "{kind}: {rust:.2} in Rust, {c:.2} in C, {more}{}",
            if is_beyond { ", TOO MUCH" } else { "" }
        );
        beyond |= is_beyond;
    }
    Ok(if beyond { End::Differs } else { End::Good })
}

/// Builds both programs, with the C library as it is installed, and returns where they are: in Rust, in C.
pub(crate) fn programs() -> Outcome<[PathBuf; 2]> {
    let build =
        ["build", "--quiet", "--profile", "library", "--package", "fibula-c", "--lib", "--example", "count"];
    run(Command::new("cargo").args(build).current_dir(root()))?;
    let built = target().join("library").canonicalize()?;
    let (rust, c) = (built.join("examples/count"), built.join("count-c"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(&c).arg("-I").arg(root().join("bindings/c/include"));
    cc.arg(root().join("bindings/c/tests/count.c")).arg("-L").arg(&built).arg("-lfibula");
    run(cc.arg(format!("-Wl,-rpath,{}", built.display())))?;
    // Debian's file is found by the soname.
    let soname = built.join("libfibula.so.0");
    if !soname.exists() {
        std::os::unix::fs::symlink("libfibula.so", soname)?;
    }
    Ok([rust, c])
}

/// Compares the ids that both programs find.
pub(crate) fn check_answers(programs: &[&Path; 2], kind: &str) -> Outcome {
    let [in_rust, in_c] = programs.map(|program| output(Command::new(program).args([kind, "3"])));
    if in_rust? != in_c? {
        return Err(format!("{kind}: the programs find other ids").into());
    }
    Ok(())
}

/// Returns the instructions of a lookup.
fn per_lookup(program: &Path, kind: &str) -> Outcome<f64> {
    let [few, many] = PASSES.map(|passes| Counter::Callgrind.once(program, kind, passes, None));
    Ok((many? as f64 - few? as f64) / (f64::from(PASSES[1] - PASSES[0]) * KEYS))
}
