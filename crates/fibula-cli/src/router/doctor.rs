//! `fibula router doctor`: finds missing requirements of this machine.

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use fibula_bpf::Capability;
use fibula_router::config::{Backend, release};
use fibula_router::io::xdp;
use fibula_router::kernel::device::Device;
use fibula_router::kernel::filter::Filter;
use fibula_router::kernel::netlink::{Event, Netlink};
use fibula_router::neighbour::{Limits, most_of_kernel};
use serde_json::{Value, json};

use crate::failure::Failure;

/// One thing that was looked at.
struct Finding {
    name: String,
    good: bool,
    found: String,
    advice: &'static str,
}

pub(super) fn run(as_json: bool) -> Result<ExitCode, Failure> {
    let (devices, names) = netlink();
    let mut findings =
        vec![capabilities(), filter(), default_backend(), sockets(), fast(), dpdk(), tun(), devices];
    findings.extend(names.iter().filter(|name| *name != "lo").map(|name| device(name)));
    findings.extend([forwarding(), neighbours("IPv4"), neighbours("IPv6"), huge_pages(), processors()]);
    let mut out = io::stdout().lock();
    if as_json {
        let object = |finding: &Finding| {
            let advice = (!finding.good).then_some(finding.advice);
            json!({ "name": finding.name, "good": finding.good, "found": finding.found, "advice": advice })
        };
        writeln!(out, "{}", Value::Array(findings.iter().map(object).collect()))?;
        return Ok(ExitCode::SUCCESS);
    }
    for finding in &findings {
        let word = if finding.good { "ok  " } else { "note" };
        writeln!(out, "{word} {:<18} {}", finding.name, finding.found)?;
        if !finding.good {
            writeln!(out, "     {:<18} {}", "", finding.advice)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn capabilities() -> Finding {
    let missing = Capability::missing(&[Capability::NetAdmin, Capability::NetRaw, Capability::Bpf]);
    Finding {
        name: "capabilities".into(),
        good: missing.is_empty(),
        found: if missing.is_empty() { "all".into() } else { format!("missing: {}", missing.join(", ")) },
        advice: "run as root, or: setcap cap_net_admin,cap_net_raw,cap_bpf+ep fibula",
    }
}

fn fast() -> Finding {
    let good = Capability::Perfmon.is_held();
    Finding {
        name: "fast".into(),
        good,
        found: if good { "programs can be verified" } else { "missing: CAP_PERFMON" }.into(),
        advice: "'fast = true' needs CAP_PERFMON too, without which the kernel refuses programs that add numbers to pointers: run as root, or: setcap cap_net_admin,cap_net_raw,cap_bpf,cap_perfmon+ep fibula",
    }
}

fn filter() -> Finding {
    let loaded = Filter::load();
    Finding {
        name: "filter".into(),
        good: loaded.is_ok(),
        found: loaded.map_or_else(|error| format!("cannot be loaded: {error}"), |_| "can be loaded".into()),
        advice: "back ends af-packet and af-xdp need CAP_BPF: without it the kernel would forward a second time",
    }
}

fn default_backend() -> Finding {
    let version = release::version();
    let name = Backend::default_name(version);
    let kernel = version.map_or_else(String::new, |(major, minor)| format!(" on Linux {major}.{minor}"));
    Finding {
        name: "back end".into(),
        good: name == "af-packet",
        found: format!("{name} unless an interface names another{kernel}"),
        advice: "af-packet needs Linux 6.6 (TCX); with af-xdp, senders on this machine need their offloads off",
    }
}

fn sockets() -> Finding {
    let there = xdp::available();
    Finding {
        name: "AF_XDP".into(),
        good: there.is_ok(),
        found: there.map_or_else(|error| format!("no sockets: {error}"), |()| "can be opened".into()),
        advice: "back end af-xdp needs a kernel with CONFIG_XDP_SOCKETS, CAP_NET_RAW and CAP_BPF; af-packet works without",
    }
}

fn dpdk() -> Finding {
    Finding {
        name: "DPDK".into(),
        good: Backend::HAS_DPDK,
        found: if Backend::HAS_DPDK { "built in" } else { "not built in" }.into(),
        advice: "back end dpdk needs a build with '--features router-dpdk'; the others work without",
    }
}

/// Driver, queues, offloads and interrupts of a device.
fn device(name: &str) -> Finding {
    let device = Device::read(name);
    let driver = device.driver.as_deref().unwrap_or("no hardware");
    let mut found = format!("{driver}, {} receive queues", device.queues);
    if !device.offloads.is_empty() {
        found += &format!(", offloads on: {}", device.offloads.join(" "));
    }
    if device.interrupts > 0 {
        let processors: Vec<&str> = device.processors.iter().map(String::as_str).collect();
        found += &format!(", {} interrupts to processors {}", device.interrupts, processors.join("; "));
    }
    let crowded = device.interrupts > 1 && device.processors.len() == 1;
    Finding {
        name: format!("device {name}"),
        good: !crowded && device.offloads.is_empty(),
        found,
        advice: match crowded {
            true => "all interrupts go where one does: spread them, /proc/irq/N/smp_affinity_list",
            false => {
                "large frames of gro and gso pass between af-packet devices alone: for other back ends, ethtool -K DEVICE gro off gso off"
            }
        },
    }
}

fn tun() -> Finding {
    let there = fs::metadata("/dev/net/tun").is_ok();
    Finding {
        name: "taps".into(),
        good: there,
        found: if there { "/dev/net/tun" } else { "no /dev/net/tun" }.into(),
        advice: "modprobe tun; back end tap needs it, and so do rules and policers of packets to the router on af-packet and af-xdp, and machine sides of VLANs",
    }
}

fn netlink() -> (Finding, Vec<String>) {
    let (mut links, mut names) = (Vec::new(), Vec::new());
    let asked = Netlink::open().and_then(|mut netlink| {
        netlink.dump(|event| {
            if let Event::Link(link) = event {
                names.push(link.name.clone());
                links.push(format!("{}{}", link.name, if link.up { "" } else { " (down)" }));
            }
        })
    });
    let finding = Finding {
        name: "devices".into(),
        good: asked.is_ok() && links.len() > 1,
        found: asked.map_or_else(|error| error.to_string(), |()| links.join(", ")),
        advice: "a router needs two devices, or VLANs of one: 'ip link' shows them",
    };
    (finding, names)
}

/// Says how many neighbours the kernel keeps.
fn neighbours(family: &str) -> Finding {
    let (most, wanted) = (most_of_kernel(family), Limits::default().neighbours);
    Finding {
        name: format!("neighbours {family}"),
        good: most.is_none_or(|most| most >= wanted),
        found: match most {
            Some(most) => format!(
                "the kernel keeps at most {most} (gc_thresh3); 'neighbours.most' is {wanted} by default"
            ),
            None => "the kernel's limit (gc_thresh3) is shown outside of network namespaces alone".into(),
        },
        advice: "Raise net.ipv4.neigh.default.gc_thresh3 and net.ipv6.neigh.default.gc_thresh3, and gc_thresh2 with them.",
    }
}

fn forwarding() -> Finding {
    let read = |path: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == "1");
    let v6 = read("/proc/sys/net/ipv6/conf/all/forwarding");
    Finding {
        name: "IPv6 forwarding".into(),
        good: v6,
        found: if v6 { "on" } else { "off" }.into(),
        advice: "sysctl net.ipv6.conf.all.forwarding=1, or the kernel's advertisements do not say that this is a router",
    }
}

fn huge_pages() -> Finding {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let good = text.contains("[always]") || text.contains("[madvise]");
    Finding {
        name: "huge pages".into(),
        good,
        found: text.trim().to_owned(),
        advice: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: lookups in large tables are faster",
    }
}

fn processors() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    Finding {
        name: "processors".into(),
        good: count > 1,
        found: count.to_string(),
        advice: "one processor forwards and does everything else: expect losses in the rings",
    }
}
