use super::*;
use crate::config::Accounts;
use crate::config::{BmpPolicy, BmpView};
use crate::feed::Choice;
use crate::feed::keeper::Times;
use crate::feed::path::{Out, Path};
use crate::feed::routes::Routes;
use crate::feed::server::{Options, Server};
use crate::feed::sessions::Limits;
use crate::feed::state::Phase;
use fibula_feed::bmp::Distinguisher;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;
const TIMES: Times = Times { keep_ns: 10 * SECOND, sweep_ns: 4 * SECOND, quiet_ns: SECOND };
const POST: u8 = 0x40;
const LOC_RIB: u8 = 3;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[3][..], &(body.len() as u32 + 6).to_be_bytes(), &[kind], body].concat()
}

/// The header of a peer 10.0.0.`last` of AS 64500 + `last`.
fn peer(kind: u8, flags: u8, distinguisher: u64, last: u8) -> Vec<u8> {
    let mut header = [&[kind, flags][..], &distinguisher.to_be_bytes(), &[0; 12]].concat();
    header.extend(if kind == LOC_RIB { [0; 4] } else { [10, 0, 0, last] });
    header.extend((64_500 + u32::from(last)).to_be_bytes());
    header.extend([10, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, 0]);
    header
}

fn up(peer: &[u8]) -> Vec<u8> {
    let open =
        [&[0xff; 16][..], &[0, 37, 1, 4, 0xfb, 0xf5, 0, 180, 10, 0, 0, 9, 8, 2, 6, 65, 4, 0, 0, 0xfb, 0xf5]];
    let open = open.concat();
    message(3, &[peer, &[0; 20], &open, &open].concat())
}

fn down(peer: &[u8]) -> Vec<u8> {
    message(2, &[peer, &[1]].concat())
}

fn update(peer: &[u8], withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    let len = 23 + withdrawn.len() + attributes.len() + announced.len();
    let lens = [withdrawn.len(), attributes.len()].map(|len| (len as u16).to_be_bytes());
    let head = [peer, &[0xff; 16], &(len as u16).to_be_bytes(), &[2], &lens[0], withdrawn, &lens[1]].concat();
    message(0, &[&head[..], attributes, announced].concat())
}

/// 10.`n`.0.0/16 by 10.0.0.`last`, over a path of `path_len` ASes.
fn route(peer: &[u8], n: u8, last: u8, path_len: u8) -> Vec<u8> {
    let path: Vec<u8> = (0..path_len).flat_map(|hop| (64_500 + u32::from(hop)).to_be_bytes()).collect();
    let head = [0x40, 1, 1, 0, 0x40, 2, 2 + 4 * path_len, 2, path_len];
    let attributes = [&head[..], &path, &[0x40, 3, 4, 10, 0, 0, last]].concat();
    update(peer, &[], &attributes, &[16, 10, n])
}

fn withdrawal(peer: &[u8], n: u8) -> Vec<u8> {
    update(peer, &[16, 10, n], &[], &[])
}

fn end_of_rib(peer: &[u8]) -> Vec<u8> {
    update(peer, &[], &[], &[])
}

fn bmp(view: BmpView, policy: BmpPolicy) -> Bmp {
    let vrfs = [(Distinguisher(0), 0), (Distinguisher(7), 1)].into();
    Bmp { feed: 0, views: Views { view, policy, vrfs, routes: 6 }, frame_bytes: 4096, peers: 3 }
}

/// A session without a socket.
struct Session {
    bmp: Bmp,
    connection: Connection,
    keeper: Keeper,
    rib: Rib,
}

impl Session {
    fn new(bmp: Bmp) -> Self {
        let mut rib = Rib::new(vec![Routes::new("station", 20, 6, 2)]);
        let mut keeper = Keeper::new(0, TIMES);
        keeper.began(&mut rib, 0);
        Self { connection: bmp.connect(), bmp, keeper, rib }
    }

    fn tell(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), End> {
        self.bmp.take(&mut self.connection, bytes);
        self.bmp.enter(&mut self.connection, &mut self.rib, &mut self.keeper, now_ns)
    }

