//! Rules compiled for bursts of packets.
//!
//! Each rule is a bit. For every field that some rule tests, the packet's value leads to a row of bits: the rules that the value does
//! not exclude (bit vectors: Lakshman and Stiliadis, SIGCOMM 1998). Addresses find their row by a longest-prefix match over all prefixes
//! of all rules, whole bursts at a time. The rows are combined by `and`, and the first bit that is left is the first rule that the packet
//! passes. So a packet costs a lookup for each field, and an `and` for each field and 64 rules, wherever its rule is in the list.

use std::sync::Arc;

use super::condition::{Addresses, Find, ValueTest, numbered};
use super::count::{RuleCounts, RuleTotals, WorkerCounts};
use super::dimension::{Numbers, Prefixes, row};
use super::fields::{Field, HeaderFields};
use super::list::{BothSets, PrefixLists};
use super::log::{Log, LogRate, Logged};
use super::protocol::Protocols;
use super::room::{BurstRows, RuleVerdict};
use super::{Action, MOST_RULES, Rule, RuleError};

/// The packets that a set of rules is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RulePlace {
    /// Packets that the router forwards.
    Forward,
    /// Packets for the router itself, and for the kernel of its machine.
    Local,
}

impl RulePlace {
    /// Returns its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Local => "local",
        }
    }
}

/// The rule of a bit. A rule has two if it tests either port, one for each port.
#[derive(Debug, Clone, Copy)]
struct Bit {
    rule: u16,
    action: Action,
    log: bool,
}

/// Addresses of one direction.
#[derive(Debug)]
pub(super) struct Direction {
    pub(super) v4: Prefixes<u32>,
    pub(super) v6: Prefixes<u128>,
}

/// The decision of rules about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// Permit, deny or reject.
    pub action: Action,
    /// Number of the rule that decided; `None` if no rule did, so that the default holds.
    pub rule: Option<usize>,
}

/// Compiled rules with their counters.
#[derive(Debug)]
pub struct RuleSet {
    rules: Vec<Rule>,
    default: Action,
    pub(super) words: usize,
    bits: Box<[Bit]>,
    /// The decision of a packet by the first rule that it passes, by the rule's bit; those after the last bit are of packets that pass
    /// no rule.
    pub(super) verdicts: Box<[RuleVerdict]>,
    pub(super) source: Option<Direction>,
    pub(super) destination: Option<Direction>,
    /// The row of IPv4 and then that of IPv6, where rules test the family.
    families: Option<Vec<u64>>,
    /// The rows of both families and all protocols together.
    pub(super) protocols: Protocols,
    /// By field; `None` for those that no rule tests.
    numbers: [Option<Numbers>; Field::COUNT],
    /// The interface by which a packet leaves. It is known when the packet's route is, and the other fields before.
    outs: Option<Numbers>,
    counts: RuleTotals,
    log: Log,
}

/// A bit before it is compiled: its tests by field.
struct Draft<'r> {
    bit: Bit,
    rule: &'r Rule,
    tests: Vec<(Field, ValueTest)>,
}

impl Draft<'_> {
    fn tests(&self, field: Field) -> bool {
        self.tests.iter().any(|test| test.0 == field)
    }

    fn passes(&self, field: Field, value: u16) -> bool {
        self.tests.iter().filter(|test| test.0 == field).all(|test| test.1.contains(value))
    }
}

