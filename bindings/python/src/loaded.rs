//! A table's engines, routes and values, which several objects of Python share.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use fibula::auto::{self, Workload};
use fibula::fib::{BuildError, DualFib, Fib, registry};
use fibula::file::{Contents, Half, Part, StoredColumn, TableFile, save};
use fibula::memory::Limits;
use fibula::net::{IpPrefix, Key, NextHop, Prefix, Route, Routes};
use fibula::rib::{DualRib, Rib};
use fibula_column::arrow::SharedArray;
use fibula_column::{ColumnError, PrefixView, TableView, ValueColumn};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::error::{Failure, Outcome, guarded, value_error};
use crate::scalar::value_object;

/// A table that does not change.
pub struct Loaded {
    source: Source,
    /// Which file it is, if it is one.
    stamp: Option<String>,
    /// What is made of the columns when it is first asked for.
    made: Vec<Made>,
}

enum Source {
    File(Arc<TableFile>),
    Built(Box<Built>),
}

struct Built {
    fibs: DualFib,
    ribs: DualRib,
    /// Their names, if the family has routes.
    engines: [Option<&'static str>; 2],
    columns: Vec<StoredColumn>,
}

struct Made {
    /// The value of each id, as an object.
    objects: PyOnceLock<Py<PyList>>,
    /// The same as NumPy has it.
    prepared: PyOnceLock<Py<PyAny>>,
    entries: OnceLock<SharedArray>,
}

impl Made {
    fn new() -> Self {
        Self { objects: PyOnceLock::new(), prepared: PyOnceLock::new(), entries: OnceLock::new() }
    }
}

impl Loaded {
    fn new(source: Source, stamp: Option<String>) -> Self {
        let mut loaded = Self { source, stamp, made: Vec::new() };
        loaded.made = loaded.columns().iter().map(|_| Made::new()).collect();
        loaded
    }

    pub fn of_file(file: Arc<TableFile>, stamp: Option<String>) -> Self {
        Self::new(Source::File(file), stamp)
    }

    /// Compiles routes, whose next hops are the ids of the columns.
    pub fn build(ribs: DualRib, columns: Vec<StoredColumn>, engine: Option<&str>) -> Outcome<Self> {
        if let Some(name) = engine
            && let (Err(error), Err(_)) = (registry::find::<u32>(name), registry::find::<u128>(name))
        {
            return Err(Failure(value_error(error.to_string())));
        }
        let (v4_name, v4) = compiled(engine, &ribs.v4)?;
        let (v6_name, v6) = compiled(engine, &ribs.v6)?;
        let engines = [v4_name.filter(|_| !ribs.v4.is_empty()), v6_name.filter(|_| !ribs.v6.is_empty())];
        let built = Built { fibs: DualFib { v4, v6 }, ribs, engines, columns };
        Ok(Self::new(Source::Built(Box::new(built)), None))
    }

    pub fn stamp(&self) -> Option<&str> {
        self.stamp.as_deref()
    }

    pub fn is_mapped(&self) -> bool {
        matches!(&self.source, Source::File(file) if file.is_mapped())
    }

    pub fn columns(&self) -> &[StoredColumn] {
        match &self.source {
            Source::File(file) => file.columns(),
            Source::Built(built) => &built.columns,
        }
    }

    pub fn engines(&self) -> [Option<&'static str>; 2] {
        match &self.source {
            Source::File(file) => [file.v4.engine, file.v6.engine],
            Source::Built(built) => built.engines,
        }
    }

    pub fn held_bytes(&self) -> usize {
        let columns: usize = self.columns().iter().map(|column| column.memory().held_bytes()).sum();
        match &self.source {
            Source::File(file) => file.memory().held_bytes(),
            Source::Built(built) => (built.fibs.memory() + built.ribs.memory()).held_bytes() + columns,
        }
    }

    pub fn view(&self) -> TableView<'_> {
        match &self.source {
            Source::File(file) => TableView::from(&**file),
            Source::Built(built) => TableView::from(&built.fibs),
        }
    }

