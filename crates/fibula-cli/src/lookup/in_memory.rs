//! `fibula enrich` without files and threads, for fuzz targets.

use std::io::Read;

use clap::ValueEnum;
use fibula::memory::Limits;
use fibula::net::Dual;
use fibula_feed::LoadedRoutes;

use super::answers::V4Mapped;
use super::chunks::Chunks;
use super::columns::InputFormat;
use super::enrich::{EnrichPlan, Enricher};
use super::finder::{Finder, Table};
use super::pipeline::{LineCounts, Worker, answered};
use super::rows::Labels;
use crate::failure::Failure;
use crate::load::Columns;
use crate::messages::Messages;

/// Returns the output for a log, and how many of its rows have no address. The format is found out unless it is named.
///
/// # Errors
/// Those of `fibula enrich`.
pub fn enrich_bytes(
    table: &LoadedRoutes,
    format: Option<&str>,
    column: &str,
    input: impl Read,
) -> Result<(Vec<u8>, usize), Failure> {
    let messages = Messages::new(true);
    let failed = |error| Failure::reading("the input", &error);
    let named =
        format.map(|name| InputFormat::from_str(name, false).map_err(Failure::WrongUse)).transpose()?;
    let mut chunks = Chunks::new(input, InputFormat::JsonLine.lines());
    let head = chunks.head().map_err(failed)?;
    let format = named.unwrap_or_else(|| InputFormat::of("", head));
    chunks.set_lines(format.lines());
    let first_line =
        if format == InputFormat::Json { &b""[..] } else { chunks.first_line().map_err(failed)? };
    let columns = Columns { values: Vec::new(), implied: false, in_place: false };
    let labels = Labels::Loaded(&table.next_hops);
    let plan = EnrichPlan::new(format, &[column.to_owned()], first_line, &columns, &labels)?;
    let mut out = Vec::new();
    if let Some(header) = &plan.header {
        out.extend_from_slice(header);
        chunks.skip_line();
    }
    let limits = Limits::default();
    let finders = Dual::new(
        Finder::new(Table::Rib(&table.ribs.v4), limits, None),
        Finder::new(Table::Rib(&table.ribs.v6), limits, None),
    );
    let mut enricher = Enricher::new(&finders, &plan, V4Mapped::default(), messages);
    let (mut chunk, mut bad) = (Vec::new(), 0);
    while chunks.next(&mut chunk).map_err(failed)? {
        let tally: LineCounts;
        (out, tally) = answered(out, |out| enricher.answer(&chunk, false, out))?;
        bad += tally.bad;
    }
    Ok((out, bad))
}
