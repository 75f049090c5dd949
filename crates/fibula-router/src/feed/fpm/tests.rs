use super::*;
use crate::config::{Account, Accounts};
use crate::feed::Choice;
use crate::feed::keeper::Times;
use crate::feed::netlink::number;
use crate::feed::netlink::tests::{message, object_body, route_body};
use crate::feed::path::{Out, Path, Way};
use crate::feed::routes::Routes;
use crate::feed::server::{Options, Server};
use crate::feed::sessions::Limits;
use crate::feed::state::{Count, Phase, Stranger};
use crate::kernel::sys;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(super) fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, kind];
    bytes.extend((body.len() as u16 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub(super) fn new_route(prefix: &str, last: u8) -> Vec<u8> {
    let attributes = [(libc::RTA_GATEWAY, &[192, 0, 2, last][..]), (libc::RTA_OIF, &3u32.to_ne_bytes())];
    message(libc::RTM_NEWROUTE, 0x500, 0, &route_body(prefix, 1, &attributes))
}

pub(super) fn del_route(prefix: &str) -> Vec<u8> {
    message(libc::RTM_DELROUTE, 0x500, 0, &route_body(prefix, 1, &[]))
}

fn via(last: u8) -> Path {
    Path::Ways([Way::new(Some(IpAddr::from([192, 0, 2, last])), Out::Device(3))].into())
}

/// A session as zebra has it: objects, routes, one replaced, one removed, types that are not known, protobuf.
fn session() -> Vec<u8> {
    let object =
        object_body(7, &[(number::NHA_GATEWAY, &[192, 0, 2, 7]), (number::NHA_OIF, &3u32.to_ne_bytes())]);
    let by_object = route_body("10.3.0.0/16", 1, &[(number::RTA_NH_ID, &7u32.to_ne_bytes())]);
    let frames = [
        frame(1, &message(number::NEW_NEXT_HOP, 0x500, 0, &object)),
        frame(1, &new_route("10.1.0.0/16", 1)),
        frame(1, &new_route("10.2.0.0/16", 2)),
        frame(1, &message(libc::RTM_NEWROUTE, 0x500, 0, &by_object)),
        frame(1, &[del_route("10.1.0.0/16"), new_route("10.1.0.0/16", 9)].concat()),
        frame(1, &message(2000, 0, 0, &[1, 2, 3, 4])),
        frame(2, &[1, 2, 3]),
        frame(1, &del_route("10.2.0.0/16")),
        frame(1, &message(libc::RTM_NEWROUTE, 0x500, 0, &route_body("10.4.0.0/16", 6, &[]))),
    ];
    frames.concat()
}

fn rib() -> (Rib, Entrance) {
    let rib = Rib::new(vec![Routes::new("zebra", 20, 100, 1)]);
    (rib, Entrance { feed: 0, tables: vec![(254, 0)], has_metrics: false })
}

fn enter(entrance: &Entrance, rib: &mut Rib, message: Message) {
    let _ = entrance.message(rib, message);
}

/// Returns the routes, as prefixes and what they lead to.
fn routes(rib: &mut Rib) -> Vec<(String, Path)> {
    for number in rib.take_fresh() {
        let active = rib.expand(number).is_some();
        rib.set_fresh(number, active);
    }
    let mut found = Vec::new();
    for n in 0..8 {
        let prefix = format!("10.{n}.0.0/16");
        if let Some(Choice::Path(number)) = rib.choose((0, prefix.parse().unwrap())) {
            found.push((prefix, rib.expand(number).unwrap()));
        }
    }
    found
}

fn told() -> Vec<(String, Path)> {
    vec![
        ("10.1.0.0/16".into(), via(9)),
        ("10.3.0.0/16".into(), via(7)),
        ("10.4.0.0/16".into(), Path::Blackhole),
    ]
}

#[test]
fn frames_are_the_same_wherever_they_are_torn() {
    let bytes = session();
    for cut in 0..=bytes.len() {
        let (mut rib, entrance) = rib();
        let mut frames = Frames::new(usize::from(u16::MAX));
        for part in [&bytes[..cut], &bytes[cut..]] {
            frames.feed(part, |message, _| enter(&entrance, &mut rib, message)).unwrap();
        }
        assert_eq!(routes(&mut rib), told(), "cut at {cut}");
        let state = &rib.feeds()[0].state;
        assert_eq!((state.counted(Count::Messages), state.counted(Count::Skipped)), (10, 2));
    }
    // Byte by byte.
    let (mut count, mut frames) = (0, Frames::new(usize::from(u16::MAX)));
    for byte in bytes {
        frames.feed(&[byte], |_, _| count += 1).unwrap();
    }
    assert_eq!(count, 10);
}

#[test]
fn garbage_ends_a_session_after_what_was_good() {
    let good = frame(1, &new_route("10.1.0.0/16", 1));
    let mut bad_message = frame(1, &new_route("10.2.0.0/16", 1));
    bad_message[4] = 15;
    for (bytes, broken) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Broken::Version(b'G')),
        (vec![1, 1, 0, 3], Broken::FrameLength(3)),
        (vec![1, 1, 0xff, 0xff], Broken::FrameLength(65_535)),
        (bad_message, Broken::MessageLength),
        (frame(1, &[0; 16]), Broken::MessageLength),
    ] {
        let (mut count, mut frames) = (0, Frames::new(8192));
        let done = frames.feed(&[good.clone(), bytes].concat(), |_, _| count += 1);
        assert_eq!((done, count), (Err(broken), 1));
    }
    // Any byte changed: no panic, and nothing is read past a frame.
    let bytes = session();
    for at in 0..bytes.len() {
        for value in [0, 1, 2, 17, 128, 255] {
            let mut other = bytes.clone();
            other[at] = value;
            let (mut rib, entrance) = rib();
            let _ = Frames::new(8192).feed(&other, |message, _| enter(&entrance, &mut rib, message));
        }
    }
}

