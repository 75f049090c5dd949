//! Pages of HTML: well formed, without anything from elsewhere, and with the figures that JSON has.

use crate::support::page::{check, thousands};
use crate::support::{Folder, run};
use serde_json::Value;

#[test]
fn rates_of_structures() {
    let folder = Folder::new();
    let html = folder.path().join("page.html");
    let plan = "rates -q --synth ipv4/500 --synth ipv6/500 --batch 1 --batch 64 --traffic match --traffic rnd \
        -a dir-24-8 -a dir-btree -a planb --keys 1000 --seconds 0 --json --html";
    let bench = run(&plan.split_whitespace().chain([html.to_str().unwrap()]).collect::<Vec<_>>());
    assert_eq!(bench.code, 0, "{}", bench.err);
    let page = std::fs::read_to_string(&html).unwrap();
    check(&page);
    // A chart for each family and traffic.
    assert_eq!(page.matches("<svg").count(), 4);
    let rows: Vec<Value> = serde_json::from_str(&bench.out).unwrap();
    assert!(rows.len() > 8);
    for row in &rows {
        let rate = |name: &str| {
            let rate = row[name].as_f64().unwrap();
            if rate < 0.1 { format!("{rate:.4}") } else { format!("{rate:.2}") }
        };
        let [name, isa] = ["engine", "isa"].map(|name| row[name].as_str().unwrap());
        let noisy = if row["noisy"] == true { "~" } else { "" };
        let line = [
            name.to_owned(),
            isa.to_owned(),
            row["threads"].to_string(),
            thousands(&row["key_set"]),
            row["batch"].to_string(),
            noisy.to_owned() + &rate("mlps_median"),
            rate("mlps_min"),
            rate("mlps_max"),
        ];
        let line = line.map(|cell| format!("<td>{cell}</td>")).concat();
        assert!(page.contains(&line), "{line}");
    }
    assert_eq!(run(&["targets", "--synth", "ipv4/500", "--html", "x.html"]).code, 2);
}
