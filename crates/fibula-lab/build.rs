//! Hands the compiler's version and options to the program, for the records: a benchmark must be able to say
//! what compiled it, and only the build knows.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    for (name, value) in [
        ("FIBULA_RUSTC", version.unwrap_or_default()),
        ("FIBULA_TARGET", variable("TARGET")),
        ("FIBULA_PROFILE", variable("PROFILE")),
        ("FIBULA_OPT_LEVEL", variable("OPT_LEVEL")),
        ("FIBULA_TARGET_FEATURES", variable("CARGO_CFG_TARGET_FEATURE")),
    ] {
        println!("cargo::rustc-env={name}={value}");
    }
}
