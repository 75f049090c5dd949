//! Messages on standard error: errors, warnings, notes and progress.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default();

/// Messages to standard error, or none with `--quiet`.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    quiet: bool,
}

impl Messages {
    /// Returns messages, or none of them if `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Returns whether only errors and left-out input are printed.
    #[must_use]
    pub fn is_quiet(self) -> bool {
        self.quiet
    }

    /// A fault that does not stop the command.
    pub fn warning(self, message: impl Display) {
        if !self.quiet {
            warning(message);
        }
    }

    /// Information.
    pub fn note(self, message: impl Display) {
        if !self.quiet {
            line(NOTE, "note", message);
        }
    }

    /// Returns a progress bar of `count` steps; only on a terminal.
    #[must_use]
    pub fn steps(self, count: u64) -> ProgressBar {
        self.bar(Some(count), "{spinner} {wide_msg} {pos}/{len} [{bar:30}]")
    }

    /// Returns a progress bar of bytes, or a counter if the total is unknown; only on a terminal.
    pub(crate) fn bytes(self, total: Option<u64>) -> ProgressBar {
        let shape = match total {
            Some(_) => {
                "{wide_msg} [{bar:10}] {percent} %, {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
            }
            None => "{spinner} {wide_msg} {decimal_bytes}, {decimal_bytes_per_sec}",
        };
        self.bar(total, shape)
    }

    fn bar(self, total: Option<u64>, shape: &str) -> ProgressBar {
        let target = if self.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(shape).map(|style| style.progress_chars("=> "));
        let bar = ProgressBar::with_draw_target(total, target);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        bar
    }
}

/// Prints why the command failed, even with `--quiet`.
pub(crate) fn error(message: impl Display) {
    line(ERROR, "error", message);
}

/// Prints a warning even with `--quiet`: something was left out, and the answer is not about it.
pub(crate) fn warning(message: impl Display) {
    line(WARNING, "warning", message);
}

/// Prints output that the user requested on standard error.
pub(crate) fn plain(message: impl Display) {
    // Here and below: a closed standard error is no reason to stop.
    let _ = writeln!(anstream::stderr(), "{message}");
}

fn line(style: Style, word: &str, message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#}: {message}");
}
