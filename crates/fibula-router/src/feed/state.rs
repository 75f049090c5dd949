//! State and counters of a feed, for operators.

use std::collections::BTreeSet;

/// The phase of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing has connected yet.
    #[default]
    Waiting,
    /// All routes are being sent from the beginning.
    Synchronising,
    /// All routes are known, and changes are followed.
    Established,
    /// The peer has gone. Its routes are kept for a while.
    Kept,
    /// The peer has gone, and its routes were removed.
    Down,
}

/// A counter of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Messages read.
    Messages,
    /// Routes added or replaced.
    Inserted,
    /// Routes removed by messages of the feed.
    Removed,
    /// Routes removed after a reconnection or a new synchronisation, because the feed did not send them again.
    Swept,
    /// Routes removed because the feed did not come back in time.
    Expired,
    /// Routes and next-hop objects refused at a limit.
    Refused,
    /// Messages of a kind that is ignored.
    Skipped,
    /// Routes of tables to which no VRF is mapped.
    OtherTable,
    /// Routes with an encapsulation or a type that is not supported.
    Unsupported,
    /// Damaged messages.
    Malformed,
    /// Routes and groups with more ways than a route may have, which were cut.
    Cut,
    /// Groups inside groups, which were refused.
    Nested,
    /// Connections accepted.
    Sessions,
    /// Connections closed because of what they sent, or refused as too many.
    Closed,
    /// Times that everything was read again.
    Resynchronised,
    /// Times that the kernel lost messages.
    Lost,
    /// Routes acknowledged to the daemon as installed.
    Acknowledged,
    /// Routes reported to the daemon as refused.
    NotInstalled,
    /// Routes without an answer to the daemon, because there was no room or its session ended first.
    Unacknowledged,
}

impl Count {
    /// All counters.
    pub const ALL: [Self; 19] = [
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
        Self::Cut,
        Self::Nested,
        Self::Sessions,
        Self::Closed,
        Self::Resynchronised,
        Self::Lost,
        Self::Acknowledged,
        Self::NotInstalled,
        Self::Unacknowledged,
    ];

    /// Returns the name for operators.
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
            Self::Cut => "cut",
            Self::Nested => "nested-groups",
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

/// The limit that refuses a route or a next-hop object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The limit of the feed.
    Feed,
    /// The limit of the VRF, for the routes of all feeds together.
    Vrf,
    /// The limit of the memory of all paths and next-hop objects.
    Memory,
}

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Feed => "more routes than its limit: raise 'routes'",
            Self::Memory => {
                "more memory of paths and next-hop objects than the limit: raise 'feeds.path_bytes'"
            }
            Self::Vrf => "more routes than the limit of a VRF: raise 'routes' of its [[vrf]]",
        })
    }
}

/// A program of this machine that may not connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// Its account is not among those that may.
    Account(u32),
    /// The kernel does not say whose it is.
    Unknown,
}

impl core::fmt::Display for Stranger {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Account(number) => write!(f, "uid {number} of this machine is not in 'allow_uid'"),
            Self::Unknown => f.write_str("the kernel does not say which account of this machine it is of"),
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// State, counters and the last error of a feed.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The phase.
    pub phase: Phase,
    /// Time at which the phase began.
    pub since_ns: u64,
    /// Whether the first full table is in: the feed was established once, or its first session has been silent for a while.
    pub has_table: bool,
    /// Whether routes were refused at a limit since the last synchronisation.
    pub is_overrun: bool,
    /// Whether routes were refused at the feed's own limit.
    pub is_full: bool,
    /// Whether routes were refused at the limit on the memory of paths and next-hop objects.
    pub lacks_memory: bool,
    /// The VRFs at whose limits routes were refused.
    pub full_vrfs: BTreeSet<u16>,
    /// Whether the feed is reading routes again, or will.
    pub is_in_doubt: bool,
    /// A comparison has found a difference from the kernel's tables, so the feed must read everything again.
    pub is_suspected: bool,
    /// Number of peers that are up, if the feed reports peers.
    pub peers: Option<usize>,
    /// Number of routes of all peers. The best of them are the feed's.
    pub peer_routes: Option<usize>,
    /// The kernel's rules for tables that the router does not heed, as `ip rule` shows them.
    pub rules: Vec<String>,
    /// Programs of this machine that may not connect and tried to: the first of each kind.
    pub strangers: Vec<Stranger>,
    /// The last error, and when it occurred.
    pub last_error: Option<(u64, String)>,
    counts: [u64; Count::ALL.len()],
    /// Changes in the last complete second.
    rate: u64,
    rate_from: (u64, u64),
}

impl State {
    /// Adds to a counter.
    pub fn count(&mut self, what: Count, by: u64) {
        self.counts[what as usize] += by;
    }

    /// Returns the value of a counter.
    #[must_use]
    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    /// Notes that a limit of a VRF or of the feed has refused a route or an object.
    pub fn refuse(&mut self, full: Full, vrf: u16) {
        self.count(Count::Refused, 1);
        self.is_overrun = true;
        self.is_full |= full == Full::Feed;
        self.lacks_memory |= full == Full::Memory;
        self.full_vrfs.extend((full == Full::Vrf).then_some(vrf));
    }

    /// Forgets earlier refusals, because everything is sent again.
    pub fn forget_overrun(&mut self) {
        (self.is_overrun, self.is_full, self.lacks_memory) = (false, false, false);
        self.full_vrfs.clear();
    }

    /// Enters a phase.
    pub fn enter(&mut self, phase: Phase, now_ns: u64) {
        if self.phase != phase {
            self.phase = phase;
            self.since_ns = now_ns;
            self.has_table |= phase == Phase::Established;
        }
    }

    /// Notes that a program of this machine tried to connect that may not.
    pub fn meet(&mut self, stranger: Stranger) {
        let same = |known: &Stranger| core::mem::discriminant(known) == core::mem::discriminant(&stranger);
        if !self.strangers.iter().any(same) {
            self.strangers.push(stranger);
        }
    }

    /// Records an error.
    pub fn error(&mut self, what: impl Into<String>, now_ns: u64) {
        self.last_error = Some((now_ns, what.into()));
    }

    /// Updates the rate. Call it about every second.
    pub fn tick(&mut self, now_ns: u64) {
        let changes = self.counted(Count::Inserted) + self.counted(Count::Removed);
        let passed = now_ns.saturating_sub(self.rate_from.0);
        if passed >= SECOND_NS {
            let more = u128::from(changes.saturating_sub(self.rate_from.1));
            self.rate = (more * u128::from(SECOND_NS) / u128::from(passed)) as u64;
            self.rate_from = (now_ns, changes);
        }
    }

    /// Returns the changes per second, as of the last [`tick`](Self::tick).
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }
}
