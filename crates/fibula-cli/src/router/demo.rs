//! `fibula router demo`: two hosts and a router in network namespaces.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibula_router::control::client;
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};

use super::args::RouterShowArgs;
use super::show;
use crate::failure::Failure;
use crate::messages::Messages;

const CONFIG: &str = r#"
socket = "SOCKET"

[[interface]]
name = "left"
device = "left"

[[interface]]
name = "right"
device = "right"

[[table]]
file = "routes.txt"
"#;

/// Prefixes beyond the right host, as a table file has them.
fn routes() -> String {
    let v4 =
        (0..100_000u32).map(|n| format!("{}.{}.{}.0/24 10.91.2.2\n", 20 + (n >> 16), n >> 8 & 255, n & 255));
    let v6 = (0..20_000u32).map(|n| format!("2001:{:x}:{:x}::/48 fd91:2::2\n", 0x4000 + (n >> 8), n & 255));
    v4.chain(v6).collect()
}

/// Everything that the demo has made; removed when dropped.
struct Network {
    names: [String; 3],
    folder: PathBuf,
    router: Option<Child>,
    interrupted: Arc<AtomicBool>,
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(mut router) = self.router.take() {
            let _ = Command::new("kill").args(["-TERM", &router.id().to_string()]).status();
            let _ = router.wait();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Network {
    fn go_on(&self) -> Result<(), Failure> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Failure::BadInput("interrupted".to_owned())),
            false => Ok(()),
        }
    }

    fn ip(&self, command: &str) -> Result<(), Failure> {
        self.go_on()?;
        let [a, r, b] = &self.names;
        let command = command.replace("{a}", a).replace("{r}", r).replace("{b}", b);
        let output = Command::new("ip").args(command.split(' ')).output();
        let output = output.map_err(|error| {
            Failure::NotAvailable(format!("'ip' cannot be run: {error}; install iproute2"))
        })?;
        if output.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Failure::NotAvailable(format!("ip {command}: {reason} (the demo needs root)")))
    }

    fn build(&self) -> Result<(), Failure> {
        for name in &self.names {
            self.ip(&format!("netns add {name}"))?;
            for setting in ["conf.all.accept_dad=0", "conf.default.accept_dad=0"] {
                self.ip(&format!("netns exec {name} sysctl -qw net.ipv6.{setting}"))?;
            }
            self.ip(&format!("-n {name} link set lo up"))?;
        }
        for command in [
            "link add eth netns {a} type veth peer name left netns {r}",
            "link add eth netns {b} type veth peer name right netns {r}",
            "-n {r} address add 10.91.1.1/24 dev left",
            "-n {r} address add 10.91.2.1/24 dev right",
            "-n {r} address add fd91:1::1/64 dev left nodad",
            "-n {r} address add fd91:2::1/64 dev right nodad",
            "-n {a} address add 10.91.1.2/24 dev eth",
            "-n {a} address add fd91:1::2/64 dev eth nodad",
            "-n {b} address add 10.91.2.2/24 dev eth",
            "-n {b} address add fd91:2::2/64 dev eth nodad",
            "-n {b} address add 20.1.2.3/32 dev lo",
            "-n {b} address add 2001:4001:2::3/128 dev lo nodad",
            "-n {r} link set left up",
            "-n {r} link set right up",
            "-n {a} link set eth up",
            "-n {b} link set eth up",
            "-n {a} route add default via 10.91.1.1",
            "-n {b} route add default via 10.91.2.1",
            "-n {a} -6 route add default via fd91:1::1",
            "-n {b} -6 route add default via fd91:2::1",
        ] {
            self.ip(command)?;
        }
        Ok(())
    }

    fn start(&mut self, socket: &Path) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|error| Failure::reading("this program", &error))?;
        let router = Command::new("ip")
            .args(["netns", "exec", &self.names[1]])
            .arg(program)
            .args(["router", "--quiet", "--config"])
            .arg(self.folder.join("router.toml"))
            .spawn();
        self.router = Some(router.map_err(|error| Failure::NotAvailable(format!("the router: {error}")))?);
        for _ in 0..300 {
            if client::stats(socket).is_ok() {
                return Ok(());
            }
            let ended = self.router.as_mut().is_some_and(|router| !matches!(router.try_wait(), Ok(None)));
            if ended || self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(Failure::NotAvailable(
            "the router did not start: run 'fibula router doctor', which lists missing requirements"
                .to_owned(),
        ))
    }

    fn ping(&self, address: &str) -> Result<bool, Failure> {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.names[0], "ping", "-n", "-c", "5", "-i", "0.2", "-W", "2", address])
            .output()
            .map_err(|error| Failure::NotAvailable(format!("'ip' cannot be run: {error}")))?;
        self.go_on()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line =
            text.lines().find(|line| line.contains("received")).unwrap_or("no ping: install iputils-ping");
        println!("ping {address}: {line}");
        Ok(output.status.success() && !text.contains("DUP"))
    }
}

pub(super) fn run(messages: Messages) -> Result<ExitCode, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| Failure::NotAvailable(format!("signals: {error}")))?;
    }
    let id = std::process::id();
    let folder = std::env::temp_dir().join(format!("fibula-demo-{id}"));
    let names = ["a", "r", "b"].map(|name| format!("fibula-demo-{id}-{name}"));
    let mut network = Network { names, folder: folder.clone(), router: None, interrupted };
    let socket = folder.join("socket");
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join("routes.txt"), routes()))
        .and_then(|()| {
            let config = CONFIG.replace("SOCKET", &socket.display().to_string());
            std::fs::write(folder.join("router.toml"), config)
        })
        .map_err(|error| Failure::reading(&folder.display().to_string(), &error))?;
    messages.note("host 10.91.1.2 -- router, 120,000 routes -- host 10.91.2.2, and 20.1.2.3 beyond it");
    network.build()?;
    network.start(&socket)?;
    let mut good = true;
    for address in ["10.91.2.2", "20.1.2.3", "fd91:2::2", "2001:4001:2::3"] {
        good &= network.ping(address)?;
    }
    std::io::stdout().flush()?;
    show::run(&RouterShowArgs { socket, json: false, watch: false }, show::What::Stats)?;
    drop(network);
    if good {
        return Ok(ExitCode::SUCCESS);
    }
    messages.warning("not every ping was answered exactly once");
    Ok(crate::failure::code::NOTHING_FOUND.into())
}
