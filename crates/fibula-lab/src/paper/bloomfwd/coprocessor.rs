//! Figures that take a coprocessor. They keep their place.

use super::super::definition::{Chart, Claim, Column, Exhibit, Judge, Part, Work};
use super::MLPS;

const NO_COPROCESSOR: &str = "takes a coprocessor, which the project does not use yet";

pub(super) const FIGURE_9: Exhibit = Exhibit {
    name: "figure-9",
    title: "Fig. 9: buffer sizes of asynchronous transfers",
    about: "The paper fills one buffer while the other is looked up on the coprocessor, and chooses 2M addresses for their latency \
            over 4M, the best for speed.",
    rows: "addresses a buffer",
    columns: &[Column { name: "asynchronous", unit: MLPS }],
    published: &[],
    setting: "",
    differs: "",
    parts: &[Part {
        name: "coprocessor",
        work: Work::Missing { rows: &["1M", "2M", "4M", "8M"], why: NO_COPROCESSOR },
    }],
    against: None,
    chart: Chart::None,
    claims: &[],
};

pub(super) const FIGURE_10: Exhibit = Exhibit {
    name: "figure-10",
    title: "Fig. 10: processor and coprocessor together",
    about: "The share of addresses that the coprocessor takes; 80 % is the best in the paper.",
    rows: "share of the coprocessor",
    columns: &[Column { name: "both", unit: MLPS }],
    published: &[],
    setting: "",
    differs: "",
    parts: &[Part {
        name: "coprocessor",
        work: Work::Missing { rows: &["70 %", "80 %", "90 %", "100 %"], why: NO_COPROCESSOR },
    }],
    against: None,
    chart: Chart::None,
    claims: &[Claim {
        text: "both together are faster than the coprocessor alone",
        published: "1.18, and 1.33 with asynchronous transfers",
        judge: Judge::Missing(NO_COPROCESSOR),
    }],
};
