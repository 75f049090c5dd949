//! Compiles C programs against the header and the library, and runs them. The examples are tests too. `tests/calls.c` prints nothing if
//! every call answers as it should.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use engine::fib::registry::{self, Engine};
use engine::fib::{self, WithLength};
use engine::file::{self, ColumnBuilder, ColumnType, ColumnValue, Contents, Half};
use engine::memory::Limits;
use engine::net::{IpPrefix, Key, NextHop};
use engine::rib::{DualRib, Rib};

mod abi;
mod contract;
mod rte_fib;

/// The folder of this crate.
const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Libraries of the system that a program with the archive needs: those of `Libs.private` in fibula.pc.in.
const PRIVATE: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lrt", "-lgcc_s"];

/// Variables of a library that is built already, as the scheduled part under sanitizers has it: its folder, and options that programs
/// with it are compiled with.
const BUILT: &str = "FIBULA_C_BUILT";
const OPTIONS: &str = "FIBULA_C_OPTIONS";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("fibula-c-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The prefix into which the library is built and installed, by the first test that needs it: cargo builds nothing that no Rust
/// program links.
fn prefix() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        // This program is in `target/PROFILE/deps`.
        let program = std::env::current_exe().unwrap();
        let folder = program.ancestors().nth(2).unwrap();
        let built = if let Some(built) = std::env::var_os(BUILT) {
            PathBuf::from(built)
        } else {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "--quiet", "--package", "fibula-c", "--target-dir"])
                .arg(folder.parent().unwrap());
            if folder.ends_with("release") {
                cargo.arg("--release");
            }
            run(cargo.current_dir(HERE));
            folder.to_owned()
        };
        let prefix = built.join("c-library");
        let mut install = Command::new(Path::new(HERE).join("install"));
        install.env_remove("DESTDIR").arg("--prefix").arg(&prefix).arg("--from").arg(&built);
        run(&mut install);
        prefix
    })
}

fn libraries() -> PathBuf {
    prefix().join("lib")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    output
}

fn text(output: Output) -> String {
    String::from_utf8(output.stdout).unwrap()
}

/// Compiles a source into a program that uses the shared library, or the archive.
fn compile(compiler: &str, options: &[&str], source: &Path, program: &Path, shared: bool) {
    let libraries = libraries();
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-g"]).args(options);
    command.args(std::env::var(OPTIONS).unwrap_or_default().split_whitespace());
    command.arg("-I").arg(prefix().join("include")).arg(source).arg("-o").arg(program);
    if shared {
        command.arg(format!("-L{}", libraries.display())).arg("-lfibula").arg("-lpthread");
        command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    } else {
        command.arg(libraries.join("libfibula.a")).args(PRIVATE);
    }
    run(&mut command);
}

fn example(name: &str, shared: bool) -> (Folder, PathBuf) {
    let folder = Folder::new(&format!("{name}-{shared}"));
    let program = folder.0.join(name);
    compile(
        "cc",
        &["-std=c11", "-O1"],
        &Path::new(HERE).join(format!("examples/{name}.c")),
        &program,
        shared,
    );
    (folder, program)
}

#[test]
fn the_example_of_lookups() {
    for shared in [true, false] {
        let (_folder, program) = example("lookup", shared);
        let expected = "192.0.2.1 amsterdam\n192.0.2.200 berlin\n10.1.2.3 lan\n203.0.113.1 no route\n\
                        2001:db8::1 no route\n";
        assert_eq!(text(run(&mut Command::new(program))), expected);
    }
}

#[test]
fn the_example_of_a_live_table() {
    let (_folder, program) = example("live", true);
    assert_eq!(text(run(&mut Command::new(program))), "0 wrong answers, then 1000\n");
}

#[test]
fn the_example_of_bursts() {
    let (_folder, program) = example("burst", true);
    assert_eq!(text(run(&mut Command::new(program))), BURSTS);
}

