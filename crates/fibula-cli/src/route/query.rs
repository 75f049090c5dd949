//! The prefixes of the command line, and the message for a prefix without routes.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::ExitCode;

use fibula::net::{HostBits, IpPrefix};
use fibula_feed::compression::Decompressor;

use super::args::ShowArgs;
use crate::failure::{Failure, code};

/// Returns the prefixes to show, of the command line and of the file; none: all.
pub(super) fn prefixes(args: &ShowArgs) -> Result<Option<Vec<IpPrefix>>, Failure> {
    let mut prefixes = args.prefixes.clone();
    if let Some(path) = &args.prefix_file {
        prefixes.extend(read_prefixes(path)?);
    }
    let all = args.prefixes.is_empty() && args.prefix_file.is_none();
    Ok((!all).then_some(prefixes))
}

fn read_prefixes(path: &Path) -> Result<Vec<IpPrefix>, Failure> {
    let reading = |error: &io::Error| Failure::reading(&path.display().to_string(), error);
    let input = std::fs::File::open(path).and_then(Decompressor::new).map_err(|error| reading(&error))?;
    let mut prefixes = Vec::new();
    for (index, line) in BufReader::new(input).split(b'\n').enumerate() {
        let line = line.map_err(|error| reading(&error))?;
        let text = line.split(|&byte| byte == b'#').next().unwrap_or_default().trim_ascii();
        if text.is_empty() {
            continue;
        }
        let prefix = IpPrefix::parse(text, HostBits::Refuse);
        prefixes.push(prefix.map_err(|error| {
            Failure::BadInput(format!("{}:{}: {}", path.display(), index + 1, error.reason()))
        })?);
    }
    Ok(prefixes)
}

pub(super) fn exit_code(count: u64) -> ExitCode {
    if count == 0 { code::NOTHING_FOUND.into() } else { ExitCode::SUCCESS }
}

/// Returns the nearest routes of a prefix that has none itself.
pub(super) fn nothing(prefix: &dyn std::fmt::Display, longest: Option<&str>) -> String {
    match longest {
        Some(longest) => format!("no route exactly {prefix}; longest match {longest}"),
        None => format!("no route exactly {prefix}, and none that contains it"),
    }
}
