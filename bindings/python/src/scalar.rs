//! Addresses, prefixes and values as objects of Python, one at a time.

use std::net::IpAddr;

use fibula::file::ColumnValue;
use fibula::net::{HostBits, IpPrefix, Prefix, parse_address};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, intern};

use crate::error::{type_error, value_error};

/// Why an object is no address.
pub enum NoAddress {
    /// It has a type of addresses, but not the value of one.
    Invalid(String),
    /// It has another type.
    Type(String),
    /// A call of Python failed.
    Other(PyErr),
}

impl From<PyErr> for NoAddress {
    fn from(error: PyErr) -> Self {
        Self::Other(error)
    }
}

impl NoAddress {
    pub fn into_error(self, place: &str) -> PyErr {
        match self {
            Self::Invalid(why) => value_error(format!("{place}{why}")),
            Self::Type(why) => type_error(format!("{place}{why}")),
            Self::Other(error) => error,
        }
    }
}

fn of_bytes(bytes: &[u8]) -> Result<IpAddr, NoAddress> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ok(v4.into());
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(v6) => Ok(v6.into()),
        Err(_) => Err(NoAddress::Invalid(format!("{} bytes, where an address has 4 or 16", bytes.len()))),
    }
}

/// Returns the address that an object is: text, an integer, bytes in network order, or an object of `ipaddress`.
pub fn address_of(object: &Bound<'_, PyAny>) -> Result<IpAddr, NoAddress> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        let Ok(text) = text.to_str() else {
            return Err(NoAddress::Invalid("a text with characters that are no Unicode".to_owned()));
        };
        return parse_address(text.as_bytes())
            .map_err(|error| NoAddress::Invalid(format!("'{}': {error}", text.escape_debug())));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return of_bytes(bytes.as_bytes());
    }
    let is_integer = object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>();
    if !is_integer
        && let Some(packed) = object.getattr_opt(intern!(py, "packed"))?
        && let Ok(packed) = packed.cast::<PyBytes>()
    {
        return of_bytes(packed.as_bytes());
    }
    if is_integer
        || (!object.is_instance_of::<PyBool>() && object.getattr_opt(intern!(py, "__index__"))?.is_some())
    {
        return match object.extract::<u128>() {
            Ok(number) => Ok(match u32::try_from(number) {
                Ok(v4) => IpAddr::V4(v4.into()),
                Err(_) => IpAddr::V6(number.into()),
            }),
            Err(_) => Err(NoAddress::Invalid(format!("{object} is no address"))),
        };
    }
    let name = object.get_type().qualname()?;
    Err(NoAddress::Type(format!(
        "'{name}' is no address: text, an integer, 4 or 16 bytes and objects of ipaddress are"
    )))
}

/// Returns the prefix that an object is: text, a network or interface of `ipaddress`, a pair of an address and a length, or an address
/// alone. A text without a length is one address.
pub fn prefix_of(object: &Bound<'_, PyAny>, host_bits: HostBits) -> Result<IpPrefix, NoAddress> {
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        let Ok(text) = text.to_str() else {
            return Err(NoAddress::Invalid("a text with characters that are no Unicode".to_owned()));
        };
        if !text.as_bytes().contains(&b'/') {
            return address_of(object).map(IpPrefix::from);
        }
        return IpPrefix::parse(text.as_bytes(), host_bits)
            .map_err(|error| NoAddress::Invalid(format!("'{}': {error}", text.escape_debug())));
    }
    if let Ok(pair) = object.cast::<PyTuple>() {
        if pair.len() != 2 {
            return Err(NoAddress::Type(
                "a tuple is no prefix unless it is an address and a length".to_owned(),
            ));
        }
        let address = address_of(&pair.get_item(0)?)?;
        let Ok(length) = pair.get_item(1)?.extract::<u8>() else {
            return Err(NoAddress::Invalid("the length of a prefix is a number from 0 to 128".to_owned()));
        };
        return with_length(address, length, host_bits);
    }
    // An interface has a network too, and is an address with a length: the network is meant.
    let network = object.getattr_opt(intern!(py, "network"))?.unwrap_or_else(|| object.clone());
    if let Some(address) = network.getattr_opt(intern!(py, "network_address"))? {
        let length: u8 = network.getattr(intern!(py, "prefixlen"))?.extract()?;
        return with_length(address_of(&address)?, length, host_bits);
    }
    address_of(object).map(IpPrefix::from).map_err(|error| match error {
        NoAddress::Type(_) => {
            let name = object.get_type().qualname().map_or_else(|_| String::new(), |name| name.to_string());
            NoAddress::Type(format!(
                "'{name}' is no prefix: text, networks of ipaddress and pairs of an address and a length are"
            ))
        }
        other => other,
    })
}

fn with_length(address: IpAddr, length: u8, host_bits: HostBits) -> Result<IpPrefix, NoAddress> {
    let made = match (address, host_bits) {
        (IpAddr::V4(v4), HostBits::Refuse) => Prefix::new(v4.to_bits(), length).map(IpPrefix::V4),
        (IpAddr::V4(v4), HostBits::Mask) => Prefix::masked(v4.to_bits(), length).map(IpPrefix::V4),
        (IpAddr::V6(v6), HostBits::Refuse) => Prefix::new(v6.to_bits(), length).map(IpPrefix::V6),
        (IpAddr::V6(v6), HostBits::Mask) => Prefix::masked(v6.to_bits(), length).map(IpPrefix::V6),
    };
    made.map_err(|error| NoAddress::Invalid(error.to_string()))
}

/// Returns the address of an argument.
pub fn address(object: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    address_of(object).map_err(|error| error.into_error(""))
}

/// Returns the prefix of an argument, which has no bits after its length.
pub fn prefix(object: &Bound<'_, PyAny>) -> PyResult<IpPrefix> {
    prefix_of(object, HostBits::Refuse).map_err(|error| error.into_error(""))
}

/// Returns a prefix as a network of `ipaddress`.
pub fn network<'py>(py: Python<'py>, prefix: IpPrefix) -> PyResult<Bound<'py, PyAny>> {
    static V4: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static V6: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match prefix {
        IpPrefix::V4(prefix) => {
            V4.import(py, "ipaddress", "IPv4Network")?.call1(((prefix.addr(), prefix.len()),))
        }
        IpPrefix::V6(prefix) => {
            V6.import(py, "ipaddress", "IPv6Network")?.call1(((prefix.addr(), prefix.len()),))
        }
    }
}

/// Returns a value as an object.
pub fn value_object<'py>(py: Python<'py>, value: &ColumnValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    match value {
        ColumnValue::U32(number) => number.into_bound_py_any(py),
        ColumnValue::U64(number) => number.into_bound_py_any(py),
        ColumnValue::I64(number) => number.into_bound_py_any(py),
        ColumnValue::F64(number) => Ok(PyFloat::new(py, *number).into_any()),
        ColumnValue::Bool(is_true) => is_true.into_bound_py_any(py),
        ColumnValue::Text(text) => Ok(PyString::new(py, text).into_any()),
        ColumnValue::Bytes(bytes) => Ok(PyBytes::new(py, bytes).into_any()),
        _ => Err(type_error("a value of a type that this version does not know")),
    }
}
