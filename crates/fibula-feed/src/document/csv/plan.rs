//! Finds the meaning of a table's columns: by its header, by the options, or by the values in them.

use std::borrow::Cow;

use fibula::net::{HostBits, parse_address};

use super::super::Settings;
use super::super::head::TextHead;
use super::super::names;
use super::super::record::{Addresses, NamedFields, RouteScope, TableRecord};
use super::cells::Dialect;
use crate::text::{self, BgpdumpFields};
use crate::value::Value;

/// Lines that are examined to find the kind of values in a column.
const SAMPLE: usize = 100;

/// The meaning of the cells of a line.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) dialect: Dialect,
    names: Vec<String>,
    /// The header, which is no row.
    header: Option<String>,
    place: At,
    /// The columns that a route leads to, if they were named.
    pub(super) values: Vec<usize>,
    /// The columns of the values that are requested of every row.
    known: Vec<(Value, Option<usize>)>,
    pub(super) first: Option<usize>,
}

/// The columns that say where a route applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Prefix(usize),
    Masked(usize, usize),
    Range(usize, usize),
    /// Ranges of the statistics of registries: an address and a count, or a prefix of IPv6.
    Delegated,
}

/// The values whose columns are looked up once.
const KNOWN: [Value; 4] = [Value::NextHop, Value::OriginAs, Value::AsPath, Value::Communities];

impl Plan {
    /// Returns the plan for a text with this head, and how many of its lines it takes.
    pub(super) fn of(head: &TextHead<'_>, settings: &Settings<'_>) -> Option<(Self, usize)> {
        let plans = Dialect::ALL.iter().filter_map(|&dialect| {
            let plan = Self::in_dialect(head, settings, dialect)?;
            let claims = plan.claims(head);
            (claims > 0).then_some((plan, claims))
        });
        // Of equals the first.
        plans.reduce(|best, other| if other.1 > best.1 { other } else { best })
    }

    fn in_dialect(head: &TextHead<'_>, settings: &Settings<'_>, dialect: Dialect) -> Option<Self> {
        let lines: Vec<&str> =
            head.lines().iter().copied().filter(|line| !dialect.is_comment(line)).take(SAMPLE).collect();
        // A title may come before the header.
        let is_header = |line: &&str| {
            let cells = cut(dialect, line).unwrap_or_default();
            let names: Vec<String> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
            by_names(&names).is_some_and(|place| !starts_route(&cells, place))
        };
        let is_row = |line: &&str| cut(dialect, line).is_some();
        let begin = &lines[..lines.len().min(20)];
        let at = begin.iter().position(is_header).or_else(|| begin.iter().position(is_row))?;
        // Lines of bgpdump and its like have a prefix in a column, and are read as lines.
        if dialect.separator == b'|' && BgpdumpFields::of(lines[at].as_bytes()).is_some() {
            return None;
        }
        let first = cut(dialect, lines[at])?;
        let rows: Vec<Vec<Cow<'_, str>>> =
            lines[at + 1..].iter().filter_map(|line| cut(dialect, line)).collect();
        if dialect.separator == b'|' && is_delegated(&first, &rows) {
            let names = ["registry", "country", "family", "start", "size", "date", "status", "opaque_id"];
            return Some(Self::new(dialect, names.map(str::to_owned).into(), None, At::Delegated));
        }
        let numbered = |len: usize| (1..=len).map(|number| number.to_string()).collect::<Vec<_>>();
        let named: Vec<String> = first.iter().map(|cell| cell.trim().to_owned()).collect();
        let columns = settings.columns;
        if columns.places() {
            let wants = |names: &[String]| columns.place(names);
            let header = Some(lines[at].to_owned());
            let (names, header, place) = match wants(&named) {
                Some(place) => (named, header, place),
                None => (numbered(first.len()), None, wants(&numbered(first.len()))?),
            };
            let place = match place {
                (Some(prefix), _) => At::Prefix(prefix),
                (None, ends) => ends.map(|(first, last)| At::Range(first, last))?,
            };
            return Self::new(dialect, names, header, place).with_values(settings);
        }
        let header = Some(lines[at].to_owned());
        if let Some(place) = by_names(&named)
            && !starts_route(&first, place)
        {
            return Self::new(dialect, named, header, place).with_values(settings);
        }
        // Without a header the first line is a row like the others.
        let all: Vec<Vec<Cow<'_, str>>> =
            std::iter::once(first.clone()).chain(rows.iter().cloned()).collect();
        if let Some(place) = by_content(&all).filter(|&place| starts_route(&first, place)) {
            let mut names = numbered(first.len());
            match place {
                At::Prefix(at) => names[at] = names::PREFIX[0].to_owned(),
                At::Range(first, last) => {
                    names[first] = names::FIRST[0].to_owned();
                    names[last] = names::LAST[0].to_owned();
                }
                At::Masked(..) | At::Delegated => {}
            }
            // RIPE's riswhois: the origin, the prefix, and how many peers see it.
            if place == At::Prefix(1) && first.len() == 3 && dialect.separator == b'\t' {
                names = ["origin_as", "prefix", "peers"].map(str::to_owned).into();
            }
            return Self::new(dialect, names, None, place).with_values(settings);
        }
        // A header with names of its own.
        let place = by_content(&rows)?;
        Self::new(dialect, named, header, place).with_values(settings)
    }

