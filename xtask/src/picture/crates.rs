//! The crates and what they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;

use serde::Deserialize;

use crate::Outcome;
use crate::programs::{output, root};

/// A crate of the workspace.
#[derive(Debug, Default)]
pub(super) struct Crate {
    description: String,
    /// The crates that it depends on, each with whether only a feature needs it. Dependencies of tests are left out.
    needs: BTreeMap<String, bool>,
}

/// All of them, by name.
#[derive(Debug)]
pub(super) struct Crates(BTreeMap<String, Crate>);

/// A dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrow<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) optional: bool,
}

/// What `cargo metadata` prints.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
    optional: bool,
}

impl Crates {
    pub(super) fn of_workspace() -> Outcome<Self> {
        let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
        Self::parse(&output(Command::new("cargo").args(arguments).current_dir(root()))?)
    }

    fn parse(text: &str) -> Outcome<Self> {
        let packages = serde_json::from_str::<Metadata>(text)?.packages;
        let names: BTreeSet<String> = packages.iter().map(|package| package.name.clone()).collect();
        let mut crates = BTreeMap::new();
        for Package { name, description, dependencies } in packages {
            let description = description.ok_or_else(|| format!("{name} has no description"))?;
            let mut one = Crate { description, needs: BTreeMap::new() };
            for dependency in dependencies {
                if dependency.kind.is_none() && names.contains(&dependency.name) {
                    one.needs.insert(dependency.name, dependency.optional);
                }
            }
            crates.insert(name, one);
        }
        Ok(Self(crates))
    }

    /// Returns how many crates are below this one on the longest way down.
    fn layer(&self, name: &str) -> usize {
        self.0[name].needs.keys().map(|need| 1 + self.layer(need)).max().unwrap_or(0)
    }

    /// Returns whether one crate depends on the other, directly or not.
    fn reaches(&self, from: &str, to: &str) -> bool {
        self.0[from].needs.keys().any(|need| need == to || self.reaches(need, to))
    }

    /// Returns the crates by layer, the lowest first, without those that neither depend on another nor are depended on.
    pub(super) fn layers(&self) -> Vec<Vec<&str>> {
        let mut layers: Vec<Vec<&str>> = Vec::new();
        for name in self.0.keys().filter(|name| !self.is_alone(name)) {
            let layer = self.layer(name);
            if layers.len() <= layer {
                layers.resize_with(layer + 1, Vec::new);
            }
            layers[layer].push(name);
        }
        layers
    }

    fn is_alone(&self, name: &str) -> bool {
        self.0[name].needs.is_empty() && !self.0.values().any(|other| other.needs.contains_key(name))
    }

    /// Returns the dependencies that do not follow from the others.
    pub(super) fn arrows(&self) -> Vec<Arrow<'_>> {
        let mut arrows = Vec::new();
        for (from, one) in &self.0 {
            for (to, &optional) in &one.needs {
                if !one.needs.keys().any(|other| other != to && self.reaches(other, to)) {
                    arrows.push(Arrow { from, to, optional });
                }
            }
        }
        arrows
    }

    /// Returns the table of descriptions, lower layers first, and last the crates without any arrow.
    pub(super) fn table(&self) -> String {
        let mut table = "| crate | what it is |\n|---|---|\n".to_owned();
        let alone = self.0.keys().map(String::as_str).filter(|name| self.is_alone(name));
        for name in self.layers().concat().into_iter().chain(alone) {
            let _ = writeln!(table, "| `{name}` | {} |", self.0[name].description);
        }
        table
    }

    #[cfg(test)]
    pub(super) fn of(list: &[(&str, &[&str])]) -> Self {
        let one = |needs: &[&str]| Crate {
            description: "one of them".to_owned(),
            needs: needs.iter().map(|&need| (need.to_owned(), false)).collect(),
        };
        Self(list.iter().map(|(name, needs)| ((*name).to_owned(), one(needs))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_follow_from_others_are_left_out() {
        let crates =
            Crates::of(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["a", "c"]), ("alone", &[])]);
        assert_eq!(crates.layers(), [["a"], ["b"], ["c"], ["d"]]);
        let arrows: Vec<_> = crates.arrows().into_iter().map(|arrow| [arrow.from, arrow.to]).collect();
        assert_eq!(arrows, [["b", "a"], ["c", "b"], ["d", "c"]]);
        assert!(crates.table().ends_with("| `d` | one of them |\n| `alone` | one of them |\n"));
    }

    #[test]
    fn dependencies_of_tests_and_of_others_are_left_out() {
        let crates = Crates::parse(
            r#"{"packages": [
                {"name": "a", "description": "first", "dependencies": [
                    {"name": "b", "kind": "dev", "optional": false}, {"name": "serde", "kind": null, "optional": true}]},
                {"name": "b", "description": "second", "dependencies": [{"name": "a", "kind": null, "optional": true}]}
            ], "version": 1}"#,
        )
        .unwrap();
        assert_eq!(crates.arrows(), [Arrow { from: "b", to: "a", optional: true }]);
        assert!(
            Crates::parse(r#"{"packages": [{"name": "a", "description": null, "dependencies": []}]}"#)
                .is_err()
        );
    }
}
