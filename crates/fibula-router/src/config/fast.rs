//! `fast = true`, with the rest of the configuration: all that a program in the kernel cannot do is refused here, by name.

use fibula::fib::registry;

use super::file::File;
use super::read::Text;
use super::{Backend, Config, ConfigError, XdpMode, release};

/// The engines that the program looks up in.
const ENGINES: [&str; 2] = ["dir-18-lines", "dir-btree"];
/// Most VRFs with fast interfaces: a program may have 64 maps, and a VRF has nine.
pub(crate) const VRFS: usize = 4;
/// Most ports: the program has their numbers in one byte.
pub(crate) const PORTS: usize = 256;

/// Refuses settings that fast interfaces cannot have, and sets the engine that their program looks up in.
pub(super) fn check(text: &Text<'_>, file: &File, config: &mut Config) -> Result<(), ConfigError> {
    let lines = file.interface.iter().zip(&config.interfaces);
    let fast: Vec<_> = lines.filter(|(_, line)| line.backend.is_fast()).collect();
    let Some(place) = fast.iter().find_map(|(line, _)| line.fast.as_ref()) else { return Ok(()) };
    let refuse = |reason: String| Err(text.error(place, format!("fast: {reason}")));
    if config.bridge {
        return refuse("not in a bridge, which has no routes".into());
    }
    if cfg!(target_endian = "big") {
        return refuse("not on big-endian machines".into());
    }
    let mut vrfs: Vec<usize> = fast.iter().map(|(_, line)| line.vrf).collect();
    vrfs.sort_unstable();
    vrfs.dedup();
    if vrfs.len() > VRFS {
        return refuse(format!("in {} VRFs, and the program has room for {VRFS}", vrfs.len()));
    }
    if config.interfaces.len() > PORTS {
        return refuse(format!("with at most {PORTS} interfaces"));
    }
    let is_native = |line: &super::Interface| {
        matches!(line.backend, Backend::Xdp { mode: XdpMode::Native | XdpMode::Auto, fast: true, .. })
    };
    if let Some(reason) = lacks(release::version(), fast.iter().any(|(_, line)| is_native(line))) {
        return refuse(reason);
    }
    if file.ipv4_engine.as_ref().is_none_or(|name| name.get_ref() == "auto") {
        config.ipv4 = registry::find(ENGINES[0]).map_err(|_| text.error(place, "fast: no engine"))?;
    }
    for (name, (engine, family)) in
        [(config.ipv4.name, (ENGINES[0], "ipv4")), (config.ipv6.name, (ENGINES[1], "ipv6"))]
    {
        if name != engine {
            return refuse(format!("looks up by {engine}: leave '{family}_engine' out"));
        }
    }
    Ok(())
}

/// Returns why a kernel of this version is too old.
fn lacks(kernel: Option<(u32, u32)>, in_drivers: bool) -> Option<String> {
    let (major, minor) = kernel?;
    let (least, advice) = match in_drivers && (major, minor) >= release::FAST {
        true => (release::FAST_NATIVE, "; below that, with 'xdp = \"generic\"'"),
        false => (release::FAST, ""),
    };
    ((major, minor) < least)
        .then(|| format!("needs Linux {}.{}, and this is {major}.{minor}{advice}", least.0, least.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str, lines: &[&str]) -> Result<Config, String> {
        let line = |(number, more): (usize, &&str)| {
            format!("[[interface]]\nname = \"i{number}\"\ndevice = \"d{number}\"\n{more}\n")
        };
        let text: String = lines.iter().enumerate().map(line).collect();
        Config::parse(&format!("{head}\n{text}")).map_err(|error| error.to_string())
    }

    const FAST: &str = "backend = \"af-xdp\"\nfast = true";

    #[test]
    fn fast_interfaces_have_the_engine_of_their_program() {
        let config = parsed("", &[FAST, "backend = \"af-xdp\""]).unwrap();
        assert_eq!((config.ipv4.name, config.ipv6.name), (ENGINES[0], ENGINES[1]));
        assert!(config.interfaces[0].backend.is_fast() && !config.interfaces[1].backend.is_fast());
        let slow = parsed("", &["backend = \"af-xdp\"\nfast = false"]).unwrap();
        assert!(!slow.interfaces[0].backend.is_fast() && slow.ipv4.name != ENGINES[0]);
    }

    #[test]
    fn what_does_not_go_with_it_is_refused_by_name() {
        let vrfs: String = (1..5).map(|n| format!("[[vrf]]\nname = \"v{n}\"\n")).collect();
        let of = |n: usize| format!("{FAST}\nvrf = \"v{n}\"");
        let in_vrfs: Vec<String> = (1..5).map(of).collect();
        let mut all: Vec<&str> = in_vrfs.iter().map(String::as_str).collect();
        assert!(parsed(&vrfs, &all).is_ok());
        all.push(FAST);
        for (head, lines, reason) in [
            ("", &["backend = \"af-packet\"\nfast = true"][..], "line 6: fast: only with back end af-xdp"),
            ("", &["backend = \"tap\"\nfast = false"], "fast: only with back end af-xdp"),
            ("mode = \"bridge\"", &[FAST, FAST], "fast: not in a bridge"),
            (
                "ipv4_engine = \"dir-17-bitmap\"",
                &[FAST],
                "fast: looks up by dir-18-lines: leave 'ipv4_engine' out",
            ),
            (&vrfs, &all, "fast: in 5 VRFs, and the program has room for 4"),
        ] {
            let error = parsed(head, lines).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn kernels_that_lack_something_are_named() {
        let of = |version, native| lacks(Some(version), native);
        assert_eq!(of((5, 10), false).unwrap(), "needs Linux 5.18, and this is 5.10");
        assert_eq!(of((5, 10), true).unwrap(), "needs Linux 5.18, and this is 5.10");
        assert!(of((6, 1), true).unwrap().ends_with("6.1; below that, with 'xdp = \"generic\"'"));
        assert_eq!((of((6, 1), false), of((6, 3), true), lacks(None, true)), (None, None, None));
    }
}
