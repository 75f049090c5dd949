//! The chart of eight bars that sums the benchmarks up: Fibula's engines, those from papers, and other libraries.

use core::fmt::Write as _;

use super::chart::number;
use super::document::grouped;
use super::peers;
use super::record::Record;
use super::row::Row;
use super::sources::STALE;
use fibula_workload::drawing::{Drawing, Scale};

/// One bar: of these rows the one with the greatest rate.
struct ChartBar {
    caption: &'static str,
    rows: fn(&Row) -> bool,
}

const IPV4: [ChartBar; 4] = [
    // Whichever of our own is the fastest.
    ChartBar { caption: "", rows: Row::is_ours },
    ChartBar { caption: "DIR-24-8", rows: |row| row.engine == "dir-24-8" },
    ChartBar { caption: "Poptrie", rows: |row| row.engine == "poptrie" },
    ChartBar { caption: "DPDK rte_fib", rows: |row| row.engine.starts_with("rte-fib-") },
];

const IPV6: [ChartBar; 4] = [
    ChartBar { caption: "", rows: Row::is_ours },
    ChartBar { caption: "PlanB", rows: |row| peers::is_planb(&row.engine) },
    ChartBar { caption: "DPDK rte_fib6", rows: |row| row.engine.starts_with("rte-fib6-") },
    // Whichever is the fastest of those in Rust, Go and Python.
    ChartBar { caption: "", rows: |row| row.rival && !peers::is_peer(&row.engine) },
];

const TRAFFIC: &str = "match";

/// The meanings of the colours.
const LEGEND: [(&str, &str); 3] = [
    ("bar2", "Fibula's own"),
    ("bar0", "published by others, implemented here"),
    ("bar1", "other libraries"),
];

const WIDTH: f64 = 760.0;
const NAMES: f64 = 150.0;
const RIGHT: f64 = 175.0;
const HEAD: f64 = 92.0;
const FOOT: f64 = 50.0;
const BAR: f64 = 26.0;
const FILL: f64 = 18.0;
/// For the name of a family, above its bars.
const HEADING: f64 = 28.0;

/// Draws the summary. Returns `None` if the records lack one of the bars.
pub(super) fn svg(records: &[Record]) -> Option<String> {
    let [ipv4, ipv6] = [groups(records, "ipv4", &IPV4), groups(records, "ipv6", &IPV6)];
    // Both of one machine: the first of those with the fewest bars of code that has changed since.
    let pairs = ipv4.into_iter().filter_map(|one| {
        let name = one.record.machine.name();
        let other = ipv6.iter().find(|other| other.record.machine.name() == name)?;
        Some((one, other.clone()))
    });
    let (FamilyBars { record, bars: ipv4 }, FamilyBars { bars: ipv6, .. }) =
        pairs.min_by_key(|(one, other)| one.stale() + other.stale())?;
    let cpu = record.machine.name();
    let max = ipv4.iter().chain(&ipv6).map(|(_, row)| rate(row)).fold(0.0, f64::max);
    let groups = [("IPv4", ipv4), ("IPv6", ipv6)];
    let scale = Scale { left: NAMES, width: WIDTH - NAMES - RIGHT, max };

    let title = "Million lookups a second on one core";
    let subtitle = format!(
        "full tables, random addresses that match (MATCH); {cpu}; each at its fastest batch and instruction set"
    );
    let mut caption = "million lookups a second, median".to_owned();
    if groups.iter().flat_map(|(_, bars)| bars).any(|(name, _)| name.ends_with(STALE)) {
        caption.push_str(&format!("; {STALE}: measured before its code changed"));
    }
    let mut drawing = Drawing::new(WIDTH);
    drawing.text("title ink", [24.0, 24.0], title);
    drawing.text("pale", [24.0, 48.0], &subtitle);
    drawing.legend([NAMES, 74.0], &LEGEND.map(|(class, text)| (class.to_owned(), text.to_owned())));
    let bottom = HEAD + groups.iter().map(|(_, rows)| HEADING + BAR * rows.len() as f64).sum::<f64>() + 8.0;
    drawing.axis(scale, [HEAD, bottom], &caption);
    let mut said = format!("{title}: {subtitle}.");
    let mut y = HEAD;
    for (family, rows) in &groups {
        drawing.text("head ink", [24.0, y + HEADING / 2.0 + 4.0], family);
        let size = format!("{} prefixes", grouped(rows[0].1.routes));
        drawing.text("note pale", [NAMES, y + HEADING / 2.0 + 4.0], &size);
        y += HEADING;
        let _ = write!(said, " {family}:");
        for (name, row) in rows {
            draw_bar(&mut drawing, scale, name, row, y + BAR / 2.0);
            let _ = write!(said, " {name} {},", number(rate(row)));
            y += BAR;
        }
    }
    Some(drawing.finish(bottom + FOOT, said.trim_end_matches(',')))
}

/// The bars of a family, the fastest first. Names are marked where the code of the engine has changed since.
#[derive(Clone)]
struct FamilyBars<'a> {
    record: &'a Record,
    bars: Vec<(String, &'a Row)>,
}

impl FamilyBars<'_> {
    fn stale(&self) -> usize {
        self.bars.iter().filter(|(name, _)| name.ends_with(STALE)).count()
    }
}

fn rate(row: &Row) -> f64 {
    row.mlps_median.unwrap_or(0.0)
}

/// Returns the bars of each record that has a row for every one of them, and the table of the first such record.
fn groups<'a>(records: &'a [Record], family: &str, bars: &[ChartBar]) -> Vec<FamilyBars<'a>> {
    let counts = |row: &&Row| {
        row.family == family
            && row.traffic == TRAFFIC
            && row.threads == 1
            && row.order == "host"
            && !row.many_keys
            && row.role != "oracle"
            && row.wrong == 0
            && row.mlps_median.is_some()
    };
    let of = |record: &'a Record| {
        let best = |bar: &ChartBar| {
            let rows = record.rows.iter().filter(counts).filter(|row| (bar.rows)(row));
            let row = rows.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
            let name = if bar.caption.is_empty() { &*row.engine } else { bar.caption };
            let is_stale = !row.rival && record.is_stale(&row.engine);
            Some((if is_stale { format!("{name} {STALE}") } else { name.to_owned() }, row))
        };
        let mut bars = bars.iter().map(best).collect::<Option<Vec<_>>>()?;
        bars.sort_by(|(_, a), (_, b)| rate(b).total_cmp(&rate(a)));
        Some(FamilyBars { record, bars })
    };
    let mut groups: Vec<FamilyBars<'a>> = records.iter().filter_map(of).collect();
    let table = groups.first().map(|group| &group.record.table.name);
    groups.retain(|group| Some(&group.record.table.name) == table);
    groups
}

fn draw_bar(drawing: &mut Drawing, scale: Scale, name: &str, row: &Row, y: f64) {
    let rate = rate(row);
    let class = match row {
        _ if row.rival => LEGEND[2].0,
        _ if row.is_ours() => LEGEND[0].0,
        _ => LEGEND[1].0,
    };
    drawing.text("name ink end", [NAMES - 10.0, y], name);
    drawing.rectangle(class, [NAMES, y - FILL / 2.0], [scale.x(rate) - NAMES, FILL]);
    let bytes = row.bytes_per_prefix.map_or(String::new(), |bytes| format!(", {bytes:.1} bytes a prefix"));
    drawing.text("value ink", [scale.x(rate) + 7.0, y], &format!("{}{bytes}", number(rate)));
}