    fn new(dialect: Dialect, names: Vec<String>, header: Option<String>, place: At) -> Self {
        let mut plan =
            Self { dialect, names, header, place, values: Vec::new(), known: Vec::new(), first: None };
        plan.known = KNOWN.map(|value| (value.clone(), plan.find(&value))).into();
        plan.first = plan.first_value();
        plan
    }

    /// Adds the columns that the options name as values; `None` if one is missing.
    fn with_values(mut self, settings: &Settings<'_>) -> Option<Self> {
        for name in &settings.columns.values {
            self.values.push(self.names.iter().position(|own| own.eq_ignore_ascii_case(name))?);
        }
        if let [only] = self.values[..] {
            self.known[0].1 = Some(only);
        }
        for value in settings.values {
            if !self.known.iter().any(|(known, _)| known == value) {
                self.known.push((value.clone(), self.find(value)));
            }
        }
        Some(self)
    }

    /// Returns how many lines of the head are routes. With several, a header without routes is none of this form.
    fn claims(&self, head: &TextHead<'_>) -> usize {
        let is_good = |line: &str| {
            if self.dialect.is_comment(line) || self.skips(line) {
                return true;
            }
            let cells = self.dialect.cells(line);
            cells.as_ref().is_ok_and(|cells| {
                let fields = NamedFields::default();
                let record = self.place(cells).map(|place| TableRecord::plain(place, &fields));
                cells.len() > 1 && record.is_some_and(|record| record.addresses(HostBits::Mask).is_ok())
            })
        };
        let good = head.count(is_good);
        let bad = head.lines().len() - good;
        // A header identifies the table, even if its rows are bad.
        if good >= bad || (self.header.is_some() && by_names(&self.names).is_some()) {
            good.max(1)
        } else {
            0
        }
    }

    /// Returns whether a line is the header, also where it is repeated, or one of statistics that lists no addresses.
    pub(super) fn skips(&self, line: &str) -> bool {
        if self.place == At::Delegated {
            return !is_delegation(line);
        }
        self.header.as_deref().is_some_and(|header| header == line)
    }

    /// Returns where the route of a line applies.
    pub(super) fn place<'a>(&self, cells: &'a [Cow<'a, str>]) -> Option<RouteScope<'a>> {
        let cell = |at: usize| cells.get(at).map(|cell| cell.trim()).filter(|cell| !cell.is_empty());
        match self.place {
            At::Prefix(at) => cell(at).map(RouteScope::Prefix),
            At::Masked(address, mask) => Some(RouteScope::Masked(cell(address)?, cell(mask)?)),
            At::Range(first, last) => Some(RouteScope::Range(cell(first)?, cell(last)?)),
            At::Delegated => {
                let (address, value) = (cell(3)?, cell(4)?);
                Some(if cell(2) == Some("ipv6") {
                    RouteScope::Masked(address, value)
                } else {
                    RouteScope::Count(address, value)
                })
            }
        }
    }

    /// Returns the column of a value.
    pub(super) fn column(&self, value: &Value) -> Option<usize> {
        let known = self.known.iter().find(|(known, _)| known == value);
        known.map_or_else(|| self.find(value), |&(_, column)| column)
    }

    fn find(&self, value: &Value) -> Option<usize> {
        let names = || self.names.iter();
        names()
            .position(|name| value.is_exactly(name))
            .or_else(|| names().position(|name| value.is_column(name)))
    }

    /// Returns the first column that does not say where a route applies.
    fn first_value(&self) -> Option<usize> {
        (0..self.names.len()).find(|&at| !self.is_place(at))
    }

    fn is_place(&self, column: usize) -> bool {
        match self.place {
            At::Prefix(at) => {
                at == column || names::is_place(&self.names[column]) || self.names[column] == "family"
            }
            At::Masked(one, other) | At::Range(one, other) => {
                one == column
                    || other == column
                    || names::is_place(&self.names[column])
                    || self.names[column] == "family"
            }
            At::Delegated => column != 1,
        }
    }
}

/// Returns the cells of a line that has several.
fn cut<'a>(dialect: Dialect, line: &'a str) -> Option<Vec<Cow<'a, str>>> {
    dialect.cells(line).ok().filter(|cells| cells.len() > 1)
}

/// Returns the columns that say where a route applies, by their names.
fn by_names(header: &[String]) -> Option<At> {
    let find = |names: &[&str]| names::find(header, names);
    let netmask = find(names::MASK);
    let ends = || Some(At::Range(find(names::FIRST)?, find(names::LAST)?));
    match (find(names::PREFIX), netmask) {
        (Some(prefix), Some(mask)) => Some(At::Masked(prefix, mask)),
        (Some(prefix), None) => Some(At::Prefix(prefix)),
        (None, _) => ends(),
    }
}

