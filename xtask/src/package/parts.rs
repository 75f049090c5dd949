//! The packages, and which files are in each. Names of packages are those of Debian; RPM has `-devel` for `-dev`.

use std::fs;
use std::path::{Path, PathBuf};

use super::compile::{Built, COMMAND, LABORATORY, LIBRARY, Program};
use super::stage::Stage;
use super::{licences, template};
use crate::Outcome;
use crate::programs::{root, run};

/// A package.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) debian_section: &'static str,
    pub(crate) summary: &'static str,
    /// Paragraphs of one line each.
    pub(crate) description: &'static str,
    pub(crate) programs: &'static [&'static Program],
}

pub(crate) const PARTS: [Part; 4] = [
    Part {
        name: "fibula",
        debian_section: "net",
        summary: "look up, compare and inspect routing tables, and route packets",
        description: "The command looks addresses up in routing tables by the million, adds routes to logs of \
                      flows, and compares, compiles and converts tables of MRT, CSV, JSON and MaxMind files.\n\
                      Its router forwards IPv4 and IPv6 packets. The unit fibula-router.service is neither enabled \
                      nor started by the installation.",
        programs: &[&COMMAND],
    },
    Part {
        name: "libfibula0",
        debian_section: "libs",
        summary: "longest-prefix match for IPv4 and IPv6",
        description: "A library that finds the route of an address in routing tables that are mapped from files, built \
                      from arrays, or change while threads look addresses up.",
        programs: &[&LIBRARY],
    },
    Part {
        name: "libfibula-dev",
        debian_section: "libdevel",
        summary: "longest-prefix match for IPv4 and IPv6 - development files",
        description: "The headers for C and C++, the archive for static programs, files for pkg-config and CMake, examples, \
                      and a library that finds misuse of handles.",
        programs: &[&LIBRARY],
    },
    Part {
        name: "fibula-lab",
        debian_section: "net",
        summary: "measure longest-prefix match",
        description: "The laboratory's command measures the rates, the memory and the changes of lookup structures, and repeats the \
                      tables and figures of papers.",
        programs: &[&LABORATORY],
    },
];

/// Folders whose names differ between systems.
pub(crate) struct Places {
    /// Below /usr.
    pub(crate) libraries: String,
    pub(crate) zsh: &'static str,
}

/// A program of a package, and one of this machine that writes the same manual pages and completions.
#[derive(Clone, Copy)]
pub(crate) struct Runnable<'a> {
    pub(crate) program: &'a Path,
    pub(crate) native: &'a Path,
}

impl<'a> From<&'a PathBuf> for Runnable<'a> {
    fn from(program: &'a PathBuf) -> Self {
        Self { program, native: program }
    }
}

impl Part {
    /// Places the files of the package with the command alone, and returns which it is.
    pub(crate) fn of_command(
        stage: &Stage<'_>,
        program: Runnable<'_>,
        target: &str,
        zsh: &'static str,
    ) -> Outcome<&'static Self> {
        let part = &PARTS[0];
        part.place_command(stage, program, zsh)?;
        part.place_licences(stage, target)?;
        Ok(part)
    }

    /// Places the files of a package, except what the kind of package adds.
    pub(crate) fn place(&self, stage: &Stage<'_>, built: &Built, places: &Places) -> Outcome {
        match self.name {
            "fibula" => self.place_command(stage, (&built.command).into(), places.zsh)?,
            "fibula-lab" => command(stage, (&built.laboratory).into(), self.name, places.zsh)?,
            _ => library(stage, built, places, self.name == "libfibula-dev")?,
        }
        self.place_licences(stage, &built.target)
    }

    fn place_command(&self, stage: &Stage<'_>, program: Runnable<'_>, zsh: &str) -> Outcome {
        command(stage, program, self.name, zsh)?;
        unit(stage)?;
        stage.text("/etc/fibula/router.toml", template("router.toml")?)
    }

    fn place_licences(&self, stage: &Stage<'_>, target: &str) -> Outcome {
        stage.gzip(
            &format!("/usr/share/doc/{}/THIRD-PARTY-LICENSES", self.name),
            licences::text(self.programs, target)?,
        )
    }
}

