//! Tables from columns and from files of routes.

use std::collections::HashMap;
use std::path::PathBuf;

use fibula::file::{ColumnBuilder, ColumnType, ColumnValue, StoredColumn};
use fibula::memory::Limits;
use fibula::net::{Dual, HostBits, IpPrefix, Prefix};
use fibula::rib::{ColumnRules, DualRib, Duplicates, Rib, RibColumnsError};
use fibula_feed::{LoadOptions, Loader, Source, TableForm, Value, WantedColumns};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::error::{Failure, Outcome, guarded, type_error, value_error};
use crate::loaded::Loaded;
use crate::scalar::{address_of, prefix_of};

/// How a build treats duplicate prefixes and host bits.
pub struct BuildRules {
    duplicates: Duplicates,
    pub host_bits: HostBits,
}

impl BuildRules {
    pub fn new(duplicates: &str, host_bits: &str) -> PyResult<Self> {
        Ok(Self {
            duplicates: match duplicates {
                "raise" => Duplicates::Refuse,
                "last" => Duplicates::LastWins,
                other => {
                    return Err(value_error(format!("duplicates is 'raise' or 'last', and not '{other}'")));
                }
            },
            host_bits: match host_bits {
                "raise" => HostBits::Refuse,
                "mask" => HostBits::Mask,
                other => {
                    return Err(value_error(format!("host_bits is 'raise' or 'mask', and not '{other}'")));
                }
            },
        })
    }
}

/// Returns the rows of a column as a list of objects.
pub fn rows_of<'py>(column: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    if let Ok(list) = column.cast::<PyList>() {
        return Ok(list.clone());
    }
    if column.is_instance_of::<PyString>() || column.is_instance_of::<PyBytes>() {
        return Err(type_error("a text is no column: put it into a list"));
    }
    // Of Arrow, of NumPy and pandas, of Polars.
    for name in ["to_pylist", "tolist", "to_list"] {
        if let Some(method) = column.getattr_opt(name)?
            && let Ok(list) = method.call0()?.cast_into::<PyList>()
        {
            return Ok(list);
        }
    }
    let rows = column.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    PyList::new(column.py(), rows)
}

/// Reads prefixes: each row is one, or is an address and a length of two columns.
pub fn prefixes_of(prefixes: &Bound<'_, PyAny>, host_bits: HostBits) -> PyResult<Vec<IpPrefix>> {
    let mut found = Vec::new();
    each_prefix(prefixes, host_bits, |prefix| found.push(prefix))?;
    Ok(found)
}

/// The prefixes of each family.
pub type Families = Dual<Vec<Prefix<u32>>, Vec<Prefix<u128>>>;

/// Reads prefixes as [`prefixes_of`], each family for itself: one of IPv4 takes a quarter of the memory of an [`IpPrefix`].
pub fn families_of(prefixes: &Bound<'_, PyAny>, host_bits: HostBits) -> PyResult<Families> {
    let mut found = Families::new(Vec::new(), Vec::new());
    each_prefix(prefixes, host_bits, |prefix| match prefix {
        IpPrefix::V4(prefix) => found.v4.push(prefix),
        IpPrefix::V6(prefix) => found.v6.push(prefix),
    })?;
    Ok(found)
}

fn each_prefix(
    prefixes: &Bound<'_, PyAny>,
    host_bits: HostBits,
    mut each: impl FnMut(IpPrefix),
) -> PyResult<()> {
    let wrong = |row: usize| move |error: crate::scalar::NoAddress| error.into_error(&format!("row {row}: "));
    if let Ok(pair) = prefixes.cast::<PyTuple>() {
        let is_pair = pair.len() == 2 && !pair.get_item(0)?.is_instance_of::<PyString>();
        if is_pair && address_of(&pair.get_item(0)?).is_err() {
            let (addresses, lengths) = (rows_of(&pair.get_item(0)?)?, rows_of(&pair.get_item(1)?)?);
            if addresses.len() != lengths.len() {
                let counts = format!("{} addresses and {} lengths", addresses.len(), lengths.len());
                return Err(value_error(format!("columns differ in length: {counts}")));
            }
            for (row, (address, length)) in addresses.iter().zip(lengths.iter()).enumerate() {
                let pair = PyTuple::new(prefixes.py(), [address, length])?;
                each(prefix_of(&pair.into_any(), host_bits).map_err(wrong(row))?);
            }
            return Ok(());
        }
    }
    for (row, item) in rows_of(prefixes)?.iter().enumerate() {
        each(prefix_of(&item, host_bits).map_err(wrong(row))?);
    }
    Ok(())
}