impl RuleSet {
    /// Compiles rules, for packets of which the default is `default`.
    ///
    /// # Errors
    /// When there are more than [`MOST_RULES`], when a name is unknown, or when the rules need too much memory.
    pub fn compile(
        rules: Vec<Rule>,
        default: Action,
        rate: LogRate,
        lists: &PrefixLists,
        find: &Find<'_>,
    ) -> Result<Self, RuleError> {
        if rules.len() > MOST_RULES {
            return Err(RuleError(format!("{} rules: there may be {MOST_RULES}", rules.len())));
        }
        let mut drafts = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let tests = rule.condition.tests.iter();
            let tests = tests.map(|(field, test)| Ok((*field, numbered(*field, test, find)?)));
            let tests = tests.collect::<Result<Vec<_>, RuleError>>()?;
            let bit = Bit { rule: number as u16, action: rule.action, log: rule.log };
            // One bit for each port, because a dimension can only exclude rules, never ask for one of two fields.
            let fields = match rule.condition.tests(Field::Port) {
                true => &[Field::SourcePort, Field::DestinationPort][..],
                false => &[Field::Port],
            };
            for &port in fields {
                let either = |(field, test): &(Field, ValueTest)| match field {
                    Field::Port => (port, test.clone()),
                    _ => (*field, test.clone()),
                };
                drafts.push(Draft { bit, rule, tests: tests.iter().map(either).collect() });
            }
        }
        // Words that bursts combine in registers, because packets of few rules are the usual ones.
        let words = match drafts.len().div_ceil(64) {
            0 => 1,
            3 => 4,
            words => words,
        };
        let all = |wanted: &dyn Fn(&Draft<'_>) -> bool| {
            row(words, drafts.iter().enumerate().filter(|draft| wanted(draft.1)).map(|draft| draft.0))
        };
        let mut numbers = [const { None }; Field::COUNT];
        for &field in Field::ALL {
            let tested: Vec<usize> = (0..drafts.len()).filter(|&bit| drafts[bit].tests(field)).collect();
            if tested.is_empty() {
                continue;
            }
            let others = all(&|draft| !draft.tests(field));
            let starts = starts(field, tested.iter().flat_map(|&bit| &drafts[bit].tests));
            let passes = |bit: usize, value: u16| drafts[bit].passes(field, value);
            let compiled = Numbers::compile(words, field.most(), starts, &others, &tested, passes)?;
            numbers[field as usize] = Some(compiled);
        }
        let outs = numbers[Field::Out as usize].take();
        let family = |v6: bool| all(&|draft| draft.rule.condition.v6.is_none_or(|wanted| wanted == v6));
        let has_family = rules.iter().any(|rule| rule.condition.v6.is_some());
        let direction =
            |addresses: fn(&Rule) -> Option<&Addresses>| direction(words, &drafts, lists, addresses);
        let families = has_family.then(|| [family(false), family(true)].concat());
        let protocols = numbers[Field::Protocol as usize].as_ref();
        Ok(Self {
            protocols: Protocols::compile(words, families.as_deref(), protocols)?,
            source: direction(|rule| rule.condition.source.as_ref())?,
            destination: direction(|rule| rule.condition.destination.as_ref())?,
            families,
            verdicts: verdicts(words, &drafts, default, rules.len()),
            numbers,
            outs,
            bits: drafts.iter().map(|draft| draft.bit).collect(),
            words,
            default,
            counts: RuleTotals::new(rules.len()),
            log: Log::new(rate),
            rules,
        })
    }

    /// Returns the rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the default.
    #[must_use]
    pub const fn default_action(&self) -> Action {
        self.default
    }

    /// Returns the counts of each rule, and at the end those of packets that no rule decided.
    #[must_use]
    pub fn counts(&self) -> Vec<RuleCounts> {
        self.counts.sums()
    }

    /// Adds the counts of earlier rules to those of equal rules here.
    pub fn go_on_from(&self, earlier: &Self) {
        let counts = earlier.counts();
        let mut left: Vec<bool> = vec![true; earlier.rules.len()];
        for (number, rule) in self.rules.iter().enumerate() {
            // Each earlier rule once, because equal rules may be there several times.
            let same = (0..earlier.rules.len()).find(|&at| left[at] && earlier.rules[at] == *rule);
            if let Some(at) = same {
                left[at] = false;
                self.counts.add_before(number, counts[at]);
            }
        }
        self.counts.add_before(self.rules.len(), counts[earlier.rules.len()]);
    }

    /// Makes the counters of one more worker.
    #[must_use]
    pub fn join(&self) -> Arc<WorkerCounts> {
        self.counts.join()
    }

    /// Takes the packets that rules want in the log, and the number of those that were left out since the last call.
    #[must_use]
    pub fn take_logged(&self) -> (Vec<Logged>, u64) {
        self.log.take()
    }

    /// Returns the dimension of a field; `None` if no rule tests it.
    #[inline]
    pub(super) const fn field(&self, field: Field) -> Option<&Numbers> {
        self.numbers[field as usize].as_ref()
    }

    /// Returns whether the first rule that a packet of a burst passes permits it, by whichever interface it leaves, and counts it then.
    /// If not, [`judge`](Self::judge) has the decision.
    #[inline(always)]
    pub(crate) fn permits(&self, (burst, place): (&BurstRows, usize), counts: &WorkerCounts) -> bool {
        let verdict = burst.verdict(place);
        let permits = verdict.permits();
        if permits {
            counts.add(verdict.rule(), burst.length(place));
        }
        permits
    }

    /// Decides about a packet of a burst that leaves by `output`, and counts it. `log` is called with each rule that wants it in the log.
    #[inline]
    pub(crate) fn judge(
        &self,
        (burst, place): (&BurstRows, usize),
        output: u16,
        counts: &WorkerCounts,
        log: impl FnMut(usize),
    ) -> Action {
        let verdict = burst.verdict(place);
        match verdict.action() {
            Some(action) => {
                counts.add(verdict.rule(), burst.length(place));
                action
            }
            None => self.judge_on(burst.row(place), output, burst.length(place), counts, log),
        }
    }

    /// Decides about a packet whose first rule does not do so alone.
    #[inline(never)]
    fn judge_on(
        &self,
        row: &[u64],
        output: u16,
        length: u64,
        counts: &WorkerCounts,
        mut log: impl FnMut(usize),
    ) -> Action {
        let rows = [row, self.outs.as_ref().map_or(row, |outs| outs.row(Some(output)))];
        let ruling = self.first(&rows, |bit| {
            counts.add(usize::from(bit.rule), length);
            if bit.log {
                log(usize::from(bit.rule));
            }
        });
        if ruling.rule.is_none() {
            counts.add(self.rules.len(), length);
        }
        ruling.action
    }

    /// Notes a packet for the log.
    #[cold]
    pub(crate) fn note(&self, rule: usize, packet: &HeaderFields, now_ns: u64) {
        self.log.note(rule, packet, now_ns);
    }

    /// Decides about one packet, counts it and notes it for the log.
    pub(crate) fn judge_one(&self, packet: &HeaderFields, counts: &WorkerCounts, now_ns: u64) -> Action {
        let bytes = u64::from(packet.length);
        let ruling = self.decide(packet, |bit| {
            counts.add(usize::from(bit.rule), bytes);
            if bit.log {
                self.log.note(usize::from(bit.rule), packet, now_ns);
            }
        });
        if ruling.rule.is_none() {
            counts.add(self.rules.len(), bytes);
        }
        ruling.action
    }

    /// Decides about a packet without counting it. `passed` is called with the number of each rule that the packet passes, up to the
    /// one that decides.
    pub fn explain(&self, packet: &HeaderFields, mut passed: impl FnMut(usize)) -> Ruling {
        self.decide(packet, |bit| passed(usize::from(bit.rule)))
    }

    fn decide(&self, packet: &HeaderFields, passed: impl FnMut(&Bit)) -> Ruling {
        const EMPTY: &[u64] = &[];
        // The rows of all fields that are tested: source, destination, family, and the others.
        let mut rows = [EMPTY; 3 + Field::COUNT];
        let mut count = 0;
        let mut put = |row| {
            rows[count] = row;
            count += 1;
        };
        if let Some(direction) = &self.source {
            put(direction.row(packet.v6, packet.source));
        }
        if let Some(direction) = &self.destination {
            put(direction.row(packet.v6, packet.destination));
        }
        if let Some(families) = &self.families {
            put(&families[usize::from(packet.v6) * self.words..][..self.words]);
        }
        for &field in Field::ALL {
            if let Some(numbers) = self.field(field) {
                put(numbers.row(packet.get(field)));
            }
        }
        if let Some(outs) = &self.outs {
            put(outs.row(packet.output));
        }
        self.first(&rows[..count], passed)
    }

    /// Goes through the rules that are in all rows, up to the one that decides.
    #[inline]
    fn first(&self, rows: &[&[u64]], mut passed: impl FnMut(&Bit)) -> Ruling {
        let mut last = None;
        for word in 0..self.words {
            let mut bits = u64::MAX;
            for row in rows {
                bits &= row[word];
            }
            while bits != 0 {
                // Bits above the last rule are set where no field is tested.
                let Some(bit) = self.bits.get(word * 64 + bits.trailing_zeros() as usize) else { break };
                bits &= bits - 1;
                // A rule with two bits is passed once.
                if last == Some(bit.rule) {
                    continue;
                }
                last = Some(bit.rule);
                passed(bit);
                if bit.action != Action::Count {
                    return Ruling { action: bit.action, rule: Some(usize::from(bit.rule)) };
                }
            }
        }
        Ruling { action: self.default, rule: None }
    }
}

