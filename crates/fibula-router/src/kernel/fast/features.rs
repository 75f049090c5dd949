//! Features of a device, as the kernel has them: whether it takes frames that another driver gives it (XDP_REDIRECT), by the family `netdev` of
//! generic netlink (Documentation/netlink/specs/netdev.yaml, Linux 6.3), and where its program is attached. A frame that is given to another
//! device is lost without a counter.

use std::io;
use std::os::fd::AsFd;

use crate::kernel::sys;

const GENERIC: i32 = 16;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const GET_DEVICE: u8 = 1;
const DEVICE: u16 = 1;
const FEATURES: u16 = 3;
/// The device takes frames of other drivers.
const TAKES: u64 = 4;
/// Bytes of the headers of a message: of netlink, and of links.
const NLMSG: usize = 16;
const IFINFO: usize = 16;
/// The attribute of a link about its program, which has others in it: where it is attached.
const XDP: u16 = 43;
const ATTACHED: u16 = 2;
const IN_DRIVER: u8 = 1;
/// The flag of an attribute that has others in it.
const NESTED: u16 = 1 << 15;

/// Returns whether a device takes frames of other drivers. Where the kernel does not say, it does not.
pub(super) fn takes_redirects(device: u32) -> bool {
    features(device).is_ok_and(|features| features & TAKES != 0)
}

fn features(device: u32) -> io::Result<u64> {
    let family = ask(CONTROL, GET_FAMILY, FAMILY_NAME, b"netdev\0", FAMILY_ID)?;
    let family = family.first_chunk().map(|&id| u16::from_ne_bytes(id)).ok_or(io::ErrorKind::Unsupported)?;
    let found = ask(family, GET_DEVICE, DEVICE, &device.to_ne_bytes(), FEATURES)?;
    found.first_chunk().map(|&word| u64::from_ne_bytes(word)).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns whether the program of a device is in its driver, as far as the kernel says.
pub(super) fn is_in_driver(device: u32) -> Option<bool> {
    let mut message = vec![0; IFINFO];
    message[4..8].copy_from_slice(&device.to_ne_bytes());
    let answer = exchange(libc::NETLINK_ROUTE, libc::RTM_GETLINK, &message).ok()?;
    let program = attribute_of(&answer, NLMSG + IFINFO, XDP)?;
    attribute_of(program, 0, ATTACHED)?.first().map(|&place| place == IN_DRIVER)
}

/// Asks a family a question about one attribute. Returns the value of another one of the answer.
fn ask(family: u16, command: u8, attribute: u16, value: &[u8], wanted: u16) -> io::Result<Vec<u8>> {
    let mut message = vec![command, 1, 0, 0];
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    let answer = exchange(GENERIC, family, &message)?;
    let found = attribute_of(&answer, NLMSG + 4, wanted).map(<[u8]>::to_vec);
    found.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Sends a message and returns the answer, which is not an error.
fn exchange(protocol: i32, kind: u16, content: &[u8]) -> io::Result<Vec<u8>> {
    let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol)?;
    let len = NLMSG + content.len().next_multiple_of(4);
    let mut message = Vec::with_capacity(len);
    message.extend((len as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(content);
    message.resize(len, 0);
    sys::send(socket.as_fd(), &message, 0)?;
    let mut answer = vec![0; 16_384];
    let len = sys::receive(socket.as_fd(), &mut answer, 0)?;
    answer.truncate(len);
    let kind = answer.get(4..6).and_then(<[u8]>::first_chunk).map(|&kind| u16::from_ne_bytes(kind));
    match kind {
        Some(kind) if kind != libc::NLMSG_ERROR as u16 => Ok(answer),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Returns the value of an attribute among those that begin at a byte, if it is there.
fn attribute_of(bytes: &[u8], mut at: usize, wanted: u16) -> Option<&[u8]> {
    let half = |at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    while let (Some(len), Some(kind)) = (half(at), half(at + 2)) {
        let value = bytes.get(at + 4..at + usize::from(len))?;
        if kind & !NESTED == wanted {
            return Some(value);
        }
        at += usize::from(len).next_multiple_of(4);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_and_broken_ones_are_not() {
        let bytes = [6, 0, 1, 0, 7, 8, 0, 0, 12, 0, 3, 0x80, 5, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(attribute_of(&bytes, 0, 1), Some(&[7, 8][..]));
        assert_eq!(attribute_of(&bytes, 0, 3), Some(&[5, 0, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!(attribute_of(&bytes, 8, 1), None);
        assert_eq!(attribute_of(&bytes, 0, 4), None);
        for len in 0..bytes.len() {
            assert_eq!(attribute_of(&bytes[..len], 0, 3), None, "{len}");
        }
        for short in 0..4 {
            assert_eq!(attribute_of(&[short, 0, 1, 0, 7, 8, 0, 0], 0, 3), None, "a length before the value");
        }
    }

    #[test]
    fn the_loopback_device_has_no_program_and_no_device_has_none() {
        assert_ne!(is_in_driver(1), Some(true));
        assert_eq!(is_in_driver(u32::MAX >> 1), None);
        assert!(!takes_redirects(u32::MAX >> 1));
    }
}
