//! Options whose usual values completions offer, and which take others too.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use fibula::fib::registry::Engines;
use fibula_feed::Value;

/// Parses with another parser, and knows some of the names that it takes. Options with it hide them from their help, which says
/// where to find them.
#[derive(Debug, Clone)]
pub struct Suggested<P> {
    /// The parser of the value.
    pub parser: P,
    /// Returns the names that completions offer.
    pub names: fn() -> Vec<&'static str>,
}

impl<P: TypedValueParser> TypedValueParser for Suggested<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// The name of an engine, or of something else that is measured like one.
#[must_use]
pub fn engine() -> impl TypedValueParser<Value = String> {
    Suggested { parser: StringValueParser::new(), names: || fibula_workload::engines::names(Engines::OWN) }
}

/// The kinds of values that routes lead to.
pub(crate) fn value() -> impl TypedValueParser<Value = Value> {
    let names = || Value::NAMED.iter().map(Value::name).collect();
    Suggested { parser: |text: &str| text.parse::<Value>(), names }
}
