pub use ipnet;
pub mod net;
