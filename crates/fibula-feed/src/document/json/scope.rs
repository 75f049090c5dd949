//! The context of a value: the names above it, and the fields of the objects that it is in.

use std::borrow::Cow;

use super::super::names;
use super::parse::Node;

/// Most bytes of names and texts that are kept of an object that was entered.
const KEPT_BYTES: usize = 16 << 10;

/// A list or an object that was entered.
pub(super) struct OpenContainer {
    name: Option<String>,
    is_object: bool,
    kept: Vec<(String, String)>,
    kept_bytes: usize,
    /// Where it ends, if that is known.
    pub(super) end: Option<u64>,
    /// Routes found in it.
    pub(super) routes: u64,
    /// Whether it has a field that says where a route applies.
    has_place: bool,
    /// Whether something in it was counted as bad.
    pub(super) is_counted: bool,
}

impl OpenContainer {
    pub(super) fn new(name: Option<String>, is_object: bool, end: Option<u64>) -> Self {
        Self {
            name,
            is_object,
            kept: Vec::new(),
            kept_bytes: 0,
            end,
            routes: 0,
            has_place: false,
            is_counted: false,
        }
    }

    pub(super) fn is_object(&self) -> bool {
        self.is_object
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether it is a route, which should not have been entered.
    pub(super) fn is_route(&self) -> bool {
        self.is_object && self.has_place && self.routes == 0 && !self.is_counted
    }

    /// Returns whether it is a route that was counted as bad.
    pub(super) fn is_counted_route(&self) -> bool {
        self.is_object && self.has_place && self.routes == 0 && self.is_counted
    }

    /// Keeps a field for the routes that come after it.
    pub(super) fn keep(&mut self, name: &str, text: &str) {
        self.has_place |=
            names::PREFIX.iter().any(|one| names::is_same(one, name)) && text.contains(['.', ':']);
        let bytes = name.len() + text.len() + size_of::<(String, String)>();
        if self.kept_bytes + bytes <= KEPT_BYTES {
            self.kept_bytes += bytes;
            self.kept.push((name.to_owned(), text.to_owned()));
        }
    }
}

/// The context of a value.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The lists and objects that were entered, the outermost first.
    frames: &'a [OpenContainer],
    /// Those inside them that were read as a whole, the innermost first.
    link: Option<&'a Link<'a>>,
}

struct Link<'a> {
    outer: Option<&'a Link<'a>>,
    name: Option<&'a str>,
    fields: &'a [(Cow<'a, str>, Node<'a>)],
}

/// An object or a list around a value.
#[derive(Clone, Copy)]
pub(super) enum Around<'a> {
    Entered(&'a OpenContainer),
    Whole(Option<&'a str>, &'a [(Cow<'a, str>, Node<'a>)]),
}

impl<'a> Around<'a> {
    /// Returns the name of the object or list.
    pub(super) fn name(self) -> Option<&'a str> {
        match self {
            Self::Entered(frame) => frame.key(),
            Self::Whole(name, _) => name,
        }
    }

    /// Returns the text of a field.
    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        self.find(|own| own == name).map(|(_, text)| text)
    }

    /// Returns the first field with such a name, and a text that is not empty.
    pub(super) fn find(self, is: impl Fn(&str) -> bool) -> Option<(&'a str, &'a str)> {
        match self {
            Self::Entered(frame) => {
                let mut kept = frame.kept.iter().map(|(name, text)| (&**name, &**text));
                kept.find(|(name, text)| is(name) && !text.is_empty())
            }
            Self::Whole(_, fields) => {
                let mut plain = fields.iter().filter_map(|(name, node)| Some((&**name, node.plain()?)));
                plain.find(|(name, text)| is(name) && !text.is_empty())
            }
        }
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(frames: &'a [OpenContainer]) -> Self {
        Self { frames, link: None }
    }

    /// Calls `inner` with the context of the fields of an object of this name, or of the values of a list.
    pub(super) fn with<T>(
        &self,
        name: Option<&str>,
        fields: &[(Cow<'_, str>, Node<'_>)],
        inner: impl FnOnce(&Scope<'_>) -> T,
    ) -> T {
        let link = Link { outer: self.link, name, fields };
        inner(&Scope { frames: self.frames, link: Some(&link) })
    }

    /// Returns the objects and lists around the value, the innermost first.
    pub(super) fn around(&self) -> impl Iterator<Item = Around<'a>> {
        let links = core::iter::successors(self.link, |link| link.outer);
        let links = links.map(|link| Around::Whole(link.name, link.fields));
        links.chain(self.frames.iter().rev().map(Around::Entered))
    }
}
