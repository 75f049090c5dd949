//! Reads the file of a paper: TOML, with a table `shared` of the parts that its exhibits have in common.
//!
//! The text `@NAME` is replaced by the shared value of this name: a text, a list or a table. In a table, `like = "NAME"` adds the
//! fields of a shared table that the table does not have itself.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::definition::Paper;

/// Returns a paper. Its file comes with the program, so that a fault in it is one of the program.
pub(super) fn paper(name: &str, text: &str) -> Paper {
    let paper = read(text).unwrap_or_else(|(line, reason)| panic!("{name}/paper.toml:{line}: {reason}"));
    Paper { name: name.to_owned(), ..paper }
}

/// Reads a paper without its name; the error is a line and the fault there.
pub(super) fn read(text: &str) -> Result<Paper, (usize, String)> {
    parse(text).map_err(|Fault { at, reason }| (1 + text[..at].matches('\n').count(), reason))
}

/// A fault, and where it begins.
struct Fault {
    at: usize,
    reason: String,
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        Self { at: error.span().map_or(0, |span| span.start), reason: error.message().to_owned() }
    }
}

fn parse(text: &str) -> Result<Paper, Fault> {
    let mut file = DeTable::parse(text)?;
    let mut shared = SharedFields::default();
    if let Some(DeValue::Table(table)) = file.get_mut().remove("shared").map(Spanned::into_inner) {
        shared.left.extend(table.into_iter().map(|(name, value)| (name.into_inner().into_owned(), value)));
    }
    file.get_mut().iter_mut().try_for_each(|(_, value)| shared.fill(value))?;
    if let Some((name, value)) = shared.left.first_key_value() {
        return Err(Fault { at: value.span().start, reason: format!("nothing takes the shared '{name}'") });
    }
    Ok(Paper::deserialize(Deserializer::from(file))?)
}

/// The parts that exhibits have in common, by name.
#[derive(Default)]
struct SharedFields<'t> {
    /// The parts that nothing has taken yet, as they are written.
    left: BTreeMap<String, Spanned<DeValue<'t>>>,
    /// The others, without names of each other.
    filled: BTreeMap<String, Spanned<DeValue<'t>>>,
}

impl<'t> SharedFields<'t> {
    /// Puts shared parts where a value names them. Places stay those of the file, for errors.
    fn fill(&mut self, value: &mut Spanned<DeValue<'t>>) -> Result<(), Fault> {
        let at = value.span().start;
        match value.get_mut() {
            DeValue::String(text) => {
                if let Some(name) = text.strip_prefix('@') {
                    *value = self.take(name, at)?;
                }
            }
            DeValue::Array(values) => values.iter_mut().try_for_each(|value| self.fill(value))?,
            DeValue::Table(table) => {
                let like = table.remove("like");
                table.iter_mut().try_for_each(|(_, value)| self.fill(value))?;
                like.map_or(Ok(()), |like| self.complete(table, &like))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the fields of the shared table of this name that a table lacks.
    fn complete(&mut self, table: &mut DeTable<'t>, like: &Spanned<DeValue<'t>>) -> Result<(), Fault> {
        let (at, name) = (like.span().start, like.get_ref().as_str().unwrap_or_default());
        let DeValue::Table(fields) = self.take(name, at)?.into_inner() else {
            return Err(Fault { at, reason: format!("the shared '{name}' is no table") });
        };
        for (key, value) in fields {
            if !table.contains_key(&**key.get_ref()) {
                table.insert(key, value);
            }
        }
        Ok(())
    }

    /// Returns the shared part of a name. While it is filled itself it is not there, so that nothing can contain itself.
    fn take(&mut self, name: &str, at: usize) -> Result<Spanned<DeValue<'t>>, Fault> {
        if let Some(mut value) = self.left.remove(name) {
            self.fill(&mut value)?;
            self.filled.insert(name.to_owned(), value);
        }
        let found = self.filled.get(name).cloned();
        found.ok_or_else(|| Fault { at, reason: format!("nothing is shared as '{name}'") })
    }
}
