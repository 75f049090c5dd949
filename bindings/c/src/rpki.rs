//! Route origin validation (feature `rpki`): `fibula_rpki.h` is its documentation.

use std::ffi::{c_char, c_int};
use std::fs::File;

use engine::net::{HostBits, IpPrefix, Key, Prefix, parse_address};
use fibula_feed::compression::Decompressor;
use fibula_feed::rpki::{ExportError, State, Validator, read};

use crate::checked::Handle;
use crate::error::{Code, ErrorPlace, Failure, counted, plain_counted};
use crate::input::{elements, elements_mut, free, handle, make, owned, path};

/// `fibula_vrps`.
pub struct Payloads {
    validator: Validator,
    count: usize,
}

impl Handle for Payloads {
    const NAME: &'static str = "payloads";
    const NULL: &'static str = "the payloads are NULL";
}

const REFUSE_INVALID: u32 = 4;

/// A row without a state.
const NO_STATE: u8 = 0;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrps_open(
    file: *const c_char,
    vrps: *mut *mut Payloads,
    error: *mut ErrorPlace,
) -> c_int {
    // SAFETY: the promises that fibula_rpki.h asks of the caller, here and below.
    unsafe {
        make(vrps, error, || {
            let file = path(file)?;
            let system =
                |error: std::io::Error| Failure::new(Code::System, format!("{}: {error}", file.display()));
            let input = Decompressor::new(File::open(file).map_err(system)?).map_err(system)?;
            let export = read(&file.display().to_string(), input, false).map_err(|error| match error {
                ExportError::Io(error) => system(error),
                ExportError::Foreign(_) => Failure::new(Code::Foreign, error.to_string()),
                error => Failure::new(Code::Damaged, error.to_string()),
            })?;
            let validator = Validator::new(&export.payloads)?;
            Ok(owned(Payloads { validator, count: export.payloads.len() }))
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrps_free(vrps: *mut Payloads) {
    // SAFETY: as in `fibula_vrps_open`.
    unsafe { free(vrps) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrps_count(vrps: *const Payloads) -> i64 {
    // SAFETY: as in `fibula_vrps_open`.
    unsafe { plain_counted(|| Ok(handle(vrps)?.count as i64)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_vrps_validate(
    vrps: *const Payloads,
    prefixes: *const *const c_char,
    lengths: *const u32,
    asns: *const u32,
    flags: u32,
    states: *mut u8,
    count: usize,
    error: *mut ErrorPlace,
) -> i64 {
    // SAFETY: as in `fibula_vrps_open`.
    unsafe {
        counted(error, || {
            let vrps = handle(vrps)?;
            if flags & !REFUSE_INVALID != 0 {
                return Err(Failure::argument("a flag that this call does not take"));
            }
            let (texts, lengths) = (elements(prefixes, count)?, elements(lengths, count)?);
            let (asns, states) = (elements(asns, count)?, elements_mut(states, count)?);
            let mut invalid = 0;
            let (mut v4, mut v6) = (Routes::default(), Routes::default());
            for row in 0..count {
                states[row] = NO_STATE;
                if texts[row].is_null() {
                    continue;
                }
                let text = elements(texts[row].cast::<u8>(), lengths[row] as usize)?;
                match prefix(text) {
                    Some(IpPrefix::V4(prefix)) => v4.push(prefix, asns[row], row),
                    Some(IpPrefix::V6(prefix)) => v6.push(prefix, asns[row], row),
                    None if flags & REFUSE_INVALID != 0 => {
                        let text = String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned();
                        let message = format!("row {row}: '{}' is not a prefix", text.escape_debug());
                        return Err(Failure::new(Code::Invalid, message).at(row));
                    }
                    None => invalid += 1,
                }
            }
            let mut found = Vec::new();
            vrps.validator.validate_v4(&v4.prefixes, &v4.origins, &mut found);
            v4.rows.iter().zip(&found).for_each(|(&row, &state)| states[row] = number(state));
            vrps.validator.validate_v6(&v6.prefixes, &v6.origins, &mut found);
            v6.rows.iter().zip(&found).for_each(|(&row, &state)| states[row] = number(state));
            Ok(invalid)
        })
    }
}

/// The routes of a family.
struct Routes<K: Key> {
    prefixes: Vec<Prefix<K>>,
    origins: Vec<Option<u32>>,
    rows: Vec<usize>,
}

impl<K: Key> Default for Routes<K> {
    fn default() -> Self {
        Self { prefixes: Vec::new(), origins: Vec::new(), rows: Vec::new() }
    }
}

impl<K: Key> Routes<K> {
    fn push(&mut self, prefix: Prefix<K>, origin: u32, row: usize) {
        self.prefixes.push(prefix);
        self.origins.push(Some(origin));
        self.rows.push(row);
    }
}

/// Reads a prefix, or an address, which is a prefix of all its bits. Bits after the length are not looked at.
fn prefix(text: &[u8]) -> Option<IpPrefix> {
    if text.contains(&b'/') {
        return IpPrefix::parse(text, HostBits::Mask).ok();
    }
    parse_address(text).ok().map(IpPrefix::from)
}

/// `FIBULA_ROV_VALID` and so on.
fn number(state: State) -> u8 {
    match state {
        State::Valid => 1,
        State::InvalidAs => 2,
        State::InvalidLength => 3,
        State::NotFound => 4,
    }
}
