//! The account of the other end of a TCP connection within this machine, by the kernel's table of sockets (sock_diag).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use super::sys;

const SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST: u16 = 1;
/// Bytes of a header of netlink.
const HEADER: usize = 16;
/// Bytes of a route, without its attributes.
const ROUTE: usize = 12;
/// Bytes of the kernel's description of a socket, without its attributes.
const SOCKET: usize = 72;
const ESTABLISHED: u8 = 1;

/// Returns whether both ends of a connection are on this machine. If the kernel does not answer, they are taken to be: the account
/// of the peer then decides, and not its address.
pub(crate) fn is_local(peer: SocketAddr, own: SocketAddr) -> bool {
    is_within(peer, own) || is_own(peer.ip().to_canonical()).unwrap_or(true)
}

/// Returns whether the addresses of both ends already show that they are on this machine. A loopback address at either end does: a
/// program may connect to one from any address of the machine, and nothing else can.
fn is_within(peer: SocketAddr, own: SocketAddr) -> bool {
    let (peer, own) = (peer.ip().to_canonical(), own.ip().to_canonical());
    peer.is_loopback() || own.is_loopback() || peer == own
}

/// Returns whether an address is one of this machine's, by the kernel's own table of them, which also decides which addresses a
/// program may connect from.
///
/// # Errors
/// When the kernel does not answer.
fn is_own(ip: IpAddr) -> io::Result<bool> {
    let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, libc::NETLINK_ROUTE)?;
    let octets = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut message = Vec::new();
    message.extend(((HEADER + ROUTE + 4 + octets.len()) as u32).to_ne_bytes());
    message.extend(libc::RTM_GETROUTE.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    // The family, and the length of the destination.
    message.extend([family as u8, 8 * octets.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    message.extend((4 + octets.len() as u16).to_ne_bytes());
    message.extend(libc::RTA_DST.to_ne_bytes());
    message.extend(octets);
    sys::send(fd.as_fd(), &message, 0)?;
    // The kernel answers while it takes the request: with a route, or with an error where there is none.
    let mut answer = [0; 1024];
    let len = sys::receive(fd.as_fd(), &mut answer, 0)?;
    Ok(leads_here(&answer[..len]))
}

/// Returns whether the kernel's answer is a route to this machine itself.
fn leads_here(answer: &[u8]) -> bool {
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    kind == Some(libc::RTM_NEWROUTE) && answer.get(HEADER + 7) == Some(&libc::RTN_LOCAL)
}

/// Returns the account that made the socket at the other end of a connection within this machine. `None` if the kernel does not know
/// it: of a socket that its program has closed, the kernel says that it is root's.
///
/// # Errors
/// When the kernel does not answer.
pub(crate) fn account(peer: SocketAddr, own: SocketAddr) -> io::Result<Option<u32>> {
    let (from, to) = (peer.ip().to_canonical(), own.ip().to_canonical());
    let fd = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, SOCK_DIAG)?;
    let mut message = Vec::new();
    message.extend(((HEADER + 56) as u32).to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    let family = if from.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    message.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes());
    // The peer's own end is here, and ours is the other end of it.
    message.extend(peer.port().to_be_bytes());
    message.extend(own.port().to_be_bytes());
    for ip in [from, to] {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        message.extend(bytes);
    }
    let scope = if let SocketAddr::V6(peer) = peer { peer.scope_id() } else { 0 };
    message.extend(scope.to_ne_bytes());
    // With any cookie.
    message.extend([0xff; 8]);
    sys::send(fd.as_fd(), &message, 0)?;
    // The kernel answers while it takes the request.
    let mut answer = [0; 1024];
    let len = sys::receive(fd.as_fd(), &mut answer, 0)?;
    Ok(read(&answer[..len], (peer.port(), own.port())))
}

/// Reads the kernel's answer about the socket with these ports.
fn read(answer: &[u8], ports: (u16, u16)) -> Option<u32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let socket = answer.get(HEADER..HEADER + SOCKET)?;
    let port = |at: usize| u16::from_be_bytes([socket[at], socket[at + 1]]);
    let number = |at: usize| u32::from_ne_bytes([socket[at], socket[at + 1], socket[at + 2], socket[at + 3]]);
    let (account, inode) = (number(64), number(68));
    // Without a socket of these ends, the kernel answers with one that listens, or with an error. One that was closed has no inode, or
    // is in another state, and root's number.
    let is_open = kind == SOCK_DIAG_BY_FAMILY && socket[1] == ESTABLISHED && inode != 0;
    (is_open && (port(4), port(6)) == ports).then_some(account)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn the_account_of_an_open_connection_is_known_and_of_a_closed_one_is_not() {
        for listen in ["127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else {
                // A machine without IPv6.
                assert_ne!(listen, "127.0.0.1:0");
                continue;
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (end, peer) = listener.accept().unwrap();
            let own = end.local_addr().unwrap();
            assert!(is_local(peer, own), "{listen}");
            assert_eq!(account(peer, own).unwrap(), Some(sys::user()), "{listen}");
            // Closed by one side, it is nobody's, though it exists.
            drop(stream);
            assert_eq!(account(peer, own).unwrap(), None, "{listen}");
            drop(end);
            assert_eq!(account(peer, own).unwrap(), None, "{listen}");
            // Nor is a listening socket taken for one that never was.
            let other = SocketAddr::new(peer.ip(), own.port());
            assert_eq!(account(other, peer).unwrap(), None, "{listen}");
        }
    }

    #[test]
    fn connections_within_the_machine() {
        let is = |peer: &str, own: &str| is_within(peer.parse().unwrap(), own.parse().unwrap());
        assert!(is("127.0.0.9:1", "127.0.0.1:2") && is("[::1]:1", "[::1]:2"));
        assert!(is("192.0.2.1:1", "192.0.2.1:2") && is("[::ffff:127.0.0.1]:1", "127.0.0.1:2"));
        // A program may connect to loopback from another address of the machine.
        assert!(is("192.0.2.2:1", "127.0.0.1:2") && is("[2001:db8::1]:1", "[::1]:2"));
        assert!(is("192.0.2.2:1", "[::ffff:127.0.0.1]:2"));
        assert!(!is("192.0.2.2:1", "192.0.2.1:2") && !is("[2001:db8::1]:1", "[2001:db8::2]:2"));
    }

    /// The kernel says it of addresses by which nothing else shows it, and a program can connect from those alone.
    #[test]
    fn addresses_of_this_machine_are_known() {
        assert!(is_own("127.9.8.7".parse().unwrap()).unwrap());
        // One of documentation, and that of this machine in its network, where it has one.
        let elsewhere: IpAddr = "203.0.113.77".parse().unwrap();
        let outward = UdpSocket::bind("0.0.0.0:0").unwrap();
        let usual = outward.connect((elsewhere, 9)).and_then(|()| outward.local_addr()).map(|own| own.ip());
        assert_eq!(is_own(elsewhere).unwrap(), usual.as_ref().is_ok_and(|&own| own == elsewhere));
        if let Ok(own) = usual {
            assert!(is_own(own).unwrap(), "{own}");
            assert!(is_local((own, 1).into(), "192.0.2.200:2".parse().unwrap()), "{own}");
        }
        // No route, a route elsewhere, a cut answer.
        let mut answer = [0; HEADER + ROUTE];
        answer[4..6].copy_from_slice(&libc::RTM_NEWROUTE.to_ne_bytes());
        answer[HEADER + 7] = libc::RTN_LOCAL;
        assert!(leads_here(&answer) && !leads_here(&answer[..HEADER + 7]));
        answer[HEADER + 7] = libc::RTN_UNICAST;
        assert!(!leads_here(&answer));
        answer[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        answer[HEADER + 7] = libc::RTN_LOCAL;
        assert!(!leads_here(&answer));
    }

    #[test]
    fn answers_that_are_cut_or_about_something_else_name_nobody() {
        let mut answer = vec![0; HEADER + SOCKET];
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[HEADER + 1] = ESTABLISHED;
        answer[HEADER + 4..HEADER + 8].copy_from_slice(&[0, 7, 0, 9]);
        answer[HEADER + 64..HEADER + 68].copy_from_slice(&1000u32.to_ne_bytes());
        answer[HEADER + 68] = 1;
        assert_eq!(read(&answer, (7, 9)), Some(1000));
        assert_eq!(read(&answer, (7, 8)), None);
        for len in 0..answer.len() {
            assert_eq!(read(&answer[..len], (7, 9)), None);
        }
        // An error; another state; no program has it.
        for (at, value) in [(4, 2), (HEADER + 1, 5), (HEADER + 68, 0)] {
            let mut answer = answer.clone();
            answer[at] = value;
            assert_eq!(read(&answer, (7, 9)), None, "{at}");
        }
    }
}
