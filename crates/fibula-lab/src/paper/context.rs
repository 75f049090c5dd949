//! The tables of a run.

use std::collections::BTreeSet;
use std::rc::Rc;

use fibula::memory::Limits;
use fibula::net::Key;
use fibula::rib::Rib;
use fibula_workload::table;

use super::definition::PaperTable;
use super::packets::Routers;
use super::record::TableUsed;
use super::run::Settings;
use crate::bench::device::Coprocessor;

/// The things that a run gets from its caller: real tables, recorded addresses, a router.
pub trait Supply {
    /// Returns the IPv4 routes of the table of this name; `None` if there is no such table.
    ///
    /// # Errors
    /// When it cannot be read.
    fn ipv4(&self, name: &str) -> Result<Option<Rib<u32>>, String>;

    /// Returns the IPv6 routes of the table of this name; `None` if there is no such table.
    ///
    /// # Errors
    /// When it cannot be read.
    fn ipv6(&self, name: &str) -> Result<Option<Rib<u128>>, String>;

    /// Returns the recorded addresses of this name, in their order; `None` if there are none.
    ///
    /// # Errors
    /// When they cannot be read.
    fn addresses(&self, _name: &str) -> Result<Option<RecordedAddresses>, String> {
        Ok(None)
    }

    /// Returns the maker of routers; `None` if there is none.
    fn routers(&self) -> Option<&dyn Routers> {
        None
    }

    /// Returns a coprocessor; `None` if there is none.
    fn coprocessor(&self) -> Option<&dyn Coprocessor<u32>> {
        None
    }
}

/// Recorded addresses of both families.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedAddresses {
    /// IPv4 addresses.
    pub v4: Vec<u32>,
    /// IPv6 addresses.
    pub v6: Vec<u128>,
}

/// Nothing: generated tables stand in for all real ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Supply for Nothing {
    fn ipv4(&self, _: &str) -> Result<Option<Rib<u32>>, String> {
        Ok(None)
    }

    fn ipv6(&self, _: &str) -> Result<Option<Rib<u128>>, String> {
        Ok(None)
    }
}

/// A table with the name that points have.
pub(super) struct Named<K> {
    pub(super) name: String,
    pub(super) rib: Rc<Rib<K>>,
}

impl<K> Clone for Named<K> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), rib: Rc::clone(&self.rib) }
    }
}

/// The surroundings of a measurement: the settings and the tables.
pub struct Context<'a> {
    /// How much is measured.
    pub settings: &'a Settings,
    supply: &'a dyn Supply,
    /// The last table of each family, which the next part often takes too.
    v4: Option<(PaperTable, Named<u32>)>,
    v6: Option<(PaperTable, Named<u128>)>,
    used: Vec<TableUsed>,
}

impl<'a> Context<'a> {
    pub(super) fn new(settings: &'a Settings, supply: &'a dyn Supply) -> Self {
        Self { settings, supply, v4: None, v6: None, used: Vec::new() }
    }

    /// Returns an IPv4 table and its name.
    ///
    /// # Errors
    /// When it cannot be read or generated.
    pub fn ipv4(&mut self, table: &PaperTable) -> Result<(String, Rc<Rib<u32>>), String> {
        let named = u32::table(self, table)?;
        Ok((named.name, named.rib))
    }

    /// Returns an IPv6 table and its name.
    ///
    /// # Errors
    /// When it cannot be read or generated.
    pub fn ipv6(&mut self, table: &PaperTable) -> Result<(String, Rc<Rib<u128>>), String> {
        let named = u128::table(self, table)?;
        Ok((named.name, named.rib))
    }

