//! Assigns threads to processors, by the groups of processors that share a cache.

use std::path::Path;

/// The processors of a machine that the program may use, in groups that share their last cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    groups: Vec<Vec<usize>>,
}

/// The processors of threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Processors of the threads that receive. Empty if workers receive.
    pub receive: Vec<usize>,
    /// Processors of the workers.
    pub workers: Vec<usize>,
    /// Processors of the threads that send. Empty if workers send.
    pub transmit: Vec<usize>,
}

impl Topology {
    /// Reads the topology of the processors in `allowed` from `folder`, which is `/sys/devices/system/cpu` on Linux. If the
    /// system does not describe caches, all processors are one group.
    #[must_use]
    pub fn read(folder: &Path, allowed: &[usize]) -> Self {
        let mut groups: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        for &cpu in allowed {
            let shared = last_cache(&folder.join(format!("cpu{cpu}/cache"))).unwrap_or_default();
            match groups.iter_mut().find(|group| group.0 == shared) {
                Some(group) => group.1.push(cpu),
                None => groups.push((shared, vec![cpu])),
            }
        }
        Self { groups: groups.into_iter().map(|group| group.1).collect() }
    }

    /// Returns the groups.
    #[must_use]
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Gives every thread a processor. If there are two groups, the workers get a group of their own, so that nothing else takes
    /// room in the cache that holds the table. Otherwise they get processors of their own. If there are more threads than
    /// processors, threads share processors in turn.
    #[must_use]
    pub fn assign(&self, receive: usize, workers: usize, transmit: usize) -> Places {
        let all = || self.groups.iter().flatten().copied();
        let mut rest = all().collect::<Vec<_>>();
        if receive + transmit == 0 {
            return Places { workers: deal(&rest, workers), ..Places::default() };
        }
        // Leave the first group to everything else that runs: interrupts, the main thread.
        let own = self.groups.iter().skip(1).max_by_key(|group| group.len());
        let lookup: Vec<usize> = match own {
            Some(group) => group.clone(),
            None => {
                rest.iter().rev().take(workers.min(rest.len().saturating_sub(1)).max(1)).copied().collect()
            }
        };
        rest.retain(|cpu| !lookup.contains(cpu));
        if rest.is_empty() {
            rest = all().collect();
        }
        let others = deal(&rest, receive + transmit);
        Places {
            receive: others[..receive].to_vec(),
            workers: deal(&lookup, workers),
            transmit: others[receive..].to_vec(),
        }
    }
}

fn deal(processors: &[usize], threads: usize) -> Vec<usize> {
    processors.iter().copied().cycle().take(if processors.is_empty() { 0 } else { threads }).collect()
}

/// Returns the processors that share the last cache of a processor. `folder` describes its caches.
fn last_cache(folder: &Path) -> Option<Vec<usize>> {
    let read =
        |at: usize, name: &str| std::fs::read_to_string(folder.join(format!("index{at}")).join(name)).ok();
    let level = |at: usize| read(at, "level")?.trim().parse::<u32>().ok();
    let last = (0..).map_while(|at| Some((level(at)?, at))).max()?;
    list(read(last.1, "shared_cpu_list")?.trim())
}

/// Reads a list of processors as Linux writes it: `0-3,8`.
#[must_use]
pub fn list(text: &str) -> Option<Vec<usize>> {
    let mut processors = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // Without a limit, a mistyped number such as 0-99999999 would allocate a list of that length.
        if last < first || last >= 65_536 {
            return None;
        }
        processors.extend(first..=last);
    }
    Some(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(groups: &[&[usize]]) -> Topology {
        Topology { groups: groups.iter().map(|group| group.to_vec()).collect() }
    }

    #[test]
    fn lists_as_linux_writes_them() {
        assert_eq!(list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("5"), Some(vec![5]));
        for wrong in ["", "a", "3-1", "1,", "0-99999999"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn groups_are_read_from_the_last_cache() {
        let folder = std::env::temp_dir().join(format!("fibula-place-{}", std::process::id()));
        for (cpu, last) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            for (index, level, shared) in [(0, "1", format!("{cpu}")), (1, "3", last.to_owned())] {
                let cache = folder.join(format!("cpu{cpu}/cache/index{index}"));
                std::fs::create_dir_all(&cache).unwrap();
                std::fs::write(cache.join("level"), level).unwrap();
                std::fs::write(cache.join("shared_cpu_list"), format!("{shared}\n")).unwrap();
            }
        }
        assert_eq!(Topology::read(&folder, &[0, 1, 2, 3]), topology(&[&[0, 1], &[2, 3]]));
        assert_eq!(Topology::read(&folder, &[1, 2]), topology(&[&[1], &[2]]));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(Topology::read(&folder, &[0, 1]), topology(&[&[0, 1]]));
    }

    #[test]
    fn workers_of_stages_have_a_group_of_their_own() {
        let two = topology(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]);
        let places = two.assign(1, 3, 1);
        assert_eq!(places, Places { receive: vec![0], workers: vec![4, 5, 6], transmit: vec![1] });
        assert_eq!(two.assign(0, 5, 0).workers, [0, 1, 2, 3, 4]);
        let one = topology(&[&[0, 1]]);
        assert_eq!(one.assign(1, 1, 1), Places { receive: vec![0], workers: vec![1], transmit: vec![0] });
        let single = topology(&[&[0]]);
        assert_eq!(single.assign(1, 1, 0), Places { receive: vec![0], workers: vec![0], transmit: vec![] });
    }
}
