//! The licences of everything that a program is linked with, as one text that goes with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::compile::Program;
use super::crates::{self, Crate};
use crate::Outcome;
use crate::programs::{output, root};

/// How names of files with terms begin, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Returns the licences of all crates of programs, and of what else is in them.
pub(crate) fn text(programs: &[&Program], target: &str) -> Outcome<String> {
    let mut all = BTreeMap::new();
    for program in programs {
        all.extend(crates::of(program, target)?);
    }
    // Many have one text in common.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for one in all.values().filter(|one| !one.is_ours) {
        let name = format!("{} {}", one.name, one.version);
        writeln!(list, "  {name}: {}", one.licence)?;
        let found = terms(&one.folder)?;
        if found.is_empty() {
            texts.entry(without_terms(one)?).or_default().push(name);
        } else {
            found.into_iter().for_each(|text| texts.entry(text).or_default().push(name.clone()));
        }
    }
    let mut out = format!(
        "This program is linked with the following crates, of which this file has the licences:\n\n{list}\n\
         It is linked with Rust's standard library too (MIT OR Apache-2.0), whose parts have the licences at the end{}.\n",
        if target.ends_with("-musl") { ", and with musl, a C library (MIT)" } else { "" }
    );
    let mut section = |title: &str, text: &str| {
        writeln!(out, "\n{:=<100}\n{title}\n{:=<100}\n\n{}", "", "", text.trim_matches('\n'))
    };
    for (text, names) in &texts {
        section(&names.join(", "), text)?;
    }
    for (title, text) in standard_library()? {
        section(&title, &text)?;
    }
    if target.ends_with("-musl") {
        section("musl", MUSL)?;
    }
    Ok(out)
}

/// What musl's own COPYRIGHT begins with.
const MUSL: &str = "\
musl as a whole is licensed under the following standard MIT license:

Copyright © 2005-2020 Rich Felker, et al.

Permission is hereby granted, free of charge, to any person obtaining
a copy of this software and associated documentation files (the
\"Software\"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to
permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be
included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
";

/// Returns the texts of licences in a crate, and in sources that it brings along in folders of their own.
fn terms(folder: &Path) -> Outcome<Vec<String>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    for folder in folders {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let is_one = NAMES.iter().any(|begin| name.starts_with(begin)) || name.starts_with("UNLICENSE");
            // Sources may be called so too.
            if is_one && entry.file_type()?.is_file() && !name.ends_with(".RS") {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let text = String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n");
        let lines = text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        texts.push(lines.trim_matches('\n').to_owned());
    }
    Ok(texts)
}

/// Returns the terms of a crate whose archive has none: those that its licence names, with its authors.
fn without_terms(one: &Crate) -> Outcome<String> {
    let authors =
        if one.authors.is_empty() { format!("the authors of {}", one.name) } else { one.authors.join(", ") };
    let mut text =
        format!("Its archive has no text of its licence ({}). Copyright: {authors}.\n", one.licence);
    // Words of an expression, of which one licence with "OR" is enough.
    let words: Vec<&str> = one.licence.split([' ', '/', '(', ')']).collect();
    let file = if words.contains(&"MIT") {
        "LICENSE-MIT"
    } else if words.contains(&"Apache-2.0") {
        "LICENSE-APACHE"
    } else {
        return Err(
            format!("{} {} has no text of its licence, {}", one.name, one.version, one.licence).into()
        );
    };
    let terms = fs::read_to_string(root().join(file))?;
    // Copyright lines of ours are not theirs.
    let terms =
        terms.lines().filter(|line| !line.starts_with("Copyright (c)")).collect::<Vec<_>>().join("\n");
    text += &terms;
    Ok(text)
}

/// Returns what the compiler brings along about its library. A compiler of the system may have its documents elsewhere.
fn standard_library() -> Outcome<Vec<(String, String)>> {
    let root = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let folder = Path::new(root.trim()).join("share/doc/rust");
    let mut texts = Vec::new();
    if let Ok(html) = fs::read_to_string(folder.join("COPYRIGHT-library.html")) {
        texts.push(("Rust's standard library".to_owned(), without_tags(&html)));
    }
    if let Ok(entries) = fs::read_dir(folder.join("licenses")) {
        let mut paths =
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            texts.push((format!("Rust's standard library: {name}"), fs::read_to_string(&path)?));
        }
    }
    if texts.is_empty() {
        texts.push((
            "Rust's standard library".to_owned(),
            "Copyright (c) The Rust Project Contributors. MIT OR Apache-2.0: https://www.rust-lang.org/policies/licenses".to_owned(),
        ));
    }
    Ok(texts)
}

/// Returns the text of a page, without its tags and the blank lines that they leave.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let body = html.split_once("<body>").map_or(html, |(_, body)| body);
    let mut parts = body.split('<');
    text += parts.next().unwrap_or_default();
    for part in parts {
        text += part.split_once('>').map_or(part, |(_, text)| text);
    }
    for (entity, sign) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(entity, sign);
    }
    let lines = text.lines().map(str::trim_end);
    let mut out = String::new();
    for line in lines {
        if !line.is_empty() || !out.ends_with("\n\n") {
            out += line;
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_text() {
        let page = "<html><head><title>x</title></head><body>\n<h1>A &amp; B</h1>\n\n\n<p>c &lt;d&gt;</p></body></html>";
        assert_eq!(without_tags(page).trim(), "A & B\n\nc <d>");
    }
}
