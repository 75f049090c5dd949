//! The gate of packets to the machine in the kernel, against what it is to keep: random frames, most of them hostile.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use fibula_router::kernel::filter::Filter;
use fibula_router::kernel::gate::GateState;

use crate::support::random::Random;

/// The kernel runs the program as if its loopback device had the frame, whose address is zero.
const OWN: [u8; 6] = [0; 6];
const V4: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1);

fn frame(random: &mut Random) -> Vec<u8> {
    let to =
        random.one_of(&[OWN, OWN, OWN, [0xff; 6], [1, 0, 0x5e, 0, 0, 5], [0x33, 0x33, 0, 0, 0, 1], [2; 6]]);
    let mut frame = [&to[..], &[2, 0, 0, 0, 0, 9]].concat();
    for _ in 0..random.one_of(&[0, 0, 0, 0, 1, 2]) {
        frame.extend(random.one_of(&[[0x81, 0, 0, 0], [0x81, 0, 0, 7], [0x88, 0xa8, 0, 0]]));
    }
    let ether_type: u16 = random.one_of(&[0x0800, 0x0800, 0x86dd, 0x86dd, 0x0806, 0x88cc, 0x0026]);
    frame.extend(ether_type.to_be_bytes());
    // Whatever headers say: only the addresses count, and of these only where the kernel may forward.
    let mut packet: Vec<u8> = (0..60).map(|_| random.next() as u8).collect();
    let v4 = random.one_of(&[
        V4,
        V4,
        Ipv4Addr::new(10, 0, 2, 2),
        Ipv4Addr::LOCALHOST,
        Ipv4Addr::BROADCAST,
        [0; 4].into(),
    ]);
    let v6 = random.one_of(&[
        V6,
        V6,
        Ipv6Addr::LOCALHOST,
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].into(),
    ]);
    match ether_type {
        0x0800 => packet[16..20].copy_from_slice(&v4.octets()),
        0x86dd => packet[24..40].copy_from_slice(&v6.octets()),
        _ => {}
    }
    packet.truncate(random.one_of(&[60, 60, 60, 60, 40, 20, 19, 3, 0]));
    frame.extend(packet);
    frame
}

/// Returns whether the kernel would take a frame for itself, if it is one without a tag.
fn is_for_machine(frame: &[u8]) -> bool {
    if frame[..6] != OWN {
        return true;
    }
    match (u16::from_be_bytes([frame[12], frame[13]]), &frame[14..]) {
        (0x0800, packet) => packet.get(16..20).is_none_or(|to| {
            let to = Ipv4Addr::new(to[0], to[1], to[2], to[3]);
            to == V4 || to.is_loopback() || to.octets()[0] >= 224 || to.octets()[0] == 0 || to.is_link_local()
        }),
        (0x86dd, packet) => packet.get(24..40).and_then(|to| to.first_chunk::<16>()).is_none_or(|to| {
            let to = Ipv6Addr::from(*to);
            to == V6 || to.is_multicast() || to.is_unicast_link_local()
        }),
        _ => true,
    }
}

pub(crate) fn random_frames() -> Result<(), String> {
    let said = |error: io::Error| error.to_string();
    let mut filter = Filter::load().map_err(said)?;
    filter.set_addresses([(1, IpAddr::V4(V4)), (1, IpAddr::V6(V6))]).map_err(said)?;
    let gate = filter.gate().map_err(said)?;
    let own = gate.mark();
    let mut random = Random::new(44);
    let (mut kept, mut passed) = (0, 0);
    for number in 0..3000 {
        let frame = frame(&mut random);
        // The kernel runs programs for tests over whole headers alone.
        let least = match (frame[12], frame[13]) {
            (0x08, 0x00) => 34,
            (0x86, 0xdd) => 54,
            _ => 15,
        };
        if frame.len() < least {
            continue;
        }
        let mark = random.one_of(&[0, 0, 0, 1, own, own ^ 1, own >> 1]);
        let is_returned = mark >> 16 == own >> 16;
        let is_received = frame[..6] == OWN || frame[0] & 1 == 1;
        for (state, keeps) in [
            (GateState::Open, false),
            (GateState::Closed, true),
            (GateState::ClosedToMachine, is_for_machine(&frame)),
        ] {
            let keeps = keeps && is_received && !is_returned;
            let (reaches, after) =
                gate.run(state, &frame, mark).map_err(|error| format!("{number}: {error}"))?;
            if reaches == keeps {
                return Err(format!("{number}: {state:?}, mark {mark:x}: reaches {reaches}: {frame:02x?}"));
            }
            let wanted = if mark == own { 0 } else { mark };
            if after != wanted {
                return Err(format!("{number}: mark {mark:x} became {after:x}"));
            }
            *(if keeps { &mut kept } else { &mut passed }) += 1;
        }
    }
    if kept < 1000 || passed < 1000 { Err(format!("{kept} kept, {passed} passed")) } else { Ok(()) }
}
