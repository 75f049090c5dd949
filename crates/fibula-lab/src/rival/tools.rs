//! What rivals are looked for and built with.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::external::finished;

/// What rivals are looked for and built with. Nothing is started before somebody asks who is present.
#[derive(Clone)]
pub struct Tools {
    /// The Python interpreter.
    pub python: PathBuf,
    /// The command `go`.
    pub go: PathBuf,
    /// Where programs are kept that have to be compiled. Where there is no such place, they are absent.
    pub folder: Option<PathBuf>,
    /// Bytes that this program's allocator has handed out, where it counts them.
    pub heap: Option<fn() -> usize>,
    /// Told what takes long.
    pub say: Arc<dyn Fn(&str)>,
    found: Arc<Found>,
}

/// What was found, once it was looked for.
#[derive(Default)]
struct Found {
    modules: OnceLock<Result<Vec<String>, String>>,
    go: OnceLock<Result<String, String>>,
}

impl Default for Tools {
    /// Those of the search path, and no place for programs.
    fn default() -> Self {
        Self {
            python: "python3".into(),
            go: "go".into(),
            folder: None,
            heap: None,
            say: Arc::new(|_| ()),
            found: Arc::default(),
        }
    }
}

/// What tools may take to say that they are there.
const LOOK: Duration = Duration::from_secs(30);

impl Tools {
    /// Which of these modules the interpreter has. The error says why it has none at all.
    pub(super) fn modules(&self, names: &[&str]) -> Result<Vec<String>, String> {
        let found = self.found.modules.get_or_init(|| {
            let mut command = Command::new(&self.python);
            // Found, not imported: NumPy alone would take longer than a small benchmark.
            command
                .args(["-c", "import importlib.util as u, sys\nprint(*filter(u.find_spec, sys.argv[1:]))"]);
            command.args(names);
            let printed = finished(command, LOOK)?;
            Ok(printed.split_whitespace().map(str::to_owned).collect())
        });
        found.clone()
    }

    /// The version of `go`. The error says why there is none.
    pub(super) fn go_version(&self) -> Result<String, String> {
        let look = || {
            let mut command = Command::new(&self.go);
            command.arg("version");
            finished(command, LOOK)
        };
        self.found.go.get_or_init(look).clone()
    }
}
