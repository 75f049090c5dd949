//! Which mutants are run, and what a mutant's result depends on.

use sha2::{Digest, Sha256};

/// Returns a sample that does not depend on the other names: a new mutant displaces one at most.
pub(super) fn chosen<'a>(names: impl Iterator<Item = &'a str>, seed: u64, count: usize) -> Vec<&'a str> {
    let mut order: Vec<&str> = names.collect();
    order.sort_by_cached_key(|name| Sha256::digest(format!("{seed}:{name}")));
    order.truncate(count);
    order
}

/// Returns a hash of the code alone: comments may change.
pub(super) fn digest<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let lines = texts.into_iter().flat_map(str::lines);
    let code: Vec<&str> = lines.filter(|line| !line.trim_start().starts_with("//")).collect();
    let hash = Sha256::digest(code.join("\n"));
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_same_whatever_else_there_is() {
        let names = ["a", "b", "c", "d", "e"];
        let all = chosen(names.into_iter(), 1, 5);
        // In the order that `sha256sum` gives: printf '1:a' | sha256sum
        assert_eq!(all, ORDER);
        assert_eq!(chosen(names.into_iter().rev(), 1, 3), all[..3]);
        let fewer = chosen(names.into_iter().filter(|&name| name != all[0]), 1, 3);
        assert_eq!(fewer, all[1..4]);
        assert_ne!(chosen(names.into_iter(), 2, 5), all);
    }

    const ORDER: [&str; 5] = ["d", "a", "e", "b", "c"];

    #[test]
    fn comments_do_not_count() {
        assert_eq!(digest(["a\n  // b\nc"]), digest(["a\nc"]));
        assert_eq!(digest(["a", "c"]), digest(["a\nc"]));
        assert_ne!(digest(["a\nc"]), digest(["c\na"]));
        assert_eq!(digest(["a"]), "ca978112ca1bbdca");
    }
}
