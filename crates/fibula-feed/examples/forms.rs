//! Writes the table of forms into the guide: `cargo run -p fibula-feed --example forms`.

use std::path::Path;

use fibula_feed::TableForm;

fn main() -> std::io::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/routes.md");
    let text = std::fs::read_to_string(&page)?;
    let (before, rest) = text.split_once("-->\n").expect("the mark before the table");
    let (_, after) = rest.split_once("<!-- End").expect("the mark after the table");
    std::fs::write(page, format!("{before}-->\n{}<!-- End{after}", TableForm::guide()))
}
