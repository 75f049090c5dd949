//! The command, as its users run it. One program: each more would be linked anew.

mod commands;
mod compile;
mod count;
mod enrich;
mod feeds;
mod grammar;
#[cfg(unix)]
mod guide;
mod html;
mod inputs;
mod lookup;
#[cfg(unix)]
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod replay;
mod row_binary;
mod rpki;
mod stream;
#[cfg(unix)]
mod streams;
mod support;
mod tour;
mod typed;
mod values;
mod width;
