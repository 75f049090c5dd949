//! Packages of Debian, made by its own `dpkg-deb` and `dpkg-shlibdeps`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::Built;
use super::parts::{PARTS, Part, Places, Runnable};
use super::release::{Release, debian, processor};
use super::stage::Stage;
use super::template;
use crate::Outcome;
use crate::programs::{is_there, output, root, run};

/// What Debian's packages call this revision.
const REVISION: &str = "1";

/// The folder of completions for zsh.
const ZSH: &str = "vendor-completions";

/// A finding of lintian. The static program is that of the archive: Debian's own packages would share the C library.
const STATIC: &str = "statically-linked-binary";

/// Returns a program that is needed and absent.
pub(crate) fn missing() -> Option<&'static str> {
    ["dpkg-deb", "dpkg-shlibdeps"].into_iter().find(|name| !is_there(name))
}

pub(crate) fn make(release: &Release, built: &Built, work: &Path, output: &Path) -> Outcome<Vec<PathBuf>> {
    let multiarch = built.target.replace("-unknown", "");
    let places = Places { libraries: format!("lib/{multiarch}"), zsh: ZSH };
    let package_of = |part: &Part| {
        let stage = Stage::new(release, work.join(part.name))?;
        part.place(&stage, built, &places)?;
        // Debian wants libraries without execute permission. RPM finds their dependencies only with it, so they are staged with it.
        for library in libraries(&stage)? {
            run(release.command("chmod").arg("644").arg(library))?;
        }
        let version = version(release);
        let needs = depends(release, &stage, part, &version, work)?;
        package(&stage, part, &built.target, &needs, output)
    };
    PARTS.iter().map(package_of).collect()
}

/// Makes the package of the command for another machine, of its static program, which needs no other package.
pub(crate) fn make_static(
    release: &Release,
    target: &str,
    program: Runnable<'_>,
    work: &Path,
    output: &Path,
) -> Outcome<PathBuf> {
    let stage = Stage::new(release, work.join(target))?;
    let part = Part::of_command(&stage, program, target, ZSH)?;
    stage
        .text(&format!("/usr/share/lintian/overrides/{}", part.name), format!("{}: {STATIC}\n", part.name))?;
    package(&stage, part, target, "", output)
}

fn version(release: &Release) -> String {
    format!("{}-{REVISION}", release.version)
}

/// Adds what Debian wants to the files of a package, and packs them.
fn package(stage: &Stage<'_>, part: &Part, target: &str, needs: &str, to: &Path) -> Outcome<PathBuf> {
    let (release, version) = (stage.release, version(stage.release));
    let documents = format!("/usr/share/doc/{}", part.name);
    stage.text(&format!("{documents}/copyright"), copyright()?)?;
    stage.gzip(&format!("{documents}/changelog"), fs::read(root().join("CHANGELOG.md"))?)?;
    let date = release.date("+%a, %d %b %Y %H:%M:%S +0000")?;
    let entry = format!(
        "fibula ({version}) unstable; urgency=medium\n\n  * Made of commit {}.\n\n -- {}  {date}\n",
        release.commit, release.maintainer
    );
    stage.gzip(&format!("{documents}/changelog.Debian"), entry)?;
    let architecture = debian(processor(target));
    control(stage, part, &version, architecture, needs)?;
    stage.finish()?;
    let file = to.join(format!("{}_{version}_{architecture}.deb", part.name));
    let mut pack = release.command("dpkg-deb");
    run(pack.args(["--root-owner-group", "-Zxz", "--build"]).arg(&stage.root).arg(&file))?;
    Ok(file)
}

/// Returns the terms as Debian's policy has them.
fn copyright() -> Outcome<String> {
    let mit = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let mut text = template("copyright")?;
    for line in mit.lines().skip_while(|line| !line.starts_with("Permission")) {
        // A lone full stop is how such a file writes an empty line.
        writeln!(text, " {}", if line.is_empty() { "." } else { line })?;
    }
    Ok(text)
}

