//! The test machine of devices: every engine on every device against the oracle. `cargo test -p fibula-gpu --test device [NAME]`.
//!
//! The names of its tests are `kind/engine/family/device`. Without a device they are one test that is ignored, with the reason.

mod faults;
mod full;
mod live;
mod real;
mod small;
mod stand_in;
mod support;

use std::process::ExitCode;
use std::sync::Arc;

use fibula_gpu::device::{self, Device};
use libtest_mimic::{Arguments, Completion, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let (devices, absent) = device::all();
    let mut trials = Vec::new();
    for device in devices.into_iter().map(Arc::<dyn Device>::from) {
        trials.extend(small::trials(&device));
        trials.extend(full::trials(&device));
        trials.extend(live::trials(&device));
        trials.extend(real::trials(&device));
    }
    trials.extend(faults::trials());
    trials.push(stand_in::trial());
    for (at, why) in absent.into_iter().enumerate() {
        let name = format!("absent/{at}");
        trials.push(Trial::ignorable_test(name, move || Ok(Completion::ignored_with(why))));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
