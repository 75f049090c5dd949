//! Signals that end the command while a file is written: the new file is removed first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use super::aside;

/// Signals that end a process, and that it can act on.
const ENDING: [i32; 5] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU];

/// Handles signals from here on; once for all files.
pub(super) fn handle() -> io::Result<()> {
    static STARTED: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
    let mut started = STARTED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *started {
        return Ok(());
    }
    // With a handler, a write beyond the size limit is an error like that of a full disk; without, it ends the process.
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let ignored = ignored();
    let mut signals = Signals::new(ENDING.into_iter().filter(|&signal| ignored >> (signal - 1) & 1 == 0))?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let _no_other = aside::remove_now();
            // Ends the process as the signal would have: shells and supervisors see which it was.
            let _ = low_level::emulate_default_handler(signal);
        }
    })?;
    *started = true;
    Ok(())
}

/// Returns the signals that are ignored, one bit each. `nohup` and background jobs start commands with ignored signals,
/// which must stay ignored. Known on Linux only.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
