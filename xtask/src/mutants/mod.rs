//! Mutation tests of one folder at a time: cargo-mutants changes the sources in one place and runs the tests, which should fail.
//!
//! The whole library takes long to compile, so each folder is copied into a small crate under `target/mutants/` with only the modules
//! it needs ([`crates`]); a mutant then takes seconds. The result is `records/mutants/FOLDER.json` ([`record`]). Its "why" explains
//! a survivor, and is kept from run to run. A second run continues the first: caught mutants are not run again until their function
//! changes ([`run`]).

mod crates;
mod record;
mod run;
mod sample;

use crate::programs::{is_there, output};
use crate::{End, Outcome};

use crates::FOLDERS;

/// What the command line chose.
struct Chosen {
    folders: Vec<&'static crates::Folder>,
    sample: usize,
    seed: u64,
    /// Every mutant.
    all: bool,
    /// Earlier runs are forgotten.
    fresh: bool,
    /// Of the mutants that are left, these alone: the first number from 1 to the second.
    share: Option<(usize, usize)>,
    /// Nothing is mutated: the tests are run in the small crates.
    check: bool,
}

/// Runs `cargo xtask mutants` with these arguments; `None` when they are wrong.
pub(crate) fn mutants(arguments: &[&str]) -> Outcome<Option<End>> {
    let chosen = match parse(arguments) {
        Ok(chosen) => chosen,
        Err(fault) => {
            eprintln!("error: {fault}");
            return Ok(None);
        }
    };
    if chosen.check {
        chosen.folders.iter().try_for_each(|folder| run::check(folder))?;
        return Ok(Some(End::Good));
    }
    if !is_there("cargo-mutants")
        && output(std::process::Command::new("cargo").args(["mutants", "--version"])).is_err()
    {
        return Err("cargo-mutants is missing: cargo install --locked cargo-mutants".into());
    }
    let mut good = true;
    for folder in &chosen.folders {
        good &= run::run(folder, &chosen)?;
    }
    Ok(Some(if good { End::Good } else { End::Differs }))
}

fn parse(arguments: &[&str]) -> Result<Chosen, String> {
    let mut chosen = Chosen {
        folders: Vec::new(),
        sample: 200,
        seed: 1,
        all: false,
        fresh: false,
        share: None,
        check: false,
    };
    let mut arguments = arguments.iter();
    while let Some(&argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{argument}: '{value}' is not a number"))
        };
        match argument {
            "--sample" => chosen.sample = number()? as usize,
            "--seed" => chosen.seed = number()?,
            "--share" => chosen.share = Some(share(arguments.next())?),
            "--all" => chosen.all = true,
            "--fresh" => chosen.fresh = true,
            "--check" => chosen.check = true,
            option if option.starts_with('-') => return Err(format!("unknown option '{option}'")),
            name => {
                let folder = FOLDERS.iter().find(|folder| folder.name == name);
                chosen
                    .folders
                    .push(folder.ok_or_else(|| format!("no folder '{name}': there are {}", names()))?);
            }
        }
    }
    if chosen.folders.is_empty() && (chosen.all || chosen.check) {
        chosen.folders.extend(FOLDERS);
    }
    if chosen.folders.is_empty() { Err(format!("name folders: {}", names())) } else { Ok(chosen) }
}

/// Reads a share as 3/40.
fn share(value: Option<&&str>) -> Result<(usize, usize), String> {
    let numbers = value.and_then(|value| value.split_once('/'));
    let share = numbers.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    share.filter(|&(k, n)| (1..=n).contains(&k)).ok_or_else(|| "--share needs a share, as 3/40".to_owned())
}

fn names() -> String {
    FOLDERS.iter().map(|folder| folder.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_folders_or_take_all() {
        let names = |arguments: &[&str]| {
            parse(arguments).map(|chosen| chosen.folders.iter().map(|folder| folder.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["net", "--sample", "5", "rib"]), Ok(vec!["net", "rib"]));
        assert_eq!(names(&["--all"]).unwrap().len(), FOLDERS.len());
        assert_eq!(names(&["--all", "text"]), Ok(vec!["text"]));
        for (wrong, fault) in [
            (&[][..], "name folders: net"),
            (&["nets"], "no folder 'nets': there are net"),
            (&["net", "--seed"], "--seed needs a number"),
            (&["net", "--seed", "x"], "--seed: 'x' is not a number"),
            (&["net", "--share", "0/4"], "--share needs a share, as 3/40"),
            (&["net", "--share", "5/4"], "--share needs a share, as 3/40"),
            (&["net", "--al"], "unknown option '--al'"),
        ] {
            let said = names(wrong).unwrap_err();
            assert!(said.starts_with(fault), "{said}");
        }
    }
}
