//! Finds the kernel's rules for tables (`ip rule`) that the router does not follow.
//!
//! The router chooses a table by the VRF of the interface on which a packet was received. So it follows the rules that every
//! machine has, the rules of VRF devices, and rules that send packets of an interface to a followed table. Any other rule would
//! make the kernel forward some packets differently from the router. Operators should know such rules.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::feed::netlink::{attributes, ip_of, u32_of};

pub(super) const NEW_RULE: u16 = 32;
pub(super) const DEL_RULE: u16 = 33;
pub(super) const GET_RULE: u16 = 34;
/// `struct fib_rule_hdr`.
pub(super) const HEADER: usize = 12;
/// The tables that every machine looks into: local, main and default.
const USUAL: std::ops::RangeInclusive<u32> = 253..=255;
const TO_TABLE: u8 = 1;
const INVERT: u32 = 2;

/// Returns the text of a rule, as `ip rule` shows it, and its priority. Returns `Some(None)` if the router follows the rule, and
/// `None` if the message is damaged.
fn unheeded(body: &[u8], followed: &[(u32, u16)]) -> Option<Option<(u32, String)>> {
    let header: &[u8; HEADER] = body.get(..HEADER)?.try_into().ok()?;
    let [_, to_len, from_len, tos, table, _, _, action, ..] = *header;
    let is_inverted = u32_of(&header[8..])? & INVERT != 0;
    let (mut priority, mut table, mut is_of_device) = (0, u32::from(table), false);
    let (mut from, mut interface, mut other) = (String::new(), String::new(), String::new());
    let mut suppressed = String::new();
    attributes(body.get(HEADER..)?, |kind, value| {
        let name = || String::from_utf8_lossy(value.strip_suffix(&[0]).unwrap_or(value)).into_owned();
        let net = |len: u8| ip_of(value).map(|ip: IpAddr| format!("{ip}/{len}"));
        let ports = || Some((number(value)? as u16, number(value.get(2..)?)? as u16));
        let _ = match kind {
            1 => write!(other, " to {}", net(to_len)?),
            2 => write!(from, " from {}", net(from_len)?),
            3 => write!(interface, " iif {}", name()),
            4 => write!(suppressed, " goto {}", u32_of(value)?),
            6 => {
                priority = u32_of(value)?;
                Ok(())
            }
            10 => write!(other, " fwmark {:#x}", u32_of(value)?),
            // Without the attribute, the mask is all ones.
            14 => match u32_of(value)? {
                u32::MAX => Ok(()),
                len => write!(suppressed, " suppress_prefixlength {len}"),
            },
            15 => {
                table = u32_of(value)?;
                Ok(())
            }
            16 if u32_of(value)? != u32::MAX => write!(other, "/{:#x}", u32_of(value)?),
            17 => write!(other, " oif {}", name()),
            19 => {
                is_of_device = value.first().is_some_and(|&byte| byte != 0);
                Ok(())
            }
            20 => write!(other, " uidrange {}-{}", u32_of(value)?, u32_of(value.get(4..)?)?),
            22 => write!(other, " ipproto {}", value.first()?),
            23 => ports().map_or(Ok(()), |(low, high)| write!(other, " sport {low}-{high}")),
            24 => ports().map_or(Ok(()), |(low, high)| write!(other, " dport {low}-{high}")),
            _ => Ok(()),
        };
        Some(())
    })?;
    if tos != 0 {
        let _ = write!(other, " tos {tos:#x}");
    }
    let selected = from + &other;
    let looks = action == TO_TABLE && suppressed.is_empty();
    let is_usual = interface.is_empty() && USUAL.contains(&table);
    let is_of_interface = !interface.is_empty() && followed.iter().any(|&(known, _)| known == table);
    if is_of_device || looks && selected.is_empty() && !is_inverted && (is_usual || is_of_interface) {
        return Some(None);
    }
    let not = if is_inverted { " not" } else { "" };
    let all = if selected.is_empty() && interface.is_empty() { " from all" } else { "" };
    let does = match action {
        TO_TABLE => format!(" lookup {table}"),
        2 => String::new(),
        3 => " nop".into(),
        6 => " blackhole".into(),
        7 => " unreachable".into(),
        8 => " prohibit".into(),
        other => format!(" action {other}"),
    };
    Some(Some((priority, format!("{priority}:{not}{all}{selected}{interface}{does}{suppressed}"))))
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?)))
}