    /// Returns what finds matched prefixes.
    pub fn prefixes(&self) -> PrefixView<'_> {
        match &self.source {
            Source::File(file) => PrefixView::from(&**file),
            Source::Built(built) => PrefixView::from((&built.fibs, &built.ribs)),
        }
    }

    #[inline]
    fn id_of(&self, address: IpAddr) -> Option<NextHop> {
        match &self.source {
            Source::File(file) => file.lookup(address),
            Source::Built(built) => built.fibs.lookup(address),
        }
    }

    /// Returns the id of an address; 0 if no route matches.
    pub fn lookup(&self, address: IpAddr) -> PyResult<u32> {
        let found = if self.is_mapped() { guarded(|| self.id_of(address))? } else { self.id_of(address) };
        Ok(NextHop::word(found))
    }

    /// Returns a column of values by its name; the only one without.
    pub fn values(&self, name: Option<&str>) -> Outcome<Option<Values<'_>>> {
        let at = match (name, self.columns()) {
            (None, []) => return Ok(None),
            (None, [_]) => 0,
            (None, _) => return Err(Failure(value_error(format!("name a column: {}", self.names())))),
            (Some(name), columns) => {
                let found = columns.iter().position(|column| column.name() == name);
                found.ok_or_else(|| {
                    let names = if columns.is_empty() { "none".to_owned() } else { self.names() };
                    Failure(value_error(format!("the table has no column '{name}'; it has: {names}")))
                })?
            }
        };
        Ok(Some(Values { loaded: self, at }))
    }

    /// Returns a column of values by its name; the first one without. `None` where the table has no columns.
    pub fn values_or_first(&self, name: Option<&str>) -> Outcome<Option<Values<'_>>> {
        match name {
            None => Ok((!self.columns().is_empty()).then_some(Values { loaded: self, at: 0 })),
            name => self.values(name),
        }
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.columns().iter().map(|column| format!("'{}'", column.name())).collect();
        names.join(", ")
    }

    /// Returns the value of an id as `lookup` answers it: that of the column, that of the only one, a dictionary of several, or the id
    /// where there is none.
    pub fn value<'py>(&self, py: Python<'py>, id: u32, column: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        if column.is_none() && self.columns().len() > 1 {
            if id == 0 {
                return Ok(py.None().into_bound(py));
            }
            let all = PyDict::new(py);
            for (at, column) in self.columns().iter().enumerate() {
                all.set_item(column.name(), Values { loaded: self, at }.object(py, id)?)?;
            }
            return Ok(all.into_any());
        }
        match self.values(column)? {
            Some(values) => values.object(py, id),
            None if id == 0 => Ok(py.None().into_bound(py)),
            None => Ok(id.into_pyobject(py)?.into_any()),
        }
    }

    /// Calls `with` with the routes of the family of a key.
    pub fn routes<K: TableKey>(&self) -> Outcome<&dyn Routes<K>> {
        K::routes(self)
    }

    /// Returns the route of exactly this prefix.
    pub fn exact(&self, prefix: IpPrefix) -> Outcome<Option<NextHop>> {
        Ok(match prefix {
            IpPrefix::V4(prefix) => exact(self.routes()?, prefix),
            IpPrefix::V6(prefix) => exact(self.routes()?, prefix),
        })
    }

    /// Returns the longest route around a prefix, itself included.
    pub fn longest(&self, prefix: IpPrefix) -> Outcome<Option<(IpPrefix, NextHop)>> {
        Ok(match prefix {
            IpPrefix::V4(prefix) => longest(self.routes()?, prefix).map(|(p, n)| (p.into(), n)),
            IpPrefix::V6(prefix) => longest(self.routes()?, prefix).map(|(p, n)| (p.into(), n)),
        })
    }

    /// Returns the routes around a prefix, itself included, the shortest first.
    pub fn covers(&self, prefix: IpPrefix) -> Outcome<Vec<(IpPrefix, NextHop)>> {
        let mut covers = Vec::new();
        let mut next = self.longest(prefix)?;
        while let Some((prefix, next_hop)) = next {
            covers.push((prefix, next_hop));
            next = match prefix {
                IpPrefix::V4(prefix) => self.routes()?.parent(prefix).map(of_route),
                IpPrefix::V6(prefix) => self.routes()?.parent(prefix).map(of_route),
            };
        }
        covers.reverse();
        Ok(covers)
    }

    pub fn count(&self) -> Outcome<usize> {
        Ok(self.routes::<u32>()?.len() + self.routes::<u128>()?.len())
    }

    /// Returns up to `count` routes after a prefix, in order; from the first on without one.
    pub fn after(&self, after: Option<IpPrefix>, count: usize) -> Outcome<Vec<(IpPrefix, NextHop)>> {
        let mut found = Vec::new();
        if !matches!(after, Some(IpPrefix::V6(_))) {
            let after = match after {
                Some(IpPrefix::V4(prefix)) => Some(prefix),
                _ => None,
            };
            found.extend(u32::after(self, after, count)?.into_iter().map(of_route));
        }
        if found.len() < count {
            let after = match after {
                Some(IpPrefix::V6(prefix)) => Some(prefix),
                _ => None,
            };
            found.extend(u128::after(self, after, count - found.len())?.into_iter().map(of_route));
        }
        Ok(found)
    }

    /// Calls `with` with what a file of the table holds.
    fn with_contents<T>(&self, with: impl FnOnce(&Contents<'_>) -> T) -> T {
        let mut contents = Contents::default();
        match &self.source {
            Source::Built(built) => {
                if !built.ribs.v4.is_empty() {
                    contents.v4 = Half::new(&*built.fibs.v4, &built.ribs.v4);
                }
                if !built.ribs.v6.is_empty() {
                    contents.v6 = Half::new(&*built.fibs.v6, &built.ribs.v6);
                }
            }
            Source::File(file) => {
                contents.v4.fib = file.v4.fib.as_deref();
                contents.v4.routes = file.v4.routes.as_ref().map(|routes| routes as &dyn Routes<u32>);
                contents.v6.fib = file.v6.fib.as_deref();
                contents.v6.routes = file.v6.routes.as_ref().map(|routes| routes as &dyn Routes<u128>);
            }
        }
        match self.columns() {
            // Ids of a file of version 1 may have gaps, which they keep.
            [column] if column.ids().is_some() => {
                for (id, _) in column.iter() {
                    let mut value = Vec::new();
                    column.append(id, &mut value);
                    contents.values.insert(id, value);
                }
            }
            columns => contents.columns = columns.iter().collect(),
        }
        with(&contents)
    }

    pub fn save(&self, path: &Path) -> Outcome<()> {
        Ok(self.with_contents(|contents| save(path, contents))?)
    }

    /// Returns the table as the bytes of a file.
    pub fn bytes(&self) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        self.with_contents(|contents| contents.write(&mut bytes))?;
        Ok(bytes)
    }
}

