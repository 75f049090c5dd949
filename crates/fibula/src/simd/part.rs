//! Loads of a part of a word that a writer may change.

use core::sync::atomic::AtomicU32;

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
}
