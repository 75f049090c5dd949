//! Loads of a part of a word that a writer may change.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Returns the value of 2^`WIDTH` bytes at a byte offset of words, the lowest byte of each first. It takes one
/// instruction, and is the same as from relaxed loads of the words and shifts.
///
/// # Safety
/// The value is within the words. With values of more than one byte, the machine has the lowest byte of a word first.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) unsafe fn load<const WIDTH: u32>(words: &[AtomicU32], offset: usize) -> u32 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_endian = "little", not(miri)))]
    // SAFETY: as the caller says.
    return unsafe { of_bytes::<WIDTH>(words, offset) };
    #[cfg(not(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_endian = "little",
        not(miri)
    )))]
    of_words::<WIDTH>(words, offset)
}

/// The same, by loads of words. A value is mostly within one of them.
#[cfg(any(
    test,
    not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_endian = "little", not(miri)))
))]
pub(super) fn of_words<const WIDTH: u32>(words: &[AtomicU32], offset: usize) -> u32 {
    use crate::memory::Cell;
    let (word, bits) = (offset / 4, 8 * (offset as u32 % 4));
    let mut value = words[word].read() >> bits;
    if bits + (8 << WIDTH) > 32 {
        value |= words[word + 1].read() << (32 - bits);
    }
    value & u32::MAX >> (32 - (8 << WIDTH))
}

// In Rust's model, an atomic load of a byte would race with stores of whole words. An instruction has no such rule: each byte that
// it loads is as a relaxed load of the byte's word would have had it.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_endian = "little", not(miri)))]
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn of_bytes<const WIDTH: u32>(words: &[AtomicU32], offset: usize) -> u32 {
    let from = words.as_ptr();
    macro_rules! loaded {
        ($instruction:literal) => {{
            let value: u32;
            // SAFETY: the caller says that the bytes are within the words. Whoever stores to these does so by atomic stores.
            unsafe {
                core::arch::asm!(
                    $instruction,
                    value = lateout(reg) value,
                    from = in(reg) from,
                    offset = in(reg) offset,
                    options(pure, readonly, nostack, preserves_flags)
                );
            }
            value
        }};
    }
    #[cfg(target_arch = "x86_64")]
    return match WIDTH {
        0 => loaded!("movzx {value:e}, byte ptr [{from} + {offset}]"),
        1 => loaded!("movzx {value:e}, word ptr [{from} + {offset}]"),
        _ => loaded!("mov {value:e}, dword ptr [{from} + {offset}]"),
    };
    #[cfg(target_arch = "aarch64")]
    return match WIDTH {
        0 => loaded!("ldrb {value:w}, [{from}, {offset}]"),
        1 => loaded!("ldrh {value:w}, [{from}, {offset}]"),
        _ => loaded!("ldr {value:w}, [{from}, {offset}]"),
    };
}

/// Returns the 64 bits at a byte offset of words, the lowest byte of each first.
///
/// # Panics
/// When they end past the words.
#[inline(always)]
pub(super) fn long(words: &[AtomicU64], offset: usize) -> u64 {
    let last = size_of_val(words).checked_sub(size_of::<u64>());
    assert!(last.is_some_and(|last| offset <= last), "64 bits of the words");
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_endian = "little", not(miri)))]
    {
        let value: u64;
        let from = words.as_ptr();
        // SAFETY: the bytes are within the words. As in `of_bytes`, an instruction does not race with atomic stores.
        #[allow(unsafe_code)]
        unsafe {
            #[cfg(target_arch = "x86_64")]
            core::arch::asm!(
                "mov {value}, qword ptr [{from} + {offset}]",
                value = lateout(reg) value,
                from = in(reg) from,
                offset = in(reg) offset,
                options(pure, readonly, nostack, preserves_flags)
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::asm!(
                "ldr {value}, [{from}, {offset}]",
                value = lateout(reg) value,
                from = in(reg) from,
                offset = in(reg) offset,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        value
    }
    #[cfg(not(all(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        target_endian = "little",
        not(miri)
    )))]
    long_of_words(words, offset)
}

/// The same, by loads of words.
#[cfg(any(
    test,
    not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_endian = "little", not(miri)))
))]
fn long_of_words(words: &[AtomicU64], offset: usize) -> u64 {
    use crate::memory::Cell;
    let (word, bits) = (offset / 8, 8 * (offset as u32 % 8));
    let low = words[word].read() >> bits;
    if bits == 0 { low } else { low | words[word + 1].read() << (64 - bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways give the bytes as they are written, at every offset and of every width.
    #[test]
    fn parts_of_words_are_their_bytes() {
        let words = [0x0403_0201, 0x8887_8685_u32, 0xffee_ddcc].map(AtomicU32::new);
        let bytes = [1_u8, 2, 3, 4, 0x85, 0x86, 0x87, 0x88, 0xcc, 0xdd, 0xee, 0xff];
        for offset in 0..12 {
            let at = |count: usize| {
                let bytes = bytes.get(offset..offset + count)?;
                Some(bytes.iter().rev().fold(0_u32, |value, &byte| value << 8 | u32::from(byte)))
            };
            fn both<const WIDTH: u32>(words: &[AtomicU32], offset: usize) -> [u32; 2] {
                // SAFETY: the test asks for values within the words only.
                #[allow(unsafe_code)]
                let loaded = unsafe { load::<WIDTH>(words, offset) };
                [of_words::<WIDTH>(words, offset), loaded]
            }
            assert_eq!(both::<0>(&words, offset), [at(1).unwrap(); 2]);
            if let Some(half) = at(2) {
                assert_eq!(both::<1>(&words, offset), [half; 2], "{offset}");
            }
            if let Some(word) = at(4) {
                assert_eq!(both::<2>(&words, offset), [word; 2], "{offset}");
            }
        }
    }

    #[test]
    fn longs_are_their_bytes() {
        let words = [0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09].map(AtomicU64::new);
        for offset in 0..=8 {
            let expected = u64::from_le_bytes(core::array::from_fn(|at| (offset + at + 1) as u8));
            assert_eq!([long(&words, offset), long_of_words(&words, offset)], [expected; 2], "{offset}");
        }
        for offset in [9, usize::MAX] {
            assert!(std::panic::catch_unwind(|| long(&words, offset)).is_err(), "{offset}");
        }
        assert!(std::panic::catch_unwind(|| long(&[], 0)).is_err());
    }
}
