//! Buffers against vectors: the same elements after the same operations, within the limit, and counted to the byte.

use fibula::memory::{self, ALIGN_BYTES, Budget, Buffer, HUGE_PAGE_BYTES, Limits, OutOfMemory};
use fibula_proof::allocator::{ALWAYS_GRANTED_BYTES, TestAllocator, measure};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: TestAllocator = TestAllocator;

/// What is done to a buffer. Numbers of elements are in units of a 64th of a huge page of bytes.
#[derive(Debug, Clone)]
enum Op {
    Push(u8),
    Extend(usize),
    Within(usize),
    Resize(usize),
    Truncate(usize),
    Reserve(usize),
    Shrink,
    Copy,
    Settle,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        any::<u8>().prop_map(Op::Push),
        (0..40_usize).prop_map(Op::Extend),
        (0..40_usize).prop_map(Op::Within),
        (0..160_usize).prop_map(Op::Resize),
        (0..160_usize).prop_map(Op::Truncate),
        (0..100_usize).prop_map(Op::Reserve),
        Just(Op::Shrink),
        Just(Op::Copy),
        Just(Op::Settle),
    ];
    prop::collection::vec(op, 0..20)
}

/// A buffer, and the vector it must equal.
struct Pair<T: Copy> {
    budget: Budget,
    buffer: Buffer<T>,
    model: Vec<T>,
    live_bytes: isize,
    limits: Limits,
    /// What the allocator has, if that is not all it wants.
    there: Option<usize>,
}

impl<T: Copy + PartialEq + core::fmt::Debug> Pair<T> {
    /// Makes room for so many more. Returns whether there is room.
    fn reserve(&mut self, more: usize) -> bool {
        let before = (self.buffer.as_ptr(), self.budget.used_bytes());
        let (result, usage) = measure(self.there, || self.budget.reserve(&mut self.buffer, more));
        self.live_bytes += usage.live_bytes;
        if let Some(limit) = self.limits.memory_bytes {
            let peak = before.1.max(memory::of(&self.buffer).held_bytes()) + usage.peak_bytes as usize;
            assert!(
                usage.peak_bytes <= limit as isize && self.budget.used_bytes() <= limit,
                "{peak} of {limit}"
            );
        }
        let Err(OutOfMemory { wanted_bytes, limit_bytes, .. }) = result else { return true };
        assert_eq!((self.buffer.as_ptr(), self.budget.used_bytes()), before, "refused, but changed");
        assert!(wanted_bytes >= (self.model.len() + more) * size_of::<T>());
        assert!(limit_bytes.is_none_or(|limit| Some(limit) == self.limits.memory_bytes));
        assert!(limit_bytes.is_some() || self.there.is_some(), "refused without a reason");
        false
    }

    fn apply(&mut self, op: &Op, element: impl Fn(usize) -> T) {
        let unit = HUGE_PAGE_BYTES / 64 / size_of::<T>();
        match *op {
            Op::Push(byte) => {
                let value = element(byte.into());
                let (result, usage) = measure(self.there, || self.budget.push(&mut self.buffer, value));
                self.live_bytes += usage.live_bytes;
                if result.is_ok() {
                    self.model.push(value);
                }
            }
            Op::Extend(units) => {
                let more: Vec<T> = (0..units * unit + 1).map(element).collect();
                if self.reserve(more.len()) {
                    self.buffer.extend_from_slice(&more);
                    self.model.extend_from_slice(&more);
                }
            }
            Op::Within(units) => {
                let range = self.model.len() / 3..(self.model.len() / 3 + units * unit).min(self.model.len());
                if self.reserve(range.len()) {
                    self.buffer.extend_from_within(range.clone());
                    self.model.extend_from_within(range);
                }
            }
            Op::Resize(units) => {
                let len = units * unit;
                if self.reserve(len.saturating_sub(self.model.len())) {
                    self.buffer.resize(len, element(units));
                    self.model.resize(len, element(units));
                }
            }
            Op::Truncate(units) => {
                self.buffer.truncate(units * unit);
                self.model.truncate(units * unit);
            }
            Op::Reserve(units) => {
                self.reserve(units * unit);
            }
            Op::Shrink => {
                let ((), usage) = measure(self.there, || self.budget.shrink(&mut self.buffer));
                self.live_bytes += usage.live_bytes;
            }
            Op::Copy => {
                let copy = self.buffer.clone();
                assert_eq!(copy[..], self.model[..]);
                assert!(
                    memory::of(&copy).held_bytes()
                        <= copy.len() * size_of::<T>() * 9 / 8 + HUGE_PAGE_BYTES / 16
                );
            }
            Op::Settle => {
                let ((), usage) = measure(None, || self.budget.free(std::mem::take(&mut self.buffer)));
                self.live_bytes += usage.live_bytes;
                self.model.clear();
            }
        }
        self.holds();
    }

