//! Messages of bfdd's control socket: a header of eight bytes, and JSON.
//!
//! ```text
//! bytes 0-3  length of what follows the header, big-endian
//! bytes 4-5  number of the request that is answered; 0 for a notification
//! byte  6    type
//! byte  7    version
//! ```

use core::fmt;
use std::net::IpAddr;

use serde::Deserialize;

/// Bytes of the header.
const HEADER: usize = 8;
/// Most bytes after it. bfdd writes some 400.
const MOST: usize = 1 << 16;
/// The version of FRR 4 and later.
const VERSION: u8 = 1;
const RESPONSE: u8 = 1;
const NOTIFY: u8 = 4;
/// The notifications that the client asks for. Those of states tell of failures, and those of configuration of deleted sessions.
const WANTED: u64 = 1 | 2;

/// The request for all notifications, those of the present states first.
#[must_use]
pub fn subscription() -> [u8; HEADER + 8] {
    let mut request = [0; HEADER + 8];
    request[..4].copy_from_slice(&8_u32.to_be_bytes());
    request[4..8].copy_from_slice(&[0, 1, NOTIFY, VERSION]);
    // bfdd takes the eight bytes as a number of its own machine, which is this one.
    request[HEADER..].copy_from_slice(&WANTED.to_ne_bytes());
    request
}

/// A session of one hop, between this machine and a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The neighbour.
    pub peer: IpAddr,
    /// Name of the kernel's device, if the session has one.
    pub device: Option<String>,
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "{} on {device}", self.peer),
            None => write!(f, "{}", self.peer),
        }
    }
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Both sides hear each other.
    Up,
    /// The neighbour is heard, and has not said that it hears this side.
    Init,
    /// They do not; with the diagnostic of RFC 5880, section 4.1.
    Down(u8),
    /// An operator has ended the session.
    AdminDown,
}

/// Content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionNotice {
    /// A session has this state.
    State(SessionKey, SessionState),
    /// A session is deleted.
    Gone(SessionKey),
    /// The request was accepted. Notifications follow.
    Accepted,
    /// Of no interest: the configuration of a session, a session of several hops, or a kind of message that later versions have.
    Other,
    /// The JSON is damaged, or lacks the session.
    Malformed,
}

/// Why a connection is of no more use.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// A message is longer than any that bfdd writes.
    Length(u32),
    /// The version of the messages is another one.
    Version(u8),
    /// bfdd refuses the request for notifications, and says why.
    Refused(String),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "a message of {length} bytes: no bfdd writes that"),
            Self::Version(version) => {
                write!(f, "messages of version {version}; this router knows version {VERSION}")
            }
            Self::Refused(reason) => write!(f, "bfdd refuses to tell of its sessions: {reason}"),
        }
    }
}

impl core::error::Error for MessageError {}

/// The parts of the JSON that matter. Others are skipped, as each version of FRR has more.
#[derive(Debug, Deserialize)]
struct Body {
    op: Option<String>,
    #[serde(default)]
    multihop: bool,
    #[serde(rename = "peer-address")]
    peer: Option<IpAddr>,
    #[serde(rename = "local-interface")]
    device: Option<String>,
    state: Option<String>,
    diagnostics: Option<u8>,
    status: Option<String>,
    error: Option<String>,
}

/// Cuts bytes into messages.
#[derive(Debug, Default)]
pub struct MessageReader {
    bytes: Vec<u8>,
}

impl MessageReader {
    /// Adds bytes of the socket.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message; `None` while it is not complete.
    ///
    /// # Errors
    /// If the bytes are not messages of bfdd, or bfdd refused the request.
    pub fn take(&mut self) -> Result<Option<SessionNotice>, MessageError> {
        let Some(&[a, b, c, d, _, _, kind, version]) = self.bytes.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let length = u32::from_be_bytes([a, b, c, d]);
        // Refused here, so that no peer makes the router wait for gigabytes.
        if length as usize > MOST {
            return Err(MessageError::Length(length));
        }
        let end = HEADER + length as usize;
        let Some(body) = self.bytes.get(HEADER..end) else { return Ok(None) };
        let notice = read(kind, body);
        self.bytes.drain(..end);
        notice.map(Some)
    }
}

