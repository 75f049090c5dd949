//! Why a configuration cannot be applied, or a question has no answer.

use core::fmt;
use std::io;
use std::net::IpAddr;

use fibula::live::TableError;
use fibula::net::PrefixError;
use fibula::rib::RibError;
use fibula_feed::LoadError;

use crate::config::ConfigError;

/// Why the router cannot apply a configuration or answer a question.
#[derive(Debug)]
#[non_exhaustive]
pub enum ControlError {
    /// The configuration cannot be read again.
    Unread(Box<dyn core::error::Error + Send + Sync>),
    /// These settings differ from those that the router started with, and cannot change while it runs.
    Restart(&'static str),
    /// These interfaces cannot be added or removed while the router runs: each, and why.
    Interfaces(Vec<String>),
    /// A file of routes cannot be loaded.
    File {
        /// Line of the configuration that names the file.
        line: usize,
        /// The file.
        name: String,
        /// Why.
        error: LoadError,
    },
    /// Rules cannot be compiled, or a prefix list cannot be read.
    Rules(ConfigError),
    /// A port cannot be opened: which, and why.
    Port(String),
    /// A route does not fit into the list of the router's own routes.
    Rib(RibError),
    /// A table refused a change or a lookup.
    Table(TableError),
    /// The table of a VRF refused routes.
    Install {
        /// Name of the VRF.
        vrf: String,
        /// Why.
        error: TableError,
    },
    /// The filter in the kernel refused the machine's addresses.
    Filter(io::Error),
    /// No interface has this name.
    NoInterface(String),
    /// No interface of a VRF has a network that contains a gateway.
    NoNetwork {
        /// Name of the VRF.
        vrf: String,
        /// The gateway.
        gateway: IpAddr,
    },
    /// A next hop has neither a gateway nor an interface.
    NoTarget,
    /// A file's next hop has no label.
    NoLabel,
    /// A file's next hop has this label, which is not an address, and the configuration does not say where its routes lead.
    Label(String),
    /// No VRF has this name.
    NoVrf(String),
    /// No feed has this name.
    NoFeed(String),
    /// This text is not an IP address.
    Address(String),
    /// This text is not a prefix.
    Prefix(String, PrefixError),
    /// A question has a wrong word: which, and why.
    Question(String),
    /// A question lacks words: its form.
    Form(&'static str),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(error) => error.fmt(f),
            Self::Interfaces(refused) => write!(f, "{}: restart needed", refused.join("; ")),
            Self::Restart(what) => write!(f, "{what} differ: restart needed"),
            Self::File { line, name, error } => write!(f, "line {line}: {name}: {error}"),
            Self::Rules(error) => error.fmt(f),
            Self::Port(reason) => f.write_str(reason),
            Self::Rib(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::Install { vrf, error } => write!(f, "VRF '{vrf}': {error}"),
            Self::Filter(error) => write!(f, "filter: {error}"),
            Self::NoInterface(name) => write!(f, "no interface '{name}'"),
            Self::NoNetwork { vrf, gateway } => {
                write!(f, "no interface of VRF '{vrf}' has the network of {gateway}")
            }
            Self::NoTarget => f.write_str("neither a gateway nor an interface"),
            Self::NoLabel => f.write_str("a next hop without a label"),
            Self::Label(label) => write!(
                f,
                "next hop '{label}' is not an address: say where its routes go with 'via' or 'interface'"
            ),
            Self::NoVrf(name) => write!(f, "no VRF '{name}'"),
            Self::NoFeed(name) => write!(f, "no feed '{name}': 'fibula router feeds' lists them"),
            Self::Address(text) => write!(f, "'{text}' is not an IP address"),
            Self::Prefix(text, error) => write!(f, "'{text}': {}", error.reason()),
            Self::Question(reason) => f.write_str(reason),
            Self::Form(form) => f.write_str(form),
        }
    }
}

impl core::error::Error for ControlError {}

impl From<RibError> for ControlError {
    fn from(error: RibError) -> Self {
        Self::Rib(error)
    }
}

impl From<TableError> for ControlError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_is_wrong() {
        let prefix = fibula::net::IpPrefix::parse(b"10.0.0.1/8", fibula::net::HostBits::Refuse).unwrap_err();
        let reason = prefix.reason().to_string();
        let cases = [
            (ControlError::Unread("line 3: no".into()), "line 3: no"),
            (ControlError::Restart("engines"), "engines differ: restart needed"),
            (ControlError::NoInterface("lan".into()), "no interface 'lan'"),
            (
                ControlError::NoNetwork { vrf: "red".into(), gateway: [10, 0, 0, 1].into() },
                "no interface of VRF 'red' has the network of 10.0.0.1",
            ),
            (
                ControlError::Label("AS 1".into()),
                "next hop 'AS 1' is not an address: say where its routes go with 'via' or 'interface'",
            ),
            (ControlError::NoVrf("red".into()), "no VRF 'red'"),
            (ControlError::NoFeed("a".into()), "no feed 'a': 'fibula router feeds' lists them"),
            (ControlError::Address("x".into()), "'x' is not an IP address"),
            (ControlError::Prefix("10.0.0.1/8".into(), prefix), &format!("'10.0.0.1/8': {reason}")),
            (ControlError::Filter(io::ErrorKind::NotFound.into()), "filter: entity not found"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
