//! Fields of objects of JSON, and where objects begin and end, without a copy of either.
//!
//! A fault of the form ends a search. Nothing here recurses deeper than the name that is searched for has dots.

use std::borrow::Cow;

/// Returns the text of a string, or of another plain value, in an object, by its name. A name with dots is that of a field, or of a
/// field of a field; the field that has more of the name in its own name comes first.
pub(super) fn value<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    read(object, name, |_| ()).0
}

/// Returns a value of an object, and where the object ends, if it is well formed. Calls `each` with the names of its fields.
pub(super) fn read<'a>(
    object: &'a [u8],
    name: &str,
    mut each: impl FnMut(&[u8]),
) -> (Option<&'a [u8]>, Option<usize>) {
    let mut found: Option<(usize, &[u8])> = None;
    let mut members = Members::new(object);
    for (key, text) in members.by_ref() {
        each(&key);
        let Some(rest) = name.as_bytes().strip_prefix(&*key) else { continue };
        if found.is_some_and(|(len, _)| len >= key.len()) {
            continue;
        }
        let inner = match (rest, text) {
            ([], [b'"', inner @ .., b'"']) => Some(inner.trim_ascii()),
            ([], [b'{' | b'[', ..]) => None,
            ([], text) => Some(text),
            ([b'.', deeper @ ..], [b'{', ..]) => {
                std::str::from_utf8(deeper).ok().and_then(|deeper| value(text, deeper))
            }
            _ => None,
        };
        found = inner.map(|inner| (key.len(), inner)).or(found);
    }
    (found.map(|(_, text)| text), members.end)
}

/// The names of an object's fields, and the texts of their values.
struct Members<'a> {
    object: &'a [u8],
    at: usize,
    /// Whether a field is to follow, after a comma or the first brace.
    more: bool,
    is_first: bool,
    /// Where the object ends, once that was found.
    end: Option<usize>,
}

impl<'a> Members<'a> {
    fn new(object: &'a [u8]) -> Self {
        let at = blanks(object, 0);
        Self { object, at: at + 1, more: object.get(at) == Some(&b'{'), is_first: true, end: None }
    }

    fn field(&mut self) -> Option<(Cow<'a, [u8]>, &'a [u8])> {
        let object = self.object;
        let start = blanks(object, self.at);
        if std::mem::take(&mut self.is_first) && object.get(start) == Some(&b'}') {
            self.end = Some(start + 1);
            return None;
        }
        if object.get(start) != Some(&b'"') {
            return None;
        }
        let end = string(object, start)?;
        let key = unescaped(&object[start..end]);
        let colon = blanks(object, end);
        if object.get(colon) != Some(&b':') {
            return None;
        }
        let start = blanks(object, colon + 1);
        let end = skip(object, start)?;
        let text = object[start..end].trim_ascii_end();
        let after = blanks(object, end);
        match object.get(after) {
            _ if text.is_empty() => return None,
            Some(b',') => self.more = true,
            Some(b'}') => self.end = Some(after + 1),
            _ => return None,
        }
        self.at = after + 1;
        Some((key, text))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, [u8]>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if std::mem::take(&mut self.more) { self.field() } else { None }
    }
}

/// Returns a name without its quotes.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    let plain = &text[1..text.len() - 1];
    if memchr::memchr(b'\\', plain).is_none() {
        return plain.into();
    }
    serde_json::from_slice::<String>(text).map_or(plain.into(), |name| name.into_bytes().into())
}

fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns where the value that begins at `at` ends.
fn skip(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        match text.get(at)? {
            b'"' => at = string(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            _ => {
                at += 1;
                let plain = |byte: &u8| !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',');
                while text.get(at).is_some_and(plain) {
                    at += 1;
                }
            }
        }
        if depth == 0 && matches!(text.get(at.wrapping_sub(1)), Some(b'"' | b'}' | b']')) {
            return Some(at);
        }
    }
}

