//! BGP messages (RFC 4271 section 4). Only UPDATE changes a table.

use std::sync::Arc;

use bytes::Bytes;
use fibula::net::{Dual, Family};

use super::attributes::{AsWidth, Attributes, Decoded, EXTENDED, MP_UNREACH, family};
use super::nlri;
use crate::event::{Action, Announcement, Event, Path, Peer, Time};
use crate::mrt::{Cursor, FaultKind, Mention, Reading, Sink, Skipped};
use crate::next_hops::Label;

/// The peer that sent a message, and how the message is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerSession {
    pub(crate) time: Time,
    pub(crate) peer: Peer,
    /// `None`: two bytes where the AS paths of a message fit no other width, else four.
    pub(crate) width: Option<AsWidth>,
    /// Whether prefixes come with path identifiers.
    pub(crate) add_path: Dual<bool>,
}

impl PeerSession {
    fn add_path(&self, family: Family) -> bool {
        match family {
            Family::Ipv6 => self.add_path.v6,
            _ => self.add_path.v4,
        }
    }
}

/// Marker, length and type.
pub(crate) const HEADER_BYTES: usize = 19;
const UPDATE: u8 = 2;

/// Reads the message that fills `bytes`, whose first byte is at `base`, and reports its changes to the sink.
pub(crate) fn message(bytes: &Bytes, base: usize, session: &PeerSession, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = Cursor::new(bytes, base);
    let marker = at.take(16, "marker of the message")?;
    if marker.iter().any(|&byte| byte != 0xff) {
        sink.fault(FaultKind::Marker.at(base));
    }
    let len_at = at.position();
    let len = at.u16("message length")?;
    let kind_at = at.position();
    let kind = at.u8("message type")?;
    let skipped = Skipped::message(kind);
    if kind != UPDATE && skipped.is_none() {
        return Err(FaultKind::MessageType(kind).at(kind_at));
    }
    let Some(body) = usize::from(len).checked_sub(HEADER_BYTES).filter(|&body| body <= at.remaining()) else {
        let have = bytes.len();
        return Err(FaultKind::MessageLength { len, have }.at(len_at));
    };
    if body < at.remaining() {
        sink.fault(FaultKind::Surplus(at.remaining() - body).at(at.position() + body));
    }
    match skipped {
        Some(kind) => sink.skipped(kind, kind_at),
        None => update(&bytes.slice(HEADER_BYTES..HEADER_BYTES + body), base + HEADER_BYTES, session, sink)?,
    }
    Ok(())
}

/// Returns the family whose table an UPDATE ends (RFC 4724 section 2): it holds no routes at all, or an empty MP_UNREACH_NLRI alone.
pub(crate) fn end_of_rib(message: &[u8]) -> Option<Family> {
    let (header, body) = message.split_at_checked(HEADER_BYTES)?;
    if header[HEADER_BYTES - 1] != UPDATE {
        return None;
    }
    let (afi, safi) = match *body {
        [0, 0, 0, 0] => return Some(Family::Ipv4),
        [0, 0, 0, 6, flags, MP_UNREACH, 3, high, low, safi] if flags & EXTENDED == 0 => ([high, low], safi),
        [0, 0, 0, 7, flags, MP_UNREACH, 0, 3, high, low, safi] if flags & EXTENDED != 0 => {
            ([high, low], safi)
        }
        _ => return None,
    };
    family(u16::from_be_bytes(afi), safi).ok()
}

/// Reads the body of an UPDATE, whose first byte is at `base`.
pub(crate) fn update(bytes: &Bytes, base: usize, session: &PeerSession, sink: &mut dyn Sink) -> Reading<()> {
    let mut at = Cursor::new(bytes, base);
    let len = at.u16("length of the withdrawn routes")?;
    let withdrawn = at.part(len.into(), "withdrawn routes")?;
    let len = at.u16("length of the attributes")?;
    let start = at.position() - base;
    at.take(len.into(), "attributes")?;
    // Reported as they are found, because a message of the early format may hold millions.
    let mut update = Update { session, sink };
    update.withdraw(withdrawn, Family::Ipv4)?;

    let section = bytes.slice(start..start + usize::from(len));
    let announces = !at.is_empty();
    let mut faults = Vec::new();
    let width = session.width.unwrap_or_else(|| AsWidth::of(&section));
    let decoded = Attributes::decode(&section, base + start, width, None, &mut faults);
    faults.into_iter().for_each(|fault| update.sink.fault(fault));
    match decoded {
        Ok(decoded) => update.routes(bytes, base, at, decoded),
        // Without attributes there is no next hop: announcements count as withdrawals (RFC 7606 section 2).
        Err(fault) => {
            if announces {
                update.withdraw(at, Family::Ipv4)?;
            }
            Err(fault)
        }
    }
}

struct Update<'a> {
    session: &'a PeerSession,
    sink: &'a mut dyn Sink,
}

