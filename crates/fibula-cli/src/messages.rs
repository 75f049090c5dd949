//! What is said on standard error: errors, warnings, notes and progress.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default();

/// Standard error, or nothing with `--quiet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Messages {
    quiet: bool,
}

impl Messages {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Something is wrong, and the command goes on.
    pub(crate) fn warning(self, message: impl Display) {
        if !self.quiet {
            line(WARNING, "warning", message);
        }
    }

    /// Something worth knowing.
    pub(crate) fn note(self, message: impl Display) {
        if !self.quiet {
            line(NOTE, "note", message);
        }
    }

    /// A bar of so many steps, with the name of the present one. Drawn on a terminal only.
    pub(crate) fn steps(self, count: u64) -> ProgressBar {
        self.bar(Some(count), "{spinner} {wide_msg} {pos}/{len} [{bar:30}]")
    }

    /// A bar over bytes, or a count of them where the total is not known. Drawn on a terminal only.
    pub(crate) fn bytes(self, total: Option<u64>) -> ProgressBar {
        let shape = match total {
            Some(_) => "{msg} [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{spinner} {msg} {bytes}, {bytes_per_sec}",
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

/// Says why the command failed. `--quiet` does not hush it.
pub(crate) fn error(message: impl Display) {
    line(ERROR, "error", message);
}

/// Says something that was asked for.
pub(crate) fn plain(message: impl Display) {
    // Here and below: that nobody listens on standard error is no reason to stop, or to panic.
    let _ = writeln!(anstream::stderr(), "{message}");
}

fn line(style: Style, word: &str, message: impl Display) {
    let _ = writeln!(anstream::stderr(), "{style}{word}{style:#}: {message}");
}
