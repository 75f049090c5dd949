//! What has no other place: long changes, the guide's examples, the shape of engine folders.

mod churn;
mod claims;
mod clock;
mod cookbook;
mod documented;
mod engine_folders;
mod published;
mod rpki;
mod scheduled;
mod serde;
mod unsafe_code;
