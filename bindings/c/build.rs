//! Gives the shared library the name by which programs find it at run time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // A program that was linked with this major version takes any later one of it.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libfibula.so.0");
    }
}
