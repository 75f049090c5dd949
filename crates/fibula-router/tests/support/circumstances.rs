//! The circumstances of a measurement, as `netlab/record.py` notes them.

use std::process::Command;

use serde_json::{Value, json};

/// Returns the load average of the last minute.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Returns a record of figures that says where and when they were measured. `load` is that of before.
pub(crate) fn record(load: f64, figures: &Value) -> Value {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let mut record = json!({
        "what": figures["what"],
        "date": said("date", &["--utc", "+%F"]),
        "commit": said("git", &["describe", "--always", "--dirty"]),
        "processor": processor(),
        "processors": std::thread::available_parallelism().map_or(1, usize::from),
        "load_before": load,
    });
    for (name, figure) in figures.as_object().into_iter().flatten() {
        record[name] = figure.clone();
    }
    record
}

/// Returns the name of the processor, as the system has it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name));
        line.map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    format!("{}, family {}, model {}", field("model name"), field("cpu family"), field("model"))
}
