//! The picture as SVG. It is coloured by class, so that one file suits light and dark pages, and has a ground of its own.

use std::fmt::Write as _;

use super::crates::Crates;
use super::places::places;

const STYLE: &str = "\
text { font: 14px sans-serif; text-anchor: middle; fill: #222222 }
.ground { fill: #fafafa }
.crate { fill: #e8f1f8; stroke: #0072b2 }
.needs { stroke: #5f5f5f; stroke-width: 1.5 }
.optional { stroke-dasharray: 5 4 }
.head { fill: #5f5f5f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #161b22 }
.crate { fill: #1b2a3a; stroke: #56b4e9 }
.needs { stroke: #9da7b3 }
.head { fill: #9da7b3 }
}
";

/// Sizes: a box, and from one to the next.
const BOX: [usize; 2] = [176, 36];
const STEP: [usize; 2] = [196, 84];
const MARGIN: usize = 20;

pub(super) fn svg(crates: &Crates) -> String {
    let (places, columns) = places(crates);
    let rows = places.values().map(|&[row, _]| row + 1).max().unwrap_or(0);
    let corner = |[row, column]: [usize; 2]| [MARGIN + column * STEP[0], MARGIN + (rows - 1 - row) * STEP[1]];
    let width = 2 * MARGIN + (columns - 1) * STEP[0] + BOX[0];
    let height = 2 * MARGIN + (rows - 1) * STEP[1] + BOX[1];
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <title>The crates of the workspace, each with arrows to the crates that it depends on</title>\n\
         <style>\n{STYLE}</style>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
         <path class=\"head\" d=\"M0 0 8 4 0 8z\"/></marker></defs>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n"
    );
    for arrow in crates.arrows() {
        let ([x1, y1], [x2, y2]) = (corner(places[arrow.from]), corner(places[arrow.to]));
        let (x1, y1, x2) = (x1 + BOX[0] / 2, y1 + BOX[1], x2 + BOX[0] / 2);
        let class = if arrow.optional { "needs optional" } else { "needs" };
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" marker-end=\"url(#head)\"/>"
        );
    }
    for (name, &place) in &places {
        let [x, y] = corner(place);
        let [width, height] = BOX;
        let (middle, line) = (x + width / 2, y + height / 2 + 5);
        let _ = writeln!(
            svg,
            "<rect class=\"crate\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\"/>\n\
             <text x=\"{middle}\" y=\"{line}\">{name}</text>"
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_and_arrow_is_drawn() {
        let svg = svg(&Crates::of(&[("a", &[]), ("b", &["a"]), ("c", &["a"])]));
        assert_eq!(svg.matches("<text").count(), 3);
        assert_eq!(svg.matches("<line class=\"needs\"").count(), 2);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
