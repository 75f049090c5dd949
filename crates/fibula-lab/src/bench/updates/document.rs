//! The section on updates of the document of benchmarks.

use core::fmt::Write as _;
use std::collections::BTreeSet;

use super::lines::{self, UpdateLine, Words};
use super::row::{RowSubject, UpdateRecord, UpdateRow};
use crate::bench::chart::number;
use crate::bench::document::{Document, commit, grouped, title};
use fibula_workload::machine::slug;

const INTRODUCTION: &str = "\
What changes cost, in microseconds for each change: the median of the runs. Our engines are in a live table, and the time
includes its routes and publishing; *rebuild* marks those that are built anew for each call, and *rebuild then, in place today* those
whose figures say nothing of today's code. Rivals change by their own
functions, one change after the other; `rte_fib` and `rte_fib6` include their own routes, and nothing of theirs is published
for readers. Every prefix that is removed is added again, in random order. Answers at the ends of changed prefixes were
compared with an oracle's in the same run. Changes are timed by wall-clock time, which counts other programs: the load of the machine is in
none of these records, so compare the rates beside a writer with care.
";

/// Whether an engine of this name changes in place today.
fn changes_in_place(name: &str) -> bool {
    let entries = fibula_workload::engines::entries(fibula_published::ENGINES);
    entries.iter().any(|entry| entry.name == name && entry.update == "in-place")
}

/// Adds the section of these records, and their charts.
pub(in crate::bench) fn section(document: &mut Document, records: &[UpdateRecord], folder: &str) {
    if records.is_empty() {
        return;
    }
    let _ = write!(document.text, "\n## Updates\n\n{INTRODUCTION}");
    for record in records {
        for family in &record.table.families {
            let rows: Vec<&UpdateRow> =
                record.rows.iter().filter(|row| row.family == family.family).collect();
            if !rows.is_empty() {
                let routes = family.routes;
                Section { record, rows, family: title(&family.family), routes }.write(document, folder);
            }
        }
    }
}

/// One family of a record.
struct Section<'a> {
    record: &'a UpdateRecord,
    rows: Vec<&'a UpdateRow>,
    family: &'a str,
    routes: usize,
}

