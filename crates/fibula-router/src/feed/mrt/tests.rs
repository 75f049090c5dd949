use super::*;
use crate::feed::path::Path;
use crate::feed::routes::Routes;
use crate::feed::state::Phase;
use crate::feed::{Choice, Rib};
use std::net::IpAddr;
use std::time::Instant;

fn record(seconds: u32, kind: u8, subtype: u8, body: &[u8]) -> Vec<u8> {
    [&seconds.to_be_bytes()[..], &[0, kind, 0, subtype], &(body.len() as u32).to_be_bytes(), body].concat()
}

/// Two peers, 10.0.0.1 and 10.0.0.2.
fn peers(seconds: u32) -> Vec<u8> {
    let peer = |last: u8| {
        [&[2, 10, 0, 0, last, 10, 0, 0, last][..], &(64_500 + u32::from(last)).to_be_bytes()].concat()
    };
    record(seconds, 13, 1, &[&[10, 0, 0, 9, 0, 0, 0, 2][..], &peer(1), &peer(2)].concat())
}

/// A path of `path_len` ASes, with the next hop 10.0.0.`last`.
fn attributes(last: u8, path_len: u8) -> Vec<u8> {
    let path: Vec<u8> = (0..path_len).flat_map(|hop| (64_500 + u32::from(hop)).to_be_bytes()).collect();
    let head = [0x40, 1, 1, 0, 0x40, 2, 2 + 4 * path_len, 2, path_len];
    [&head[..], &path, &[0x40, 3, 4, 10, 0, 0, last]].concat()
}

/// 10.`n`.0.0/16 of a table dump, by both peers, of which the first has the shorter path.
fn listed(seconds: u32, n: u8) -> Vec<u8> {
    let entry = |index: u8| {
        let attributes = attributes(index + 1, index + 1);
        [&[0, index, 0, 0, 0, 0][..], &(attributes.len() as u16).to_be_bytes(), &attributes].concat()
    };
    record(seconds, 13, 2, &[&[0, 0, 0, 0, 16, 10, n, 0, 2][..], &entry(0), &entry(1)].concat())
}

/// An update of the peer 10.0.0.`last`, which announces 10.`n`.0.0/16 or withdraws it.
fn update(seconds: u32, last: u8, n: u8, announces: bool) -> Vec<u8> {
    let prefix = [16, 10, n];
    let (withdrawn, attributes, announced) = match announces {
        true => (&[][..], attributes(last, 1), &prefix[..]),
        false => (&prefix[..], Vec::new(), &[][..]),
    };
    let len = 23 + withdrawn.len() + attributes.len() + announced.len();
    let lens = [withdrawn.len(), attributes.len()].map(|len| (len as u16).to_be_bytes());
    let ends = [
        &(64_500 + u32::from(last)).to_be_bytes()[..],
        &[0, 0, 0xfd, 0xe8, 0, 0, 0, 1, 10, 0, 0, last, 10, 0, 0, 9],
    ];
    let head =
        [&ends.concat()[..], &[0xff; 16], &(len as u16).to_be_bytes(), &[2], &lens[0], withdrawn, &lens[1]];
    record(seconds, 16, 4, &[&head.concat()[..], &attributes, announced].concat())
}

/// A folder of files, and a feed that plays it.
struct Bench {
    folder: PathBuf,
    rib: Mutex<Rib>,
    stop: AtomicBool,
}

