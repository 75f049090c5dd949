//! Files that commands write: whole or not at all, and never over an input.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Folder, Run, TABLE, fibula, run};

const OLD: &str = "what was there\n";

const FORMS: [&str; 6] = ["text", "csv", "json", "json-line", "bgpdump", "intervals"];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn convert(input: &Path, form: &str, output: &Path) -> Run {
    run(&["table", "convert", "-q", text(input), "--to", form, "-o", text(output)])
}

/// The files that were left aside.
fn asides(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().as_encoded_bytes().starts_with(b".fibula-")).collect()
}

/// Runs a line of the shell in the folder, in which `$fibula` is the command.
fn shell(folder: &Folder, line: &str) -> Run {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder.path()).env("fibula", env!("CARGO_BIN_EXE_fibula"));
    command.output().unwrap().into()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let (link, hard) = (folder.path().join("link"), folder.path().join("hard"));
    symlink("table.txt", &link).unwrap();
    fs::hard_link(&table, &hard).unwrap();
    for form in FORMS {
        for output in [&table, &link, &hard] {
            let run = convert(&table, form, output);
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{form} {output:?}");
            assert!(run.err.contains("is the same file as the input"), "{}", run.err);
        }
        for line in [
            "$fibula table convert -q /dev/stdin --to FORM -o table.txt < table.txt",
            "$fibula table convert -q - --to FORM -o link < hard",
            "$fibula table convert -q link --to FORM -o /dev/stdout >> table.txt",
            "$fibula table convert -q table.txt --to FORM >> link",
            "$fibula table convert -q hard /dev/null --to FORM -o table.txt",
        ] {
            let run = shell(&folder, &line.replace("FORM", form));
            assert_eq!(run.code, 2, "{line}: {}", run.err);
        }
        assert_eq!(fs::read_to_string(&table).unwrap(), TABLE);
    }
    // The same holds for other commands: addresses that are appended to what they are read from.
    let addresses = folder.write("addresses.txt", "192.0.2.1\n");
    let run = shell(&folder, "$fibula lookup -q -t table.txt < addresses.txt >> addresses.txt");
    assert_eq!(run.code, 2, "{}", run.err);
    assert_eq!(fs::read_to_string(&addresses).unwrap(), "192.0.2.1\n");
    // A device may be both.
    assert_eq!(shell(&folder, "$fibula table convert -q - --to text -o /dev/null < /dev/null").code, 0);
}

#[test]
fn bad_input_leaves_the_old_file() {
    let folder = Folder::new();
    let old = folder.write("out", OLD);
    let (missing, good) = (folder.path().join("missing"), folder.write("good", TABLE));
    let garbage = folder.write("garbage", "dear diary\n\u{7f}ELF\n");
    for form in FORMS {
        for input in [&missing, &garbage] {
            let run = convert(input, form, &old);
            assert_eq!((run.code, run.out.as_str()), (3, ""), "{form} {input:?} {}", run.err);
        }
        let args = ["table", "convert", "-q", text(&good), text(&missing), "--to", form, "-o", text(&old)];
        assert_eq!(run(&args).code, 3);
        assert_eq!((fs::read_to_string(&old).unwrap().as_str(), asides(&folder)), (OLD, vec![]));
    }
    assert_eq!(convert(&good, "text", &folder.path().join("no/such/folder")).code, 3);
    assert_eq!(convert(&good, "text", folder.path()).code, 3);
    assert_eq!(convert(&good, "text", &old).code, 0);
    assert!(fs::read_to_string(&old).unwrap().starts_with("10.0.0.0/8 1,2\n"));
}

#[test]
fn modes_and_links_are_kept() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    let out = folder.write("out", OLD);
    let link = folder.path().join("link");
    symlink("out", &link).unwrap();
    for bits in [0o640, 0o600, 0o755] {
        fs::set_permissions(&out, fs::Permissions::from_mode(bits)).unwrap();
        assert_eq!(convert(&table, "csv", &link).code, 0);
        assert_eq!(mode(&out), bits);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&out).unwrap().starts_with("prefix,next_hop\n"));
        fs::write(&out, OLD).unwrap();
    }
    // A new file gets what the umask leaves, also at the end of a link that leads nowhere yet.
    symlink("new", folder.path().join("to-new")).unwrap();
    let line = "umask 027; $fibula table convert -q table.txt --to text -o to-new";
    assert_eq!(shell(&folder, line).code, 0);
    let new = folder.path().join("new");
    assert_eq!((mode(&new), fs::read_to_string(&new).unwrap().lines().count()), (0o640, 6));
    symlink("circle", folder.path().join("circle")).unwrap();
    assert_eq!(convert(&table, "text", &folder.path().join("circle")).code, 3);
    assert_eq!(asides(&folder), Vec::<PathBuf>::new());
}

