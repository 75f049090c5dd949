//! With the feature `dpdk`, builds the shim and finds the library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk();
}

#[cfg(feature = "dpdk")]
fn dpdk() {
    const SHIM: &str = "src/io/dpdk/shim.c";
    const NEEDS: &str =
        "DPDK 22.11 to 25.11 with its headers (Debian: apt-get install libdpdk-dev pkg-config gcc)";
    println!("cargo::rerun-if-changed={SHIM}");
    // Shared libraries: when DPDK starts, it loads the drivers that are installed.
    let found = pkg_config::Config::new().range_version("22.11".."26").probe("libdpdk");
    let library = match found {
        Ok(library) => library,
        Err(error) => {
            println!("cargo::error=the feature 'dpdk' needs {NEEDS}");
            for line in error.to_string().lines().filter(|line| !line.trim().is_empty()) {
                println!("cargo::warning={line}");
            }
            return;
        }
    };
    let mut shim = cc::Build::new();
    shim.file(SHIM).includes(&library.include_paths).std("gnu11").opt_level(3).extra_warnings(true);
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        // What DPDK's headers demand, and Debian's DPDK is compiled for.
        shim.flag("-march=corei7");
    }
    shim.compile("fibula_router_dpdk");
}
