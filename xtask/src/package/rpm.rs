//! Packages of RPM, made by `rpmbuild` of files that are already in place. What they need of libraries is found by RPM itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::Built;
use super::deb::fill;
use super::parts::{PARTS, Part, Places};
use super::release::Release;
use super::stage::Stage;
use super::template;
use crate::Outcome;
use crate::programs::{is_there, root, run};

/// Returns a program that is needed and absent.
pub(crate) fn missing() -> Option<&'static str> {
    (!is_there("rpmbuild")).then_some("rpmbuild: apt-get install rpm")
}

pub(crate) fn make(release: &Release, built: &Built, work: &Path, output: &Path) -> Outcome<Vec<PathBuf>> {
    let places = Places { libraries: "lib64".to_owned(), zsh: "site-functions" };
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
    let work = work.join(part.name);
    let stage = Stage::new(release, work.join("root"))?;
    part.place(&stage, built, places)?;
    let name = name(part);
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        stage.text(&format!("/usr/share/licenses/{name}/{file}"), fs::read(root().join(file))?)?;
    }
    stage.finish()?;
    let spec = work.join("package.spec");
    fs::write(&spec, specification(&stage, part, &name)?)?;
    let processor = release.processor();
    let mut rpmbuild = release.command("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", processor]);
    // RPM empties the folder that it is told to build in, so it has a copy.
    let copy = format!("cp -a {}/. %{{buildroot}}/", stage.root.display());
    for (name, value) in [
        ("_topdir", work.display().to_string()),
        ("_rpmdir", to.display().to_string()),
        ("_rpmfilename", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm".to_owned()),
        ("_buildhost", "localhost".to_owned()),
        ("use_source_date_epoch_as_buildtime", "1".to_owned()),
        ("clamp_mtime_to_source_date_epoch", "1".to_owned()),
        ("_build_id_links", "none".to_owned()),
        ("_binary_payload", "w6.xzdio".to_owned()),
        // All is stripped and compressed already, by rules of this project.
        ("__os_install_post", "%{nil}".to_owned()),
        ("debug_package", "%{nil}".to_owned()),
        ("copy_files", copy),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    run(rpmbuild.arg(&spec))?;
    Ok(to.join(format!("{name}-{}-1.{processor}.rpm", release.version)))
}

/// Returns the name that a package has for RPM.
fn name(part: &Part) -> String {
    part.name.replace("-dev", "-devel")
}

fn specification(stage: &Stage<'_>, part: &Part, name: &str) -> Outcome<String> {
    let version = &stage.release.version;
    let mut text = format!(
        "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: {}\nLicense: MIT OR Apache-2.0\nURL: https://docs.rs/fibula\nGroup: Applications/Internet\nPackager: {}\n",
        sentence(part.summary),
        stage.release.maintainer
    );
    if part.name == "libfibula-dev" {
        writeln!(text, "Requires: libfibula0 = {version}-1")?;
    }
    write!(text, "\n%description\n{}\n\n%install\n%copy_files\n", description(part))?;
    match part.name {
        "fibula" => text += &format!("\n{}", template("rpm/scripts")?),
        "libfibula0" => text += "\n%post -p /sbin/ldconfig\n\n%postun -p /sbin/ldconfig\n",
        _ => {}
    }
    text += "\n%files\n";
    for path in stage.files()? {
        let kind = if path.starts_with("/etc/") {
            "%config(noreplace) "
        } else if path.starts_with("/usr/share/licenses/") {
            "%license "
        } else if path.starts_with("/usr/share/doc/") || path.starts_with("/usr/share/man/") {
            "%doc "
        } else {
            ""
        };
        writeln!(text, "{kind}\"{path}\"")?;
    }
    for folder in own_folders(&stage.files()?) {
        writeln!(text, "%dir \"{folder}\"")?;
    }
    let day = stage.release.date("+%a %b %d %Y")?;
    let (maintainer, commit) = (&stage.release.maintainer, &stage.release.commit);
    writeln!(text, "\n%changelog\n* {day} {maintainer} - {version}-1\n- Made of commit {commit}.")?;
    Ok(text)
}

/// Returns the folders that are this project's: RPM removes those that a package names.
fn own_folders(files: &[String]) -> BTreeSet<String> {
    let folders = files.iter().flat_map(|file| Path::new(file).ancestors().skip(1));
    let ours = folders
        .filter(|folder| folder.file_name().is_some_and(|name| name.to_string_lossy().contains("fibula")));
    ours.flat_map(|folder| {
        files
            .iter()
            .filter_map(move |file| {
                // What is in such a folder is ours too.
                let parent = Path::new(file).parent()?;
                parent.starts_with(folder).then(|| parent.display().to_string())
            })
            .chain([folder.display().to_string()])
    })
    .collect()
}

/// Returns a summary with a capital letter in front, as RPM's rules want it.
fn sentence(summary: &str) -> String {
    let (first, rest) = summary.split_at(1);
    first.to_uppercase() + rest
}

fn description(part: &Part) -> String {
    part.description.lines().map(|line| fill(line, 78).join("\n")).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_other_packages_are_not_ours() {
        let files =
            ["/usr/bin/fibula", "/usr/share/doc/fibula/a/b", "/etc/fibula/router.toml"].map(str::to_owned);
        let ours = own_folders(&files).into_iter().collect::<Vec<_>>();
        assert_eq!(ours, ["/etc/fibula", "/usr/share/doc/fibula", "/usr/share/doc/fibula/a"]);
    }
}
