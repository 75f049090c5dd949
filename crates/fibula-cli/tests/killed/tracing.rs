use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use fibula::file::{self, Contents, Follower, Half, TableFile};
use fibula::net::{NextHop, Route};
use fibula::rib::Rib;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub(super) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, save, path] = &arguments[..]
        && save == "save"
    {
        saves(Path::new(path)).expect("the file can be saved");
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        Trial::ignorable_test("killed/save", || killed(&by_library())),
        Trial::ignorable_test("killed/compile", || killed(&by_command())),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A program that saves [`NEW`] once it has been fed.
struct Program {
    command: fn(&Path) -> Command,
    input: &'static str,
}

fn by_library() -> Program {
    let command = |path: &Path| {
        let mut command = Command::new(std::env::current_exe().expect("the name of this program"));
        command.arg("save").arg(path);
        command
    };
    Program { command, input: "now\n" }
}

fn by_command() -> Program {
    let command = |path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fibula"));
        command.args(["compile", "--quiet", "-", "--output"]).arg(path);
        command
    };
    Program { command, input: "192.0.2.0/24 2\n" }
}

/// The next hop of the one route of the old table, and that of the new one.
const OLD: u32 = 1;
const NEW: u32 = 2;

fn save(path: &Path, id: u32) -> Outcome {
    let mut rib = Rib::<u32>::default();
    rib.insert(Route::new("192.0.2.0/24".parse()?, NextHop::try_from(id)?))?;
    let fib = fibula::fib::registry::find::<u32>("range-btree")?.build(&rib, Default::default())?;
    let mut contents = Contents { v4: Half::new(&*fib, &rib), ..Contents::default() };
    // So much that it is written in several parts.
    for value in 1..=6 {
        contents.values.insert(NextHop::try_from(value)?, vec![id as u8; 400_000]);
    }
    Ok(file::save(path, &contents)?)
}

/// The program that is killed.
fn saves(path: &Path) -> Outcome {
    println!("ready");
    std::io::stdin().read_line(&mut String::new())?;
    save(path, NEW)
}

/// Which table a file is: its routes, its answers and its values have to agree.
fn which(table: &TableFile) -> Outcome<u32> {
    let routes = table.v4.routes.as_ref().ok_or("no routes")?;
    let [route] = routes.iter().collect::<Vec<_>>()[..] else { return Err("not one route".into()) };
    let found = table.v4.fib.as_ref().ok_or("no engine")?.lookup_key(0xc000_0201);
    let value = table.value(route.next_hop).ok_or("no value")?.to_string().into_bytes();
    // The library's have bytes of the number, the command's have its digit.
    let id = value.first().map_or(0, |byte| byte % 16);
    let agree = value.iter().all(|byte| byte % 16 == id);
    if found == Some(route.next_hop) && agree { Ok(id.into()) } else { Err("a wrong answer".into()) }
}

fn killed(program: &Program) -> Result<Completion, Failed> {
    match kills(program) {
        Ok(()) => Ok(Completion::Completed),
        Err(error) => match error.downcast_ref::<Errno>() {
            Some(Errno::EPERM | Errno::ENOSYS) => {
                Ok(Completion::ignored_with("no process may be traced here"))
            }
            _ => Err(error.to_string().into()),
        },
    }
}

fn kills(program: &Program) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.fibula");
    save(&path, OLD)?;
    let mut follower = Follower::open(&path)?;
    let mut killed = [0, 0];
    // How much had been written when the programs were killed.
    let mut parts = BTreeSet::new();
    for stop in 0.. {
        let ended = killed_at(program, &path, stop)?;
        let at = format!("killed at stop {stop}");
        let now = which(&TableFile::open(&path)?).map_err(|error| format!("{at}: {error}"))?;
        follower.poll().map_err(|error| format!("{at}, followed: {error}"))?;
        let followed = which(follower.table()).map_err(|error| format!("{at}, followed: {error}"))?;
        assert_eq!(followed, now, "{at}: the follower has another table");
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.path() != path {
                parts.insert(entry.metadata()?.len());
                fs::remove_file(entry.path())?;
            }
        }
        if ended {
            assert_eq!(now, NEW, "a save that ended by itself");
            break;
        }
        assert!(now == OLD || now == NEW);
        killed[usize::from(now == NEW)] += 1;
        if now == NEW {
            save(&path, OLD)?;
        }
    }
    assert!(killed[0] > 5 && killed[1] > 1, "{killed:?}: kills before and after the new file is there");
    assert!(
        parts.len() > 1 && parts.first() == Some(&0),
        "kills before and after bytes are written: {parts:?}"
    );
    Ok(())
}

/// Starts a program, feeds it, and kills it: at its first stop, or at one of those from when it has made a file. Returns
/// whether it ended by itself before.
fn killed_at(program: &Program, path: &Path, stop: usize) -> Outcome<bool> {
    let mut child = (program.command)(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let pid = Pid::from_raw(child.id().cast_signed());
    match trace(&mut child, pid, program.input, path, stop) {
        Ok(ended) => Ok(ended),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

fn trace(child: &mut Child, pid: Pid, input: &str, path: &Path, stop: usize) -> Outcome<bool> {
    if input == by_library().input {
        BufReader::new(child.stdout.as_mut().ok_or("a pipe")?).read_line(&mut String::new())?;
    }
    ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL)?;
    ptrace::interrupt(pid)?;
    let mut input = Some((child.stdin.take().ok_or("a pipe")?, input));
    let folder = path.parent().ok_or("a folder")?;
    // Stops from when there is a file beside the old one: where it is traced from differs from run to run.
    let mut stops = 0;
    loop {
        let signal = match waitpid(pid, None)? {
            WaitStatus::Exited(_, 0) => return Ok(true),
            WaitStatus::PtraceSyscall(_) => {
                stops += usize::from(stops > 0 || fs::read_dir(folder)?.count() > 1);
                None
            }
            WaitStatus::PtraceEvent(..) => {
                // From here on the process is traced. It gets its input, and then the end of it.
                if let Some((mut pipe, input)) = input.take() {
                    pipe.write_all(input.as_bytes())?;
                }
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            other => return Err(format!("{other:?} at stop {stops}").into()),
        };
        if stops == stop {
            kill(pid, Signal::SIGKILL)?;
            return match waitpid(pid, None)? {
                WaitStatus::Signaled(_, Signal::SIGKILL, _) => Ok(false),
                other => Err(format!("{other:?} of a process that was killed").into()),
            };
        }
        ptrace::syscall(pid, signal)?;
    }
}
