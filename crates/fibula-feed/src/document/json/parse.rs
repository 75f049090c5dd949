//! JSON text as values that borrow from it.
//!
//! The parser is our own because it works on pieces of bounded length, keeps the order and the repetition of names,
//! leaves numbers as their text (those of 128 bits too), and reports where it stopped. Libraries do some of this, none
//! all of it.

use std::borrow::Cow;

use memchr::memchr2;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// A number as it was written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Object<'a>),
}

/// The fields of an object in their order.
pub(super) type Object<'a> = Vec<(Cow<'a, str>, Node<'a>)>;

/// Values within values, at most.
const DEEPEST: usize = 64;

/// Where a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotJson(pub(super) usize);

impl<'a> Node<'a> {
    /// Reads a value, which is all of the text.
    pub(super) fn parse(text: &'a [u8]) -> Result<Self, NotJson> {
        let mut parser = Parser { text, at: 0 };
        let node = parser.value(0)?;
        parser.blanks();
        if parser.at == text.len() { Ok(node) } else { Err(NotJson(parser.at)) }
    }

    /// Reads a value at the beginning of the text that is neither a list nor an object. Returns its length too.
    pub(super) fn scalar(text: &'a [u8]) -> Result<(Self, usize), NotJson> {
        let mut parser = Parser { text, at: 0 };
        match text.first() {
            Some(b'{' | b'[') => Err(NotJson(0)),
            _ => Ok((parser.value(0)?, parser.at)),
        }
    }

    /// Returns the text of a value that is not a list or an object; `null` is empty.
    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(text) => Some(text),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
            Self::Null => Some(""),
            Self::List(_) | Self::Object(_) => None,
        }
    }

    pub(super) fn object(&self) -> Option<&[(Cow<'a, str>, Node<'a>)]> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Node<'a>]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        *self == Self::Bool(true)
    }

    /// Returns a field of an object by its name.
    pub(super) fn get(&self, name: &str) -> Option<&Node<'a>> {
        get(self.object()?, name)
    }
}

/// Returns a field by its name.
pub(super) fn get<'n, 'a>(object: &'n [(Cow<'a, str>, Node<'a>)], name: &str) -> Option<&'n Node<'a>> {
    object.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.text.get(self.at).copied()
    }

    fn wrong<T>(&self) -> Result<T, NotJson> {
        Err(NotJson(self.at))
    }

    fn word(&mut self, word: &'static str, node: Node<'a>) -> Result<Node<'a>, NotJson> {
        if !self.text[self.at..].starts_with(word.as_bytes()) {
            return self.wrong();
        }
        self.at += word.len();
        Ok(node)
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, NotJson> {
        if depth > DEEPEST {
            return self.wrong();
        }
        match self.peek() {
            Some(b'"') => self.string().map(Node::Text),
            Some(b'{') => self.fields(depth),
            Some(b'[') => self.values(depth),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            Some(b'-' | b'0'..=b'9') => {
                let rest = &self.text[self.at..];
                let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let len = rest.iter().position(|byte| !is_number(byte)).unwrap_or(rest.len());
                self.at += len;
                core::str::from_utf8(&rest[..len]).map(Node::Number).map_err(|_| NotJson(self.at))
            }
            _ => self.wrong(),
        }
    }

    fn fields(&mut self, depth: usize) -> Result<Node<'a>, NotJson> {
        self.at += 1;
        let mut fields = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Node::Object(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.wrong();
            }
            let name = self.string()?;
            if self.peek() != Some(b':') {
                return self.wrong();
            }
            self.at += 1;
            fields.push((name, self.value(depth + 1)?));
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Node::Object(fields));
                }
                _ => return self.wrong(),
            }
        }
    }

    fn values(&mut self, depth: usize) -> Result<Node<'a>, NotJson> {
        self.at += 1;
        let mut values = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Node::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Node::List(values));
                }
                _ => return self.wrong(),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, NotJson> {
        let begin = self.at + 1;
        let Some(len) = memchr2(b'"', b'\\', &self.text[begin..]) else {
            self.at = self.text.len();
            return self.wrong();
        };
        let end = begin + len;
        if self.text[end] == b'"' {
            self.at = end + 1;
            return Ok(String::from_utf8_lossy(&self.text[begin..end]));
        }
        let mut bytes = self.text[begin..end].to_vec();
        self.at = end;
        loop {
            let Some(&byte) = self.text.get(self.at) else { return self.wrong() };
            self.at += 1;
            match byte {
                b'"' => return Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
                b'\\' => self.escape(&mut bytes)?,
                byte => bytes.push(byte),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<(), NotJson> {
        let Some(&byte) = self.text.get(self.at) else { return self.wrong() };
        self.at += 1;
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let high = self.unit()?;
                let mut code = u32::from(high);
                if (0xd800..0xdc00).contains(&high) && self.text[self.at..].starts_with(b"\\u") {
                    let before = self.at;
                    self.at += 2;
                    let low = self.unit()?;
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                    } else {
                        self.at = before;
                    }
                }
                let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return self.wrong(),
        };
        bytes.push(plain);
        Ok(())
    }

    fn unit(&mut self) -> Result<u16, NotJson> {
        let digits = self.text.get(self.at..self.at + 4).and_then(|digits| core::str::from_utf8(digits).ok());
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.at += 4;
        unit.ok_or(NotJson(self.at.min(self.text.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_other_parsers() {
        for text in [
            "{}",
            "[]",
            " {\"a\" : [1, -2.5e3, true,false , null, \"x\\\"\\u00e9\\ud83d\\ude00\\n\"] } ",
            "{\"a\":{\"b\":{\"c\":[[[]]]}}}",
        ] {
            let node = Node::parse(text.as_bytes()).unwrap();
            let other: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(as_other(&node), other, "{text}");
        }
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "[1 2]",
            "\"a",
            "tru",
            "{} x",
            "\"\\x\"",
            "\"\\u12\"",
        ] {
            assert!(Node::parse(text.as_bytes()).is_err(), "{text}");
        }
        let deep = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
        assert!(Node::parse(deep(DEEPEST).as_bytes()).is_ok() && Node::parse(deep(5000).as_bytes()).is_err());
    }

    fn as_other(node: &Node<'_>) -> serde_json::Value {
        match node {
            Node::Null => serde_json::Value::Null,
            Node::Bool(value) => (*value).into(),
            Node::Number(text) => serde_json::from_str(text).unwrap(),
            Node::Text(text) => (&**text).into(),
            Node::List(values) => values.iter().map(as_other).collect(),
            Node::Object(fields) => serde_json::Value::Object(
                fields.iter().map(|(name, value)| (name.to_string(), as_other(value))).collect(),
            ),
        }
    }
}
