//! Writes a table as a MaxMind database, which nginx, Suricata, Zeek, Vector and Logstash read (MaxMind DB file format 2.0).
//!
//! Such a file has a binary tree of all addresses, a section with the records to which it leads, and a description. IPv4 lies below
//! ::/96. A reader finds the record of the longest prefix; the network that it reports is the part of that prefix which no longer one
//! cuts up.

mod data;
mod tree;

use core::fmt;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use fibula::file::{ColumnValue, StoredColumn};
use fibula::net::{IpPrefix, Key, NextHop, Prefix};
use fibula::rib::Rib;

use crate::load::LoadedRoutes;
use crate::value::Value;
use data::Data;
use tree::{Branch, FAMILY_BITS, Tree};

/// The bytes before the description.
const MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";

/// Zero bytes between the tree and the records.
const GAP: usize = 16;

/// Columns, and the fields that readers look for. Those of AS numbers are the columns of [`Value::OriginAs`].
const USUAL: [(&str, &str); 4] =
    [("as_name", AS_NAME), ("as_org", AS_NAME), ("country", COUNTRY), ("country_code", COUNTRY)];
const AS_NUMBER: &str = "autonomous_system_number";
const AS_NAME: &str = "autonomous_system_organization";
const COUNTRY: &str = "country.iso_code";

/// How a database is written.
#[derive(Debug, Clone, Default)]
pub struct MmdbOptions {
    /// The type, which readers check before they look anything up, such as `GeoLite2-ASN`. `None`: by the fields.
    pub database_type: Option<String>,
    /// Columns, each with the name of its field; `a.b` is a field `b` within a field `a`. A column that is not among them has the usual
    /// name for AS numbers (`autonomous_system_number`), their owners and countries (`country.iso_code`), or its own.
    pub names: Vec<(String, String)>,
    /// Whether ::ffff:0:0/96 (mapped addresses) and 2002::/16 (6to4) lead to the records of IPv4.
    pub has_aliases: bool,
    /// When the table was made, in seconds since 1970.
    pub build_epoch: u64,
}

/// A database that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MmdbSummary {
    /// Nodes of the tree.
    pub nodes: usize,
    /// Bits of each of the two records of a node: 24, 28 or 32.
    pub record_bits: u8,
    /// Distinct records.
    pub records: usize,
    /// Bytes of the file.
    pub bytes: usize,
}

/// Why a table is not written as a database.
#[derive(Debug)]
#[non_exhaustive]
pub enum MmdbError {
    /// This prefix of IPv6 lies where IPv4 is to be.
    Taken(IpPrefix),
    /// Two columns have this field, or one has it and another has a field within it.
    Name(String),
    /// A field is named for this column, which the table does not have.
    Column(String),
    /// A database has no such number: it has none below -2,147,483,648.
    Number(i64),
    /// The tree or the records are longer than 32 bits can tell, or a text is longer than 16 MiB.
    TooLarge,
    /// The output cannot be written.
    Write(io::Error),
}

impl fmt::Display for MmdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(prefix) => {
                write!(f, "{prefix} has no place in a MaxMind database: the records of IPv4 are there")
            }
            Self::Name(name) => write!(f, "two columns have the field '{name}', or one lies within it"),
            Self::Column(name) => write!(f, "there is no column '{name}' to be named"),
            Self::Number(number) => {
                write!(f, "{number} is below {}, the least number of a MaxMind database", i32::MIN)
            }
            Self::TooLarge => f.write_str("the table is too large for a MaxMind database"),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MmdbError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for MmdbError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Writes a table whose next hops are ids of these columns, as [`WantedColumns::fill`](crate::WantedColumns::fill) makes them. Takes
