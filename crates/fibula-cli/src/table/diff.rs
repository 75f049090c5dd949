//! `fibula table diff`: compares two tables in one walk over both.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::process::ExitCode;

use fibula::net::{Key, Route};
use fibula::rib::Rib;
use fibula_feed::{LoadedRoutes, NextHops};
use serde_json::{Value, json};

use super::args::DiffArgs;
use crate::failure::{Failure, code};
use crate::load::load_feeds;
use crate::messages::Messages;
use crate::objects::csv_field;
use crate::options::Format;
use crate::text::thousands;

/// How two tables differ.
#[derive(Default)]
struct DiffCounts {
    added: u64,
    removed: u64,
    changed: u64,
}

pub(super) fn run(args: &DiffArgs) -> Result<ExitCode, Failure> {
    let messages = Messages::new(args.quiet.quiet);
    let mut out = args.output.open([&args.before, &args.after])?;
    let before = load_feeds(std::slice::from_ref(&args.before), &args.feed, messages)?;
    let after = load_feeds(std::slice::from_ref(&args.after), &args.feed, messages)?;
    let mut writer =
        Writer { out: &mut out, format: args.output.format(), tally: DiffCounts::default(), rows: 0 };
    writer.start()?;
    writer.family(&before.ribs.v4, &after.ribs.v4, &before, &after)?;
    writer.family(&before.ribs.v6, &after.ribs.v6, &before, &after)?;
    let DiffCounts { added, removed, changed } = writer.end()?;
    out.finish()?;
    let [a, r, c] = [added, removed, changed].map(thousands);
    messages.note(format_args!("{a} added, {r} removed, {c} changed"));
    Ok(if added + removed + changed == 0 { ExitCode::SUCCESS } else { code::NOTHING_FOUND.into() })
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    format: Format,
    tally: DiffCounts,
    rows: u64,
}

impl Writer<'_> {
    fn start(&mut self) -> io::Result<()> {
        match self.format {
            Format::Csv => writeln!(self.out, "change,prefix,before,after"),
            Format::Json => self.out.write_all(b"["),
            Format::Text | Format::JsonLine => Ok(()),
        }
    }

    fn family<K: Key>(
        &mut self,
        before: &Rib<K>,
        after: &Rib<K>,
        a: &LoadedRoutes,
        b: &LoadedRoutes,
    ) -> io::Result<()> {
        let order = |route: &Route<K>| (route.prefix.addr(), route.prefix.len());
        let (mut left, mut right) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let place = match (left.peek(), right.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => order(left).cmp(&order(right)),
            };
            let old = if place == Ordering::Greater { None } else { left.next() };
            let new = if place == Ordering::Less { None } else { right.next() };
            let label = |route: Option<Route<K>>, next_hops: &NextHops| {
                route.and_then(|route| next_hops.label(route.next_hop)).map(ToString::to_string)
            };
            let (was, is) = (label(old, &a.next_hops), label(new, &b.next_hops));
            if was != is
                && let Some(route) = old.or(new)
            {
                self.row(&route.prefix.to_string(), was.as_deref(), is.as_deref())?;
            }
        }
    }

    fn row(&mut self, prefix: &str, before: Option<&str>, after: Option<&str>) -> io::Result<()> {
        let (sign, word, count) = match (before, after) {
            (None, _) => ('+', "added", &mut self.tally.added),
            (_, None) => ('-', "removed", &mut self.tally.removed),
            _ => ('~', "changed", &mut self.tally.changed),
        };
        *count += 1;
        self.rows += 1;
        let object =
            || -> Value { json!({ "change": word, "prefix": prefix, "before": before, "after": after }) };
        match self.format {
            Format::Text => {
                let labels: Vec<&str> = [before, after].into_iter().flatten().collect();
                writeln!(self.out, "{sign} {prefix} {}", labels.join(" "))
            }
            Format::Csv => {
                let [before, after] = [before, after].map(|label| csv_field(label.unwrap_or_default()));
                writeln!(self.out, "{word},{prefix},{before},{after}")
            }
            Format::JsonLine => writeln!(self.out, "{}", object()),
            Format::Json => {
                let comma = if self.rows > 1 { "," } else { "" };
                write!(self.out, "{comma}\n  {}", object())
            }
        }
    }

    fn end(self) -> io::Result<DiffCounts> {
        if self.format == Format::Json {
            self.out.write_all(if self.rows > 0 { b"\n]\n" } else { b"]\n" })?;
        }
        Ok(self.tally)
    }
}
