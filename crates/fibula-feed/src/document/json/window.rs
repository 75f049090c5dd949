//! A window that moves over a text of any length.

use std::io::{self, Read};

use memchr::{memchr, memchr2};

/// Most bytes of a value that is read as a whole, and of a name or a text. Longer values are read part by part.
pub(super) const WHOLE_BYTES: usize = 128 << 10;

/// A part of the text, from the place where reading goes on.
pub(super) struct TextWindow<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    ended: bool,
    failure: Option<io::Error>,
    /// Where `start` is in the text, and the number of its line.
    offset: u64,
    line: u64,
    steps: u64,
}

/// Where a list or an object ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// It has this many bytes.
    Closed(usize),
    /// Its end is beyond the window.
    Open,
    /// The text ends before it.
    Cut,
}

impl<R: Read> TextWindow<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            start: 0,
            ended: false,
            failure: None,
            offset: 0,
            line: 1,
            steps: 0,
        }
    }

    pub(super) fn input(&self) -> &R {
        &self.input
    }

    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes that were looked at, moved or counted so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Takes the error that ended the text, if there was one.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// Returns the bytes in the window.
    pub(super) fn here(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Reads until the window has this many bytes, or the text ends.
    pub(super) fn reach(&mut self, bytes: usize) -> &[u8] {
        if self.buffer.len() - self.start < bytes && !self.ended {
            self.fill(bytes);
        }
        self.here()
    }

    fn fill(&mut self, bytes: usize) {
        let rest = self.buffer.len() - self.start;
        self.steps += rest as u64;
        self.buffer.drain(..self.start);
        self.start = 0;
        // As much again, so that few bytes are moved.
        let wanted = 2 * bytes.max(WHOLE_BYTES);
        self.buffer.resize(wanted, 0);
        let mut end = rest;
        while end < bytes && !self.ended {
            match self.input.read(&mut self.buffer[end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                }
            }
        }
        self.buffer.truncate(end);
    }

    /// Goes on by this many bytes of the window.
    pub(super) fn skip(&mut self, bytes: usize) {
        let passed = &self.buffer[self.start..self.start + bytes];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.steps += bytes as u64;
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Skips blanks and, at the top, also characters that may separate values. Returns the byte after them.
    pub(super) fn next(&mut self, at_top: bool) -> Option<u8> {
        loop {
            let here = self.reach(1);
            // RFC 7464 begins each value with a record separator.
            let is_blank = |byte: u8| {
                matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || (at_top && matches!(byte, b',' | 0x1e | b';'))
            };
            let Some(len) = here.iter().position(|&byte| !is_blank(byte)) else {
                let len = here.len();
                if len == 0 {
                    return None;
                }
                self.skip(len);
                continue;
            };
            let byte = here[len];
            self.skip(len);
            return Some(byte);
        }
    }

    /// Returns where the list or the object ends that begins here.
    pub(super) fn extent(&mut self) -> Extent {
        let here = self.reach(WHOLE_BYTES);
        let here = &here[..here.len().min(WHOLE_BYTES)];
        let (found, looked) = end_of(here);
        let is_all = here.len() < WHOLE_BYTES;
        self.steps += looked as u64;
        match found {
            Some(len) => Extent::Closed(len),
            None if is_all => Extent::Cut,
            None => Extent::Open,
        }
    }

    /// Skips the rest of a value inside this many lists and objects, up to the comma or bracket that ends it. Returns how many
    /// bytes that were.
    pub(super) fn pass_over(&mut self) -> u64 {
        let begin = self.offset;
        let (mut depth, mut in_string) = (0_u64, false);
        loop {
            let here = self.reach(1);
            if here.is_empty() {
                return self.offset - begin;
            }
            let mut at = 0;
            let mut ended = false;
            while at < here.len() {
                if in_string {
                    let Some(len) = memchr2(b'"', b'\\', &here[at..]) else {
                        at = here.len();
                        break;
                    };
                    at += len;
                    if here[at] == b'\\' {
                        if at + 1 >= here.len() && at > 0 {
                            break;
                        }
                        at += 2;
                        continue;
                    }
                    in_string = false;
                    at += 1;
                    continue;
                }
                match here[at] {
                    b'"' => in_string = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth == 0 => ended = true,
                    b'}' | b']' => depth -= 1,
                    b',' if depth == 0 => ended = true,
                    _ => {}
                }
                if ended {
                    break;
                }
                at += 1;
            }
            let at = at.min(self.here().len());
            // An escape at the end of the window needs the byte after it.
            if at == 0 && !ended {
                let before = self.here().len();
                if self.reach(before + 1).len() == before {
                    self.skip(before);
                }
                continue;
            }
            self.skip(at);
            if ended {
                return self.offset - begin;
            }
        }
    }

    /// Skips the rest of the line. Returns the number of bytes.
    pub(super) fn pass_line(&mut self) -> u64 {
        let begin = self.offset;
        loop {
            let here = self.reach(1);
            if here.is_empty() {
                return self.offset - begin;
            }
            match memchr(b'\n', here) {
                Some(len) => {
                    self.skip(len + 1);
                    return self.offset - begin;
                }
                None => {
                    let len = here.len();
                    self.skip(len);
                }
            }
        }
    }
}

/// Returns the length of the list or object at the beginning of the text, if it ends in it, and how much was looked at.
fn end_of(text: &[u8]) -> (Option<usize>, usize) {
    let (mut at, mut depth) = (0, 0_usize);
    while at < text.len() {
        match text[at] {
            b'"' => {
                at += 1;
                loop {
                    let Some(len) = memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) else {
                        return (None, text.len());
                    };
                    at += len;
                    if text[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return (Some(at + 1), at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    (None, text.len())
}