    /// The session is another one.
    fn again(&mut self, now_ns: u64) {
        self.keeper.ended(&mut self.rib, now_ns);
        self.keeper.began(&mut self.rib, now_ns);
        self.connection = self.bmp.connect();
    }

    fn counted(&self, what: Count) -> u64 {
        self.rib.feeds()[0].state.counted(what)
    }

    /// The second byte of each prefix, and the last one of its next hop.
    fn routes(&mut self, vrf: u16) -> Vec<(u8, u8)> {
        for number in self.rib.take_fresh() {
            self.rib.set_fresh(number, true);
        }
        let next_hop = |path: Path| match path {
            Path::Ways(ways) => match (ways[0].gateway, ways[0].out) {
                (Some(IpAddr::V4(address)), Out::Near(near)) if near == vrf => address.octets()[3],
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let find = |n: u8| match self.rib.choose((vrf, format!("10.{n}.0.0/16").parse().unwrap())) {
            Some(Choice::Path(number)) => Some((n, next_hop(self.rib.expand(number).unwrap()))),
            _ => None,
        };
        (0..20).filter_map(find).collect()
    }
}

fn session() -> Vec<u8> {
    let (one, two) = (peer(0, 0, 0, 1), peer(0, 0, 0, 2));
    let red = peer(1, 0, 7, 3);
    [
        message(4, b"\0\x02\0\x01r"),
        up(&one),
        up(&two),
        up(&red),
        route(&one, 1, 1, 2),
        route(&two, 1, 2, 1),
        route(&one, 2, 1, 2),
        route(&two, 3, 2, 1),
        withdrawal(&two, 3),
        route(&red, 1, 3, 5),
        end_of_rib(&one),
        end_of_rib(&two),
        end_of_rib(&red),
        message(1, &one),
    ]
    .concat()
}

#[test]
fn the_best_route_of_all_peers_counts() {
    let mut session_ = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    session_.tell(&session(), 0).unwrap();
    assert_eq!((session_.routes(0), session_.routes(1)), (vec![(1, 2), (2, 1)], vec![(1, 3)]));
    let state = &session_.rib.feeds()[0].state;
    assert_eq!((state.peers, state.peer_routes), (Some(3), Some(4)));
    assert_eq!((state.counted(Count::Messages), state.counted(Count::Skipped)), (14, 1));
    // All peers are complete, so the routes of the earlier session are removed after a silence.
    assert_eq!(state.phase, Phase::Synchronising);
    session_.keeper.tick(&mut session_.rib, SECOND);
    assert_eq!(session_.rib.feeds()[0].state.phase, Phase::Established);
    // The routes of a peer are removed with it, and the next best ones are used.
    session_.tell(&down(&peer(0, 0, 0, 2)), 2 * SECOND).unwrap();
    assert_eq!(session_.routes(0), [(1, 1), (2, 1)]);
    session_.tell(&withdrawal(&peer(0, 0, 0, 1), 2), 2 * SECOND).unwrap();
    assert_eq!(session_.routes(0), [(1, 1)]);
    // A peer that is up again has no routes yet.
    session_.tell(&up(&peer(0, 0, 0, 1)), 2 * SECOND).unwrap();
    assert_eq!((session_.routes(0), session_.routes(1)), (vec![], vec![(1, 3)]));
}

#[test]
fn the_origin_of_a_route_is_that_of_the_best_path() {
    let mut session_ = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    let origin = |session: &mut Session, n: u8| {
        session.routes(0);
        session.rib.origin_of((0, format!("10.{n}.0.0/16").parse().unwrap()))
    };
    assert!(!session_.rib.has_origins());
    session_.tell(&session(), 0).unwrap();
    assert!(session_.rib.has_origins());
    assert_eq!([1, 2, 3].map(|n| origin(&mut session_, n)), [64_500, 64_501, 0]);
    let (one, two) = (peer(0, 0, 0, 1), peer(0, 0, 0, 2));
    session_.tell(&down(&two), 0).unwrap();
    assert_eq!(origin(&mut session_, 1), 64_501, "of the next best route");
    // Another AS announces it by the same next hop: no table changes.
    let paths = session_.rib.paths(false);
    session_.tell(&route(&one, 1, 1, 4), 0).unwrap();
    assert_eq!(session_.rib.paths(false), paths);
    assert_eq!((origin(&mut session_, 1), session_.routes(0)), (64_503, vec![(1, 1), (2, 1)]));
    session_.tell(&route(&one, 1, 1, 0), 0).unwrap();
    assert_eq!(origin(&mut session_, 1), 0, "an empty path says nothing");
}

#[test]
fn a_new_session_replaces_what_the_old_one_told() {
    let mut session_ = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    session_.tell(&session(), 0).unwrap();
    session_.keeper.tick(&mut session_.rib, SECOND);
    session_.again(2 * SECOND);
    let one = peer(0, 0, 0, 1);
    session_.tell(&[up(&one), route(&one, 2, 1, 1), route(&one, 4, 1, 1)].concat(), 2 * SECOND).unwrap();
    assert_eq!(session_.routes(0), [(1, 2), (2, 1), (4, 1)], "what is not told yet stays");
    session_.keeper.tick(&mut session_.rib, 5 * SECOND);
    assert_eq!(session_.routes(0).len(), 3, "not complete, and not quiet for long enough");
    session_.tell(&end_of_rib(&one), 5 * SECOND).unwrap();
    session_.keeper.tick(&mut session_.rib, 6 * SECOND);
    assert_eq!((session_.routes(0), session_.routes(1)), (vec![(2, 1), (4, 1)], vec![]));
    assert_eq!(session_.counted(Count::Swept), 2);
}

#[test]
fn routes_before_and_after_the_policy_are_told_apart() {
    let (pre, post) = (peer(0, 0, 0, 1), peer(0, POST, 0, 1));
    let both =
        [up(&pre), route(&pre, 1, 1, 1), route(&pre, 2, 1, 1), route(&post, 1, 9, 1), route(&pre, 3, 1, 1)];
    for (policy, expected, skipped) in [
        (BmpPolicy::Pre, vec![(1, 1), (2, 1), (3, 1)], 1),
        (BmpPolicy::Post, vec![(1, 9)], 3),
        // Those that come later with the policy are not without a route until then.
        (BmpPolicy::Either, vec![(1, 9), (2, 1)], 1),
    ] {
        let mut session = Session::new(bmp(BmpView::AdjRibIn, policy));
        session.tell(&both.concat(), 0).unwrap();
        assert_eq!((session.routes(0), session.counted(Count::Skipped)), (expected, skipped), "{policy:?}");
        session.tell(&[end_of_rib(&pre), end_of_rib(&post)].concat(), 0).unwrap();
        session.keeper.tick(&mut session.rib, SECOND);
        session.bmp.swept(&mut session.connection, &mut session.rib);
        assert_eq!(session.routes(0).len(), if policy == BmpPolicy::Pre { 3 } else { 1 }, "{policy:?}");
    }
}

#[test]
fn the_routes_that_the_router_uses_are_a_view_of_their_own() {
    let (one, loc) = (peer(0, 0, 0, 1), peer(LOC_RIB, 0, 0, 1));
    let bytes =
        [up(&one), up(&loc), route(&one, 1, 1, 1), route(&loc, 2, 2, 1), route(&loc, 1, 9, 3)].concat();
    for (view, expected) in [(BmpView::AdjRibIn, vec![(1, 1)]), (BmpView::LocRib, vec![(1, 9), (2, 2)])] {
        let mut session = Session::new(bmp(view, BmpPolicy::Either));
        session.tell(&bytes, 0).unwrap();
        assert_eq!(session.routes(0), expected);
        assert_eq!(session.counted(Count::Skipped), 3 - expected.len() as u64);
    }
    // A VRF of the router that none of ours is given for.
    let other = peer(1, 0, 8, 1);
    let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    session.tell(&[up(&other), route(&other, 1, 1, 1)].concat(), 0).unwrap();
    assert_eq!((session.routes(0), session.counted(Count::OtherTable)), (vec![], 1));
}

#[test]
fn limits_end_a_session_that_is_past_them() {
    let one = peer(0, 0, 0, 1);
    let overrun = |bytes: &[u8], part: &str| {
        let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
        match session.tell(bytes, 0) {
            Err(End::Overrun(why)) => assert!(why.contains(part), "{why}"),
            other => panic!("{part}: {other:?}"),
        }
        session
    };
    let routes: Vec<u8> = (0..7).flat_map(|n| route(&one, n, 1, 1)).collect();
    overrun(&[&up(&one)[..], &routes].concat(), "raise 'routes'");
    overrun(&(0..4).flat_map(|n| up(&peer(0, 0, 0, n))).collect::<Vec<_>>(), "raise 'peers'");
    let mut session = overrun(
        &[&up(&one)[..], &route(&one, 1, 1, 1), &[3, 0, 0, 16, 1, 0]].concat(),
        "raise 'frame_bytes'",
    );
    assert_eq!(session.routes(0), [(1, 1)], "what came before is entered");
    // The routes of an earlier session give way at the limit.
    session.again(0);
    let others: Vec<u8> = (7..13).flat_map(|n| route(&one, n, 1, 1)).collect();
    session.tell(&[&up(&one)[..], &others].concat(), 0).unwrap();
    assert_eq!((session.routes(0).len(), session.counted(Count::Swept)), (6, 1));
    session.tell(&[withdrawal(&one, 8), route(&one, 1, 1, 1)].concat(), 0).unwrap();
    assert_eq!(session.routes(0).len(), 6);
}

#[test]
fn a_session_past_the_limit_of_a_vrf_ends() {
    let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    session.rib.limit_vrfs(vec![None, Some(2)]);
    let (main, red) = (peer(0, 0, 0, 1), peer(0, 0, 7, 1));
    let of = |peer: &[u8], from: u8, count: u8| -> Vec<u8> {
        [up(peer), (from..from + count).flat_map(|n| route(peer, n, 1, 1)).collect()].concat()
    };
    let Err(End::Overrun(why)) = session.tell(&[of(&main, 1, 3), of(&red, 1, 3)].concat(), 0) else {
        panic!()
    };
    assert!(why.contains("limit of a VRF"), "{why}");
    assert_eq!((session.routes(0).len(), session.routes(1).len()), (3, 2));
    let state = &session.rib.feeds()[0].state;
    assert!(state.is_overrun && state.full_vrfs.iter().eq(&[1]));
    // The routes of an earlier session in the VRF give way.
    session.again(0);
    session.tell(&of(&red, 5, 2), 0).unwrap();
    assert_eq!((session.routes(1), session.counted(Count::Swept)), (vec![(5, 1), (6, 1)], 5));
    assert!(!session.rib.feeds()[0].state.is_overrun);
}

#[test]
fn damage_ends_a_session_after_what_was_good() {
    let bytes = session();
    let whole = {
        let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
        session.tell(&bytes, 0).unwrap();
        (session.routes(0), session.routes(1))
    };
    for cut in 0..bytes.len() {
        let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
        session.tell(&bytes[..cut], 0).unwrap();
        session.tell(&bytes[cut..], 0).unwrap();
        assert_eq!((session.routes(0), session.routes(1)), whole, "cut at {cut}");
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 3, 64, 255] {
            let mut other = bytes.clone();
            other[at] = value;
            let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
            let _ = session.tell(&other, 0);
        }
    }
    let mut session = Session::new(bmp(BmpView::AdjRibIn, BmpPolicy::Either));
    let one = peer(0, 0, 0, 1);
    let bad = [up(&one), route(&one, 1, 1, 1), message(0, &one), route(&one, 2, 1, 1)].concat();
    let Err(End::Broken(why)) = session.tell(&bad, 0) else { panic!() };
    assert_eq!(why, "Route Monitoring, byte 48: marker of the message: 16 bytes needed, 0 left");
    assert_eq!(session.routes(0), [(1, 1)]);
    // Routes of a peer that is not up are left out and reported.
    session.again(0);
    session.tell(&route(&one, 5, 1, 1), 0).unwrap();
    let state = &session.rib.feeds()[0].state;
    assert_eq!(state.counted(Count::Malformed), 1);
    assert_eq!(state.last_error.as_ref().unwrap().1, "routes of the peer 10.0.0.1, which is not up");
}

#[test]
fn the_server_takes_allowed_addresses_and_has_the_router_begin_anew() {
    let rib = Mutex::new(Rib::new(vec![Routes::new("station", 20, 6, 2)]));
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: Limits { allow: vec!["127.0.0.1/32".parse().unwrap()], sessions: 3 },
        accounts: Accounts::Any,
        times: Times { keep_ns: SECOND / 2, sweep_ns: SECOND / 5, quiet_ns: SECOND / 10 },
    };
    let mut server = Server::open(options, bmp(BmpView::AdjRibIn, BmpPolicy::Either)).unwrap();
    let address = server.address().unwrap();
    let mut until = |what: &str, is_so: &dyn Fn(&Rib) -> bool| {
        let begin = Instant::now();
        while !is_so(&rib.lock().unwrap()) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {:?}", rib.lock().unwrap().feeds());
            server.turn(&rib);
        }
    };
    let counted = |what: Count, count: u64| move |rib: &Rib| rib.feeds()[0].state.counted(what) == count;
    let phase = |phase: Phase| move |rib: &Rib| rib.feeds()[0].state.phase == phase;
    let mut first = TcpStream::connect(address).unwrap();
    first.write_all(&session()).unwrap();
    until("established", &phase(Phase::Established));
    assert_eq!(rib.lock().unwrap().feeds()[0].len(), 3);
    // Past a limit it is closed, and others are refused for a while; what is known stays.
    let one = peer(0, 0, 0, 1);
    first.write_all(&(3..9).flat_map(|n| route(&one, n, 1, 1)).collect::<Vec<_>>()).unwrap();
    until("overrun", &counted(Count::Resynchronised, 1));
    assert!(rib.lock().unwrap().feeds()[0].state.is_overrun);
    assert!(matches!(first.read(&mut [0; 1]), Ok(0) | Err(_)));
    let second = TcpStream::connect(address).unwrap();
    until("pause", &counted(Count::Closed, 2));
    drop(second);
    until("kept", &phase(Phase::Down));
    assert!(rib.lock().unwrap().feeds()[0].state.counted(Count::Expired) > 0);
    std::thread::sleep(Duration::from_secs(1));
    let mut third = TcpStream::connect(address).unwrap();
    third.write_all(&session()).unwrap();
    until("again", &phase(Phase::Established));
    let (is_overrun, len) = {
        let rib = rib.lock().unwrap();
        (rib.feeds()[0].state.is_overrun, rib.feeds()[0].len())
    };
    assert_eq!((is_overrun, len), (false, 3));
    // Garbage ends its own connection alone.
    let mut garbage = TcpStream::connect(address).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    until("garbage", &counted(Count::Malformed, 1));
    assert_eq!(rib.lock().unwrap().feeds()[0].state.phase, Phase::Established);
}

#[test]
fn other_addresses_are_refused() {
    let rib = Mutex::new(Rib::new(vec![Routes::new("station", 20, 6, 2)]));
    let allow = vec!["192.0.2.0/24".parse().unwrap()];
    let options = Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        limits: Limits { allow, sessions: 3 },
        accounts: Accounts::Any,
        times: TIMES,
    };
    let mut server = Server::open(options, bmp(BmpView::AdjRibIn, BmpPolicy::Either)).unwrap();
    let mut stream = TcpStream::connect(server.address().unwrap()).unwrap();
    server.turn(&rib);
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    let rib = rib.lock().unwrap();
    let state = &rib.feeds()[0].state;
    assert_eq!((state.counted(Count::Closed), state.counted(Count::Sessions)), (1, 0));
    assert!(state.last_error.as_ref().unwrap().1.ends_with("not in the list 'allow'"));
}
