//! Runs the test machine: `cargo test -p fibula-proof --test machine [NAME]`.

fn main() -> std::process::ExitCode {
    let arguments = libtest_mimic::Arguments::from_args();
    let trials = match fibula_proof::trials::all() {
        Ok(trials) => trials,
        Err(failure) => {
            eprintln!("the test machine cannot start: {}", failure.message().unwrap_or("unknown reason"));
            return std::process::ExitCode::FAILURE;
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        println!("{}\n", fibula_proof::trials::summary());
    }
    conclusion.exit_code()
}
