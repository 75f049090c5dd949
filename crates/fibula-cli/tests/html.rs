//! Pages of HTML: well formed, without anything from elsewhere, and with the figures that JSON has.

mod support;

use serde_json::Value;
use support::{Folder, run};

/// Asserts that every element ends where it should.
fn well_formed(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>\n"));
    let mut open: Vec<&str> = Vec::new();
    let mut rest = &page["<!DOCTYPE html>".len()..];
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !["meta", "br"].contains(&name) {
            open.push(name);
        }
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").unwrap()..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn stands_alone(page: &str) {
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for reference in ["http:", "https:", "//", "src=", "<link", "<script", "@import", "url("] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.matches("href=").count() == page.matches("href=\"#").count());
}

fn check(page: &str) {
    well_formed(page);
    stands_alone(page);
    for part in ["prefers-color-scheme: dark", "width=device-width", "<svg", "<h2>Summary</h2>"] {
        assert!(page.contains(part), "{part}");
    }
    let first = page.find("<h2").unwrap();
    assert!(page[first..].starts_with("<h2>Summary</h2>"), "the summary comes first");
}

/// A number as pages have it.
fn thousands(number: &Value) -> String {
    let digits = number.as_u64().unwrap().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        text.extend((at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(','));
        text.push(digit);
    }
    text
}

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

#[test]
fn rates_of_structures() {
    let folder = Folder::new();
    let html = folder.path().join("page.html");
    let plan = "bench -q --synth ipv4/500 --synth ipv6/500 --batch 1 --batch 64 --traffic match --traffic rnd \
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
        let [name, isa] = ["algorithm", "isa"].map(|name| row[name].as_str().unwrap());
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
    assert_eq!(run(&["bench", "--synth", "ipv4/500", "--reach", "--html", "x.html"]).code, 2);
}
