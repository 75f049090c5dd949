//! Hands the compiler's version and options to the program, for the records: a benchmark must be able to say
//! what compiled it, and only the build knows. With the feature `dpdk`, builds the shim and finds the library; with the
//! feature `plain`, builds PlanB in C++.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    for (name, value) in [
        ("FIBULA_RUSTC", version.unwrap_or_default()),
        ("FIBULA_TARGET", variable("TARGET")),
        ("FIBULA_PROFILE", variable("PROFILE")),
        ("FIBULA_OPT_LEVEL", variable("OPT_LEVEL")),
        ("FIBULA_TARGET_FEATURES", variable("CARGO_CFG_TARGET_FEATURE")),
    ] {
        println!("cargo::rustc-env={name}={value}");
    }
    // A packaged program is far from its sources, and has the same bytes wherever they were.
    println!("cargo::rerun-if-env-changed=FIBULA_PACKAGED");
    if std::env::var_os("FIBULA_PACKAGED").is_none() {
        println!("cargo::rustc-env=FIBULA_CHECKOUT={}/../..", variable("CARGO_MANIFEST_DIR"));
    }
    #[cfg(feature = "dpdk")]
    dpdk::build();
    #[cfg(feature = "plain")]
    plain::build();
}

#[cfg(feature = "plain")]
mod plain {
    const FOLDER: &str = "src/rival/plain";

    /// The loops are compiled once for each set, with all that this machine has except larger vectors.
    #[cfg(target_arch = "x86_64")]
    const SETS: &[(&str, &[&str])] = &[
        ("scalar", &["-mno-avx", "-mno-sse4.2"]),
        ("avx2", &["-mavx2", "-mno-avx512f"]),
        ("avx512", &["-mavx512f", "-mavx512dq"]),
    ];
    #[cfg(not(target_arch = "x86_64"))]
    const SETS: &[(&str, &[&str])] = &[("scalar", &[])];

    pub(super) fn build() {
        for file in ["planb.h", "build.cc", "lookup.cc"] {
            println!("cargo::rerun-if-changed={FOLDER}/{file}");
        }
        let with = |file: &str, flags: &[&str]| {
            let mut unit = cc::Build::new();
            unit.cpp(true).std("c++17").file(format!("{FOLDER}/{file}"));
            // Whatever the profile is: this is measured.
            unit.opt_level(3).debug(false).extra_warnings(true).flag("-march=native");
            // Left alone, g++ 12 gathers positions and keys of many lanes in vectors, and takes them apart again for each
            // use: 16 keys at a time were a third slower.
            for flag in
                ["-mtune=generic", "-fno-tree-vectorize", "-fno-tree-slp-vectorize"].iter().chain(flags)
            {
                unit.flag_if_supported(flag);
            }
            unit
        };
        for (set, flags) in SETS {
            let mut unit = with("lookup.cc", flags);
            unit.define("SET", *set).compile(&format!("fibula_plain_{set}"));
        }
        with("build.cc", &[]).compile("fibula_plain");
    }
}

#[cfg(feature = "dpdk")]
mod dpdk {
    /// The archives that the shim needs. Static ones: linked with shared ones, DPDK loads every driver it finds when
    /// it starts. Those that register themselves when loaded are taken whole.
    const WHOLE: &[&str] = &["rte_mempool_ring", "rte_eal"];
    const PARTS: &[&str] = &[
        "rte_fib",
        "rte_rib",
        "rte_lpm",
        "rte_hash",
        "rte_rcu",
        "rte_mempool",
        "rte_ring",
        "rte_net",
        "rte_mbuf",
        "rte_telemetry",
        "rte_kvargs",
    ];
    /// Those that only later versions have.
    const LATER: &[&str] = &["rte_pmu", "rte_argparse", "rte_log"];
    const SYSTEM: &[&str] = &["bsd", "numa", "m", "dl", "pthread"];

    /// Lookups of four keys are written for x86-64.
    const NEEDS: &str = "x86-64 and DPDK 22.11 to 25.11 with its headers (Debian: apt-get install libdpdk-dev pkg-config gcc)";

    pub(super) fn build() {
        const SHIM: &str = "src/rival/dpdk/shim.c";
        println!("cargo::rerun-if-changed={SHIM}");
        if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch != "x86_64") {
            println!("cargo::error=the feature 'dpdk' needs {NEEDS}");
            return;
        }
        let found =
            pkg_config::Config::new().range_version("22.11".."26").cargo_metadata(false).probe("libdpdk");
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
        // What DPDK's headers demand, and Debian's DPDK is compiled for.
        shim.flag("-march=corei7");
        shim.compile("fibula_dpdk");
        for path in &library.link_paths {
            println!("cargo::rustc-link-search=native={}", path.display());
        }
        for name in WHOLE {
            println!("cargo::rustc-link-lib=static:+whole-archive,-bundle={name}");
        }
        for name in PARTS {
            println!("cargo::rustc-link-lib=static:-bundle={name}");
        }
        let folder = pkg_config::get_variable("libdpdk", "libdir").unwrap_or_default();
        for name in
            LATER.iter().filter(|name| std::path::Path::new(&folder).join(format!("lib{name}.a")).exists())
        {
            println!("cargo::rustc-link-lib=static:-bundle={name}");
        }
        for name in SYSTEM {
            println!("cargo::rustc-link-lib={name}");
        }
    }
}
