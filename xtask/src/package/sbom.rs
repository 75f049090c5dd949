//! What is inside a program, as a list of components in CycloneDX's JSON.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::compile::{COMMAND, LABORATORY, LIBRARY, Program};
use super::crates::{self, Crate};
use super::release::{Release, processor};
use crate::Outcome;

/// Writes the lists of all products for the machine of packages.
pub(crate) fn write_all(release: &Release, target: &str, output: &Path) -> Outcome<Vec<PathBuf>> {
    let mut made = Vec::new();
    for program in [&COMMAND, &LABORATORY, &LIBRARY] {
        let name = format!("{}-{}-{}-linux.cdx.json", program.name, release.version, processor(target));
        let path = output.join(name);
        std::fs::write(&path, text(release, program, target)?)?;
        made.push(path);
    }
    Ok(made)
}

/// Returns the list of one program.
pub(crate) fn text(release: &Release, program: &Program, target: &str) -> Outcome<String> {
    let all = crates::of(program, target)?;
    let root = all.values().find(|one| one.name == program.package).ok_or("a program without a crate")?;
    let components: Vec<Value> =
        all.values().filter(|one| one.name != root.name).map(component).chain([standard(release)]).collect();
    let dependencies: Vec<Value> = all
        .values()
        .map(|one| {
            let needs = one.needs.iter().map(|id| reference(&id.0, &id.1));
            let standard = (one.name == root.name).then(|| standard_reference(release));
            json!({ "ref": reference(&one.name, &one.version), "dependsOn": needs.chain(standard).collect::<Vec<_>>() })
        })
        .collect();
    let mut product = component(root);
    product["type"] = if program.package == LIBRARY.package { "library" } else { "application" }.into();
    product["name"] = program.name.into();
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": release.date("+%Y-%m-%dT%H:%M:%SZ")?,
            "component": product,
            "properties": [
                { "name": "cargo:target", "value": target },
                { "name": "cargo:features", "value": program.features },
                { "name": "git:commit", "value": release.commit },
            ],
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn component(one: &Crate) -> Value {
    // A slash is how older manifests write "OR".
    let licence = one.licence.replace('/', " OR ").replace("  ", " ");
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&one.name, &one.version),
        "name": one.name,
        "version": one.version,
        "licenses": [{ "expression": licence }],
    });
    if !one.is_ours {
        component["purl"] = format!("pkg:cargo/{}@{}", one.name, one.version).into();
    }
    if let Some(checksum) = &one.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) = &one.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn reference(name: &str, version: &str) -> String {
    format!("{name}@{version}")
}

/// The version of Rust, from what `rustc --version` prints.
fn rust(release: &Release) -> &str {
    release.compiler.rustc.split(' ').nth(1).unwrap_or_default()
}

fn standard_reference(release: &Release) -> String {
    reference("rust-std", rust(release))
}

/// Rust's standard library.
fn standard(release: &Release) -> Value {
    json!({
        "type": "library",
        "bom-ref": standard_reference(release),
        "name": "rust-std",
        "version": rust(release),
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
        "externalReferences": [{ "type": "vcs", "url": "https://github.com/rust-lang/rust" }],
    })
}
