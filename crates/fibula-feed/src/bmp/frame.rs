//! Where messages begin and end (RFC 7854 section 4.1).

use crate::mrt::{Fault, FaultKind};

/// The version of the protocol.
const VERSION: u8 = 3;

/// The common header of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the message, with the header.
    pub len: u32,
    /// The kind of the message.
    pub kind: u8,
}

impl Header {
    /// Length of the header itself.
    pub const BYTES: usize = 6;
}

/// The result of looking for a message at the start of a run of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A whole message.
    Message(Header),
    /// The beginning of a message, or nothing.
    More,
    /// A message that is longer than the limit.
    TooLong(Header),
    /// Bytes that are not a message: the stream cannot be read any further.
    Damaged(Fault),
}

impl Frame {
    /// Looks for a message at the start of `bytes`. A message may have at most `limit` bytes.
    #[must_use]
    pub fn next(bytes: &[u8], limit: usize) -> Self {
        if let Some(&version) = bytes.first().filter(|&&version| version != VERSION) {
            return Self::Damaged(FaultKind::Version(version).at(0));
        }
        let Some(&[_, a, b, c, d, kind]) = bytes.first_chunk::<{ Header::BYTES }>() else {
            return Self::More;
        };
        let len = u32::from_be_bytes([a, b, c, d]);
        let header = Header { len, kind };
        match usize::try_from(len) {
            Ok(short) if short < Header::BYTES => {
                Self::Damaged(FaultKind::TooShort { len, least: Header::BYTES }.at(1))
            }
            Ok(fits) if fits <= limit => {
                if bytes.len() < fits {
                    Self::More
                } else {
                    Self::Message(header)
                }
            }
            _ => Self::TooLong(header),
        }
    }
}
