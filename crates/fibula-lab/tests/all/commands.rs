//! What is around the measurements: help, lists, completions, manual pages, words of the other command.

use crate::support::width::{at, fits, help_fits};
use crate::support::{Folder, TABLE, documents, run};

#[test]
fn alone_it_prints_help() {
    let bare = run(&[]);
    assert_eq!((bare.code, bare.err.as_str()), (0, ""));
    for command in [
        "rates",
        "updates",
        "schedule",
        "device",
        "targets",
        "paper",
        "document",
        "measure",
        "engines",
        "router",
        "tour",
        "completions",
        "man",
    ] {
        assert!(bare.out.contains(&format!("\n  {command} ")), "{command}");
        let help = run(&[command, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""));
        assert!(help.out.contains("Examples:\n  fibula-lab "), "{command}: {}", help.out);
    }
    assert!(run(&["--version"]).out.starts_with("fibula-lab "));
}

#[test]
fn help_of_all_commands_fits() {
    help_fits(25);
    let rates = at("80", &["rates", "--help"]).out;
    assert!(rates.contains(
        "\n  fibula-lab rates --synth ipv6 --engine radix --engine range-search --threads \\\n      1 --threads 2"
    ));
}

#[test]
fn reports_fit() {
    let quick = ["--synth", "ipv4/2000", "--synth", "ipv6/2000", "--seconds", "0", "--keys", "1000"];
    let some = ["-a", "dxr-18-branch-free", "-a", "planb"];
    let of = |command: &[&'static str], more: &[&'static str]| [command, &quick, &some, more].concat();
    for args in [
        vec!["engines"],
        vec!["paper"],
        of(&["rates"], &["--batch", "256", "--traffic", "rnd"]),
        of(&["schedule"], &["--traffic", "rnd"]),
        of(&["updates"], &[]),
    ] {
        let report = at("80", &args);
        assert!(report.code == 0 && !report.out.is_empty(), "{args:?}: {}", report.err);
        fits(80, &report.out, &args);
        // Names and numbers are not broken.
        let whole = |word: &str| report.out.split_whitespace().any(|found| found == word);
        assert!(args[0] == "paper" || whole("planb"), "{args:?}: {}", report.out);
    }
}

#[test]
fn words_of_the_other_command_are_refused() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    for args in [
        &["lookup", "-t", table.to_str().unwrap(), "192.0.2.1"][..],
        &["table", "synth", "ipv4"],
        &["choose"],
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.ends_with(&format!("'{}' is a command of 'fibula'\n", args[0])), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
    assert_eq!(run(&["nonsuch"]).code, 2);
}

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""));
        assert!(script.out.contains("fibula-lab") && script.out.contains("multibit"), "{shell}");
    }
    assert!(run(&["man", "rates"]).out.contains("\n.TH fibula-lab-rates 1 "));
    let folder = Folder::new();
    let pages = folder.path().join("man1");
    assert_eq!(run(&["man", "--output", pages.to_str().unwrap()]).code, 0);
    for name in ["fibula-lab.1", "fibula-lab-updates.1", "fibula-lab-measure-sets.1"] {
        assert!(std::fs::read_to_string(pages.join(name)).unwrap().contains(".TH "), "{name}");
    }
}

#[test]
fn inputs_and_what_is_missing() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let table = table.to_str().unwrap();
    // A chart or a page never replaces what is read.
    for output in ["--svg", "--html"] {
        let args = [
            "rates",
            "-q",
            "-t",
            table,
            "-a",
            "radix",
            "--traffic",
            "rnd",
            "--seconds",
            "0",
            "--keys",
            "100",
        ];
        assert_eq!(run(&[&args[..], &[output, table]].concat()).code, 2, "{output}");
        assert_eq!(std::fs::read_to_string(table).unwrap(), TABLE);
    }
    // A record replaces an older one.
    let records = folder.path().join("records");
    let args = ["rates", "--synth", "ipv4/300", "-a", "radix", "--seconds", "0", "--keys", "1000", "-q"];
    for _ in 0..2 {
        let record = ["--traffic", "rnd", "--record", records.to_str().unwrap()];
        assert_eq!(run(&[&args[..], &record].concat()).code, 0);
        let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
        assert_eq!(std::fs::read_dir(machine).unwrap().count(), 1);
    }
    let missing = run(&["document", "papers", "--check"]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert!(missing.err.contains("--data or FIBULA_DATA"), "{}", missing.err);
    #[cfg(not(feature = "gpu"))]
    {
        let device = run(&["device", "-t", table]);
        assert_eq!(device.code, 4);
        assert!(device.err.contains("--features gpu"), "{}", device.err);
    }
}

#[test]
fn the_router_is_here_too() {
    let folder = Folder::new();
    let config = |engine: &str| {
        let text = format!("ipv4_engine = \"{engine}\"\n[[interface]]\nname = \"lan\"\ndevice = \"eth0\"\n");
        folder.write("router.toml", text)
    };
    let check = |engine: &str| run(&["router", "check", config(engine).to_str().unwrap()]);
    assert_eq!(check("dir-24-8").code, 0, "{}", check("dir-24-8").err);
    let unknown = check("abacus");
    assert_eq!(unknown.code, 3);
    assert!(unknown.err.contains("line 1: no engine 'abacus'"), "{}", unknown.err);
}

#[test]
fn the_words_of_commands_in_documents_exist() {
    let mut checked = 0;
    for document in documents::documents() {
        let blocks = documents::blocks(&documents::read(&document));
        let commands = blocks
            .iter()
            .filter(|block| block.language == "sh")
            .flat_map(|block| documents::commands(&block.text));
        for command in commands.filter(|command| command.starts_with("fibula-lab ")) {
            documents::check_words(env!("CARGO_BIN_EXE_fibula-lab"), &command);
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}