/// A command with its manual pages and completions.
fn command(stage: &Stage<'_>, program: Runnable<'_>, name: &str, zsh: &str) -> Outcome {
    stage.program(&format!("/usr/bin/{name}"), program.program)?;
    let pages = stage.at("/usr/share/man/man1/x")?.with_file_name("");
    run(stage.release.command(&program.native.to_string_lossy()).args(["man", "--output"]).arg(&pages))?;
    for page in fs::read_dir(&pages)? {
        run(stage.release.command("gzip").arg("-9n").arg(page?.path()))?;
    }
    for (shell, path) in [
        ("bash", format!("/usr/share/bash-completion/completions/{name}")),
        ("zsh", format!("/usr/share/zsh/{zsh}/_{name}")),
        ("fish", format!("/usr/share/fish/vendor_completions.d/{name}.fish")),
    ] {
        stage.text(&path, completions(stage, program.native, shell)?)?;
    }
    Ok(())
}

/// Returns the completions of a command for a shell.
pub(crate) fn completions(stage: &Stage<'_>, program: &Path, shell: &str) -> Outcome<String> {
    crate::programs::output(stage.release.command(&program.to_string_lossy()).args(["completions", shell]))
}

/// The dashboard and the alert rules of the guide, by file name.
pub(crate) const MONITORING: [&str; 2] = ["fibula-router-dashboard.json", "fibula-router-alerts.yml"];

/// Returns a file of [`MONITORING`].
pub(crate) fn monitoring(name: &str) -> Outcome<String> {
    Ok(fs::read_to_string(root().join("docs/guide/monitoring").join(name))?)
}

/// The unit, under its own name and as the template for upgrades without a gap; and what watches it.
fn unit(stage: &Stage<'_>) -> Outcome {
    let text = installed_unit()?;
    for name in ["fibula-router.service", "fibula-router@.service"] {
        stage.text(&format!("/usr/lib/systemd/system/{name}"), &text)?;
    }
    for name in MONITORING {
        stage.text(&format!("/usr/share/fibula/{name}"), monitoring(name)?)?;
    }
    Ok(())
}

/// Returns the unit as packages have it: without how to copy it, and with the path of the installed command.
pub(crate) fn installed_unit() -> Outcome<String> {
    let unit = fs::read_to_string(root().join("docs/guide/fibula-router.service"))?;
    let (_, from_section) = unit.split_once("[Unit]\n").ok_or("the unit has no section [Unit]")?;
    let text = format!("{}[Unit]\n{from_section}", template("unit")?);
    Ok(text.replace("/usr/local/bin/fibula", "/usr/bin/fibula"))
}

/// The library as `bindings/c/install` installs it, of which the package for development has all but what programs load.
fn library(stage: &Stage<'_>, built: &Built, places: &Places, development: bool) -> Outcome {
    let version = &stage.release.version;
    let mut install = stage.release.command(&root().join("bindings/c/install").to_string_lossy());
    install.env("DESTDIR", &stage.root).args(["--prefix", "/usr", "--libdir", &places.libraries]);
    run(install.arg("--from").arg(&built.libraries).arg("--checked").arg(&built.checked))?;
    let folder = stage.root.join("usr").join(&places.libraries);
    if development {
        for name in [format!("libfibula.so.{version}"), "libfibula.so.0".to_owned()] {
            fs::remove_file(folder.join(name))?;
        }
        // Objects have the names of the units that they were compiled in, and no time.
        let mut strip = stage.release.command("strip");
        run(strip
            .args(["--strip-debug", "--enable-deterministic-archives"])
            .arg(folder.join("libfibula.a")))?;
        for entry in fs::read_dir(root().join("bindings/c/examples"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".rs") {
                stage.text(
                    &format!("/usr/share/doc/libfibula-dev/examples/{name}"),
                    fs::read(entry.path())?,
                )?;
            }
        }
    } else {
        for name in ["pkgconfig", "cmake", "fibula-checked"] {
            fs::remove_dir_all(folder.join(name))?;
        }
        for name in ["libfibula.so", "libfibula.a"] {
            fs::remove_file(folder.join(name))?;
        }
        fs::remove_dir_all(stage.root.join("usr/include"))?;
    }
    Ok(())
}