fn of_route<K: Key>(route: Route<K>) -> (IpPrefix, NextHop)
where
    IpPrefix: From<Prefix<K>>,
{
    (route.prefix.into(), route.next_hop)
}

fn exact<K: Key>(routes: &dyn Routes<K>, prefix: Prefix<K>) -> Option<NextHop> {
    let mut found = None;
    // Routes inside a prefix come in order, and so the prefix itself first.
    let _ = routes.visit(prefix, &mut |route| {
        found = (route.prefix == prefix).then_some(route.next_hop);
        ControlFlow::Break(())
    });
    found
}

fn longest<K: Key>(routes: &dyn Routes<K>, prefix: Prefix<K>) -> Option<(Prefix<K>, NextHop)> {
    let own = exact(routes, prefix).map(|next_hop| (prefix, next_hop));
    own.or_else(|| routes.parent(prefix).map(|route| (route.prefix, route.next_hop)))
}

/// A key of a family of tables.
pub trait TableKey: Key {
    fn routes(loaded: &Loaded) -> Outcome<&dyn Routes<Self>>;
    fn after(loaded: &Loaded, after: Option<Prefix<Self>>, count: usize) -> Outcome<Vec<Route<Self>>>;
}

macro_rules! table_key {
    ($key:ty, $field:ident) => {
        impl TableKey for $key {
            fn routes(loaded: &Loaded) -> Outcome<&dyn Routes<Self>> {
                match &loaded.source {
                    Source::Built(built) => Ok(&built.ribs.$field),
                    Source::File(file) => stored(&file.$field),
                }
            }

            fn after(
                loaded: &Loaded,
                after: Option<Prefix<Self>>,
                count: usize,
            ) -> Outcome<Vec<Route<Self>>> {
                Ok(match &loaded.source {
                    Source::Built(built) => match after {
                        Some(prefix) => built.ribs.$field.iter_after(prefix).take(count).collect(),
                        None => built.ribs.$field.iter().take(count).collect(),
                    },
                    Source::File(file) => {
                        let _ = stored(&file.$field)?;
                        let Some(routes) = &file.$field.routes else { return Ok(Vec::new()) };
                        // The number of the first route after the prefix, by halves.
                        let (mut low, mut high) = (0, routes.len());
                        while after.is_some() && low < high {
                            let middle = low + (high - low) / 2;
                            match routes.get(middle) {
                                Some(route) if Some(route.prefix) <= after => low = middle + 1,
                                _ => high = middle,
                            }
                        }
                        (low..routes.len()).take(count).filter_map(|at| routes.get(at)).collect()
                    }
                })
            }
        }
    };
}
table_key!(u32, v4);
table_key!(u128, v6);

