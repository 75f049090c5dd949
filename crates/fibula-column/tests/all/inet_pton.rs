//! Texts in bulk against `inet_pton` of the system. The only `unsafe` code of these tests is its call.
#![allow(unsafe_code)]

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ffi::CStr;
use std::ffi::{c_char, c_int, c_void};

use crate::text::agree_where;

const AF_INET: c_int = 2;
const AF_INET6: c_int = 10;

unsafe extern "C" {
    // POSIX; the crate `libc` does not have it.
    #[link_name = "inet_pton"]
    fn system_inet_pton(family: c_int, text: *const c_char, address: *mut c_void) -> c_int;
}

/// Returns what `inet_pton` reads of either family.
pub(crate) fn inet_pton(text: &[u8]) -> Option<IpAddr> {
    let mut ended = [0; 128];
    ended.get_mut(..text.len())?.copy_from_slice(text);
    // For a text with a 0 in it, the system would read another text.
    let ended = CStr::from_bytes_with_nul(ended.get(..=text.len())?).ok()?;
    let (mut v4, mut v6) = ([0_u8; 4], [0_u8; 16]);
    // SAFETY: the text ends with 0, and 4 bytes are room for an address of this family.
    if unsafe { system_inet_pton(AF_INET, ended.as_ptr(), v4.as_mut_ptr().cast()) } == 1 {
        return Some(Ipv4Addr::from(v4).into());
    }
    // SAFETY: as above, with 16 bytes.
    let is_v6 = unsafe { system_inet_pton(AF_INET6, ended.as_ptr(), v6.as_mut_ptr().cast()) } == 1;
    is_v6.then(|| Ipv6Addr::from(v6).into())
}

/// Random words: the same in every run.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Writes an octet or a text like one.
fn octet(words: &mut Words, text: &mut Vec<u8>) {
    let value = match words.below(8) {
        0 => words.below(1000),
        1 => [0, 9, 10, 99, 100, 255, 256, 300][words.below(8) as usize],
        _ => words.below(256),
    };
    if words.below(64) == 0 {
        text.push(b'0');
    }
    text.extend(value.to_string().bytes());
}

fn v4(words: &mut Words, text: &mut Vec<u8>) {
    let count = if words.below(32) == 0 { words.below(6) } else { 4 };
    for part in 0..count {
        if part > 0 {
            text.push(b'.');
        }
        octet(words, text);
    }
}

fn v6(words: &mut Words, text: &mut Vec<u8>) {
    let tail = words.below(8) == 0;
    let room = if tail { 6 } else { 8 };
    let gap = words.below(2) == 0;
    let count = match words.below(16) {
        0 => words.below(room + 3),
        _ if gap => words.below(room),
        _ => room,
    };
    let at = words.below(count + 1);
    for group in 0..count {
        if gap && group == at {
            text.push(b':');
        }
        if group > 0 || gap && at == 0 {
            text.push(b':');
        }
        for _ in 0..(if words.below(64) == 0 { words.below(6) } else { 1 + words.below(4) }) {
            let digits = b"0123456789abcdefABCDEF";
            text.push(digits[words.below(digits.len() as u64) as usize]);
        }
    }
    if gap && at == count {
        text.extend(b"::");
    }
    if tail {
        if !text.ends_with(b":") {
            text.push(b':');
        }
        v4(words, text);
    }
}

/// Changes a byte or two.
fn change(words: &mut Words, text: &mut Vec<u8>) {
    for _ in 0..=words.below(2) {
        let byte = match words.below(4) {
            0 => words.next() as u8,
            _ => b"0123456789abcdefABCDEF::::....-g%/ "[words.below(35) as usize],
        };
        let at = words.below(text.len() as u64 + 1) as usize;
        match words.below(4) {
            0 => text.insert(at, byte),
            1 if at < text.len() => drop(text.remove(at)),
            2 => text.truncate(at),
            _ if at < text.len() => text[at] = byte,
            _ => text.push(byte),
        }
    }
}

/// Compares generated texts, half of them as they were written and half of them changed.
fn generated(seed: u64, count: usize) {
    let mut words = Words(seed);
    let mut texts = vec![Vec::new(); 65_536];
    let mut done = 0;
    while done < count {
        // A few to many of one family in a row, so that blocks are of one, of the other, and mixed.
        let mut of_v4 = false;
        for text in &mut texts {
            if words.below(300) < 1 + (done as u64 >> 16) % 3 * 100 {
                of_v4 = !of_v4;
            }
            text.clear();
            if of_v4 {
                v4(&mut words, text);
            } else {
                v6(&mut words, text);
            }
            if words.below(2) == 0 {
                change(&mut words, text);
            }
        }
        // The shapes and instruction sets by turns, two for each of the texts.
        agree_where(&texts, inet_pton, |way| way % 8 == done / texts.len() % 8);
        done += texts.len();
    }
}

#[test]
fn ten_million_texts_are_read_as_inet_pton_reads_them() {
    generated(1, 10_000_000);
}

/// With `FIBULA_TEXTS`, from 1 to 100, as the seed: all of them are a billion texts.
#[test]
#[ignore = "a billion texts take half an hour: .ci/scheduled texts"]
fn ten_million_texts_of_a_billion_are_read_as_inet_pton_reads_them() {
    let seed = std::env::var("FIBULA_TEXTS").map_or(Ok(1), |seed| seed.parse::<u64>());
    // 1 is the seed of the test above.
    generated(seed.expect("FIBULA_TEXTS is a number") + 1, 10_000_000);
}
