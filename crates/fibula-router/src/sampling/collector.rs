//! Collectors: a socket each, and pauses for one that does not answer.
//!
//! Over UDP nobody says that a message has arrived. A fault is known where the network or the machine says so: no route, no neighbour, or
//! ICMP "unreachable", which the kernel reports at the next message. After a fault a collector is left alone for a second, after the next one
//! for two, and so on to a minute. Messages of that time are left out, and counted. Nothing here waits.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::message::SealedMessage;

/// The first pause after a fault, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// How long messages go out without a fault before the collector counts as well again.
const WELL: Duration = Duration::from_secs(5);

/// The state of a collector, for other threads.
#[derive(Debug)]
pub struct CollectorHealth {
    /// Its address.
    pub address: SocketAddr,
    /// Messages sent.
    pub messages: AtomicU64,
    /// Data records sent.
    pub records: AtomicU64,
    /// Data records left out, because it was left alone or the machine refused the message.
    pub left_out: AtomicU64,
    /// Messages that the machine or the network refused.
    pub faults: AtomicU64,
    /// Whether it has had no fault for some seconds.
    pub is_well: AtomicBool,
    last_fault: Mutex<Option<String>>,
}

impl CollectorHealth {
    /// Returns the last fault, in words; `None` if there was none.
    #[must_use]
    pub fn last_fault(&self) -> Option<String> {
        self.last_fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A session with a collector.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) health: std::sync::Arc<CollectorHealth>,
    source: Option<IpAddr>,
    socket: Option<UdpSocket>,
    /// The port of the socket before, so that a session goes on with the same.
    port: u16,
    /// Data records of this session so far, from which its messages are numbered.
    sequence: u32,
    /// The pause after the last fault; zero while it is well.
    pause: Duration,
    /// When the collector is tried again, or was.
    until: Duration,
    /// When templates are due; `None` for now.
    pub(super) templates_due: Option<Duration>,
}

impl Collector {
    pub(super) fn new(address: SocketAddr, source: Option<IpAddr>) -> Self {
        let health = CollectorHealth {
            address,
            messages: AtomicU64::new(0),
            records: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            is_well: AtomicBool::new(true),
            last_fault: Mutex::default(),
        };
        Self {
            health: health.into(),
            source,
            socket: None,
            port: 0,
            sequence: 0,
            pause: Duration::ZERO,
            until: Duration::ZERO,
            templates_due: None,
        }
    }

    /// Returns whether it has this address, and messages come from this source.
    pub(super) fn is(&self, address: SocketAddr, source: Option<IpAddr>) -> bool {
        (self.health.address, self.source) == (address, source)
    }

    /// Returns whether messages may be sent now. `now` is the time since any moment.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        now >= self.until
    }

    /// Counts records that are left out.
    pub(super) fn leave_out(&self, records: u32) {
        self.health.left_out.fetch_add(records.into(), Ordering::Relaxed);
    }

    /// Sends a message, or leaves it out. Returns whether it was sent.
    pub(super) fn send(&mut self, message: &mut SealedMessage, now: Duration) -> bool {
        if !self.is_open(now) {
            self.leave_out(message.data_records);
            return false;
        }
        match self.try_send(message) {
            Ok(()) => {
                self.sequence = self.sequence.wrapping_add(message.data_records);
                self.health.messages.fetch_add(1, Ordering::Relaxed);
                self.health.records.fetch_add(message.data_records.into(), Ordering::Relaxed);
                if !self.pause.is_zero() && now >= self.until + WELL {
                    self.pause = Duration::ZERO;
                    self.health.is_well.store(true, Ordering::Relaxed);
                }
                true
            }
            Err(error) => {
                self.leave_out(message.data_records);
                self.fault(&error, now);
                false
            }
        }
    }

    fn try_send(&mut self, message: &mut SealedMessage) -> io::Result<()> {
        let bytes = message.numbered(self.sequence);
        let socket = match &mut self.socket {
            Some(socket) => socket,
            none => none.insert(open(self.health.address, self.source, self.port)?),
        };
        // A datagram goes out whole or not at all.
        socket.send(bytes).map(drop)
    }

    fn fault(&mut self, error: &io::Error, now: Duration) {
        self.health.faults.fetch_add(1, Ordering::Relaxed);
        // A full buffer of the machine is no fault of the collector, and is empty soon.
        if error.kind() == io::ErrorKind::WouldBlock {
            return;
        }
        *self.health.last_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        self.health.is_well.store(false, Ordering::Relaxed);
        self.pause = (self.pause * 2).clamp(PAUSE, LONGEST);
        self.until = now + self.pause;
        // It may have been started again, and has no templates then.
        self.templates_due = None;
        // Another socket, because errors wait in a queue of this one, and its source may be wrong after a change of routes.
        if let Some(socket) = self.socket.take() {
            self.port = socket.local_addr().map_or(0, |local| local.port());
        }
    }
}

fn open(address: SocketAddr, source: Option<IpAddr>, port: u16) -> io::Result<UdpSocket> {
    let any = match address {
        SocketAddr::V4(_) => IpAddr::from([0; 4]),
        SocketAddr::V6(_) => IpAddr::from([0; 16]),
    };
    let source = source.unwrap_or(any);
    // Another program may have taken the port meanwhile.
    let socket = UdpSocket::bind((source, port)).or_else(|_| UdpSocket::bind((source, 0)))?;
    socket.set_nonblocking(true)?;
    report_errors(&socket, address.is_ipv4())?;
    // Connected, because the kernel reports ICMP errors to such sockets alone.
    socket.connect(address)?;
    Ok(socket)
}

