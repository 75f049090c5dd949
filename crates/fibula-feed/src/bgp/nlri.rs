//! Prefixes as BGP writes them: a length in bits and as many bytes as it needs (RFC 4271 section 4.3).

use fibula::net::{Family, IpPrefix, Key, Prefix};

use crate::event::Path;
use crate::mrt::{Cursor, Fault, FaultKind, Reading};

/// Reads a prefix. RFC 4271 calls bits after its length "irrelevant", and no speaker should send them: they are cleared
/// and reported.
pub(crate) fn prefix(at: &mut Cursor<'_>, family: Family) -> Reading<(IpPrefix, Option<FaultKind>)> {
    match family {
        Family::Ipv6 => read::<u128>(at).map(|(prefix, set)| found(prefix.into(), set)),
        _ => read::<u32>(at).map(|(prefix, set)| found(prefix.into(), set)),
    }
}

fn found(prefix: IpPrefix, set: bool) -> (IpPrefix, Option<FaultKind>) {
    (prefix, set.then_some(FaultKind::TrailingBits(prefix)))
}

fn read<K: Key>(at: &mut Cursor<'_>) -> Reading<(Prefix<K>, bool)> {
    let start = at.position();
    let len = at.u8("prefix length")?;
    if len > K::BITS {
        return Err(FaultKind::PrefixLength { len, bits: K::BITS }.at(start));
    }
    let bytes = at.take(usize::from(len.div_ceil(8)), "prefix")?;
    let mut network = K::Bytes::default();
    network.as_mut()[..bytes.len()].copy_from_slice(bytes);
    let key = K::from_network(network);
    match Prefix::masked(key, len) {
        Ok(prefix) => Ok((prefix, prefix.addr() != key)),
        Err(_) => Err(FaultKind::PrefixLength { len, bits: K::BITS }.at(start)),
    }
}

/// Reads a field of prefixes, each after a path identifier where the session has them (RFC 7911 section 3).
///
/// Recorders without support for path identifiers record such sessions as ordinary ones. A field that cannot be read as
/// declared, but can without any fault the other way, is read the other way; the returned fault says so.
pub(super) fn paths(
    at: &mut Cursor<'_>,
    family: Family,
    add_path: bool,
    each: &mut dyn FnMut(Path, Option<Fault>),
) -> Reading<Option<Fault>> {
    let start = at.position();
    let reads = |add_path: bool| {
        let mut clean = true;
        let read = walk(&mut at.clone(), family, add_path, &mut |_, fault| clean &= fault.is_none());
        (read.is_ok(), clean)
    };
    if !reads(add_path).0 && reads(!add_path) == (true, true) {
        walk(at, family, !add_path, each)?;
        return Ok(Some(FaultKind::PathIdentifiers { declared: add_path }.at(start)));
    }
    walk(at, family, add_path, each)?;
    Ok(None)
}

fn walk(
    at: &mut Cursor<'_>,
    family: Family,
    add_path: bool,
    each: &mut dyn FnMut(Path, Option<Fault>),
) -> Reading<()> {
    while !at.is_empty() {
        let start = at.position();
        let id = if add_path { Some(at.u32("path identifier")?) } else { None };
        let (prefix, fault) = prefix(at, family)?;
        each(Path { prefix, id }, fault.map(|fault| fault.at(start)));
    }
    Ok(())
}
