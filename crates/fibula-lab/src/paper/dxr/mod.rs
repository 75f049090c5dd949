//! The DXR paper.

mod counts;
mod times;

use fibula::memory::Limits;
use fibula::rib::Rib;
use fibula_published::internals::{Dxr, Format, Options, Search};

use super::values::{Function, bind};

/// The functions that the paper's file names.
pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("dxr/table-1", |file| bind(file, counts::table_1)),
    ("dxr/table-2", |file| bind(file, counts::table_2)),
    ("dxr/lengths", |file| bind(file, counts::lengths)),
    ("dxr/table-3", |file| bind(file, counts::table_3)),
    ("dxr/by-steps", |file| bind(file, times::by_steps)),
    ("dxr/updates", |file| bind(file, times::updates)),
];

/// Builds DXR in the paper's format, with the paper's search.
fn build(rib: &Rib<u32>, k: u8) -> Result<Dxr<u32>, String> {
    let options = Options { k, format: Format::Stretched, search: Search::EarlyStop };
    Dxr::build(rib, options, Limits::default()).map_err(|error| error.to_string())
}