/// Returns where the string that begins at `at` ends.
fn string(text: &[u8], mut at: usize) -> Option<usize> {
    at += 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Finds the ends of objects that follow each other or are the elements of a list, in text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Objects {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Objects {
    /// Takes more text, and calls `each` with the place after each brace that ends an object.
    pub(super) fn ends(&mut self, text: &[u8], mut each: impl FnMut(usize)) {
        let mut at = 0;
        while at < text.len() {
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                let Some(found) = memchr::memchr2(b'"', b'\\', &text[at..]) else { return };
                at += found + 1;
                self.escaped = text[at - 1] == b'\\';
                self.in_string = self.escaped;
                continue;
            }
            match text[at] {
                b'"' => self.in_string = true,
                b'{' => self.depth += 1,
                b'[' if self.depth > 0 => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        each(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// A part of text that has objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonText {
    /// An object, from its first brace to the one that ends it.
    Object(usize, usize),
    /// Something else, which is no object, up to this place: a number, a text, an object without its end.
    Other(usize),
}

/// Returns the next object, or the part that is in its place; `None` if only list brackets, commas and blanks follow.
pub(super) fn next_part(text: &[u8], from: usize) -> Option<JsonText> {
    let between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'[' | b']' | b',');
    let start = from + text.get(from..)?.iter().position(|byte| !between(byte))?;
    let end = match text[start] {
        b'{' => match skip(text, start) {
            Some(end) => return Some(JsonText::Object(start, end - 1)),
            None => text.len(),
        },
        b'"' => string(text, start).unwrap_or(text.len()),
        _ => {
            let rest = &text[start + 1..];
            let ends = |byte: &u8| between(byte) || matches!(byte, b'{' | b'"');
            rest.iter().position(ends).map_or(text.len(), |len| start + 1 + len)
        }
    };
    Some(JsonText::Other(end))
}

/// Returns whether text begins with a list, or with an object that goes on after its first line.
pub(super) fn spans_lines(first_line: &[u8]) -> bool {
    let line = first_line.trim_ascii();
    match line.first() {
        Some(b'[') => true,
        Some(b'{') => skip(line, 0).is_none() && matches!(line.last(), Some(b'{' | b'[' | b',')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_in_objects() {
        let find = |object: &'static str, name: &str| {
            value(object.as_bytes(), name).map(|text| std::str::from_utf8(text).unwrap())
        };
        let object =
            r#" { "a" : "x\"," , "b":{"c":[1,{"d":"e"}],"ip":"1.1.1.1"},"n":-1.5e3 ,"t":true,"ip": "::1"}"#;
        assert_eq!(find(object, "ip"), Some("::1"));
        assert_eq!(find(object, "b.ip"), Some("1.1.1.1"));
        assert_eq!(find(object, "a"), Some(r#"x\","#));
        assert_eq!(find(object, "n"), Some("-1.5e3"));
        assert_eq!(find(object, "t"), Some("true"));
        for absent in ["c", "b.x", "a.b", "ip.x", "", "b", "b.c"] {
            assert_eq!(find(object, absent), None, "{absent}");
        }
        for bad in [
            "",
            "{",
            "{\"",
            "{\"ip",
            "{\"ip\"",
            "{\"ip\":",
            "{\"ip\":\"",
            "[]",
            "{\"a\":{\"ip\":\"x\"",
            "{\"a\" \"ip\"}",
        ] {
            assert_eq!(find(bad, "ip"), None, "{bad}");
        }
    }

    #[test]
    fn a_name_with_dots_is_that_of_a_field_first() {
        let find = |object: &'static str| value(object.as_bytes(), "a.b.c");
        assert_eq!(find(r#"{"a":{"b":{"c":1}},"a.b":{"c":2},"a.b.c":3}"#), Some(&b"3"[..]));
        assert_eq!(find(r#"{"a.b":{"c":2},"a":{"b":{"c":1}}}"#), Some(&b"2"[..]));
        assert_eq!(find(r#"{"a":{"b.c":4,"b":{"c":1}}}"#), Some(&b"4"[..]));
        assert_eq!(find(r#"{"a.b":1,"a":{"b":{"c":"\u0031"}}}"#), Some(&br"\u0031"[..]));
        // Names may be escaped, and the first of equal ones counts.
        assert_eq!(find(r#"{"\u0061.b.c":5,"a.b.c":6}"#), Some(&b"5"[..]));
        assert_eq!(find(r#"{"ab.c":5}"#), None);
    }

    #[test]
    fn objects_are_found_however_they_arrive() {
        let text = br#"[ {"a":"}\"]","b":[{}]},
 7, {"c":{}} ] {"d":1}{"#;
        let mut expected = Vec::new();
        Objects::default().ends(text, |end| expected.push(end));
        assert_eq!(expected.len(), 3);
        for piece in 1..text.len() {
            let (mut objects, mut found) = (Objects::default(), Vec::new());
            for (number, part) in text.chunks(piece).enumerate() {
                objects.ends(part, |end| found.push(number * piece + end));
            }
            assert_eq!(found, expected, "{piece}");
        }
        let (mut at, mut parts) = (0, Vec::new());
        while let Some(part) = next_part(text, at) {
            at = match part {
                JsonText::Object(_, close) => close + 1,
                JsonText::Other(end) => end,
            };
            parts.push(part);
        }
        let kinds: Vec<bool> = parts.iter().map(|part| matches!(part, JsonText::Object(..))).collect();
        assert_eq!(kinds, [true, false, true, true, false]);
        assert!(
            matches!(parts[0], JsonText::Object(2, close) if text[close] == b'}' && close + 1 == expected[0])
        );
    }

    #[test]
    fn lists_and_objects_of_several_lines_are_known_by_the_first() {
        for line in ["[", "[{\"a\":1},", "{", "{\"a\":{", "{\"a\":1,"] {
            assert!(spans_lines(line.as_bytes()), "{line}");
        }
        for line in ["{}", "{\"a\":1}", "{\"a\":1} ", "{\"a\":\"cut", "a,b", ""] {
            assert!(!spans_lines(line.as_bytes()), "{line}");
        }
    }
}
