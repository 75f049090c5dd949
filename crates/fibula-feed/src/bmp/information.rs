//! Initiation and Termination (RFC 7854 sections 4.3 to 4.5): rows of texts and numbers, each with a type and a length.

use super::peer::Peers;
use super::{Kind, Message, Sink};
use crate::mrt::{Cursor, Reading};

pub(super) const INITIATION: Kind = Kind { name: "Initiation", number: 4, decode: initiation };
pub(super) const TERMINATION: Kind = Kind { name: "Termination", number: 5, decode: termination };

/// Types of Initiation.
const DESCRIPTION: u16 = 1;
const NAME: u16 = 2;
/// Types of Termination.
const TEXT: u16 = 0;
const REASON: u16 = 1;
/// Bytes of a text that are kept.
const MOST: usize = 200;

/// Reads a row to its end, and calls `each` with type and value.
pub(super) fn read(at: &mut Cursor<'_>, mut each: impl FnMut(u16, Cursor<'_>) -> Reading<()>) -> Reading<()> {
    while !at.is_empty() {
        let kind = at.u16("type of information")?;
        let len = at.u16("length of information")?;
        each(kind, at.part(len.into(), "information")?)?;
    }
    Ok(())
}

fn initiation(message: &Message, _: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    let (mut name, mut description) = (String::new(), String::new());
    read(&mut message.cursor(), |kind, value| {
        match kind {
            NAME => name = text(value),
            DESCRIPTION => description = text(value),
            _ => {}
        }
        Ok(())
    })?;
    sink.router(if name.is_empty() { &description } else { &name });
    Ok(())
}

fn termination(message: &Message, _: &mut Peers, sink: &mut dyn Sink) -> Reading<()> {
    let (mut reason, mut said) = ("no reason", String::new());
    read(&mut message.cursor(), |kind, mut value| {
        match kind {
            TEXT => said = text(value),
            REASON => {
                reason = match value.u16("reason")? {
                    0 => "administratively closed",
                    1 => "no reason",
                    2 => "out of resources",
                    3 => "a redundant connection",
                    4 => "permanently administratively closed",
                    _ => "an unknown reason",
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    match said.is_empty() {
        true => sink.ends(reason),
        false => sink.ends(&format!("{reason}: {said}")),
    }
    Ok(())
}

/// Returns a text without control characters, cut where it is long.
fn text(value: Cursor<'_>) -> String {
    let len = value.remaining().min(MOST);
    let bytes = value.clone().take(len, "text").unwrap_or_default();
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
