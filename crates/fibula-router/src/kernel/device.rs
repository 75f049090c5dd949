//! Describes a network device: driver, queues, offloads, interrupts.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::sys;

/// A network device, as far as the system describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Device {
    /// Name of the driver; `None` for devices without hardware.
    pub driver: Option<String>,
    /// Receive queues.
    pub queues: usize,
    /// Offloads that are on and make frames that a router cannot pass on everywhere.
    pub offloads: Vec<&'static str>,
    /// Its interrupts.
    pub interrupts: usize,
    /// Processors that handle its interrupts.
    pub processors: BTreeSet<String>,
}

/// A device that takes frames to all stations, as long as this value lives.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: std::os::fd::OwnedFd,
}

/// Makes a device, given by its number, take frames to all stations, as a bridge needs. The kernel undoes it when the process
/// ends, however it ends.
///
/// # Errors
/// Without CAP_NET_RAW, and when the device is gone.
pub fn promiscuous(device: u32) -> io::Result<Promiscuous> {
    const SOL_PACKET: i32 = 263;
    const ADD_MEMBERSHIP: i32 = 1;
    const TO_ALL: u16 = 1;
    // Without a protocol the socket receives nothing.
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    // struct packet_mreq: device, kind, length of an address, address.
    let mut request = [0; 16];
    request[..4].copy_from_slice(&device.to_ne_bytes());
    request[4..6].copy_from_slice(&TO_ALL.to_ne_bytes());
    sys::set_option(socket.as_fd(), SOL_PACKET, ADD_MEMBERSHIP, &request)?;
    Ok(Promiscuous { _socket: socket })
}

/// Commands of `ioctl(SIOCETHTOOL)` that return whether an offload is on, with ethtool's names of the offloads.
const OFFLOADS: [(&str, u32); 2] = [("gro", 0x2b), ("gso", 0x23)];

impl Device {
    /// Describes the device of this name.
    #[must_use]
    pub fn read(name: &str) -> Self {
        let folder = Path::new("/sys/class/net").join(name);
        let driver = fs::read_link(folder.join("device/driver")).ok();
        let file = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let mut device = Self {
            driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            queues: crate::io::xdp::queues(name),
            offloads: offloads(name),
            ..Self::default()
        };
        for number in interrupts(&file("/proc/interrupts".into()), name) {
            device.interrupts += 1;
            let processors = file(format!("/proc/irq/{number}/smp_affinity_list").into());
            device.processors.insert(processors.trim().to_owned());
        }
        device
    }
}

fn offloads(name: &str) -> Vec<&'static str> {
    let Ok(socket) = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) else { return Vec::new() };
    let on = |command| sys::ethtool(socket.as_fd(), name, command).is_ok_and(|value| value != 0);
    OFFLOADS.iter().filter(|offload| on(offload.1)).map(|offload| offload.0).collect()
}

/// Returns the numbers of a device's interrupts: of `NAME` or `NAME-...`, as drivers name them.
fn interrupts<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let of =
        |word: &str| word.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let line = |line: &'t str| {
        let number = line.split_once(':')?.0.trim();
        line.split_whitespace().any(of).then_some(number)
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_found_by_name() {
        let text = "           CPU0       CPU1\n 24:  1  2  PCI-MSI 524288-edge  eth0-TxRx-0\n\
                    25:  0  9  PCI-MSI 524289-edge  eth0-TxRx-1\n 26:  1  1  PCI-MSI 1-edge  eth01\n";
        assert_eq!(interrupts(text, "eth0"), ["24", "25"]);
        assert_eq!(interrupts(text, "eth01"), ["26"]);
        assert!(interrupts(text, "lo").is_empty());
    }

    #[test]
    fn the_loopback_device_has_a_queue_and_no_driver() {
        let device = Device::read("lo");
        assert_eq!((device.driver, device.queues >= 1), (None, true));
    }
}
