//! The example programs: a block list in XDP, ASes in tc, a policy for connections in a cgroup.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fibula::Table;
use fibula::net::{IpPrefix, NextHop};
use fibula_bpf::{BpfTable, Engine, FollowOptions, Follower, Options, live_table};
use fibula_proof::verdict::Failure;
use libtest_mimic::Trial;

use super::support::{Bpffs, compile, compile_bpf, crate_path, done, no_programs, trial};

/// In the environment of a child: what it sends or connects.
const CHILD: &str = "FIBULA_BPF_TEST_SENDS";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("programs/block".to_owned(), no_network, block),
        trial("programs/origin".to_owned(), no_bpftool, origin),
        trial("programs/egress".to_owned(), no_cgroups, egress),
    ]
}

fn no_network() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    let try_one = || {
        let made = Network::make();
        made.err().map(|error| format!("no network namespaces: {}", error.message().unwrap_or("")))
    };
    no_programs().or_else(|| WHY.get_or_init(try_one).clone())
}

fn no_bpftool() -> Option<String> {
    let found = Command::new("bpftool").arg("version").output().is_ok_and(|output| output.status.success());
    no_network().or_else(|| (!found).then(|| "no bpftool: apt-get install bpftool".to_owned()))
}

fn no_cgroups() -> Option<String> {
    no_programs()
        .or_else(|| Cgroup::make().err().map(|_| "no cgroups of version 2 can be mounted".to_owned()))
}

/// Two tables in pins, one a family, which a table keeps.
struct Tables {
    // Dropped in this order: the follower holds folders of the file system.
    follower: Follower,
    table: Table,
    bpffs: Bpffs,
    folder: tempfile::TempDir,
}

impl Tables {
    fn make() -> Result<Self, Failure> {
        let (folder, bpffs) = (tempfile::tempdir()?, Bpffs::mount()?);
        let mut all = Vec::new();
        for (engine, name) in [(Engine::Dir18Lines, "four"), (Engine::DirBtree, "six")] {
            let maps = BpfTable::create(&Options::of(engine))?;
            maps.pin(&bpffs.path().join(name))?;
            all.push(maps);
        }
        let table = live_table(Default::default(), &[Engine::Dir18Lines, Engine::DirBtree])?;
        let follower = Follower::start(all, &table, FollowOptions::default())?;
        Ok(Self { folder, bpffs, table, follower })
    }

    fn insert(&self, prefix: &str, number: u32) -> Result<(), Failure> {
        let _ = self.table.insert(prefix.parse::<IpPrefix>()?, NextHop::try_from(number)?)?;
        Ok(())
    }

    /// Compiles a program and its loader, and attaches it.
    fn attach(&self, program: &str, place: &Path, tables: &[&str]) -> Result<Attached, Failure> {
        let (object, attach) = (self.folder.path().join("program.o"), self.folder.path().join("attach"));
        compile_bpf(&crate_path(&format!("programs/{program}.bpf.c")), &[], &object)?;
        compile(&crate_path("programs/attach.c"), &[], &["-lbpf"], &attach)?;
        let mut command = Command::new(attach);
        command.arg(object).arg(place).stdout(Stdio::piped());
        for (name, pins) in tables.iter().zip(["four", "six"]) {
            command.arg(format!("{name}={}", self.bpffs.path().join(pins).display()));
        }
        let mut child = command.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let attached = Attached(child);
        if line == "attached\n" {
            Ok(attached)
        } else {
            Err(format!("{program} was not attached: {line}").into())
        }
    }
}

/// A loader, which detaches its programs when it ends.
struct Attached(Child);

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// A namespace, and a veth pair into it.
struct Network(String, u32);

impl Network {
    /// Returns an address of its subnet, which no other test's has.
    fn address(&self, host: u32) -> IpAddr {
        (10 << 24 | 77 << 16 | (100 + self.1 % 100) << 8 | host).to_be_bytes().into()
    }

    fn make() -> Result<Self, Failure> {
        // Each has a number, because tests run at the same time.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let network = Self(format!("fb{}x{number}", std::process::id() % 1_000_000), number);
        let (name, there) = (&network.0, format!("{}n", network.0));
        let ip = |words: &str| done(Command::new("ip").args(words.split(' '))).map(drop);
        ip(&format!("netns add {name}"))?;
        ip(&format!("link add {name} type veth peer name {there} netns {name}"))?;
        ip(&format!("addr add {}/24 dev {name}", network.address(1)))?;
        ip(&format!("link set {name} up"))?;
        for address in [2, 9].map(|host| network.address(host)) {
            ip(&format!("-n {name} addr add {address}/24 dev {there}"))?;
        }
        ip(&format!("-n {name} link set {there} up"))?;
        Ok(network)
    }

    /// Sends a datagram out of the namespace.
    fn send(&self, from: IpAddr, to: SocketAddr) -> Result<(), Failure> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(std::env::current_exe()?);
        done(command.env(CHILD, format!("send {from} {to}"))).map(drop)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0]).output();
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