/// In each standard that `fibula.hpp` is for.
#[test]
#[ignore = "needs c++: .ci/run"]
fn the_example_in_cpp() {
    let folder = Folder::new("cpp");
    let expected = "1\n2\n0\n7 7\ncode -7: host bits set after /8; did you mean 10.0.0.0/8?\n";
    for standard in ["c++11", "c++17", "c++20"] {
        let program = folder.0.join(standard);
        let source = Path::new(HERE).join("examples/table.cc");
        compile("c++", &[&format!("-std={standard}"), "-O1"], &source, &program, true);
        assert_eq!(text(run(&mut Command::new(program))), expected);
    }
}

/// Each allocation of each call is refused in turn: the interposed functions are those of the GNU C library.
#[test]
#[cfg(target_env = "gnu")]
fn a_call_that_memory_refuses_has_a_code_and_leaves_nothing() {
    let folder = Folder::new("memory");
    let program = folder.0.join("memory");
    let source = Path::new(HERE).join("tests/memory.c");
    compile("cc", &["-std=gnu11", "-O1", "-Wno-pedantic"], &source, &program, true);
    assert_eq!(text(run(Command::new(program).arg(&folder.0))), "");
}

/// Compiles `tests/calls.c`. Returns the program and its arguments: a folder and a file, with the files that it reads.
fn calls(folder: &Folder, options: &[&str]) -> (PathBuf, Vec<PathBuf>) {
    let (program, file) = (folder.0.join("calls"), folder.0.join("lengths.fibula"));
    compile("cc", options, &Path::new(HERE).join("tests/calls.c"), &program, true);
    with_lengths(&file);
    with_every_engine(&folder.0);
    (program, vec![folder.0.clone(), file])
}

/// The C side of every call under the sanitizers of the C compiler; `.ci/scheduled` has the library under its own.
#[test]
fn every_call_under_sanitizers() {
    let folder = Folder::new("sanitizers");
    let options = ["-std=c99", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let (program, arguments) = calls(&folder, &options);
    assert_eq!(text(run(Command::new(program).args(arguments))), "");
}

/// Another process replaces the file while the example follows it.
#[test]
fn the_example_of_a_file_that_is_followed() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let (folder, program) = example("follow", true);
    let writer = folder.0.join("writer");
    compile("cc", &["-std=c99"], &Path::new(HERE).join("tests/writer.c"), &writer, true);
    let file = folder.0.join("table.fibula");
    let write = |id: &str| drop(run(Command::new(&writer).arg(&file).arg(id)));
    write("7");
    let mut child = Command::new(program)
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut line = || {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(), "7 mapped\n");
    to.write_all(b"\n").unwrap();
    assert_eq!(line(), "7 mapped\n");
    write("8");
    to.write_all(b"\n").unwrap();
    assert_eq!(line(), "8 mapped, new\n");
    // Damage is reported, and the table that was there goes on.
    let damaged = folder.0.join("damaged");
    std::fs::write(&damaged, b"nothing of ours").unwrap();
    std::fs::rename(&damaged, &file).unwrap();
    to.write_all(b"\n").unwrap();
    assert_eq!(line(), "8 mapped\n");
    drop(to);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && err.contains("not a Fibula table file"), "{err}");
}

/// All calls, good ones and bad ones.
#[test]
fn every_call() {
    let folder = Folder::new("calls");
    let (program, arguments) = calls(&folder, &["-std=c99", "-O1"]);
    assert_eq!(text(run(Command::new(&program).args(&arguments))), "");
}

