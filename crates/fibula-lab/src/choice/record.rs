//! The record of one machine, as text.
//!
//! ```text
//! machine l2_bytes 1048576                     the least of all calibrations, a line for each figure
//! calibration 0 l2_bytes 1048576               each calibration by itself, as a command has one
//! table ipv4-100-25 ipv4 fit 100 0 0 25 177    name, family, fit or held, routes, of them host routes and with wide next
//!                                              hops, different next hops, ranges
//! engine range-btree 992                    lookup bytes, or `refused`
//! rates avx2 range-btree 188.0 302.1 ...       M lookups/s by batch
//! ```

use core::fmt::{self, Write as _};
use core::str::FromStr;

use fibula::auto::{Machine, MeasuredRates, TableKind};
use fibula::net::Family;
use fibula::simd::Isa;
use fibula_workload::table::TableSpec;

use super::BATCHES;

/// The measurements on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineRecord {
    /// The least of its calibrations.
    pub machine: Machine,
    /// Calibrations of different moments. A command has one of them.
    pub calibrations: Vec<Machine>,
    /// The tables, in the order they were measured.
    pub tables: Vec<MeasuredTable>,
}

/// The measurements of one table.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredTable {
    /// The name.
    pub name: String,
    /// The family.
    pub family: Family,
    /// Whether it is left out of the fit.
    pub is_held_out: bool,
    /// Number of routes.
    pub routes: usize,
    /// Number of host routes among them, as [`fibula::auto`] counts them.
    pub host_routes: usize,
    /// Number of routes with a wide next hop, as [`fibula::auto`] counts them.
    pub wide_routes: usize,
    /// Number of different next hops, as [`fibula::auto`] counts them.
    pub next_hops: usize,
    /// Number of disjoint ranges, equal neighbours merged.
    pub ranges: usize,
    /// All engines that were built or refused the table.
    pub structures: Vec<MeasuredEngine>,
    /// Their rates.
    pub rates: Vec<EngineRates>,
}

/// An engine over a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredEngine {
    /// The name.
    pub engine: String,
    /// The lookup bytes; `None` if it refused the table.
    pub lookup_bytes: Option<usize>,
}

/// The rates of an engine with one instruction set.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineRates {
    /// The set.
    pub isa: Isa,
    /// The engine.
    pub engine: String,
    /// Million lookups a second, geometric mean of MATCH and ZIPF, by batch.
    pub mlps: [f64; BATCHES.len()],
}

impl MachineRecord {
    /// Returns the rates of engines over the tables that a [calibration](fibula_workload::calibrate) measures.
    #[must_use]
    pub fn calibrated(&self) -> Vec<MeasuredRates<'_>> {
        let TableSpec { routes, next_hops, .. } = fibula_workload::TABLE;
        let is_calibrated = |table: &&MeasuredTable| {
            table.name == format!("{}-{routes}-{next_hops}", table.family.name()) && !table.is_held_out
        };
        self.tables.iter().filter(is_calibrated).flat_map(MeasuredTable::measured).collect()
    }
}

impl MeasuredTable {
    /// Returns the kind of the table.
    #[must_use]
    pub fn kind(&self) -> TableKind {
        TableKind::of(self.routes, self.host_routes, self.wide_routes, self.next_hops)
    }

    /// Returns the rates of an engine with the largest set within this one, which lookups use.
    #[must_use]
    pub fn rates_within(&self, engine: &str, isa: Isa) -> Option<&EngineRates> {
        let of_it = self.rates.iter().filter(|rates| rates.engine == engine);
        of_it.filter(|rates| rates.isa.is_within(isa)).max_by_key(|rates| rates.isa)
    }

    /// Returns the rates as the library takes them.
    fn measured(&self) -> impl Iterator<Item = MeasuredRates<'_>> {
        self.rates.iter().filter_map(|EngineRates { isa, engine, mlps }| {
            let &Self { family, ranges, .. } = self;
            let bytes = self.lookup_bytes(engine)?;
            Some(MeasuredRates { family, engine, isa: *isa, ranges, bytes, mlps: *mlps })
        })
    }

    /// Returns the lookup bytes of an engine, unless it refused the table.
    #[must_use]
    pub fn lookup_bytes(&self, engine: &str) -> Option<usize> {
        self.structures.iter().find(|structure| structure.engine == engine)?.lookup_bytes
    }
}