/// Has the kernel report all ICMP errors; it keeps "host unreachable" and others to itself otherwise (ip(7), IP_RECVERR).
#[cfg(target_os = "linux")]
fn report_errors(socket: &UdpSocket, v4: bool) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    let (level, name) = match v4 {
        true => (libc::IPPROTO_IP, libc::IP_RECVERR),
        false => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    crate::kernel::sys::set_number(socket.as_fd(), level, name, 1)
}

#[cfg(not(target_os = "linux"))]
fn report_errors(_: &UdpSocket, _: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::message::IpfixMessage;

    fn message(records: u32) -> SealedMessage {
        let mut message = IpfixMessage::new(500);
        message.begin_set(256);
        (0..records).for_each(|_| assert!(message.record(|bytes| bytes.push(7))));
        message.finish(0, 1)
    }

    fn count(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    #[test]
    fn messages_are_numbered_by_the_data_records_before() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut collector = Collector::new(receiver.local_addr().unwrap(), None);
        let mut numbers = Vec::new();
        for records in [3, 0, 5, 1] {
            assert!(collector.send(&mut message(records), Duration::ZERO));
            let mut bytes = [0; 600];
            let len = receiver.recv(&mut bytes).unwrap();
            assert_eq!(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), len);
            numbers.push(u32::from_be_bytes(bytes[8..12].try_into().unwrap()));
        }
        assert_eq!(numbers, [0, 3, 3, 8]);
        let health = &collector.health;
        assert_eq!((count(&health.messages), count(&health.records), count(&health.faults)), (4, 9, 0));
        assert!(health.is_well.load(Ordering::Relaxed) && health.last_fault().is_none());
    }

    #[test]
    fn a_collector_that_refuses_is_left_alone_longer_and_longer() {
        // A port that nothing listens at: the kernel reports that at the message after the one that was refused.
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut collector = Collector::new(address, None);
        let (mut faults, mut sent) = (Vec::new(), 0);
        for second in 0..1000_u64 {
            let before = count(&collector.health.faults);
            sent += u64::from(collector.send(&mut message(2), Duration::from_secs(second)));
            if count(&collector.health.faults) > before {
                faults.push(second);
            }
        }
        let pauses: Vec<u64> = faults.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Each pause, and the second of the message that was refused unseen.
        assert_eq!(pauses[..6], [2, 3, 5, 9, 17, 33], "{faults:?}");
        assert!(pauses[6..].iter().all(|&pause| pause == 61), "{pauses:?}");
        let health = &collector.health;
        assert!(!health.is_well.load(Ordering::Relaxed));
        assert!(health.last_fault().unwrap().contains("refused"), "{:?}", health.last_fault());
        assert_eq!(count(&health.messages), sent);
        assert_eq!(count(&health.records) + count(&health.left_out), 2000, "each record is counted once");
        assert!(sent < 40, "{sent} messages to a collector that is not there");
    }

    #[test]
    fn a_collector_that_comes_back_is_well_after_some_seconds() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = receiver.local_addr().unwrap();
        drop(receiver);
        let mut collector = Collector::new(address, None);
        let send =
            |collector: &mut Collector, second| collector.send(&mut message(1), Duration::from_secs(second));
        assert!(send(&mut collector, 0));
        assert!(!send(&mut collector, 0), "refused");
        assert!(collector.templates_due.is_none());
        let port = collector.port;
        let receiver = UdpSocket::bind(address).unwrap();
        for second in 1..6 {
            assert!(send(&mut collector, second));
            assert!(!collector.health.is_well.load(Ordering::Relaxed), "at second {second}");
        }
        assert!(send(&mut collector, 6));
        assert!(collector.health.is_well.load(Ordering::Relaxed));
        // The same session, whose numbers go on: one record had been sent before.
        let (mut bytes, mut from) = ([0; 600], None);
        for number in 1..7 {
            let (_, sender) = receiver.recv_from(&mut bytes).unwrap();
            assert_eq!(u32::from_be_bytes(bytes[8..12].try_into().unwrap()), number);
            assert_eq!(sender.port(), port);
            assert_eq!(*from.get_or_insert(sender), sender);
        }
    }

    #[test]
    fn an_address_without_a_route_is_a_fault() {
        // Bound to loopback, no address elsewhere can be reached.
        let mut collector =
            Collector::new("192.0.2.1:4739".parse().unwrap(), Some("127.0.0.1".parse().unwrap()));
        let first = collector.send(&mut message(1), Duration::ZERO);
        assert!(!first && collector.socket.is_none());
        assert_eq!((count(&collector.health.faults), count(&collector.health.left_out)), (1, 1));
        assert!(!collector.is_open(Duration::from_millis(999)) && collector.is_open(Duration::from_secs(1)));
        // Nobody has the source.
        let mut other =
            Collector::new("127.0.0.1:4739".parse().unwrap(), Some("192.0.2.77".parse().unwrap()));
        assert!(!other.send(&mut message(1), Duration::ZERO));
    }
}
