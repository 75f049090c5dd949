//! Charts as SVG text. Everything is coloured by class, so that one file suits light and dark pages; both have a
//! background of their own, so that a chart can be read where a page and its reader's settings disagree.

use core::fmt::Write as _;

/// The colours of bars are Okabe and Ito's (2008), which colour-blind people can tell apart, without black and yellow.
const STYLE: &str = "\
text { font: 13px sans-serif }
.title { font-size: 20px; font-weight: bold }
.name { font-size: 14px }
.head { font-size: 14px; font-weight: bold }
.value { font-size: 12px }
.note { font-size: 11px }
.end { text-anchor: end }
.middle { text-anchor: middle }
.ground { fill: #fafafa }
.ink { fill: #222222 }
.pale { fill: #5f5f5f }
.grid { stroke: #dedede }
.axis { stroke: #5f5f5f }
.whisker { stroke: #222222 }
.bar0 { fill: #56b4e9 }
.bar1 { fill: #e69f00 }
.bar2 { fill: #009e73 }
.bar3 { fill: #cc79a7 }
.bar4 { fill: #0072b2 }
.bar5 { fill: #d55e00 }
@media (prefers-color-scheme: dark) {
.ground { fill: #161b22 }
.ink { fill: #e6edf3 }
.pale { fill: #9da7b3 }
.grid { stroke: #30363d }
.axis { stroke: #9da7b3 }
.whisker { stroke: #e6edf3 }
}
";

/// Number of classes of bars, `bar0` and so on.
pub const BAR_CLASSES: usize = 6;

/// The colours of bars again, for lines, which no class has.
pub const LINE_COLOURS: [&str; BAR_CLASSES] =
    ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00"];

/// A drawing that grows downwards.
pub struct Drawing {
    width: f64,
    body: String,
}

impl Drawing {
    /// Begins an empty drawing of this width.
    #[must_use]
    pub fn new(width: f64) -> Self {
        Self { width, body: String::new() }
    }

    /// A filled rectangle: its upper left corner, and its size.
    pub fn rectangle(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A rectangle of a coloured line.
    pub fn outline(&mut self, colour: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let (x, y, width, height) = (x + 0.75, y + 0.75, (width - 1.5).max(0.1), (height - 1.5).max(0.1));
        let _ = writeln!(
            self.body,
            "<rect fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A line of this colour through all ends, with a dot on each. Dashed lines have hollow dots.
    pub fn polyline(&mut self, colour: &str, dashed: bool, ends: &[[f64; 2]]) {
        let path: Vec<String> = ends.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect();
        let dashes = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes} points=\"{}\"/>",
            path.join(" ")
        );
        for [x, y] in ends {
            let fill = if dashed { "none" } else { colour };
            let _ = writeln!(
                self.body,
                "<circle fill=\"{fill}\" stroke=\"{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>"
            );
        }
    }

    /// Horizontal lines from `left` to `right` at round numbers, which are on their left: 0 at the bottom, `max` at the top.
    pub fn heights(&mut self, left: f64, right: f64, [bottom, top]: [f64; 2], max: f64) {
        let step = round_step(max / 6.0);
        for number in (0..=7).map(|index| f64::from(index) * step).take_while(|number| *number <= max) {
            let y = bottom - (bottom - top) * number / max;
            self.line("grid", [left, y], [right, y]);
            self.text("ink end", [left - 8.0, y], &tick(number));
        }
        self.line("axis", [left, bottom], [right, bottom]);
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: [f64; 2], to: [f64; 2]) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from[0], from[1], to[0], to[1]
        );
    }

    /// Text that begins at a place, or ends there, or has its middle there, as the class says. `y` is the middle of the
    /// line.
    pub fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let text = escape(text);
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" dy=\"0.35em\">{text}</text>"
        );
    }

    /// Vertical lines from `top` to `bottom` at round numbers, the numbers below them, and below those what they count.
    pub fn axis(&mut self, scale: Scale, [top, bottom]: [f64; 2], caption: &str) {
        let step = round_step(scale.max / 8.0);
        for number in (0..=9).map(|index| f64::from(index) * step).take_while(|number| *number <= scale.max) {
            let x = scale.x(number);
            self.line("grid", [x, top], [x, bottom]);
            self.text("ink middle", [x, bottom + 12.0], &tick(number));
        }
        self.line("axis", [scale.left, bottom], [scale.left + scale.width, bottom]);
        self.text("pale middle", [scale.left + scale.width / 2.0, bottom + 32.0], caption);
    }

    /// The legend: a square of each class with its text, in one line.
    pub fn legend(&mut self, [mut x, y]: [f64; 2], entries: &[(String, String)]) {
        for (class, text) in entries {
            self.rectangle(class, [x, y - 6.5], [13.0, 13.0]);
            self.text("ink", [x + 19.0, y], text);
            // Nothing here knows the width of text: the widest common fonts take this much.
            x += 19.0 + 7.0 * text.len() as f64 + 24.0;
        }
    }

    /// Returns the whole file. The title is what a screen reader says.
    #[must_use]
    pub fn finish(self, height: f64, title: &str) -> String {
        let (width, body, title) = (self.width, self.body, escape(title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n\
             <rect class=\"ground\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n{body}</svg>\n"
        )
    }
}

/// Where numbers are drawn: 0 at the left, `max` at the right.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Where 0 is.
    pub left: f64,
    /// From 0 to `max`.
    pub width: f64,
    /// The number at the right.
    pub max: f64,
}

impl Scale {
    /// Returns where a number is.
    #[must_use]
    pub fn x(self, number: f64) -> f64 {
        self.left + self.width * number / self.max
    }
}

/// Returns the least of 1, 2 and 5 times a power of ten that is not below the number.
fn round_step(least: f64) -> f64 {
    let unit = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * unit).find(|step| *step >= least).unwrap_or(10.0 * unit)
}

/// Returns a round number without zeros at its end.
fn tick(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Replaces what has a meaning in SVG and HTML.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_a_few_round_numbers() {
        for (max, step) in [(8.0, 1.0), (8.1, 2.0), (910.0, 200.0), (1025.0, 200.0), (0.02, 0.005)] {
            assert!((round_step(max / 8.0) - step).abs() < 1e-9, "{max}");
        }
        assert_eq!((tick(0.005), tick(200.0), tick(0.0)), ("0.005".into(), "200".into(), "0".into()));
    }

    #[test]
    fn every_class_has_a_colour_on_dark_pages_or_keeps_it() {
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
        for class in ["ground", "ink", "pale", "grid", "axis", "whisker"] {
            assert!(
                light.contains(&format!(".{class} {{")) && dark.contains(&format!(".{class} {{")),
                "{class}"
            );
        }
        assert_eq!(light.matches("\n.bar").count(), BAR_CLASSES);
        for (number, colour) in LINE_COLOURS.iter().enumerate() {
            assert!(light.contains(&format!(".bar{number} {{ fill: {colour} }}")));
        }
    }
}