impl Update<'_> {
    fn routes(&mut self, bytes: &Bytes, base: usize, nlri: Cursor<'_>, decoded: Decoded) -> Reading<()> {
        let part = |start: usize, end: usize| Cursor::new(&bytes[start - base..end - base], start);
        let Decoded { attributes, reach, unreach } = decoded;
        if let Some(unreach) = unreach {
            match unreach.family {
                Ok(family) => self.withdraw(part(unreach.start, unreach.end), family)?,
                Err(other) => self.sink.skipped(other, unreach.start),
            }
        }
        let attributes = Arc::new(attributes);
        let announces = !nlri.is_empty() || reach.is_some_and(|reach| reach.start < reach.end);
        if announces {
            attributes.missing().for_each(|fault| self.sink.fault(fault.at(base)));
        }
        let mut done = Ok(());
        if !nlri.is_empty() {
            // The next hop in MP_REACH_NLRI, if any, is for the prefixes there; these use NEXT_HOP.
            let next_hop = attributes.ipv4_next_hop();
            done = self.announce(nlri, Family::Ipv4, next_hop, &attributes);
        }
        let Some(reach) = reach else { return done };
        match reach.family {
            Ok(family) => {
                let next_hop = attributes.next_hop();
                done = done.and(self.announce(part(reach.start, reach.end), family, next_hop, &attributes));
            }
            Err(other) => self.sink.skipped(other, reach.start),
        }
        done
    }

    fn withdraw(&mut self, mut at: Cursor<'_>, family: Family) -> Reading<()> {
        let Self { session, sink } = self;
        let fault = nlri::paths(&mut at, family, session.add_path(family), &mut |path, fault| {
            fault.into_iter().for_each(|fault| sink.fault(fault));
            if sink.wants(&session.peer, None, &path, Mention::Withdrawn) {
                sink.event(event(session, Action::Withdraw(path)));
            }
        })?;
        fault.into_iter().for_each(|fault| self.sink.fault(fault));
        Ok(())
    }

    fn announce(
        &mut self,
        mut at: Cursor<'_>,
        family: Family,
        next_hop: Option<core::net::IpAddr>,
        attributes: &Arc<Attributes>,
    ) -> Reading<()> {
        let start = at.position();
        let Some(next_hop) = next_hop else {
            if at.is_empty() {
                return Ok(());
            }
            self.withdraw(at, family)?;
            return Err(FaultKind::NoNextHop.at(start));
        };
        let path_len = attributes.path_len();
        let Self { session, sink } = self;
        let fault = nlri::paths(&mut at, family, session.add_path(family), &mut |path: Path, fault| {
            fault.into_iter().for_each(|fault| sink.fault(fault));
            if sink.wants(&session.peer, None, &path, Mention::Announced) {
                let attributes = Some(Arc::clone(attributes));
                let next_hop = Label::Address(next_hop);
                let route = Announcement { path, next_hop, path_len, dumped: false, attributes };
                sink.event(event(session, Action::Announce(route)));
            }
        })?;
        fault.into_iter().for_each(|fault| self.sink.fault(fault));
        Ok(())
    }
}

fn event(session: &PeerSession, action: Action) -> Event {
    Event { time: session.time, peer: Some(session.peer), action }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_path_identifiers_or_not() {
        let peer = Peer { address: core::net::Ipv4Addr::LOCALHOST.into(), asn: 7 };
        let time = Time { seconds: 0, micros: None };
        for (v4, v6) in [(false, true), (true, false)] {
            let session = PeerSession { time, peer, width: None, add_path: Dual::new(v4, v6) };
            assert_eq!((session.add_path(Family::Ipv4), session.add_path(Family::Ipv6)), (v4, v6));
        }
    }
    #[test]
    fn a_table_ends_with_an_update_without_routes() {
        let ended = |kind: u8, body: &[u8]| end_of_rib(&[&[0xff; 18][..], &[kind], body].concat());
        assert_eq!(ended(UPDATE, &[0, 0, 0, 0]), Some(Family::Ipv4));
        for (flags, len) in [(0x80, &[3][..]), (0x80 | EXTENDED, &[0, 3])] {
            let of = |flags: u8, afi: u8| {
                let attribute = [&[flags, MP_UNREACH][..], len, &[0, afi, 1]].concat();
                ended(UPDATE, &[&[0, 0, 0, attribute.len() as u8][..], &attribute].concat())
            };
            assert_eq!((of(flags, 1), of(flags, 2)), (Some(Family::Ipv4), Some(Family::Ipv6)));
            assert_eq!((of(flags, 3), of(flags ^ EXTENDED, 2)), (None, None));
        }
        assert_eq!(
            (ended(4, &[0, 0, 0, 0]), ended(UPDATE, &[0, 0, 0, 1, 0]), end_of_rib(&[0xff; 18])),
            (None, None, None)
        );
    }
}
