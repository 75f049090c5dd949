//! The states of routes by origin validation (RFC 6811), as the value `rpki`.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use fibula::memory::Limits;
use fibula::net::{IpPrefix, Key, NextHop, Prefix, Route};
use fibula::rib::{DualRib, Rib};
use fibula_feed::compression::Decompressor;
use fibula_feed::rpki::{self, Export, ExportError};
use fibula_feed::{Label, LoadedRoutes, NextHops, Value};

use crate::failure::Failure;
use crate::messages::{self, Messages};
use crate::options::{FeedArgs, STDIN};
use crate::text::{plural, thousands};
pub(crate) use fibula_feed::rpki::{State, Validator};

/// The name of the value.
const NAME: &str = "rpki";

/// Routes that are validated together.
const BATCH: usize = 1024;

fn is_state(value: &Value) -> bool {
    matches!(value, Value::Column(name) if &**name == NAME)
}

/// Makes labels with states of labels with origins.
pub(crate) struct States {
    validator: Validator,
    wanted: Vec<Value>,
    /// The values that are loaded for that: the others that are wanted, the origin and the AS path, because a path that ends with
    /// a set has no origin.
    loaded: Vec<Value>,
}

impl States {
    /// Returns `None` if these values have no state among them.
    ///
    /// # Errors
    /// If they have, and no payloads are named, or if these cannot be read.
    pub(crate) fn new(
        wanted: &[Value],
        feed: &FeedArgs,
        messages: Messages,
    ) -> Result<Option<Self>, Failure> {
        if !wanted.iter().any(is_state) {
            return Ok(None);
        }
        if feed.vrps.is_empty() {
            return Err(Failure::WrongUse(
                "--value rpki needs validated ROA payloads: name an export of routinator, rpki-client or RIPE with --vrps FILE"
                    .to_owned(),
            ));
        }
        let (validator, _) = validator(feed, messages)?;
        let mut loaded: Vec<Value> = wanted.iter().filter(|value| !is_state(value)).cloned().collect();
        loaded.extend([Value::OriginAs, Value::AsPath]);
        Ok(Some(Self { validator, wanted: wanted.to_vec(), loaded }))
    }

    /// Returns the values that are loaded.
    pub(crate) fn loaded(&self) -> &[Value] {
        &self.loaded
    }

    /// Returns the label of a route, with the state, of one with the values that were loaded.
    pub(crate) fn label(&self, prefix: IpPrefix, label: &Label) -> Label {
        let (origins, mut states) = ([origin(label)], Vec::new());
        match prefix {
            IpPrefix::V4(prefix) => self.validator.validate_v4(&[prefix], &origins, &mut states),
            IpPrefix::V6(prefix) => self.validator.validate_v6(&[prefix], &origins, &mut states),
        }
        self.with(label, states[0])
    }

    fn with(&self, label: &Label, state: State) -> Label {
        let mut others = label.fields().iter();
        let mut fields: Vec<Label> = self
            .wanted
            .iter()
            .map(|value| match is_state(value) {
                true => Label::Text(state.name().into()),
                false => others.next().cloned().unwrap_or(Label::Absent),
            })
            .collect();
        match &mut fields[..] {
            [one] => std::mem::replace(one, Label::Absent),
            _ => Label::Fields(fields.into()),
        }
    }

    /// Replaces the labels of a table by those with states.
    pub(crate) fn relabel(&self, table: &mut LoadedRoutes, limits: Limits) -> Result<(), Failure> {
        let mut labels = NextHops::new(limits);
        let mut known: HashMap<(NextHop, State), NextHop> = HashMap::new();
        let (ribs, next_hops) = (std::mem::take(&mut table.ribs), &table.next_hops);
        let mut of = |next_hop: NextHop, state: State| -> Result<NextHop, Failure> {
            if let Some(&found) = known.get(&(next_hop, state)) {
                return Ok(found);
            }
            let label = next_hops.label(next_hop).unwrap_or(&Label::Absent);
            let number = labels
                .intern(self.with(label, state))
                .map_err(|error| Failure::BadInput(error.to_string()))?;
            known.insert((next_hop, state), number);
            Ok(number)
        };
        let DualRib { mut v4, mut v6 } = ribs;
        let validator = &self.validator;
        let validate =
            |prefixes: &_, origins: &_, states: &mut _| validator.validate_v4(prefixes, origins, states);
        relabelled(&mut v4, next_hops, &validate, &mut of)?;
        let validate =
            |prefixes: &_, origins: &_, states: &mut _| validator.validate_v6(prefixes, origins, states);
        relabelled(&mut v6, next_hops, &validate, &mut of)?;
        table.ribs.v4 = v4;
        table.ribs.v6 = v6;
        table.next_hops = labels;
        Ok(())
    }
}

