//! Reads the options that choose the columns of a compiled table.

use std::path::PathBuf;

use fibula::file::TableFile;
use fibula_feed::WantedColumns;

use crate::failure::Failure;
use crate::load;
use crate::options::FeedArgs;

/// Returns the columns that were named. Otherwise those of a compiled table, or the next hop alone.
pub(crate) fn wanted_columns(files: &[PathBuf], feed: &FeedArgs) -> Result<WantedColumns, Failure> {
    let wanted = WantedColumns::new(&feed.value).map_err(|error| Failure::WrongUse(error.to_string()))?;
    Ok(match files {
        [path] if wanted.is_empty() && load::is_compiled(path) => {
            // A file that cannot be opened is reported when it is loaded.
            TableFile::map(path).map_or(wanted, |file| WantedColumns::of_file(&file))
        }
        _ => wanted,
    }
    .or_next_hops())
}
