//! Writes `docs/picture.svg`, the command at work for README.md, and `docs/guide/router-top.svg`, samples of a router for its guide, or
//! checks that they are up to date. The text is the output of the command for a tiny table, and for an answer of a router, without
//! measurements, because those differ from run to run.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fibula_workload::drawing::escape;

use super::generated::Generated;

const TABLE: &str = "\
192.0.0.0/8 64500
192.0.2.0/24 64501
192.0.2.128/25 64502
2001:db8::/32 64503
";

/// Columns of text, and the size of a column and of a line.
const COLUMNS: usize = 80;
const COLUMN: f64 = 8.0;
const LINE: f64 = 19.0;

/// Blank space around the text; above it is the window's bar.
const MARGIN: f64 = 18.0;
const BAR: f64 = 34.0;

pub(super) fn write(generated: &Generated) -> Result<bool, Box<dyn Error>> {
    let fibula = beside()?;
    let folder = tempfile::tempdir()?;
    let session = session(&fibula, folder.path())?;
    let files = [
        ("docs/picture.svg".to_owned(), svg("fibula lookup and fibula tour in a terminal", &session)),
        // The router is of Linux.
        #[cfg(target_os = "linux")]
        (
            "docs/guide/router-top.svg".to_owned(),
            svg("fibula router top in a terminal", &top(&fibula, folder.path())?),
        ),
    ];
    generated.finish(&files)
}

/// Samples of 20 seconds on a router with two uplinks, as it answers: the AS, samples, and mean bytes of a packet.
#[cfg(target_os = "linux")]
const SAMPLES: [(&str, u64, u64); 7] = [
    ("AS64500", 14_210, 1210),
    ("AS64511", 8_034, 940),
    ("AS64502", 3_307, 1380),
    ("AS65010", 1_122, 610),
    ("AS64508", 402, 118),
    ("unknown", 61, 90),
    ("AS64499", 8, 64),
];

/// Returns the lines of a session with `fibula router top`, which a thread here answers as a router does.
#[cfg(target_os = "linux")]
fn top(fibula: &Path, folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::net::UnixListener;

    let row = |(name, samples, bytes): (&str, u64, u64)| {
        let error = (1.96 * (samples as f64 * 1000.0 * 999.0).sqrt()).round() as u64;
        let (packets, size) = (samples * 1000, samples * 1000 * bytes);
        format!(
            r#"{{"name":"{name}","samples":{samples},"packets":{packets},"packets_error":{error},"bytes":{size},"bytes_error":{}}}"#,
            error * bytes * 6 / 5
        )
    };
    let samples: u64 = SAMPLES.iter().map(|line| line.1).sum();
    let bytes: u64 = SAMPLES.iter().map(|line| line.1 * line.2).sum();
    let answer = format!(
        r#"{{"by":"as","seconds":20.0,"interval":1000,"all":{},"rows":[{}],"drawn":{samples},"lost":0,"unreadable":0,"collectors":[]}}"#,
        row(("all", samples, bytes / samples)),
        SAMPLES.map(row).join(",")
    );
    let socket = folder.join("router.sock");
    let listener = UnixListener::bind(&socket)?;
    let router = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        BufReader::new(&stream).read_line(&mut String::new())?;
        stream.write_all(format!("{answer}\n").as_bytes())
    });
    let typed = ["router", "top", "--by", "as", "--interval", "20"];
    let output = Command::new(fibula)
        .args(typed)
        .args(["--once", "--socket"])
        .arg(&socket)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        // The thread would wait for a client that does not come.
        return Err(format!("fibula {typed:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    router.join().map_err(|_| "the thread that answers has panicked")??;
    let mut lines = vec![format!("$ fibula {}", typed.join(" "))];
    lines.extend(String::from_utf8(output.stdout)?.lines().map(str::to_owned));
    Ok(lines)
}

/// Returns the command, which is built into the same folder as this program.
fn beside() -> Result<PathBuf, Box<dyn Error>> {
    let path = std::env::current_exe()?.with_file_name(format!("fibula{}", std::env::consts::EXE_SUFFIX));
    match path.exists() {
        true => Ok(path),
        false => Err(format!("{} is not there: cargo build -p fibula-cli makes it", path.display()).into()),
    }
}

/// Returns the lines of the session; those that are typed begin with a prompt.
fn session(fibula: &Path, folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    fs::write(folder.join("routes.txt"), TABLE)?;
    let run = |args: &[&str]| -> Result<String, Box<dyn Error>> {
        let output = Command::new(fibula)
            .args(args)
            .current_dir(folder)
            .env("COLUMNS", COLUMNS.to_string())
            .env("NO_COLOR", "1")
            .env_remove("FIBULA_TABLE")
            .stdin(Stdio::null())
            .output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(format!("fibula {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    };
    let lookup = ["lookup", "--table", "routes.txt", "192.0.2.200", "2001:db8::1", "198.51.100.1"];
    let mut lines = vec!["$ cat routes.txt".to_owned()];
    lines.extend(TABLE.lines().map(str::to_owned));
    lines.push(format!("$ fibula {}", lookup.join(" ")));
    lines.extend(run(&lookup)?.lines().map(str::to_owned));
    lines.push("$ fibula tour --table routes.txt".to_owned());
    let tour = run(&["tour", "--table", "routes.txt", "--seconds", "0", "--quiet"])?;
    let tour = tour.lines().skip_while(|&line| line != "Looking up").take_while(|&line| line != "How fast");
    lines.extend(tour.map(str::to_owned));
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.push("...".to_owned());
    Ok(lines)
}

/// Draws a window with these lines.
fn svg(title: &str, lines: &[String]) -> String {
    let width = COLUMNS as f64 * COLUMN + 2.0 * MARGIN;
    let height = BAR + lines.len() as f64 * LINE + MARGIN;
    let mut svg = format!(
        "<!-- Generated by `fibula-lab document picture`; do not edit. -->\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1e2430\"/>\n"
    );
    for (at, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        let _ = writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"16\" r=\"5\" fill=\"{colour}\"/>",
            MARGIN + 16.0 * at as f64
        );
    }
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (fill, weight) = match line {
            line if line.starts_with("$ ") => ("#8fd694", "bold"),
            line if line.contains("<- the answer") => ("#ffffff", "bold"),
            line if line.contains("  loses: ") => ("#8a93a3", "normal"),
            _ => ("#d6dbe5", "normal"),
        };
        // A length makes columns of any font that the reader has.
        let length = line.chars().count() as f64 * COLUMN;
        let y = BAR + (at + 1) as f64 * LINE - 5.0;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{fill}\" font-weight=\"{weight}\" textLength=\"{length}\" \
             xml:space=\"preserve\">{}</text>",
            escape(line)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_text_and_signs_of_xml_are_escaped() {
        let svg = svg("title", &["$ a < b & c".to_owned(), String::new(), "d  <- the answer".to_owned()]);
        assert!(svg.contains(">$ a &lt; b &amp; c</text>") && svg.contains("font-weight=\"bold\""), "{svg}");
        assert_eq!(svg.matches("<text ").count(), 2, "an empty line is space: {svg}");
    }
}
