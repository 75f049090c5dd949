//! Route origin validation (RFC 6811): all payloads around a route are compared with its origin.

use std::fmt;

use fibula::fib::BuildError;
use fibula::map::{CompiledCovers, PrefixMap};
use fibula::net::{Dual, IpPrefix, Key, Prefix};

/// A validated ROA payload: this AS may announce this prefix, and prefixes inside it of at most this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// The prefix.
    pub prefix: IpPrefix,
    /// The longest prefix inside it that may be announced.
    pub max_len: u8,
    /// The AS; 0 forbids every AS to announce it.
    pub asn: u32,
}

/// The validation state of a route, and why it is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No payload is around the route.
    NotFound,
    /// No payload around it has its origin.
    InvalidAs,
    /// One has its origin, and allows no prefix of this length.
    InvalidLength,
    /// One has its origin and allows its length.
    Valid,
}

impl State {
    /// All states, as they are listed.
    pub const ALL: [Self; 4] = [Self::Valid, Self::InvalidAs, Self::InvalidLength, Self::NotFound];

    /// Returns the name as a value and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::InvalidAs => "invalid-as",
            Self::InvalidLength => "invalid-length",
            Self::NotFound => "not-found",
        }
    }
}

/// For people.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Valid => "valid",
            Self::InvalidAs => "invalid (AS)",
            Self::InvalidLength => "invalid (length)",
            Self::NotFound => "not found",
        })
    }
}

/// Payloads of both families, compiled.
///
/// ```
/// use fibula_feed::rpki::{Payload, State, Validator};
///
/// let payload = Payload { prefix: "192.0.2.0/24".parse()?, max_len: 24, asn: 64500 };
/// let (validator, mut states) = (Validator::new(&[payload])?, Vec::new());
/// validator.validate_v4(&["192.0.2.0/24".parse()?, "192.0.2.0/25".parse()?], &[Some(64500); 2], &mut states);
/// assert_eq!(states, [State::Valid, State::InvalidLength]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Validator(Dual<OfFamily<u32>, OfFamily<u128>>);

/// The permission of a payload, without its prefix.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    asn: u32,
    max_len: u8,
}

struct OfFamily<K> {
    /// By prefix, where its payloads begin and end in `allowed`.
    payloads: CompiledCovers<K, (u32, u32)>,
    allowed: Vec<Allowed>,
}

impl Validator {
    /// Compiles payloads.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(payloads: &[Payload]) -> Result<Self, BuildError> {
        let v4 = payloads.iter().filter_map(|payload| match payload.prefix {
            IpPrefix::V4(prefix) => Some((prefix, payload)),
            IpPrefix::V6(_) => None,
        });
        let v6 = payloads.iter().filter_map(|payload| match payload.prefix {
            IpPrefix::V6(prefix) => Some((prefix, payload)),
            IpPrefix::V4(_) => None,
        });
        Ok(Self(Dual::new(OfFamily::new(v4)?, OfFamily::new(v6)?)))
    }

    /// Validates routes: prefixes, and the AS that each originates from, `None` where there is not one. `states[i]` is then that of
    /// `prefixes[i]`.
    ///
    /// # Panics
    /// When there are fewer origins than prefixes.
    pub fn validate_v4(&self, prefixes: &[Prefix<u32>], origins: &[Option<u32>], states: &mut Vec<State>) {
        self.0.v4.validate(prefixes, origins, states);
    }

    /// The same for IPv6.
    ///
    /// # Panics
    /// As for IPv4.
    pub fn validate_v6(&self, prefixes: &[Prefix<u128>], origins: &[Option<u32>], states: &mut Vec<State>) {
        self.0.v6.validate(prefixes, origins, states);
    }
}

impl<K: Key> OfFamily<K> {
    fn new<'p>(payloads: impl Iterator<Item = (Prefix<K>, &'p Payload)>) -> Result<Self, BuildError> {
        let mut by_prefix = PrefixMap::<K, Vec<Allowed>>::new();
        for (prefix, &Payload { max_len, asn, .. }) in payloads {
            by_prefix.entry(prefix).or_default().push(Allowed { asn, max_len });
        }
        // In one list, in the order of the prefixes: nested ones are near each other.
        let mut allowed = Vec::new();
        let ranges: PrefixMap<K, (u32, u32)> = by_prefix
            .iter()
            .map(|(prefix, of_prefix)| {
                let start = allowed.len() as u32;
                allowed.extend_from_slice(of_prefix);
                (prefix, (start, allowed.len() as u32))
            })
            .collect();
        Ok(Self { payloads: ranges.compile_covers()?, allowed })
    }

    fn validate(&self, prefixes: &[Prefix<K>], origins: &[Option<u32>], states: &mut Vec<State>) {
        states.clear();
        states.resize(prefixes.len(), State::NotFound);
        self.payloads.covers_prefixes(prefixes, |at, _, &(start, end)| {
            // A payload for AS 0 forbids everybody to announce the prefix (RFC 6483, section 4), so no origin matches it.
            let origin = origins[at].filter(|&asn| asn != 0);
            for allowed in &self.allowed[start as usize..end as usize] {
                let state = match Some(allowed.asn) == origin {
                    true if prefixes[at].len() <= allowed.max_len => State::Valid,
                    true => State::InvalidLength,
                    false => State::InvalidAs,
                };
                states[at] = states[at].max(state);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_around_a_route_counts() {
        let payload = |text: &str, max_len, asn| Payload { prefix: text.parse().unwrap(), max_len, asn };
        let validator = Validator::new(&[
            payload("10.0.0.0/8", 16, 64_500),
            payload("10.1.0.0/16", 16, 64_501),
            payload("192.0.2.0/24", 24, 0),
            payload("2001:db8::/32", 48, 64_500),
        ])
        .unwrap();
        let mut states = Vec::new();
        for (prefix, asn, expected) in [
            ("10.1.0.0/16", Some(64_501), State::Valid),
            // The longest match is of another AS; the /8 matches.
            ("10.1.0.0/16", Some(64_500), State::Valid),
            ("10.1.2.0/24", Some(64_501), State::InvalidLength),
            ("10.1.2.0/24", Some(64_502), State::InvalidAs),
            ("10.1.0.0/16", None, State::InvalidAs),
            ("192.0.2.0/24", Some(0), State::InvalidAs),
            ("192.0.2.0/24", Some(64_500), State::InvalidAs),
            ("198.51.100.0/24", Some(64_500), State::NotFound),
            ("0.0.0.0/0", None, State::NotFound),
        ] {
            validator.validate_v4(&[prefix.parse().unwrap()], &[asn], &mut states);
            assert_eq!(states, [expected], "{prefix} {asn:?}");
        }
        validator.validate_v6(&["2001:db8:1::/48".parse().unwrap()], &[Some(64_500)], &mut states);
        assert_eq!(states, [State::Valid]);
    }
}
