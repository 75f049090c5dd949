//! Labels of next hops: texts and addresses on one side, the numbers that structures store on the other.

use core::fmt;
use core::net::IpAddr;

use fibula::memory::Limits;
use fibula::net::NextHop;
use indexmap::IndexSet;

use crate::ledger::{set_growth, set_room};

/// The value of a route as its table writes it: a next hop, or any other [value](crate::Value). Prints in the same way.
/// [`line`](Self::line) prints text that is read back as the same label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A number: an interface, an index, an AS. 0 is a number like any other; in tables of origin ASes it
    /// means unknown.
    Number(u32),
    /// The address of a router.
    Address(IpAddr),
    /// Several ASes that announce the same prefix, as CAIDA writes them: `1_2` for two origins, `1,2` for an
    /// AS set, or both mixed.
    Origins(Box<str>),
    /// Any other text: an interface, a site, an AS path.
    Text(Box<str>),
    /// A requested value that the route does not have. Prints as `-`.
    Absent,
    /// Several values of one route, in the order in which they were requested.
    Fields(Box<[Label]>),
}

impl Label {
    /// Returns the label of a text: a number or an address where it is one. Digits that begin with 0, such as a postal code, are text,
    /// because a number would not be printed as they are. Control characters become blanks, and an empty text is absent.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Absent;
        }
        let is_code =
            text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_code && let Ok(label) = crate::text::label(text.as_bytes()) {
            return label;
        }
        Self::Text(text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect())
    }

    /// Returns the values of a route: several if several were requested, otherwise this one.
    #[must_use]
    pub fn fields(&self) -> &[Self] {
        match self {
            Self::Fields(fields) => fields,
            one => std::slice::from_ref(one),
        }
    }

    /// Returns the text as a word of a line: in quotes if it has blanks, quotes or nothing in it, or would be read as
    /// something else.
    #[must_use]
    pub fn line(&self) -> String {
        quoted(&self.to_string()).into_owned()
    }

    /// Returns the bytes that the label takes in addition to its own size.
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Origins(text) | Self::Text(text) => text.len(),
            Self::Fields(fields) => {
                size_of_val::<[Self]>(fields) + fields.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Self::Number(_) | Self::Address(_) | Self::Absent => 0,
        }
    }
}

/// Returns a word of a line as it is, or in quotes if it needs them; `\` comes before quotes and `\` within.
#[must_use]
pub(crate) fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '"';
    if !text.is_empty() && text.chars().all(plain) && text != "via" && !text.starts_with(['#', ';']) {
        return text.into();
    }
    let mut word = String::with_capacity(text.len() + 2);
    word.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            word.push('\\');
        }
        word.push(if c.is_control() { ' ' } else { c });
    }
    word.push('"');
    word.into()
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Address(address) => address.fmt(f),
            Self::Origins(text) | Self::Text(text) => text.fmt(f),
            Self::Absent => f.write_str("-"),
            Self::Fields(fields) => {
                for (index, field) in fields.iter().enumerate() {
                    write!(f, "{}{field}", if index > 0 { " " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

/// The labels of a table, numbered from 1 in the order in which they were first seen.
///
/// `intern` and `get` hash once, `label` is an index.
#[derive(Debug, Clone, Default)]
pub struct NextHops {
    labels: IndexSet<Label>,
    limit_bytes: Option<usize>,
    /// The table of the labels, and their texts.
    used_bytes: usize,
    /// The table alone.
    table_bytes: usize,
}

impl NextHops {
    /// Returns an empty set of labels, which may grow as far as `limits` allow.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limit_bytes: limits.memory_bytes, ..Self::default() }
    }

    /// Returns the next hop of this label; a label not seen before gets the next number.
    ///
    /// # Errors
    /// When the numbers or the memory run out; nothing has changed then.
    pub fn intern(&mut self, label: Label) -> Result<NextHop, NextHopsError> {
        if let Some(next_hop) = self.get(&label) {
            return Ok(next_hop);
        }
        let next_hop =
            number(self.labels.len()).ok_or(NextHopsError { kind: NextHopsErrorKind::NoNumbers })?;
        let labels = self.labels.len();
        let text = label.heap_bytes();
        let grown = set_growth::<Label>(labels, self.labels.capacity());
        // The old table and the new one exist at the same time.
        let peak_bytes = self.used_bytes + text + grown.unwrap_or(0);
        if let Some(limit_bytes) = self.limit_bytes
            && peak_bytes > limit_bytes
        {
            return Err(NextHopsError { kind: NextHopsErrorKind::Limit { labels, limit_bytes } });
        }
        if let Some(table_bytes) = grown {
            self.labels
                .try_reserve_exact(set_room(labels))
                .map_err(|_| NextHopsError { kind: NextHopsErrorKind::NoMemory { labels } })?;
            self.used_bytes = self.used_bytes - self.table_bytes + table_bytes;
            self.table_bytes = table_bytes;
        }
        self.used_bytes += text;
        self.labels.insert(label);
        Ok(next_hop)
    }

    /// Returns the memory that the labels take.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Changes the memory limit of the labels, from now on.
    pub(crate) fn set_limit(&mut self, limit_bytes: Option<usize>) {
        self.limit_bytes = limit_bytes;
    }

    /// Returns the next hop of this label, if it was seen.
    #[must_use]
    pub fn get(&self, label: &Label) -> Option<NextHop> {
        self.labels.get_index_of(label).and_then(number)
    }

    /// Returns the label of the next hop; `None` for a number that was not assigned here.
    #[must_use]
    pub fn label(&self, next_hop: NextHop) -> Option<&Label> {
        self.labels.get_index(usize::try_from(next_hop.id()).ok()? - 1)
    }

    /// Returns the number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Iterates over the next hops and their labels, in the order in which they were first seen.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NextHop, &Label)> {
        // `intern` numbers every label before it is stored.
        self.labels.iter().enumerate().map(|(index, label)| (number(index).expect("numbered"), label))
    }
}

/// Returns the next hop of the label at `index`.
fn number(index: usize) -> Option<NextHop> {
    u32::try_from(index).ok()?.checked_add(1).and_then(NextHop::new)
}

/// Why a label got no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHopsError {
    kind: NextHopsErrorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextHopsErrorKind {
    NoNumbers,
    NoMemory { labels: usize },
    Limit { labels: usize, limit_bytes: usize },
}

impl fmt::Display for NextHopsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            NextHopsErrorKind::NoNumbers => write!(f, "a table has at most {} next hops", u32::MAX),
            NextHopsErrorKind::NoMemory { labels } => {
                write!(f, "the system has no memory left for more than {labels} next hops")
            }
            NextHopsErrorKind::Limit { labels, limit_bytes } => {
                write!(f, "the memory limit is {limit_bytes} bytes, and {labels} different next hops fill it")
            }
        }
    }
}

