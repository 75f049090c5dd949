//! Route origin validation (RFC 6811) with maps of values.
//!
//! `cargo run --release -p fibula --example rpki` prints the states of a few routes, and rates over generated payloads.
//! `docs/guide/maps.md` has the chapter.
//!
//! Validation is not longest-prefix match. *All* payloads around a route are compared: it is `Valid` if one of them has its
//! origin and allows its length, `Invalid` if there are some and none does, `NotFound` if there are none.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

use fibula::fib::BuildError;
use fibula::map::{CompiledCovers, PrefixMap};
use fibula::net::{Key, Prefix};

fn main() -> Result<(), Box<dyn Error>> {
    let out = &mut io::stdout().lock();
    run(out)?;
    rates(out)
}

/// A validated ROA payload: this AS may announce this prefix, and prefixes inside it of at most this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Payload<K> {
    pub(crate) prefix: Prefix<K>,
    pub(crate) max_len: u8,
    pub(crate) asn: u32,
}

/// The validation state of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    NotFound,
    Invalid,
    Valid,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotFound => "not-found",
            Self::Invalid => "invalid",
            Self::Valid => "valid",
        })
    }
}

/// The permission of a payload, without its prefix.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    asn: u32,
    max_len: u8,
}

/// Payloads, compiled for validation.
pub(crate) struct Validator<K> {
    /// By prefix, where the payloads of the prefix begin and end in `allowed`.
    payloads: CompiledCovers<K, (u32, u32)>,
    allowed: Vec<Allowed>,
}

impl<K: Key> Validator<K> {
    /// Compiles payloads. A prefix may have several.
    pub(crate) fn new(payloads: &[Payload<K>]) -> Result<Self, BuildError> {
        let mut by_prefix = PrefixMap::<K, Vec<Allowed>>::new();
        for &Payload { prefix, max_len, asn } in payloads {
            by_prefix.entry(prefix).or_default().push(Allowed { asn, max_len });
        }
        // In one list, in the order of the prefixes: nested ones are near each other.
        let mut allowed = Vec::with_capacity(payloads.len());
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

    /// Validates routes: prefixes, and the AS that each originates from, `None` where the path ends with a set. `states[i]` is
    /// that of `prefixes[i]`.
    pub(crate) fn validate(&self, prefixes: &[Prefix<K>], origins: &[Option<u32>], states: &mut [State]) {
        assert!(
            prefixes.len() == origins.len() && prefixes.len() == states.len(),
            "one origin and state a route"
        );
        states.fill(State::NotFound);
        self.payloads.covers_prefixes(prefixes, |at, _, &(start, end)| {
            let len = prefixes[at].len();
            // A payload for AS 0 forbids everybody to announce the prefix (RFC 6483, section 4), so no origin matches it.
            let origin = origins[at].filter(|&asn| asn != 0);
            let of_prefix = &self.allowed[start as usize..end as usize];
            let matches = |allowed: &Allowed| Some(allowed.asn) == origin && len <= allowed.max_len;
            if of_prefix.iter().any(matches) {
                states[at] = State::Valid;
            } else if states[at] == State::NotFound {
                states[at] = State::Invalid;
            }
        });
    }
}

/// The definition of RFC 6811, section 2: every payload is compared. What the validator is tested against.
#[allow(dead_code, reason = "the tests use it")]
pub(crate) fn by_definition<K: Key>(
    payloads: &[Payload<K>],
    prefix: Prefix<K>,
    origin: Option<u32>,
) -> State {
    let mut covering = payloads.iter().filter(|payload| payload.prefix.covers(prefix)).peekable();
    if covering.peek().is_none() {
        return State::NotFound;
    }
    let matches = |payload: &Payload<K>| {
        payload.asn != 0 && origin == Some(payload.asn) && prefix.len() <= payload.max_len
    };
    if covering.any(matches) { State::Valid } else { State::Invalid }
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let payload = |text: &str, max_len, asn| -> Result<_, Box<dyn Error>> {
        Ok(Payload::<u32> { prefix: text.parse()?, max_len, asn })
    };
    let validator = Validator::new(&[
        payload("10.0.0.0/8", 16, 64500)?,
        payload("10.1.0.0/16", 16, 64501)?,
        payload("192.0.2.0/24", 24, 0)?,
    ])?;
    let routes = [
        ("10.1.0.0/16", 64501),
        // The longest match is of another AS; the /8 matches.
        ("10.1.0.0/16", 64500),
        // The right AS, but longer than either payload allows.
        ("10.1.2.0/24", 64501),
        ("192.0.2.0/24", 64500),
        ("198.51.100.0/24", 64500),
    ];
    let prefixes = routes.map(|(text, _)| text.parse().expect("a prefix"));
    let origins = routes.map(|(_, asn)| Some(asn));
    let mut states = [State::NotFound; 5];
    validator.validate(&prefixes, &origins, &mut states);
    for ((prefix, asn), state) in routes.iter().zip(states) {
        writeln!(out, "{prefix:<15} AS{asn} {state}")?;
    }
    Ok(())
}

/// Splitmix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    fn below(&mut self, end: u32) -> u32 {
        (self.bits() % u64::from(end)) as u32
    }
}