impl fmt::Display for MachineRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# Written by `fibula-lab measure choices`.\n")?;
        for line in self.machine.to_string().lines() {
            writeln!(f, "machine {line}")?;
        }
        for (number, machine) in self.calibrations.iter().enumerate() {
            machine.to_string().lines().try_for_each(|line| writeln!(f, "calibration {number} {line}"))?;
        }
        for table in &self.tables {
            let MeasuredTable { name, routes, host_routes, wide_routes, next_hops, ranges, .. } = table;
            let (family, part) = (table.family.name(), if table.is_held_out { "held" } else { "fit" });
            let counts = format_args!("{routes} {host_routes} {wide_routes} {next_hops} {ranges}");
            writeln!(f, "table {name} {family} {part} {counts}")?;
            for MeasuredEngine { engine, lookup_bytes } in &table.structures {
                let bytes = lookup_bytes.map_or("refused".to_owned(), |bytes| bytes.to_string());
                writeln!(f, "engine {engine} {bytes}")?;
            }
            for EngineRates { isa, engine, mlps } in &table.rates {
                let mut row = String::new();
                mlps.iter().try_for_each(|mlps| write!(row, " {mlps:.1}"))?;
                writeln!(f, "rates {isa} {engine}{row}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for MachineRecord {
    type Err = ChoiceRecordError;

    fn from_str(text: &str) -> Result<Self, ChoiceRecordError> {
        let machine = machine(text, "machine ").ok_or(ChoiceRecordError { line: 0 })?;
        let calibrations = (0..).map_while(|number| calibration(text, number)).collect();
        let mut recorded = Self { machine, calibrations, tables: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            recorded.read(line).ok_or(ChoiceRecordError { line: at + 1 })?;
        }
        Ok(recorded)
    }
}

/// Returns the machine of the lines with this prefix.
fn machine(text: &str, prefix: &str) -> Option<Machine> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    lines.fold(String::new(), |all, line| all + line + "\n").parse().ok()
}

fn calibration(text: &str, number: usize) -> Option<Machine> {
    machine(text, &format!("calibration {number} "))
}

impl MachineRecord {
    fn read(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields[..] {
            ["table", name, family, part, routes, host_routes, wide_routes, next_hops, ranges] => {
                self.tables.push(MeasuredTable {
                    name: name.to_owned(),
                    family: match family {
                        "ipv4" => Family::Ipv4,
                        "ipv6" => Family::Ipv6,
                        _ => return None,
                    },
                    is_held_out: part == "held",
                    routes: routes.parse().ok()?,
                    host_routes: host_routes.parse().ok()?,
                    wide_routes: wide_routes.parse().ok()?,
                    next_hops: next_hops.parse().ok()?,
                    ranges: ranges.parse().ok()?,
                    structures: Vec::new(),
                    rates: Vec::new(),
                });
            }
            ["engine", engine, bytes] => {
                let lookup_bytes = if bytes == "refused" { None } else { Some(bytes.parse().ok()?) };
                let structure = MeasuredEngine { engine: engine.to_owned(), lookup_bytes };
                self.tables.last_mut()?.structures.push(structure);
            }
            ["rates", isa, engine, ref mlps @ ..] => {
                let mlps: Vec<f64> = mlps.iter().filter_map(|mlps| mlps.parse().ok()).collect();
                let rates = EngineRates {
                    isa: isa.parse().ok()?,
                    engine: engine.to_owned(),
                    mlps: mlps.try_into().ok()?,
                };
                self.tables.last_mut()?.rates.push(rates);
            }
            ["machine", ..] => {}
            ["calibration", number, ..] => {
                return self.calibrations.get(number.parse::<usize>().ok()?).map(|_| ());
            }
            _ if line.starts_with('#') || line.is_empty() => {}
            _ => return None,
        }
        Some(())
    }
}

/// The error for text that is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChoiceRecordError {
    line: usize,
}

impl fmt::Display for ChoiceRecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str("the record has no calibration: measure it again"),
            line => write!(f, "line {line} is not one of a record: measure it again"),
        }
    }
}

impl core::error::Error for ChoiceRecordError {}