/// Reads the prefixes of a column. A row may also be `None`, or a text that is not a prefix.
pub fn some_prefixes_of(prefixes: &Bound<'_, PyAny>, host_bits: HostBits) -> PyResult<Vec<Option<IpPrefix>>> {
    Ok(rows_of(prefixes)?.iter().map(|item| prefix_of(&item, host_bits).ok()).collect())
}

/// Builds a table from columns.
pub fn of_columns(
    prefixes: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
    rules: &BuildRules,
    engine: Option<&str>,
) -> Outcome<Loaded> {
    let py = prefixes.py();
    let mapped = prefixes.cast::<PyDict>().ok().filter(|_| values.is_none());
    let (prefixes, own) = match mapped {
        // Prefixes with their values.
        Some(dict) => (dict.keys().into_any(), Some(dict.values().into_any())),
        None => (prefixes.clone(), None),
    };
    let prefixes = prefixes_of(&prefixes, rules.host_bits)?;
    let values = own.as_ref().or(values);
    let (ids, columns) = match values {
        None => ((1..=prefixes.len() as u32).collect(), Vec::new()),
        Some(values) => ids_and_columns(values, prefixes.len())?,
    };
    let built = py.detach(|| {
        guarded(|| -> Outcome<Loaded> { Loaded::build(ribs_of(&prefixes, &ids, rules)?, columns, engine) })
    });
    built?
}

/// Returns the routes of both families.
pub fn ribs_of(prefixes: &[IpPrefix], ids: &[u32], rules: &BuildRules) -> Outcome<DualRib> {
    let v4 = rib(prefixes, ids, rules, |prefix| match prefix {
        IpPrefix::V4(prefix) => Some((prefix.addr(), prefix.len())),
        IpPrefix::V6(_) => None,
    })?;
    let v6 = rib(prefixes, ids, rules, |prefix| match prefix {
        IpPrefix::V6(prefix) => Some((prefix.addr(), prefix.len())),
        IpPrefix::V4(_) => None,
    })?;
    Ok(DualRib::new(v4, v6))
}

fn rib<K: fibula::net::Key>(
    prefixes: &[IpPrefix],
    ids: &[u32],
    rules: &BuildRules,
    of: impl Fn(IpPrefix) -> Option<(K, u8)>,
) -> Outcome<Rib<K>> {
    let (mut addresses, mut lengths, mut own, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, (&prefix, &id)) in prefixes.iter().zip(ids).enumerate() {
        if let Some((address, length)) = of(prefix) {
            addresses.push(address);
            lengths.push(length);
            own.push(id);
            rows.push(row);
        }
    }
    let column_rules =
        ColumnRules { host_bits: HostBits::Mask, duplicates: rules.duplicates, limits: Limits::default() };
    Rib::from_columns(&addresses, &lengths, &own, column_rules).map_err(|error| {
        // The rows of the call are those of both families.
        let row = error.row().map(|at| rows[at]);
        match (row, &error) {
            (Some(row), RibColumnsError::Duplicate { prefix, .. }) => Failure(value_error(format!(
                "row {row}: {prefix} is there already; duplicates=\"last\" replaces it"
            ))),
            (Some(row), RibColumnsError::Zero { .. }) => {
                Failure(value_error(format!("row {row}: 0 is not the id of a route")))
            }
            _ => error.into(),
        }
    })
}

/// A column that is read.
struct Values<'py> {
    name: String,
    rows: Bound<'py, PyList>,
    kind: ColumnType,
}

impl<'py> Values<'py> {
    fn new(name: String, column: &Bound<'py, PyAny>, count: usize) -> PyResult<Self> {
        let rows = rows_of(column)?;
        if rows.len() != count {
            let counts = format!("{count} prefixes and {} values", rows.len());
            return Err(value_error(format!("column '{name}': columns differ in length: {counts}")));
        }
        let kind = match declared(column)? {
            Some(kind) => kind,
            None => guessed(&name, &rows)?,
        };
        Ok(Self { name, rows, kind })
    }

