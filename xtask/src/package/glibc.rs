//! The oldest C library that a program runs with, by the versions of the symbols that it takes from it.

use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::programs::output;

/// That of Debian 12.
const OLDEST: (u32, u32) = (2, 36);

/// Refuses a program or library that needs a newer C library.
pub(crate) fn check(file: &Path) -> Outcome {
    let text = output(Command::new("objdump").arg("-T").arg(file))?;
    let (major, minor) = newest(&text);
    if (major, minor) > OLDEST {
        let (most, least) = OLDEST;
        return Err(format!(
            "{} needs glibc {major}.{minor}; packages are for {most}.{least} and newer, so make them on Debian 12 or in a root of it",
            file.display()
        )
        .into());
    }
    println!("{}: glibc {major}.{minor} or newer", file.file_name().unwrap_or_default().to_string_lossy());
    Ok(())
}

/// Returns the newest version among symbols as objdump prints them.
fn newest(text: &str) -> (u32, u32) {
    let versions = text.split("GLIBC_").skip(1).filter_map(|rest| {
        let version = rest.split(|at: char| !at.is_ascii_digit() && at != '.').next()?;
        let mut numbers = version.split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        let text = "0000 DF *UND* 0000 (GLIBC_2.4) a\n0000 DF *UND* 0000 (GLIBC_2.34) b\n\
                    0000 DF *UND* 0000 (GLIBC_2.2.5) c\n0000 DF *UND* 0000 (GLIBC_PRIVATE) d\n0000 (GCC_3.0) e\n";
        assert_eq!(newest(text), (2, 34));
        assert_eq!(newest(""), (0, 0));
    }
}
