//! Programs and libraries for packages, compiled in a folder of their own. Paths of this machine are not in them, so that the same
//! commit gives the same bytes wherever it is compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::release::{Release, processor};
use crate::Outcome;
use crate::programs::{is_there, output, root, run, target};

/// A program: its package of cargo, its features, and the profile that it is released with.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) features: &'static str,
}

pub(crate) const COMMAND: Program = Program { name: "fibula", package: "fibula-cli", features: "parquet" };
pub(crate) const LABORATORY: Program =
    Program { name: "fibula-lab", package: "fibula-lab", features: "fibula-cli/parquet" };
pub(crate) const LIBRARY: Program = Program { name: "libfibula", package: "fibula-c", features: "" };
const CHECKED_LIBRARY: Program = Program { features: "checked", ..LIBRARY };

/// What the packages of one machine are made of.
pub(crate) struct Built {
    pub(crate) target: String,
    pub(crate) command: PathBuf,
    pub(crate) laboratory: PathBuf,
    /// The folder of `libfibula.so` and `libfibula.a`.
    pub(crate) libraries: PathBuf,
    /// The folder of the checked `libfibula.so`.
    pub(crate) checked: PathBuf,
}

impl Built {
    /// Compiles everything for the machine that this runs on.
    pub(crate) fn for_packages(release: &Release, profile: Option<&str>) -> Outcome<Self> {
        let target = &release.compiler.target;
        println!("{target}: {}", standard_library(target)?.ok_or("no standard library for this machine")?);
        let library = compile(target, &LIBRARY, profile.unwrap_or("library"))?;
        let checked = compile(target, &CHECKED_LIBRARY, profile.unwrap_or("library"))?;
        let folder =
            |library: &Path| library.parent().map(Path::to_owned).ok_or("a library without a folder");
        let built = Self {
            target: target.clone(),
            command: compile(target, &COMMAND, profile.unwrap_or("release"))?,
            laboratory: compile(target, &LABORATORY, profile.unwrap_or("release"))?,
            libraries: folder(&library)?,
            checked: folder(&checked)?,
        };
        for file in [&built.command, &built.laboratory, &library, &checked] {
            super::glibc::check(file)?;
        }
        Ok(built)
    }
}

/// Compiles a program, and returns where it is.
pub(crate) fn compile(triple: &str, program: &Program, profile: &str) -> Outcome<PathBuf> {
    // The library's file has one name, whatever its features.
    let folder =
        target().join(if program.features == CHECKED_LIBRARY.features { "dist-checked" } else { "dist" });
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root()).args(["build", "--locked", "--profile", profile, "--target", triple]);
    cargo.args(["--package", program.package]).arg("--target-dir").arg(&folder);
    if !program.features.is_empty() {
        cargo.args(["--features", program.features]);
    }
    let is_library = program.package == LIBRARY.package;
    if !is_library {
        cargo.args(["--bin", program.name]);
    }
    cargo.env("CARGO_INCREMENTAL", "0").env("FIBULA_PACKAGED", "1");
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags()?).env_remove("RUSTFLAGS");
    if let Some(compiler) = cross_compiler(triple) {
        let variable = triple.replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), &compiler);
        cargo.env(format!("CC_{variable}"), compiler);
    } else if triple.ends_with("-musl") {
        // For this machine's processor the compiler would be looked for by a name that Debian does not have.
        cargo.env(format!("CC_{}", triple.replace('-', "_")), "cc");
    }
    run(&mut cargo)?;
    // Cargo's folder for the profile of tests has another name.
    let profile = if profile == "dev" { "debug" } else { profile };
    let built = folder.join(triple).join(profile);
    if is_library {
        return Ok(built.join("libfibula.so"));
    }
    strip(triple, &built.join(program.name))
}

/// Returns the compiler of C for another machine than this one, by Debian's name: it compiles zstd, and links.
fn cross_compiler(triple: &str) -> Option<String> {
    is_other(triple).then(|| format!("{}-linux-gnu-gcc", processor(triple)))
}

fn is_other(triple: &str) -> bool {
    processor(triple) != std::env::consts::ARCH
}

/// Takes the symbols out of a program, which only debuggers read.
fn strip(triple: &str, program: &Path) -> Outcome<PathBuf> {
    let stripped = program.with_extension("stripped");
    let tool =
        if is_other(triple) { format!("{}-linux-gnu-strip", processor(triple)) } else { "strip".to_owned() };
    run(Command::new(tool).arg("-o").arg(&stripped).arg(program))?;
    Ok(stripped)
}

/// Options of the compiler that take paths of this machine out of the result.
fn flags() -> Outcome<String> {
    let root = root().canonicalize()?;
    std::fs::create_dir_all(target())?;
    let target = target().canonicalize()?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .ok_or("neither CARGO_HOME nor HOME is set")?;
    // The last that matches counts.
    let mut flags = vec![
        format!("--remap-path-prefix={}=.", root.display()),
        format!("--remap-path-prefix={}=target", target.display()),
    ];
    for registry in std::fs::read_dir(home.join("registry/src"))? {
        flags.push(format!("--remap-path-prefix={}=crates.io", registry?.path().display()));
    }
    Ok(flags.join("\u{1f}"))
}

/// Says where the standard library of a target is from, or returns nothing where there is none.
pub(crate) fn standard_library(triple: &str) -> Outcome<Option<String>> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]))?;
    let libraries = Path::new(libraries.trim());
    let is_std = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("libstd-");
    let found =
        std::fs::read_dir(libraries).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_std)));
    if !found {
        return Ok(None);
    }
    let version = output(Command::new("rustc").arg("--version"))?;
    let origin = if libraries.to_string_lossy().contains("/toolchains/") {
        "rustup's component rust-std"
    } else {
        "the system's packages"
    };
    Ok(Some(format!("the standard library is of {origin}, {}", version.trim())))
}

/// Returns what is missing to make a static program for a target.
pub(crate) fn missing_for_static(triple: &str) -> Outcome<Option<String>> {
    if standard_library(triple)?.is_none() {
        return Ok(Some(format!("no standard library for {triple}: rustup target add {triple}")));
    }
    let compiler = cross_compiler(triple).unwrap_or_else(|| "cc".to_owned());
    Ok((!is_there(&compiler)).then(|| format!("no compiler of C for it: {compiler}")))
}
