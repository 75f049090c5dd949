//! Tables, traffic and quick rates.

mod measure;
mod table;
mod traffic;
