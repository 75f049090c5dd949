//! The types of `fibula.h` as C compilers lay them out, against a committed description, `fibula.abi`: programs are not compiled again when
//! the library is replaced.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::{Folder, HERE, compile, declared, run};

/// Compiles a library of C whose one variable has the type of every call, because a call of Rust has none that `abidiff` could compare.
/// `FIBULA_ABI=write` rewrites the dump. A change that removes or alters a type needs a new soname.
#[test]
#[ignore = "needs abidiff: .ci/run"]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn the_types_of_the_header_are_as_before() {
    let folder = Folder::new("abi");
    let mut source = "#include <fibula.h>\nconst struct fibula_calls {\n".to_owned();
    for name in declared() {
        writeln!(source, "    __typeof__(&{name}) {name};").unwrap();
    }
    source += "    fibula_error *error;\n    fibula_change *change;\n    fibula_column *column;\n} *fibula_calls;\n";
    let (file, library) = (folder.0.join("abi.c"), folder.0.join("abi.so"));
    std::fs::write(&file, source).unwrap();
    compile("cc", &["-std=gnu11", "-Wno-pedantic", "-shared", "-fPIC", "-O0"], &file, &library, true);
    let before = Path::new(HERE).join("tests/fibula.abi");
    if std::env::var_os("FIBULA_ABI").is_some_and(|value| value == "write") {
        let mut abidw = Command::new("abidw");
        abidw.args(["--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--out-file"]);
        run(abidw.arg(&before).arg(&library));
    }
    run(Command::new("abidiff").args(["--no-show-locs", "--fail-no-debug-info"]).arg(&before).arg(&library));
}
