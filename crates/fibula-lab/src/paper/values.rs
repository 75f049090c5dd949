//! Functions that compute or measure values, which the files of papers name.

use core::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::definition::PaperTable;
use super::{Context, FUNCTIONS, Point};

/// Values that a function computes or measures; the error says why there are none.
#[derive(Clone)]
pub struct Values {
    /// The name of the function.
    pub(super) function: String,
    measure: Measure,
}

/// A function with its parameters.
type Measure = Arc<dyn Fn(&mut Context<'_>) -> Result<Vec<Point>, String> + Send + Sync>;

/// A function without: it takes those of the file, or names the fault in them.
pub(super) type Function = fn(toml::Table) -> Result<Measure, toml::de::Error>;

/// Reads the parameters of a function. Each function has a type for its own, so that a file can neither lack one nor have one in
/// vain.
pub(super) fn bind<P: DeserializeOwned + Send + Sync + 'static>(
    parameters: toml::Table,
    measure: fn(&mut Context<'_>, &P) -> Result<Vec<Point>, String>,
) -> Result<Measure, toml::de::Error> {
    let parameters: P = parameters.try_into()?;
    Ok(Arc::new(move |context| measure(context, &parameters)))
}

impl Values {
    pub(super) fn measure(&self, context: &mut Context<'_>) -> Result<Vec<Point>, String> {
        (self.measure)(context)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Values").field(&self.function).finish()
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct FunctionCall {
            function: String,
            #[serde(flatten)]
            parameters: toml::Table,
        }
        let FunctionCall { function, parameters } = FunctionCall::deserialize(file)?;
        let found = FUNCTIONS.iter().copied().flatten().find(|(name, _)| *name == function);
        let (_, bind) = found.ok_or_else(|| D::Error::custom(format!("no function '{function}'")))?;
        let measure = bind(parameters).map_err(|error| D::Error::custom(error.message()))?;
        Ok(Self { function, measure })
    }
}

/// The parameters of a function of one table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTable {
    pub(super) table: PaperTable,
}

/// The parameters of a function of several tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfTables {
    pub(super) tables: Vec<PaperTable>,
}
