//! Packages of Debian, made by its own `dpkg-deb` and `dpkg-shlibdeps`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::Built;
use super::parts::{PARTS, Part, Places};
use super::release::{Release, debian};
use super::stage::Stage;
use super::template;
use crate::Outcome;
use crate::programs::{is_there, output, root, run};

/// What Debian's packages call this revision.
const REVISION: &str = "1";

/// Returns a program that is needed and absent.
pub(crate) fn missing() -> Option<&'static str> {
    ["dpkg-deb", "dpkg-shlibdeps"].into_iter().find(|name| !is_there(name))
}

pub(crate) fn make(release: &Release, built: &Built, work: &Path, output: &Path) -> Outcome<Vec<PathBuf>> {
    let multiarch = built.target.replace("-unknown", "");
    let places = Places { libraries: format!("lib/{multiarch}"), zsh: "vendor-completions" };
    PARTS.iter().map(|part| package(release, built, part, &places, work, output)).collect()
}

fn package(
    release: &Release,
    built: &Built,
    part: &Part,
    places: &Places,
    work: &Path,
    to: &Path,
) -> Outcome<PathBuf> {
    let stage = Stage::new(release, work.join(part.name))?;
    part.place(&stage, built, places)?;
    if part.name == "libfibula0" {
        // Debian's libraries are no programs; RPM looks for what libraries need only where they have a program's mode.
        let library = format!("/usr/{}/libfibula.so.{}", places.libraries, release.version);
        run(release.command("chmod").arg("644").arg(stage.at(&library)?))?;
    }
    let version = format!("{}-{REVISION}", release.version);
    let documents = format!("/usr/share/doc/{}", part.name);
    stage.text(&format!("{documents}/copyright"), copyright()?)?;
    stage.gzip(&format!("{documents}/changelog"), fs::read(root().join("CHANGELOG.md"))?)?;
    let date = release.date("+%a, %d %b %Y %H:%M:%S +0000")?;
    let entry = format!(
        "fibula ({version}) unstable; urgency=medium\n\n  * Made of commit {}.\n\n -- {}  {date}\n",
        release.commit, release.maintainer
    );
    stage.gzip(&format!("{documents}/changelog.Debian"), entry)?;
    let needs = depends(release, &stage, part, &version, work)?;
    control(&stage, part, &version, &needs)?;
    stage.finish()?;
    let file = to.join(format!("{}_{version}_{}.deb", part.name, debian(release.processor())));
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
    if part.name == "libfibula-dev" {
        return Ok(format!("libfibula0 (= {version})"));
    }
    // dpkg-shlibdeps wants the folder of a source package, with the name of the package that it works for.
    let folder = work.join("shlibdeps");
    fs::create_dir_all(folder.join("debian"))?;
    let source = format!("Source: fibula\n\nPackage: {}\nArchitecture: any\n", part.name);
    fs::write(folder.join("debian/control"), source)?;
    let mut shlibdeps = release.command("dpkg-shlibdeps");
    shlibdeps.arg("-O").current_dir(&folder);
    for path in stage.files()? {
        let name = path.rsplit('/').next().unwrap_or_default();
        let file = stage.at(&path)?;
        if (path.starts_with("/usr/bin/") || name.contains(".so.")) && !file.is_symlink() {
            shlibdeps.arg("-e").arg(file);
        }
    }
    let text = output(&mut shlibdeps)?;
    let needs = text.trim().strip_prefix("shlibs:Depends=");
    Ok(needs.ok_or_else(|| format!("dpkg-shlibdeps says '{}'", text.trim()))?.to_owned())
}

/// Writes the files that tell dpkg about a package.
fn control(stage: &Stage<'_>, part: &Part, version: &str, needs: &str) -> Outcome {
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
    let architecture = debian(stage.release.processor());
    let text = format!(
        "Package: {}\nSource: fibula\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {}\n\
         Installed-Size: {kilobytes}\nDepends: {needs}\nSection: {}\nPriority: optional\n{multiarch}Description: {description}\n",
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
