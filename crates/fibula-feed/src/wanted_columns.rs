//! Makes the columns of values of a compiled table: finds their types, and fills them from labels.

use core::fmt;
use std::collections::HashMap;

use fibula::file::{ColumnBuilder, ColumnRefusal, ColumnType, ColumnValue, StoredColumn, TableFile};
use fibula::memory::Limits;
use fibula::net::{IpPrefix, Key, NextHop, Route};
use fibula::rib::Rib;

use crate::load::LoadedRoutes;
use crate::next_hops::Label;
use crate::value::Value;

/// The columns that a compiled table shall have: [`values`](Self::values) and [`types`](Self::types) are loaded
/// ([`LoadOptions`](crate::LoadOptions)), and then [`fill`](Self::fill) makes the columns.
///
/// ```
/// use fibula::memory::Limits;
/// use fibula_feed::{LoadOptions, Loader, Source, WantedColumns};
///
/// let wanted = WantedColumns::new(&["asn:u32".parse()?, "country".parse()?])?;
/// let mut options = LoadOptions::default();
/// (options.values, options.types) = (wanted.values(), wanted.types());
/// let csv = "prefix,asn,country\n192.0.2.0/24,64500,NL\n".as_bytes();
/// let mut table = Loader::new(options).load(Source::reader("sites.csv", csv))?;
/// let columns = wanted.fill(&mut table, Limits::default())?;
/// assert_eq!(columns.iter().map(|column| column.name()).collect::<Vec<_>>(), ["asn", "country"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WantedColumns(Vec<WantedColumn>);

#[derive(Debug)]
struct WantedColumn {
    value: Value,
    /// The type, if one was named.
    kind: Option<ColumnType>,
}

impl WantedColumn {
    /// Reads a value as `--value` names it, with a type or without.
    fn of(value: &Value) -> Self {
        let name = value.column();
        let typed = name.rsplit_once(':').and_then(|(name, kind)| {
            Some(Self { value: name.parse().ok()?, kind: Some(ColumnType::named(kind)?) })
        });
        typed.unwrap_or_else(|| Self { value: value.clone(), kind: None })
    }
}

impl WantedColumns {
    /// Returns the columns of these values. One with a type at its end, as in `asn:u32`, has this type.
    ///
    /// # Errors
    /// When a value is named with two types.
    pub fn new(values: &[Value]) -> Result<Self, WantedColumnsError> {
        let mut wanted: Vec<WantedColumn> = Vec::new();
        for column in values.iter().map(WantedColumn::of) {
            match wanted.iter().find(|before| before.value == column.value) {
                None => wanted.push(column),
                Some(before) if before.kind == column.kind => {}
                Some(_) => return Err(WantedColumnsError::TwoTypes(column.value)),
            }
        }
        Ok(Self(wanted))
    }

    /// Returns the columns of a compiled table with their types. A file of version 1 has texts without a name, which are next hops, and so
    /// none of these.
    #[must_use]
    pub fn of_file(file: &TableFile) -> Self {
        let named = file.columns().iter().filter(|column| column.ids().is_none());
        let columns = named.filter_map(|column| {
            Some(WantedColumn { value: column.name().parse().ok()?, kind: Some(column.kind()) })
        });
        Self(columns.collect())
    }

    /// Returns these columns, or one of the next hops if there are none.
    #[must_use]
    pub fn or_next_hops(mut self) -> Self {
        if self.0.is_empty() {
            self.0.push(WantedColumn { value: Value::NextHop, kind: None });
        }
        self
    }

