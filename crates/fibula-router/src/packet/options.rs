//! Options of IPv4 headers (RFC 791, section 3.1; RFC 1812, section 5.3.13).

use crate::drops::DropReason;

use super::checksum;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const ROUTER_ALERT: u8 = 148;

/// Bytes of the fixed header, after which options begin.
const FIXED: usize = 20;
/// Bytes of an address, and of a timestamp.
const WORD: usize = 4;

/// Options that may not pass: which rule they break, and the byte of the header that a parameter problem points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionFault {
    /// The rule.
    pub reason: DropReason,
    /// Offset in the header.
    pub pointer: u8,
}

/// Checks the options of a header of more than 20 bytes. Options that are neither malformed nor source routes pass.
///
/// # Errors
/// When an option ends beyond the header, is a loose or strict source route, or records the route or the time and is malformed.
pub fn check(header: &[u8]) -> Result<(), OptionFault> {
    let fault = |reason, at: usize| OptionFault { reason, pointer: at as u8 };
    let (mut at, mut seen) = (FIXED, [false; 2]);
    while let Some(&kind) = header.get(at).filter(|&&kind| kind != END) {
        if kind == NO_OPERATION {
            at += 1;
            continue;
        }
        let len = header.get(at + 1).copied().map_or(0, usize::from);
        let Some(option) = header.get(at..at + len).filter(|_| len >= 2) else {
            return Err(fault(DropReason::Ipv4Options, at + 1));
        };
        if matches!(kind, 131 | 137) {
            return Err(fault(DropReason::Ipv4SourceRoute, at));
        }
        // RFC 2113, section 2.1.
        if kind == ROUTER_ALERT && len < 4 {
            return Err(fault(DropReason::Ipv4Options, at + 1));
        }
        if matches!(kind, RECORD_ROUTE | TIMESTAMP) {
            let second = std::mem::replace(&mut seen[usize::from(kind == TIMESTAMP)], true);
            if let Some(wrong) = Some(0).filter(|_| second).or_else(|| malformed(option)) {
                return Err(fault(DropReason::Ipv4Options, at + wrong));
            }
        }
        at += len;
    }
    Ok(())
}

/// Returns the offset of the wrong byte of an option that records the route or the time.
fn malformed(option: &[u8]) -> Option<usize> {
    let head = if option[0] == RECORD_ROUTE { 3 } else { 4 };
    if option.len() < head {
        return Some(1);
    }
    let next = usize::from(option[2]);
    if next <= head {
        return Some(2);
    }
    let pairs = option[0] == TIMESTAMP && matches!(option[3] & 15, 1 | 3);
    let entry = if pairs { 2 * WORD } else { WORD };
    if next > option.len() {
        // The count of routers without room has four bits.
        return (option[0] == TIMESTAMP && option[3] >> 4 == 15 && option[3] & 15 != 3).then_some(3);
    }
    (next - 1 + entry > option.len()).then_some(2)
}

/// The entries that a router makes in options.
#[derive(Debug)]
pub struct Record<O, T> {
    /// The address of the interface that the packet leaves by (RFC 1812, section 4.2.2.2).
    pub address: u32,
    /// Whether an address is the router's own.
    pub is_own: O,
    /// Returns the milliseconds since midnight, universal time.
    pub time: T,
}

impl<O: Fn(u32) -> bool, T: Fn() -> u32> Record<O, T> {
    /// Writes into the options of a header that [`check`] has let pass, and corrects its checksum.
    pub fn write(&self, header: &mut [u8]) {
        let (mut at, mut is_changed) = (FIXED, false);
        while let Some(&kind) = header.get(at).filter(|&&kind| kind != END) {
            let len = match kind {
                NO_OPERATION => 1,
                _ => header.get(at + 1).copied().map_or(0, usize::from),
            };
            let Some(option) = header.get_mut(at..at + len).filter(|_| len > 0) else { break };
            is_changed |= match kind {
                RECORD_ROUTE => self.route(option),
                TIMESTAMP => self.timestamp(option),
                _ => false,
            };
            at += len;
        }
        if is_changed {
            header[10..12].fill(0);
            let sum = checksum::checksum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    }

    fn route(&self, option: &mut [u8]) -> bool {
        put(option, &[self.address])
    }

    fn timestamp(&self, option: &mut [u8]) -> bool {
        let flags = option[3] & 15;
        if usize::from(option[2]) > option.len() {
            // Addresses that the sender named have been passed, or have no room by its own will.
            if flags != 3 {
                option[3] = option[3].wrapping_add(1 << 4);
            }
            return flags != 3;
        }
        match flags {
            0 => put(option, &[(self.time)()]),
            1 => put(option, &[self.address, (self.time)()]),
            3 => {
                let at = usize::from(option[2]) - 1;
                let named = super::u32_at(option, at);
                (self.is_own)(named) && put(option, &[named, (self.time)()])
            }
            // Nobody has defined them.
            _ => false,
        }
    }
}

/// Writes words at the place that the option points at, and moves its pointer behind them. Returns whether there was room.
fn put(option: &mut [u8], words: &[u32]) -> bool {
    let at = usize::from(option[2]) - 1;
    let Some(room) = option.get_mut(at..at + words.len() * WORD) else { return false };
    for (place, word) in room.chunks_exact_mut(WORD).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    option[2] += (words.len() * WORD) as u8;
    true
}

/// Returns the milliseconds since midnight, universal time, by the machine's clock.
#[must_use]
pub fn milliseconds_today() -> u32 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    (since.as_millis() % 86_400_000) as u32
}