impl Bench {
    fn new(name: &str, limit: usize) -> Self {
        let folder = std::env::temp_dir().join(format!("fibula-router-mrt-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let rib = Mutex::new(Rib::new(vec![Routes::new("played", 200, limit, 1)]));
        Self { folder, rib, stop: AtomicBool::new(false) }
    }

    fn write(&self, name: &str, records: &[Vec<u8>]) {
        fs::write(self.folder.join(name), records.concat()).unwrap();
    }

    fn options(&self) -> Options {
        Options {
            feed: 0,
            files: vec![self.folder.clone()],
            vrf: 0,
            rate: MrtRate::Max,
            repeat: false,
            selection: Selection::Best,
            keep_ns: 100_000_000,
            routes: 8,
        }
    }

    fn play(&self, options: Options) -> Result<(), ReplayError> {
        Replay::new(options).play(&self.rib, &self.stop)
    }

    /// The second byte of each prefix, and the last one of its next hop.
    fn routes(&self) -> Vec<(u8, u8)> {
        let mut rib = self.rib.lock().unwrap();
        for number in rib.take_fresh() {
            rib.set_fresh(number, true);
        }
        let last = |number| match rib.expand(number) {
            Some(Path::Ways(ways)) => match ways[0].gateway {
                Some(IpAddr::V4(address)) => address.octets()[3],
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let find = |n: u8| match rib.choose((0, format!("10.{n}.0.0/16").parse().unwrap())) {
            Some(Choice::Path(number)) => Some((n, last(number))),
            _ => None,
        };
        (0..10).filter_map(find).collect()
    }

    /// Has a thread play, until something is so.
    fn run_until(&self, options: Options, is_so: impl Fn(&Routes) -> bool) {
        std::thread::scope(|scope| {
            scope.spawn(|| Replay::new(options).run(&self.rib, &self.stop));
            let begin = Instant::now();
            while !self.state(&is_so) && begin.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(STEP);
            }
            self.stop.store(true, Ordering::Relaxed);
        });
        assert!(self.state(is_so), "{:?}", self.rib.lock().unwrap().feeds());
    }

    fn state<T>(&self, of: impl Fn(&Routes) -> T) -> T {
        of(&self.rib.lock().unwrap().feeds()[0])
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_dump_and_the_updates_after_it_are_played() {
    let bench = Bench::new("order", 100);
    bench.write("b-rib", &[peers(100), listed(100, 1), listed(100, 2), listed(100, 3)]);
    bench.write(
        "a-updates",
        &[
            update(101, 1, 1, false),
            update(102, 1, 2, false),
            update(102, 2, 2, false),
            update(103, 2, 4, true),
        ],
    );
    bench.play(bench.options()).unwrap();
    assert_eq!(bench.routes(), [(1, 2), (3, 1), (4, 2)]);
    // The ASes of the dump and of the update.
    let origin = |n: u8| bench.rib.lock().unwrap().origin_of((0, format!("10.{n}.0.0/16").parse().unwrap()));
    assert_eq!([1, 2, 3, 4].map(origin), [64_501, 0, 64_500, 64_500]);
    assert_eq!(bench.state(|feed| (feed.state.phase, feed.state.has_table)), (Phase::Established, true));
    assert_eq!(
        bench.state(|feed| (feed.state.peer_routes, feed.state.counted(Count::Messages))),
        (Some(4), 10)
    );
    // The routes of one peer alone. Routes that are not played again are removed.
    let selection = Selection::Peers(vec!["10.0.0.1".parse().unwrap()]);
    bench.play(Options { selection, ..bench.options() }).unwrap();
    assert_eq!(bench.routes(), [(3, 1)]);
    assert_eq!(bench.state(|feed| feed.state.counted(Count::Swept)), 1);
}

#[test]
fn updates_come_at_their_rate() {
    let bench = Bench::new("rate", 100);
    bench.write("rib", &[peers(100), listed(100, 1), listed(100, 2)]);
    bench.write("updates", &[update(101, 1, 3, true), update(102, 1, 4, true), update(103, 1, 1, false)]);
    for rate in [MrtRate::PerSecond(20), MrtRate::Times(20)] {
        let begin = Instant::now();
        bench.play(Options { rate, ..bench.options() }).unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(100), "{:?}", begin.elapsed());
        assert_eq!(bench.routes(), [(1, 2), (2, 1), (3, 1), (4, 1)]);
    }
    // A wait ends when the router does.
    bench.stop.store(true, Ordering::Relaxed);
    bench.play(Options { rate: MrtRate::Times(1), ..bench.options() }).unwrap();
}

#[test]
fn what_cannot_be_read_is_told_and_its_routes_go() {
    let bench = Bench::new("errors", 4);
    let missing = Options { files: vec![bench.folder.join("none")], ..bench.options() };
    let why = bench.play(missing).unwrap_err().to_string();
    assert!(why.contains("none") && why.contains("No such file"), "{why}");
    assert!(!bench.state(|feed| feed.state.has_table), "nothing was read to its end");
    let device = Options { files: vec!["/dev/null".into()], ..bench.options() };
    assert_eq!(bench.play(device).unwrap_err().to_string(), "/dev/null: not a file");
    bench.write("text", &[b"10.0.0.0/8 192.0.2.1\n".to_vec()]);
    let why = bench.play(bench.options()).unwrap_err().to_string();
    assert!(why.contains("not an MRT file"), "{why}");
    bench.write(
        "text",
        &[peers(100), listed(100, 1), listed(100, 2), listed(100, 3), listed(100, 4), listed(100, 5)],
    );
    let why = bench.play(bench.options()).unwrap_err().to_string();
    assert!(why.contains("more routes of peers than 8"), "{why}");
    assert!(bench.state(|feed| feed.state.is_overrun));
    let why = bench.play(Options { routes: 100, ..bench.options() }).unwrap_err().to_string();
    assert!(why.contains("more routes than its limit"), "{why}");
    // By its thread: the error is seen, the routes stay for a while, and then they go.
    bench.run_until(bench.options(), |feed| feed.state.phase == Phase::Down);
    assert!(bench.state(|feed| feed.is_empty() && feed.state.counted(Count::Expired) > 0));
    assert!(bench.state(|feed| feed.state.last_error.as_ref().unwrap().1.contains("raise 'routes'")));
}

#[test]
fn files_are_played_again_and_again() {
    let bench = Bench::new("again", 100);
    // A record that ends early is counted, and reported at the end.
    bench.write("rib", &[peers(100), listed(100, 1), record(100, 13, 2, &[0, 0, 0, 0, 33]), listed(100, 2)]);
    let options = Options { repeat: true, ..bench.options() };
    bench.run_until(options, |feed| feed.state.counted(Count::Malformed) >= 3);
    assert_eq!(bench.routes(), [(1, 1), (2, 1)]);
    assert!(bench.state(|feed| feed.state.last_error.as_ref().unwrap().1.contains("prefix length 33")));
}