impl Section<'_> {
    fn write(&self, document: &mut Document, folder: &str) {
        let UpdateRecord { date, table, machine, program, plan, recorded, .. } = self.record;
        let commit = commit(program.commit.as_deref());
        let _ = write!(
            document.text,
            "\n### Updates of {}, {}, on {}\n\n- {} prefixes; {} runs, {date}, commit {commit}\n",
            table.name,
            self.family,
            machine.name(),
            grouped(self.routes),
            plan.runs
        );
        let (checked, wrong) =
            self.rows.iter().fold((0, 0), |(checked, wrong), row| (checked + row.checked, wrong + row.wrong));
        let _ = writeln!(
            document.text,
            "- {} answers were compared, {} were wrong",
            grouped(checked),
            grouped(wrong)
        );
        let mut said = BTreeSet::new();
        for row in &self.rows {
            let error = row.error.as_ref().filter(|error| !error.starts_with("SKIPPED"));
            if let Some(error) = error
                && said.insert((&row.engine, error))
            {
                let _ = writeln!(document.text, "- `{}` refused: {error}", row.engine);
            }
        }
        document.text.push('\n');
        let calls = format!("calls of {}", plan.batch);
        let length = format!("Random prefixes of one length, {calls}:");
        self.chart(document, folder, RowSubject::Length, ("length", &length, "prefix length"));
        self.table(&mut document.text, RowSubject::Length, &|at| format!("/{at}"));
        self.chart(
            document,
            folder,
            RowSubject::Batch,
            ("batch", "Random prefixes, by the number of changes in a call:", "changes in a call"),
        );
        self.table(&mut document.text, RowSubject::Batch, &grouped);
        if let Some(trace) = recorded {
            let text = format!(
                "The trace `{trace}`, changes of the best route that change a route, {calls}; a structure that is built anew \
                 follows the beginning only:"
            );
            self.chart(document, folder, RowSubject::Trace, ("trace", &text, "changes of the trace so far"));
            self.trace(&mut document.text);
        }
        let _ = write!(
            document.text,
            "Building a generated table anew, without a live table around it, in ms:\n\n"
        );
        self.table(&mut document.text, RowSubject::Build, &|at| format!("{} prefixes", grouped(at)));
        self.readers(&mut document.text, &calls);
    }

    fn of(&self, part: RowSubject) -> impl Iterator<Item = &UpdateRow> {
        self.rows.iter().copied().filter(move |row| row.part == part)
    }

    /// Returns the engines that have figures of this part, in order.
    fn names(&self, part: RowSubject) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in self.of(part).filter(|row| row.median.is_some()) {
            if !names.contains(&row.engine.as_str()) {
                names.push(&row.engine);
            }
        }
        names
    }

    fn label(&self, name: &str) -> String {
        match self.rows.iter().find(|row| row.engine == name) {
            Some(row) if row.rival => format!("{name} (rival)"),
            Some(row) if row.update != "in-place" && changes_in_place(name) => {
                format!("{name} (rebuild then, in place today)")
            }
            Some(row) if row.update != "in-place" => format!("{name} (rebuild)"),
            _ => name.to_owned(),
        }
    }

    fn figure(&self, name: &str, part: RowSubject, at: usize) -> Option<f64> {
        self.of(part).find(|row| row.engine == name && row.at == at)?.median
    }

    fn chart(
        &self,
        document: &mut Document,
        folder: &str,
        part: RowSubject,
        (what, text, caption): (&str, &str, &str),
    ) {
        let names = self.names(part);
        let ats: BTreeSet<usize> = self.of(part).map(|row| row.at).collect();
        let mut all: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !all.contains(&row.engine.as_str()) {
                all.push(&row.engine);
            }
        }
        let line = |&name: &&str| UpdateLine {
            name: self.label(name),
            marker: all.iter().position(|&other| other == name).unwrap_or(0),
            points: ats.iter().filter_map(|&at| Some((at as f64, self.figure(name, part, at)?))).collect(),
        };
        let lines: Vec<UpdateLine> = names.iter().map(line).collect();
        let UpdateRecord { table, machine, .. } = self.record;
        let heading = format!("{}: {} updates", table.name, self.family);
        let words = Words {
            title: &heading,
            subtitle: &format!(
                "{}; {}",
                text.split([';', ':']).next().unwrap_or(text).replace('`', ""),
                machine.name()
            ),
            caption: &format!("{caption}; upwards: microseconds a change"),
            logarithmic: part == RowSubject::Batch,
        };
        let _ = write!(document.text, "{text}\n\n");
        if let Some(svg) = lines::svg(&words, &lines) {
            let name = format!(
                "{folder}/{}-{}-{}-updates-{what}.svg",
                machine.slug(),
                slug(&table.name),
                self.family.to_lowercase()
            );
            let _ = write!(document.text, "![{heading}: microseconds a change by {caption}]({name})\n\n");
            document.charts.push((name, svg));
        }
    }

    /// Writes a table with a row for each place and a column for each engine, or the other way around where places are
    /// few.
    fn table(&self, text: &mut String, part: RowSubject, place: &dyn Fn(usize) -> String) {
        let names = self.names(part);
        let ats: Vec<usize> = self.of(part).map(|row| row.at).collect::<BTreeSet<_>>().into_iter().collect();
        let cell = |name: &str, at| {
            self.figure(name, part, at).map_or(" - |".to_owned(), |figure| format!(" {} |", number(figure)))
        };
        if ats.len() > names.len() {
            let heads: String = names.iter().map(|name| format!(" `{name}` |")).collect();
            let _ = writeln!(text, "| |{heads}\n|---|{}", "--:|".repeat(names.len()));
            for &at in &ats {
                let cells: String = names.iter().map(|name| cell(name, at)).collect();
                let _ = writeln!(text, "| {} |{cells}", place(at));
            }
        } else {
            let heads: String = ats.iter().map(|&at| format!(" {} |", place(at))).collect();
            let _ = writeln!(text, "| engine |{heads}\n|---|{}", "--:|".repeat(ats.len()));
            for name in names {
                let cells: String = ats.iter().map(|&at| cell(name, at)).collect();
                let _ = writeln!(text, "| {} |{cells}", self.label(name));
            }
        }
        text.push('\n');
    }

    /// Writes the time of the trace, over all its stretches.
    fn trace(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "| engine | changes | us a change | fastest stretch | slowest stretch | built anew in a run |\n\
             |---|--:|--:|--:|--:|--:|"
        );
        for name in self.names(RowSubject::Trace) {
            let rows: Vec<&UpdateRow> = self.of(RowSubject::Trace).filter(|row| row.engine == name).collect();
            let figures: Vec<f64> = rows.iter().filter_map(|row| row.median).collect();
            let runs = rows[0].runs.len().max(1);
            let changes = |row: &&&UpdateRow| row.changes / runs;
            let all: usize = rows.iter().map(|row| changes(&row)).sum();
            let time: f64 =
                rows.iter().map(|row| row.median.unwrap_or(0.0) * changes(&row) as f64).sum::<f64>();
            let rebuilt: usize = rows.iter().map(|row| row.rebuilt).sum::<usize>() / runs;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} |",
                self.label(name),
                grouped(all),
                number(time / all.max(1) as f64),
                number(figures.iter().copied().fold(f64::INFINITY, f64::min)),
                number(figures.iter().copied().fold(0.0, f64::max)),
                grouped(rebuilt)
            );
        }
        text.push('\n');
    }

    /// Writes the rates of readers, with and without the writer.
    fn readers(&self, text: &mut String, calls: &str) {
        let _ = write!(
            text,
            "Readers, in million lookups a second of all together, in batches of 256 random addresses of the table; the \
             writer removes and adds random prefixes as fast as it can, {calls}, in million changes a second:\n\n"
        );
        let mut columns: Vec<(RowSubject, usize)> = Vec::new();
        for part in [RowSubject::ReadersIdle, RowSubject::ReadersBeside, RowSubject::WriterBeside] {
            let ats: BTreeSet<usize> = self.of(part).map(|row| row.at).collect();
            columns.extend(ats.into_iter().map(|at| (part, at)));
        }
        let head = |&(part, at): &(RowSubject, usize)| {
            let readers = if at == 1 { "1 reader".to_owned() } else { format!("{at} readers") };
            match part {
                RowSubject::ReadersIdle => format!(" {readers} |"),
                RowSubject::ReadersBeside => format!(" {readers} beside the writer |"),
                _ => format!(" the writer beside {readers} |"),
            }
        };
        let heads: String = columns.iter().map(head).collect();
        let _ = writeln!(text, "| engine |{heads}\n|---|{}", "--:|".repeat(columns.len()));
        let mut skipped = BTreeSet::new();
        for name in self.names(RowSubject::ReadersIdle) {
            let _ = write!(text, "| {} |", self.label(name));
            for &(part, at) in &columns {
                let row = self.of(part).find(|row| row.engine == name && row.at == at);
                skipped.extend(row.and_then(|row| row.error.as_deref()));
                let cell = match row {
                    Some(UpdateRow { median: Some(figure), .. }) => number(*figure),
                    Some(UpdateRow { error: Some(_), .. }) => "SKIPPED".to_owned(),
                    _ => "-".to_owned(),
                };
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
        for reason in skipped {
            let _ = write!(text, "\n{reason}.\n");
        }
    }
}