impl core::error::Error for NextHopsError {}

impl NextHopsError {
    /// Returns the error with another limit: that of the whole load.
    pub(crate) fn with_limit(self, limit_bytes: Option<usize>) -> Self {
        match (self.kind, limit_bytes) {
            (NextHopsErrorKind::Limit { labels, .. }, Some(limit_bytes)) => {
                Self { kind: NextHopsErrorKind::Limit { labels, limit_bytes } }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_numbered_from_one_in_order_of_first_sight() {
        let labels = [
            Label::Number(0),
            Label::Address("192.0.2.1".parse().unwrap()),
            Label::Origins("1_2,3".into()),
            Label::Address("2001:db8::1".parse().unwrap()),
            Label::Number(u32::MAX),
        ];
        let mut next_hops = NextHops::default();
        assert!(next_hops.is_empty());
        for _ in 0..2 {
            for (index, label) in labels.iter().enumerate() {
                let next_hop = next_hops.intern(label.clone()).unwrap();
                assert_eq!(next_hop.id() as usize, index + 1);
                assert_eq!(next_hops.label(next_hop), Some(label));
                assert_eq!(next_hops.get(label), Some(next_hop));
            }
        }
        assert_eq!(next_hops.len(), labels.len());
        assert_eq!(next_hops.label(NextHop::new(6).unwrap()), None);
        assert_eq!(next_hops.label(NextHop::new(u32::MAX).unwrap()), None);
        assert_eq!(next_hops.get(&Label::Number(1)), None);
        let printed: Vec<_> = next_hops.iter().map(|(id, label)| format!("{id}={label}")).collect();
        assert_eq!(printed, ["1=0", "2=192.0.2.1", "3=1_2,3", "4=2001:db8::1", "5=4294967295"]);
    }

    #[test]
    fn texts_are_the_labels_that_print_as_they_are() {
        assert_eq!(Label::of_text(" 7 "), Label::Number(7));
        assert_eq!(Label::of_text("0"), Label::Number(0));
        for text in ["007", "00", "1.50", "-5", "4294967296"] {
            assert_eq!(Label::of_text(text), Label::Text(text.into()));
        }
    }

    #[test]
    fn labels_stay_within_the_limit() {
        let mut next_hops = NextHops::new(Limits::within(10_000));
        let long = |number: u32| Label::Origins(format!("{number}_{}", "1,".repeat(400)).into());
        let held = (0..100).take_while(|&number| next_hops.intern(long(number)).is_ok()).count();
        assert!((5..=12).contains(&held), "{held}");
        assert_eq!(next_hops.len(), held);
        let error = next_hops.intern(long(1_000)).unwrap_err().to_string();
        assert!(error.starts_with("the memory limit is 10000 bytes"), "{error}");
        next_hops.intern(long(0)).expect("a label that is there needs nothing");
    }

    #[test]
    fn numbers_end_at_the_width_of_a_next_hop() {
        assert_eq!(number(u32::MAX as usize - 1).map(NextHop::id), Some(u32::MAX));
        assert_eq!(number(u32::MAX as usize), None);
        assert_eq!(
            NextHopsError { kind: NextHopsErrorKind::NoNumbers }.to_string(),
            "a table has at most 4294967295 next hops"
        );
        assert_eq!(
            NextHopsError { kind: NextHopsErrorKind::NoMemory { labels: 7 } }.to_string(),
            "the system has no memory left for more than 7 next hops"
        );
    }
}
