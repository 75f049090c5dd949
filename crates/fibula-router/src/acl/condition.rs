//! Conditions: the packets that a rule is about.

use fibula::net::IpPrefix;

use super::RuleError;
use super::fields::{Field, HeaderFields};
use super::list::{BothSets, PrefixLists};

/// Addresses of a condition: prefixes and lists of prefixes, or with `negated` all others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Addresses {
    /// Whether all other addresses are meant, of both families.
    pub negated: bool,
    /// Prefixes.
    pub prefixes: Vec<IpPrefix>,
    /// Names of lists.
    pub lists: Vec<String>,
}

/// Values of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ValueTest {
    /// Ranges, from a first to a last value.
    Ranges {
        /// Whether all other values are meant. A packet without the field has none of them.
        negated: bool,
        /// The ranges.
        ranges: Vec<(u16, u16)>,
    },
    /// Bits: any of these pairs of bits that must be set, and bits that must not.
    Bits(Vec<(u16, u16)>),
    /// Names of interfaces or VRFs.
    Names {
        /// Whether all others are meant.
        negated: bool,
        /// The names.
        names: Vec<String>,
    },
}

impl ValueTest {
    /// Returns whether a value passes. Names are unknown here, so none does.
    #[must_use]
    pub fn contains(&self, value: u16) -> bool {
        match self {
            Self::Ranges { negated, ranges } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&value)) != *negated
            }
            Self::Bits(bits) => bits.iter().any(|&(set, clear)| value & set == set && value & clear == 0),
            Self::Names { .. } => false,
        }
    }
}

/// The packets that a rule is about: those that pass all of its tests. Without tests, all packets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Condition {
    /// Whether packets are of IPv6 alone, or of IPv4 alone.
    pub v6: Option<bool>,
    /// Their source addresses.
    pub source: Option<Addresses>,
    /// Their destination addresses.
    pub destination: Option<Addresses>,
    /// Tests of other fields, at most one of each field, in the order of the text.
    pub tests: Vec<(Field, ValueTest)>,
}

/// Addresses whose lists were found.
#[derive(Debug, Clone)]
struct ReadyAddresses {
    negated: bool,
    sets: Vec<std::sync::Arc<BothSets>>,
}

impl ReadyAddresses {
    fn contains(&self, v6: bool, address: u128) -> bool {
        self.sets.iter().any(|set| set.contains(v6, address)) != self.negated
    }
}

/// A condition whose names were found: it tests one packet at a time.
#[derive(Debug, Clone)]
pub struct Ready {
    v6: Option<bool>,
    source: Option<ReadyAddresses>,
    destination: Option<ReadyAddresses>,
    tests: Vec<(Field, ValueTest)>,
}

/// Finds the number of an interface ([`Field::In`], [`Field::Out`]) or a VRF by its name.
pub type Find<'f> = dyn Fn(Field, &str) -> Option<u16> + 'f;

/// Replaces names by numbers.
pub(super) fn numbered(field: Field, test: &ValueTest, find: &Find<'_>) -> Result<ValueTest, RuleError> {
    let ValueTest::Names { negated, names } = test else { return Ok(test.clone()) };
    let number = |name: &String| {
        let found = find(field, name).map(|number| (number, number));
        let kind = if field == Field::Vrf { "VRF" } else { "interface" };
        found.ok_or_else(|| RuleError(format!("{}: no {kind} '{name}'", field.name())))
    };
    let ranges = names.iter().map(number).collect::<Result<_, _>>()?;
    Ok(ValueTest::Ranges { negated: *negated, ranges })
}

impl Condition {
    /// Finds lists, interfaces and VRFs by their names.
    ///
    /// # Errors
    /// When there is none of a name.
    pub fn resolve(&self, lists: &PrefixLists, find: &Find<'_>) -> Result<Ready, RuleError> {
        let addresses = |addresses: &Option<Addresses>| -> Result<Option<ReadyAddresses>, RuleError> {
            let Some(Addresses { negated, prefixes, lists: names }) = addresses else { return Ok(None) };
            let mut inline = BothSets::default();
            prefixes.iter().try_for_each(|&prefix| inline.insert(prefix))?;
            let mut sets = vec![std::sync::Arc::new(inline)];
            for name in names {
                sets.push(lists.get(name)?);
            }
            Ok(Some(ReadyAddresses { negated: *negated, sets }))
        };
        let tests = self.tests.iter().map(|(field, test)| Ok((*field, numbered(*field, test, find)?)));
        Ok(Ready {
            v6: self.v6,
            source: addresses(&self.source)?,
            destination: addresses(&self.destination)?,
            tests: tests.collect::<Result<_, RuleError>>()?,
        })
    }

    /// Returns whether the field is tested.
    #[must_use]
    pub fn tests(&self, field: Field) -> bool {
        self.tests.iter().any(|test| test.0 == field)
    }
}

impl Ready {
    /// Returns whether a packet passes all tests.
    #[must_use]
    pub fn matches(&self, packet: &HeaderFields) -> bool {
        let passes = |(field, test): &(Field, ValueTest)| match (field, packet.ports) {
            (Field::Port, Some((source, destination))) => test.contains(source) || test.contains(destination),
            _ => packet.get(*field).is_some_and(|value| test.contains(value)),
        };
        let near = |addresses: &Option<ReadyAddresses>, address| {
            addresses.as_ref().is_none_or(|addresses| addresses.contains(packet.v6, address))
        };
        self.v6.is_none_or(|v6| v6 == packet.v6)
            && near(&self.source, packet.source)
            && near(&self.destination, packet.destination)
            && self.tests.iter().all(passes)
    }
}
