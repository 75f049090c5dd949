//! Which engine is the fastest for the addresses that a table is asked for, measured.

use std::sync::Arc;

use crate::auto::probe;
use crate::fib::Fib;
use crate::fib::registry::Engine;
use crate::simd;

use super::options::{Outcome, TableError};
use super::serving::Serving;
use super::table::{Table, TableKey};

/// How many times as fast another engine must be to take the place of the present one.
const GAIN: f64 = 1.3;

impl Table {
    /// Measures the engines that change in place on addresses that lookups ask for, and puts the fastest in the place of the present
    /// one if it is at least 1.3 times as fast. `batch` is the number of addresses in a call of a lookup. What the model of
    /// [`fib::build`](crate::fib::build) cannot know is how skewed traffic is: where most of it goes to few addresses, an engine of one
    /// load may be the fastest, whatever its bytes.
    ///
    /// It takes some tenths of a second of the calling thread for a full table, and memory for a copy of the routes and for one engine of
    /// each kind. Lookups and changes go on meanwhile, but while the new engine is put in. Give it some 100,000 addresses in the order
    /// in which they came, and call it as rarely as traffic changes. [`Outcome::rebuilt`] is 1 if there is another engine now. Without
    /// addresses nothing happens.
    ///
    /// # Errors
    /// As for [`set_engine`](Self::set_engine). Engines that refuse the routes, or for which there is no memory within the limits, are
    /// left out; if there is none for a second copy of the present one, it stays.
    pub fn fit<K: TableKey>(&self, addresses: &[K], batch: usize) -> Result<Outcome, TableError> {
        let (present, routes, limits) = {
            let writer = self.lock()?;
            (K::engine(&writer), K::rib(&writer).clone(), writer.limits())
        };
        let kept = Outcome { version: self.shared().domain.epoch(), ..Outcome::default() };
        let mut tried: Vec<(Engine<K>, Arc<dyn Fib<K>>)> = Vec::new();
        let others = crate::fib::engines::<K>();
        let others = others.into_iter().filter(|one| one.in_place.is_some() && *one != present);
        for engine in [present].into_iter().chain(others) {
            match Serving::build(&engine, &routes, limits) {
                Ok(Serving::InPlace(editor)) => tried.push((engine, editor.reading())),
                Ok(Serving::Rebuilt(fib)) => tried.push((engine, fib)),
                Err(_) => {}
            }
        }
        // Without the present engine there is nothing to compare with.
        let Some(now) = tried.iter().position(|(engine, _)| *engine == present) else { return Ok(kept) };
        let fibs: Vec<&dyn Fib<K>> = tried.iter().map(|(_, fib)| &**fib).collect();
        let rates = probe::probe(&fibs, simd::chosen(), addresses, batch.max(1));
        let Some(engine) = faster(&rates, now).map(|at| tried[at].0) else { return Ok(kept) };
        // Before the new engine is built, because it may need the memory.
        drop(tried);
        self.set_engine(engine)
    }
}

/// Returns the engine with the highest rate, if it is enough above that of the engine in use. Those without a rate are the slowest.
fn faster(rates: &[Option<f64>], now: usize) -> Option<usize> {
    let rate = |at: usize| rates[at].unwrap_or(0.0);
    let best = (0..rates.len()).max_by(|&a, &b| rate(a).total_cmp(&rate(b)))?;
    (best != now && rate(best) > rate(now) * GAIN).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::faster;
    use crate::engines::{BinaryTrie, Dir17Bitmap, EngineType, RangeBtree};
    use crate::live::{Options, Table};
    use crate::net::{NextHop, Prefix};
    use crate::rib::DualRib;

    fn hop(id: u32) -> NextHop {
        NextHop::new(id).unwrap()
    }

    fn table(options: Options) -> Table {
        let table = Table::from_routes(DualRib::default(), options).unwrap();
        for id in 1..=2_000_u32 {
            table.insert(Prefix::<u32>::masked(id << 16 | id << 4, 28).unwrap(), hop(id)).unwrap();
        }
        table
    }

    fn agrees(table: &Table) {
        for id in 1..=2_000_u32 {
            assert_eq!(table.lookup(id << 16 | id << 4).unwrap(), Some(hop(id)), "{id}");
        }
        table.check().unwrap();
    }

    #[test]
    fn an_engine_must_be_faster_by_the_gain() {
        assert_eq!(faster(&[Some(100.0), Some(131.0), Some(90.0)], 0), Some(1));
        assert_eq!(faster(&[Some(100.0), Some(129.0), Some(90.0)], 0), None);
        assert_eq!(faster(&[Some(100.0), Some(129.0)], 1), None);
        // One that is so slow that it was not measured to the end.
        assert_eq!(faster(&[None, Some(1.0)], 0), Some(1));
        // Without addresses nothing is measured.
        assert_eq!(faster(&[None, None], 0), None);
        assert_eq!(faster(&[], 0), None);
    }

    /// Whatever is the fastest here, answers and changes are as before.
    #[test]
    fn a_table_answers_as_before_whatever_it_is_fitted_to() {
        let table = table(Options { ipv4: BinaryTrie::engine(), ..Options::default() });
        let keys: Vec<u32> = (1..=2_000).map(|id| id << 16 | id << 4).collect();
        let outcome = table.fit(&keys, 256).unwrap();
        let now = table.engine::<u32>().unwrap();
        assert_eq!(outcome.rebuilt == 1, now != BinaryTrie::engine());
        agrees(&table);
        table.insert(Prefix::<u32>::masked(7 << 24, 8).unwrap(), hop(9)).unwrap();
        assert_eq!(table.lookup(7_u32 << 24 | 1 << 23).unwrap(), Some(hop(9)));
        table.remove(Prefix::<u32>::masked(7 << 24, 8).unwrap()).unwrap();
        agrees(&table);
    }

    #[test]
    fn without_addresses_the_engine_stays() {
        let table = table(Options::default());
        let outcome = table.fit::<u32>(&[], 256).unwrap();
        assert_eq!((outcome.rebuilt, table.engine::<u32>().unwrap()), (0, Dir17Bitmap::engine()));
        agrees(&table);
    }

    /// The new engine has the changes that waited.
    #[test]
    fn changes_that_wait_are_published_with_another_engine() {
        let coalesce = core::time::Duration::from_secs(3600);
        let table = table(Options { coalesce, ..Options::default() });
        let key = 2_000_u32 << 16 | 2_000 << 4;
        let outcome = table.set_engine(RangeBtree::engine()).unwrap();
        assert_eq!((outcome.rebuilt, outcome.waiting), (1, 0));
        assert_eq!(table.engine::<u32>().unwrap(), RangeBtree::engine());
        assert_eq!(table.lookup(key).unwrap(), Some(hop(2_000)));
        agrees(&table);
        let outcome = table.set_engine(Dir17Bitmap::engine()).unwrap();
        assert_eq!((outcome.rebuilt, outcome.waiting), (1, 0));
        agrees(&table);
    }
}
