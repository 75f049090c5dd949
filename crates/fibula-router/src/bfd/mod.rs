//! The states of BFD sessions, read from the control socket of FRR's bfdd.
//!
//! bfdd notifies its clients as soon as the state of a session changes, so the router does not poll.
//!
//! - [`message`]: the messages of the socket.
//! - [`sessions`]: which sessions have failed, and for how long one that flaps stays out of use.
//! - [`client`]: the socket, which may vanish and come back.

pub mod client;
pub mod message;
pub mod sessions;