#[test]
fn a_file_without_write_permission_is_not_replaced() {
    const NOBODY: u32 = 65_534;
    let folder = Folder::new();
    folder.write("table.txt", TABLE);
    let out = folder.write("out", OLD);
    fs::set_permissions(&out, fs::Permissions::from_mode(0o444)).unwrap();
    // The folder would let anyone replace it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = folder.path().join("fibula");
    // Not `fs::copy`: a program that another thread starts meanwhile would hold it open for writing for a moment.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_fibula")).arg(&program).status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(&program);
    command.current_dir(folder.path()).args("table convert -q table.txt --to text -o out".split(' '));
    if File::options().write(true).open(&out).is_ok() {
        // The superuser may write it, so another user tries.
        command.uid(NOBODY);
    }
    let run = Run::from(command.output().unwrap());
    assert_eq!((run.code, fs::read_to_string(&out).unwrap().as_str()), (3, OLD), "{}", run.err);
    assert!(run.err.contains("ermission denied"), "{}", run.err);
}

#[test]
fn devices_pipes_and_standard_output_are_written_directly() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    assert_eq!(convert(&table, "text", Path::new("/dev/null")).code, 0);
    for form in FORMS {
        let full = convert(&table, form, Path::new("/dev/full"));
        assert_eq!(full.code, 3, "{form}");
        assert!(full.err.starts_with("error: cannot write /dev/full: "), "{}", full.err);
    }
    let expected = run(&["table", "convert", "-q", text(&table), "--to", "text"]).out;
    for line in [
        "mkfifo pipe; cat pipe & $fibula table convert -q table.txt --to text -o pipe; wait",
        "$fibula table convert -q table.txt --to text -o /dev/stdout",
        "$fibula table convert -q table.txt --to text -o - | cat",
        "$fibula table convert -q table.txt --to text -o /dev/fd/3 3>third; cat third",
        "{ $fibula table convert -q table.txt --to text -o /dev/stdout; } > all; cat all",
    ] {
        let run = shell(&folder, line);
        assert_eq!((run.code, &run.out), (0, &expected), "{line}: {}", run.err);
    }
    // What is in the file already stays where the output is appended.
    let run = shell(
        &folder,
        "echo first > log; $fibula table convert -q table.txt --to text -o /dev/stdout >> log; cat log",
    );
    assert_eq!(run.out, format!("first\n{expected}"));
    assert_eq!((fs::metadata("/dev/null").unwrap().mode() & 0o170_000, asides(&folder)), (0o020_000, vec![]));
}

#[test]
fn a_size_limit_leaves_the_old_file() {
    let folder = Folder::new();
    let old = folder.write("out", OLD);
    let line = "ulimit -c 0; ulimit -f 1; exec $fibula table synth ipv4 --routes 20000 -o out";
    let run = shell(&folder, line);
    assert_eq!(run.code, 3, "{}", run.err);
    assert!(run.err.starts_with("error: cannot write out: File too large"), "{}", run.err);
    assert_eq!((fs::read_to_string(old).unwrap().as_str(), asides(&folder)), (OLD, vec![]));
}

#[test]
#[ignore = "needs root, to mount a small tmpfs"]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::new();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&disk).status();
    assert!(mount.unwrap().success());
    fs::write(disk.join("out"), OLD).unwrap();
    let run = shell(&folder, "$fibula table synth ipv4 --routes 20000 -o disk/out");
    let (old, left) = (fs::read_to_string(disk.join("out")).unwrap(), fs::read_dir(&disk).unwrap().count());
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    assert_eq!((run.code, old.as_str(), left), (3, OLD, 1), "{}", run.err);
    assert!(run.err.contains("No space left"), "{}", run.err);
}

/// Starts to convert what comes from a FIFO, and returns when a part of it is written aside. The FIFO is fed until the
/// command ends.
fn held_mid_way(folder: &Folder, before: &str, exec: &str) -> Child {
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let line = format!("{before} exec {exec} $fibula table convert -q --to bgpdump --all-peers pipe -o out");
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder.path()).env("fibula", env!("CARGO_BIN_EXE_fibula"));
    let child = command.spawn().unwrap();
    std::thread::spawn(move || {
        let line = b"TABLE_DUMP2|1700000000|B|192.0.2.1|64501|10.0.0.0/8|64501|IGP|192.0.2.1|0|0||NAG||\n";
        let mut pipe = File::options().write(true).open(pipe).unwrap();
        while pipe.write_all(&line.repeat(100)).is_ok() {}
    });
    let start = Instant::now();
    while asides(folder).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// A prefix that gives every signal its default effect where `env` can: what runs the tests may ignore some, as shells do
