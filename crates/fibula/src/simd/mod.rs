//! Instruction sets that kernels are stamped for. Knows nobody.

use core::fmt;

/// An instruction set a batch kernel can be stamped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Isa {
    /// Portable integer code: every machine.
    Scalar,
}

impl Isa {
    /// All of them, the portable one first.
    pub const ALL: &'static [Self] = &[Self::Scalar];

    /// The name that the command, the records and the interfaces use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
