//! The sources of a load: files, or a reader.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::TableForm;

/// The source of a load: a file, several files, or a named reader.
///
/// Paths convert into sources: `&str`, `&Path`, `PathBuf`, and slices, arrays and vectors of them.
pub struct Source<'a>(Vec<Feed<'a>>);

/// One input of a source.
pub(super) enum Feed<'a> {
    File(PathBuf),
    Reader {
        name: Arc<str>,
        input: Box<dyn Read + 'a>,
        /// The form of the text, if this program made it.
        form: Option<&'static TableForm>,
    },
    /// Files of one feed, one after the other.
    Replay(Vec<PathBuf>),
}

impl<'a> Source<'a> {
    /// Returns a source that reads from `input`; `name` is used in reports and errors.
    pub fn reader(name: &str, input: impl Read + 'a) -> Self {
        Self(vec![Feed::Reader { name: name.into(), input: Box::new(input), form: None }])
    }

    /// Returns the files as one source. If several files have the same prefix, [`select`](crate::select) says which
    /// route is used.
    pub fn files(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self(paths.into_iter().map(|path| Feed::File(path.into())).collect())
    }

    /// Returns the files, or those in folders, as one feed: the latest table dump and the updates after it, in the
    /// order of time. File names do not matter. With [`Filter::until`](crate::Filter) the result is the table at that
    /// time. All files are MRT. Updates from before the dump are left out, because the dump includes their effects.
    pub fn replay(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self(vec![Feed::Replay(paths.into_iter().map(Into::into).collect())])
    }

    /// Returns this source, followed by another.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn into_feeds(self) -> Vec<Feed<'a>> {
        self.0
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl fmt::Debug for Feed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(f),
            Self::Replay(paths) => write!(f, "replay {paths:?}"),
            Self::Reader { name, .. } => write!(f, "reader {name:?}"),
        }
    }
}

impl From<PathBuf> for Source<'_> {
    fn from(path: PathBuf) -> Self {
        Self::files([path])
    }
}

impl From<&PathBuf> for Source<'_> {
    fn from(path: &PathBuf) -> Self {
        Self::files([path])
    }
}

impl From<&Path> for Source<'_> {
    fn from(path: &Path) -> Self {
        Self::files([path])
    }
}

impl From<&str> for Source<'_> {
    fn from(path: &str) -> Self {
        Self::files([path])
    }
}

impl From<&String> for Source<'_> {
    fn from(path: &String) -> Self {
        Self::files([path])
    }
}

impl From<String> for Source<'_> {
    fn from(path: String) -> Self {
        Self::files([path])
    }
}

impl<P: AsRef<Path>> From<&[P]> for Source<'_> {
    fn from(paths: &[P]) -> Self {
        Self::files(paths.iter().map(AsRef::as_ref))
    }
}

impl<P: AsRef<Path>> From<&Vec<P>> for Source<'_> {
    fn from(paths: &Vec<P>) -> Self {
        paths.as_slice().into()
    }
}

impl<P: AsRef<Path>> From<Vec<P>> for Source<'_> {
    fn from(paths: Vec<P>) -> Self {
        paths.as_slice().into()
    }
}

impl<P: AsRef<Path>, const N: usize> From<[P; N]> for Source<'_> {
    fn from(paths: [P; N]) -> Self {
        paths.as_slice().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_lists_of_them_are_sources() {
        let path = PathBuf::from("a");
        let one: [Source<'_>; 6] = [
            "a".into(),
            String::from("a").into(),
            (&String::from("a")).into(),
            path.as_path().into(),
            (&path).into(),
            path.clone().into(),
        ];
        for source in &one {
            assert_eq!(format!("{source:?}"), "[\"a\"]");
        }
        let two: [Source<'_>; 4] =
            [["a", "b"].into(), vec!["a", "b"].into(), (&vec!["a", "b"]).into(), ["a", "b"][..].into()];
        for source in &two {
            assert_eq!(format!("{source:?}"), "[\"a\", \"b\"]");
        }
        assert_eq!(format!("{:?}", Source::reader("x", &b""[..])), "[reader \"x\"]");
    }
}
