//! The program takes the tour's own options and points at the command for the rest.

use std::process::Command;

#[test]
fn options_reach_the_tour() {
    let tour = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tour"));
        command.args(["--routes", "2000", "--seconds", "0", "--quiet"]);
        command
    };
    let json = tour().arg("--json").output().unwrap();
    assert!(json.status.success());
    assert!(json.stdout.starts_with(b"{\n"));
    let text = tour().output().unwrap();
    assert!(text.status.success());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("cargo run --release --bin fibula -- lookup --table"), "{text}");
    assert!(text.contains("target/release/fibula"), "{text}");
}
