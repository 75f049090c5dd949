//! The value of a route: its next hop, or any other property in its source.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use crate::bgp::Attributes;
use crate::event::{Action, Announcement, Event, Peer};
use crate::next_hops::Label;
use crate::text::BgpdumpFields;

/// A value of a route. A table holds one or several for each prefix: see [`LoadOptions::values`](crate::LoadOptions).
///
/// Reads and prints as on the command line: `origin-as`. Any other word is the name of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Value {
    /// The next hop; of a table that names none, the only value that it has.
    NextHop,
    /// The AS that announced the prefix: the last one of the AS path, or the members of the set that ends it.
    OriginAs,
    /// The AS path, as bgpdump prints it.
    AsPath,
    /// The address of the peer that sent the route to the collector.
    Peer,
    /// The AS of that peer.
    PeerAs,
    /// The communities and large communities, separated by blanks.
    Communities,
    /// Seconds between the time when the collector received the route and that of the table dump.
    Age,
    /// The time when the collector received the route: seconds since 1970.
    Since,
    /// A column of a CSV table or a field of JSON, by its name.
    Column(Box<str>),
}

impl Value {
    /// The values with names of their own.
    pub const NAMED: [Self; 8] = [
        Self::NextHop,
        Self::OriginAs,
        Self::AsPath,
        Self::Peer,
        Self::PeerAs,
        Self::Communities,
        Self::Age,
        Self::Since,
    ];

    /// Returns the name, as on the command line.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::NextHop => "next-hop",
            Self::OriginAs => "origin-as",
            Self::AsPath => "as-path",
            Self::Peer => "peer",
            Self::PeerAs => "peer-as",
            Self::Communities => "communities",
            Self::Age => "age",
            Self::Since => "since",
            Self::Column(name) => name,
        }
    }

    /// Returns the name as a column: `origin_as`.
    #[must_use]
    pub fn column(&self) -> String {
        match self {
            Self::Column(name) => name.to_string(),
            named => named.name().replace('-', "_"),
        }
    }

    /// Returns whether a column of this name holds this value.
    #[must_use]
    pub fn is_column(&self, name: &str) -> bool {
        match self {
            Self::Column(own) => **own == *name,
            Self::NextHop => {
                let names = ["next_hop", "next-hop", "nexthop", "next hop", "gateway", "value", "label"];
                names.iter().any(|own| own.eq_ignore_ascii_case(name))
            }
            Self::OriginAs => {
                let names = [
                    "origin_as",
                    "origin-as",
                    "asn",
                    "as",
                    "as_number",
                    "origin_asn",
                    "autonomous_system_number",
                ];
                names.iter().any(|own| own.eq_ignore_ascii_case(name))
            }
            named => named.column() == name || named.name() == name,
        }
    }

    /// Like [`is_column`](Self::is_column), but accepts only the main name of the value.
    pub(crate) fn is_exactly(&self, name: &str) -> bool {
        match self {
            Self::Column(own) => **own == *name,
            Self::NextHop => name == "next_hop",
            Self::OriginAs => name == "origin_as",
            named => named.is_column(name),
        }
    }

    /// Returns whether only routes of peers have this value.
    #[must_use]
    pub fn is_of_peers(&self) -> bool {
        !matches!(self, Self::NextHop | Self::OriginAs | Self::Column(_))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Any text but an empty one.
impl FromStr for Value {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() {
            return Err(ValueError);
        }
        let named = Self::NAMED.into_iter().find(|value| text == value.name() || text == value.column());
        Ok(named.unwrap_or_else(|| Self::Column(text.into())))
    }
}

/// The error for a name of a value that is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueError;

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a value is empty")
    }
}

impl core::error::Error for ValueError {}

/// A route of a peer with all properties in its source.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    seconds: u32,
    peer: Option<Peer>,
    route: &'a Announcement,
    /// The fields of a line of bgpdump, which is not decoded into attributes.
    fields: Option<BgpdumpFields<'a>>,
}

impl fmt::Debug for Facts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").field("peer", &self.peer).field("route", &self.route).finish_non_exhaustive()
    }
}

impl<'a> Facts<'a> {
    /// Returns the facts of an announcement; `None` for other events. `fields` are those of its line, if it is one of
    /// bgpdump.
    #[must_use]
    pub fn of(event: &'a Event, fields: Option<BgpdumpFields<'a>>) -> Option<Self> {
        match &event.action {
            Action::Announce(route) => {
                Some(Self { seconds: event.time.seconds, peer: event.peer, route, fields })
            }
            _ => None,
        }
    }