    fn value(&self, row: usize) -> PyResult<Option<ColumnValue<'static>>> {
        let item = self.rows.get_item(row)?;
        if item.is_none() {
            return Ok(None);
        }
        let wrong = || {
            let Self { name, kind, .. } = self;
            let shown = item.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
            value_error(format!("column '{name}', row {row}: {shown} is not of type {kind}"))
        };
        let value = match self.kind {
            ColumnType::U32 => ColumnValue::U32(item.extract().map_err(|_| wrong())?),
            ColumnType::U64 => ColumnValue::U64(item.extract().map_err(|_| wrong())?),
            ColumnType::I64 => ColumnValue::I64(item.extract().map_err(|_| wrong())?),
            ColumnType::F64 => ColumnValue::F64(item.extract().map_err(|_| wrong())?),
            ColumnType::Bool => ColumnValue::Bool(item.extract().map_err(|_| wrong())?),
            ColumnType::Bytes => ColumnValue::Bytes(item.extract::<Vec<u8>>().map_err(|_| wrong())?.into()),
            _ => ColumnValue::Text(item.extract::<String>().map_err(|_| wrong())?.into()),
        };
        Ok(Some(value))
    }
}

/// Returns the type that a column of NumPy, Arrow, pandas or Polars says it has.
fn declared(column: &Bound<'_, PyAny>) -> PyResult<Option<ColumnType>> {
    for attribute in ["dtype", "type"] {
        let Some(name) = column.getattr_opt(attribute)? else { continue };
        let kind = match name.str()?.to_string().to_ascii_lowercase().as_str() {
            "uint8" | "uint16" | "uint32" => ColumnType::U32,
            "uint64" => ColumnType::U64,
            "int8" | "int16" | "int32" | "int64" => ColumnType::I64,
            "float16" | "float32" | "float64" | "float" | "double" | "halffloat" => ColumnType::F64,
            "bool" | "boolean" => ColumnType::Bool,
            _ => continue,
        };
        return Ok(Some(kind));
    }
    Ok(None)
}

/// Returns the narrowest type that all values have.
fn guessed(name: &str, rows: &Bound<'_, PyList>) -> PyResult<ColumnType> {
    let mut kind: Option<ColumnType> = None;
    // Integers of more than 32 bits have a sign, unless one needs all 64 bits: in whatever order they come.
    let (mut negative, mut above_signed) = (false, false);
    for (row, item) in rows.iter().enumerate() {
        if item.is_none() {
            continue;
        }
        let own = if item.is_instance_of::<PyBool>() {
            ColumnType::Bool
        } else if item.is_instance_of::<PyString>() {
            ColumnType::Text
        } else if item.is_instance_of::<PyBytes>() {
            ColumnType::Bytes
        } else if item.is_instance_of::<PyFloat>() {
            ColumnType::F64
        } else if item.is_instance_of::<PyInt>() || item.hasattr(intern!(item.py(), "__index__"))? {
            match (item.extract::<u64>(), item.extract::<i64>()) {
                (Ok(number), _) if number <= u64::from(u32::MAX) => ColumnType::U32,
                (Ok(number), _) => {
                    above_signed |= i64::try_from(number).is_err();
                    ColumnType::I64
                }
                (_, Ok(_)) => {
                    negative = true;
                    ColumnType::I64
                }
                _ => {
                    return Err(value_error(format!(
                        "column '{name}', row {row}: {item} has more than 64 bits"
                    )));
                }
            }
        } else {
            let of = item.get_type().qualname()?;
            return Err(type_error(format!(
                "column '{name}', row {row}: a '{of}' is no value: numbers, truth values, texts and bytes are"
            )));
        };
        kind = Some(match (kind, own) {
            (None, own) => own,
            (Some(before), own) if before == own => own,
            (Some(ColumnType::U32), other @ (ColumnType::I64 | ColumnType::F64))
            | (Some(other @ (ColumnType::I64 | ColumnType::F64)), ColumnType::U32) => other,
            (Some(ColumnType::F64), ColumnType::I64) | (Some(ColumnType::I64), ColumnType::F64) => {
                ColumnType::F64
            }
            (Some(before), own) => {
                return Err(value_error(format!(
                    "column '{name}', row {row}: a value of type {own} after those of type {before}"
                )));
            }
        });
        if kind == Some(ColumnType::I64) && negative && above_signed {
            return Err(value_error(format!(
                "column '{name}', row {row}: {item}, and another number before it, fit no one type of 64 bits"
            )));
        }
    }
    if kind == Some(ColumnType::I64) && above_signed {
        kind = Some(ColumnType::U64);
    }
    Ok(kind.unwrap_or(ColumnType::Text))
}