#[test]
#[ignore = "needs valgrind: .ci/run"]
fn every_call_under_valgrind() {
    let folder = Folder::new("calls-valgrind");
    let (program, arguments) = calls(&folder, &["-std=c99", "-O1"]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"]);
    assert_eq!(text(run(valgrind.arg(&program).args(&arguments))), "");
}

fn arrow(folder: &Folder) -> PathBuf {
    let program = folder.0.join("arrow");
    let options = ["-std=c99", "-O1", "-D_POSIX_C_SOURCE=200809L"];
    compile("cc", &options, &Path::new(HERE).join("tests/arrow.c"), &program, true);
    program
}

#[test]
fn random_arrays_of_arrow() {
    let folder = Folder::new("arrow");
    let program = arrow(&folder);
    assert_eq!(text(run(Command::new(program).args(["60", "1", "20000"]))), "20000 arrays\n");
}

/// Valgrind reports reads of the library beyond the end of a buffer.
#[test]
#[ignore = "needs valgrind: .ci/run"]
fn random_arrays_of_arrow_under_valgrind() {
    let folder = Folder::new("arrow-valgrind");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--error-exitcode=9", "-q"]).arg(arrow(&folder)).args(["600", "20001", "300"]);
    assert_eq!(text(run(&mut valgrind)), "300 arrays\n");
}

/// The checked library refuses misuse, and answers right calls as the normal one does.
#[test]
#[ignore = "compiles the library once more: .ci/run"]
fn handles_that_were_freed_or_that_two_threads_use() {
    let folder = Folder::new("checked");
    let built = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("c-checked");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "fibula-c", "--features", "checked", "--target-dir"]);
    run(cargo.arg(&built).current_dir(HERE));
    let mut install = Command::new(Path::new(HERE).join("install"));
    install.env_remove("DESTDIR").arg("--prefix").arg(&folder.0).arg("--from").arg(libraries());
    run(install.arg("--checked").arg(built.join("debug")));
    let checked = folder.0.join("lib/fibula-checked");
    let misuse = folder.0.join("misuse");
    compile("cc", &["-std=c11", "-O1"], &Path::new(HERE).join("tests/checked.c"), &misuse, true);
    let right = calls(&folder, &["-std=c99", "-O1"]);
    for (program, arguments) in [(misuse, Vec::new()), right] {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", &checked).args(arguments);
        assert_eq!(text(run(&mut command)), "", "{}", program.display());
    }
}

/// Writes a file that knows the lengths of matched prefixes, as `fibula compile --with-length` does.
fn with_lengths(path: &Path) {
    let mut ribs = DualRib::default();
    for (prefix, id) in [("10.0.0.0/8", 1), ("10.1.0.0/16", 1), ("2001:db8::/32", 2)] {
        ribs.insert(prefix.parse::<IpPrefix>().unwrap(), NextHop::new(id).unwrap()).unwrap();
    }
    let (v4, v6) = (registry::find("dir-17-bitmap").unwrap(), registry::find("dir-btree").unwrap());
    let v4 = WithLength::build(&v4, &ribs.v4, Limits::default()).unwrap();
    let v6 = WithLength::build(&v6, &ribs.v6, Limits::default()).unwrap();
    let mut asn = ColumnBuilder::new("asn", ColumnType::U32);
    [64_500, 64_501].into_iter().for_each(|number| asn.push(Some(ColumnValue::U32(number))).unwrap());
    let asn = asn.finish();
    let mut contents = Contents { columns: vec![&asn], ..Contents::default() };
    contents.v4.fib = Some(&v4);
    contents.v6.fib = Some(&v6);
    file::save(path, &contents).unwrap();
}

/// Writes files with each engine that files can hold, those which the library lacks too. A line of the file `engines` has a family and a
/// name.
fn with_every_engine(folder: &Path) {
    let mut ribs = DualRib::default();
    for prefix in ["10.0.0.0/8", "2001:db8::/32"] {
        ribs.insert(prefix.parse::<IpPrefix>().unwrap(), NextHop::new(1).unwrap()).unwrap();
    }
    let v4 = engine_files(folder, &ribs.v4, |v4| Contents { v4, ..Contents::default() });
    let v6 = engine_files(folder, &ribs.v6, |v6| Contents { v6, ..Contents::default() });
    std::fs::write(folder.join("engines"), v4 + &v6).unwrap();
}

