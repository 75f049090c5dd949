//! Lines fit into 80 columns, where their words do.

use crate::support::width::{at, fits, help_fits};
use crate::support::{Folder, fibula, run};

#[test]
fn help_of_all_commands_fits() {
    help_fits(25);
}

#[test]
fn reports_fit() {
    let folder = Folder::new();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (both, other) = (file("both.txt"), file("other.txt"));
    for (out, seed) in [(&both, "1"), (&other, "2")] {
        let synth = ["table", "synth", "ipv4", "ipv6", "--routes", "2000", "--seed", seed, "-o", out];
        assert_eq!(run(&synth).code, 0);
    }
    let flows = folder.write("flows.csv", "ip,bytes\n1.1.1.1,5\n");
    let flows = flows.to_str().unwrap();
    for args in [
        vec!["engines"],
        vec!["table", "stats", &both],
        vec!["table", "diff", &both, &other],
        vec!["verify", &both, &other],
        vec!["choose", &both],
        vec!["doctor"],
        vec!["count", "-t", &both, "--by", "prefix", "-c", "ip", "--bytes-column", "bytes", flows],
        vec!["tour", "--routes", "1000", "--seconds", "0"],
    ] {
        let report = at("80", &args);
        assert!(report.code <= 1 && !report.out.is_empty(), "{args:?}: {}", report.err);
        fits(80, &report.out, &args);
    }
    // Without a terminal and without COLUMNS the width is 80, too.
    let unknown = fibula().args(["engines"]).env_remove("COLUMNS").output().unwrap();
    assert_eq!(String::from_utf8(unknown.stdout).unwrap(), at("80", &["engines"]).out);
}
