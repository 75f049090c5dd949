//! `fibula.rov`: route origin validation of columns.

use std::fs::File;
use std::path::PathBuf;

use fibula::file::{ColumnBuilder, ColumnType, ColumnValue};
use fibula::net::{HostBits, IpPrefix, Prefix};
use fibula_column::ValueColumn;
use fibula_column::arrow::SharedArray;
use fibula_feed::compression::Decompressor;
use fibula_feed::rpki::{ExportError, Payload, State, Validator, read};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

use crate::arrow_column::ArrowColumn;
use crate::build::{prefixes_of, rows_of, some_prefixes_of};
use crate::error::{Failure, Outcome, guarded, value_error};
use crate::live::numbers_of;

/// Validated ROA payloads, compiled: which AS may announce which prefix, up to which length.
///
/// >>> vrps = Vrps(["192.0.2.0/24"], [24], [64500])
/// >>> rov(["192.0.2.0/24", "192.0.2.0/25", "198.51.100.0/24"], [64500, 64500, 64500], vrps)
/// ['valid', 'invalid-length', 'not-found']
#[pyclass(frozen, module = "fibula")]
pub struct Vrps {
    validator: Validator,
    count: usize,
    left_out: u64,
}

impl Vrps {
    fn made(payloads: &[Payload], left_out: u64) -> Outcome<Self> {
        Ok(Self { validator: Validator::new(payloads)?, count: payloads.len(), left_out })
    }

    fn of_columns(
        prefixes: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
        asns: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let prefixes = prefixes_of(prefixes, HostBits::Refuse)?;
        let (lengths, asns) = (numbers_of(lengths, "max_lengths")?, numbers_of(asns, "asns")?);
        if prefixes.len() != lengths.len() || prefixes.len() != asns.len() {
            let counts =
                format!("{} prefixes, {} lengths and {} ASes", prefixes.len(), lengths.len(), asns.len());
            return Err(value_error(format!("columns differ in length: {counts}")));
        }
        let mut payloads = Vec::with_capacity(prefixes.len());
        for (row, ((&prefix, &length), &asn)) in prefixes.iter().zip(&lengths).zip(&asns).enumerate() {
            let most = if matches!(prefix, IpPrefix::V4(_)) { 32 } else { 128 };
            let max_len = u8::try_from(length).ok().filter(|length| (prefix.len()..=most).contains(length));
            let max_len = max_len.ok_or_else(|| {
                value_error(format!(
                    "row {row}: a maximum length of {length}; that of {prefix} is from {} to {most}",
                    prefix.len()
                ))
            })?;
            payloads.push(Payload { prefix, max_len, asn });
        }
        Ok(prefixes_made(&payloads)?)
    }
}

fn prefixes_made(payloads: &[Payload]) -> Outcome<Vrps> {
    guarded(|| Vrps::made(payloads, 0))?
}

#[pymethods]
impl Vrps {
    /// Compile payloads, which are columns of one length.
    #[new]
    fn new(
        prefixes: &Bound<'_, PyAny>,
        max_lengths: &Bound<'_, PyAny>,
        asns: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        Self::of_columns(prefixes, max_lengths, asns)
    }

    /// Read an export of routinator, rpki-client or RIPE: CSV or JSON, plain or compressed. Entries that are no payloads are left out, unless
    /// they are more than a few, or ``strict`` is set.
    #[staticmethod]
    #[pyo3(signature = (path, *, strict=false))]
    fn read(py: Python<'_>, path: PathBuf, strict: bool) -> PyResult<Self> {
        let made = py.detach(|| {
            guarded(|| -> Outcome<Self> {
                let input = Decompressor::new(File::open(&path)?)?;
                let export =
                    read(&path.display().to_string(), input, strict).map_err(|error| match error {
                        ExportError::Io(error) => Failure::from(error),
                        other => Failure(value_error(other.to_string())),
                    })?;
                Self::made(&export.payloads, export.left_out)
            })
        });
        Ok(made??)
    }

