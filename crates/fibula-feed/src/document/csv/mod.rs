//! Tables whose columns are separated by commas (RFC 4180), semicolons, tabs or bars, with a header or without one.

mod cells;
mod plan;

use std::borrow::Cow;

use super::head::TextHead;
use super::record::{Fields, TableRecord};
use super::{Document, Settings, Stop, Take};
use crate::text::{LineError, LineErrorKind};
use crate::value::Value;
use cells::Dialect;
use plan::Plan;

/// Most lines, and most bytes, over which a quoted field may go. One stray quote costs no more than its own line.
const QUOTED_LINES: usize = 16;
const QUOTED_BYTES: usize = 64 << 10;

/// Returns how many lines of the head are of this form.
pub(super) fn claims(head: &TextHead<'_>, settings: &Settings<'_>) -> usize {
    Plan::of(head, settings).map_or(0, |(_, claims)| claims)
}

/// Returns the reader of a text with this head.
pub(super) fn read(head: &TextHead<'_>, settings: &Settings<'_>) -> Result<Box<dyn Document>, String> {
    match Plan::of(head, settings) {
        Some((plan, _)) => Ok(Box::new(Csv { plan, pending: Vec::new(), pending_bytes: 0 })),
        None => Err(plan::refusal(head, settings)),
    }
}

struct Csv {
    plan: Plan,
    /// Lines of a quoted field that is not closed yet, the first of them with its number.
    pending: Vec<(u64, String)>,
    pending_bytes: usize,
}

impl Csv {
    fn dialect(&self) -> Dialect {
        self.plan.dialect
    }

    fn row(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        if line.trim().is_empty() || self.dialect().is_comment(line) || self.plan.skips(line) {
            return Ok(());
        }
        match self.dialect().cells(line) {
            Ok(cells) => self.said(line, &cells, number, take),
            Err(error) => take.bad(number, error, line),
        }
    }

    fn said(&self, line: &str, cells: &[Cow<'_, str>], number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        match self.plan.place(cells) {
            Some(place) => {
                take.record(&TableRecord::plain(place, &Row { plan: &self.plan, cells }), number, line)
            }
            None => take.bad(number, LineError::new(LineErrorKind::MissingField("prefix"), line.len()), line),
        }
    }

    /// Gives the quoted field up: it ends at its own line, which is misread, and the lines after it are read again.
    fn give_up(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let mut lines = std::mem::take(&mut self.pending).into_iter();
        self.pending_bytes = 0;
        if let Some((number, line)) = lines.next() {
            take.bad(number, LineError::new(LineErrorKind::UnterminatedQuote, line.len()), &line)?;
        }
        for (number, line) in lines {
            self.line(&line, number, take)?;
        }
        Ok(())
    }

    fn hold(&mut self, line: &str, number: u64) {
        self.pending_bytes += line.len() + 1;
        self.pending.push((number, line.to_owned()));
    }
}

impl Document for Csv {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        take.work(line.len());
        if self.pending.is_empty() {
            if self.dialect().opens(line) && !self.dialect().is_comment(line) {
                self.hold(line, number);
                return Ok(());
            }
            return self.row(line, number, take);
        }
        let is_full = self.pending.len() >= QUOTED_LINES || self.pending_bytes + line.len() > QUOTED_BYTES;
        if is_full {
            self.give_up(take)?;
            return self.line(line, number, take);
        }
        self.hold(line, number);
        if self.dialect().closes(line) {
            let first = self.pending[0].0;
            let lines: Vec<&str> = self.pending.iter().map(|(_, line)| &**line).collect();
            let whole = lines.join("\n");
            if let Ok(cells) = self.dialect().cells(&whole) {
                self.pending.clear();
                self.pending_bytes = 0;
                return self.said(&whole, &cells, first, take);
            }
            return self.give_up(take);
        }
        Ok(())
    }

    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        // Each call gives up one line at least.
        while !self.pending.is_empty() {
            self.give_up(take)?;
        }
        Ok(())
    }
}

/// The cells of a line, found by the plan of the table.
struct Row<'a> {
    plan: &'a Plan,
    cells: &'a [Cow<'a, str>],
}

impl Fields for Row<'_> {
    fn text(&self, value: &Value) -> Option<Cow<'_, str>> {
        if *value == Value::NextHop && self.plan.values.len() > 1 {
            let cells = self.plan.values.iter().filter_map(|&at| self.cells.get(at)).map(|cell| cell.trim());
            return Some(cells.collect::<Vec<_>>().join(" ").into());
        }
        let cell = self.cells.get(self.plan.column(value)?)?.trim();
        Some(if *value == Value::Communities { super::record::communities(cell).into() } else { cell.into() })
    }

    fn first(&self) -> Option<Cow<'_, str>> {
        Some(self.cells.get(self.plan.first?)?.trim().into())
    }
}
