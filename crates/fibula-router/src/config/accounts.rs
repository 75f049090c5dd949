//! The accounts of the machine whose programs may connect to a feed.

use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::read::Text;

/// Where names of accounts are looked up, by the parts that are for Linux.
#[cfg(target_os = "linux")]
pub(crate) const PASSWD: &str = "/etc/passwd";

/// The account of FRR's daemons.
const FRR: &str = "frr";

/// The accounts whose programs may connect from this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Accounts {
    /// root, and frr where it exists.
    #[default]
    Usual,
    /// All.
    Any,
    /// These.
    Only(Vec<Account>),
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// By its number.
    Number(u32),
    /// By its name, which is looked up when somebody connects.
    Name(String),
}

impl Accounts {
    /// Returns whether programs of an account may connect. `passwd` returns the text of the file of accounts.
    #[must_use]
    pub fn permit(&self, number: u32, passwd: impl FnOnce() -> String) -> bool {
        let named = |passwd: String, name: &str| number_of(&passwd, name) == Some(number);
        match self {
            Self::Any => true,
            Self::Usual => number == 0 || named(passwd(), FRR),
            Self::Only(accounts) => {
                let is = |account: &Account| *account == Account::Number(number);
                accounts.iter().any(is) || {
                    let passwd = passwd();
                    accounts.iter().any(|account| match account {
                        Account::Name(name) => number_of(&passwd, name) == Some(number),
                        Account::Number(_) => false,
                    })
                }
            }
        }
    }

    /// Returns the names that are in the list and not in the file of accounts.
    pub fn unknown<'a>(&'a self, passwd: &str) -> Vec<&'a str> {
        let Self::Only(accounts) = self else { return Vec::new() };
        let named = accounts.iter().filter_map(|account| match account {
            Account::Name(name) => Some(name.as_str()),
            Account::Number(_) => None,
        });
        named.filter(|name| number_of(passwd, name).is_none()).collect()
    }
}

/// Returns the number of an account by its name, as `passwd(5)` says.
fn number_of(passwd: &str, name: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1).and_then(|number| number.parse().ok()))
    };
    passwd.lines().find_map(of_line).flatten()
}

/// The accounts as the file has them.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "allow_uid: must be \"any\", or a list of accounts, as in [\"root\", \"frr\", 1000]"
)]
pub(super) enum AccountsValue {
    Word(String),
    List(Vec<AccountValue>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum AccountValue {
    Number(u32),
    Name(String),
}

/// Reads the accounts.
pub(super) fn read(text: &Text<'_>, line: Option<&Spanned<AccountsValue>>) -> Result<Accounts, ConfigError> {
    let Some(place) = line else { return Ok(Accounts::Usual) };
    let wrong = || {
        text.error(
            place,
            "allow_uid: must be \"any\", or a list of accounts, as in [\"root\", \"frr\", 1000]",
        )
    };
    match place.get_ref() {
        AccountsValue::Word(word) if word == "any" => Ok(Accounts::Any),
        AccountsValue::Word(_) => Err(wrong()),
        AccountsValue::List(list) if list.is_empty() => {
            Err(text.error(place, "allow_uid: the list is empty, so nothing may connect"))
        }
        AccountsValue::List(list) => {
            let account = |entry: &AccountValue| match entry {
                AccountValue::Number(number) => Ok(Account::Number(*number)),
                AccountValue::Name(name) if name.is_empty() || name.contains([':', '\n']) => {
                    Err(text.error(place, format!("allow_uid: '{name}' is no name of an account")))
                }
                AccountValue::Name(name) => Ok(Account::Name(name.clone())),
            };
            Ok(Accounts::Only(list.iter().map(account).collect::<Result<_, _>>()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &str = "root:x:0:0:root:/root:/bin/bash\nfrr:x:107:112::/nonexistent:/usr/sbin/nologin\nbird:x:108:113::/run/bird:/bin/false\ncut:x\n";

    #[test]
    fn accounts_by_number_and_by_name() {
        let permit = |accounts: &Accounts, number| accounts.permit(number, || ACCOUNTS.to_owned());
        let permitted = |accounts: &Accounts| -> Vec<u32> {
            [0, 107, 108, 1000].into_iter().filter(|&number| permit(accounts, number)).collect()
        };
        assert_eq!(permitted(&Accounts::Usual), [0, 107]);
        assert!(!Accounts::Usual.permit(107, String::new), "frr does not exist here");
        assert_eq!(permitted(&Accounts::Any), [0, 107, 108, 1000]);
        let only = Accounts::Only(vec![
            Account::Name("bird".into()),
            Account::Number(1000),
            Account::Name("cut".into()),
        ]);
        assert_eq!(permitted(&only), [108, 1000]);
        assert_eq!(only.unknown(ACCOUNTS), ["cut"]);
        assert!(Accounts::Usual.unknown("").is_empty() && Accounts::Any.unknown("").is_empty());
    }
}