impl Direction {
    /// Returns the rules that an address does not exclude.
    fn row(&self, v6: bool, address: u128) -> &[u64] {
        let mut found = [None];
        match v6 {
            true => {
                self.v6.look_up(&[address], &mut found);
                self.v6.row(found[0])
            }
            false => {
                self.v4.look_up(&[address as u32], &mut found);
                self.v4.row(found[0])
            }
        }
    }
}

/// Returns the decision of each bit, if a packet passes it first.
fn verdicts(words: usize, drafts: &[Draft<'_>], default: Action, rules: usize) -> Box<[RuleVerdict]> {
    let of = |draft: &Draft<'_>| {
        // By which interface a packet leaves is not known yet, and a rule that counts does not end the search.
        let is_final = !draft.bit.log && draft.bit.action != Action::Count && !draft.tests(Field::Out);
        RuleVerdict::new(usize::from(draft.bit.rule), is_final.then_some(draft.bit.action))
    };
    let mut verdicts: Vec<RuleVerdict> = drafts.iter().map(of).collect();
    verdicts.resize(words * 64 + 1, RuleVerdict::new(rules, Some(default)));
    verdicts.into()
}

/// Returns the values from which on other tests of a field may pass.
fn starts<'t>(field: Field, tests: impl Iterator<Item = &'t (Field, ValueTest)>) -> Vec<u16> {
    let mut starts = Vec::new();
    for (_, test) in tests.filter(|test| test.0 == field) {
        match test {
            ValueTest::Ranges { ranges, .. } => {
                starts.extend(
                    ranges.iter().flat_map(|&(first, last)| [Some(first), last.checked_add(1)]).flatten(),
                );
            }
            // Each value may differ.
            ValueTest::Bits(_) => starts.extend(0..=field.most()),
            ValueTest::Names { .. } => {}
        }
    }
    starts
}

