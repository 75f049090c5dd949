//! Random frames and random changes.

use fibula_router::forward::fabric::{Fabric, Hop, Urpf};

use crate::support::frames;
use crate::support::random::Random;

/// Random frames and changes, which follow from a seed.
pub(crate) struct RandomFrames(Random);

impl RandomFrames {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0.below(count)
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        self.0.one_of(of)
    }

    fn often<'a>(&mut self, usual: &'a str, others: &[&'a str]) -> &'a str {
        if self.below(24) > 0 { usual } else { self.one(others) }
    }

    /// Returns the port of a frame, and the frame.
    pub(crate) fn frame(&mut self) -> (usize, Vec<u8>) {
        let port = self.below(5);
        let mac = format!("R{port}");
        let to = self.often(&mac, &["ALL", "B", "R1", "33:33:00:00:00:01"]).to_owned();
        let vlan = match port {
            2 => self.one(&["vlan 10 / ", "vlan 20 / ", "vlan 20 / ", "vlan 9 / ", ""]),
            _ => self.often("", &["vlan 0 / ", "vlan 10 / ", "vlan 7 / vlan 8 / "]),
        };
        let v6 = self.below(2) == 0;
        let near = if port == 2 && vlan.contains("20") { 3 } else { [0, 1, 2, 4, 5][port] };
        let packet = if v6 { self.v6(near) } else { self.v4(near) };
        let mut text = format!("eth {to} A / {vlan}{packet}");
        if self.below(10) == 0 {
            text += &format!(" / pad {}", 1 + self.below(30));
        }
        let mut frame = frames::build(&text, &[]).bytes;
        if self.below(20) == 0 {
            let at = 12 + self.below(frame.len() - 12);
            frame[at] ^= 1 << self.below(8);
        }
        if self.below(40) == 0 {
            frame.truncate(14 + self.below(frame.len() - 13));
        }
        (port, frame)
    }

    fn upper(&mut self, icmp: &str) -> String {
        let (from, to) = (1 + self.below(40), 1 + self.below(40));
        let size = match self.below(6) {
            // Around the MTUs of the network.
            0 => [1232, 1252, 1272][self.below(3)] + self.below(6),
            1 => 1400 + self.below(100),
            _ => self.below(60),
        };
        match self.below(5) {
            0 => format!("tcp {from} {to} / data {}", 12 + size),
            1 => format!("{icmp} / data {size}"),
            2 => format!("hex {}", "2f".repeat(1 + size)),
            _ => format!("udp {from} {to} / data {size}"),
        }
    }

    fn v4(&mut self, near: usize) -> String {
        let host = self.below(4);
        let source = match self.below(10) {
            0 => self
                .one(&["127.0.0.1", "0.0.0.1", "169.254.3.4", "240.0.0.1", "224.0.0.5", "203.0.113.9"])
                .to_owned(),
            1 => format!("10.0.{}.254", self.below(6)),
            2..8 => format!("10.0.{near}.{}", 1 + host),
            _ => format!(
                "{}.{host}",
                self.one(&[
                    "10.0.0", "10.0.4", "10.0.5", "10.0.3", "198.51.0", "198.51.2", "198.51.5", "198.51.6"
                ])
            ),
        };
        let to = match self.below(12) {
            0 => self
                .one(&["224.0.0.9", "255.255.255.255", "10.0.1.254", "203.0.113.9", "127.0.0.1", "0.0.0.0"])
                .to_owned(),
            1..4 => format!("{}.{}", self.one(&["10.0.1", "10.0.2", "10.0.3", "10.0.4"]), 1 + self.below(2)),
            _ => format!("198.51.{}.{}", self.below(9), self.below(200)),
        };
        let mut options = String::new();
        options += self.often("", &[" ttl=1", " ttl=0", " ttl=2", " ttl=255"]);
        options += self.often("", &[" df", " mf", " off=3", " off=8191", " off=8000 mf"]);
        options += self
            .often("", &[" tos=184", " id=77", " opt=01010101", " opt=94040000", " len=19", " first=0x46"]);
        format!("ip4 {source} {to}{options} / {}", self.upper("icmp 8 0"))
    }

    fn v6(&mut self, near: usize) -> String {
        let host = self.below(4);
        let source = match self.below(10) {
            0 => self.one(&["::", "::1", "ff02::1", "fe80::9", "2001:db8:999::1"]).to_owned(),
            1 => format!("2001:db8:{}::fe", self.below(6)),
            2..8 => format!("2001:db8:{near}::{}", 1 + host),
            _ => format!(
                "{}::{host}",
                self.one(&[
                    "2001:db8:0",
                    "2001:db8:4",
                    "2001:db8:5",
                    "2001:db8:100:0",
                    "2001:db8:100:2",
                    "2001:db8:100:5"
                ])
            ),
        };
        let to = match self.below(12) {
            0 => self.one(&["ff02::1", "fe80::a", "::1", "2001:db8:1::fe", "2001:db8:999::1"]).to_owned(),
            1..4 => format!("2001:db8:{}::{}", 1 + self.below(4), 1 + self.below(2)),
            _ => format!("2001:db8:100:{}::{}", self.below(9), self.below(9)),
        };
        let mut options = String::new();
        options += self.often("", &[" hop=1", " hop=0", " hop=2", " hop=255"]);
        options += self.often("", &[" label=74565", " label=1048575", " version=5"]);
        let extension = self
            .often("", &["ext 0 00010400000000 / ", "ext 43 00040000000000 / ", "ext 60 00010400000000 / "]);
        let upper = self.upper("icmp6 128 0");
        // An extension header needs something after it that names itself.
        let upper = if extension.is_empty() || !upper.starts_with("hex") { upper } else { "udp 1 2".into() };
        let fragment = if self.below(12) == 0 { "frag 3 more / " } else { "" };
        format!("ip6 {source} {to}{options} / {extension}{fragment}{upper}")
    }

    /// Changes the fabric as links, next hops and operators do.
    pub(crate) fn change(&mut self, fabric: &mut Fabric) {
        let number = self.below(5);
        let line = &mut fabric.interfaces[number];
        match self.below(6) {
            0 => line.up = !line.up,
            1 => line.mtu = [1280, 1300, 1500][self.below(3)],
            2 => line.urpf = [Urpf::Off, Urpf::Strict, Urpf::Loose][self.below(3)],
            3 => fabric.hash.seed = self.0.next(),
            4 => fabric.hash.symmetric = !fabric.hash.symmetric,
            _ => {
                let ways: Vec<u32> = (0..fabric.hops.len() as u32)
                    .filter(|&hop| !matches!(fabric.hops[hop as usize], Some(Hop::Group(_))))
                    .collect();
                let count = 1 + self.below(40);
                let members = (0..count).map(|_| ways[self.below(ways.len())]).collect();
                let group = fabric.hops.iter().position(|hop| matches!(hop, Some(Hop::Group(_))));
                if let Some(group) = group {
                    fabric.hops[group] = Some(Hop::Group(members));
                }
            }
        }
        // Interfaces come back, so that most frames have a way.
        let up = self.below(3) > 0;
        fabric.interfaces[..5].iter_mut().for_each(|line| line.up |= up);
    }
}
