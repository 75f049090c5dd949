//! The structure of the file: one struct for each table. Keys have their position in the file where errors need it.

use serde::Deserialize;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) threads: Option<Spanned<usize>>,
    pub(super) receive_threads: Option<Spanned<usize>>,
    pub(super) send_threads: Option<Spanned<usize>>,
    pub(super) shape: Option<Spanned<String>>,
    pub(super) run_time: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) pin: bool,
    pub(super) mode: Option<Spanned<String>>,
    pub(super) start_after: Option<Spanned<u32>>,
    pub(super) socket: Option<String>,
    pub(super) metrics: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) dpdk: Vec<String>,
    pub(super) ipv4_engine: Option<Spanned<String>>,
    pub(super) ipv6_engine: Option<Spanned<String>>,
    /// The names that the two had before.
    pub(super) ipv4_algorithm: Option<Spanned<String>>,
    pub(super) ipv6_algorithm: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) flows: Flows,
    #[serde(default)]
    pub(super) icmp: Icmp,
    #[serde(default)]
    pub(super) martians: MartianSets,
    #[serde(default)]
    pub(super) neighbours: Neighbours,
    #[serde(default)]
    pub(super) verify: VerifyKeys,
    #[serde(default)]
    pub(super) history: HistoryKeys,
    #[serde(default)]
    pub(super) feeds: FeedsKeys,
    #[serde(default)]
    pub(super) vrf: Vec<Vrf>,
    #[serde(default)]
    pub(super) interface: Vec<Interface>,
    #[serde(default)]
    pub(super) route: Vec<Route>,
    #[serde(default)]
    pub(super) table: Vec<Table>,
    #[serde(default)]
    pub(super) feed: Vec<super::feed::Line>,
    #[serde(default)]
    pub(super) filter: super::filter::FilterKeys,
    #[serde(default)]
    pub(super) prefix_list: Vec<super::filter::ListLine>,
    #[serde(default)]
    pub(super) policer: super::policer::PolicerKeys,
    pub(super) sampling: Option<super::sampling::SamplingKeys>,
    pub(super) bfd: Option<super::failover::BfdKeys>,
    #[serde(default)]
    pub(super) backup: Vec<super::failover::BackupLine>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Flows {
    pub(super) seed: u64,
    pub(super) symmetric: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Icmp {
    pub(super) rate: u32,
    pub(super) burst: u32,
}

impl Default for Icmp {
    fn default() -> Self {
        Self { rate: 1000, burst: 100 }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MartianSets {
    pub(super) accept: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Neighbours {
    pub(super) most: usize,
    pub(super) requests: usize,
    pub(super) requests_prefix: usize,
    pub(super) unused: Option<Spanned<u32>>,
}

impl Default for Neighbours {
    fn default() -> Self {
        let limits = crate::neighbour::Limits::default();
        Self {
            most: limits.neighbours,
            requests: limits.requests,
            requests_prefix: limits.requests_prefix,
            unused: None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct VerifyKeys {
    pub(super) rate: Option<Spanned<u32>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HistoryKeys {
    pub(super) changes: Option<Spanned<usize>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FeedsKeys {
    pub(super) path_bytes: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Vrf {
    pub(super) name: Spanned<String>,
    pub(super) routes: Option<Spanned<usize>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interface {
    pub(super) name: Spanned<String>,
    pub(super) backend: Option<Spanned<String>>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) input: Option<std::path::PathBuf>,
    pub(super) output: Option<std::path::PathBuf>,
    pub(super) vlan: Option<Spanned<u16>>,
    pub(super) outer_vlan: Option<Spanned<u16>>,
    pub(super) outer_tag: Option<Spanned<String>>,
    pub(super) mac: Option<Spanned<String>>,
    pub(super) mtu: Option<Spanned<usize>>,
    #[serde(default)]
    pub(super) addresses: Vec<Spanned<String>>,
    pub(super) vrf: Option<Spanned<String>>,
    pub(super) urpf: Option<Spanned<String>>,
    pub(super) frames: Option<Spanned<usize>>,
    pub(super) xdp: Option<Spanned<String>>,
    pub(super) fast: Option<Spanned<bool>>,
    pub(super) host: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Route {
    pub(super) prefix: Spanned<String>,
    pub(super) vrf: Option<Spanned<String>>,
    pub(super) via: Option<Spanned<String>>,
    pub(super) interface: Option<Spanned<String>>,
    pub(super) kind: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) group: Vec<Member>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    pub(super) via: Option<Spanned<String>>,
    pub(super) interface: Option<Spanned<String>>,
    pub(super) weight: Option<Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) file: Spanned<std::path::PathBuf>,
    pub(super) vrf: Option<Spanned<String>>,
    pub(super) via: Option<Spanned<String>>,
    pub(super) interface: Option<Spanned<String>>,
}
