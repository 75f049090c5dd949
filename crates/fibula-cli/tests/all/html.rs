//! Pages of HTML: well formed, without anything from elsewhere, and with the figures that JSON has.

use crate::support::page::{check, thousands, well_formed};
use crate::support::{Folder, run};
use serde_json::Value;

#[test]
fn figures_of_a_table() {
    let folder = Folder::new();
    let table = folder.path().join("r<o>utes.txt");
    let table = table.to_str().unwrap();
    assert_eq!(run(&["table", "synth", "ipv4", "ipv6", "--routes", "3000", "-o", table]).code, 0);
    let html = folder.path().join("page.html");
    let stats = run(&["table", "stats", table, "--json", "--html", html.to_str().unwrap()]);
    assert_eq!((stats.code, stats.err.as_str()), (0, ""));
    assert_eq!(stats.out, run(&["table", "stats", table, "--json"]).out);
    let page = std::fs::read_to_string(&html).unwrap();
    check(&page);
    let stats: Value = serde_json::from_str(&stats.out).unwrap();
    let cell = |text: &str| assert!(page.contains(&format!("<td>{text}</td>")), "{text}");
    for family in stats["families"].as_array().unwrap() {
        for figure in ["routes", "next_hops"] {
            cell(&thousands(&family[figure]));
        }
        let [ranges, merged] = ["ranges", "merged_ranges"].map(|name| thousands(&family[name]));
        cell(&format!("{ranges} ({merged} after merging equal neighbours)"));
        for line in family["lengths"].as_array().unwrap() {
            let numbers = [&line["routes"], &line["nested"]].map(thousands).join("</td><td>");
            cell(format!("/{}</td><td>{numbers}</td><td>", line["length"]).trim_end_matches("</td><td>"));
        }
        for (depth, routes) in family["depths"].as_array().unwrap().iter().enumerate() {
            cell(&format!("{depth}</td><td>{}", thousands(routes)));
        }
        for top in family["top"].as_array().unwrap() {
            cell(&format!("{}</td><td>{}", top["next_hop"].as_str().unwrap(), thousands(&top["routes"])));
        }
    }
    // An input is not overwritten, and a table without routes has a page, too.
    assert_eq!(run(&["table", "stats", table, "--html", table]).code, 2);
    let empty = folder.write("empty.txt", "");
    let none = run(&["table", "stats", "-q", empty.to_str().unwrap(), "--html", html.to_str().unwrap()]);
    assert_eq!(none.code, 1);
    let page = std::fs::read_to_string(&html).unwrap();
    well_formed(&page);
    assert!(page.contains("The table is empty."), "{page}");
}
