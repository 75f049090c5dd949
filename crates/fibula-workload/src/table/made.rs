//! Generated tables by name: presets and hostile ones.

use fibula::net::{Key, Route};

use super::hostile;
use super::{Profile, TableError, TableSpec, generate, preset};

/// Generates the table of this name: a [preset](super::PRESETS), or `ipv4-` or `ipv6-` and a [hostile](mod@super::hostile) table.
/// `size` gets its number of routes and returns how many to make. Returns `None` for an unknown name.
pub fn made<K: Key>(
    name: &str,
    size: impl FnOnce(usize) -> usize,
) -> Option<Result<Vec<Route<K>>, TableError>> {
    let sized = |spec: TableSpec| TableSpec { routes: size(spec.routes), ..spec };
    if let Some(preset) = preset(name) {
        return Some(generate(&sized(preset.spec()), &Profile::of::<K>()));
    }
    let table = hostile::find::<K>(name.split_once('-')?.1)?;
    Some((table.generate)(&sized(table.spec)))
}
