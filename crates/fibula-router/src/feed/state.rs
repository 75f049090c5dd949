//! What operators see of a feed.

use std::collections::BTreeSet;

/// How a feed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing has connected yet.
    #[default]
    Waiting,
    /// Routes are being told from the beginning.
    Synchronising,
    /// All routes are known, and changes are followed.
    Established,
    /// The other side has gone; its routes are kept for a while.
    Kept,
    /// The other side has gone, and so have its routes.
    Down,
}

/// Something that feeds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Messages read.
    Messages,
    /// Routes added or replaced.
    Inserted,
    /// Routes removed on the feed's word.
    Removed,
    /// Routes removed after a reconnection or a new synchronisation, because the feed did not tell them again.
    Swept,
    /// Routes removed because the feed did not come back in time.
    Expired,
    /// Routes and next-hop objects refused at a limit.
    Refused,
    /// Messages of a kind that does not matter here.
    Skipped,
    /// Routes of tables that no VRF is mapped to.
    OtherTable,
    /// Routes with an encapsulation or a type that cannot be forwarded by.
    Unsupported,
    /// Messages that are damaged.
    Malformed,
    /// Connections made.
    Sessions,
    /// Connections closed because of what they sent, or refused as too many.
    Closed,
    /// Times that everything was read again.
    Resynchronised,
    /// Times that the kernel lost messages.
    Lost,
    /// Routes of which the daemon was told that they are in the tables.
    Acknowledged,
    /// Routes of which it was told that they are not, as they were refused.
    NotInstalled,
    /// Routes of which it was not told, for want of room or because its session ended first.
    Unacknowledged,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Messages,
        Self::Inserted,
        Self::Removed,
        Self::Swept,
        Self::Expired,
        Self::Refused,
        Self::Skipped,
        Self::OtherTable,
        Self::Unsupported,
        Self::Malformed,
        Self::Sessions,
        Self::Closed,
        Self::Resynchronised,
        Self::Lost,
        Self::Acknowledged,
        Self::NotInstalled,
        Self::Unacknowledged,
    ];

    /// Returns the name that operators see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Inserted => "inserted",
            Self::Removed => "removed",
            Self::Swept => "swept",
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::OtherTable => "other-table",
            Self::Unsupported => "unsupported",
            Self::Malformed => "malformed",
            Self::Sessions => "sessions",
            Self::Closed => "closed",
            Self::Resynchronised => "resynchronised",
            Self::Lost => "lost",
            Self::Acknowledged => "acknowledged",
            Self::NotInstalled => "not-installed",
            Self::Unacknowledged => "unacknowledged",
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// State, counters and the last error of a feed.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// How it is.
    pub phase: Phase,
    /// When it became so.
    pub since_ns: u64,
    /// Whether routes were refused at a limit since the last synchronisation.
    pub is_overrun: bool,
    /// Whether that was at the feed's own limit.
    pub is_full: bool,
    /// The VRFs at whose limits that was.
    pub full_vrfs: BTreeSet<u16>,
    /// Whether the feed knows of something that is to be read again, or is reading it.
    pub is_in_doubt: bool,
    /// A comparison has found that it differs from what it follows: it is to read everything again.
    pub is_suspected: bool,
    /// Peers that are up, where the feed says which are.
    pub peers: Option<usize>,
    /// Routes of all peers, of which the best are the feed's.
    pub peer_routes: Option<usize>,
    /// The kernel's rules for tables that the router does not heed, as `ip rule` shows them.
    pub rules: Vec<String>,
    /// The last thing that went wrong, and when.
    pub last_error: Option<(u64, String)>,
    counts: [u64; Count::ALL.len()],
    /// Changes a second, in the last second that is over.
    rate: u64,
    rate_from: (u64, u64),
}

impl State {
    /// Counts.
    pub fn count(&mut self, what: Count, by: u64) {
        self.counts[what as usize] += by;
    }

    /// Returns a count.
    #[must_use]
    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// Notes that something was refused, for want of room in a VRF or in the feed.
    pub fn refuse(&mut self, vrf: Option<u16>) {
        self.count(Count::Refused, 1);
        self.is_overrun = true;
        self.is_full |= vrf.is_none();
        self.full_vrfs.extend(vrf);
    }

    /// Everything is told again: what was refused before does not count any more.
    pub fn forget_overrun(&mut self) {
        (self.is_overrun, self.is_full) = (false, false);
        self.full_vrfs.clear();
    }

    /// Enters a phase.
    pub fn enter(&mut self, phase: Phase, now_ns: u64) {
        if self.phase != phase {
            self.phase = phase;
            self.since_ns = now_ns;
        }
    }

    /// Notes something that went wrong.
    pub fn error(&mut self, what: impl Into<String>, now_ns: u64) {
        self.last_error = Some((now_ns, what.into()));
    }

    /// Lets time pass: to be called about every second.
    pub fn tick(&mut self, now_ns: u64) {
        let changes = self.counted(Count::Inserted) + self.counted(Count::Removed);
        let passed = now_ns.saturating_sub(self.rate_from.0);
        if passed >= SECOND_NS {
            let more = u128::from(changes.saturating_sub(self.rate_from.1));
            self.rate = (more * u128::from(SECOND_NS) / u128::from(passed)) as u64;
            self.rate_from = (now_ns, changes);
        }
    }

    /// Returns the changes a second at the last [`tick`](Self::tick).
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }
}
