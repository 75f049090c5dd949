//! The machine that a program runs on: its processor, caches, memory and setting of huge pages.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The machine, as far as the system describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Vendor, family, model and stepping, which tell processors of the same name apart.
    pub cpu_signature: Option<String>,
    /// Logical processors.
    pub cores: usize,
    /// The caches that the first core sees.
    pub caches: Vec<Cache>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// The system's setting for transparent huge pages: `always`, `madvise` (where a program requests them) or
    /// `never`.
    pub huge_pages: Option<String>,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 is next to the core.
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Size.
    pub bytes: u64,
    /// The processors that share it, as the system lists them.
    pub shared_by: String,
}

impl Machine {
    /// Describes this machine. What the system does not tell is left out.
    #[must_use]
    pub fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let signature: Vec<_> = ["vendor_id", "cpu family", "model", "stepping"]
            .iter()
            .filter_map(|name| field(&cpuinfo, name).map(|value| format!("{name} {value}")))
            .collect();
        let memory = field(&meminfo, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH).to_owned(),
            cpu_signature: (!signature.is_empty()).then(|| signature.join(", ")),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
            memory_bytes: memory.map(|kilobytes| kilobytes * 1024),
            huge_pages: fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
                .ok()
                .and_then(|text| chosen(&text)),
        }
    }

    /// Returns the size of a core's second-level cache, if the system tells.
    #[must_use]
    pub fn l2_bytes(&self) -> Option<usize> {
        let cache = self.caches.iter().find(|cache| cache.level == 2)?;
        usize::try_from(cache.bytes).ok()
    }

    /// Returns whether the processor is AMD's.
    #[must_use]
    pub fn is_amd(&self) -> bool {
        self.cpu_signature.as_ref().is_some_and(|signature| signature.contains("AuthenticAMD"))
    }

    /// Returns the processor's name, with its generation where that is known: some hypervisors hide the model.
    #[must_use]
    pub fn name(&self) -> String {
        match self.generation() {
            Some(generation) => format!("{} ({generation})", self.cpu),
            None => self.cpu.clone(),
        }
    }

    /// Returns the generation of an AMD processor by its family and model, as Linux tells them apart
    /// (`arch/x86/kernel/cpu/amd.c`).
    fn generation(&self) -> Option<&'static str> {
        let signature = self.cpu_signature.as_ref().filter(|_| self.is_amd())?;
        let number = |name: &str| -> Option<u32> {
            signature.split(", ").find_map(|part| part.strip_prefix(name)?.trim().parse().ok())
        };
        match (number("cpu family")?, number("model")?) {
            (25, 0x00..=0x0f | 0x20..=0x5f) => Some("Zen 3"),
            (25, 0x10..=0x1f | 0x60..=0xaf) => Some("Zen 4"),
            (26, 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Some("Zen 5"),
            _ => None,
        }
    }

    /// Returns the name of the machine's folder: that of the processor and its generation in lower case, with hyphens.
    #[must_use]
    pub fn slug(&self) -> String {
        // "Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz": trademarks and the clock rate do not matter.
        let name = self.cpu.split('@').next().unwrap_or_default().replace("(R)", " ").replace("(TM)", " ");
        let name = name.replace("CPU", " ").replace("Processor", " ");
        let slug = slug(&format!("{name} {}", self.generation().unwrap_or_default()));
        if slug.is_empty() { std::env::consts::ARCH.to_owned() } else { slug }
    }
}

/// Replaces everything but ASCII letters and digits by single hyphens, and makes letters lower case.
#[must_use]
pub fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Returns the first `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Returns the word in brackets, which is the chosen one of several.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn caches(folder: &Path) -> Vec<Cache> {
    let read = |at: usize, name: &str| {
        let text = fs::read_to_string(folder.join(format!("index{at}")).join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let cache = |at: usize| {
        let size = read(at, "size")?;
        Some(Cache {
            level: read(at, "level")?.parse().ok()?,
            kind: read(at, "type")?.to_ascii_lowercase(),
            bytes: size.trim_end_matches('K').parse::<u64>().ok()? * 1024,
            shared_by: read(at, "shared_cpu_list").unwrap_or_default(),
        })
    };
    (0..).map_while(cache).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("madvise"), None);
    }

    #[test]
    fn machines_have_names_for_folders() {
        let machine = |cpu: &str, signature: Option<&str>| Machine {
            cpu: cpu.to_owned(),
            cpu_signature: signature.map(str::to_owned),
            ..Machine::this()
        };
        let named = |cpu: &str| machine(cpu, None).slug();
        assert_eq!(named("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz"), "intel-xeon-e5-2670-0");
        assert_eq!(named("AMD EPYC 9354P 32-Core Processor"), "amd-epyc-9354p-32-core");
        assert_eq!(named("../é"), std::env::consts::ARCH);
        let amd = |numbers: &str| machine("AMD EPYC", Some(&format!("vendor_id AuthenticAMD, {numbers}")));
        let zen4 = amd("cpu family 25, model 17, stepping 1");
        assert_eq!((zen4.slug(), zen4.name()), ("amd-epyc-zen-4".to_owned(), "AMD EPYC (Zen 4)".to_owned()));
        assert_eq!(amd("cpu family 26, model 2, stepping 1").slug(), "amd-epyc-zen-5");
        assert_eq!(amd("cpu family 99, model 2, stepping 1").name(), "AMD EPYC");
    }

    #[test]
    fn what_the_system_does_not_tell_is_left_out() {
        assert!(caches(Path::new("/nowhere")).is_empty());
        assert_eq!(field("a b\t: c: d\n", "a b"), Some("c: d"));
        assert_eq!(field("a b\n", "a b"), None);
        assert!(Machine::this().cores >= 1);
    }
}
