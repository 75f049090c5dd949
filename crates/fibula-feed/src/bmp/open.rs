//! OPEN messages (RFC 4271 section 4.2) within Peer Up: the capabilities that decide how the routes of the peer are
//! written.

use fibula::net::{Dual, Family};

use crate::bgp;
use crate::mrt::{Cursor, FaultKind, Reading};

const OPEN: u8 = 1;
/// The type of parameters that hold capabilities (RFC 5492 section 4).
const CAPABILITIES: u8 = 2;
/// The length, and then the type, which announce lengths of two bytes (RFC 9072 section 2).
const EXTENDED: u8 = 255;
/// Codes of capabilities: RFC 4760, RFC 6793, RFC 7911.
const MULTIPROTOCOL: u8 = 1;
const FOUR_OCTETS: u8 = 65;
const ADD_PATH: u8 = 69;

/// The capabilities in an OPEN that matter here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Open {
    /// AS numbers have four bytes.
    pub(super) four_octets: bool,
    /// Families of routes; `None`: it names none, which means IPv4.
    families: Option<Dual<bool>>,
    /// It can receive several paths of a prefix, with their identifiers.
    pub(super) receives: Dual<bool>,
    /// It can send them.
    pub(super) sends: Dual<bool>,
}

impl Open {
    pub(super) fn read(at: &mut Cursor<'_>) -> Reading<Self> {
        at.take(16, "marker of the message")?;
        let len_at = at.position();
        let len = at.u16("message length")?;
        let kind_at = at.position();
        let kind = at.u8("message type")?;
        if kind != OPEN {
            return Err(FaultKind::MessageType(kind).at(kind_at));
        }
        let body = usize::from(len).checked_sub(bgp::HEADER_BYTES).filter(|&body| body <= at.remaining());
        let body = body.ok_or_else(|| FaultKind::MessageLength { len, have: at.remaining() }.at(len_at))?;
        let mut body = at.part(body, "OPEN")?;
        // FRR sends a header alone where it has not kept the message.
        if body.is_empty() { Ok(Self::default()) } else { Self::parameters(&mut body) }
    }

    fn parameters(at: &mut Cursor<'_>) -> Reading<Self> {
        at.take(9, "version, AS, hold time and identifier")?;
        let mut len = at.u8("length of the parameters").map(usize::from)?;
        let wide = len == usize::from(EXTENDED) && at.peek() == Some(EXTENDED);
        if wide {
            at.u8("type of extended parameters")?;
            len = at.u16("length of extended parameters")?.into();
        }
        let mut found = Self::default();
        let mut parameters = at.part(len, "parameters")?;
        while !parameters.is_empty() {
            let kind = parameters.u8("type of a parameter")?;
            let len = match wide {
                true => parameters.u16("length of a parameter")?.into(),
                false => parameters.u8("length of a parameter")?.into(),
            };
            let mut value = parameters.part(len, "parameter")?;
            while kind == CAPABILITIES && !value.is_empty() {
                let code = value.u8("code of a capability")?;
                let len = value.u8("length of a capability")?;
                found.capability(code, value.part(len.into(), "capability")?)?;
            }
        }
        Ok(found)
    }

    fn capability(&mut self, code: u8, mut at: Cursor<'_>) -> Reading<()> {
        match code {
            FOUR_OCTETS => self.four_octets = true,
            MULTIPROTOCOL => {
                let (afi, _, safi) =
                    (at.u16("family")?, at.u8("reserved byte")?, at.u8("subsequent family")?);
                let families = self.families.get_or_insert_default();
                set(families, bgp::family(afi, safi).ok());
            }
            ADD_PATH => {
                while !at.is_empty() {
                    let (afi, safi, how) =
                        (at.u16("family")?, at.u8("subsequent family")?, at.u8("directions")?);
                    let family = bgp::family(afi, safi).ok();
                    set(&mut self.receives, family.filter(|_| how & 1 != 0));
                    set(&mut self.sends, family.filter(|_| how & 2 != 0));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the families whose routes it exchanges.
    pub(super) fn families(&self) -> Dual<bool> {
        self.families.unwrap_or(Dual::new(true, false))
    }
}

fn set(of: &mut Dual<bool>, family: Option<Family>) {
    match family {
        Some(Family::Ipv4) => of.v4 = true,
        Some(Family::Ipv6) => of.v6 = true,
        _ => {}
    }
}
