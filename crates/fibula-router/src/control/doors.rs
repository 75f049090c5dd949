//! The thread of the control socket and of the metrics. It accepts clients, reads their questions and writes the answers, and waits
//! for none of them. The main thread only has whole questions, so no client holds it up.
//!
//! Each kind of clients has its places. A client that says nothing, or does not read its answer, loses its place after a while, and
//! at once when another one comes and no place is free.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::takeover::Given;
use super::{RunError, machine_error, metrics};
use crate::kernel::bell::Bell;
use crate::kernel::sys;

/// How long a client may take for its question, and how long for its answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Places of each kind of clients.
const PLACES: usize = 128;
/// Longest question of the control socket.
const LONGEST: usize = 1024;
/// How long the thread rests after it could not accept a client.
const REST: Duration = Duration::from_millis(50);

/// The connection of a client.
#[derive(Debug)]
pub(super) enum Caller {
    Control(UnixStream),
    Metrics(TcpStream),
}

/// A whole question.
#[derive(Debug)]
pub(super) enum Question {
    /// A line of the control socket.
    Control(UnixStream, String),
    /// A request for the metrics.
    Metrics(TcpStream),
}

/// The doors of a running router.
#[derive(Debug)]
pub(super) struct Doors {
    control: UnixListener,
    metrics: Option<TcpListener>,
    /// Whether clients are accepted.
    admits: Arc<AtomicBool>,
    questions: Receiver<Question>,
    answers: Sender<(Caller, Vec<u8>)>,
    bell: Arc<Bell>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Doors {
    /// Starts the thread. It rings `main` when there is a question. No client is accepted before [`admit`](Self::admit).
    pub(super) fn open(
        control: UnixListener,
        metrics: Option<TcpListener>,
        main: Arc<Bell>,
    ) -> Result<Self, RunError> {
        let refused = || machine_error("thread of the control socket");
        let bell = Arc::new(Bell::new().map_err(refused())?);
        let ((to_main, questions), (answers, from_main)) = (channel(), channel());
        let (stop, admits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let kept = control.try_clone().map_err(refused())?;
        let kept_metrics = metrics.as_ref().map(TcpListener::try_clone).transpose().map_err(refused())?;
        let inside = Inside {
            control,
            metrics,
            admits: Arc::clone(&admits),
            clients: Vec::new(),
            to_main,
            main,
            from_main,
        };
        let (rings, ends) = (Arc::clone(&bell), Arc::clone(&stop));
        let run = move || {
            // A client must not talk to a privileged thread.
            if sys::keep_capabilities(0).is_ok() {
                inside.run(&rings, &ends);
            }
        };
        let thread = std::thread::Builder::new().name("doors".into()).spawn(run).map_err(refused())?;
        let (control, metrics) = (kept, kept_metrics);
        Ok(Self { control, metrics, admits, questions, answers, bell, stop, thread: Some(thread) })
    }

    /// Accepts clients from here on.
    pub(super) fn admit(&self) {
        self.admits.store(true, Ordering::Release);
        self.bell.ring();
    }

    /// Offers the listeners to a router that takes over.
    pub(super) fn offer(
        &self,
        offer: &mut dyn FnMut(Given, BorrowedFd<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        offer(Given::Control, self.control.as_fd())?;
        match &self.metrics {
            Some(metrics) => offer(Given::Metrics { address: metrics.local_addr()? }, metrics.as_fd()),
            None => Ok(()),
        }
    }

    /// Returns the next question, if there is one.
    pub(super) fn next(&self) -> Option<Question> {
        self.questions.try_recv().ok()
    }

    /// Answers a question.
    pub(super) fn answer(&self, stream: Caller, answer: Vec<u8>) {
        // If the thread has ended, the client sees the end of its connection.
        if self.answers.send((stream, answer)).is_ok() {
            self.bell.ring();
        }
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client that is being read, or written to.
#[derive(Debug)]
struct DoorClient {
    stream: Caller,
    until: Instant,
    request: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
}

/// The state of the thread.
#[derive(Debug)]
struct Inside {
    control: UnixListener,
    metrics: Option<TcpListener>,
    admits: Arc<AtomicBool>,
    clients: Vec<DoorClient>,
    to_main: Sender<Question>,
    main: Arc<Bell>,
    from_main: Receiver<(Caller, Vec<u8>)>,
}

impl Inside {
    fn run(mut self, bell: &Bell, stop: &AtomicBool) {
        while !stop.load(Ordering::Acquire) {
            let admits = self.admits.load(Ordering::Acquire);
            let mut fds = vec![sys::readable(bell)];
            if admits {
                fds.push(sys::readable(&self.control));
                fds.extend(self.metrics.iter().map(sys::readable));
            }
            fds.extend(self.clients.iter().map(|client| match client.answer.is_empty() {
                true => sys::readable(&client.stream),
                false => sys::writable(&client.stream),
            }));
            let first = self.clients.iter().map(|client| client.until).min();
            let left =
                first.map(|until| until.saturating_duration_since(Instant::now()).as_millis() as i32 + 1);
            // A signal may end the wait early, which does no harm.
            let _ = sys::poll(&mut fds, left.unwrap_or(-1));
            bell.quiet();
            while let Ok((stream, answer)) = self.from_main.try_recv() {
                self.clients.push(DoorClient { answer, ..DoorClient::new(stream) });
            }
            if admits && self.accept().is_err() {
                std::thread::sleep(REST);
            }
            let clients = std::mem::take(&mut self.clients);
            self.clients = clients.into_iter().filter_map(|client| self.turn(client)).collect();
        }
    }

    /// Accepts the clients that wait.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..PLACES {
            let control = self.control.accept().map(|(stream, _)| Caller::Control(stream));
            let metrics = self.metrics.as_ref().map(TcpListener::accept);
            let metrics = metrics.map(|accepted| accepted.map(|(stream, _)| Caller::Metrics(stream)));
            let mut none = true;
            for accepted in [Some(control), metrics].into_iter().flatten() {
                match accepted {
                    Ok(stream) => {
                        none = false;
                        self.admit(stream);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            if none {
                break;
            }
        }
        Ok(())
    }

    /// Gives a client a place, if need be that of the one of its kind that has said nothing for longest, or taken nothing of its answer.
    fn admit(&mut self, stream: Caller) {
        let is_same = |other: &Caller| other.is_control() == stream.is_control();
        let same = || self.clients.iter().enumerate().filter(|(_, client)| is_same(&client.stream));
        if same().count() >= PLACES {
            // Those that are being answered go last.
            let last = same().min_by_key(|(_, client)| (!client.answer.is_empty(), client.until));
            let Some((at, _)) = last else { return };
            self.clients.remove(at);
        }
        if stream.set_nonblocking().is_ok() {
            self.clients.push(DoorClient::new(stream));
        }
    }

    /// Goes on with a client. Returns it if it is to be waited for.
    fn turn(&self, mut client: DoorClient) -> Option<DoorClient> {
        if !client.answer.is_empty() {
            let done = client.send();
            return client.waits(done.err()?);
        }
        match &mut client.stream {
            Caller::Control(stream) => match line(stream, &mut client.request) {
                Ok(line) => {
                    let Caller::Control(stream) = client.stream else { return None };
                    self.ask(Question::Control(stream, line));
                    None
                }
                Err(error) => client.waits(error),
            },
            Caller::Metrics(stream) => match metrics::read(stream, &mut client.request) {
                Ok(Ok(())) => {
                    let Caller::Metrics(stream) = client.stream else { return None };
                    self.ask(Question::Metrics(stream));
                    None
                }
                Ok(Err(status)) => {
                    client.answer = metrics::response(Err(status));
                    let done = client.send();
                    client.waits(done.err()?)
                }
                Err(error) => client.waits(error),
            },
        }
    }

    fn ask(&self, question: Question) {
        if self.to_main.send(question).is_ok() {
            self.main.ring();
        }
    }
}

impl DoorClient {
    fn new(stream: Caller) -> Self {
        Self { stream, until: Instant::now() + PATIENCE, request: Vec::new(), answer: Vec::new(), sent: 0 }
    }

    /// Returns the client if it can go on after an error, and has time.
    fn waits(self, error: io::Error) -> Option<Self> {
        let may_wait = error.kind() == io::ErrorKind::WouldBlock && Instant::now() < self.until;
        may_wait.then_some(self)
    }

    /// Sends the rest of the answer. Each part that the client takes gives it more time.
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.answer.len() {
            let rest = &self.answer[self.sent..];
            let sent = match &mut self.stream {
                Caller::Control(stream) => stream.write(rest)?,
                Caller::Metrics(stream) => stream.write(rest)?,
            };
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += sent;
            self.until = Instant::now() + PATIENCE;
        }
        Ok(())
    }
}

impl Caller {
    const fn is_control(&self) -> bool {
        matches!(self, Self::Control(_))
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Control(stream) => stream.set_nonblocking(true),
            Self::Metrics(stream) => stream.set_nonblocking(true),
        }
    }
}

impl AsRawFd for Caller {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Control(stream) => stream.as_raw_fd(),
            Self::Metrics(stream) => stream.as_raw_fd(),
        }
    }
}

/// Reads a line whose first bytes are in `bytes`.
fn line(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<String> {
    let mut part = [0; LONGEST];
    loop {
        let read = stream.read(&mut part)?;
        bytes.extend_from_slice(&part[..read]);
        let end = bytes.iter().position(|&byte| byte == b'\n');
        if end.is_some() || read == 0 || bytes.len() >= LONGEST {
            let end = end.unwrap_or(bytes.len());
            return match bytes.is_empty() {
                true => Err(io::ErrorKind::UnexpectedEof.into()),
                false => Ok(String::from_utf8_lossy(&bytes[..end]).into_owned()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers the next question, and returns the line of the control socket.
    fn answered(doors: &Doors, main: &Bell, answer: &str) -> Option<String> {
        loop {
            match doors.next() {
                Some(Question::Control(stream, line)) => {
                    doors.answer(Caller::Control(stream), answer.into());
                    return Some(line);
                }
                Some(Question::Metrics(stream)) => {
                    doors.answer(Caller::Metrics(stream), answer.into());
                    return None;
                }
                None => _ = sys::poll(&mut [sys::readable(main)], 10_000),
            }
            main.quiet();
        }
    }

    #[test]
    fn clients_that_do_not_read_take_no_place_from_others() {
        let path = std::env::temp_dir().join(format!("fibula-unread-{}", std::process::id()));
        let control = UnixListener::bind(&path).unwrap();
        control.set_nonblocking(true).unwrap();
        let main = Arc::new(Bell::new().unwrap());
        let doors = Doors::open(control, None, Arc::clone(&main)).unwrap();
        doors.admit();
        // Longer than the buffers of a socket.
        let long = "x".repeat(1 << 20);
        let ask = |line: &[u8]| {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(line).unwrap();
            client
        };
        let unread: Vec<_> = (0..PLACES)
            .map(|_| {
                let client = ask(b"listing\n");
                assert_eq!(answered(&doors, &main, &long).as_deref(), Some("listing"));
                client
            })
            .collect();
        let mut late = ask(b"stats\n");
        for _ in 0..100 {
            if let Some(Question::Control(stream, line)) = doors.next() {
                doors.answer(Caller::Control(stream), line.into());
                break;
            }
            sys::poll(&mut [sys::readable(&*main)], 100).unwrap();
            main.quiet();
        }
        let mut answer = String::new();
        late.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "stats");
        drop((unread, doors));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn silent_clients_take_no_place_from_others_and_questions_come_in_parts() {
        let path = std::env::temp_dir().join(format!("fibula-doors-{}", std::process::id()));
        let (control, metrics) =
            (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        control.set_nonblocking(true).unwrap();
        metrics.set_nonblocking(true).unwrap();
        let (main, address) = (Arc::new(Bell::new().unwrap()), metrics.local_addr().unwrap());
        let doors = Doors::open(control, Some(metrics), Arc::clone(&main)).unwrap();
        doors.admit();
        // More than there are places, of both kinds, which never say anything.
        let silent: Vec<_> = (0..3 * PLACES)
            .map(|_| (UnixStream::connect(&path).unwrap(), TcpStream::connect(address).unwrap()))
            .collect();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"sta").unwrap();
        client.write_all(b"ts\nmore").unwrap();
        assert_eq!(answered(&doors, &main, "{}\n").as_deref(), Some("stats"));
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "{}\n");
        let mut scraper = TcpStream::connect(address).unwrap();
        scraper.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        scraper.write_all(b"\r\n").unwrap();
        // An answer that is longer than any buffer.
        let long = "x 1\n".repeat(2_000_000);
        assert_eq!(answered(&doors, &main, &long), None);
        let mut answer = String::new();
        scraper.read_to_string(&mut answer).unwrap();
        assert_eq!(answer.len(), long.len());
        // A line that is not a request is refused without the main thread.
        let mut wrong = TcpStream::connect(address).unwrap();
        wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        wrong.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(doors.next().is_none());
        drop((silent, doors));
        std::fs::remove_file(&path).unwrap();
        assert!(TcpStream::connect(address).is_err(), "closed at the end");
    }
}
