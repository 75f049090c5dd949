//! The crates of the workspace, from `cargo metadata`: a picture with an arrow for each dependency, and a table with their
//! descriptions in `ARCHITECTURE.md`.

mod crates;
mod drawing;
mod places;

use std::fs;
use std::path::PathBuf;

use crate::programs::root;
use crate::{End, Outcome};

use crates::Crates;

const BEGIN: &str = "<!-- The crates, as `cargo xtask picture` writes them. -->\n";
const END: &str = "<!-- The end of the crates. -->\n";

/// Writes the picture and the table.
pub(crate) fn write() -> Outcome<End> {
    for (path, text) in files()? {
        fs::write(path, text)?;
    }
    Ok(End::Good)
}

/// Compares the picture and the table with the committed ones.
pub(crate) fn check() -> Outcome<End> {
    let mut end = End::Good;
    for (path, text) in files()? {
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            println!("{} is stale: cargo xtask picture", path.display());
            end = End::Differs;
        }
    }
    Ok(end)
}

/// Returns the files as they should be.
fn files() -> Outcome<[(PathBuf, String); 2]> {
    let crates = Crates::of_workspace()?;
    let document = root().join("ARCHITECTURE.md");
    let text = with_table(&fs::read_to_string(&document)?, &crates.table())?;
    Ok([(root().join("docs/crates.svg"), drawing::svg(&crates)), (document, text)])
}

/// Replaces the table between the markers.
fn with_table(text: &str, table: &str) -> Outcome<String> {
    let fault = "ARCHITECTURE.md has no markers around the table of crates";
    let (before, rest) = text.split_once(BEGIN).ok_or(fault)?;
    let (_, after) = rest.split_once(END).ok_or(fault)?;
    Ok(format!("{before}{BEGIN}{table}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_replaced_between_its_markers() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(with_table(&text, "new\n").unwrap(), format!("a\n{BEGIN}new\n{END}b\n"));
        assert!(with_table("a\n", "new\n").is_err());
    }
}
