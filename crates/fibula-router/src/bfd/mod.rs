//! The sessions of BFD, as FRR's bfdd tells of them by its control socket.
//!
//! bfdd tells each client of a session's new state in the moment that it has it. Nobody asks again and again.
//!
//! - [`message`]: the messages of the socket.
//! - [`sessions`]: which sessions have failed, and for how long one that flaps stays out of use.
//! - [`client`]: the socket, which may vanish and come back.

pub mod client;
pub mod message;
pub mod sessions;
