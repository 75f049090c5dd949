//! Output of `show bgp` and `show ip bgp`: columns under a header. The best of several paths of a prefix is used.

use std::net::Ipv4Addr;

use fibula::net::{HostBits, parse_address};

use super::head::TextHead;
use super::ip_route::is_prompt;
use super::record::{NamedFields, RouteScope, TableRecord};
use super::{ByRule, Document, Settings, Stop, Take};
use crate::text::{self, LineError, LineErrorKind};

/// What stands before a prefix: its status and the spaces around it.
const MARKS: &str = " *>=sdhiSRrbxamfctVIN";

/// Where the columns begin.
#[derive(Clone, Copy)]
struct Columns {
    network: usize,
    path: usize,
}

impl Columns {
    /// Returns the columns of a header that lost the spaces before it, as the first path shows them.
    fn with_margin(self, line: &str) -> Columns {
        if self.network > 0 {
            return self;
        }
        let margin = line
            .find(|c: char| !MARKS.contains(c))
            .filter(|&at| line[at..].starts_with(|c: char| c.is_ascii_digit()));
        let margin = margin.unwrap_or(0);
        Columns { network: margin, path: self.path + margin }
    }
}

pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    let Some(at) = head.lines().iter().position(|line| columns(line).is_some()) else { return 0 };
    let Some(columns) = columns(head.lines()[at]) else { return 0 };
    at + 1 + head.lines()[at + 1..].iter().filter(|line| line.len() > columns.network).count()
}

pub(super) fn read() -> Box<dyn Document> {
    Box::<ShowBgp>::default()
}

fn columns(line: &str) -> Option<Columns> {
    let (network, path) = (line.find("Network")?, line.find("Path")?);
    (line.contains("Next Hop") && network < path && line.is_ascii()).then_some(Columns { network, path })
}

#[derive(Default)]
struct ShowBgp {
    columns: Option<Columns>,
    prefix: String,
    path: Option<ShownPath>,
}

/// A path whose line may go on.
struct ShownPath {
    number: u64,
    is_best: bool,
    prefix: String,
    next_hop: Option<String>,
}

impl ShowBgp {
    fn finish(&mut self, as_path: &str, take: &mut dyn Take) -> Result<(), Stop> {
        let Some(path) = self.path.take() else { return Ok(()) };
        if !path.is_best {
            take.by_rule(ByRule::NotInUse);
            return Ok(());
        }
        let Some(next_hop) = &path.next_hop else {
            return take.bad(path.number, LineError::new(LineErrorKind::NoNextHop, 0), &path.prefix);
        };
        // The last letter is the origin attribute.
        let as_path = as_path.trim();
        let as_path = as_path.strip_suffix(['i', 'e', '?']).unwrap_or(as_path).trim();
        let mut fields = NamedFields::default();
        fields.push("next_hop", next_hop.as_str());
        fields.push("as_path", as_path);
        take.record(&TableRecord::plain(RouteScope::Prefix(&path.prefix), &fields), path.number, &path.prefix)
    }

    /// Takes a next hop and the path of the path that is being read, and finishes it if its line is complete.
    fn rest(&mut self, line: &str, words: &str, columns: Columns, take: &mut dyn Take) -> Result<(), Stop> {
        let Some(path) = &mut self.path else { return Ok(()) };
        if path.next_hop.is_none()
            && let Some(word) = words.split_ascii_whitespace().next()
            && parse_address(word.as_bytes()).is_ok()
        {
            path.next_hop = Some(word.to_owned());
        }
        match line.get(columns.path..).filter(|text| !text.trim().is_empty()) {
            Some(as_path) => self.finish(as_path, take),
            None => Ok(()),
        }
    }
}

/// Returns the prefix of a network. Its length is left out if it is the length of the address's class.
fn prefix_of(word: &str) -> Option<String> {
    if let (false, Ok(address)) = (word.contains('/'), word.parse::<Ipv4Addr>()) {
        let length = match address.octets()[0] {
            0 if address.is_unspecified() => 0,
            0..128 => 8,
            128..192 => 16,
            192..224 => 24,
            _ => 32,
        };
        return Some(format!("{address}/{length}"));
    }
    (word.contains('/') && text::place(word, HostBits::Mask).is_ok()).then(|| word.to_owned())
}

impl Document for ShowBgp {
    fn line(&mut self, line: &str, number: u64, take: &mut dyn Take) -> Result<(), Stop> {
        let line = line.trim_end();
        if let Some(columns) = columns(line) {
            self.columns = Some(columns);
            return Ok(());
        }
        // All before the header are codes.
        let Some(columns) = self.columns else { return Ok(()) };
        if line.is_empty()
            || line.starts_with('#')
            || is_prompt(line)
            || line.starts_with("Displayed")
            || line.starts_with("Total number")
            || line.ends_with(['#', '>'])
        {
            return Ok(());
        }
        let columns = columns.with_margin(line);
        self.columns = Some(columns);
        // A mark may be right before the prefix, which then begins a column earlier.
        let is_earlier = columns.network > 0
            && line
                .as_bytes()
                .get(..=columns.network)
                .is_some_and(|begin| begin[columns.network - 1].is_ascii_digit());
        let network = columns.network - usize::from(is_earlier);
        let (Some(marks), Some(text)) = (line.get(..network), line.get(network..)) else {
            return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line);
        };
        if marks.trim().is_empty() {
            if self.path.is_none() {
                return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line);
            }
            return self.rest(line, text, columns, take);
        }
        if !marks.chars().all(|c| MARKS.contains(c)) {
            return take.bad(number, LineError::new(LineErrorKind::NotARoute, 0), line);
        }
        self.finish("", take)?;
        let mut rest = text;
        if !text.starts_with(' ') {
            let (word, after) = text.split_once(' ').unwrap_or((text, ""));
            let Some(prefix) = prefix_of(word) else {
                return take.bad(number, LineError::new(LineErrorKind::NotARoute, columns.network), line);
            };
            self.prefix = prefix;
            rest = after;
        }
        let is_best = marks.contains('>');
        self.path = Some(ShownPath { number, is_best, prefix: self.prefix.clone(), next_hop: None });
        self.rest(line, rest, columns, take)
    }

    fn end(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        self.finish("", take)
    }
}
