//! Links of a page, as they have to be in the site.

use std::path::{Component, Path, PathBuf};

use super::Files;

/// Rewrites the links of a page from the places of files in the repository to those in the site.
pub(super) fn rewrite(text: &str, from: &Path, to: &Path, files: &Files) -> String {
    let mut written = String::with_capacity(text.len());
    let mut is_code = false;
    for line in text.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            written.push_str(line);
        } else {
            relink(line, from, to, files, &mut written);
        }
    }
    written
}

/// Rewrites the links of a line.
fn relink(mut line: &str, from: &Path, to: &Path, files: &Files, written: &mut String) {
    while let Some(middle) = line.find("](") {
        let (Some(open), Some(len)) = (line[..middle].rfind('['), line[middle..].find(')')) else { break };
        let (label, target) = (&line[open + 1..middle], &line[middle + 2..middle + len]);
        let is_image = line[..open].ends_with('!');
        written.push_str(&line[..open]);
        match place(target, from, to, files) {
            Some(place) => written.push_str(&format!("[{label}]({place})")),
            None if is_image => written.push_str(&format!("[{label}]({target})")),
            None => written.push_str(label),
        }
        line = &line[middle + len + 1..];
    }
    written.push_str(line);
}

/// Returns the target of a link in the site; `None` if the site lacks it.
fn place(target: &str, from: &Path, to: &Path, files: &Files) -> Option<String> {
    if target.starts_with('#') || target.contains("://") || target.starts_with("mailto:") {
        return Some(target.to_owned());
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = resolved(&from.parent().unwrap_or(Path::new("")).join(path))?;
    let found = files.get(&path)?;
    let up = to.parent().map_or(0, |folder| folder.components().count());
    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
    Some(format!("{}{}{anchor}", "../".repeat(up), found.display()))
}

/// Takes `..` out of a path; `None` where that leads out of the repository.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !whole.pop() => return None,
            Component::Normal(name) => whole.push(name),
            _ => {}
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_same_file_in_the_site() {
        let files: Files =
            [("README.md", "index.md"), ("docs/guide/live.md", "guide/live.md"), ("docs/a.svg", "a.svg")]
                .map(|(from, to)| (from.into(), to.into()))
                .into();
        let root = |text: &str| rewrite(text, Path::new("README.md"), Path::new("index.md"), &files);
        let guide =
            |text: &str| rewrite(text, Path::new("docs/guide/live.md"), Path::new("guide/live.md"), &files);
        assert_eq!(
            root("see [live](docs/guide/live.md#x), [code](src/a.rs)"),
            "see [live](guide/live.md#x), code"
        );
        assert_eq!(guide("[home](../../README.md) ![a](../a.svg)"), "[home](../index.md) ![a](../a.svg)");
        assert_eq!(
            guide("[out](../../../x.md) [web](https://a.b/c) [here](#d)"),
            "out [web](https://a.b/c) [here](#d)"
        );
        assert_eq!(root("```\n[a](src/b)\n```\n[a](src/b)\n"), "```\n[a](src/b)\n```\na\n");
    }
}
