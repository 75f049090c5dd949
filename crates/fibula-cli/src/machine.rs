//! What this machine and this build are: instruction sets, caches, optimisation.

use clap::Args;
use fibula::simd::{self, Isa, Present};
use fibula_lab::bench::Machine;

use crate::failure::Failure;

/// Whether this is an optimised build, whose speeds mean something.
pub(crate) const OPTIMISED: bool = !cfg!(debug_assertions);

/// The variable that does what `--isa` does; the option wins.
const FIBULA_ISA: &str = "FIBULA_ISA";

#[derive(Debug, Args)]
pub(crate) struct IsaArgs {
    /// Look up with this instruction set: scalar, avx2, avx512 or avx512-icelake; one that this machine lacks is an
    /// error. The variable FIBULA_ISA does the same [default: the best this machine has]
    #[arg(long, value_name = "NAME", value_parser = parse)]
    isa: Option<Isa>,
}

impl IsaArgs {
    /// Makes the set that is asked for the one that lookups of the whole process use; it, where one is asked for.
    pub(crate) fn force(&self) -> Result<Option<Isa>, Failure> {
        let wrong = |error: String| Failure::WrongUse(format!("{FIBULA_ISA}: {error}"));
        let variable = std::env::var_os(FIBULA_ISA).filter(|name| !name.is_empty());
        let isa = match (self.isa, variable) {
            (Some(isa), _) => Some(isa),
            (None, Some(name)) => Some(parse(&name.to_string_lossy()).map_err(wrong)?),
            (None, None) => None,
        };
        simd::force(isa).map_err(|error| Failure::WrongUse(error.to_string()))?;
        Ok(isa)
    }
}

/// The set of this name, where this machine has it; else what it has.
fn parse(name: &str) -> Result<Isa, String> {
    let known = name.parse::<Isa>().map_err(|_| format!("no instruction set '{name}'; {}", here()))?;
    known.present().map(Present::isa).map_err(|error| error.to_string())
}

/// What this machine has.
pub(crate) fn here() -> String {
    let sets: Vec<&str> = Present::all().map(|present| present.isa().name()).collect();
    format!("this machine has: {}", sets.join(", "))
}

/// The second-level cache of a core of this machine, where it says so.
pub(crate) fn l2_bytes() -> Option<usize> {
    let machine = Machine::this();
    let cache = machine.caches.iter().find(|cache| cache.level == 2)?;
    usize::try_from(cache.bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_that_are_there_are_taken_and_others_refused_with_what_is_there() {
        for isa in Isa::ALL {
            match isa.present() {
                Ok(_) => assert_eq!(parse(isa.name()), Ok(*isa)),
                Err(_) => assert!(parse(isa.name()).unwrap_err().contains("it has: scalar")),
            }
        }
        assert!(parse("sse9").unwrap_err().contains("no instruction set 'sse9'; this machine has: scalar"));
    }
}
