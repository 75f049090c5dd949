//! The reply to zebra about a route: its own message, with the verdict.
//!
//! Zebra reads one message of each frame, and only requests (`fpm_read` of FRR's `zebra/dplane_fpm_nl.c`; FRR 8.4 reads none). It
//! finds the route by table, prefix and protocol, so the message goes back unchanged, except for the flags of `rtm_flags`:
//! `RTM_F_OFFLOAD` and `RTM_F_OFFLOAD_FAILED` of `rtnetlink.h`.

use netlink_packet_core::NLM_F_REQUEST;

use super::netlink::HEADER;

/// Bytes of the header of a frame.
pub(super) const FRAME_HEADER: usize = 4;
/// The version of the protocol.
pub(super) const VERSION: u8 = 1;
/// Type of frames with netlink messages. Others hold protobuf.
pub(super) const NETLINK: u8 = 1;
const OFFLOAD: u32 = 0x4000;
const TRAP: u32 = 0x8000;
const OFFLOAD_FAILED: u32 = 0x2000_0000;
/// Position of `rtm_flags` in a frame.
const FLAGS: core::ops::Range<usize> = FRAME_HEADER + HEADER + 8..FRAME_HEADER + HEADER + 12;

/// The verdict on a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The route is in the table.
    Installed,
    /// The table or a limit has refused the route, or its packets cannot be forwarded.
    Refused,
}

/// A frame with the message of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply(Box<[u8]>);

impl Reply {
    /// Creates a reply from the body of a message about a route. Returns `None` if it does not fit into a frame.
    #[must_use]
    pub fn new(body: &[u8]) -> Option<Self> {
        let len = HEADER + body.len();
        let mut frame = vec![VERSION, NETLINK];
        // The length includes the padding, because zebra looks for the next frame after it.
        frame.extend(u16::try_from(FRAME_HEADER + len.next_multiple_of(4)).ok()?.to_be_bytes());
        frame.extend((len as u32).to_ne_bytes());
        frame.extend(libc::RTM_NEWROUTE.to_ne_bytes());
        frame.extend(NLM_F_REQUEST.to_ne_bytes());
        frame.extend([0; 8]);
        frame.extend(body);
        frame.resize(FRAME_HEADER + len.next_multiple_of(4), 0);
        (FRAME_HEADER + len >= FLAGS.end).then(|| Self(frame.into()))
    }

    /// Returns the bytes to send.
    #[must_use]
    pub fn bytes(&self, verdict: Verdict) -> Box<[u8]> {
        let mut bytes = self.0.clone();
        let place = &mut bytes[FLAGS];
        let mut flags = [0; 4];
        flags.copy_from_slice(place);
        let flag = match verdict {
            Verdict::Installed => OFFLOAD,
            Verdict::Refused => OFFLOAD_FAILED,
        };
        let flags = u32::from_ne_bytes(flags) & !(OFFLOAD | TRAP | OFFLOAD_FAILED) | flag;
        place.copy_from_slice(&flags.to_ne_bytes());
        bytes
    }

    /// Returns the length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(&self) -> usize {
        self.0.len()
    }
}
