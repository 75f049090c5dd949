//! Output for terminals of some width.

use crate::support::{PROGRAM, Run, fibula, run};

/// A command's output for a terminal of 80 columns.
pub(crate) fn at(columns: &str, args: &[&str]) -> Run {
    fibula().args(args).env("COLUMNS", columns).output().unwrap().into()
}

/// Asserts that no line is longer. The path of the program is longer here than where it is installed.
pub(crate) fn fits(width: usize, text: &str, what: &dyn std::fmt::Debug) {
    let text = text.replace(PROGRAM, "fibula");
    for line in text.lines() {
        // Objects of JSON, in examples, have no place to break at.
        let is_object = line.trim_start().starts_with("json-line  {");
        assert!(is_object || line.chars().count() <= width, "{what:?}: {line:?}");
    }
}

/// All commands, by the help of those that they are in.
fn commands(of: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = of.iter().map(String::as_str).chain(["--help"]).collect();
    let help = run(&args).out;
    let list = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let names = list.lines().take_while(|line| !line.is_empty()).filter(|line| line.starts_with("  "));
    let names = names
        .filter_map(|line| line[2..].split(' ').next().filter(|name| !name.is_empty() && *name != "help"));
    let mut all = vec![of.to_vec()];
    for name in names {
        all.extend(commands(&[of, &[name.to_owned()]].concat()));
    }
    all
}

/// Asserts that the help of all commands fits, of which there are so many at least.
pub(crate) fn help_fits(least: usize) {
    let all = commands(&[]);
    assert!(all.len() >= least, "{all:?}");
    for command in &all {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        for (columns, width) in [("80", 80), ("50", 50), ("300", 100), ("", 80)] {
            for help in ["-h", "--help"] {
                let out = at(columns, &[&args[..], &[help]].concat()).out;
                // Words that are longer than a narrow terminal stay whole.
                let most = if width == 50 { 72 } else { width };
                fits(most, &out, &(&args, columns));
            }
        }
    }
}
