//! The command of the laboratory, as its users run it, and its records. One program: each more would be linked anew.

mod choices;
mod claims;
mod commands;
#[cfg(feature = "gpu")]
mod device;
mod html;
mod paper;
mod rates;
mod schedule;
#[path = "../../../fibula-cli/tests/all/support/mod.rs"]
mod support;
mod targets;
mod updates;
