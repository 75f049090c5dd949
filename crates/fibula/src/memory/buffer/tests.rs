//! Blocks, moves between them, and what the system says of mappings.

use super::*;
use crate::memory::{Budget, Limits, of};

#[cfg(all(target_os = "linux", not(miri)))]
const MIB: usize = 1 << 20;

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn mappings_waste_an_eighth_at_most() {
    let page = pages::size().unwrap();
    assert_eq!(mapping(0, Tail::Fitting), None);
    assert_eq!(mapping(MIB, Tail::Whole), None);
    assert_eq!(mapping(2 * MIB - 1, Tail::Fitting), Some(2 * MIB));
    assert_eq!(mapping(2 * MIB, Tail::Fitting), Some(2 * MIB));
    assert_eq!(mapping(2 * MIB + 1, Tail::Fitting), Some(2 * MIB + page));
    assert_eq!(mapping(2 * MIB + 1, Tail::Whole), Some(4 * MIB));
    assert_eq!(mapping(33 * MIB, Tail::Fitting), Some(34 * MIB));
    assert_eq!(mapping(33 * MIB - 1, Tail::Fitting), Some(33 * MIB));
    assert_eq!(mapping(usize::MAX, Tail::Whole), None);
    for bytes in (0..12 * MIB).step_by(4999) {
        match mapping(bytes, Tail::Fitting) {
            Some(mapped) => assert!(mapped >= bytes && mapped - bytes <= page.max(bytes / 8), "{bytes}"),
            None => assert!(bytes < 2 * MIB * 8 / 9 + 1, "{bytes}"),
        }
    }
}

#[test]
fn elements_stay_while_it_moves_from_block_to_block() {
    let elements: u32 = if cfg!(miri) { 300 } else { 2_000_000 };
    for huge_pages in [false, true] {
        let mut budget = Budget::new(Limits { huge_pages, ..Limits::default() });
        let mut buffer = Buffer::new();
        for at in 0..elements {
            budget.push(&mut buffer, at).unwrap();
            if at.is_power_of_two() {
                assert!(buffer.iter().copied().eq(0..=at));
                assert_eq!(buffer.as_ptr().align_offset(ALIGN_BYTES), 0);
                assert_eq!(budget.used_bytes(), of(&buffer).held_bytes());
                assert!(!buffer.is_mapped() || buffer.as_ptr().align_offset(HUGE_PAGE_BYTES) == 0);
            }
        }
        assert_eq!(buffer.is_mapped(), of(&buffer).mapped_bytes > 0);
        assert!(huge_pages || !buffer.is_mapped());
        let start = buffer.as_ptr();
        budget.shrink(&mut buffer);
        assert!(!buffer.is_mapped() || buffer.as_ptr() == start, "a mapping is cut, and nothing moves");
        assert!(of(&buffer).held_bytes() <= buffer.len() * 4 * 9 / 8);
        let copy = buffer.clone();
        assert_eq!(copy.is_mapped(), buffer.is_mapped());
        buffer[0] = 7;
        buffer.truncate(100);
        budget.shrink(&mut buffer);
        assert_eq!((of(&buffer).allocated_bytes, of(&buffer).mapped_bytes), (400, 0));
        assert_eq!((buffer[0], copy[0], copy.len()), (7, 0, elements as usize));
        budget.free(buffer);
        assert_eq!(budget.used_bytes(), 0);
    }
}

#[test]
fn elements_may_be_wider_than_a_line() {
    #[derive(Debug, Clone, Copy, PartialEq)]
    #[repr(align(128))]
    struct Wide([u8; 128]);
    let mut budget = Budget::default();
    let mut buffer = budget.buffer(3).unwrap();
    assert_eq!(buffer.capacity(), 3);
    buffer.resize(2, Wide([1; 128]));
    buffer.extend([Wide([2; 128])]);
    assert_eq!(buffer.as_ptr().align_offset(128), 0);
    assert_eq!(buffer[1..], [Wide([1; 128]), Wide([2; 128])]);
    assert_eq!(Buffer::<Wide>::new().as_ptr().align_offset(128), 0);
}

