//! The width of output for people: that of the terminal, or 80 columns where it is not known.

use std::io::{self, Write};

use clap::Command;

/// Where neither a terminal nor COLUMNS says otherwise.
const UNKNOWN: usize = 80;

/// Less is not worth breaking lines for.
const LEAST: usize = 40;

/// Longer lines of text are hard to read.
const MOST: usize = 100;

/// Returns the columns of the terminal.
pub(crate) fn columns() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(variable).unwrap_or(UNKNOWN).max(LEAST)
}

/// Returns a command whose help fits into the terminal, as those of the commands in it.
pub(crate) fn fitting(command: Command) -> Command {
    fit(command, columns().min(MOST))
}

fn fit(command: Command, width: usize) -> Command {
    let after = command.get_after_help().map(|text| fold(&text.to_string(), width));
    let command = command.term_width(width).mut_subcommands(|command| fit(command, width));
    match after {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Breaks lines between words, and begins the rest below the line's last column of text. Lines of the shell, in examples, are
/// continued as a shell does it.
pub(crate) fn fold(text: &str, width: usize) -> String {
    let mut folded = Vec::new();
    let mut examples = false;
    for line in text.lines() {
        if !line.starts_with(' ') {
            examples = line.starts_with("Examples:");
        }
        fold_line(line, width, examples, &mut folded);
    }
    folded.join("\n")
}

fn fold_line(line: &str, width: usize, shell: bool, lines: &mut Vec<String>) {
    let start = line.len() - line.trim_start().len();
    let hanging = match line.trim_start().find("  ") {
        _ if shell => start + 4,
        Some(gap) => {
            let rest = &line[start + gap..];
            start + gap + rest.len() - rest.trim_start().len()
        }
        None => start,
    };
    let (indent, end) = (" ".repeat(hanging.min(width / 2)), if shell { " \\" } else { "" });
    let mut rest = line.to_owned();
    while visible(&rest).count() > width {
        // The blanks of the indent are no place to break at.
        let first = rest.len() - rest.trim_start().len();
        let fits = visible(&rest).enumerate().take_while(|&(column, _)| column + end.len() <= width);
        let breaks = fits.map(|(_, at)| at).filter(|&(at, c)| c == ' ' && at > first.max(hanging));
        let Some((at, _)) = breaks.last() else { break };
        let after = format!("{indent}{}", rest[at..].trim_start());
        rest.truncate(at);
        lines.push(rest.trim_end().to_owned() + end);
        rest = after;
    }
    lines.push(rest);
}

/// Returns the characters that take a column, and where they are: not those of escape sequences.
fn visible(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut escaped = false;
    text.char_indices().filter(move |&(_, c)| {
        let ends = escaped && c.is_ascii_alphabetic();
        escaped = (escaped || c == '\x1b') && !ends;
        !escaped && !ends
    })
}

/// Breaks lines that are too long for the terminal, unless blanks follow blanks: those are tables, or code.
pub fn folded<W: Write>(inner: W) -> Folded<W> {
    Folded { inner, line: Vec::new() }
}

/// A stream whose lines are broken.
#[derive(Debug)]
pub struct Folded<W> {
    inner: W,
    /// The text after the last line feed.
    line: Vec<u8>,
}

impl<W: Write> Write for Folded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            match std::str::from_utf8(&self.line) {
                Ok(text) if !text.contains("  ") => {
                    writeln!(self.inner, "{}", fold(text, columns().min(MOST)))?;
                }
                _ => self.inner.write_all(&self.line)?,
            }
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.write_all(&std::mem::take(&mut self.line))?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_below_their_text() {
        let text = "Exit codes:\n  0  all is well here\n  10  x\n\nExamples:\n  a --b c --d e\nfree text of words\n  unbreakable-word";
        let expected = "Exit codes:\n  0  all is\n     well here\n  10  x\n\nExamples:\n  a --b c \\\n      --d e\nfree text of\nwords\n  unbreakable-word";
        assert_eq!(fold(text, 14), expected);
        assert_eq!(fold(text, 80), text);
        assert_eq!(fold("", 80), "");
        assert_eq!(fold("  é é é é é é", 8), "  é é é\n  é é é");
        assert_eq!(fold("\x1b[1ma b\x1b[0m c", 5), "\x1b[1ma b\x1b[0m c");
        assert_eq!(fold("\x1b[1ma b\x1b[0m c d", 5), "\x1b[1ma b\x1b[0m c\nd");
    }

    #[test]
    fn streams_are_broken_line_by_line() {
        let mut out = folded(Vec::new());
        let line = "word ".repeat(30);
        write!(out, "{line}").unwrap();
        writeln!(out, "\na  {line}").unwrap();
        write!(out, "end").unwrap();
        out.flush().unwrap();
        let text = String::from_utf8(out.inner).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() >= 4 && lines[0].len() <= MOST && lines.last() == Some(&"end"), "{text}");
        assert!(text.contains(&format!("\na  {line}\n")), "{text}");
    }
}
