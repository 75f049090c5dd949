//! The definition of a paper. Its file has the names of the fields here, in lower case with hyphens.

use serde::{Deserialize, Deserializer};

use super::values::Values;

/// A paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The name, in lower case with hyphens: that of its folder.
    #[serde(skip)]
    pub name: String,
    /// Its title.
    pub title: String,
    /// Authors, where it was published, and when.
    pub citation: String,
    /// Its proposal, in a sentence or two.
    pub summary: String,
    /// Its tables and figures, in order.
    pub exhibits: Vec<Exhibit>,
}

/// A table or figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exhibit {
    /// The name, in lower case with hyphens, such as `table-1`.
    pub name: String,
    /// The title: the paper's name for it, and its subject.
    pub title: String,
    /// Its contents and how it is measured here, in a few sentences.
    pub about: String,
    /// The name of its rows, such as `threads`.
    pub rows: String,
    /// Its columns, or the lines of a figure. The file has those of the same unit together.
    #[serde(deserialize_with = "columns")]
    pub columns: Vec<ExhibitColumn>,
    /// The published values. The file has rows with the values of the columns that are named, of which a row may lack the last.
    #[serde(default, deserialize_with = "published")]
    pub published: Vec<Published>,
    /// The machine and the tables of the published values.
    #[serde(default)]
    pub setting: String,
    /// The differences from the paper.
    #[serde(default)]
    pub differs: String,
    /// Its measurements.
    pub parts: Vec<ExhibitPart>,
    /// The column that all others are divided by, row by row.
    pub against: Option<String>,
    /// How it is drawn.
    #[serde(default)]
    pub chart: Chart,
    /// The paper's conclusions from it.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// The findings of the committed records that differ from the paper, and why: each in a few sentences. Their figures come from
    /// the record: `[=0]` is what the first of the claims found, and `[=ROW|COLUMN]` a value. `verdict::findings` fills them in.
    #[serde(default)]
    pub findings: Vec<String>,
}

impl Exhibit {
    /// Returns the paper's name for it: the title before its colon.
    #[must_use]
    pub fn called(&self) -> &str {
        self.title.split_once(':').map_or(&self.title, |(name, _)| name)
    }

    /// Returns the published value of a row and column, if there is one.
    #[must_use]
    pub fn published_at(&self, row: &str, column: &str) -> Option<f64> {
        let found = self.published.iter().find(|value| value.row == row && value.column == column);
        found.map(|value| value.value)
    }
}

/// A column of an exhibit.
#[derive(Debug, Clone)]
pub struct ExhibitColumn {
    /// The name, which points have.
    pub name: String,
    /// The unit of its values; empty for counts.
    pub unit: String,
}

/// A published value.
#[derive(Debug, Clone)]
pub struct Published {
    /// The row.
    pub row: String,
    /// The column.
    pub column: String,
    /// The value, in the column's unit.
    pub value: f64,
}

/// How an exhibit is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chart {
    /// Not at all.
    #[default]
    None,
    /// A bar for each row and column.
    Bars,
    /// A line for each column, over the rows.
    Lines,
}

/// A part of an exhibit, which is measured as one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExhibitPart {
    /// The name, in lower case with hyphens. No two parts of an exhibit have the same.
    pub name: String,
    /// The measurement.
    pub work: Work,
}

/// A measurement.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Rates of lookups in an IPv4 table.
    Ipv4(RatesPart),
    /// Rates of lookups in an IPv6 table.
    Ipv6(RatesPart),
    /// Values that a function computes or measures.
    Values(Values),
}

/// The beginning of the name of recorded traffic, before the name of the list of addresses: `recorded:clients`. The
/// rows of the benchmark call it `recorded`.
pub const RECORDED: &str = "recorded:";

/// Rates of lookups: every contestant with all traffics, batches and numbers of threads.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatesPart {
    /// The table.
    pub table: PaperTable,
    /// The engines: registry entries by name, with all their kernels.
    pub contestants: Vec<String>,
    /// Names of traffic patterns, and [`RECORDED`] with the names of lists of addresses.
    pub traffic: Vec<String>,
    /// Keys a call.
    pub batches: Vec<usize>,
    /// Numbers of threads. Those that the machine has no cores for are missing.
    pub threads: Vec<usize>,
    /// The property that names rows.
    pub rows: Dimension,
    /// The property that names columns.
    pub columns: Dimension,
}