#[test]
fn elements_are_read_after_those_that_there_are() {
    let mut buffer = Budget::default().buffer::<u16>(4).unwrap();
    buffer.push(7);
    let mut read = |result: Result<(), u8>| {
        let read = |bytes: &mut [u8]| {
            bytes.copy_from_slice(&[1, 0, 2, 1, 3, 0]);
            result
        };
        assert_eq!(buffer.append_read(3, read), result);
        buffer.to_vec()
    };
    assert_eq!(read(Err(9)), [7]);
    assert_eq!(read(Ok(())), [7, 1, 258, 3]);
}

#[test]
fn nothing_is_appended_without_room() {
    let full = || {
        let mut buffer = Budget::default().buffer(2).unwrap();
        buffer.extend_from_slice(&[1_u16, 2]);
        buffer
    };
    let panics = |append: fn(&mut Buffer<u16>)| {
        std::panic::catch_unwind(|| append(&mut full())).expect_err("there was room");
    };
    panics(|buffer| buffer.push(3));
    panics(|buffer| buffer.extend_from_slice(&[3]));
    panics(|buffer| buffer.extend_from_within(0..1));
    panics(|buffer| buffer.resize(3, 0));
    panics(|buffer| buffer.extend([3]));
    assert!(Budget::default().buffer::<u64>(usize::MAX / 4).is_err());
    assert!(Budget::default().buffer::<u64>(usize::MAX).is_err());
}

/// The bounds and flags of the mapping that holds an address, by the system. `None` if it does not tell. An emulator of
/// another processor makes the flags up, and says that there are no huge pages.
#[cfg(all(target_os = "linux", not(miri)))]
fn mapping_of(address: usize) -> Option<(Range<usize>, String)> {
    let text = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut found, mut may_be_huge) = (None, true);
    for line in text.lines() {
        if let Some(eligible) = line.strip_prefix("THPeligible:") {
            may_be_huge = eligible.trim() == "1";
        }
        if let Some(flags) = line.strip_prefix("VmFlags:")
            && let Some(bounds) = found.take()
        {
            let told = may_be_huge || flags.contains("hg");
            return told.then(|| (bounds, flags.to_owned()));
        }
        let bounds = line.split(' ').next()?.split_once('-');
        let number = |text| usize::from_str_radix(text, 16).ok();
        if let Some(bounds) = bounds.and_then(|(start, end)| Some(number(start)?..number(end)?))
            && bounds.contains(&address)
        {
            found = Some(bounds);
        }
    }
    None
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
#[ignore = "needs huge pages"]
fn huge_pages_are_what_the_system_says_it_mapped() {
    let mut budget = Budget::default();
    let mut buffer = budget.buffer::<u64>(MIB).unwrap();
    assert_eq!(of(&buffer).mapped_bytes, 8 * MIB);
    buffer.resize(MIB, 1);
    let start = buffer.as_ptr() as usize;
    let (bounds, flags) = mapping_of(start).expect("this system does not tell what is mapped");
    // Neighbours of the same kind may have become one with it.
    assert!(bounds.start <= start && bounds.end >= start + 8 * MIB);
    assert!(flags.split(' ').any(|flag| flag == "hg"), "{flags}");
    buffer.truncate(MIB / 2 + 1);
    budget.shrink(&mut buffer);
    let (page, memory) = (pages::size().unwrap(), of(&buffer));
    assert_eq!((memory.mapped_bytes, memory.huge_bytes), (4 * MIB + page, 4 * MIB + page));
    assert_eq!(budget.used_bytes(), 4 * MIB + page);
    assert!(buffer.iter().all(|&element| element == 1));
    assert_eq!(buffer.as_ptr() as usize, start);
}
