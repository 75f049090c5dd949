//! Longest-prefix match in BPF programs: Fibula's words in maps of the kernel.
//!
//! A program in XDP, tc or a cgroup finds the longest prefix of an address in some nanoseconds, in maps that this crate makes, fills
//! and keeps up to date without a system call for each change. Programs include `fibula_bpf.h`, which is in `include/`; their
//! loader takes the maps from pins. `docs/guide/bpf.md` goes through it command by command.
//!
//! ```no_run
//! use fibula::Table;
//! use fibula::net::{Family, IpPrefix};
//! use fibula_bpf::{BpfTable, Engine, Options};
//!
//! let table = fibula_bpf::live_table(Default::default(), &[Engine::Dir18Lines])?;
//! let maps = BpfTable::create(&Options::of(Engine::Dir18Lines))?;
//! maps.fill(&table)?;
//! maps.pin("/sys/fs/bpf/routes".as_ref())?;
//!
//! // From here on, each change of the table is in the maps when its call returns.
//! let follower = maps.follow(&table)?;
//! table.insert("192.0.2.0/24".parse::<IpPrefix>()?, 7.try_into()?)?;
//! assert_eq!(follower.tables()[0].get("192.0.2.1".parse()?), Ok(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How the words get there
//!
//! ```text
//! Table ── listener ──> mapping of array maps ──> programs
//!            words that entries lead to, then the entries; each store is one word
//! ```
//!
//! - **A change** of the table stores its words through the mapping, in the listener's order. A program sees, for each address, the
//!   answer before the change or the one after it.
//! - **Reuse.** A program that loaded an entry may still read the old unit. So a unit is used again only after a grace
//!   period, when all programs that were running have ended: see [`Grace`].
//! - **New words.** Each array has two halves. A structure that is built again, changes that are made at once
//!   ([`Table::apply_atomic`](fibula::Table::apply_atomic)) and a new follower write into the halves that are not in use. Then one
//!   store into the header map leads all lookups there.
//! - **A follower that ends**, even by SIGKILL, leaves the words of that moment. The heartbeat in the header map shows its age, and
//!   any other follower can go on.
//! - **Room** is taken when the maps are made. A change that needs more is refused by
//!   [`TableError::Room`](fibula::live::TableError::Room), and table and maps stay as they were.
//!
//! - **Arenas.** The words may be in an arena instead of arrays ([`Options::in_arena`]): its pages take memory when they are written, and
//!   programs fit whatever the room is. A program has one arena at most, so it looks up in one such table.
//!
//! Values are next hops: numbers of 32 bits, 0 for no route. Their meaning is in a map of the program.
//!
//! | needs | Linux |
//! |---|---|
//! | array maps that can be mapped | 5.5 |
//! | functions of programs that are verified by themselves | 5.6 |
//! | CAP_BPF instead of root; for loaders of programs CAP_PERFMON and CAP_NET_ADMIN too | 5.8 |
//! | arenas, if [`Options::in_arena`] asks for one; programs are compiled by clang 19 then | 6.9 |
//! | maps that do not count as locked memory; before, the limit is lifted | 5.11 |
//!
//! Sleepable programs must look up between `bpf_rcu_read_lock()` and `bpf_rcu_read_unlock()` (Linux 6.1).
#![cfg(target_os = "linux")]

mod arena;
mod error;
mod follow;
mod grace;
pub mod kernel;
mod layout;
mod lookup;
mod rights;
mod sys;
mod table;

pub use error::BpfError;
pub use follow::{FollowOptions, Follower, Order};
pub use grace::Grace;
pub use layout::{ARRAYS, Backend, Engine, LAYOUT};
pub use rights::Capability;
pub use table::{BpfTable, Options, State, live_table, unload};
