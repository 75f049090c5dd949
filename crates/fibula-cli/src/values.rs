//! Makes the columns of values of a compiled table: reads the options that choose them, finds their types, and fills them.

use std::collections::HashMap;
use std::path::PathBuf;

use fibula::file::{ColumnBuilder, ColumnType, ColumnValue, StoredColumn, TableFile};
use fibula::memory::Limits;
use fibula::net::{IpPrefix, Key, NextHop, Route};
use fibula::rib::Rib;
use fibula_feed::{Label, LoadedRoutes, Value};

use crate::failure::Failure;
use crate::load;
use crate::options::FeedArgs;

/// The columns that a compiled table shall have.
pub(crate) struct WantedColumns(Vec<WantedColumn>);

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
    /// Returns the columns that were named. Otherwise those of a compiled table, or the next hop alone.
    pub(crate) fn new(files: &[PathBuf], feed: &FeedArgs) -> Result<Self, Failure> {
        let mut wanted: Vec<WantedColumn> = Vec::new();
        for column in feed.value.iter().map(WantedColumn::of) {
            match wanted.iter().find(|before| before.value == column.value) {
                None => wanted.push(column),
                Some(before) if before.kind == column.kind => {}
                Some(_) => {
                    let name = &column.value;
                    return Err(Failure::WrongUse(format!("the value '{name}' was given two types")));
                }
            }
        }
        match files {
            [path] if wanted.is_empty() && load::is_compiled(path) => {
                // A file that cannot be opened is reported when it is loaded.
                let columns = TableFile::map(path).map_or_else(|_| Vec::new(), |file| of_file(&file));
                wanted.extend(columns);
            }
            _ => {}
        }
        if wanted.is_empty() {
            wanted.push(WantedColumn { value: Value::NextHop, kind: None });
        }
        Ok(Self(wanted))
    }

    /// Returns the values to load.
    pub(crate) fn values(&self) -> Vec<Value> {
        self.0.iter().map(|wanted| wanted.value.clone()).collect()
    }

    /// Returns their types.
    pub(crate) fn types(&self) -> Vec<Option<ColumnType>> {
        self.0.iter().map(|wanted| wanted.kind).collect()
    }

    /// Fills the columns from the labels of the table. The next hops of the table are then their ids: dense, from 1 on, one for each
    /// distinct row that a route has.
    pub(crate) fn fill(
        &self,
        table: &mut LoadedRoutes,
        limits: Limits,
    ) -> Result<Vec<StoredColumn>, Failure> {
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
                    builder.push(value).map_err(|error| Failure::BadInput(error.to_string()))?;
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
    fn misfit(&self, at: usize, kind: ColumnType, text: &str, table: &LoadedRoutes, id: NextHop) -> Failure {
        let place = prefix_of(&table.ribs.v4, id).or_else(|| prefix_of(&table.ribs.v6, id));
        let place = place.map(|prefix| format!("{prefix}: ")).unwrap_or_default();
        let value = &self.0[at].value;
        Failure::BadInput(format!(
            "{place}the value '{value}' is '{}', which is not of type {kind}",
            text.escape_debug()
        ))
    }
}

/// Returns the columns of a compiled table with their types. A file of version 1 has texts without a name, which are next hops.
fn of_file(file: &TableFile) -> Vec<WantedColumn> {
    let named = file.columns().iter().filter(|column| column.ids().is_none());
    named
        .filter_map(|column| {
            Some(WantedColumn { value: column.name().parse().ok()?, kind: Some(column.kind()) })
        })
        .collect()
}

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