/// Validates routes of one family: their prefixes and origins, and then their states.
pub(crate) type Validate<'a, K> = &'a dyn Fn(&[Prefix<K>], &[Option<u32>], &mut Vec<State>);

/// Gives each route the next hop that `of` makes of its own and of its state.
fn relabelled<K: Key>(
    rib: &mut Rib<K>,
    next_hops: &NextHops,
    validate: Validate<'_, K>,
    of: &mut dyn FnMut(NextHop, State) -> Result<NextHop, Failure>,
) -> Result<(), Failure> {
    let mut changed = Vec::with_capacity(rib.len());
    each_state(rib, next_hops, validate, &mut |route, state| {
        changed.push(Route::new(route.prefix, of(route.next_hop, state)?));
        Ok(())
    })?;
    for route in changed {
        rib.insert(route).map_err(|error| Failure::BadInput(error.to_string()))?;
    }
    Ok(())
}

/// Calls `each` with every route and its state. Labels end with the origin and the AS path.
pub(crate) fn each_state<K: Key>(
    rib: &Rib<K>,
    next_hops: &NextHops,
    validate: Validate<'_, K>,
    each: &mut dyn FnMut(Route<K>, State) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let origins: Vec<Option<u32>> = next_hops.iter().map(|(_, label)| origin(label)).collect();
    let (mut routes, mut prefixes, mut of, mut states) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut all = rib.iter();
    loop {
        routes.clear();
        routes.extend(all.by_ref().take(BATCH));
        if routes.is_empty() {
            return Ok(());
        }
        prefixes.clear();
        prefixes.extend(routes.iter().map(|route: &Route<K>| route.prefix));
        of.clear();
        of.extend(
            routes.iter().map(|route| origins.get(route.next_hop.id() as usize - 1).copied().flatten()),
        );
        validate(&prefixes, &of, &mut states);
        routes.iter().zip(&states).try_for_each(|(&route, &state)| each(route, state))?;
    }
}

/// Returns the origin of a route whose label ends with it and with the AS path: none where that ends with a set (RFC 6811,
/// section 2), or with a confederation.
pub(crate) fn origin(label: &Label) -> Option<u32> {
    let [.., origin, path] = label.fields() else { return None };
    match (origin, path) {
        (_, Label::Text(path)) if path.ends_with(['}', ')', ']']) => None,
        (Label::Number(number), _) => Some(*number),
        _ => None,
    }
}

/// Reads the payloads that are named, and returns them compiled, with the numbers of payloads and of entries that were left out.
pub(crate) fn validator(feed: &FeedArgs, messages: Messages) -> Result<(Validator, [u64; 2]), Failure> {
    let (mut payloads, mut left_out) = (Vec::new(), 0);
    for path in &feed.vrps {
        let read = read(path, feed.is_strict(), messages)?;
        payloads.extend(read.payloads);
        left_out += read.left_out;
    }
    let validator = Validator::new(&payloads);
    let validator =
        validator.map_err(|error| Failure::BadInput(format!("the payloads cannot be compiled: {error}")))?;
    Ok((validator, [payloads.len() as u64, left_out]))
}

/// Reads a file of payloads, plain or compressed, and warns of entries that are left out.
fn read(path: &Path, strict: bool, messages: Messages) -> Result<Export, Failure> {
    let is_stdin = path.as_os_str() == STDIN;
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |error: &std::io::Error| Failure::reading(&name, error);
    let input: Box<dyn Read> = if is_stdin {
        Box::new(std::io::stdin())
    } else {
        let file = std::fs::File::open(path).map_err(|error| Failure::opening(path, &error))?;
        Box::new(Decompressor::new(file).map_err(|error| failed(&error))?)
    };
    let left_out =
        |count: u64| format!("{} {} left out", thousands(count), plural(count, "entry was", "entries were"));
    let read = rpki::read(&name, input, strict).map_err(|error| match error {
        ExportError::Io(error) => failed(&error),
        ExportError::LeftOut { first, count } => Failure::BadInput(format!("{first}; {}", left_out(count))),
        other => Failure::BadInput(other.to_string()),
    })?;
    if let Some(first) = read.first_left_out.first() {
        read.first_left_out.iter().for_each(|bad| messages.warning(bad));
        messages::warning(format_args!("{name}: {}; the first: {first}", left_out(read.left_out)));
    }
    Ok(read)
}