/// Returns the columns that say where a route applies, by the values in most of the rows.
fn by_content(rows: &[Vec<Cow<'_, str>>]) -> Option<At> {
    let columns = rows.iter().map(Vec::len).max()?;
    let most = |is: &dyn Fn(&[Cow<'_, str>]) -> bool| {
        let good = rows.iter().filter(|row| is(row)).count();
        good * 2 > rows.len()
    };
    let cell =
        |row: &[Cow<'_, str>], at: usize| row.get(at).map(|cell| cell.trim().to_owned()).unwrap_or_default();
    let is_prefix = |text: &str| text.contains('/') && text::place(text, HostBits::Mask).is_ok();
    let is_address = |text: &str| parse_address(text.as_bytes()).is_ok();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // CAIDA's lines of address and length are lines of text.
    if most(&|row| is_address(&cell(row, 0)) && cell(row, 1).parse::<u8>().is_ok_and(|length| length <= 128))
    {
        return None;
    }
    if let Some(at) = (0..columns.min(16)).find(|&at| most(&|row| is_prefix(&cell(row, at)))) {
        return Some(At::Prefix(at));
    }
    for at in 0..columns.saturating_sub(1).min(16) {
        if most(&|row| is_address(&cell(row, at)) && text::is_netmask(&cell(row, at + 1))) && columns > 2 {
            return Some(At::Masked(at, at + 1));
        }
        let in_order = |row: &[Cow<'_, str>]| {
            let place = (cell(row, at), cell(row, at + 1));
            TableRecord::plain(RouteScope::Range(&place.0, &place.1), &NamedFields::default())
                .addresses(HostBits::Mask)
                .is_ok()
        };
        let addresses = |row: &[Cow<'_, str>]| is_address(&cell(row, at)) && is_address(&cell(row, at + 1));
        // Two addresses alone are a host and its next hop.
        if columns > 2 && most(&|row| addresses(row) && in_order(row)) {
            return Some(At::Range(at, at + 1));
        }
        let numbers = |row: &[Cow<'_, str>]| is_number(&cell(row, at)) && is_number(&cell(row, at + 1));
        if columns > 2 && at == 0 && most(&|row| numbers(row) && in_order(row)) && ascend(rows, at) {
            return Some(At::Range(at, at + 1));
        }
    }
    let is_host = |text: &str| is_address(text) || is_prefix(text);
    most(&|row| is_host(&cell(row, 0))).then_some(At::Prefix(0))
}

/// Returns whether the ranges of integers follow each other, as those of tables of addresses do.
fn ascend(rows: &[Vec<Cow<'_, str>>], at: usize) -> bool {
    let firsts: Vec<u128> = rows.iter().filter_map(|row| row.get(at)?.trim().parse().ok()).collect();
    let large = firsts.iter().filter(|&&first| first > u128::from(u16::MAX)).count();
    large * 2 >= firsts.len() && firsts.is_sorted()
}

fn starts_route(cells: &[Cow<'_, str>], place: At) -> bool {
    let cell = |at: usize| cells.get(at).map(|cell| cell.trim()).unwrap_or_default();
    let place = match place {
        At::Prefix(at) => RouteScope::Prefix(cell(at)),
        At::Masked(address, mask) => RouteScope::Masked(cell(address), cell(mask)),
        At::Range(first, last) => RouteScope::Range(cell(first), cell(last)),
        At::Delegated => return true,
    };
    matches!(
        TableRecord::plain(place, &NamedFields::default()).addresses(HostBits::Mask),
        Ok(Addresses::One(_) | Addresses::Several(..))
    )
}

/// Returns whether these are the statistics of a registry.
fn is_delegated(first: &[Cow<'_, str>], rows: &[Vec<Cow<'_, str>>]) -> bool {
    let is_row = |row: &[Cow<'_, str>]| row.len() >= 7 && matches!(&*row[2], "ipv4" | "ipv6" | "asn");
    (is_row(first) || first[0].starts_with('2')) && rows.iter().any(|row| is_row(row))
}

fn is_delegation(line: &str) -> bool {
    let cells: Vec<&str> = line.split('|').collect();
    cells.len() >= 7 && matches!(cells[2], "ipv4" | "ipv6") && cells[3] != "*"
}

/// Returns why a text is not a table with columns.
pub(super) fn refusal(head: &TextHead<'_>, settings: &Settings<'_>) -> String {
    let header = head.lines().iter().find_map(|line| {
        let cells = Dialect::ALL.iter().filter_map(|dialect| dialect.cells(line).ok());
        cells.max_by_key(Vec::len).filter(|cells| cells.len() > 1)
    });
    let names: Vec<String> = header
        .unwrap_or_default()
        .iter()
        .take(16)
        .map(|cell| cell.trim().chars().take(30).collect())
        .collect();
    let options = settings.columns;
    let wanted = options.prefix.iter().chain(&options.first).chain(&options.last).chain(&options.values);
    let wanted: Vec<String> = wanted.map(|name| format!("'{name}'")).collect();
    if wanted.is_empty() {
        return "no column holds prefixes or ranges; name it: --prefix-column NAME".to_owned();
    }
    format!(
        "no columns {} with prefixes or ranges; its first line has: {}",
        wanted.join(", "),
        names.join(", ")
    )
}
