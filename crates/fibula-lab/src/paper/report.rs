//! The report of a record: an HTML page that needs no other file.

use core::fmt::Write as _;

use fibula_workload::drawing::escape;
use fibula_workload::page;

use super::chart::{rows, svg};
use super::definition::{Exhibit, ExhibitColumn, Paper};
use super::record::{PaperRecord, Point};
use super::verdict::{Ratio, Verdict, findings};

/// Returns the page of a record. `command` measures it again.
#[must_use]
pub fn report(paper: &Paper, record: &PaperRecord, command: &str) -> String {
    let mut page = page::start(&format!("{}: measured again", paper.title), &paper.title);
    let _ = writeln!(
        page,
        "<p class=\"aside\">{}</p>\n<p>{}</p>",
        escape(&paper.citation),
        escape(&paper.summary)
    );
    summary(&mut page, paper, record);
    for exhibit in &paper.exhibits {
        section(&mut page, exhibit, record);
    }
    method(&mut page, record, command);
    page.push_str(page::END);
    page
}

fn summary(page: &mut String, paper: &Paper, record: &PaperRecord) {
    if record.quick {
        page.push_str(
            "<p class=\"remark\"><strong>A quick run.</strong> Its tables are small and its times short: it shows that \
             everything can be measured, and its figures mean nothing.</p>\n",
        );
    }
    let _ = writeln!(page, "<h2 id=\"summary\">Summary</h2>\n<p>{}</p>", escape(&counts(paper, record)));
    page.push_str("<nav>");
    for exhibit in &paper.exhibits {
        let _ = write!(page, "<a href=\"#{}\">{}</a> ", exhibit.name, escape(exhibit.called()));
    }
    page.push_str("</nav>\n");
    if paper.exhibits.iter().any(|exhibit| !exhibit.claims.is_empty()) {
        page.push_str(
            "<div class=\"wide\"><table>\n<tr><th class=\"words\">conclusion of the paper</th><th>from</th><th>published</th>\
             <th>here</th><th>verdict</th></tr>\n",
        );
        for exhibit in &paper.exhibits {
            claims(page, exhibit, &record.points(exhibit));
        }
        page.push_str("</table></div>\n");
    }
}

/// Says how much of the paper there is.
fn counts(paper: &Paper, record: &PaperRecord) -> String {
    let (mut there, mut partly, mut missing) = (0, 0, 0);
    for exhibit in &paper.exhibits {
        let points = record.points(exhibit);
        let values = points.iter().filter(|point| point.value.is_some()).count();
        let whole = values == points.len()
            && exhibit.parts.iter().all(|part| record.done(&exhibit.name, &part.name).is_some());
        match values {
            0 => missing += 1,
            _ if whole => there += 1,
            _ => partly += 1,
        }
    }
    let machine = format!("{}, {} cores", record.machine.name(), record.machine.cores);
    format!(
        "Of {} tables and figures, {there} were measured, {partly} in part, and {missing} keep their place. Machine: \
         {machine}. Begun on {}.",
        paper.exhibits.len(),
        record.date
    )
}

fn claims(page: &mut String, exhibit: &Exhibit, points: &[&Point]) {
    for claim in &exhibit.claims {
        let verdict = Verdict::of(claim, points);
        let class = match &verdict {
            Verdict::Reproduced(_) => "holds",
            Verdict::NotReproduced(..) => "fails",
            Verdict::Undecided(_) | Verdict::ByConstruction(..) | Verdict::Missing(_) => "open",
        };
        let (found, words) = verdict.words(claim);
        let _ = writeln!(
            page,
            "<tr><td class=\"words\">{}</td><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td></tr>",
            escape(&claim.text),
            exhibit.name,
            escape(exhibit.called()),
            escape(&claim.published),
            escape(&found),
            escape(&words),
        );
    }
}