/// some 8 bytes for each node of the tree. A route of a full table has one to three nodes.
///
/// # Errors
/// When the table cannot be told by such a file, or the output cannot be written.
pub fn write(
    table: &LoadedRoutes,
    columns: &[StoredColumn],
    options: &MmdbOptions,
    out: &mut dyn Write,
) -> Result<MmdbSummary, MmdbError> {
    let fields = ColumnFields::new(columns, options)?;
    let tree = tree(table, options)?;
    // Ids of rows that no route has are not written.
    let (mut data, mut places) = (Data::default(), HashMap::new());
    for id in tree.ids() {
        if let Entry::Vacant(place) = places.entry(id) {
            place.insert(data.len());
            fields.root.put(columns, id, &mut data)?;
        }
    }
    let nodes = tree.nodes().len();
    let most = nodes + GAP + data.len();
    let record_bits = match most {
        0..0x100_0000 => 24,
        0x100_0000..0x1000_0000 => 28,
        _ if u32::try_from(most).is_ok() => 32,
        _ => return Err(MmdbError::TooLarge),
    };
    let record = |record: Branch| match record {
        Branch::Node(node) => node,
        Branch::Nothing => nodes as u32,
        Branch::Leaf(id) => (nodes + GAP + places[&id]) as u32,
    };
    for &[left, right] in tree.nodes() {
        out.write_all(&packed(record(left), record(right), record_bits)[..usize::from(record_bits) / 4])?;
    }
    out.write_all(&[0; GAP])?;
    out.write_all(data.bytes())?;
    out.write_all(MARK)?;
    let description = fields.description(&tree, record_bits, options)?;
    out.write_all(description.bytes())?;
    let bytes = nodes * usize::from(record_bits) / 4 + GAP + data.len() + MARK.len() + description.len();
    Ok(MmdbSummary { nodes, record_bits, records: places.len(), bytes })
}

/// Returns the bytes of a node; those after twice the bits are zeros.
fn packed(left: u32, right: u32, record_bits: u8) -> [u8; 8] {
    let ([l0, l1, l2, l3], [r0, r1, r2, r3]) = (left.to_be_bytes(), right.to_be_bytes());
    match record_bits {
        24 => [l1, l2, l3, r1, r2, r3, 0, 0],
        28 => [l1, l2, l3, l0 << 4 | r0, r1, r2, r3, 0],
        _ => [l0, l1, l2, l3, r0, r1, r2, r3],
    }
}

fn tree(table: &LoadedRoutes, options: &MmdbOptions) -> Result<Tree, MmdbError> {
    let (v4, v6) = (&table.ribs.v4, &table.ribs.v6);
    let is_narrow = v6.is_empty() && !options.has_aliases;
    let mut tree = Tree::new(if is_narrow { u32::BITS as u8 } else { u128::BITS as u8 });
    add(&mut tree, v6, 0)?;
    if is_narrow {
        add(&mut tree, v4, 0)?;
    } else if !v4.is_empty() {
        let root = FAMILY_BITS;
        is_free(v6, 0, root)?;
        // Where no route of IPv4 leads, none of IPv6 does.
        tree.set(0, root, Branch::Nothing)?;
        add(&mut tree, v4, root)?;
        if options.has_aliases {
            let all = tree.get(0, root);
            for (address, len) in [(0xffff_u128 << 32, root), (0x2002 << 112, 16)] {
                is_free(v6, address, len)?;
                tree.set(address, len, all)?;
            }
        }
    }
    Ok(tree)
}

/// Refuses routes in a part of the addresses.
fn is_free(v6: &Rib<u128>, address: u128, len: u8) -> Result<(), MmdbError> {
    let is_inside =
        |prefix: &Prefix<u128>| prefix.len() >= len && (prefix.addr() ^ address) >> (128 - len) == 0;
    let taken = v6.iter().map(|route| route.prefix).find(is_inside);
    taken.map_or(Ok(()), |prefix| Err(MmdbError::Taken(prefix.into())))
}

/// Adds the routes of a family. `below` is the number of zero bits in front of its addresses.
fn add<K: Key>(tree: &mut Tree, rib: &Rib<K>, below: u8) -> Result<(), MmdbError> {
    // In order: a prefix comes before those within it.
    for route in rib.iter() {
        let address = route.prefix.addr().to_bits() << (128 - K::BITS) >> below;
        let is_set = tree.set(address, below + route.prefix.len(), Branch::Leaf(route.next_hop))?;
        debug_assert!(is_set, "{} comes after a longer one", route.prefix);
    }
    Ok(())
}

/// A field of the records: the number of its column, or fields within it.
#[derive(Debug)]
enum RecordField {
    Column(usize),
    Fields(BTreeMap<String, RecordField>),
}

impl RecordField {
    fn insert(&mut self, path: &str, column: usize) -> bool {
        let Self::Fields(fields) = self else { return false };
        match path.split_once('.') {
            None => fields.insert(path.to_owned(), Self::Column(column)).is_none(),
            Some((first, rest)) => {
                let inner = fields.entry(first.to_owned()).or_insert_with(|| Self::Fields(BTreeMap::new()));
                inner.insert(rest, column)
            }
        }
    }

