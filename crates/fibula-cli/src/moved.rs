//! Words of the command line that have another name or another place now.

use std::ffi::OsString;

/// Programs that were options of `fibula bench`.
const OF_BENCH: [(&str, &str); 4] =
    [("--updates", "updates"), ("--schedule", "schedule"), ("--device", "device"), ("--reach", "targets")];

/// Returns the new name of an option that these arguments have, if it has one.
pub fn renamed(args: &[OsString]) -> Option<String> {
    let mut words = args.iter().skip(1).map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    let old = words.any(|word| word.split('=').next() == Some("--algorithm"));
    old.then(|| "'--algorithm' is now '--engine'".to_owned())
}

/// Returns where the word is that these arguments begin with, if it has moved. `args` begin with the program's name.
pub(crate) fn place(args: &[OsString]) -> Option<String> {
    let words: Vec<_> = args.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    // 'fibula help bench' asks for the same.
    let (first, rest) = words.strip_prefix(&["help".into()]).unwrap_or(&words).split_first()?;
    match &**first {
        "bench" => {
            let names = |word: &str, option: &str| word.split('=').next() == Some(option);
            let of = OF_BENCH.iter().find(|(option, _)| rest.iter().any(|word| names(word, option)));
            Some(match of {
                Some((option, name)) => format!("'fibula bench {option}' is now 'fibula-lab {name}'"),
                None => "'fibula bench' is now 'fibula-lab rates'".to_owned(),
            })
        }
        "algorithms" => Some("'fibula algorithms' is now 'fibula engines'".to_owned()),
        "paper" => Some("'fibula paper' is now 'fibula-lab paper'".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_with_another_name_are_found_before_the_end_of_options() {
        let of = |line: &str| renamed(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).is_some();
        assert!(of("fibula lookup --algorithm planb") && of("fibula lookup --algorithm=planb"));
        assert!(!of("fibula lookup -a planb") && !of("fibula lookup -- --algorithm"));
    }

    #[test]
    fn each_program_of_the_benchmark_has_its_place() {
        let of = |line: &str| place(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for (line, now) in [
            ("fibula bench", "rates"),
            ("fibula bench -t x --seconds 1", "rates"),
            ("fibula bench -t x --updates --trace y", "updates"),
            ("fibula bench --schedule=static", "schedule"),
            ("fibula bench --device cuda:0 -t x", "device"),
            ("fibula bench --reach --rivals", "targets"),
            ("fibula help bench", "rates"),
            ("fibula paper dxr -o x", "paper"),
        ] {
            assert!(
                of(line).is_some_and(|said| said.ends_with(&format!("is now 'fibula-lab {now}'"))),
                "{line}"
            );
        }
        assert_eq!(
            of("fibula algorithms --json").as_deref(),
            Some("'fibula algorithms' is now 'fibula engines'")
        );
        for line in ["fibula", "fibula lookup bench", "fibula --help", "fibula benches"] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
