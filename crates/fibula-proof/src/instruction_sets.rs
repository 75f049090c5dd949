//! The instruction sets that a test uses.

use std::sync::OnceLock;

use fibula::fib::registry::Engine;
use fibula::net::Key;
use fibula::simd::{Isa, Present};

use crate::verdict::Failure;

/// The variable that names the one set to use.
pub const FIBULA_ISA: &str = "FIBULA_ISA";

/// Returns the sets to query a structure with: those that it has kernels for and this machine has, and the machine's
/// best one, which lookups use by default. Where a set is forced, that one alone.
pub fn of<K: Key>(engine: &Engine<K>) -> impl Iterator<Item = Present> {
    let listed = engine.isas;
    let (forced, best) = (forced().ok().flatten(), Present::all().last());
    let used = move |present: &Present| match forced {
        Some(forced) => *present == forced,
        None => listed.contains(&present.isa()) || listed.len() > 1 && best == Some(*present),
    };
    Present::all().filter(used)
}

/// Returns the set that [`FIBULA_ISA`] forces.
///
/// # Errors
/// When it does not name a set, or names one that this machine lacks.
pub fn forced() -> Result<Option<Present>, Failure> {
    static FORCED: OnceLock<Result<Option<Present>, String>> = OnceLock::new();
    let read = || {
        let Some(name) = std::env::var_os(FIBULA_ISA).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let isa: Isa = name.to_string_lossy().parse().map_err(|error| format!("{FIBULA_ISA}: {error}"))?;
        isa.present().map(Some).map_err(|error| format!("{FIBULA_ISA}: {error}"))
    };
    FORCED.get_or_init(read).clone().map_err(Failure::from)
}

/// Returns the last lines of a run: the sets that were used, and a line for each that was not, with the reason.
#[must_use]
pub fn summary() -> String {
    let forced = forced().ok().flatten();
    let used = |isa: &Isa| match forced {
        Some(forced) => forced.isa() == *isa,
        None => isa.present().is_ok(),
    };
    let reason = |isa: &Isa| match isa.present() {
        Ok(_) => format!("{FIBULA_ISA} names another"),
        Err(_) => "not on this CPU".to_owned(),
    };
    let names: Vec<_> = Isa::ALL.iter().filter(|isa| used(isa)).map(|isa| isa.name()).collect();
    let mut summary = format!("instruction sets: {}", names.join(", "));
    for isa in Isa::ALL.iter().filter(|isa| !used(isa)) {
        summary += &format!("\nSKIPPED instruction set {isa}: {}", reason(isa));
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Tested;

    /// Every registry entry has portable code, and lists its sets in order.
    fn listed_in_order<K: Tested>() {
        for engine in K::entries() {
            assert_eq!(engine.isas.first(), Some(&Isa::Scalar), "{}", engine.name);
            assert!(engine.isas.is_sorted_by(|a, b| a < b), "{}", engine.name);
            let used: Vec<Isa> = of(&engine).map(Present::isa).collect();
            if forced().unwrap().is_none() {
                assert_eq!(used[0], Isa::Scalar);
                let present = engine.isas.iter().filter(|isa| isa.present().is_ok());
                assert!(present.clone().all(|isa| used.contains(isa)), "{}", engine.name);
            }
        }
    }

    #[test]
    fn every_structure_is_queried_with_all_its_sets() {
        listed_in_order::<u32>();
        listed_in_order::<u128>();
    }

    #[test]
    fn the_summary_names_every_set_once() {
        let summary = summary();
        let (used, skipped) = summary.split_once('\n').unwrap_or((&summary, ""));
        let used = used.strip_prefix("instruction sets: ").unwrap().split(", ");
        let skipped = skipped
            .lines()
            .map(|line| line.strip_prefix("SKIPPED instruction set ").unwrap().split_once(": ").unwrap().0);
        let names: Vec<&str> = used.chain(skipped).collect();
        for isa in Isa::ALL {
            assert_eq!(names.iter().filter(|&&name| name == isa.name()).count(), 1, "{summary}");
        }
    }
}
