//! Messages without routes of their own: Statistics Report (RFC 7854 section 4.8) and Route Mirroring (section 4.7).
//! The latter repeats messages of a peer word for word, including those that the router has refused.

use super::peer::Peers;
use super::{Kind, Message, Sink};
use crate::mrt::{Reading, Skipped};

pub(super) const STATISTICS: Kind = Kind { name: "Statistics Report", number: 1, decode: statistics };
pub(super) const MIRRORING: Kind = Kind { name: "Route Mirroring", number: 6, decode: mirroring };

fn statistics(_: &Message, _: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    sink.skipped(Skipped::without_routes("BMP Statistics Report"), 0);
    Ok(())
}

fn mirroring(_: &Message, _: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    sink.skipped(Skipped::without_routes("BMP Route Mirroring"), 0);
    Ok(())
}