fn section(page: &mut String, exhibit: &Exhibit, record: &PaperRecord) {
    let points = &record.points(exhibit)[..];
    let _ = writeln!(
        page,
        "<h2 id=\"{}\">{}</h2>\n<p>{}</p>",
        exhibit.name,
        escape(&exhibit.title),
        escape(&exhibit.about)
    );
    if let Some(chart) = svg(exhibit, points) {
        let _ = writeln!(page, "<div class=\"wide\">{chart}</div>");
    }
    values(page, exhibit, points);
    ratios(page, exhibit, points);
    page.push_str("<ul class=\"aside\">\n");
    if !exhibit.published.is_empty() {
        let _ = writeln!(page, "<li>Published: {}</li>", escape(&exhibit.setting));
    }
    if !exhibit.differs.is_empty() {
        let _ = writeln!(page, "<li>What differs here: {}</li>", escape(&exhibit.differs));
    }
    for note in notes(exhibit, points, record) {
        let _ = writeln!(page, "<li>{}</li>", escape(&note));
    }
    for finding in findings(exhibit, points) {
        let _ = writeln!(page, "<li>{}</li>", escape(&finding));
    }
    page.push_str("</ul>\n");
}

/// Returns the reasons why values are missing, each once, and other remarks.
pub(super) fn notes(exhibit: &Exhibit, points: &[&Point], record: &PaperRecord) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for part in &exhibit.parts {
        match record.done(&exhibit.name, &part.name) {
            None => add(format!("Not measured yet: {}.", part.name)),
            Some(done) => {
                if let Some(error) = &done.error {
                    add(format!("{} could not be measured: {error}.", part.name));
                }
            }
        }
    }
    for point in points.iter().filter(|point| point.value.is_none()) {
        if let Some(why) = &point.note {
            let is_same = |other: &&&Point| other.value.is_none() && other.note == point.note;
            let mut rows: Vec<&str> = points.iter().filter(is_same).map(|point| point.row.as_str()).collect();
            rows.dedup();
            add(format!("Missing ({}): {why}.", rows.join(", ")));
        }
    }
    if points.iter().any(|point| point.is_noisy()) {
        add("Values marked with ~ have a 95 % interval wider than a fifth of the median: the machine was not quiet, and they \
             should not be compared."
            .to_owned());
    }
    notes
}

