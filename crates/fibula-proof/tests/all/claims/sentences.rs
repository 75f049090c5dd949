//! The sentences of Markdown, and which of them are claims.

/// What a document is, which says what makes a sentence of it a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// What people judge the project by: any word of [`WORDS`], and any figure that counts one of [`UNITS`].
    Front,
    /// Guides, definitions and the house's rules. They describe options and commands, in which "all" and "every" promise nothing
    /// ("prints all routes"), and limits ("64 KiB at most"). Here a claim is a figure of [`MEASURED`], a ratio, a row of a table with
    /// two numbers alone, a word of [`ABSOLUTE`], "no other", and "all" or "every" where it begins the sentence or stands before
    /// what the project is judged by ([`JUDGED`]); and "no" where a sentence begins with it and one of these or of [`DENIED`].
    Manual,
    /// The first two paragraphs of an engine's chapter: what it is, and when to use it. As in a manual.
    Chapter,
    /// Decisions, which are of their day: only their figures are claims, and need no listing where the page has the mark.
    Decision,
}

const WORDS: [&str; 8] = ["never", "every", "all", "always", "fastest", "nothing", "none", "least"];

const UNITS: [&str; 22] = [
    "ns", "us", "ms", "s", "%", "bytes", "byte", "KB", "MB", "GB", "KiB", "MiB", "GiB", "M/s", "million",
    "times", "keys", "looks", "loads", "tables", "bits", "or",
];

const ABSOLUTE: [&str; 3] = ["never", "always", "fastest"];

const MEASURED: [&str; 18] = [
    "ns",
    "us",
    "µs",
    "ms",
    "microseconds",
    "milliseconds",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hours",
    "%",
    "KB",
    "MB",
    "GB",
    "M/s",
    "million",
    "times",
];

const JUDGED: [&str; 23] = [
    "answer",
    "answers",
    "lookup",
    "lookups",
    "packet",
    "packets",
    "key",
    "keys",
    "test",
    "tests",
    "machine",
    "machines",
    "engine",
    "engines",
    "structure",
    "structures",
    "change",
    "changes",
    "fault",
    "faults",
    "mutant",
    "mutants",
    "survivor",
];

/// What a sentence denies that begins with "no", besides [`JUDGED`].
const DENIED: [&str; 4] = ["input", "bug", "panic", "speed"];

impl Kind {
    /// What the document at this path is.
    pub(super) fn of(path: &str) -> Self {
        match path {
            "README.md" | "SECURITY.md" => Self::Front,
            _ if path.starts_with("docs/adr/") => Self::Decision,
            _ if path.ends_with("/chapter.md") => Self::Chapter,
            _ => Self::Manual,
        }
    }

    /// Whether a sentence claims something.
    fn is_claim(self, sentence: &str) -> bool {
        let words: Vec<&str> = sentence.split(' ').map(bare).collect();
        let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        match self {
            Self::Front => {
                let is_figure = |pair: &[&str]| is_number(pair[0]) && UNITS.contains(&pair[1]);
                lower.iter().any(|word| WORDS.contains(&word.as_str()))
                    || denies(&lower)
                    || words.windows(2).any(is_figure)
            }
            Self::Manual | Self::Chapter => is_absolute(&lower) || is_measured(sentence, &words),
            Self::Decision => is_measured(sentence, &words),
        }
    }
}

fn bare(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '%')
}

fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a sentence begins with "no" and what the project is judged by.
fn denies(words: &[String]) -> bool {
    let is_judged = |noun: &String| JUDGED.contains(&noun.as_str()) || DENIED.contains(&noun.as_str());
    words.len() > 4 && words[0] == "no" && words[1..3].iter().any(is_judged)
}

/// Whether a sentence promises something without an exception.
fn is_absolute(words: &[String]) -> bool {
    let is_all = |word: &String| word == "all" || word == "every";
    let begins = words.len() > 4 && words.first().is_some_and(is_all);
    begins
        || denies(words)
        || words.iter().enumerate().any(|(at, word)| {
            let after = &words[at + 1..words.len().min(at + 3)];
            ABSOLUTE.contains(&word.as_str())
                || word == "no" && after.first().is_some_and(|next| next == "other")
                || is_all(word) && after.iter().any(|noun| JUDGED.contains(&noun.as_str()))
        })
}

/// Whether a sentence has a figure that somebody measured, or might have.
fn is_measured(sentence: &str, words: &[&str]) -> bool {
    let numbers = sentence.split('|').filter(|cell| {
        let cell = cell.trim();
        is_number(cell) && cell.chars().all(|letter| letter.is_ascii_digit() || ".,".contains(letter))
    });
    numbers.count() > 1
        || words.iter().enumerate().any(|(at, word)| {
            let next = |by: usize| words.get(at + by).copied().unwrap_or("");
            let is_ratio =
                word.starts_with("0.") && word.len() > 3 && ["of", "to", "times"].contains(&next(1));
            let is_bytes = next(1) == "bytes" && ["a", "per"].contains(&next(2));
            is_number(word) && (word.ends_with('%') || MEASURED.contains(&next(1)) || is_bytes || is_ratio)
        })
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The paragraphs of Markdown, one a line: code apart, and items, headings and rows of tables each for itself.
pub(super) fn paragraphs(document: &str) -> Vec<String> {
    let (mut all, mut code) = (vec![String::new()], false);
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
            all.push(String::new());
            continue;
        }
        let is_own = line.is_empty() || ["- ", "#", "|", "!["].iter().any(|start| line.starts_with(start));
        if is_own {
            all.push(String::new());
        }
        if let Some(paragraph) = all.last_mut().filter(|_| !code) {
            paragraph.push_str(line.strip_prefix("- ").unwrap_or(line));
            paragraph.push(' ');
        }
    }
    all.iter().map(|text| one_line(text)).filter(|text| !text.is_empty()).collect()
}

/// A paragraph with what is beside it: of a row of a table, the paragraphs before and after the table.
pub(super) fn beside(paragraphs: &[String], at: usize) -> String {
    let is_text = |paragraph: &&String| !paragraph.starts_with('|');
    let mut all = vec![paragraphs[at].as_str()];
    if paragraphs[at].starts_with('|') {
        all.extend(paragraphs[..at].iter().rev().find(is_text).map(String::as_str));
        all.extend(paragraphs[at..].iter().find(is_text).map(String::as_str));
    }
    all.join(" ")
}

/// The sentences of a document that claim something.
pub(super) fn claims(kind: Kind, document: &str) -> Vec<String> {
    let mut paragraphs = paragraphs(document);
    if kind == Kind::Chapter {
        paragraphs.truncate(2);
    }
    let sentences = paragraphs.iter().flat_map(|paragraph| sentences(paragraph));
    sentences.filter(|sentence| kind.is_claim(sentence)).collect()
}

/// The sentences of a paragraph.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let words: Vec<&str> = paragraph.split(' ').collect();
    for (at, word) in words.iter().enumerate() {
        let sentence = all.last_mut().expect("one at least");
        sentence.push_str(if sentence.is_empty() { "" } else { " " });
        sentence.push_str(word);
        let begins =
            |next: &&str| next.starts_with(|first: char| first.is_uppercase() || "`[*".contains(first));
        if word.ends_with(['.', '?', '!']) && words.get(at + 1).is_some_and(begins) {
            all.push(String::new());
        }
    }
    all.retain(|sentence| !sentence.is_empty());
    all
}