    /// Returns whether no column is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values to load.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        self.0.iter().map(|wanted| wanted.value.clone()).collect()
    }

    /// Returns their types.
    #[must_use]
    pub fn types(&self) -> Vec<Option<ColumnType>> {
        self.0.iter().map(|wanted| wanted.kind).collect()
    }

    /// Fills the columns from the labels of the table. The next hops of the table are then their ids: dense, from 1 on, one for each
    /// distinct row that a route has.
    ///
    /// # Errors
    /// When a value does not fit the type of its column, or memory runs out.
    pub fn fill(
        &self,
        table: &mut LoadedRoutes,
        limits: Limits,
    ) -> Result<Vec<StoredColumn>, WantedColumnsError> {
        let used = used(table);
        let label = |id: NextHop| table.next_hops.label(id).map_or(&[][..], Label::fields);
        let kinds: Vec<ColumnType> = (self.0.iter().enumerate())
            .map(|(at, wanted)| {
                wanted.kind.unwrap_or_else(|| kind_of(used.iter().map(|&id| label(id).get(at))))
            })
            .collect();
        let mut builders: Vec<ColumnBuilder> = (self.0.iter().zip(&kinds))
            .map(|(wanted, &kind)| ColumnBuilder::within(&wanted.value.column(), kind, limits))
            .collect();
        let (mut rows, mut ids) = (HashMap::new(), HashMap::new());
        for &id in &used {
            let texts: Vec<Option<String>> = (0..kinds.len())
                .map(|at| label(id).get(at).filter(|field| **field != Label::Absent).map(Label::to_string))
                .collect();
            let mut values = Vec::new();
            for (at, (text, &kind)) in texts.iter().zip(&kinds).enumerate() {
                let value = text.as_ref().map(|text| kind.parse(text).ok_or(text)).transpose();
                values.push(value.map_err(|text| self.misfit(at, kind, text, table, id))?);
            }
            let next = rows.len() + 1;
            let row = *rows.entry(row_of(&values)).or_insert(next);
            if row == next {
                for (builder, value) in builders.iter_mut().zip(values) {
                    builder.push(value)?;
                }
            }
            ids.insert(id, NextHop::try_from(row as u32).unwrap_or(id));
        }
        let renamed = |id: NextHop| ids.get(&id).copied().unwrap_or(id);
        table.ribs.v4.map_next_hops(|route| renamed(route.next_hop));
        table.ribs.v6.map_next_hops(|route| renamed(route.next_hop));
        Ok(builders.into_iter().map(ColumnBuilder::finish).collect())
    }

    /// Returns the error for a value that was made after its row was read, which names a route that has it.
    fn misfit(
        &self,
        at: usize,
        kind: ColumnType,
        text: &str,
        table: &LoadedRoutes,
        id: NextHop,
    ) -> WantedColumnsError {
        let prefix = prefix_of(&table.ribs.v4, id).or_else(|| prefix_of(&table.ribs.v6, id));
        WantedColumnsError::Misfit { prefix, value: self.0[at].value.clone(), text: text.to_owned(), kind }
    }
}

/// Why columns cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum WantedColumnsError {
    /// This value was given two types.
    TwoTypes(Value),
    /// A value does not fit the type of its column.
    Misfit {
        /// A route that has it.
        prefix: Option<IpPrefix>,
        /// The column.
        value: Value,
        /// The value that does not fit.
        text: String,
        /// The type.
        kind: ColumnType,
    },
    /// The column refuses the value.
    Refused(ColumnRefusal),
}

impl From<ColumnRefusal> for WantedColumnsError {
    fn from(refusal: ColumnRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for WantedColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoTypes(value) => write!(f, "the value '{value}' was given two types"),
            Self::Misfit { prefix, value, text, kind } => {
                if let Some(prefix) = prefix {
                    write!(f, "{prefix}: ")?;
                }
                write!(f, "the value '{value}' is '{}', which is not of type {kind}", text.escape_debug())
            }
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl core::error::Error for WantedColumnsError {}

/// Returns the labels that routes have, in order of their first route.
fn used(table: &LoadedRoutes) -> Vec<NextHop> {
    let mut is_used = vec![false; table.next_hops.len() + 1];
    let mut used = Vec::new();
    let mut note = |id: NextHop| {
        if let Some(is_used) = is_used.get_mut(id.id() as usize).filter(|is_used| !**is_used) {
            *is_used = true;
            used.push(id);
        }
    };
    table.ribs.v4.iter().for_each(|Route { next_hop, .. }| note(next_hop));
    table.ribs.v6.iter().for_each(|Route { next_hop, .. }| note(next_hop));
    used
}

/// Returns the type of a column without one: `u32` if all of its values are numbers of 32 bits, and else text.
fn kind_of<'a>(fields: impl Iterator<Item = Option<&'a Label>>) -> ColumnType {
    let mut any = false;
    for field in fields.flatten().filter(|field| **field != Label::Absent) {
        if !matches!(field, Label::Number(_)) {
            return ColumnType::Text;
        }
        any = true;
    }
    if any { ColumnType::U32 } else { ColumnType::Text }
}

/// Returns the bytes of a row, which are equal for equal rows alone.
fn row_of(values: &[Option<ColumnValue<'_>>]) -> Vec<u8> {
    let mut row = Vec::new();
    for value in values {
        row.push(u8::from(value.is_some()));
        match value {
            // Of numbers that are written in several ways, those with equal bits are equal.
            Some(ColumnValue::F64(number)) => row.extend(number.to_bits().to_le_bytes()),
            Some(value) => {
                let text = value.to_string();
                row.extend((text.len() as u64).to_le_bytes());
                row.extend(text.as_bytes());
            }
            None => {}
        }
    }
    row
}

fn prefix_of<K: Key>(rib: &Rib<K>, id: NextHop) -> Option<IpPrefix>
where
    IpPrefix: From<fibula::net::Prefix<K>>,
{
    rib.iter().find(|route| route.next_hop == id).map(|route| route.prefix.into())
}