    fn holds(&self) {
        assert!(self.buffer[..] == self.model[..]);
        let memory = memory::of(&self.buffer);
        assert_eq!(memory.lookup_bytes, self.model.len() * size_of::<T>());
        assert_eq!(memory.allocated_bytes as isize, self.live_bytes, "{memory:?}");
        assert_eq!(memory.held_bytes(), self.budget.used_bytes());
        assert_eq!(memory.mapped_bytes > 0, self.buffer.is_mapped());
        assert_eq!(memory.huge_bytes, memory.mapped_bytes);
        assert!(self.limits.huge_pages || !self.buffer.is_mapped());
        let aligned = if self.buffer.is_mapped() { HUGE_PAGE_BYTES } else { ALIGN_BYTES };
        assert_eq!(self.buffer.as_ptr().align_offset(aligned), 0);
    }
}

fn follow<T: Copy + PartialEq + core::fmt::Debug>(
    ops: &[Op],
    limits: Limits,
    there: Option<usize>,
    element: impl Fn(usize) -> T,
) {
    let budget = Budget::new(limits);
    let mut pair = Pair { budget, buffer: Buffer::new(), model: Vec::new(), live_bytes: 0, limits, there };
    for op in ops {
        pair.apply(op, &element);
    }
    let ((), usage) = measure(None, || drop(pair.buffer));
    assert_eq!(pair.live_bytes + usage.live_bytes, 0, "something is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buffers_are_vectors(
        ops in ops(),
        limit in prop::option::of(0..3 * HUGE_PAGE_BYTES),
        there in prop::option::of(0..3 * HUGE_PAGE_BYTES),
        huge_pages: bool,
    ) {
        let limits = Limits { memory_bytes: limit, huge_pages };
        follow::<u8>(&ops, limits, there, |at| at as u8);
        follow::<u16>(&ops, limits, there, |at| at as u16);
        follow::<[u32; 5]>(&ops, limits, there, |at| [at as u32; 5]);
        follow::<u128>(&ops, limits, there, |at| (at as u128) << 90);
    }
}

/// The limit has no room for whole pages: the allocator serves, to the byte.
#[test]
fn a_tight_limit_gets_no_huge_pages() {
    let bytes = HUGE_PAGE_BYTES - 1000;
    let mut budget = Budget::new(Limits::within(bytes));
    let (buffer, usage) = measure(None, || budget.buffer::<u8>(bytes).unwrap());
    assert_eq!((buffer.is_mapped(), usage.live_bytes), (false, bytes as isize));
    assert!(budget.buffer::<u8>(1).is_err());
}

/// An allocator that has nothing left grants no buffer of a few bytes.
#[test]
fn small_buffers_need_the_allocator() {
    let mut budget = Budget::default();
    let error = measure(Some(0), || budget.buffer::<u8>(ALWAYS_GRANTED_BYTES + 1)).0.unwrap_err();
    assert_eq!(error.limit_bytes, None);
}

/// Large buffers come from the system's mappings, not from the allocator.
#[test]
#[ignore = "needs huge pages"]
fn huge_pages_need_no_allocator() {
    let (large, usage) = measure(Some(0), || Budget::default().buffer::<u64>(HUGE_PAGE_BYTES));
    assert_eq!(usage.peak_bytes, 0);
    assert!(large.unwrap().is_mapped());
}