    fn attributes(&self) -> Option<&'a Attributes> {
        self.route.attributes.as_deref()
    }

    /// Returns the AS path as text, if the source has it.
    #[must_use]
    pub fn as_path(&self) -> Option<Cow<'a, str>> {
        match (self.attributes(), self.fields) {
            (Some(attributes), _) => Some(attributes.as_path().to_string().into()),
            (_, Some(fields)) => Some(fields.as_path().into()),
            _ => None,
        }
    }

    /// Returns the communities as text, if the source has them.
    #[must_use]
    pub fn communities(&self) -> Option<Cow<'a, str>> {
        match (self.attributes(), self.fields) {
            (Some(attributes), _) => Some(attributes.all_communities().into()),
            (_, Some(fields)) => fields.communities().map(Cow::from),
            _ => None,
        }
    }

    /// Returns a value, or [`Label::Absent`].
    #[must_use]
    pub fn value(&self, value: &Value) -> Label {
        let text = |text: Option<Cow<'_, str>>| match text {
            Some(text) if !text.is_empty() => Label::Text(text.into()),
            _ => Label::Absent,
        };
        let since = || match self.attributes().and_then(Attributes::since) {
            Some(since) => Some(since),
            // An update is received when it is recorded.
            None => (!self.route.dumped).then_some(self.seconds),
        };
        match value {
            Value::NextHop => self.route.next_hop.clone(),
            Value::OriginAs => self.as_path().map_or(Label::Absent, |path| origin(&path)),
            Value::AsPath => text(self.as_path()),
            Value::Communities => text(self.communities()),
            Value::Peer => self.peer.map_or(Label::Absent, |peer| Label::Address(peer.address)),
            Value::PeerAs => self.peer.map_or(Label::Absent, |peer| Label::Number(peer.asn)),
            Value::Age => match since() {
                Some(since) if self.route.dumped => Label::Number(self.seconds.saturating_sub(since)),
                _ => Label::Absent,
            },
            Value::Since => since().map_or(Label::Absent, Label::Number),
            Value::Column(_) => Label::Absent,
        }
    }

    /// Returns the label for these values.
    #[must_use]
    pub fn label(&self, values: &[Value]) -> Label {
        label(values, |value| self.value(value))
    }
}

/// Returns the label that joins the values, or the next hop if there are none.
pub(crate) fn label(values: &[Value], mut of: impl FnMut(&Value) -> Label) -> Label {
    match values {
        [] => of(&Value::NextHop),
        [value] => of(value),
        values => Label::Fields(values.iter().map(of).collect()),
    }
}

/// Returns a value of a table that names no peers, whose only value is its label.
pub(crate) fn plain(label: &Label, value: &Value) -> Label {
    match (value, label) {
        (Value::OriginAs, Label::Text(text)) => named_as(text).map_or(Label::Absent, Label::Number),
        (Value::NextHop, _) | (Value::OriginAs, Label::Number(_) | Label::Origins(_)) => label.clone(),
        _ => Label::Absent,
    }
}

/// Returns the origin of an AS path in the form of [`Label::Origins`]: the last AS, or the members of a last set. Segments
/// of a confederation are not origins for others.
pub(crate) fn origin(path: &str) -> Label {
    let path = path.trim_ascii_end();
    if let Some(set) = path.strip_suffix('}') {
        return members(&set[set.rfind('{').map_or(0, |at| at + 1)..]);
    }
    let word = path.split_ascii_whitespace().next_back().unwrap_or_default();
    word.parse().map_or(Label::Absent, Label::Number)
}

/// Returns the members of an AS set, which tools separate by commas or by blanks.
fn members(set: &str) -> Label {
    let between = |c: char| c == ',' || c.is_ascii_whitespace();
    let members: Vec<&str> = set.split(between).filter(|member| !member.is_empty()).collect();
    match (&members[..], members.first().and_then(|one| asn(one))) {
        ([], _) => Label::Absent,
        ([_], Some(number)) => Label::Number(number),
        _ => Label::Origins(members.join(",").into()),
    }
}

