//! Facts of this machine and this build: instruction sets, caches, optimisation.

use clap::Args;
use clap::builder::TypedValueParser;
use fibula::simd::{self, Isa, Present};
use fibula_workload::machine::Machine;

use crate::failure::Failure;
use crate::suggested::Suggested;

/// Whether this is an optimised build, whose speeds mean something.
pub const OPTIMISED: bool = !cfg!(debug_assertions);

/// The environment variable for `--isa`; the option takes precedence.
const FIBULA_ISA: &str = "FIBULA_ISA";

/// The instruction set that lookups use.
#[derive(Debug, Args)]
pub struct IsaArgs {
    /// Instruction set for lookups: scalar, avx2, avx512, avx512-icelake or neon. The environment variable FIBULA_ISA does
    /// the same [default: the best of this machine]
    #[arg(long, value_name = "NAME", value_parser = names(), hide_possible_values = true)]
    isa: Option<Isa>,
}

impl IsaArgs {
    /// Makes the requested set, if any, the one that all lookups of the process use, and returns it.
    ///
    /// # Errors
    /// If the environment names no set, or this machine lacks it.
    pub fn force(&self) -> Result<Option<Isa>, Failure> {
        let wrong = |error: String| Failure::WrongUse(format!("{FIBULA_ISA}: {error}"));
        let variable = std::env::var_os(FIBULA_ISA).filter(|name| !name.is_empty());
        let isa = match (self.isa, variable) {
            (Some(isa), _) => Some(isa),
            (None, Some(name)) => Some(parse(&name.to_string_lossy()).map_err(wrong)?),
            (None, None) => None,
        };
        simd::force(isa).map_err(|error| Failure::NotAvailable(error.to_string()))?;
        Ok(isa)
    }
}

fn names() -> impl TypedValueParser<Value = Isa> {
    Suggested { parser: parse, names: || Isa::ALL.iter().map(|isa| isa.name()).collect() }
}

/// Returns the set of this name.
fn parse(name: &str) -> Result<Isa, String> {
    name.parse().map_err(|_| format!("no instruction set '{name}'; {}", here()))
}

/// Returns the instruction sets of this machine.
pub(crate) fn here() -> String {
    let sets: Vec<&str> = Present::all().map(|present| present.isa().name()).collect();
    format!("this machine has: {}", sets.join(", "))
}

/// Returns the size of a core's second-level cache, if the machine tells.
pub(crate) fn l2_bytes() -> Option<usize> {
    Machine::this().l2_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_sets_are_refused_with_what_this_machine_has() {
        for isa in Isa::ALL {
            assert_eq!(parse(isa.name()), Ok(*isa));
        }
        assert!(parse("sse9").unwrap_err().contains("no instruction set 'sse9'; this machine has: scalar"));
    }
}