/// Writes published and measured values, row by row.
fn values(page: &mut String, exhibit: &Exhibit, points: &[&Point]) {
    let rows = rows(exhibit, points);
    if rows.is_empty() {
        return;
    }
    let _ = write!(page, "<div class=\"wide\"><table>\n<tr><th>{}</th>", escape(&exhibit.rows));
    for ExhibitColumn { name, unit } in &exhibit.columns {
        let unit = if unit.is_empty() { String::new() } else { format!("<br>{}", escape(unit)) };
        let _ = write!(page, "<th>{}{unit}</th>", escape(name));
    }
    page.push_str("</tr>\n");
    for row in &rows {
        let _ = write!(page, "<tr><td>{}</td>", escape(row));
        for column in &exhibit.columns {
            let point = points.iter().find(|point| point.row == *row && point.column == column.name);
            page.push_str(&cell(point.copied(), exhibit.published_at(row, &column.name)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn cell(point: Option<&Point>, published: Option<f64>) -> String {
    let mut text = String::from("<td>");
    match point {
        Some(Point { value: Some(value), low, high, note, .. }) => {
            let sign = if point.is_some_and(Point::is_noisy) { "~" } else { "" };
            let _ = write!(text, "{sign}{}", number(*value));
            if let Some((low, high)) = low.zip(*high).filter(|(low, high)| low != high) {
                let _ = write!(text, "<small>{} to {}</small>", number(low), number(high));
            }
            if let Some(note) = note {
                let _ = write!(text, "<small>{}</small>", escape(note));
            }
        }
        Some(_) => text.push_str("missing"),
        None => {}
    }
    if let Some(published) = published {
        let _ = write!(text, "<small>published {}</small>", number(published));
    }
    text + "</td>"
}

/// Writes all columns divided by the one that they are compared with, published and measured.
fn ratios(page: &mut String, exhibit: &Exhibit, points: &[&Point]) {
    let Some(against) = exhibit.against.as_deref() else { return };
    let rows = rows(exhibit, points);
    let at = |row: &str, column: &str| {
        points.iter().find(|point| point.row == row && point.column == column).copied()
    };
    let others: Vec<&str> =
        exhibit.columns.iter().map(|column| column.name.as_str()).filter(|name| *name != against).collect();
    let mut body = String::new();
    for row in &rows {
        let mut cells = String::new();
        let mut any = false;
        for column in &others {
            let here = at(row, column).zip(at(row, against)).and_then(|(of, over)| Ratio::of(of, over));
            let there = exhibit
                .published_at(row, column)
                .zip(exhibit.published_at(row, against))
                .map(|(of, over)| of / over);
            any |= here.is_some() || there.is_some();
            cells.push_str("<td>");
            if let Some(Ratio { median, low, high, paired }) = here {
                let sign = if paired { "" } else { "*" };
                let _ = write!(cells, "{median:.2}{sign}<small>{low:.2} to {high:.2}</small>");
            }
            if let Some(there) = there {
                let _ = write!(cells, "<small>published {there:.2}</small>");
            }
            cells.push_str("</td>");
        }
        if any {
            let _ = writeln!(body, "<tr><td>{}</td>{cells}</tr>", escape(row));
        }
    }
    if body.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<h3>Divided by {}</h3>\n<div class=\"wide\"><table>\n<tr><th>{}</th>",
        escape(against),
        escape(&exhibit.rows)
    );
    for column in others {
        let _ = write!(page, "<th>{}</th>", escape(column));
    }
    let _ = writeln!(
        page,
        "</tr>\n{body}</table></div>\n<p class=\"aside\">Medians of the ratios of the same runs, with 95 % intervals; with *, \
         of values that were not timed in turn.</p>"
    );
}

fn method(page: &mut String, record: &PaperRecord, command: &str) {
    let PaperRecord { machine, program, .. } = record;
    page.push_str(
        "<h2 id=\"method\">How it was measured</h2>\n\
         <p>Every engine of a part looks up the same keys in the same table, in turn with the others, after an untimed run \
         over the same keys. All answers are checked. Rates are medians of the runs, and ratios are medians of the ratios of \
         the same runs, both with 95 % intervals. One thread is timed by its processor time, several by wall-clock time. Where \
         several instruction sets or batches fit a place, the fastest one counts, and is named.</p>\n",
    );
    let _ = writeln!(page, "<p>Measure it again with <code>{}</code>.</p>", escape(command));
    page.push_str("<div class=\"wide\"><table>\n<tr><th>table</th><th>family</th><th>routes</th><th>next hops</th><th></th></tr>\n");
    for table in &record.tables {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&table.name),
            escape(&table.family),
            number(table.routes as f64),
            number(table.next_hops as f64),
            if table.generated { "generated" } else { "real" },
        );
    }
    let caches: Vec<String> = machine
        .caches
        .iter()
        .filter(|cache| cache.kind != "instruction")
        .map(|cache| format!("L{} {} KiB", cache.level, cache.bytes / 1024))
        .collect();
    let _ = writeln!(
        page,
        "</table></div>\n<p class=\"aside\">{}, {} cores; {}; huge pages: {}. {}; {}, {}, commit {}. The values are in \
         <code>record.json</code> beside this page.</p>",
        escape(&machine.name()),
        machine.cores,
        escape(&caches.join(", ")),
        escape(machine.huge_pages.as_deref().unwrap_or("unknown")),
        escape(&program.os),
        escape(&program.rustc),
        escape(&program.profile),
        escape(program.commit.as_deref().unwrap_or("unknown")),
    );
}

/// Returns a number with the digits that mean something: whole from 1,000 on, else three.
pub(super) fn number(number: f64) -> String {
    let size = number.abs();
    if size >= 999.5 || (size.fract() == 0.0 && size >= 1.0) {
        let digits = format!("{size:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if number < 0.0 { format!("-{text}") } else { text };
    }
    match size {
        _ if size >= 99.95 => format!("{number:.0}"),
        _ if size >= 9.995 => format!("{number:.1}"),
        _ if size >= 0.9995 => format!("{number:.2}"),
        0.0 => "0".to_owned(),
        _ if size >= 0.001 => format!("{number:.4}"),
        _ => format!("{number:.1e}"),
    }
}