#[test]
fn tables_are_mapped_to_vrfs() {
    let mut rib = Rib::new(vec![Routes::new("zebra", 20, 100, 2)]);
    let entrance = Entrance { feed: 0, tables: vec![(254, 0), (1000, 1)], has_metrics: false };
    let in_table = |table: u32, kind: u16| {
        // Without a device: the gateway's network says where it is, in the VRF of the route.
        let attributes = [(libc::RTA_GATEWAY, &[192, 0, 2, 1][..]), (libc::RTA_TABLE, &table.to_ne_bytes())];
        message(kind, 0x500, 0, &route_body("10.1.0.0/16", 1, &attributes))
    };
    tell(&mut rib, &entrance, &in_table(1000, libc::RTM_NEWROUTE));
    tell(&mut rib, &entrance, &in_table(77, libc::RTM_NEWROUTE));
    tell(&mut rib, &entrance, &in_table(254, libc::RTM_DELROUTE));
    assert_eq!(rib.feeds()[0].state.counted(Count::OtherTable), 1);
    assert_eq!((rib.feeds()[0].len(), rib.take_fresh()), (1, vec![0]));
    rib.set_fresh(0, true);
    let prefix = "10.1.0.0/16".parse().unwrap();
    assert_eq!((rib.choose((0, prefix)), rib.choose((1, prefix))), (None, Some(Choice::Path(0))));
    let near = Way::new(Some(IpAddr::from([192, 0, 2, 1])), Out::Near(1));
    assert_eq!(rib.expand(0), Some(Path::Ways([near].into())));
}

const SECOND: u64 = 1_000_000_000;
const TIMES: Times = Times { keep_ns: 10 * SECOND, sweep_ns: 4 * SECOND, quiet_ns: SECOND };

fn tell(rib: &mut Rib, entrance: &Entrance, bytes: &[u8]) {
    Frames::new(8192).feed(&frame(1, bytes), |message, _| enter(entrance, rib, message)).unwrap();
}

#[test]
fn routes_are_kept_over_a_reconnection_and_swept_after_it() {
    let (mut rib, entrance) = rib();
    let mut keeper = Keeper::new(0, TIMES);
    keeper.began(&mut rib, 0);
    assert_eq!(rib.feeds()[0].state.phase, Phase::Synchronising);
    for n in 1..4 {
        tell(&mut rib, &entrance, &new_route(&format!("10.{n}.0.0/16"), 1));
    }
    assert_eq!(keeper.tick(&mut rib, 5 * SECOND), 0);
    assert_eq!(rib.feeds()[0].state.phase, Phase::Established);
    keeper.ended(&mut rib, 20 * SECOND);
    assert_eq!(keeper.tick(&mut rib, 29 * SECOND), 0);
    assert_eq!((rib.feeds()[0].state.phase, rib.feeds()[0].len()), (Phase::Kept, 3));
    // The next session comes in time, and goes on telling past the time of the sweep.
    keeper.began(&mut rib, 29 * SECOND);
    tell(&mut rib, &entrance, &new_route("10.1.0.0/16", 1));
    assert_eq!(keeper.tick(&mut rib, 32 * SECOND), 0, "quiet, but before the time of the sweep");
    keeper.heard(33 * SECOND);
    assert_eq!(keeper.tick(&mut rib, 33 * SECOND), 0, "not quiet");
    tell(&mut rib, &entrance, &new_route("10.2.0.0/16", 5));
    assert_eq!(keeper.tick(&mut rib, 34 * SECOND), 1);
    assert_eq!(routes(&mut rib), [("10.1.0.0/16".into(), via(1)), ("10.2.0.0/16".into(), via(5))]);
    keeper.ended(&mut rib, 40 * SECOND);
    assert_eq!(keeper.tick(&mut rib, 50 * SECOND), 2);
    assert_eq!((rib.feeds()[0].state.phase, rib.feeds()[0].len()), (Phase::Down, 0));
    // One that is never quiet is swept after all the same.
    keeper.began(&mut rib, 60 * SECOND);
    tell(&mut rib, &entrance, &new_route("10.6.0.0/16", 1));
    keeper.ended(&mut rib, 61 * SECOND);
    keeper.began(&mut rib, 62 * SECOND);
    for (second, swept) in [(69, 0), (70, 1)] {
        keeper.heard(second * SECOND);
        assert_eq!(keeper.tick(&mut rib, second * SECOND), swept, "{second}");
    }
    assert_eq!(rib.feeds()[0].state.phase, Phase::Established);
}

