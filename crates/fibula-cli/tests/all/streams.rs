//! The configuration files of docs/guide/streams: their commands answer lines as these come, and programs that are here take them.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::documents::{blocks, read, root};
use crate::support::{Folder, run};

const FOLDER: &str = "docs/guide/streams";
const LOG: &str = "/var/log/suricata/eve.json";
const TABLE: &str = "/var/lib/fibula/sites.fibula";

/// Lines as Suricata's documentation of EVE has them, with addresses of this table: of a flow, an alert, and one of statistics, which has no
/// addresses.
const EVENTS: [(&str, Option<&str>); 4] = [
    (
        r#"{"timestamp":"2017-04-07T22:24:37.251547+0100","flow_id":586497171462735,"pcap_cnt":53381,"event_type":"flow","src_ip":"10.1.2.3","src_port":49158,"dest_ip":"192.0.2.1","dest_port":80,"proto":"TCP","flow":{"pkts_toserver":6,"bytes_toclient":1500,"alerted":false}}"#,
        Some("DE"),
    ),
    (
        r#"{"timestamp":"2009-11-24T21:27:09.534255+0000","event_type":"alert","src_ip":"2001:db8::7","src_port":1041,"dest_ip":"10.1.2.3","dest_port":80,"proto":"TCP","alert":{"action":"allowed","gid":1,"signature_id":2001999,"rev":9,"signature":"a \"quoted\", and \\ text","severity":1}}"#,
        Some("NL"),
    ),
    (
        r#"{"timestamp":"2013-09-18T22:17:03.000001+0200","event_type":"stats","stats":{"decoder":{"pkts":12}}}"#,
        None,
    ),
    (
        r#"{"timestamp":"2017-04-07T22:24:38.000000+0100","event_type":"flow","src_ip":"203.0.113.9","dest_ip":"10.1.2.3"}"#,
        None,
    ),
];

