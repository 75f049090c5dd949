//! Compiles `rte_fib.c` twice, with the calls of `fibula_rte_fib.h` and with DPDK's own, and compares what the two programs print.

use std::path::Path;
use std::process::Command;

use crate::{Folder, HERE, libraries, prefix, run, text};

/// Options with which DPDK starts without huge pages, devices or shared files.
const EAL: [&str; 9] = [
    "--no-huge",
    "-m",
    "700",
    "--no-pci",
    "--no-shconf",
    "--no-telemetry",
    "--log-level=*:emergency",
    "--vdev=net_null0",
    "--vdev=net_null1",
];

/// Returns the flags of DPDK.
fn dpdk() -> Vec<String> {
    let found = run(Command::new("pkg-config").args(["--cflags", "--libs", "libdpdk"]));
    text(found).split_whitespace().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs DPDK: .ci/run"]
fn rte_fib_and_this_library_answer_alike() {
    let flags = dpdk();
    let folder = Folder::new("rte-fib");
    let answers = [false, true].map(|is_ours| {
        let program = folder.0.join(if is_ours { "ours" } else { "theirs" });
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"]);
        compiler.arg(Path::new(HERE).join("tests/rte_fib.c")).arg("-o").arg(&program);
        if is_ours {
            compiler.args(["-DOURS", "-I"]).arg(prefix().join("include")).arg("-L").arg(libraries());
            compiler.arg("-lfibula").arg(format!("-Wl,-rpath,{}", libraries().display()));
        }
        run(compiler.args(&flags).arg("-lpthread"));
        text(run(Command::new(program).args(EAL)))
    });
    // A sum, and before it what is wrong.
    let [theirs, ours] = answers.each_ref().map(|answer| answer.trim());
    assert_eq!(theirs.lines().count(), 1, "{theirs}");
    assert_eq!(ours, theirs);
}

/// Two files of a program have the same tables, and C++ takes the header.
#[test]
#[ignore = "needs DPDK and c++: .ci/run"]
fn files_and_languages_share_the_tables_of_rte_fib() {
    let flags = dpdk();
    let folder = Folder::new("rte-fib-shared");
    let one = "#include <fibula_rte_fib.h>\nextern \"C\" int found(void);\nint main() {\n\
               struct rte_fib_conf conf = rte_fib_conf();\nconf.max_routes = 1;\n\
               struct fibula_rte_fib *fib = fibula_rte_fib_create(\"shared\", -1, &conf);\n\
               int is = fib != NULL && found();\nfibula_rte_fib_free(fib);\nreturn is && !found() ? 0 : 1; }\n";
    let two = "#include <fibula_rte_fib.h>\nint found(void);\n\
               int found(void) { return fibula_rte_fib_find_existing(\"shared\") != NULL; }\n";
    let objects = [("c++", "one.cc", one), ("cc", "two.c", two)].map(|(compiler, name, source)| {
        let (path, object) = (folder.0.join(name), folder.0.join(name).with_extension("o"));
        std::fs::write(&path, source).unwrap();
        let mut command = Command::new(compiler);
        command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(prefix().join("include"));
        let cflags = flags.iter().filter(|flag| !flag.starts_with("-l") && !flag.starts_with("-Wl"));
        run(command.args(cflags).arg("-c").arg(&path).arg("-o").arg(&object));
        object
    });
    let program = folder.0.join("shared");
    let mut linker = Command::new("c++");
    linker.args(objects).arg("-o").arg(&program).arg("-L").arg(libraries()).arg("-lfibula");
    run(linker.arg(format!("-Wl,-rpath,{}", libraries().display())).args(&flags).arg("-lpthread"));
    run(&mut Command::new(program));
}
