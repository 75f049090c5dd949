//! Parquet in, Parquet out: the columns of the input are copied without being decoded, and the answer's columns come after
//! them.
//!
//! A row group is answered at a time, by one thread, which reads the columns with addresses and encodes those of the answer
//! in memory. Each thread has one group in hand and one that waits; groups are written in their order.

mod answer;
mod count;
mod guard;
mod plan;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::answers::Finders;
use super::args::HowArgs;
use super::pipeline::LineCounts;
use super::rows::Labels;
use crate::failure::Failure;
use crate::load::Columns;
use crate::messages::Messages;
pub(super) use answer::AddressMatch;
use answer::Answerer;
pub(super) use count::{Counted, count};
use guard::{cannot_read, guarded};
use plan::ParquetPlan;

/// Answers all rows of a file, whose columns with addresses are named.
pub(super) fn enrich(
    (how, strict): (&HowArgs, bool),
    (path, addresses): (&Path, &[String]),
    finders: &Finders<'_>,
    (columns, labels): (&Columns, &Labels<'_>),
    out: &mut (dyn Write + Send),
    messages: Messages,
    tally: &mut LineCounts,
) -> Result<(), Failure> {
    if how.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::WrongUse("Parquet is not for terminals: name a file with --output".to_owned()));
    }
    let (file, metadata) = open(path)?;
    let plan = guarded(path, || ParquetPlan::new(&metadata, addresses, columns))?;
    let texts = answer::Texts::new(labels, columns);
    let mut writer = SerializedFileWriter::new(out, Arc::clone(&plan.schema), kept_properties(&metadata))?;
    each_group(
        (path, metadata.num_row_groups(), how.threads()),
        messages,
        &|| Answerer::open(path, finders, &plan, &texts, (how.v4_mapped, messages)),
        &|answerer, group| answerer.answer(group),
        &mut |group, answered| {
            let mut rows = writer.next_row_group()?;
            guarded(path, || copy_columns(&file, &metadata, group, &mut rows))?;
            for (bytes, column) in answered.columns {
                rows.append_column(&bytes, column)?;
            }
            rows.close()?;
            tally.add(answered.tally, ("row", 0), strict, messages)
        },
    )?;
    writer.close()?;
    tally.summary("row", messages);
    Ok(())
}

/// Opens a file and reads its end, which says what it has.
fn open(path: &Path) -> Result<(File, ParquetMetaData), Failure> {
    let file = File::open(path).map_err(|error| Failure::opening(path, &error))?;
    let metadata = guarded(path, || {
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)
            .map_err(|error| cannot_read(path, &error))?;
        let file_len = file.metadata().map_or(0, |found| found.len());
        let outside = || ParquetError::General("a column is not within the file".to_owned());
        check_ranges(&metadata, file_len).ok_or_else(|| cannot_read(path, &outside()))?;
        Ok(metadata)
    })?;
    Ok((file, metadata))
}

/// Does `work` for every row group on several threads, each with what `begin` returns, and calls `take` with the results in the
/// order of the groups.
fn each_group<S: Send, T: Send>(
    (path, groups, threads): (&Path, usize, usize),
    messages: Messages,
    begin: &dyn Fn() -> Result<S, Failure>,
    work: &(dyn Fn(&mut S, usize) -> Result<T, Failure> + Sync),
    take: &mut dyn FnMut(usize, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let bar = messages.steps(groups as u64);
    bar.set_message("looking up");
    let threads = threads.min(groups);
    thread::scope(|scope| {
        let mut done: Vec<Receiver<Result<T, Failure>>> = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel(1);
            done.push(receiver);
            // A file of its own: handles that are cloned share their position.
            let mut state = guarded(path, begin)?;
            let run = move || {
                for group in (first..groups).step_by(threads) {
                    let result = guarded(path, || work(&mut state, group));
                    // The receiver takes nothing more once it has stopped.
                    if sender.send(result).is_err() {
                        return;
                    }
                }
            };
            let started = thread::Builder::new().spawn_scoped(scope, run);
            started.map_err(|error| Failure::BadInput(format!("no thread can be started: {error}")))?;
        }
        for (group, results) in (0..groups).zip(done.iter().cycle()) {
            let Ok(result) = results.recv() else { break };
            take(group, result?)?;
            bar.inc(1);
        }
        Ok::<(), Failure>(())
    })?;
    bar.finish_and_clear();
    Ok(())
}

/// Returns `None` unless all columns are within the file, which the reader takes for granted.
fn check_ranges(metadata: &ParquetMetaData, file_len: u64) -> Option<()> {
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        let (start, len) = (u64::try_from(start).ok()?, u64::try_from(column.compressed_size()).ok()?);
        start.checked_add(len).filter(|&end| end <= file_len)?;
        u64::try_from(column.uncompressed_size()).ok()?;
    }
    Some(())
}

/// Copies the columns of the input, as they are encoded and compressed; without Bloom filters.
fn copy_columns<W: Write + Send>(
    file: &File,
    metadata: &ParquetMetaData,
    group: usize,
    rows: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), Failure> {
    let index = metadata.page_index();
    let old = metadata.row_group(group);
    for (at, column) in old.columns().iter().enumerate() {
        let copied = ColumnCloseResult {
            bytes_written: column.compressed_size().try_into().unwrap_or(0),
            rows_written: old.num_rows().try_into().unwrap_or(0),
            metadata: column.clone(),
            // Reading one trusts the lengths in the file.
            bloom_filter: None,
            column_index: index.and_then(|index| index.column_index(group, at)).cloned(),
            offset_index: index.and_then(|index| index.offset_index(group, at)).cloned(),
        };
        rows.append_column(file, copied)?;
    }
    Ok(())
}

/// Keeps the metadata of the input, except for Arrow's own schema, because that would lack the new columns.
fn kept_properties(metadata: &ParquetMetaData) -> Arc<WriterProperties> {
    let kept = metadata
        .file_metadata()
        .key_value_metadata()
        .map(|pairs| pairs.iter().filter(|pair| pair.key != "ARROW:schema").cloned().collect::<Vec<_>>());
    Arc::new(WriterProperties::builder().set_key_value_metadata(kept).build())
}
