//! Writes `auto/model.csv`, the model by which the library chooses an engine, or checks that it is up to date.

use std::error::Error;
use std::fs;

use super::generated::Generated;
use crate::choice;
use crate::command::figures::root;

/// The record that the choices are made from. Those of other machines are judged.
const BASE: &str = "records/choices/amd-epyc-zen-4.txt";

pub(super) fn write(generated: &Generated) -> Result<bool, Box<dyn Error>> {
    let fitted = choice::fit(&fs::read_to_string(root().join(BASE))?.parse()?);
    generated.finish(&[("crates/fibula/src/auto/model.csv".to_owned(), fitted)])
}