/// Returns the routes of a part of a file.
fn stored<K: Key>(part: &Part<K>) -> Outcome<&dyn Routes<K>> {
    match &part.routes {
        Some(routes) => Ok(routes),
        None if part.is_empty() => Ok(&NoRoutes),
        None => Err(Failure(value_error(
            "the file has an engine and no routes: compile it with them (fibula compile --routes)",
        ))),
    }
}

/// No routes.
struct NoRoutes;

impl<K: Key> Routes<K> for NoRoutes {
    fn len(&self) -> usize {
        0
    }

    fn visit(&self, _: Prefix<K>, _: &mut dyn FnMut(Route<K>) -> ControlFlow<()>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn parent(&self, _: Prefix<K>) -> Option<Route<K>> {
        None
    }
}

/// An engine and its name.
type Named<K> = (Option<&'static str>, Box<dyn Fib<K>>);

/// Builds the engine that was named, if it is of this family; the fastest for these routes that files can hold and map otherwise.
fn compiled<K: Key>(name: Option<&str>, rib: &Rib<K>) -> Outcome<Named<K>> {
    let limits = Limits::default();
    if let Some(engine) = name.and_then(|name| registry::find::<K>(name).ok()) {
        return Ok((Some(engine.name), engine.build(rib, limits)?));
    }
    let mut refused: Option<BuildError> = None;
    let ranked =
        auto::rank::<K>(&Workload::default().with_table(rib)).into_iter().map(|choice| choice.engine);
    let others = fibula::fib::engines::<K>();
    for engine in ranked.chain(others).filter(|engine| engine.is_saved() && engine.is_mapped()) {
        match engine.build(rib, limits) {
            Ok(fib) => return Ok((Some(engine.name), fib)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(|| Failure(value_error("no engine can hold this table")), Failure::from))
}

/// A column of values of a table.
pub struct Values<'a> {
    loaded: &'a Loaded,
    at: usize,
}

impl Values<'_> {
    pub fn column(&self) -> &StoredColumn {
        &self.loaded.columns()[self.at]
    }

    /// Whether values are of different lengths, which a dictionary holds once.
    pub fn are_long(&self) -> bool {
        matches!(self.column().kind().name(), "text" | "bytes")
    }

    /// Returns the value of an id.
    pub fn object<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyAny>> {
        match NextHop::new(id).and_then(|id| self.column().value(id)) {
            Some(value) => value_object(py, &value),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Returns the values of all ids from 0 on, which has none.
    pub fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let column = self.column();
        let made = self.loaded.made[self.at].objects.get_or_try_init(py, || -> PyResult<_> {
            let list = PyList::new(py, [py.None()])?;
            for (id, value) in column.iter() {
                // Ids of files of version 1 may have gaps, which have no value.
                while list.len() < id.id() as usize {
                    if list.len() > (column.len() + 1024) * 16 {
                        return Err(value_error("the ids of the table have wide gaps: save it again"));
                    }
                    list.append(py.None())?;
                }
                list.append(value_object(py, &value)?)?;
            }
            list.append(py.None())?;
            Ok(list.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    /// Returns the values as arrays of NumPy.
    pub fn prepared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.loaded.made[self.at].prepared.get_or_try_init(py, || -> PyResult<_> {
            let arguments = (self.column().kind().name(), self.objects(py)?);
            Ok(py.import("fibula._numpy")?.call_method1("prepare", arguments)?.unbind())
        })?;
        Ok(made.bind(py).clone())
    }

    /// Returns the values as a dictionary of Arrow.
    pub fn entries(&self) -> Result<SharedArray, ColumnError> {
        let made = &self.loaded.made[self.at].entries;
        if let Some(entries) = made.get() {
            return Ok(entries.clone());
        }
        let entries = ValueColumn::from(self.column()).entries()?;
        Ok(made.get_or_init(|| entries).clone())
    }
}