pub(crate) fn child() -> Option<ExitCode> {
    let words = std::env::var(CHILD).ok()?;
    let words: Vec<&str> = words.split(' ').collect();
    let run = || -> Result<String, Failure> {
        Ok(match words[..] {
            ["send", from, to] => {
                UdpSocket::bind((from.parse::<IpAddr>()?, 0))?
                    .send_to(b"hello", to.parse::<SocketAddr>()?)?;
                "sent".to_owned()
            }
            ["connect", group, to] => {
                std::fs::write(Path::new(group).join("cgroup.procs"), std::process::id().to_string())?;
                let connected = TcpStream::connect(to.parse::<SocketAddr>()?);
                connected.map_or_else(|error| error.kind().to_string(), |_| "connected".to_owned())
            }
            _ => "nothing".to_owned(),
        })
    };
    let said = run().unwrap_or_else(|error| error.message().unwrap_or("failed").to_owned());
    println!("{said}");
    Some(ExitCode::SUCCESS)
}

fn arrives(socket: &UdpSocket) -> Option<IpAddr> {
    socket.recv_from(&mut [0; 64]).ok().map(|(_, from)| from.ip())
}

fn block() -> Result<(), Failure> {
    let (tables, network) = (Tables::make()?, Network::make()?);
    let [passes, blocked] = [2, 9].map(|host| network.address(host));
    let list = format!("{}/30", network.address(8));
    tables.insert(&list, 7)?;
    let attached = tables.attach("block", Path::new(&network.0), &["blocked", "blocked6"])?;
    let socket = UdpSocket::bind((network.address(1), 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let to = socket.local_addr()?;
    network.send(passes, to)?;
    assert_eq!(arrives(&socket), Some(passes));
    network.send(blocked, to)?;
    assert_eq!(arrives(&socket), None);
    // The list changes while the program is attached.
    let _ = tables.table.remove(list.parse::<IpPrefix>()?)?;
    network.send(blocked, to)?;
    assert_eq!(arrives(&socket), Some(blocked));
    tables.follower.health()?;
    drop(attached);
    Ok(())
}

fn origin() -> Result<(), Failure> {
    let (tables, network) = (Tables::make()?, Network::make()?);
    tables.insert(&format!("{}/24", network.address(0)), 64_500)?;
    let _attached = tables.attach("origin", Path::new(&network.0), &["origins"])?;
    let socket = UdpSocket::bind((network.address(1), 0))?;
    for _ in 0..3 {
        socket.send_to(&[0; 100], (network.address(2), 9))?;
    }
    let dump = done(Command::new("bpftool").args(["map", "dump", "name", "bytes_by_as"]))?.stdout;
    let dump = String::from_utf8(dump)?;
    // 142 bytes a datagram, with the headers; ARP has no route.
    let found = dump.split('}').find(|entry| entry.contains("\"key\": 64500")).ok_or(dump.clone())?;
    let bytes: String =
        found.rsplit("\"value\":").next().unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    if bytes.parse::<u64>()? >= 3 * 142 { Ok(()) } else { Err(dump.into()) }
}

/// A cgroup of this test.
struct Cgroup {
    mounted: tempfile::TempDir,
    group: PathBuf,
}

impl Cgroup {
    fn make() -> Result<Self, Failure> {
        let mounted = tempfile::tempdir()?;
        done(Command::new("mount").args(["-t", "cgroup2", "cgroup2"]).arg(mounted.path()))?;
        let group = mounted.path().join(format!("fibula-bpf-{}", std::process::id()));
        let made = Self { mounted, group };
        std::fs::create_dir(&made.group)?;
        Ok(made)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.group);
        let _ = Command::new("umount").arg("-l").arg(self.mounted.path()).status();
    }
}

fn egress() -> Result<(), Failure> {
    let (tables, cgroup) = (Tables::make()?, Cgroup::make()?);
    for (prefix, number) in [("127.9.0.0/16", 1), ("127.0.0.0/8", 2), ("::1/128", 1), ("2000::/3", 2)] {
        tables.insert(prefix, number)?;
    }
    let attached = tables.attach("egress", &cgroup.group, &["policy", "policy6"])?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let connect = |to: SocketAddr| -> Result<String, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.env(CHILD, format!("connect {} {to}", cgroup.group.display()));
        Ok(String::from_utf8(done(&mut command)?.stdout)?.trim().to_owned())
    };
    assert_eq!(connect(listener.local_addr()?)?, "connected");
    let refused: [SocketAddr; 3] =
        ["127.9.9.9:9".parse()?, "[::1]:9".parse()?, "[::ffff:127.9.9.9]:9".parse()?];
    for to in refused {
        let said = connect(to)?;
        // Without IPv6 on this machine, the address itself is refused.
        if said != "permission denied" && !(to.is_ipv6() && said.contains("address")) {
            return Err(format!("{to}: {said}").into());
        }
    }
    drop(attached);
    // Without the program, nothing listens there.
    assert_eq!(connect(refused[0])?, "connection refused");
    Ok(())
}
