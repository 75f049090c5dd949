//! The golden frames of `testdata/router/*.txt`, line by line.

use std::path::Path;

#[derive(Default)]
pub struct Case {
    pub name: String,
    pub lines: Vec<(usize, String)>,
}

/// Reads all cases, each with its file.
pub fn cases() -> Vec<(String, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/router");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "txt")) {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
            let line = line.split('#').next().unwrap().trim();
            if let Some(name) = line.strip_prefix("case ") {
                cases.push((file.clone(), Case { name: name.into(), lines: Vec::new() }));
            } else if !line.is_empty() {
                let case =
                    &mut cases.last_mut().unwrap_or_else(|| panic!("{file}: a line before the first case")).1;
                // A line that begins with a layer goes on with the frame of the line before.
                match line.strip_prefix('/') {
                    Some(more) => case.lines.last_mut().unwrap().1.push_str(&format!(" / {more}")),
                    None => case.lines.push((number + 1, line.into())),
                }
            }
        }
    }
    cases
}