#[cfg(test)]
mod tests {
    use super::super::ipv4;
    use super::*;

    fn header(options: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 20];
        ipv4::write(&mut header, 20 + options.len(), 64, 17, 1, 2);
        header.extend(options);
        header[0] = 0x40 | (header.len() / 4) as u8;
        header[10..12].fill(0);
        let sum = checksum::checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    #[test]
    fn options_pass_but_for_source_routes_and_malformed_ones() {
        let check = |options: &[u8]| {
            let mut header = vec![0; 20];
            header.extend(options);
            check(&header).map_err(|fault| (fault.reason, fault.pointer))
        };
        assert_eq!(check(&[1, 1, 1, 0]), Ok(()));
        assert_eq!(check(&[0, 131, 3, 4]), Ok(()), "after the end of options there are none");
        assert_eq!(check(&[148, 4, 0, 0]), Ok(()), "router alert");
        assert_eq!(check(&[7, 7, 4, 0, 0, 0, 0, 0]), Ok(()), "record route");
        assert_eq!(check(&[7, 3, 4, 0]), Ok(()), "a full route");
        assert_eq!(check(&[7, 7, 255, 0, 0, 0, 0, 0]), Ok(()), "a pointer far behind the option");
        assert_eq!(check(&[68, 4, 5, 0xe0]), Ok(()), "14 routers had no room");
        assert_eq!(check(&[68, 4, 5, 0xf3]), Ok(()), "for addresses that are named nobody counts");
        assert_eq!(check(&[131, 3, 4, 0]), Err((DropReason::Ipv4SourceRoute, 20)));
        assert_eq!(check(&[1, 137, 3, 4]), Err((DropReason::Ipv4SourceRoute, 21)));
        assert_eq!(check(&[7, 1, 0, 0]), Err((DropReason::Ipv4Options, 21)));
        assert_eq!(check(&[1, 1, 1, 7]), Err((DropReason::Ipv4Options, 24)));
        assert_eq!(check(&[7, 5, 0, 0]), Err((DropReason::Ipv4Options, 21)));
    }

    #[test]
    fn the_route_and_the_time_are_written_where_the_pointer_says() {
        let written = |options: &[u8]| {
            let mut header = header(options);
            assert_eq!(check(&header), Ok(()));
            let record =
                Record { address: 0x0a00_0001, is_own: |ip| ip == 0x0a00_0002, time: || 0x0123_4567 };
            record.write(&mut header);
            assert_eq!(checksum::sum(&header, 0), 0xffff);
            header[20..].to_vec()
        };
        assert_eq!(written(&[7, 7, 4, 0, 0, 0, 0, 0]), [7, 7, 8, 10, 0, 0, 1, 0]);
        assert_eq!(written(&[7, 11, 8, 9, 9, 9, 9, 0, 0, 0, 0, 0]), [7, 11, 12, 9, 9, 9, 9, 10, 0, 0, 1, 0]);
        assert_eq!(written(&[68, 8, 5, 0, 0, 0, 0, 0]), [68, 8, 9, 0, 1, 0x23, 0x45, 0x67]);
        let pair = [68, 12, 13, 1, 10, 0, 0, 1, 1, 0x23, 0x45, 0x67];
        assert_eq!(written(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]), pair);
        let named = [68, 12, 13, 3, 10, 0, 0, 2, 1, 0x23, 0x45, 0x67];
        assert_eq!(written(&[68, 12, 5, 3, 10, 0, 0, 2, 0, 0, 0, 0]), named);
        assert_eq!(written(&[68, 4, 5, 0x21]), [68, 4, 5, 0x31]);
        for same in [
            &[68, 12, 5, 3, 10, 0, 0, 3, 0, 0, 0, 0][..],
            &[68, 4, 5, 0xf3],
            &[68, 8, 5, 2, 0, 0, 0, 0],
            &[7, 3, 4, 0],
            &[7, 7, 255, 0, 0, 0, 0, 0],
            &[148, 4, 0, 0],
        ] {
            assert_eq!(written(same), same);
        }
    }

    /// Checking and writing end, with any options.
    #[test]
    fn random_options_do_no_harm() {
        let mut random = 1_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut passed = 0;
        for _ in 0..200_000 {
            let len = 4 * (1 + next() as usize % 10);
            let kinds = [0, 1, 7, 68, 148, 130];
            let options: Vec<u8> = (0..len)
                .map(|_| if next() % 2 == 0 { kinds[next() as usize % 6] } else { (next() % 16) as u8 })
                .collect();
            let mut header = header(&options);
            if check(&header).is_ok() {
                passed += 1;
                Record { address: 9, is_own: |ip| ip % 2 == 0, time: || 7 }.write(&mut header);
                assert_eq!(checksum::sum(&header, 0), 0xffff);
                // A pointer that is not at a word may leave half an address of room, which is the next router's to refuse.
                let wrong = check(&header).err().map(|fault| header[usize::from(fault.pointer)]);
                assert!(wrong.is_none_or(|byte| byte > 4), "{options:?}");
            }
        }
        assert!(passed > 10_000, "{passed}");
    }
}
