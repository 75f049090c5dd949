//! Traffic for measurements in network namespaces: sends frames at a rate, and receives them; `netlab/measure` uses it.
//!
//! ```sh
//! traffic receive DEVICE SECONDS
//! traffic send DEVICE SECONDS RATE SIZE FLOWS TO-MAC SOURCE DESTINATION
//! ```
//!
//! `send` sends RATE frames of SIZE bytes a second, of FLOWS flows (destinations from DESTINATION on), each with the time. `receive`
//! counts those frames and takes the time that each was under way. Both print a line of JSON.

#[cfg(target_os = "linux")]
mod linux {
    use std::net::Ipv4Addr;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use fibula_router::io::packet::{Receive, Transmit};
    use fibula_router::io::ports::{Ports, Sink, Source};
    use fibula_router::io::{Io, Offload};
    use fibula_router::kernel::netlink::{Event, Link, Netlink};
    use fibula_router::packet::ethernet::{Header, IPV4, Mac, Tags};
    use fibula_router::packet::ipv4;

    type Failure = Box<dyn std::error::Error>;

    const FRAMES: usize = 2048;
    const BATCH: u64 = 32;
    /// Headers of Ethernet, IPv4 and UDP, the mark, and the time.
    const LEAST: usize = 14 + 20 + 8 + 16;
    const MARK: [u8; 8] = *b"fibulatr";

    fn link(device: &str) -> Result<Link, Failure> {
        let mut found = None;
        Netlink::open()?.dump(|event| {
            if let Event::Link(link) = event
                && link.name == device
            {
                found = Some(link);
            }
        })?;
        found.ok_or_else(|| format!("no device '{device}'").into())
    }

    fn now_ns() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
    }

    pub(super) fn receive(device: &str, seconds: f64) -> Result<String, Failure> {
        let mut io = Ports::default();
        let receive = Receive::open(FRAMES)?;
        receive.socket()?.move_to(link(device)?.index)?;
        io.push(Source::Packet(receive), Sink::None);
        let (begin, mut latencies) = (Instant::now(), Vec::new());
        while begin.elapsed().as_secs_f64() < seconds {
            let count = io.receive(0);
            let now = now_ns();
            for index in 0..count {
                let frame = io.frame(index);
                if frame.bytes.get(42..50) == Some(&MARK)
                    && let Some(time) = frame.bytes.get(50..58).and_then(|time| time.first_chunk::<8>())
                {
                    latencies.push(now.saturating_sub(u64::from_be_bytes(*time)) as u32);
                }
            }
            io.finish();
            if count == 0 {
                io.wait(1);
            }
        }
        latencies.sort_unstable();
        let at = |share: f64| {
            let last = latencies.len().saturating_sub(1);
            latencies.get((last as f64 * share) as usize).map_or(0.0, |&ns| f64::from(ns) / 1000.0)
        };
        Ok(format!(
            "{{\"received\": {}, \"lost\": {}, \"p50_us\": {:.1}, \"p99_us\": {:.1}, \"p999_us\": {:.1}}}",
            latencies.len(),
            io.take_lost(0),
            at(0.5),
            at(0.99),
            at(0.999)
        ))
    }

    pub(super) fn send(args: &[String]) -> Result<String, Failure> {
        let [device, seconds, rate, size, flows, to, source, destination] = args else {
            return Err("send DEVICE SECONDS RATE SIZE FLOWS TO-MAC SOURCE DESTINATION".into());
        };
        let (seconds, rate): (f64, f64) = (seconds.parse()?, rate.parse()?);
        let (size, flows): (usize, u32) = (size.parse()?, flows.parse()?);
        let size = size.clamp(LEAST, 1514);
        let link = link(device)?;
        let header = Header::new(to.parse()?, link.mac.unwrap_or(Mac([2, 0, 0, 0, 0, 1])), Tags::NONE, IPV4);
        let (source, destination): (Ipv4Addr, Ipv4Addr) = (source.parse()?, destination.parse()?);
        let mut packets: Vec<Vec<u8>> = Vec::new();
        for flow in 0..flows.max(1) {
            let mut packet = vec![0; size - 14];
            let to = u32::from(destination) + flow;
            ipv4::write(&mut packet[..20], size - 14, 64, ipv4::UDP, source.into(), to);
            packet[20..22].copy_from_slice(&(1024 + flow as u16 % 60_000).to_be_bytes());
            packet[22..24].copy_from_slice(&9u16.to_be_bytes());
            packet[24..26].copy_from_slice(&((size - 34) as u16).to_be_bytes());
            packet[28..36].copy_from_slice(&MARK);
            packets.push(packet);
        }
        let mut io = Ports::default();
        let transmit = Transmit::open(FRAMES)?;
        transmit.socket()?.move_to(link.index)?;
        io.push(Source::None, Sink::Packet(transmit));
        let (begin, mut sent, mut refused) = (Instant::now(), 0u64, 0u64);
        loop {
            let elapsed = begin.elapsed().as_secs_f64();
            if elapsed >= seconds {
                break;
            }
            let due = ((elapsed * rate) as u64).saturating_sub(sent + refused);
            let time = now_ns().to_be_bytes();
            for _ in 0..due.min(BATCH) {
                let packet = &mut packets[(sent % u64::from(flows.max(1))) as usize];
                packet[36..44].copy_from_slice(&time);
                if io.emit(0, [header.as_bytes(), packet, &[]], &Offload::default()) {
                    sent += 1;
                } else {
                    refused += 1;
                }
            }
            io.finish();
            if due == 0 {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        let elapsed = begin.elapsed().as_secs_f64();
        Ok(format!("{{\"sent\": {sent}, \"refused\": {refused}, \"rate\": {:.0}}}", sent as f64 / elapsed))
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.split_first() {
        Some((word, [device, seconds])) if word == "receive" => {
            seconds.parse().map_err(Into::into).and_then(|seconds| linux::receive(device, seconds))
        }
        Some((word, rest)) if word == "send" => linux::send(rest),
        _ => Err("usage: traffic receive DEVICE SECONDS | traffic send DEVICE SECONDS RATE SIZE FLOWS TO-MAC SOURCE DESTINATION".into()),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("traffic: {error}");
            std::process::ExitCode::from(2)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("traffic: Linux alone");
}
