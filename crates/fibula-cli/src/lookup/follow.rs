//! A compiled table that may be replaced while lines arrive.

use std::sync::{Arc, Mutex, PoisonError};

use fibula::file::{Follower, TableFile};
use fibula_feed::Value;

use super::{From, Request, Round, by_file, compiled, input, shown};
use crate::failure::Failure;
use crate::load;
use crate::messages::Messages;

/// A file that is looked at when lines have arrived.
pub(super) struct Followed<'a> {
    requested: &'a [Value],
    state: Mutex<State>,
    messages: Messages,
}

struct State {
    follower: Follower,
    /// The table that answers.
    table: Arc<TableFile>,
    /// The fault that was reported last, so that it is reported once.
    fault: Option<String>,
}

impl<'a> Followed<'a> {
    pub(super) fn open(request: &Request<'a>, messages: Messages) -> Result<Self, Failure> {
        let From::File(lines) = request.from else {
            return Err(Failure::WrongUse(
                "--follow is for lines that arrive, not for addresses as arguments".to_owned(),
            ));
        };
        if input::is_parquet(lines) {
            return Err(Failure::WrongUse(
                "--follow is for lines that arrive, and Parquet is read as a whole".to_owned(),
            ));
        }
        let source = request.source;
        if compiled(request)?.is_none() {
            return Err(Failure::WrongUse(
                "--follow needs one compiled table, without a filter or a family, which has every column that --value \
                 names: fibula compile makes it"
                    .to_owned(),
            ));
        }
        let limits = load::limits(source.feed.memory_limit);
        let follower = Follower::open_within(&source.table[0], limits)
            .map_err(|error| Failure::BadInput(error.to_string()))?;
        let table = Arc::clone(follower.table());
        let state = Mutex::new(State { follower, table, fault: None });
        Ok(Self { requested: &source.feed.value, state, messages })
    }

    /// Answers by one table after the other.
    pub(super) fn rounds(&self, request: &Request<'_>, round: Round<'_>) -> Result<(), Failure> {
        loop {
            let table = Arc::clone(&self.state.lock().unwrap_or_else(PoisonError::into_inner).table);
            if !by_file(request, &table, &|| self.is_replaced(), round)? {
                return Ok(());
            }
        }
    }

    /// Returns whether there is another table now. One that cannot answer alike is reported, and does not count.
    fn is_replaced(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { follower, table, fault } = &mut *state;
        let new_fault = match follower.poll() {
            Ok(false) => return false,
            Ok(true) if self.columns(follower.table()) == self.columns(table) => {
                *table = Arc::clone(follower.table());
                *fault = None;
                return true;
            }
            Ok(true) => "the table that replaced the file has other columns".to_owned(),
            Err(error) => error.to_string(),
        };
        if fault.as_ref() != Some(&new_fault) {
            self.messages.warning(format_args!("{new_fault}; the table before it serves"));
            *fault = Some(new_fault);
        }
        false
    }

    /// Returns the columns that answers have.
    fn columns(&self, table: &TableFile) -> (bool, Vec<Value>) {
        let (columns, _) = shown(table, self.requested);
        (columns.in_place, columns.values)
    }
}
