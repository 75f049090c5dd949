//! What holds for every page of HTML.

use serde_json::Value;

/// Asserts that every element ends where it should.
pub(crate) fn well_formed(page: &str) {
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

pub(crate) fn check(page: &str) {
    well_formed(page);
    stands_alone(page);
    for part in ["prefers-color-scheme: dark", "width=device-width", "<svg", "<h2>Summary</h2>"] {
        assert!(page.contains(part), "{part}");
    }
    let first = page.find("<h2").unwrap();
    assert!(page[first..].starts_with("<h2>Summary</h2>"), "the summary comes first");
}

/// A number as pages have it.
pub(crate) fn thousands(number: &Value) -> String {
    let digits = number.as_u64().unwrap().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        text.extend((at > 0 && (digits.len() - at).is_multiple_of(3)).then_some(','));
        text.push(digit);
    }
    text
}
