//! Where each crate is drawn: a row a layer, and columns such that few arrows cross each other or run through a crate.

use std::collections::BTreeMap;

use super::crates::{Arrow, Crates};

/// Where the crates are: row (from below) and column.
pub(super) type Places<'a> = BTreeMap<&'a str, [usize; 2]>;

/// Returns the places of all crates, and the number of columns. Always the same ones: each row in turn takes its best order, until no
/// row gets better.
pub(super) fn places(crates: &Crates) -> (Places<'_>, usize) {
    let (layers, arrows) = (crates.layers(), crates.arrows());
    let columns = layers.iter().map(Vec::len).max().unwrap_or(1);
    let mut places = Places::new();
    for (row, layer) in layers.iter().enumerate() {
        // In the middle, to begin with.
        let first = (columns - layer.len()) / 2;
        places.extend(layer.iter().enumerate().map(|(at, &name)| (name, [row, first + at])));
    }
    let mut least = cost(&places, &arrows);
    loop {
        let before = least;
        for (row, layer) in layers.iter().enumerate() {
            let mut best = places.clone();
            each_order(layer.len(), columns, &mut Vec::new(), &mut |order| {
                let mut tried = places.clone();
                tried.extend(layer.iter().zip(order).map(|(&name, &column)| (name, [row, column])));
                let cost = cost(&tried, &arrows);
                if cost < least {
                    (least, best) = (cost, tried);
                }
            });
            places = best;
        }
        if least == before {
            return (places, columns);
        }
    }
}

/// Calls `each` with every choice of different columns for `count` crates.
fn each_order(count: usize, columns: usize, order: &mut Vec<usize>, each: &mut impl FnMut(&[usize])) {
    if order.len() == count {
        return each(order);
    }
    for column in 0..columns {
        if !order.contains(&column) {
            order.push(column);
            each_order(count, columns, order, each);
            order.pop();
        }
    }
}

/// Returns how hard the picture is to read: arrows through crates weigh most, then arrows that cross, then their length.
fn cost(places: &Places<'_>, arrows: &[Arrow<'_>]) -> usize {
    let ends = |arrow: &Arrow<'_>| [places[arrow.from], places[arrow.to]];
    let mut cost = 0;
    for (at, arrow) in arrows.iter().enumerate() {
        let one = ends(arrow);
        cost += one[0][1].abs_diff(one[1][1]);
        cost += 1000 * places.values().filter(|&&place| runs_through(one, place)).count();
        cost += 20 * arrows[..at].iter().filter(|other| cross(one, ends(other))).count();
    }
    cost
}

/// Returns the column of a line in a row, in units of a column.
fn column_in([from, to]: [[usize; 2]; 2], row: usize) -> f64 {
    let down = (from[0] - row) as f64 / (from[0] - to[0]) as f64;
    from[1] as f64 + down * (to[1] as f64 - from[1] as f64)
}

/// Returns whether a line from a row above to one below comes close to a crate between.
fn runs_through(line: [[usize; 2]; 2], [row, column]: [usize; 2]) -> bool {
    let [from, to] = line;
    from[0] > row && row > to[0] && (column_in(line, row) - column as f64).abs() < 0.7
}

/// Returns whether two lines cross between their ends.
fn cross(one: [[usize; 2]; 2], other: [[usize; 2]; 2]) -> bool {
    let (top, bottom) = (one[0][0].min(other[0][0]), one[1][0].max(other[1][0]));
    if top <= bottom {
        return false;
    }
    let side = |row| column_in(one, row) - column_in(other, row);
    side(top) * side(bottom) < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_around_crates_and_do_not_cross_without_need() {
        let crates = Crates::of(&[
            ("a", &[]),
            ("b", &[]),
            ("c", &[]),
            ("over-c", &["c"]),
            ("top", &["over-c", "a", "b"]),
        ]);
        let (places, columns) = places(&crates);
        let arrows = crates.arrows();
        assert_eq!((columns, places.len(), arrows.len()), (3, 5, 4));
        assert!(cost(&places, &arrows) < 20, "{places:?}");
    }

    #[test]
    fn crossings_are_found() {
        assert!(cross([[1, 0], [0, 1]], [[1, 1], [0, 0]]));
        assert!(!cross([[1, 0], [0, 0]], [[1, 1], [0, 0]]));
        assert!(!cross([[2, 0], [1, 0]], [[1, 1], [0, 0]]));
        assert!(runs_through([[2, 1], [0, 1]], [1, 1]));
        assert!(!runs_through([[2, 1], [0, 1]], [1, 2]));
        assert!(!runs_through([[2, 1], [0, 1]], [0, 1]));
    }
}