/// Returns the packages that a package needs.
fn depends(release: &Release, stage: &Stage<'_>, part: &Part, version: &str, work: &Path) -> Outcome<String> {
    // dpkg-shlibdeps wants the folder of a source package, with the name of the package that it works for.
    let folder = work.join("shlibdeps");
    fs::create_dir_all(folder.join("debian"))?;
    let source = format!("Source: fibula\n\nPackage: {}\nArchitecture: any\n", part.name);
    fs::write(folder.join("debian/control"), source)?;
    let mut shlibdeps = release.command("dpkg-shlibdeps");
    shlibdeps.arg("-O").current_dir(&folder);
    let mut programs = libraries(stage)?;
    for path in stage.files()? {
        if path.starts_with("/usr/bin/") {
            programs.push(stage.at(&path)?);
        }
    }
    programs.iter().filter(|file| !file.is_symlink()).for_each(|file| {
        shlibdeps.arg("-e").arg(file);
    });
    let text = output(&mut shlibdeps)?;
    let needs = text.trim().strip_prefix("shlibs:Depends=");
    let needs = needs.ok_or_else(|| format!("dpkg-shlibdeps says '{}'", text.trim()))?;
    // The checked library is in the package for development, which needs what it needs.
    let own =
        if part.name == "libfibula-dev" { format!("libfibula0 (= {version}), ") } else { String::new() };
    Ok(own + needs)
}

/// Returns the libraries that programs load, of those that a package has.
fn libraries(stage: &Stage<'_>) -> Outcome<Vec<PathBuf>> {
    let is_library = |path: &String| path.rsplit('/').next().is_some_and(|name| name.contains(".so."));
    let files = stage.files()?.into_iter().filter(is_library).map(|path| stage.at(&path));
    files.filter(|file| !file.as_ref().is_ok_and(|file| file.is_symlink())).collect()
}

/// Writes the files that tell dpkg about a package.
fn control(stage: &Stage<'_>, part: &Part, version: &str, architecture: &str, needs: &str) -> Outcome {
    let (mut kilobytes, mut sums, mut configuration) = (0, String::new(), String::new());
    for path in stage.files()? {
        let file = stage.at(&path)?;
        if file.is_symlink() {
            kilobytes += 1;
            continue;
        }
        let bytes = fs::read(&file)?;
        kilobytes += bytes.len().div_ceil(1024);
        if path.starts_with("/etc/") {
            writeln!(configuration, "{path}")?;
        } else {
            writeln!(sums, "{}  {}", md5(&file)?, &path[1..])?;
        }
    }
    let multiarch = if part.name.starts_with("lib") { "Multi-Arch: same\n" } else { "" };
    let mut description = part.summary.to_owned();
    for paragraph in part.description.lines() {
        if description.contains('\n') {
            description += "\n .";
        }
        for line in fill(paragraph, 78) {
            write!(description, "\n {line}")?;
        }
    }
    let needs = if needs.is_empty() { String::new() } else { format!("Depends: {needs}\n") };
    let text = format!(
        "Package: {}\nSource: fibula\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {}\n\
         Installed-Size: {kilobytes}\n{needs}Section: {}\nPriority: optional\n{multiarch}Description: {description}\n",
        part.name, stage.release.maintainer, part.debian_section
    );
    stage.text("/DEBIAN/control", text)?;
    stage.text("/DEBIAN/md5sums", sums)?;
    if !configuration.is_empty() {
        stage.text("/DEBIAN/conffiles", configuration)?;
    }
    match part.name {
        "fibula" => {
            for name in ["prerm", "postrm"] {
                stage.program(&format!("/DEBIAN/{name}"), &root().join("xtask/package/deb").join(name))?;
            }
        }
        "libfibula0" => {
            stage
                .text("/DEBIAN/shlibs", format!("libfibula 0 libfibula0 (>= {})\n", stage.release.version))?;
            stage.text("/DEBIAN/triggers", "activate-noawait ldconfig\n")?;
        }
        _ => {}
    }
    Ok(())
}

fn md5(file: &Path) -> Outcome<String> {
    let text = output(std::process::Command::new("md5sum").arg(file))?;
    // A name with a backslash would be marked by one in front.
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Returns a paragraph in lines of at most this many characters.
pub(crate) fn fill(paragraph: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_filled() {
        assert_eq!(fill("a bb  ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert!(fill("", 6).is_empty());
    }
}
