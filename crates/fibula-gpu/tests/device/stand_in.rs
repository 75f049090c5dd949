//! All tests of a device with a stand-in for the driver of NVIDIA, which `cuda.c` is: the back end's calls and their order are
//! tested where there is no GPU.

use std::path::Path;
use std::process::Command;

use fibula_proof::verdict::Failure;
use libtest_mimic::{Completion, Trial};

pub(crate) fn trial() -> Trial {
    Trial::ignorable_test("stand-in/cuda", || {
        if !cfg!(target_os = "linux") {
            return Ok(Completion::ignored_with("the stand-in is for Linux"));
        }
        let folder = tempfile::tempdir()?;
        let library = folder.path().join("libcuda.so.1");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/cuda.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let built = Command::new(compiler)
            .args(["-O2", "-w", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        match built {
            Ok(status) if status.success() => run(folder.path()),
            Ok(status) => Err(format!("the stand-in does not compile: {status}").into()),
            Err(error) => Ok(Completion::ignored_with(format!("no C compiler: {error}"))),
        }
    })
}

/// Runs the tests of this program whose device is the stand-in.
fn run(folder: &Path) -> Result<Completion, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args(["cuda:0", "--test-threads", "1"])
        .env("LD_LIBRARY_PATH", folder)
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = said.lines().any(|line| line.contains("test result: ok") && !line.contains(" 0 passed"));
    if output.status.success() && passed {
        return Ok(Completion::Completed);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\n{said}{complaint}", output.status).into())
}
