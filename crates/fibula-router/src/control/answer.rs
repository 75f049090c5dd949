//! Answers of the control socket: a line of JSON each.

use std::io::{self, Write};

use serde::Serialize;

use crate::api;

/// Sends an answer: a line of JSON.
pub(super) fn send(out: &mut (impl Write + ?Sized), answer: &impl Serialize) -> io::Result<()> {
    // Write in one call, because a system call for each part of a long answer would hold up the main thread.
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// Refuses a question.
pub(super) fn refuse(out: &mut impl Write, error: impl Into<String>) -> io::Result<()> {
    send(out, &api::Refusal { error: error.into() })
}