/// Numbers the distinct rows of columns from 1 on. Returns the number of each row, and the columns of the numbered rows.
fn ids_and_columns(values: &Bound<'_, PyAny>, count: usize) -> Outcome<(Vec<u32>, Vec<StoredColumn>)> {
    let named: Vec<Values<'_>> = match values.cast::<PyMapping>() {
        Ok(mapping) => {
            let mut named = Vec::new();
            for item in mapping.items()?.iter() {
                let (name, column): (String, Bound<'_, PyAny>) = item.extract()?;
                if name.is_empty() || name.len() > 1000 || name.chars().any(char::is_control) {
                    return Err(Failure(value_error(format!(
                        "'{}' is no name of a column",
                        name.escape_debug()
                    ))));
                }
                named.push(Values::new(name, &column, count)?);
            }
            named
        }
        Err(_) => vec![Values::new("value".to_owned(), values, count)?],
    };
    if named.is_empty() || named.len() > 256 {
        return Err(Failure(value_error("columns are 1 to 256; without values, leave the argument out")));
    }
    let mut builders: Vec<_> = named.iter().map(|one| ColumnBuilder::new(&one.name, one.kind)).collect();
    let (mut numbers, mut ids) = (HashMap::<Vec<u8>, u32>::new(), Vec::with_capacity(count));
    let mut key = Vec::new();
    for row in 0..count {
        key.clear();
        let values = named.iter().map(|column| column.value(row)).collect::<PyResult<Vec<_>>>()?;
        for value in &values {
            key.push(u8::from(value.is_some()));
            match value {
                None => {}
                Some(ColumnValue::U32(number)) => key.extend(number.to_le_bytes()),
                Some(ColumnValue::U64(number)) => key.extend(number.to_le_bytes()),
                Some(ColumnValue::I64(number)) => key.extend(number.to_le_bytes()),
                Some(ColumnValue::F64(number)) => key.extend(number.to_bits().to_le_bytes()),
                Some(ColumnValue::Bool(is_true)) => key.push(u8::from(*is_true)),
                Some(ColumnValue::Text(text)) => {
                    key.extend((text.len() as u64).to_le_bytes());
                    key.extend(text.as_bytes());
                }
                Some(ColumnValue::Bytes(bytes)) => {
                    key.extend((bytes.len() as u64).to_le_bytes());
                    key.extend(bytes.iter());
                }
                Some(_) => {
                    return Err(Failure(type_error("a value of a type that this version does not know")));
                }
            }
        }
        if let Some(&id) = numbers.get(&key) {
            ids.push(id);
            continue;
        }
        let id =
            u32::try_from(numbers.len() + 1).map_err(|_| value_error("more than 2^32 different rows"))?;
        numbers.insert(key.clone(), id);
        ids.push(id);
        for (builder, value) in builders.iter_mut().zip(values) {
            builder.push(value).map_err(|error| value_error(format!("row {row}: {error}")))?;
        }
    }
    Ok((ids, builders.into_iter().map(ColumnBuilder::finish).collect()))
}

/// Reads a table from files.
pub fn of_files(
    paths: &Bound<'_, PyTuple>,
    format: Option<&str>,
    value: Option<&Bound<'_, PyAny>>,
    strict: bool,
    rules: &BuildRules,
    engine: Option<&str>,
) -> Outcome<Loaded> {
    if paths.is_empty() {
        return Err(Failure(value_error("no file: name one or more")));
    }
    let py = paths.py();
    let paths = paths.iter().map(|path| path.extract()).collect::<PyResult<Vec<PathBuf>>>()?;
    let form = match format {
        None => None,
        Some(name) => Some(TableForm::named(name).ok_or_else(|| {
            let names: Vec<_> = TableForm::ALL.iter().map(|form| form.name).collect();
            value_error(format!("no form of tables is named '{name}'; there are: {}", names.join(", ")))
        })?),
    };
    let names = match value {
        None => Vec::new(),
        Some(one) if one.is_instance_of::<PyString>() => vec![one.extract::<String>()?],
        Some(several) => several.extract::<Vec<String>>()?,
    };
    let values = names
        .iter()
        .map(|name| name.parse::<Value>().map_err(|error| value_error(format!("value '{name}': {error}"))))
        .collect::<PyResult<Vec<_>>>()?;
    let wanted = WantedColumns::new(&values).map_err(|error| value_error(error.to_string()))?.or_next_hops();
    let mut options = LoadOptions::default();
    (options.strict, options.host_bits, options.form) = (strict, rules.host_bits, form);
    (options.values, options.types) = (wanted.values(), wanted.types());
    let loaded = py.detach(|| {
        guarded(|| -> Outcome<Loaded> {
            let mut table = Loader::new(options).load(Source::files(paths))?;
            let columns =
                wanted.fill(&mut table, Limits::default()).map_err(|error| value_error(error.to_string()))?;
            Loaded::build(table.ribs, columns, engine)
        })
    });
    loaded?
}