    fn __len__(&self) -> usize {
        self.count
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Entries of the file that are no payloads.
    #[getter]
    fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Return the state of each route by route origin validation (RFC 6811): ``valid``, ``invalid-as``, ``invalid-length`` or ``not-found``.
///
/// ``prefixes`` and ``asns`` are columns of one length; None among ``asns`` is a route without one origin. ``vrps`` are a ``Vrps``, the path of
/// an export, or three columns: prefixes, maximum lengths and ASes. Of Arrow's prefixes the answer is Arrow's, and else a list. With
/// ``invalid="null"``, a row whose prefix or AS is missing or is none has no state; otherwise it is an error.
#[pyfunction]
#[pyo3(signature = (prefixes, asns, vrps, *, invalid="raise"))]
pub fn rov<'py>(
    py: Python<'py>,
    prefixes: &Bound<'py, PyAny>,
    asns: &Bound<'py, PyAny>,
    vrps: &Bound<'py, PyAny>,
    invalid: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let has_nulls = match invalid {
        "raise" => false,
        "null" => true,
        other => return Err(value_error(format!("invalid is 'null' or 'raise', and not '{other}'"))),
    };
    let made;
    let vrps = if let Ok(vrps) = vrps.cast::<Vrps>() {
        vrps.clone()
    } else if let Ok(columns) = vrps.cast::<PyTuple>() {
        if columns.len() != 3 {
            return Err(value_error("vrps are three columns: prefixes, maximum lengths and ASes"));
        }
        made = Vrps::of_columns(&columns.get_item(0)?, &columns.get_item(1)?, &columns.get_item(2)?)?;
        Bound::new(py, made)?
    } else {
        Bound::new(py, Vrps::read(py, vrps.extract()?, false)?)?
    };
    let is_arrow = prefixes.hasattr(intern!(py, "__arrow_c_array__"))?
        || prefixes.hasattr(intern!(py, "__arrow_c_stream__"))?;
    let rows = if has_nulls {
        some_prefixes_of(prefixes, HostBits::Mask)?
    } else {
        prefixes_of(prefixes, HostBits::Mask)?.into_iter().map(Some).collect()
    };
    let origins = rows_of(asns)?;
    if rows.len() != origins.len() {
        let counts = format!("{} prefixes and {} ASes", rows.len(), origins.len());
        return Err(value_error(format!("columns differ in length: {counts}")));
    }
    // A row without a state keeps a place: a prefix and an AS that are not looked at.
    let is_there: Vec<bool> = match has_nulls {
        false => vec![true; rows.len()],
        true => {
            let numbers = origins.iter().map(|item| item.extract::<u32>().is_ok());
            rows.iter().zip(numbers).map(|(prefix, is_number)| prefix.is_some() && is_number).collect()
        }
    };
    let nothing = IpPrefix::V4(Prefix::host(0));
    let rows: Vec<IpPrefix> = rows.into_iter().map(|prefix| prefix.unwrap_or(nothing)).collect();
    let origins = origins.iter().enumerate().map(|(row, item)| {
        if !is_there[row] {
            return Ok(None);
        }
        item.extract::<Option<u32>>().map_err(|_| {
            let shown = item.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string());
            value_error(format!("asns, row {row}: {shown} is not an AS number"))
        })
    });
    let origins = origins.collect::<PyResult<Vec<_>>>()?;
    let validator = &vrps.get().validator;
    let states = py.detach(|| guarded(|| states_of(validator, &rows, &origins)))?;
    if is_arrow {
        return Ok(Bound::new(py, ArrowColumn::new(as_arrow(&states, &is_there)?))?.into_any());
    }
    let names = State::ALL.map(|state| PyString::new(py, state.name()));
    let name_of = |(state, &is_there): (&State, &bool)| {
        let at = State::ALL.iter().position(|own| own == state).unwrap_or(0);
        is_there.then(|| names[at].clone())
    };
    PyList::new(py, states.iter().zip(&is_there).map(name_of).collect::<Vec<_>>())?.into_bound_py_any(py)
}

/// Validates routes of both families.
fn states_of(validator: &Validator, rows: &[IpPrefix], origins: &[Option<u32>]) -> Vec<State> {
    let (mut v4, mut v6) = ((Vec::new(), Vec::new(), Vec::new()), (Vec::new(), Vec::new(), Vec::new()));
    for (row, (prefix, &origin)) in rows.iter().zip(origins).enumerate() {
        match *prefix {
            IpPrefix::V4(prefix) => {
                v4.0.push(prefix);
                v4.1.push(origin);
                v4.2.push(row);
            }
            IpPrefix::V6(prefix) => {
                v6.0.push(prefix);
                v6.1.push(origin);
                v6.2.push(row);
            }
        }
    }
    let mut all = vec![State::NotFound; rows.len()];
    let mut states = Vec::new();
    validator.validate_v4(&v4.0, &v4.1, &mut states);
    v4.2.iter().zip(&states).for_each(|(&row, &state)| all[row] = state);
    validator.validate_v6(&v6.0, &v6.1, &mut states);
    v6.2.iter().zip(&states).for_each(|(&row, &state)| all[row] = state);
    all
}

/// Returns the states as a dictionary of Arrow.
fn as_arrow(states: &[State], is_there: &[bool]) -> Outcome<SharedArray> {
    let mut names = ColumnBuilder::new("state", ColumnType::Text);
    for state in State::ALL {
        names
            .push(Some(ColumnValue::Text(state.name().into())))
            .map_err(|error| value_error(error.to_string()))?;
    }
    let id_of = |state: &State| State::ALL.iter().position(|own| own == state).map_or(0, |at| at as u32 + 1);
    let ids: Vec<u32> = states
        .iter()
        .zip(is_there)
        .map(|(state, &is_there)| if is_there { id_of(state) } else { 0 })
        .collect();
    let names = names.finish();
    Ok(SharedArray::new(ValueColumn::from(&names).dictionary(&ids)?))
}