/// A property that tells the points of a measurement apart. Of points with the same row and column, the one with the
/// greatest rate counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dimension {
    /// The engine.
    Engine,
    /// The engine, without the last parameter of its name: `bloomfwd:h2+h2` of `bloomfwd:h2+h2:30`.
    EngineKind,
    /// The last parameter of the engine's name: `30` of `bloomfwd:h2+h2:30`.
    Parameter,
    /// The table.
    Table,
    /// The traffic.
    Traffic,
    /// Threads.
    Threads,
    /// Keys of the traffic: the usual number, and the larger one of [`Settings::many_keys`](super::Settings::many_keys).
    Keys,
    /// The engine and the traffic, as `dxr-18, rnd`.
    EngineAndTraffic,
}

/// A routing table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperTable {
    /// The name of a real table, which takes part where there is a folder with it.
    pub real: Option<String>,
    /// The generated table used when the real one is absent: a name of `fibula-lab rates --synth`.
    pub made: String,
}

/// The published figure of a conclusion that the paper does not draw.
pub const OURS: &str = "not in the paper";

/// A conclusion of the paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The paper's conclusion.
    pub text: String,
    /// Its figure, as published; [`OURS`] where the conclusion is this project's own.
    pub published: String,
    /// How it is judged here.
    pub judge: Judge,
}

/// A row and a column. A row of `*` means every row that has a value.
pub type At = (String, String);

/// How a claim is judged.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Judge {
    /// By the ratio of two values.
    Ratio {
        /// The value that is divided.
        of: At,
        /// The value that it is divided by.
        over: At,
        /// Where the ratio lies if the claim is reproduced.
        is: Expected,
    },
    /// By a value.
    Value {
        /// The value.
        of: At,
        /// Where it lies if the claim is reproduced.
        is: Expected,
    },
    /// Not at all, because the value could not be another one here: a table was generated with it, or arithmetic gives it.
    Construction {
        /// The value.
        of: At,
        /// Why it could not be another one.
        why: String,
    },
    /// Not at all: nothing that it rests on is measured.
    Missing(String),
}

/// Where a value lies if a claim is reproduced.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Expected {
    /// Near the paper's figures: from [`TOLERANCE`] below its least figure to as much above its greatest one.
    Near([f64; 2]),
    /// Between two ends that read a word of the paper, such as "almost identical".
    Within([f64; 2]),
    /// Above this, however far: the paper says so in this word.
    Above(f64, String),
    /// Below this, however far: the paper says so in this word.
    Below(f64, String),
}

/// How far from the published figures a value still reproduces them, as a share of these.
pub const TOLERANCE: f64 = 0.1;

impl Expected {
    /// Returns the least and the greatest value that reproduce the claim.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        match *self {
            Self::Near([least, most]) => (least * (1.0 - TOLERANCE), most * (1.0 + TOLERANCE)),
            Self::Within([least, most]) => (least, most),
            Self::Above(least, _) => (least, f64::INFINITY),
            Self::Below(most, _) => (f64::NEG_INFINITY, most),
        }
    }
}

fn columns<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<ExhibitColumn>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Group {
        #[serde(default)]
        unit: String,
        names: Vec<String>,
    }
    let groups = Vec::<Group>::deserialize(file)?.into_iter();
    let columns = |Group { unit, names }| {
        names.into_iter().map(move |name| ExhibitColumn { name, unit: unit.clone() }).collect::<Vec<_>>()
    };
    Ok(groups.flat_map(columns).collect())
}

fn published<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<Published>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Block {
        columns: Vec<String>,
        rows: Vec<(String, Vec<f64>)>,
    }
    let mut all = Vec::new();
    for Block { columns, rows } in Vec::<Block>::deserialize(file)? {
        for (row, values) in rows {
            if values.len() > columns.len() {
                let (values, columns) = (values.len(), columns.len());
                let reason = format!("row '{row}' has {values} values for {columns} columns");
                return Err(serde::de::Error::custom(reason));
            }
            let value = |(column, value): (&String, f64)| Published {
                row: row.clone(),
                column: column.clone(),
                value,
            };
            all.extend(columns.iter().zip(values).map(value));
        }
    }
    Ok(all)
}
