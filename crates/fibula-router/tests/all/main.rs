//! The pipeline, from outside. One program: each more would be linked anew.

mod golden;
mod hostile;
mod pipeline;
mod policers;
mod replace;
mod rules;
mod samples;
mod stages;
#[path = "../support/mod.rs"]
mod support;
mod trace;
mod vlans;
