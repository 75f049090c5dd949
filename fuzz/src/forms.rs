//! Tables in every form of text: the first byte names the form, or leaves it to the first lines.
//!
//! There is no second reader of these. No input panics, no memory is taken beyond the limit that others test, what is counted adds
//! up, and a table that was read is read again from its own text.

use fibula::memory::Limits;
use fibula_feed::{Content, LoadOptions, LoadedRoutes, Loader, Source, TableForm};

pub(crate) fn load(bytes: &[u8]) {
    let Some((&choice, text)) = bytes.split_first() else { return };
    let forms: Vec<&TableForm> = TableForm::ALL.iter().filter(|form| form.is_text()).collect();
    let mut options = LoadOptions::default();
    options.limits = Limits { memory_bytes: Some(8 << 20), ..Limits::default() };
    options.form = forms.get(usize::from(choice) % (forms.len() + 1)).copied();
    let values = ["next-hop", "origin-as", "as-path", "communities", "a.0.b"];
    options.values = values.iter().map(|name| name.parse().expect("a value")).collect();
    let Ok(table) = Loader::new(options).load(Source::reader("fuzz", text)) else { return };
    let report = table.report();
    // What begins like MRT is no text: each of its damaged stretches is counted, whether or not a record was found there.
    assert!(report.content == Content::Mrt || report.bad_lines <= report.entries(), "{report:?}");
    table.ribs.v4.check().unwrap();
    table.ribs.v6.check().unwrap();
    let mut printed = String::new();
    for (prefix, label) in table.ribs.iter() {
        let label = table.next_hops.label(label).expect("each route has a label");
        printed += &format!("{prefix} {}\n", label.line());
    }
    let mut plain = LoadOptions::default();
    plain.form = TableForm::named("lines");
    let again = Loader::new(plain).load(Source::reader("again", printed.as_bytes())).unwrap();
    let prefixes = |table: &LoadedRoutes| table.ribs.iter().map(|(prefix, _)| prefix).collect::<Vec<_>>();
    assert_eq!(prefixes(&table), prefixes(&again));
}
