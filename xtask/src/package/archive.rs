//! Static programs of the command: archives with what belongs to it, the file system of a container that has nothing else, and the package of
//! Debian for another machine.

use std::path::{Path, PathBuf};

use super::compile::{COMMAND, compile, missing_for_static, standard_library};
use super::parts::Runnable;
use super::release::{Release, processor};
use super::stage::Stage;
use super::{Options, deb, licences, parts, sbom};
use crate::Outcome;
use crate::programs::{output, root, run};

/// The machines that archives are for.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

pub(crate) fn make(release: &Release, options: &Options, work: &Path, to: &Path) -> Outcome<Vec<PathBuf>> {
    let mut made = Vec::new();
    for target in TARGETS {
        // That of this machine needs the programs of this machine, and is made with the others.
        let wants_deb =
            options.wants("deb") && processor(target) != release.processor() && deb::missing().is_none();
        let kinds: Vec<&str> = [("deb", wants_deb)]
            .into_iter()
            .chain(["archive", "container"].map(|kind| (kind, options.wants(kind))))
            .filter_map(|(kind, is_wanted)| is_wanted.then_some(kind))
            .collect();
        if kinds.is_empty() {
            continue;
        }
        if let Some(missing) = missing_for_static(target)? {
            for kind in kinds {
                println!("SKIPPED {kind} {target}: {missing}");
            }
            continue;
        }
        println!("{target}: {}", standard_library(target)?.unwrap_or_default());
        let program = compile(target, &COMMAND, options.profile.as_deref().unwrap_or("release"))?;
        is_static(&program)?;
        // The command of this machine writes the same pages, and runs here.
        let native = compile(&release.compiler.target, &COMMAND, native_profile(&program))?;
        let runnable = Runnable { program: &program, native: &native };
        let name = format!("fibula-{}-{}-linux", release.version, processor(target));
        let licences = licences::text(&[&COMMAND], target)?;
        for kind in kinds {
            if kind == "deb" {
                made.push(deb::make_static(release, target, runnable, &work.join("deb"), to)?);
                continue;
            }
            let stage = Stage::new(release, work.join(kind).join(target))?;
            if kind == "archive" {
                static_program(&stage, &name, target, runnable, &licences)?;
                extension(&stage, &name, target, native_profile(&program))?;
                made.push(pack(&stage, &name, to, &format!("{name}.tar.xz"))?);
            } else {
                container(&stage, &program, &licences)?;
                made.push(pack(&stage, ".", to, &format!("{name}-container.tar.xz"))?);
            }
        }
    }
    Ok(made)
}

/// Refuses a program that would look for libraries.
fn is_static(program: &Path) -> Outcome {
    let text = output(std::process::Command::new("objdump").arg("-p").arg(program))?;
    if text.contains("NEEDED") {
        return Err(format!("{} is not static:\n{text}", program.display()).into());
    }
    Ok(())
}

/// A folder with the command, its manual pages and completions, the unit, licences, and what is inside.
fn static_program(
    stage: &Stage<'_>,
    name: &str,
    target: &str,
    Runnable { program, native }: Runnable<'_>,
    licences: &str,
) -> Outcome {
    let at = |path: &str| format!("/{name}/{path}");
    stage.program(&at("fibula"), program)?;
    let pages = stage.at(&at("man/x"))?.with_file_name("");
    run(stage.release.command(&native.to_string_lossy()).args(["man", "--output"]).arg(pages))?;
    for (shell, file) in [("bash", "fibula"), ("zsh", "_fibula"), ("fish", "fibula.fish")] {
        stage.text(&at(&format!("completions/{shell}/{file}")), parts::completions(stage, native, shell)?)?;
    }
    stage.text(
        &at("fibula-router.service"),
        std::fs::read(root().join("docs/guide/fibula-router.service"))?,
    )?;
    for file in parts::MONITORING {
        stage.text(&at(file), parts::monitoring(file)?)?;
    }
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        stage.text(&at(file), std::fs::read(root().join(file))?)?;
    }
    stage.text(&at("THIRD-PARTY-LICENSES"), licences)?;
    stage.text(&at("fibula.cdx.json"), sbom::text(stage.release, &COMMAND, target)?)
}

/// DuckDB's extension, which is a library of this machine: another one's would need its compiler of C.
fn extension(stage: &Stage<'_>, name: &str, target: &str, profile: &str) -> Outcome {
    if processor(target) != stage.release.processor() {
        println!("SKIPPED duckdb {target}: the extension is made on a machine of its own kind");
        return Ok(());
    }
    let build = root().join("bindings/duckdb/build");
    let to = stage.at(&format!("/{name}/duckdb/fibula.duckdb_extension"))?;
    run(stage.release.command(&build.to_string_lossy()).args(["--profile", profile, "--to"]).arg(to))
}

/// Returns the profile of a program by its folder.
fn native_profile(program: &Path) -> &str {
    match program.parent().and_then(Path::file_name).and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    }
}

/// The root of a container: the program, two accounts, and a folder for temporary files and for the control socket.
fn container(stage: &Stage<'_>, program: &Path, licences: &str) -> Outcome {
    stage.program("/usr/bin/fibula", program)?;
    stage.text(
        "/etc/passwd",
        "root:x:0:0:root:/:/usr/bin/fibula\nnobody:x:65534:65534:nobody:/:/usr/bin/fibula\n",
    )?;
    stage.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")?;
    stage.text("/etc/fibula/router.toml", super::template("router.toml")?)?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        stage.text(&format!("/usr/share/doc/fibula/{file}"), std::fs::read(root().join(file))?)?;
    }
    stage.text("/usr/share/doc/fibula/THIRD-PARTY-LICENSES", licences)?;
    for folder in ["tmp", "run", "proc", "sys", "dev"] {
        std::fs::create_dir_all(stage.root.join(folder))?;
    }
    Ok(())
}

/// Packs a folder of the stage. Nothing in the archive depends on this machine: names are in order, owners are numbers, times are those
/// of the release.
fn pack(stage: &Stage<'_>, what: &str, to: &Path, name: &str) -> Outcome<PathBuf> {
    stage.finish()?;
    let tmp = stage.root.join("tmp");
    if tmp.is_dir() {
        run(stage.release.command("chmod").arg("1777").arg(&tmp))?;
    }
    let (archive, file) = (to.join(name.trim_end_matches(".xz")), to.join(name));
    let mut tar = stage.release.command("tar");
    tar.args(["--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    run(tar.arg("-C").arg(&stage.root).arg("-cf").arg(&archive).arg(what))?;
    run(stage.release.command("xz").args(["-6", "-T1", "--force"]).arg(archive))?;
    Ok(file)
}