/// Lengths of allocations, each as often as it is here: most are short of /24 by a bit or two.
const LENGTHS: [u8; 16] = [14, 16, 19, 20, 21, 22, 22, 22, 22, 23, 23, 24, 24, 24, 24, 24];

/// Returns payloads of a seed: allocations, and in each one or two payloads of its holder, which nest, with other maximum lengths,
/// and some of AS 0; for IPv6 all are 16 bits longer.
pub(crate) fn generate<K: Key>(random: &mut Random, count: usize) -> Vec<Payload<K>> {
    // Global unicast addresses, of which IPv6 uses the bits after the first three.
    let (base, high, shift, most) = if K::BITS > 32 { (0b001_u128 << 125, 3, 16, 48) } else { (0, 0, 0, 24) };
    let mut payloads = Vec::with_capacity(count);
    while payloads.len() < count {
        let len = LENGTHS[random.below(LENGTHS.len() as u32) as usize] + shift;
        let allocation =
            Prefix::masked(K::from_bits(base | random.wide() >> high), len).expect("it is in the width");
        let asn = 1 + random.below(90_000);
        for _ in 0..1 + random.below(2) {
            let len = (len + random.below(3) as u8).min(most);
            let inside = K::from_bits(random.wide()).and(K::mask(allocation.len()).not());
            let prefix = Prefix::masked(allocation.addr().or(inside), len).expect("it is in the width");
            let longer = if random.below(3) == 0 { random.below(u32::from(most - len) + 1) as u8 } else { 0 };
            let asn = if random.below(50) == 0 { 0 } else { asn };
            payloads.push(Payload { prefix, max_len: len + longer, asn });
        }
    }
    payloads.truncate(count);
    payloads
}

/// Routes: prefixes, and the AS of each.
pub(crate) type Routes<K> = (Vec<Prefix<K>>, Vec<Option<u32>>);

/// Returns routes, most of them inside payloads and from their AS, some longer than is allowed, from another AS or from none.
pub(crate) fn routes<K: Key>(random: &mut Random, payloads: &[Payload<K>], count: usize) -> Routes<K> {
    let (mut prefixes, mut origins) = (Vec::new(), Vec::new());
    while prefixes.len() < count {
        let Payload { prefix, max_len, asn } = payloads[random.below(payloads.len() as u32) as usize];
        let len = match random.below(8) {
            0 => prefix.len().saturating_sub(1 + random.below(4) as u8),
            1 => (max_len + 1).min(K::BITS),
            _ => prefix.len() + random.below(u32::from(max_len - prefix.len()) + 1) as u8,
        };
        let addr = if random.below(4) == 0 { K::from_bits(random.wide()) } else { prefix.addr() };
        let Ok(prefix) = Prefix::masked(addr, len) else { continue };
        prefixes.push(prefix);
        origins.push(match random.below(10) {
            0 => Some(1 + random.below(90_000)),
            1 => None,
            _ => Some(asn),
        });
    }
    (prefixes, origins)
}

/// Payloads and routes of the measurement.
const PAYLOADS: usize = 500_000;
const ROUTES: usize = 1_000_000;
/// Routes of one call.
const BATCH: usize = 256;

/// Prints what a validation takes: the median of nine passes.
fn rates(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    if cfg!(debug_assertions) {
        writeln!(out, "no rates: run it with --release")?;
        return Ok(());
    }
    rate::<u32>(out)?;
    rate::<u128>(out)
}

fn rate<K: Key>(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let mut random = Random(1);
    let payloads = generate::<K>(&mut random, PAYLOADS);
    let (mut prefixes, mut origins) = routes(&mut random, &payloads, ROUTES);
    let start = Instant::now();
    let validator = Validator::new(&payloads)?;
    let build = start.elapsed();
    let mut states = vec![State::NotFound; ROUTES];
    // In order is how a table is validated when its payloads have changed.
    for (batch, is_ordered) in [(1, false), (BATCH, false), (BATCH, true)] {
        if is_ordered {
            let mut pairs: Vec<_> = prefixes.iter().copied().zip(origins.iter().copied()).collect();
            pairs.sort_unstable();
            (prefixes, origins) = pairs.into_iter().unzip();
        }
        let mut passes: Vec<f64> = (0..9)
            .map(|_| {
                let start = Instant::now();
                let all = prefixes.chunks(batch).zip(origins.chunks(batch)).zip(states.chunks_mut(batch));
                all.for_each(|((prefixes, origins), states)| validator.validate(prefixes, origins, states));
                start.elapsed().as_secs_f64() * 1e9 / ROUTES as f64
            })
            .collect();
        passes.sort_by(f64::total_cmp);
        writeln!(
            out,
            "{}: {:.1} ns a validation in calls of {batch}, routes in {} order ({} payloads, built in {:.0} ms, {:.1} MB)",
            K::FAMILY,
            passes[4],
            if is_ordered { "their" } else { "random" },
            payloads.len(),
            build.as_secs_f64() * 1e3,
            validator.payloads.memory().held_bytes() as f64 / 1e6
        )?;
    }
    let count = |state| states.iter().filter(|&&other| other == state).count();
    let [valid, invalid, not_found] = [State::Valid, State::Invalid, State::NotFound].map(count);
    writeln!(out, "{}: {valid} valid, {invalid} invalid, {not_found} not found", K::FAMILY)?;
    Ok(())
}
