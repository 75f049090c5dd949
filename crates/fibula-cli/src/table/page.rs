//! The page of `fibula table stats --html`.

use fibula_workload::page::{Bar, Page, bars};

use super::figures::{FamilyFigures, facts, percent};
use crate::text::{plural, thousands};

/// Returns the page of a table.
pub(super) fn page(name: &str, families: &[FamilyFigures], what: &str, remarks: &[String]) -> String {
    let mut page = Page::new(&format!("Table {name}"));
    page.section("Summary");
    let routes = |figures: &FamilyFigures| {
        let (routes, hops) = (figures.shape.routes, figures.shape.popularity.len());
        format!(
            "{}: {} {}, {} {}.",
            figures.family,
            thousands(routes),
            plural(routes as u64, "route", "routes"),
            thousands(hops),
            plural(hops as u64, "next hop", "next hops")
        )
    };
    let summary: Vec<String> = families.iter().map(routes).collect();
    page.text(if summary.is_empty() { "The table is empty.".to_owned() } else { summary.join(" ") }.as_str());
    for remark in remarks {
        page.remark(remark);
    }
    for figures in families {
        family(&mut page, figures, what);
    }
    page.finish()
}

fn family(page: &mut Page, figures: &FamilyFigures, what: &str) {
    let shape = &figures.shape;
    page.section(&figures.family.to_string());
    let rows = facts(figures).into_iter().map(|(name, value)| vec![name.to_owned(), value]);
    page.table(&["figure", "value"], rows);

    page.section(&format!("{}: prefix lengths", figures.family));
    page.text("Nested routes have a route around them, which they are an exception to.");
    let used = || shape.lengths.iter().enumerate().filter(|(_, line)| line.0 > 0);
    let bar = |(length, &(routes, nested)): (usize, &(usize, usize))| Bar {
        name: format!("/{length}"),
        values: vec![routes as f64, nested as f64],
        text: format!("{}, {} nested", thousands(routes), thousands(nested)),
    };
    let title = format!("{}: routes by prefix length", figures.family);
    if let Some(svg) = bars(&title, &["routes", "nested among them"], &used().map(bar).collect::<Vec<_>>()) {
        page.chart(&svg);
    }
    let row = |(length, &(routes, nested)): (usize, &(usize, usize))| {
        vec![format!("/{length}"), thousands(routes), thousands(nested), percent(routes, shape.routes)]
    };
    page.table(&["length", "routes", "nested", "share"], used().map(row));

    page.section(&format!("{}: nesting", figures.family));
    let row = |(depth, &routes): (usize, &usize)| {
        vec![depth.to_string(), thousands(routes), percent(routes, shape.routes)]
    };
    page.table(&["routes around it", "routes", "share"], shape.depths.iter().enumerate().map(row));

    page.section(&format!("{}: {what}, most frequent first", figures.family));
    let row = |(name, routes): &(String, usize)| {
        vec![name.clone(), thousands(*routes), percent(*routes, shape.routes)]
    };
    page.table(&["", "routes", "share"], figures.top.iter().map(row));
}