/// for background jobs, and an ignored signal is inherited.
fn with_default_signals() -> &'static str {
    let probe = Command::new("env").args(["--default-signal", "true"]).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) { "env --default-signal" } else { "" }
}

/// Waits for the command to end, but not forever.
fn ended(mut child: Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the command is still running");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn kill(child: &Child, signal: &str) {
    let line = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

#[test]
fn signals_leave_the_old_file_and_nothing_else() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("KILL", 9)] {
        let folder = Folder::new();
        let old = folder.write("out", OLD);
        let child = held_mid_way(&folder, "ulimit -c 0;", with_default_signals());
        kill(&child, signal);
        // The shell sees the signal, as of a command that does not handle it.
        assert_eq!(ended(child).signal(), Some(number), "{signal}");
        assert_eq!(fs::read_to_string(old).unwrap(), OLD, "{signal}");
        // Nothing can act on SIGKILL.
        assert_eq!(asides(&folder).len(), usize::from(signal == "KILL"), "{signal}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn signals_that_are_ignored_stay_ignored() {
    let folder = Folder::new();
    folder.write("out", OLD);
    let mut child = held_mid_way(&folder, "trap '' HUP;", "");
    kill(&child, "HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((child.try_wait().unwrap(), asides(&folder).len()), (None, 1));
    kill(&child, "TERM");
    assert_eq!(ended(child).signal(), Some(15));
    assert_eq!(asides(&folder), Vec::<PathBuf>::new());
}

/// Runs the command with this as standard output.
fn into(stdout: impl Into<Stdio>, args: &[&str]) -> (ExitStatus, String) {
    let mut command = fibula();
    command.args(args).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let folder = Folder::new();
    let table = folder.write("table.txt", TABLE);
    for line in [
        "$fibula >&-",
        "$fibula --help >&-",
        "$fibula --version >&-",
        "$fibula engines >&-",
        "$fibula lookup -t table.txt 192.0.2.1 >&-",
        "$fibula table convert -q table.txt --to text >&-",
        "$fibula table convert -q table.txt --to text -o - >&-",
    ] {
        let run = shell(&folder, line);
        assert_eq!((run.code, run.err.as_str()), (3, "error: standard output is closed\n"), "{line}");
    }
    // What writes a file needs none, and a null device is not closed, whatever it was opened for.
    for line in [
        "$fibula table convert -q table.txt --to text -o out >&-",
        "$fibula lookup -t table.txt 192.0.2.1 > /dev/null",
        "$fibula lookup -t table.txt 192.0.2.1 1<> /dev/null",
    ] {
        assert_eq!(shell(&folder, line).code, 0, "{line}");
    }
    let both = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert_eq!(into(both, &["lookup", "-t", text(&table), "192.0.2.1"]).0.code(), Some(0));
    // A disk that is full is an error of every command.
    for args in [&["--help"][..], &["engines"], &["lookup", "-t", text(&table), "192.0.2.1"]] {
        let (status, err) = into(File::create("/dev/full").unwrap(), args);
        assert_eq!(status.code(), Some(3), "{args:?}");
        assert!(err.starts_with("error: cannot write the output: "), "{err}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new();
    folder.write("table.txt", "192.0.2.0/24 1\n".repeat(50_000));
    for line in [
        "{ $fibula table convert -q table.txt --to bgpdump; echo $? >&2; } | head -n 1",
        "{ $fibula table synth ipv4 --routes 20000; echo $? >&2; } | head -n 1",
        "mkfifo pipe; head -n 1 pipe > /dev/null & $fibula table synth ipv4 --routes 20000 -o pipe; echo $? >&2",
        "{ $fibula --help; echo $? >&2; } | true",
    ] {
        let run = shell(&folder, line);
        assert_eq!(run.err, "0\n", "{line}");
    }
}

#[test]
fn manual_pages_replace_older_ones() {
    let folder = Folder::new();
    let pages = folder.path().join("man1");
    for _ in 0..2 {
        assert_eq!(run(&["man", "-o", text(&pages)]).code, 0);
        let names = fs::read_dir(&pages).unwrap().count();
        assert!(names > 15 && pages.join("fibula-table-convert.1").is_file(), "{names}");
    }
}