    /// Returns the maker of routers, if the caller has one.
    pub(super) fn routers(&self) -> Option<&'a dyn Routers> {
        self.supply.routers()
    }

    /// Returns the coprocessor, if the caller has one.
    pub(super) fn coprocessor(&self) -> Option<&'a dyn Coprocessor<u32>> {
        self.supply.coprocessor()
    }

    /// Returns the recorded addresses of this name, `None` if there are none of this family. A quick run has none.
    pub(super) fn recorded<K: PaperKey>(&self, name: &str) -> Result<Option<Vec<K>>, String> {
        if self.settings.quick {
            return Ok(None);
        }
        let recorded = self.supply.addresses(name)?.map(K::recorded);
        Ok(recorded.filter(|addresses| !addresses.is_empty()))
    }

    /// Takes the descriptions of the tables that were used since.
    pub(super) fn take_used(&mut self) -> Vec<TableUsed> {
        core::mem::take(&mut self.used)
    }

    /// Loads the real table, if it takes part, or generates the other.
    fn get<K: PaperKey>(&mut self, table: &PaperTable) -> Result<Named<K>, String> {
        let real = match &table.real {
            Some(name) if !self.settings.quick => K::load(self.supply, name)?.map(|rib| (name, rib)),
            _ => None,
        };
        let generated = real.is_none();
        let (name, rib) = match real {
            Some((name, rib)) => (name.clone(), rib),
            None => (table.made.clone(), generate(&table.made, self.settings.routes)?),
        };
        if rib.is_empty() {
            return Err(format!("table '{name}' has no {} routes", K::FAMILY));
        }
        let next_hops = rib.iter().map(|route| route.next_hop).collect::<BTreeSet<_>>().len();
        let used = TableUsed {
            name: name.clone(),
            family: K::FAMILY.name().to_owned(),
            generated,
            routes: rib.len(),
            next_hops,
        };
        self.used.push(used);
        Ok(Named { name, rib: Rc::new(rib) })
    }
}

/// Generates the table of this name, of at most so many routes.
fn generate<K: Key>(name: &str, most: usize) -> Result<Rib<K>, String> {
    let made = table::made::<K>(name, |routes| routes.min(most));
    let routes = made.ok_or_else(|| format!("no table '{name}' to generate"))?;
    let routes = routes.map_err(|error| format!("{name}: {error}"))?;
    let mut rib = Rib::new(Limits::default());
    for route in routes {
        rib.insert(route).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(rib)
}

/// The families that papers measure.
pub(super) trait PaperKey: Key {
    /// Returns a table, from the cache if it is the last one.
    fn table(context: &mut Context<'_>, table: &PaperTable) -> Result<Named<Self>, String>;

    fn load(supply: &dyn Supply, name: &str) -> Result<Option<Rib<Self>>, String>;

    /// The addresses of this family.
    fn recorded(recorded: RecordedAddresses) -> Vec<Self>;
}

impl PaperKey for u32 {
    fn table(context: &mut Context<'_>, table: &PaperTable) -> Result<Named<Self>, String> {
        if let Some((_, named)) = context.v4.as_ref().filter(|(last, _)| last == table) {
            return Ok(named.clone());
        }
        // The one before is freed first.
        context.v4 = None;
        let named = context.get(table)?;
        context.v4 = Some((table.clone(), named.clone()));
        Ok(named)
    }

    fn load(supply: &dyn Supply, name: &str) -> Result<Option<Rib<Self>>, String> {
        supply.ipv4(name)
    }

    fn recorded(recorded: RecordedAddresses) -> Vec<Self> {
        recorded.v4
    }
}

impl PaperKey for u128 {
    fn table(context: &mut Context<'_>, table: &PaperTable) -> Result<Named<Self>, String> {
        if let Some((_, named)) = context.v6.as_ref().filter(|(last, _)| last == table) {
            return Ok(named.clone());
        }
        context.v6 = None;
        let named = context.get(table)?;
        context.v6 = Some((table.clone(), named.clone()));
        Ok(named)
    }

    fn load(supply: &dyn Supply, name: &str) -> Result<Option<Rib<Self>>, String> {
        supply.ipv6(name)
    }

    fn recorded(recorded: RecordedAddresses) -> Vec<Self> {
        recorded.v6
    }
}