/// Returns the origin that a column of a table has: an AS number in any of its forms, the members of a set, or other text.
pub(crate) fn origins(text: &str) -> Label {
    let set = text.trim().strip_prefix('{').and_then(|set| set.strip_suffix('}'));
    match (set, asn(text.trim())) {
        (Some(set), _) => members(set),
        (None, Some(number)) => Label::Number(number),
        (None, None) => named_as(text).map_or_else(|| Label::of_text(text), Label::Number),
    }
}

/// Returns the AS number of a name that begins with one, after `AS`: `AS64500`, `AS64500 Example`.
fn named_as(text: &str) -> Option<u32> {
    let word = text.split([' ', ',']).next().unwrap_or_default();
    asn(word).filter(|_| word.starts_with(['A', 'a']))
}

/// Returns an AS number, as tools write it: `64500`, `AS64500`, or `1.10` (RFC 5396).
#[must_use]
pub fn asn(text: &str) -> Option<u32> {
    let digits = match text.as_bytes() {
        [b'A' | b'a', b'S' | b's', ..] => text[2..].trim_start(),
        _ => text,
    };
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u32>().ok().filter(|_| plain)
    };
    match digits.split_once('.') {
        Some((high, low)) => {
            let half = |digits: &str| number(digits).filter(|&half| half <= 0xffff);
            Some(half(high)? << 16 | half(low)?)
        }
        None => number(digits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for value in Value::NAMED {
            assert_eq!(value.name().parse(), Ok(value.clone()));
            assert_eq!(value.column().parse(), Ok(value.clone()));
            assert!(value.is_column(&value.column()), "{value}");
        }
        let column: Value = "country.iso_code".parse().unwrap();
        assert_eq!(column, Value::Column("country.iso_code".into()));
        assert!(column.is_column("country.iso_code") && !column.is_column("country"));
        assert_eq!("".parse::<Value>(), Err(ValueError));
    }

    #[test]
    fn origins_of_tables_have_the_form_of_origins() {
        for (text, expected) in [
            ("AS64500", Label::Number(64_500)),
            (" 1.10 ", Label::Number(65_546)),
            ("{64511,64512}", Label::Origins("64511,64512".into())),
            ("64511_64512", Label::Origins("64511_64512".into())),
            ("none", Label::Text("none".into())),
            ("", Label::Absent),
        ] {
            assert_eq!(origins(text), expected, "{text}");
        }
    }

    #[test]
    fn as_numbers_have_three_forms() {
        for (text, expected) in [
            ("64500", Some(64_500)),
            ("AS64500", Some(64_500)),
            ("as 7", Some(7)),
            ("1.10", Some(65_546)),
            ("AS65535.65535", Some(u32::MAX)),
            ("4294967295", Some(u32::MAX)),
            ("4294967296", None),
            ("1.65536", None),
            ("1.2.3", None),
            ("+1", None),
            ("AS", None),
            ("1.", None),
            ("", None),
            ("ASx", None),
        ] {
            assert_eq!(asn(text), expected, "{text}");
        }
    }

    #[test]
    fn the_origin_is_the_last_as_or_the_last_set() {
        for (path, expected) in [
            ("64500 64501", Label::Number(64501)),
            ("64500", Label::Number(64500)),
            ("64500 {7}", Label::Number(7)),
            ("64500 {7,8}", Label::Origins("7,8".into())),
            ("64500 {7 8}", Label::Origins("7,8".into())),
            ("64500 { 7, 8 }", Label::Origins("7,8".into())),
            ("{7,8} 9", Label::Number(9)),
            ("", Label::Absent),
            ("7 {}", Label::Absent),
            ("64500 (65001 65002)", Label::Absent),
            ("64500 [65001,65002]", Label::Absent),
        ] {
            assert_eq!(origin(path), expected, "{path}");
        }
    }

    #[test]
    fn plain_tables_have_one_value() {
        let (number, address) = (Label::Number(7), Label::Address([192, 0, 2, 1].into()));
        assert_eq!(plain(&number, &Value::OriginAs), number);
        assert_eq!(plain(&address, &Value::OriginAs), Label::Absent);
        assert_eq!(plain(&address, &Value::NextHop), address);
        assert_eq!(plain(&number, &Value::AsPath), Label::Absent);
        assert_eq!(label(&[Value::NextHop, Value::AsPath], |value| plain(&number, value)).to_string(), "7 -");
    }
}
