//! The tools that rivals are found and built with.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::external::finished;

/// The tools that rivals are found and built with. No program is started before [`sources`](super::sources) is
/// called.
#[derive(Clone)]
pub struct Tools {
    /// The Python interpreter.
    pub python: PathBuf,
    /// The command `go`.
    pub go: PathBuf,
    /// The folder for programs that have to be compiled. Without it those rivals are absent.
    pub folder: Option<PathBuf>,
    /// Returns the bytes that this program's allocator has handed out, if it counts them.
    pub heap: Option<fn() -> usize>,
    /// Called with a message before something that takes long.
    pub say: Arc<dyn Fn(&str)>,
    found: Arc<LocatedTools>,
}

/// The results of looking, kept for later calls.
#[derive(Default)]
struct LocatedTools {
    modules: OnceLock<Result<Vec<String>, String>>,
    go: OnceLock<Result<String, String>>,
}

impl Default for Tools {
    /// Returns the tools on the search path, and no folder for programs.
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

/// The longest that a tool may take to answer.
const LOOK: Duration = Duration::from_secs(30);

impl Tools {
    /// Returns which of these modules the interpreter has. The error says why it has none.
    pub(super) fn modules(&self, names: &[&str]) -> Result<Vec<String>, String> {
        let found = self.found.modules.get_or_init(|| {
            let mut command = Command::new(&self.python);
            // Modules are found, not imported: importing NumPy takes longer than a small benchmark.
            command
                .args(["-c", "import importlib.util as u, sys\nprint(*filter(u.find_spec, sys.argv[1:]))"]);
            command.args(names);
            let printed = finished(command, LOOK)?;
            Ok(printed.split_whitespace().map(str::to_owned).collect())
        });
        found.clone()
    }

    /// Returns the version of `go`. The error says why there is none.
    pub(super) fn go_version(&self) -> Result<String, String> {
        let look = || {
            let mut command = Command::new(&self.go);
            command.arg("version");
            finished(command, LOOK)
        };
        self.found.go.get_or_init(look).clone()
    }
}
