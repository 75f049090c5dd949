//! `fibula router --config`: runs until a signal.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fibula::fib::registry::Engines;
use fibula_router::control::{self, Calls, Flags, Level};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::supervisor::Supervisor;
use super::{check, show};
use crate::failure::Failure;
use crate::messages::Messages;

pub(super) fn run(
    path: &Path,
    (require_devices, takeover): (bool, bool),
    engines: Engines,
    messages: Messages,
) -> Result<ExitCode, Failure> {
    let mut config = check::read(path, engines)?;
    (config.require_devices, config.take_over) = (require_devices, takeover);
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let flags = Flags::default();
    for (signal, flag) in [(SIGTERM, &flags.stop), (SIGINT, &flags.stop), (SIGHUP, &flags.reload)] {
        flag::register(signal, Arc::clone(flag))
            .map_err(|error| Failure::BadInput(format!("signal {signal}: {error}")))?;
    }
    let mut again =
        || check::read(path, engines).map_err(|failure| failure.report().0.unwrap_or_default().into());
    let mut log = |level, text: &str| match level {
        Level::Warning => messages.warning(text),
        Level::Note => messages.note(text),
    };
    let mut supervisor = Supervisor::of_environment();
    let mut notify = |notice| supervisor.notify(notice);
    let calls = Calls { read: &mut again, log: &mut log, notify: &mut notify };
    let ports =
        control::run(config, &folder, &flags, calls).map_err(|error| Failure::BadInput(error.to_string()))?;
    for port in ports {
        messages.note(format_args!("{}: {}", port.port, show::line(&port)));
    }
    Ok(ExitCode::SUCCESS)
}
