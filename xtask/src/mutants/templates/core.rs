pub use ipnet;
pub mod check;
pub mod memory;
pub mod net;
pub mod radix;
mod random;
pub mod rib;
pub mod simd;

/// The paths that macros name.
pub mod unstable {
    pub mod simd {
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        pub use crate::simd::aarch64::neon;
        #[cfg(target_arch = "x86_64")]
        pub use crate::simd::x86::{avx2, avx512, icelake};
        pub use crate::simd::*;
    }
}

#[cfg(test)]
extern crate self as fibula;
#[cfg(test)]
extern crate self as fibula_proof;
#[cfg(test)]
extern crate self as libtest_mimic;
#[cfg(test)]
pub mod tables;
#[cfg(test)]
pub mod toy;

#[cfg(test)]
pub mod verdict {
    #[derive(Debug)]
    pub struct Failure(String);

    impl<T: ToString> From<T> for Failure {
        fn from(message: T) -> Self {
            Self(message.to_string())
        }
    }
}

#[cfg(test)]
pub struct Trial;

#[cfg(test)]
impl Trial {
    pub fn test(_name: &str, run: fn() -> Result<(), verdict::Failure>) -> Self {
        run().unwrap();
        Self
    }
}

#[cfg(test)]
mod machine;

#[cfg(test)]
mod rib_trials {
    #[test]
    fn rib_answers_as_its_model() {
        crate::machine::trials();
    }
}
