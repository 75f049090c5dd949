//! JSON in one pass, whatever its length: lists of objects, an object a line or several after each other, and the objects that
//! routers print, with prefixes as names.
//!
//! A list or an object that fits into the window is read as a whole. A longer one is entered, and its parts are read one after
//! the other; so is one that is not JSON, which costs no more than the part that is not. Memory is bounded by the window and by
//! the names and texts that are kept of the objects that were entered.

mod next_hop;
mod parse;
mod routes;
mod scope;
mod window;

use std::io::{self, Read};

use super::head::TextHead;
use super::{Settings, Stop, Take};
use crate::text::{LineError, LineErrorKind};
use parse::Node;
use routes::{Marks, Visitor};
use scope::{OpenContainer, Scope};
use window::{Extent, TextWindow, WHOLE_BYTES};

/// Lists and objects that may be entered at a time.
const DEEPEST: usize = 32;

/// Returns how many lines of the head are of this form: all, if it begins as JSON does.
pub(super) fn claims(head: &TextHead<'_>, _: &Settings<'_>) -> usize {
    let begins = |line: &str| {
        let line = line.trim_start_matches(['\u{1e}', ' ', '\t']);
        let mut rest = line.chars().filter(|c| !c.is_whitespace());
        // A configuration file, for example, begins with a section such as `[workspace]`.
        matches!(
            (rest.next(), rest.next()),
            (Some('{'), Some('"' | '}') | None) | (Some('['), Some('{' | '[' | '"' | ']') | None)
        )
    };
    match skipped(head) {
        Some(at) if begins(head.lines()[at]) => head.lines().len() - at + 1,
        _ => 0,
    }
}

/// Returns the number of the line, of those that are not blank, on which JSON begins: the command that printed it may come first.
fn skipped(head: &TextHead<'_>) -> Option<usize> {
    let at =
        head.lines().iter().take(8).position(|line| line.trim_start().starts_with(['{', '[', '\u{1e}']))?;
    let is_command = |line: &&str| line.contains(['#', '$', '>']) || line.starts_with("show ");
    head.lines()[..at].iter().all(is_command).then_some(at)
}

/// Reads JSON.
pub(crate) struct JsonReader<R> {
    window: TextWindow<R>,
    frames: Vec<OpenContainer>,
    marks: Marks,
    /// Bytes that belong to no entry.
    lost_bytes: u64,
}

impl<R: Read> JsonReader<R> {
    pub(crate) fn new(input: R, head: &TextHead<'_>) -> Self {
        let mut json = Self {
            window: TextWindow::new(input),
            frames: Vec::new(),
            marks: Marks::of(head),
            lost_bytes: 0,
        };
        let lines = skipped(head).unwrap_or(0);
        if json.window.reach(3).starts_with(b"\xef\xbb\xbf") {
            json.window.skip(3);
        }
        for _ in 0..lines {
            json.window.next(false);
            json.window.pass_line();
        }
        json
    }

    pub(crate) fn input(&self) -> &R {
        self.window.input()
    }

