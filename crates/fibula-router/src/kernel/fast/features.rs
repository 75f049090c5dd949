//! Whether a device takes frames that another driver gives it (XDP_REDIRECT): the kernel's family `netdev` of generic netlink says so
//! (Documentation/netlink/specs/netdev.yaml, Linux 6.3). A frame that is given to another device is lost without a counter.

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
/// Bytes of the headers of a message: netlink's, then generic netlink's.
const HEADERS: usize = 20;

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

/// Asks a family a question about one attribute. Returns the value of another one of the answer.
fn ask(family: u16, command: u8, attribute: u16, value: &[u8], wanted: u16) -> io::Result<Vec<u8>> {
    let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, GENERIC)?;
    let mut message = Vec::new();
    let padded = value.len().next_multiple_of(4);
    message.extend(((HEADERS + 4 + padded) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(HEADERS + 4 + padded, 0);
    sys::send(socket.as_fd(), &message, 0)?;
    let mut answer = vec![0; 8192];
    let len = sys::receive(socket.as_fd(), &mut answer, 0)?;
    attribute_of(&answer[..len.min(answer.len())], wanted)
        .map(<[u8]>::to_vec)
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns the value of an attribute of an answer; `None` for an error, and where it is not there.
fn attribute_of(answer: &[u8], wanted: u16) -> Option<&[u8]> {
    let half = |at: usize| Some(u16::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    if half(4)? == libc::NLMSG_ERROR as u16 {
        return None;
    }
    let mut at = HEADERS;
    while let (Some(len), Some(kind)) = (half(at), half(at + 2)) {
        let value = answer.get(at + 4..at + usize::from(len))?;
        if kind == wanted {
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
    fn attributes_are_found_and_broken_answers_have_none() {
        let mut answer = vec![0u8; HEADERS];
        answer[4] = 30;
        answer.extend([6, 0, 1, 0, 7, 8, 0, 0, 12, 0, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0].map(u8::to_le));
        assert_eq!(attribute_of(&answer, 1), Some(&[7, 8][..]));
        assert_eq!(attribute_of(&answer, 3), Some(&[5, 0, 0, 0, 0, 0, 0, 0][..]));
        assert_eq!(attribute_of(&answer, 4), None);
        for len in 0..answer.len() {
            assert_eq!(attribute_of(&answer[..len], 3), None, "{len}");
        }
        answer[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        assert_eq!(attribute_of(&answer, 1), None);
        answer[4] = 30;
        answer[20] = 3;
        assert_eq!(attribute_of(&answer, 3), None, "a length that ends before the value");
    }
}