fn read(kind: u8, body: &[u8]) -> Result<SessionNotice, MessageError> {
    if kind != RESPONSE && kind != NOTIFY {
        return Ok(SessionNotice::Other);
    }
    let Ok(body) = serde_json::from_slice::<Body>(body) else { return Ok(SessionNotice::Malformed) };
    if kind == RESPONSE {
        return match (body.status.as_deref(), body.error) {
            (Some("ok"), _) => Ok(SessionNotice::Accepted),
            (_, reason) => {
                Err(MessageError::Refused(reason.unwrap_or_else(|| "without a reason".to_owned())))
            }
        };
    }
    // The next hop of a route is a neighbour, and a session of several hops says nothing about one.
    if body.multihop {
        return Ok(SessionNotice::Other);
    }
    let Some(peer) = body.peer else { return Ok(SessionNotice::Malformed) };
    let key = SessionKey { peer, device: body.device.filter(|name| !name.is_empty()) };
    let state = match (body.op.as_deref(), body.state.as_deref()) {
        (Some("delete"), _) => return Ok(SessionNotice::Gone(key)),
        (Some("status"), Some("up")) => SessionState::Up,
        (Some("status"), Some("init")) => SessionState::Init,
        (Some("status"), Some("down")) => SessionState::Down(body.diagnostics.unwrap_or(0)),
        (Some("status"), Some("adm-down")) => SessionState::AdminDown,
        _ => return Ok(SessionNotice::Other),
    };
    Ok(SessionNotice::State(key, state))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As bfdd of FRR 8.4 writes them.
    const UP: &str = r#"{"op":"status","ipv6":false,"multihop":false,"peer-address":"10.7.0.2","local-interface":"e","id":2619781326,"remote-id":2619781326,"state":"up","uptime":2,"diagnostics":0,"remote-diagnostics":0}"#;
    const DOWN: &str = r#"{"op":"status","ipv6":true,"multihop":false,"peer-address":"2001:db8::2","id":7,"remote-id":7,"state":"down","downtime":0,"diagnostics":1,"remote-diagnostics":0}"#;

    fn message(kind: u8, body: &str) -> Vec<u8> {
        let mut message = (body.len() as u32).to_be_bytes().to_vec();
        message.extend([0, 0, kind, 1]);
        message.extend(body.as_bytes());
        message
    }

    fn key(peer: &str, device: Option<&str>) -> SessionKey {
        SessionKey { peer: peer.parse().unwrap(), device: device.map(str::to_owned) }
    }

    fn one(kind: u8, body: &str) -> Result<SessionNotice, MessageError> {
        let mut reader = MessageReader::default();
        reader.push(&message(kind, body));
        let notice = reader.take()?.unwrap();
        assert_eq!(reader.take(), Ok(None));
        Ok(notice)
    }

    #[test]
    fn the_request_is_as_bfdd_reads_it() {
        let mut wanted = vec![0, 0, 0, 8, 0, 1, 4, 1];
        wanted.extend(3_u64.to_ne_bytes());
        assert_eq!(subscription()[..], wanted);
    }

    #[test]
    fn states_are_read() {
        let state = |peer, device, state| Ok(SessionNotice::State(key(peer, device), state));
        assert_eq!(one(4, UP), state("10.7.0.2", Some("e"), SessionState::Up));
        assert_eq!(one(4, DOWN), state("2001:db8::2", None, SessionState::Down(1)));
        for (word, meaning) in [("adm-down", SessionState::AdminDown), ("init", SessionState::Init)] {
            let body = UP.replace("\"up\"", &format!("\"{word}\""));
            assert_eq!(one(4, &body), state("10.7.0.2", Some("e"), meaning));
        }
        let gone = r#"{"op":"delete","ipv6":false,"multihop":false,"peer-address":"10.7.0.2","local-interface":"e"}"#;
        assert_eq!(one(4, gone), Ok(SessionNotice::Gone(key("10.7.0.2", Some("e")))));
        assert_eq!(one(1, r#"{"status":"ok"}"#), Ok(SessionNotice::Accepted));
    }

    #[test]
    fn unknown_and_damaged_messages_are_skipped() {
        for (kind, body, notice) in [
            (4, UP.replace("\"multihop\":false", "\"multihop\":true"), SessionNotice::Other),
            (4, UP.replace("\"status\"", "\"update\""), SessionNotice::Other),
            (4, UP.replace("\"status\"", "\"later\""), SessionNotice::Other),
            (4, UP.replace("\"up\"", "\"unknown\""), SessionNotice::Other),
            (4, r#"{"op":"status","state":"up"}"#.to_owned(), SessionNotice::Malformed),
            (4, UP.replace("10.7.0.2", "10.7.0"), SessionNotice::Malformed),
            (4, UP.replace("\"diagnostics\":0", "\"diagnostics\":256"), SessionNotice::Malformed),
            (4, UP[..40].to_owned(), SessionNotice::Malformed),
            (4, String::new(), SessionNotice::Malformed),
            (4, "[]".to_owned(), SessionNotice::Malformed),
            (9, "anything".to_owned(), SessionNotice::Other),
        ] {
            assert_eq!(one(kind, &body), Ok(notice), "{kind} {body}");
        }
        assert_eq!(one(1, r#"{"status":"error","error":"no"}"#), Err(MessageError::Refused("no".to_owned())));
    }

    #[test]
    fn wrong_lengths_and_versions_end_the_connection() {
        for (bytes, error) in [
            (vec![0, 1, 0, 1, 0, 0, 4, 1], MessageError::Length(65_537)),
            (vec![255, 255, 255, 255, 0, 0, 4, 1], MessageError::Length(u32::MAX)),
            (vec![0, 0, 0, 2, 0, 0, 4, 2], MessageError::Version(2)),
            (b"HTTP/1.1 400".to_vec(), MessageError::Version(b'1')),
        ] {
            let mut reader = MessageReader::default();
            reader.push(&bytes);
            assert_eq!(reader.take(), Err(error));
        }
        // A length that is too short cuts the JSON, and what follows is no header.
        let mut short = message(4, UP);
        short[3] -= 20;
        let mut reader = MessageReader::default();
        reader.push(&short);
        assert_eq!(reader.take(), Ok(Some(SessionNotice::Malformed)));
        assert!(reader.take().is_err());
    }

    proptest! {
        #[test]
        fn messages_may_come_in_any_parts(cuts in prop::collection::vec(0_usize..700, 0..12)) {
            let all = [message(1, r#"{"status":"ok"}"#), message(4, UP), message(4, "x"), message(4, DOWN)].concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
            cuts.extend([0, all.len()]);
            cuts.sort_unstable();
            let (mut reader, mut notices) = (MessageReader::default(), Vec::new());
            for part in cuts.windows(2) {
                reader.push(&all[part[0]..part[1]]);
                notices.extend(std::iter::from_fn(|| reader.take().unwrap()));
            }
            let expected = [one(1, r#"{"status":"ok"}"#), one(4, UP), Ok(SessionNotice::Malformed), one(4, DOWN)];
            prop_assert_eq!(notices, expected.map(Result::unwrap));
        }

        #[test]
        fn any_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..400), is_framed in any::<bool>()) {
            if is_framed && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&[0, 0, 0, 50, 0, 0, 4, 1]);
            }
            let mut reader = MessageReader::default();
            reader.push(&bytes);
            let mut count = 0;
            while let Ok(Some(_)) = reader.take() {
                count += 1;
            }
            prop_assert!(count <= bytes.len() / 8);
        }
    }
}
