//! The connection with bfdd. It never blocks: a turn reads the bytes that have arrived, and connects again a second after an end.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::message::{MessageReader, SessionNotice, subscription};

/// How long it is until a socket is tried again that was not there, or has ended.
const PAUSE_NS: u64 = 1_000_000_000;
/// Most bytes that are read in a turn, so that nothing else waits.
const MOST: usize = 1 << 18;

/// A connection with bfdd, or the attempt to have one.
#[derive(Debug)]
pub struct BfddClient {
    path: PathBuf,
    stream: Option<UnixStream>,
    reader: MessageReader,
    /// Whether bfdd has accepted the request.
    is_accepted: bool,
    next_ns: u64,
    last_error: Option<String>,
}

/// The result of a turn.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// A connection begins.
    Began,
    /// A message.
    Notice(SessionNotice),
    /// The connection has ended, and why.
    Ended(String),
}

impl BfddClient {
    /// Makes a client that has not connected yet.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let reader = MessageReader::default();
        Self { path, stream: None, reader, is_accepted: false, next_ns: 0, last_error: None }
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the descriptor to wait for, while there is a connection.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.stream.as_ref().map(AsFd::as_fd)
    }

    /// Returns whether bfdd sends its notifications.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.is_accepted
    }

    /// Returns why there is no connection.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// Connects where it is time to, and reads what is there.
    pub fn turn(&mut self, now_ns: u64, mut tell: impl FnMut(Told)) {
        if self.stream.is_none() {
            if now_ns < self.next_ns {
                return;
            }
            self.next_ns = now_ns + PAUSE_NS;
            match open(&self.path) {
                Ok(stream) => {
                    (self.stream, self.reader) = (Some(stream), MessageReader::default());
                    tell(Told::Began);
                }
                Err(error) => {
                    self.last_error = Some(error.to_string());
                    return;
                }
            }
        }
        if let Err(reason) = self.read(&mut tell) {
            (self.stream, self.is_accepted, self.next_ns) = (None, false, now_ns + PAUSE_NS);
            self.last_error = Some(reason.clone());
            tell(Told::Ended(reason));
        }
    }

    fn read(&mut self, tell: &mut impl FnMut(Told)) -> Result<(), String> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let (mut chunk, mut total) = ([0; 1 << 14], 0);
        while total < MOST {
            match stream.read(&mut chunk) {
                Ok(0) => return Err("bfdd has closed the connection".to_owned()),
                Ok(read) => {
                    total += read;
                    self.reader.push(&chunk[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.to_string()),
            }
            while let Some(notice) = self.reader.take().map_err(|error| error.to_string())? {
                if notice == SessionNotice::Accepted {
                    (self.is_accepted, self.last_error) = (true, None);
                }
                tell(Told::Notice(notice));
            }
        }
        Ok(())
    }
}

/// Connects, and asks for notifications.
fn open(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Does not wait, also where bfdd hangs and its queue is full.
    connect(&fd, &SocketAddrUnix::new(path)?)?;
    let mut stream = UnixStream::from(fd);
    // A new socket has room for sixteen bytes.
    stream.write_all(&subscription())?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::bfd::message::{SessionKey, SessionState};

    fn socket(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("fibula-bfd-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn turn(client: &mut BfddClient, now_ns: u64) -> Vec<Told> {
        let mut told = Vec::new();
        client.turn(now_ns, |what| told.push(what));
        told
    }

    fn accept(listener: &UnixListener) -> UnixStream {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 16];
        stream.read_exact(&mut request).unwrap();
        assert_eq!(request, subscription());
        stream
    }

    fn send(stream: &mut UnixStream, kind: u8, body: &str) {
        let mut message = (body.len() as u32).to_be_bytes().to_vec();
        message.extend([0, 0, kind, 1]);
        message.extend(body.as_bytes());
        stream.write_all(&message).unwrap();
    }

    #[test]
    fn a_socket_may_vanish_and_come_back() {
        let path = socket("vanish");
        let mut client = BfddClient::new(path.clone());
        assert_eq!(turn(&mut client, 0), []);
        assert!(client.last_error().is_some() && client.fd().is_none());
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(turn(&mut client, PAUSE_NS - 1), [], "not before its time");
        assert_eq!(turn(&mut client, PAUSE_NS), [Told::Began]);
        assert!(client.fd().is_some() && !client.is_connected());
        let mut bfdd = accept(&listener);
        send(&mut bfdd, 1, r#"{"status":"ok"}"#);
        send(&mut bfdd, 4, r#"{"op":"status","peer-address":"192.0.2.1","state":"up"}"#);
        let key = SessionKey { peer: [192, 0, 2, 1].into(), device: None };
        assert_eq!(
            turn(&mut client, PAUSE_NS),
            [
                Told::Notice(SessionNotice::Accepted),
                Told::Notice(SessionNotice::State(key, SessionState::Up))
            ]
        );
        assert!(client.is_connected() && client.last_error().is_none());
        assert_eq!(turn(&mut client, PAUSE_NS), []);
        // It ends in the middle of a message.
        bfdd.write_all(&[0, 0, 0]).unwrap();
        drop((bfdd, listener));
        let _ = std::fs::remove_file(&path);
        assert_eq!(
            turn(&mut client, 2 * PAUSE_NS),
            [Told::Ended("bfdd has closed the connection".to_owned())]
        );
        assert!(!client.is_connected());
        assert_eq!(turn(&mut client, 3 * PAUSE_NS), []);
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(turn(&mut client, 4 * PAUSE_NS), [Told::Began]);
        let mut bfdd = accept(&listener);
        send(&mut bfdd, 1, r#"{"status":"ok"}"#);
        assert_eq!(
            turn(&mut client, 4 * PAUSE_NS),
            [Told::Notice(SessionNotice::Accepted)],
            "from a header on"
        );
        let _ = std::fs::remove_file(&path);
    }

    #[test]
    fn a_server_that_is_no_bfdd_is_left_alone_for_a_while() {
        let path = socket("stranger");
        let listener = UnixListener::bind(&path).unwrap();
        let mut client = BfddClient::new(path.clone());
        assert_eq!(turn(&mut client, 0), [Told::Began]);
        accept(&listener).write_all(b"220 mail.example ESMTP\r\n").unwrap();
        let told = turn(&mut client, 1);
        assert!(
            matches!(&told[..], [Told::Ended(reason)] if reason.contains("messages of version")),
            "{told:?}"
        );
        assert_eq!(turn(&mut client, PAUSE_NS), []);
        assert_eq!(turn(&mut client, PAUSE_NS + 1), [Told::Began]);
        let _ = std::fs::remove_file(&path);
    }
}
