//! What lookup structures are built of, for engines in other crates. **Unstable**: any version may change anything here.
//!
//! `crates/fibula-published` has the engines of papers, built against this interface, and `crates/examples/engine` the smallest one:
//! copy that to try an idea. An engine is a folder with the data that lookups read, a builder that takes
//! [`Routes`](crate::net::Routes) in order, the trait [`Fib`](crate::fib::Fib), and an [`Engine`](crate::fib::registry::Engine)
//! that describes it.
//!
//! - [`parts`] has building blocks: ranges of addresses, units that are allocated and retired, blocks of keys for kernels.
//! - [`simd`] has vector operations, and [`kernel`](simd::kernel), which compiles one kernel body for every instruction set.
//! - [`memory`] has arrays that respect memory limits, and arrays that a writer changes while readers look.
//! - [`in_place`] is the writer's side of an engine that changes in place; [`sections`] is what files hold of an engine.

pub mod in_place {
    //! The writer's side of an engine that changes in place.
    pub use crate::fib::in_place::*;
}

pub mod sections {
    //! What files hold of an engine.
    pub use crate::fib::sections::*;
}

pub mod planb {
    //! The engine `planb` by type, for those that are built on it.
    pub use crate::engines::planb::kernel::one;
    pub use crate::engines::planb::layout::*;
    pub use crate::engines::planb::scalar::*;
    pub use crate::engines::planb::statistics::*;
    pub use crate::engines::planb::{DOUBLE, NAME, SMALLEST_BITS, UNMERGED};
}

pub mod engines {
    //! Engines by type, for reports of what changes of a table would rewrite.
    pub use crate::engines::dir_17_bitmap::layout::Dir17Bitmap;
    pub use crate::engines::dir_btree::layout::DirBtree;
}

pub mod parts {
    //! Building blocks that structures share.

    pub mod arena {
        //! Units of several sizes in one array.
        pub use crate::fib::parts::arena::*;
    }
    pub mod by_entry {
        //! Changed prefixes by the entries that they meet.
        pub use crate::fib::parts::by_entry::*;
    }
    pub mod intervals {
        //! Intervals of upper halves of keys, and blocks of lower halves.
        pub use crate::fib::parts::intervals::*;
    }
    pub mod lanes {
        //! Blocks of keys for kernels.
        pub use crate::fib::parts::lanes::*;
    }
    pub mod next_hop_dictionary {
        //! Small codes for next hops.
        pub use crate::fib::parts::next_hop_dictionary::*;
    }
    pub mod ranges {
        //! Routes as disjoint ranges of addresses.
        pub use crate::fib::parts::ranges::*;
    }
    pub mod units {
        //! Runs of words that are allocated, retired and used again.
        pub use crate::fib::parts::units::*;
    }
}

pub mod simd {
    //! Instruction sets, and the operations that kernels are written in.

    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    pub use crate::simd::aarch64::neon;
    pub use crate::simd::multiversion::kernel;
    pub use crate::simd::shared_line::*;
    pub use crate::simd::table::*;
    pub use crate::simd::tree::*;
    #[cfg(target_arch = "x86_64")]
    pub use crate::simd::x86::{avx2, avx512, icelake};
    pub use crate::simd::*;
}

pub mod memory {
    //! Memory limits, and arrays that respect them.

    pub use crate::memory::shared::*;
    pub use crate::memory::*;
}

#[cfg(any(test, feature = "testing"))]
pub mod testing {
    //! Tests of an engine that changes in place: every address, at every store.

    pub use crate::fib::in_place_tests::*;
    pub use crate::random::Random;
}