    pub(crate) fn line(&self) -> u64 {
        self.window.line()
    }

    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.window.steps()
    }

    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.window.take_failure()
    }

    /// Reads on by about this many bytes. Returns whether there is more.
    pub(crate) fn read_on(&mut self, bytes: u64, take: &mut dyn Take) -> Result<bool, Stop> {
        let end = self.window.offset().saturating_add(bytes);
        while self.window.offset() < end {
            let Some(byte) = self.window.next(self.frames.is_empty()) else {
                if !self.frames.is_empty() {
                    self.frames.clear();
                    // The failure of the stream is reported separately, so this has no excerpt.
                    take.bad(self.line(), LineError::new(LineErrorKind::EndsEarly, 0), "")?;
                }
                return Ok(false);
            };
            self.step(byte, take)?;
        }
        Ok(true)
    }

    fn step(&mut self, byte: u8, take: &mut dyn Take) -> Result<(), Stop> {
        let Some(frame) = self.frames.last() else {
            return match byte {
                b'{' | b'[' => self.container(None, take),
                _ => self.wrong(take),
            };
        };
        let is_object = frame.is_object();
        match byte {
            b',' => {
                self.window.skip(1);
                Ok(())
            }
            b'}' | b']' if is_object == (byte == b'}') => {
                let (is_route, is_short) = (frame.is_route(), frame.end.is_some());
                self.frames.pop();
                self.window.skip(1);
                if is_route {
                    let kind = match is_short {
                        true => LineErrorKind::NotJson,
                        false => LineErrorKind::EntryTooLong { limit_bytes: WHOLE_BYTES },
                    };
                    return take.bad(self.window.line(), LineError::new(kind, 0), "");
                }
                Ok(())
            }
            b'"' if is_object => {
                let here = self.window.reach(WHOLE_BYTES);
                let Ok((Node::Text(name), len)) = Node::scalar(&here[..here.len().min(WHOLE_BYTES)]) else {
                    return self.wrong(take);
                };
                let name = name.into_owned();
                self.window.skip(len);
                if self.window.next(false) != Some(b':') {
                    return self.wrong(take);
                }
                self.window.skip(1);
                match self.window.next(false) {
                    Some(b'{' | b'[') => self.container(Some(name), take),
                    Some(_) => self.scalar(Some(name), take),
                    None => Ok(()),
                }
            }
            b'{' | b'[' if !is_object => self.container(None, take),
            b'}' | b']' => self.wrong(take),
            _ if !is_object => self.scalar(None, take),
            _ => self.wrong(take),
        }
    }

    /// Reads a list or an object that begins here.
    fn container(&mut self, name: Option<String>, take: &mut dyn Take) -> Result<(), Stop> {
        let is_object = self.window.here().first() == Some(&b'{');
        let extent = self.window.extent();
        if let Extent::Closed(len) = extent {
            let line = self.window.line();
            let text = &self.window.here()[..len];
            if let Ok(node) = Node::parse(text) {
                let scope = Scope::new(&self.frames);
                let mut visitor = Visitor { take, marks: self.marks, line, text };
                let found = visitor.visit(&scope, name.as_deref(), &node)?;
                // A value in a list of routes, or alone, must be a route.
                let is_expected =
                    self.frames.last().is_none_or(|frame| !frame.is_object() && frame.routes > 0);
                if found == 0 && is_expected && !is_empty(&node) {
                    visitor.missing()?;
                }
                if let Some(frame) = self.frames.last_mut() {
                    frame.routes += found;
                }
                self.window.skip(len);
                return Ok(());
            }
        }
        // An object with a prefix is a route, which fits into the window.
        if self.frames.len() >= DEEPEST {
            let kind = LineErrorKind::TooDeep { levels: DEEPEST };
            take.bad(self.window.line(), LineError::new(kind, 0), "")?;
            self.lost_bytes += self.window.pass_over();
            return Ok(());
        }
        let end = match extent {
            Extent::Closed(len) => Some(self.window.offset() + len as u64),
            Extent::Open | Extent::Cut => None,
        };
        self.window.skip(1);
        self.frames.push(OpenContainer::new(name, is_object, end));
        Ok(())
    }

    /// Reads a value that is neither a list nor an object, in one that was entered.
    fn scalar(&mut self, name: Option<String>, take: &mut dyn Take) -> Result<(), Stop> {
        self.window.reach(WHOLE_BYTES);
        let line = self.window.line();
        let here = self.window.here();
        let here = &here[..here.len().min(WHOLE_BYTES)];
        let Ok((node, len)) = Node::scalar(here) else { return self.wrong(take) };
        let Some((frame, outer)) = self.frames.split_last_mut() else { return Ok(()) };
        let mut visitor = Visitor { take, marks: self.marks, line, text: &here[..len] };
        match &name {
            Some(name) if routes::is_prefix(name) => {
                let scope = Scope::new(outer);
                frame.routes += visitor.prefixed(&scope, name, &node)?;
            }
            Some(name) => frame.keep(name, node.plain().unwrap_or_default()),
            None => {
                let key = frame.key().map(str::to_owned);
                let scope = Scope::new(outer);
                frame.routes += visitor.element(&scope, key.as_deref(), &node)?;
            }
        }
        self.window.skip(len);
        Ok(())
    }

    /// Counts bytes that are not JSON as one entry, and goes on after them.
    fn wrong(&mut self, take: &mut dyn Take) -> Result<(), Stop> {
        let line = self.window.line();
        let excerpt: Vec<u8> = self.window.here().iter().copied().take(100).collect();
        let excerpt = String::from_utf8_lossy(&excerpt).into_owned();
        let before = self.window.offset();
        // A fault inside a route that was counted as bad is not a second entry.
        if !self.frames.last().is_some_and(OpenContainer::is_counted_route) {
            take.bad(line, LineError::new(LineErrorKind::NotJson, 0), &excerpt)?;
        }
        self.frames.iter_mut().for_each(|frame| frame.is_counted = true);
        match self.frames.last() {
            None => {
                self.window.pass_line();
            }
            // All of an object without lists or objects in it is misread.
            Some(frame) if frame.is_object() && frame.routes == 0 && frame.end.is_some() => {
                let rest = frame.end.unwrap_or(before).saturating_sub(before);
                let rest = usize::try_from(rest).unwrap_or(0).min(self.window.here().len());
                self.window.skip(rest);
                self.frames.pop();
            }
            Some(_) => {
                let closing = self.window.here().first().copied();
                let passed = self.window.pass_over();
                // A bracket closes something farther out, or nothing.
                if passed == 0 && matches!(closing, Some(b'}' | b']')) {
                    let closes_outer =
                        self.frames.iter().any(|frame| frame.is_object() == (closing == Some(b'}')));
                    if closes_outer {
                        self.frames.pop();
                    } else {
                        self.window.skip(1);
                    }
                }
            }
        }
        self.lost_bytes += self.window.offset() - before;
        Ok(())
    }
}

fn is_empty(node: &Node<'_>) -> bool {
    match node {
        Node::List(values) => values.is_empty(),
        Node::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