    /// Writes a record. Fields without a value are left out.
    fn put(&self, columns: &[StoredColumn], id: NextHop, data: &mut Data) -> Result<(), MmdbError> {
        match self {
            Self::Column(at) => match columns[*at].value(id) {
                Some(value) => put_value(&value, data),
                None => Ok(()),
            },
            Self::Fields(fields) => {
                let has = |field: &Self| field.has_value(columns, id);
                let shown: Vec<_> = fields.iter().filter(|(_, field)| has(field)).collect();
                data.map(shown.len())?;
                for (name, field) in shown {
                    data.text(name)?;
                    field.put(columns, id, data)?;
                }
                Ok(())
            }
        }
    }

    fn has_value(&self, columns: &[StoredColumn], id: NextHop) -> bool {
        match self {
            Self::Column(at) => columns[*at].place(id).is_some(),
            Self::Fields(fields) => fields.values().any(|field| field.has_value(columns, id)),
        }
    }
}

fn put_value(value: &ColumnValue<'_>, data: &mut Data) -> Result<(), MmdbError> {
    match value {
        ColumnValue::U32(number) => data.u32(*number),
        ColumnValue::U64(number) => data.u64(*number),
        ColumnValue::I64(number) => match (u64::try_from(*number), i32::try_from(*number)) {
            (Ok(number), _) => data.u64(number),
            (_, Ok(number)) => data.i32(number),
            _ => Err(MmdbError::Number(*number)),
        },
        ColumnValue::F64(number) => data.f64(*number),
        ColumnValue::Bool(is_true) => data.bool(*is_true),
        ColumnValue::Text(text) => data.text(text),
        ColumnValue::Bytes(bytes) => data.raw(bytes),
        other => data.text(&other.to_string()),
    }
}

struct ColumnFields {
    root: RecordField,
    names: Vec<String>,
}

impl ColumnFields {
    fn new(columns: &[StoredColumn], options: &MmdbOptions) -> Result<Self, MmdbError> {
        let has = |name: &String| columns.iter().any(|column| column.name() == name);
        if let Some((missing, _)) = options.names.iter().find(|(column, _)| !has(column)) {
            return Err(MmdbError::Column(missing.clone()));
        }
        let (mut root, mut names) = (RecordField::Fields(BTreeMap::new()), Vec::new());
        for (at, column) in columns.iter().enumerate() {
            let own = column.name();
            let named = options.names.iter().find(|(column, _)| column == own).map(|(_, name)| name.as_str());
            let of_list = || USUAL.iter().find(|(column, _)| *column == own).map(|(_, name)| *name);
            let usual = || if Value::OriginAs.is_column(own) { Some(AS_NUMBER) } else { of_list() };
            // The next hops of an old file have no name.
            let name = named.or_else(usual).unwrap_or(if own.is_empty() { "next_hop" } else { own });
            if name.split('.').any(str::is_empty) || !root.insert(name, at) {
                return Err(MmdbError::Name(name.to_owned()));
            }
            names.push(name.to_owned());
        }
        Ok(Self { root, names })
    }

    /// Returns a type that readers of these fields accept: `geoip2` looks for `GeoLite2-ASN` and `Country` in it.
    fn database_type(&self) -> &'static str {
        let has = |name: &str| self.names.iter().any(|own| own == name);
        match (has(AS_NUMBER), has(COUNTRY)) {
            (true, true) => "Fibula-GeoLite2-ASN-Country",
            (true, false) => "Fibula-GeoLite2-ASN",
            (false, true) => "Fibula-Country",
            (false, false) => "Fibula",
        }
    }

    fn description(&self, tree: &Tree, record_bits: u8, options: &MmdbOptions) -> Result<Data, MmdbError> {
        let mut data = Data::without_places();
        data.map(9)?;
        data.text("binary_format_major_version")?;
        data.u16(2)?;
        data.text("binary_format_minor_version")?;
        data.u16(0)?;
        data.text("build_epoch")?;
        data.u64(options.build_epoch)?;
        data.text("database_type")?;
        data.text(options.database_type.as_deref().unwrap_or(self.database_type()))?;
        data.text("description")?;
        data.map(1)?;
        data.text("en")?;
        data.text(&format!("Routes with {}, written by Fibula", self.names.join(", ")))?;
        data.text("ip_version")?;
        data.u16(if tree.bits() == u32::BITS as u8 { 4 } else { 6 })?;
        data.text("languages")?;
        data.list(0)?;
        data.text("node_count")?;
        data.u32(tree.nodes().len() as u32)?;
        data.text("record_size")?;
        data.u16(u16::from(record_bits))?;
        Ok(data)
    }
}

#[cfg(test)]
mod tests;