fn compile(folder: &Folder, of_ten: &str) {
    let routes = format!("prefix,country\n10.0.0.0/8,{of_ten}\n2001:db8::/32,NL\n");
    let (csv, table) = (folder.write("sites.csv", routes), folder.path().join("sites.fibula"));
    let args = ["compile", "-q", csv.to_str().unwrap(), "--value", "country", "-o", table.to_str().unwrap()];
    let run = run(&args);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

/// Returns a file of the folder, with paths of a test instead of those of a system.
fn file(name: &str, folder: &Folder) -> String {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = read(&format!("{FOLDER}/{name}"));
    text.replace(LOG, &at("eve.json"))
        .replace(TABLE, &at("sites.fibula"))
        .replace("/etc/rsyslog.d/fibula.sh", &at("rsyslog.sh"))
        .replace("/var/log/logins.jsonl", &at("logins.jsonl"))
        .replace("/var/log/fibula.log", &at("fibula.log"))
        .replace("/usr/bin/fibula", env!("CARGO_BIN_EXE_fibula"))
        .replace("/etc/fluent-bit/fluent-bit.conf", &at("fluent-bit.conf"))
}

/// Returns the command of a configuration file, which each program hands to a shell.
fn command(text: &str) -> &str {
    let (begin, _) = text.match_indices("exec tail").next().expect("no command");
    let end = text[begin..].find(['\'', '"', '\n']).unwrap();
    &text[begin..begin + end]
}

fn path() -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_fibula")).parent().unwrap();
    format!("{}:/usr/sbin:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A program with all that it starts, ended with the test.
struct Group(Child);

impl Group {
    fn new(command: &mut Command) -> Self {
        Self(command.env("PATH", path()).stdin(Stdio::null()).process_group(0).spawn().unwrap())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["--", &format!("-{}", self.0.id())]).status();
        let _ = self.0.wait();
    }
}

fn append(folder: &Folder, line: &str) {
    let mut options = std::fs::OpenOptions::new();
    let mut log = options.create(true).append(true).open(folder.path().join("eve.json")).unwrap();
    log.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn the_commands_of_the_files_answer_each_line_as_it_comes() {
    for name in ["vector.yaml", "fluent-bit.sh", "logstash.conf", "telegraf.conf"] {
        let folder = Folder::new();
        compile(&folder, "DE");
        append(&folder, "{}");
        let text = file(name, &folder);
        let mut shell = Command::new("/bin/sh");
        let mut group = Group::new(shell.args(["-c", command(&text)]).stdout(Stdio::piped()));
        let mut lines = BufReader::new(group.0.stdout.take().unwrap()).lines();
        // The command takes lines that come after it began: the first is written until it does.
        let has_begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_begun.load(Ordering::Relaxed) {
                    append(&folder, r#"{"src_ip":"10.0.0.1","n":0}"#);
                    std::thread::sleep(Duration::from_millis(50));
                }
                append(&folder, r#"{"src_ip":"10.0.0.1","n":1}"#);
            });
            let first = lines.next().unwrap().unwrap();
            has_begun.store(true, Ordering::Relaxed);
            assert!(first.ends_with(r#""next_hop":"DE","country":"DE"}"#), "{name}: {first}");
        });
        assert!(lines.by_ref().any(|line| line.unwrap().contains("\"n\":1")));
        for (line, country) in EVENTS {
            append(&folder, line);
            let answer = lines.next().unwrap().unwrap();
            // What was there is there byte by byte.
            assert!(answer.starts_with(line.strip_suffix('}').unwrap()), "{name}: {answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert_eq!(answer["country"], country.map_or(Value::Null, Value::from), "{name}: {answer}");
        }
        compile(&folder, "AT");
        append(&folder, EVENTS[0].0);
        assert!(lines.next().unwrap().unwrap().contains(r#""country":"AT""#), "{name}");
    }
}

/// Rsyslog gives messages to its script, takes the properties, and goes on with them.
#[test]
#[ignore = "needs rsyslogd: apt-get install rsyslog"]
fn rsyslog_takes_the_answers_for_properties() {
    let folder = Folder::new();
    compile(&folder, "DE");
    let at = |name: &str| folder.path().join(name);
    let script = folder.write("rsyslog.sh", file("rsyslog.sh", &folder));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let around = format!(
        "global(workDirectory=\"{}\")\nmodule(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=\"{}\")\n",
        folder.path().display(),
        at("socket").display()
    );
    let configuration = folder.write("rsyslog.conf", around + &file("rsyslog.conf", &folder));
    let run = Command::new("rsyslogd")
        .args(["-N", "1", "-f"])
        .arg(&configuration)
        .env("PATH", path())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut rsyslogd = Command::new("rsyslogd");
    rsyslogd.arg("-n").arg("-f").arg(&configuration).arg("-i").arg(at("pid"));
    let _group = Group::new(&mut rsyslogd);
    let socket = UnixDatagram::unbound().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while socket.connect(at("socket")).is_err() {
        assert!(Instant::now() < deadline, "no socket");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut sent = 0;
    let mut ask = |tag: &str, message: &str| {
        socket.send(format!("<38>Nov 28 14:00:00 {tag}[7]: {message}").as_bytes()).unwrap();
        sent += usize::from(tag == "sshd");
        loop {
            let logins = std::fs::read_to_string(at("logins.jsonl")).unwrap_or_default();
            if logins.matches('\n').count() >= sent {
                let last = logins.lines().last().unwrap_or("{}");
                break serde_json::from_str::<Value>(last).unwrap();
            }
            assert!(Instant::now() < deadline, "no answer to {message}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let login = |ip: &str| format!("Failed password for \"root}}\" from {ip} port 4242 ssh2");
    ask("cron", "from 10.0.0.1 port 1");
    for (ip, country) in [
        ("10.1.2.3", Some("DE")),
        ("2001:db8::7", Some("NL")),
        ("203.0.113.1", None),
        ("10.1.2.4", Some("DE")),
    ] {
        let answer = ask("sshd", &login(ip));
        assert_eq!(
            (&answer["ip"], answer["country"].as_str()),
            (&Value::from(ip), Some(country.unwrap_or(""))),
            "{answer}"
        );
        assert!(answer["message"].as_str().unwrap().contains("\"root}\""), "{answer}");
    }
    assert_eq!(ask("sshd", "Server listening on :: port 22.")["country"].as_str(), Some(""));
    compile(&folder, "AT");
    assert_eq!(ask("sshd", &login("10.1.2.3"))["country"], Value::from("AT"));
}

/// Runs a program that only reads its configuration.
fn accepts(program: &str, args: &[&str], name: &str) {
    let folder = Folder::new();
    compile(&folder, "DE");
    append(&folder, EVENTS[0].0);
    let configuration = folder.write(name, file(name, &folder));
    let output = Command::new(program).args(args).arg(&configuration).env("PATH", path()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program}: {said:?}");
}

#[test]
#[ignore = "needs vector"]
fn vector_takes_its_file() {
    accepts("vector", &["validate", "--no-environment"], "vector.yaml");
}

#[test]
#[ignore = "needs fluent-bit"]
fn fluent_bit_takes_its_file() {
    accepts("fluent-bit", &["--dry-run", "-c"], "fluent-bit.conf");
}

#[test]
#[ignore = "needs logstash"]
fn logstash_takes_its_file() {
    accepts("logstash", &["--config.test_and_exit", "-f"], "logstash.conf");
}

#[test]
#[ignore = "needs telegraf"]
fn telegraf_takes_its_file() {
    accepts("telegraf", &["config", "check", "--config"], "telegraf.conf");
}

#[test]
fn telegrafs_file_is_toml() {
    let table: toml::Table = read(&format!("{FOLDER}/telegraf.conf")).parse().unwrap();
    let execd = &table["inputs"]["execd"][0];
    assert_eq!(execd["command"].as_array().unwrap().len(), 3);
    assert_eq!(execd["data_format"].as_str(), Some("json"));
}

#[test]
fn the_page_shows_every_file() {
    let shown: Vec<String> =
        blocks(&read("docs/guide/streams.md")).into_iter().map(|block| block.text).collect();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join(FOLDER)).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(shown.contains(&text), "the page has another text than {}", path.display());
        count += 1;
    }
    assert!(count >= 7);
}