#[test]
fn the_server_takes_the_last_session_and_closes_garbage() {
    let (rib, entrance) = rib();
    let rib = Mutex::new(rib);
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: Limits { allow: Vec::new(), sessions: 3 },
        accounts: Accounts::Any,
        times: Times { keep_ns: 3600 * SECOND, ..TIMES },
    };
    let mut server = Server::open(options, Fpm { entrance, frame_bytes: 8192, acknowledge: false }).unwrap();
    let address = server.address().unwrap();
    let mut until = |what: &str, is_so: &dyn Fn(&Rib) -> bool| {
        let begin = Instant::now();
        while !is_so(&rib.lock().unwrap()) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {:?}", rib.lock().unwrap().feeds());
            server.turn(&rib);
        }
    };
    let counted = |what: Count, count: u64| move |rib: &Rib| rib.feeds()[0].state.counted(what) == count;
    let mut first = TcpStream::connect(address).unwrap();
    let bytes = session();
    first.write_all(&bytes[..bytes.len() / 2]).unwrap();
    until("half", &|rib| !rib.feeds()[0].is_empty());
    first.write_all(&bytes[bytes.len() / 2..]).unwrap();
    until("all", &counted(Count::Messages, 10));
    assert_eq!(routes(&mut rib.lock().unwrap()), told());
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    until("garbage", &counted(Count::Closed, 1));
    assert_eq!(rib.lock().unwrap().feeds()[0].state.phase, Phase::Synchronising, "the session goes on");
    // Another one takes its place; its own end is no end of the feed.
    let mut second = TcpStream::connect(address).unwrap();
    second.write_all(&frame(1, &new_route("10.5.0.0/16", 5))).unwrap();
    until("second", &counted(Count::Messages, 11));
    drop(first);
    until("sessions", &counted(Count::Sessions, 3));
    drop(second);
    until("end", &|rib| rib.feeds()[0].state.phase == Phase::Kept);
    assert_eq!(rib.lock().unwrap().feeds()[0].len(), 4, "all are kept");
    let many: Vec<_> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    until("too many", &counted(Count::Closed, 2));
    drop(many);
}

/// Connects to a server that takes connections of some accounts of this machine. Returns the messages that it has read, the connections
/// that it has closed, and the strangers that it has met.
fn told_by(accounts: Accounts, close: bool) -> (u64, u64, Vec<Stranger>) {
    let (rib, entrance) = rib();
    let rib = Mutex::new(rib);
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: Limits { allow: Vec::new(), sessions: 3 },
        accounts,
        times: TIMES,
    };
    let mut server = Server::open(options, Fpm { entrance, frame_bytes: 8192, acknowledge: false }).unwrap();
    let mut stream = Some(TcpStream::connect(server.address().unwrap()).unwrap());
    stream.as_mut().unwrap().write_all(&session()).unwrap();
    if close {
        stream = None;
    }
    for _ in 0..20 {
        server.turn(&rib);
    }
    drop(stream);
    let rib = rib.lock().unwrap();
    let state = &rib.feeds()[0].state;
    (state.counted(Count::Messages), state.counted(Count::Closed), state.strangers.clone())
}

#[test]
fn programs_of_other_accounts_and_of_nobody_change_nothing() {
    let me = sys::user();
    let only = |number| Accounts::Only(vec![Account::Number(number)]);
    assert_eq!(told_by(only(me), false), (10, 0, vec![]));
    assert_eq!(told_by(only(me + 1), false), (0, 1, vec![Stranger::Account(me)]));
    // The kernel says of a socket that was closed that it is root's. Messages of such a one count for nothing.
    assert_eq!(told_by(only(me), true), (0, 1, vec![Stranger::Unknown]));
    assert_eq!(told_by(only(0), true), (0, 1, vec![Stranger::Unknown]));
}
