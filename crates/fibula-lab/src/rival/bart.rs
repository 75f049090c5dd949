//! bart, balanced routing tables in Go: `Table` and `Fast`. The program is `rivals/bart/`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fibula::net::Key;

use super::external::{External, LIMIT, finished};
use super::{Source, Tools};

const RIVALS: [&str; 2] = ["bart-table", "bart-fast"];

/// The files of the program, with the version of bart that it needs.
const FILES: [(&str, &str); 4] = [
    ("main.go", include_str!("../../rivals/bart/main.go")),
    ("protocol.go", include_str!("../../rivals/bart/protocol.go")),
    ("go.mod", include_str!("../../rivals/bart/go.mod")),
    ("go.sum", include_str!("../../rivals/bart/go.sum")),
];

/// The longest that compiling may take, with fetching bart.
const COMPILING: Duration = Duration::from_secs(600);

pub(super) fn source<K: Key>(tools: &Tools) -> Source<K> {
    let go = tools.go_version();
    let present = go.is_ok() && tools.folder.is_some();
    let contestant = |name| {
        let tools = tools.clone();
        let start = move || Ok(Command::new(program(&tools)?));
        External { name, isa: "scalar", keys: usize::MAX, limit: LIMIT, start: Arc::new(start) }.contestant()
    };
    Source {
        name: "bart",
        rivals: RIVALS.to_vec(),
        get: match go {
            Ok(_) => "name a folder for compiled programs by FIBULA_RIVALS".to_owned(),
            Err(error) => format!(
                "install Go, https://go.dev/dl ({error}; FIBULA_GO names another); bart is fetched and compiled when it is \
                 first used"
            ),
        },
        contestants: present.then(|| RIVALS.into_iter().map(contestant).collect()),
    }
}

/// Returns the path of the compiled program, which is compiled if it is not there yet.
fn program(tools: &Tools) -> Result<PathBuf, String> {
    let folder = tools.folder.as_deref().ok_or("there is no folder for compiled programs")?;
    let mut hasher = DefaultHasher::new();
    (FILES, tools.go_version()?).hash(&mut hasher);
    // The folder depends on the program's source and on the compiler.
    let folder = folder.join(format!("bart-{:016x}", hasher.finish()));
    let program = folder.join("bart");
    if !program.exists() {
        (tools.say)(&format!("compiling the rival bart with go, once, in {}", folder.display()));
        compile(tools, &folder, &program)?;
    }
    Ok(program)
}

fn compile(tools: &Tools, folder: &Path, program: &Path) -> Result<(), String> {
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| FILES.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text)));
    written.map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    // Renamed once it is complete, so that a half-written program is never run.
    let half = folder.join(format!("bart-{}", std::process::id()));
    let mut command = Command::new(&tools.go);
    command.current_dir(folder).args(["build", "-trimpath", "-o"]).arg(&half).arg(".");
    // Use the installed compiler: Go would fetch another one without asking.
    command.env("GOTOOLCHAIN", "local").env("GOWORK", "off").env("CGO_ENABLED", "0");
    finished(command, COMPILING)?;
    std::fs::rename(&half, program).map_err(|error| format!("cannot write {}: {error}", program.display()))
}