/// The rules of an answer so far.
#[derive(Debug, Default)]
pub(super) struct UnheededRules(BTreeSet<(u32, String)>);

impl UnheededRules {
    /// Adds a rule.
    pub(super) fn take(&mut self, body: &[u8], followed: &[(u32, u16)]) {
        // A damaged rule is left out, as by `ip rule`.
        if let Some(Some(rule)) = unheeded(body, followed) {
            self.0.insert(rule);
        }
    }

    /// Returns all rules, by priority.
    pub(super) fn finish(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0).into_iter().map(|rule| rule.1).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::netlink::tests::attribute;

    fn body(table: u8, action: u8, lens: (u8, u8), attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![libc::AF_INET as u8, lens.0, lens.1, 0, table, 0, 0, action, 0, 0, 0, 0];
        for &(kind, value) in attributes {
            attribute(&mut body, kind, value);
        }
        body
    }

    fn text(body: &[u8]) -> Option<String> {
        unheeded(body, &[(254, 0), (100, 1)]).unwrap().map(|rule| rule.1)
    }

    #[test]
    fn rules_by_which_the_kernel_forwards_otherwise_are_told() {
        let none = u32::MAX.to_ne_bytes();
        let at = |number: u32| number.to_ne_bytes();
        // The rules of every machine, of a VRF, and of an interface with a followed table.
        assert_eq!(text(&body(255, 1, (0, 0), &[(14, &none), (15, &at(255))])), None);
        assert_eq!(text(&body(254, 1, (0, 0), &[(6, &at(32766)), (14, &none), (15, &at(254))])), None);
        assert_eq!(text(&body(0, 1, (0, 0), &[(19, &[1])])), None);
        assert_eq!(text(&body(100, 1, (0, 0), &[(3, b"left\0"), (15, &at(100))])), None);
        // Others.
        let from = [(2, &[10, 0, 0, 0][..]), (6, &at(1000)), (14, &none), (15, &at(100))];
        assert_eq!(text(&body(100, 1, (0, 8), &from)).unwrap(), "1000: from 10.0.0.0/8 lookup 100");
        let all = body(0, 1, (0, 0), &[(15, &at(1000)), (6, &at(5))]);
        assert_eq!(text(&all).unwrap(), "5: from all lookup 1000");
        let mark = body(99, 1, (0, 0), &[(10, &at(1)), (16, &at(255)), (3, b"left\0"), (6, &at(7))]);
        assert_eq!(text(&mark).unwrap(), "7: fwmark 0x1/0xff iif left lookup 99");
        let short = body(254, 1, (0, 0), &[(14, &at(0)), (6, &at(9))]);
        assert_eq!(text(&short).unwrap(), "9: from all lookup 254 suppress_prefixlength 0");
        assert_eq!(
            text(&body(0, 8, (32, 0), &[(1, &[192, 0, 2, 1])])).unwrap(),
            "0: to 192.0.2.1/32 prohibit"
        );
        assert_eq!(text(&body(0, 2, (0, 0), &[(4, &at(77))])).unwrap(), "0: from all goto 77");
        let mut inverted = body(254, 1, (0, 0), &[(24, &[22, 0, 23, 0])]);
        inverted[8] = 2;
        assert_eq!(text(&inverted).unwrap(), "0: not dport 22-23 lookup 254");
    }

    #[test]
    fn damaged_rules_are_refused() {
        let whole = body(100, 1, (0, 8), &[(2, &[10, 0, 0, 0]), (15, &[1, 0, 0, 0])]);
        for len in 0..whole.len() {
            // Cut at the end of an attribute, it is a rule.
            let _ = unheeded(&whole[..len], &[]);
        }
        assert_eq!(unheeded(&whole[..11], &[]), None);
        assert_eq!(unheeded(&whole[..18], &[]), None);
        assert_eq!(unheeded(&body(0, 1, (0, 0), &[(2, &[10, 0])]), &[]), None);
    }
}
