//! Pages of HTML that need no other file: style, charts and tables are within them.

use core::fmt::Write as _;

use crate::drawing::{BAR_CLASSES, Drawing, Scale, escape};

/// Everything that the page looks like. It follows the reader's light or dark setting, and tables that are too wide scroll.
const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #fff; --ink: #222; --pale: #5f5f5f; --line: #d8d8d8; --soft: #f4f4f4;
  --good: #00684c; --bad: #a83c00; --open: #6b5500 }
@media (prefers-color-scheme: dark) { :root { --ground: #0d1117; --ink: #e6edf3; --pale: #9da7b3; --line: #30363d;
  --soft: #161b22; --good: #4cc79f; --bad: #ff9a6b; --open: #e0c050 } }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 62rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 1rem 0 0.25rem }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem; border-top: 1px solid var(--line); padding-top: 1.25rem }
h3 { font-size: 1rem; margin: 1.25rem 0 0.25rem }
p, ul { max-width: 46rem } .aside { color: var(--pale) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: 0.875rem; margin: 0.5rem 0 }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top;
  font-variant-numeric: tabular-nums }
th { background: var(--soft); font-weight: 600 } th:first-child, td:first-child, td.words, th.words { text-align: left }
td small { display: block; color: var(--pale) } td.words { min-width: 14rem }
.holds { color: var(--good); font-weight: 600 } .fails { color: var(--bad); font-weight: 600 }
.open { color: var(--open); font-weight: 600 } .remark { background: var(--soft); padding: 0.6rem 0.9rem; border-radius: 6px }
svg { max-width: 100%; height: auto; min-width: 34rem } nav a { margin-right: 0.9rem; white-space: nowrap }
a { color: inherit }
";

/// What ends a page.
pub const END: &str = "</body>\n</html>\n";

/// Begins a page: its title, and its heading.
#[must_use]
pub fn start(title: &str, heading: &str) -> String {
    let (title, heading) = (escape(title), escape(heading));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n"
    )
}

/// A page that grows downwards. Text may have any characters.
#[derive(Debug, Clone)]
pub struct Page(String);

impl Page {
    /// Begins a page with a heading.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self(start(title, title))
    }

    /// Begins a section.
    pub fn section(&mut self, heading: &str) {
        let _ = writeln!(self.0, "<h2>{}</h2>", escape(heading));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p>{}</p>", escape(text));
    }

    /// Adds a paragraph that stands out, such as a warning.
    pub fn remark(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p class=\"remark\">{}</p>", escape(text));
    }

    /// Adds a paragraph that says how the others came about.
    pub fn aside(&mut self, text: &str) {
        let _ = writeln!(self.0, "<p class=\"aside\">{}</p>", escape(text));
    }

    /// Adds a chart, as SVG; a narrow screen scrolls it.
    pub fn chart(&mut self, svg: &str) {
        let _ = writeln!(self.0, "<div class=\"wide\">{svg}</div>");
    }

    /// Adds a table; a narrow screen scrolls it. The first column has names, the others numbers.
    pub fn table(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        self.0.push_str("<div class=\"wide\"><table>\n<tr>");
        for name in head {
            let _ = write!(self.0, "<th>{}</th>", escape(name));
        }
        self.0.push_str("</tr>\n");
        for row in rows {
            self.0.push_str("<tr>");
            for cell in row {
                let _ = write!(self.0, "<td>{}</td>", escape(&cell));
            }
            self.0.push_str("</tr>\n");
        }
        self.0.push_str("</table></div>\n");
    }

    /// Returns the whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.0.push_str(END);
        self.0
    }
}

/// A bar for each part of a row, on top of each other: the first part is the whole, others are within it.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What is on its left.
    pub name: String,
    /// The whole, and its parts.
    pub values: Vec<f64>,
    /// What is on its right.
    pub text: String,
}

/// Draws horizontal bars with a legend of their parts; `None` if all are 0.
#[must_use]
pub fn bars(title: &str, parts: &[&str], bars: &[Bar]) -> Option<String> {
    const WIDTH: f64 = 720.0;
    const TOP: f64 = 40.0;
    const STEP: f64 = 20.0;
    let max = bars.iter().flat_map(|bar| &bar.values).copied().fold(0.0, f64::max);
    if max <= 0.0 {
        return None;
    }
    // As wide as the longest texts at the sizes of their classes: no font is at hand to measure them by.
    let longest =
        |text: fn(&Bar) -> &str| bars.iter().map(|bar| text(bar).chars().count()).max().unwrap_or(0);
    let names = (longest(|bar| &bar.name) as f64 * 8.2 + 20.0).max(70.0);
    let right = longest(|bar| &bar.text) as f64 * 7.0 + 14.0;
    let mut drawing = Drawing::new(WIDTH);
    let class = |part: usize| format!("bar{}", part % BAR_CLASSES);
    let entries: Vec<_> =
        parts.iter().enumerate().map(|(at, part)| (class(at), (*part).to_owned())).collect();
    drawing.legend([names, 20.0], &entries);
    let scale = Scale { left: names, width: WIDTH - names - right, max };
    let bottom = TOP + STEP * bars.len() as f64 + 6.0;
    drawing.axis(scale, [TOP, bottom], "");
    for (at, bar) in bars.iter().enumerate() {
        let y = TOP + STEP * (at as f64 + 0.5) + 3.0;
        drawing.text("name ink end", [names - 10.0, y], &bar.name);
        for (part, &value) in bar.values.iter().enumerate() {
            // Parts are thinner, so that the whole is seen around them. The smallest can still be seen.
            let height = if part == 0 { STEP - 5.0 } else { STEP - 11.0 };
            let width = if value > 0.0 { (scale.x(value) - names).max(1.0) } else { 0.0 };
            drawing.rectangle(&class(part), [names, y - height / 2.0], [width, height]);
        }
        let whole = bar.values.first().copied().unwrap_or(0.0);
        drawing.text("value ink", [scale.x(whole) + 6.0, y], &bar.text);
    }
    Some(drawing.finish(bottom + 30.0, title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_no_meaning_in_html() {
        let mut page = Page::new("a <b> & c");
        page.text("<script>");
        page.table(&["<i>"], [vec!["<u>".to_owned()]]);
        let page = page.finish();
        for tag in ["<b>", "<script>", "<i>", "<u>"] {
            assert!(!page.contains(tag), "{tag}");
        }
        assert!(page.contains("<title>a &lt;b&gt; &amp; c</title>") && page.ends_with(END));
    }

    #[test]
    fn bars_have_names_and_numbers() {
        let bar = |name: &str, value: f64| Bar {
            name: name.to_owned(),
            values: vec![value, value / 2.0],
            text: value.to_string(),
        };
        let svg = bars("t", &["all", "half"], &[bar("/8", 3.0), bar("/24", 900.0)]).unwrap();
        for text in ["/8", "/24", ">900<", ">half<"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(bars("t", &["all"], &[]).is_none());
    }
}