/// Compiles the addresses of one direction; `None` if no rule tests them.
fn direction(
    words: usize,
    drafts: &[Draft<'_>],
    lists: &PrefixLists,
    addresses: fn(&Rule) -> Option<&Addresses>,
) -> Result<Option<Direction>, RuleError> {
    let mut sets: Vec<Arc<BothSets>> = Vec::new();
    let mut names: Vec<(&str, u32)> = Vec::new();
    // For each bit that tests the addresses, its sets, and whether all others are meant.
    let mut tested: Vec<(usize, Vec<u32>, bool)> = Vec::new();
    for (bit, draft) in drafts.iter().enumerate() {
        let Some(addresses) = addresses(draft.rule) else { continue };
        let mut own = Vec::new();
        if !addresses.prefixes.is_empty() {
            let mut inline = BothSets::default();
            addresses.prefixes.iter().try_for_each(|&prefix| inline.insert(prefix))?;
            own.push(sets.len() as u32);
            sets.push(Arc::new(inline));
        }
        for name in &addresses.lists {
            // A list is one set however many rules name it, because each set makes combinations.
            let number = match names.iter().find(|known| known.0 == name) {
                Some(known) => known.1,
                None => {
                    sets.push(lists.get(name)?);
                    names.push((name, sets.len() as u32 - 1));
                    sets.len() as u32 - 1
                }
            };
            own.push(number);
        }
        tested.push((bit, own, addresses.negated));
    }
    if tested.is_empty() {
        return Ok(None);
    }
    let others: Vec<usize> = (0..drafts.len()).filter(|&bit| addresses(drafts[bit].rule).is_none()).collect();
    let passing = |inside: &[u32]| {
        let passes = |own: &[u32]| own.iter().any(|set| inside.binary_search(set).is_ok());
        let tested = tested.iter().filter(|(_, own, negated)| passes(own) != *negated);
        row(words, others.iter().copied().chain(tested.map(|test| test.0)))
    };
    Ok(Some(Direction {
        v4: Prefixes::compile(words, sets.iter().map(|set| &set.v4), passing)?,
        v6: Prefixes::compile(words, sets.iter().map(|set| &set.v6), passing)?,
    }))
}