/// Writes `NAME.fibula` with the routes, and `NAME-alone.fibula` without them. Returns the lines of the list.
fn engine_files<K: Key>(folder: &Path, rib: &Rib<K>, contents: fn(Half<'_, K>) -> Contents<'_>) -> String {
    let mut lines = String::new();
    for engine in fib::engines::<K>().into_iter().filter(Engine::is_saved) {
        let built = engine.build(rib, Limits::default()).unwrap();
        let alone = Half { fib: Some(&*built), routes: None };
        for (ending, half) in [("", Half::new(&*built, rib)), ("-alone", alone)] {
            file::save(folder.join(format!("{}{ending}.fibula", engine.name)), &contents(half)).unwrap();
        }
        lines += &format!("{} {}\n", if K::BITS == 32 { 4 } else { 6 }, engine.name);
    }
    lines
}

#[test]
fn the_header_is_c_of_every_year() {
    the_header_compiles("cc", "c", &["c99", "c11", "c17"]);
}

#[test]
#[ignore = "needs c++: .ci/run"]
fn the_header_is_cpp_of_every_year() {
    the_header_compiles("c++", "cc", &["c++11", "c++17", "c++20"]);
}

fn the_header_compiles(compiler: &str, suffix: &str, standards: &[&str]) {
    let folder = Folder::new(&format!("header-{suffix}"));
    let source = folder.0.join(format!("header.{suffix}"));
    std::fs::write(&source, "#include <fibula.h>\nint main(void) { return fibula_version() == 0; }\n")
        .unwrap();
    for standard in standards {
        let program = folder.0.join(format!("{compiler}-{standard}"));
        compile(compiler, &[&format!("-std={standard}")], &source, &program, true);
        run(&mut Command::new(program));
    }
}

/// The output of the example of bursts.
const BURSTS: &str = "dropped 0, port 1 16, port 2 16\n";

/// As the guide says it.
#[test]
#[ignore = "needs pkg-config: .ci/run"]
fn pkg_config_finds_the_library() {
    let folder = Folder::new("pkg-config");
    let source = Path::new(HERE).join("examples/burst.c");
    let pkg_config = |option: &str| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", libraries().join("pkgconfig")).args(option.split(' ')).arg("fibula");
        text(run(&mut command)).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let version = pkg_config("--modversion");
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);
    let program = folder.0.join("burst");
    run(Command::new("cc").arg(&source).args(pkg_config("--cflags --libs")).arg("-o").arg(&program));
    assert_eq!(text(run(Command::new(&program).env("LD_LIBRARY_PATH", libraries()))), BURSTS);
    // Statically, with the libraries of the system that Libs.private names.
    let archive = libraries().join("libfibula.a");
    let private =
        pkg_config("--static --libs").into_iter().filter(|word| word != "-lfibula").collect::<Vec<_>>();
    let cflags = pkg_config("--cflags");
    let alone = folder.0.join("alone");
    run(Command::new("cc").arg(&source).args(cflags).arg(archive).args(private).arg("-o").arg(&alone));
    assert_eq!(text(run(&mut Command::new(alone))), BURSTS);
}

/// As the guide says it.
#[test]
#[ignore = "needs cmake: .ci/run"]
fn cmake_finds_the_library() {
    let folder = Folder::new("cmake");
    let list = "cmake_minimum_required(VERSION 3.10)\nproject(burst C)\nfind_package(fibula REQUIRED)\n\
                add_executable(burst burst.c)\ntarget_link_libraries(burst fibula::fibula)\n";
    std::fs::write(folder.0.join("CMakeLists.txt"), list).unwrap();
    std::fs::copy(Path::new(HERE).join("examples/burst.c"), folder.0.join("burst.c")).unwrap();
    let build = folder.0.join("build");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&folder.0).arg("-B").arg(&build);
    run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    run(Command::new("cmake").arg("--build").arg(&build));
    assert_eq!(text(run(&mut Command::new(build.join("burst")))), BURSTS);
}

/// The library exports what the header declares, and nothing else.
#[test]
fn the_symbols_are_those_of_the_header() {
    let listed =
        text(run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libfibula.so"))));
    let mut exported: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let header = declared();
    let mut declared: Vec<&str> = header.iter().map(String::as_str).collect();
    declared.sort_unstable();
    assert_eq!(exported, declared);
}

/// The calls that the header declares.
fn declared() -> Vec<String> {
    let header = std::fs::read_to_string(format!("{HERE}/include/fibula.h")).unwrap();
    header
        .lines()
        .filter(|line| {
            !line.starts_with([' ', '/', '#']) && !line.starts_with("static") && line.contains('(')
        })
        .filter_map(|line| line[..line.find('(')?].split([' ', '*']).next_back())
        .filter(|name| name.starts_with("fibula_"))
        .map(str::to_owned)
        .collect()
}
