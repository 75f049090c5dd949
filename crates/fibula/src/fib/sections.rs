//! What a file holds of an engine: numbers and arrays, by name.

use core::fmt;

use crate::check::CheckError;
use crate::memory::{Budget, Buffer, Limits, OutOfMemory, Shared, Word, Words};

/// What a file holds of an engine: the numbers that shape it and its arrays, by name. A chapter says what they mean.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sections<'a> {
    /// The name of the engine in the registry.
    pub engine: &'static str,
    /// The numbers.
    pub shape: Vec<(&'static str, u64)>,
    /// The arrays.
    pub arrays: Vec<(&'static str, Elements<'a>)>,
}

impl<'a> Sections<'a> {
    /// Returns these numbers, without arrays.
    #[must_use]
    pub fn new(engine: &'static str, shape: &[(&'static str, u64)]) -> Self {
        Self { engine, shape: shape.to_vec(), arrays: Vec::new() }
    }

    /// Adds an array.
    #[must_use]
    pub fn with(mut self, name: &'static str, words: impl Into<Words<'a>>) -> Self {
        self.arrays.push((name, Elements(ElementsRepr::There(words.into()))));
        self
    }

    /// Adds numbers.
    #[must_use]
    pub fn with_numbers(mut self, numbers: &[(&'static str, u32)]) -> Self {
        self.shape.extend(numbers.iter().map(|&(name, number)| (name, u64::from(number))));
        self
    }

    /// Adds an array that is not in memory as a file has it.
    #[must_use]
    pub fn with_copy(mut self, name: &'static str, words: OwnedWords) -> Self {
        self.arrays.push((name, Elements(ElementsRepr::Owned(words))));
        self
    }
}

/// An array of an engine, as a file holds it.
#[derive(Debug)]
pub struct Elements<'a>(ElementsRepr<'a>);

#[derive(Debug)]
enum ElementsRepr<'a> {
    There(Words<'a>),
    Owned(OwnedWords),
}

/// Words that were copied.
#[derive(Debug)]
pub enum OwnedWords {
    /// Of 16 bits.
    Half(Vec<u16>),
    /// Of 32 bits.
    Narrow(Vec<u32>),
    /// Of 64 bits.
    Wide(Vec<u64>),
}

impl Elements<'_> {
    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        match &self.0 {
            ElementsRepr::There(words) => *words,
            ElementsRepr::Owned(OwnedWords::Half(words)) => words[..].into(),
            ElementsRepr::Owned(OwnedWords::Narrow(words)) => words[..].into(),
            ElementsRepr::Owned(OwnedWords::Wide(words)) => words[..].into(),
        }
    }
}

/// What was found in a file of an engine.
#[derive(Debug, Default)]
pub struct Parts {
    limits: Limits,
    shape: Vec<(String, u64)>,
    arrays: Vec<(String, Array)>,
}

/// An array of a file.
#[derive(Debug)]
pub enum Array {
    /// Of 8 bits.
    Byte(FileWords<u8>),
    /// Of 16 bits.
    Half(FileWords<u16>),
    /// Of 32 bits.
    Narrow(FileWords<u32>),
    /// Of 64 bits.
    Wide(FileWords<u64>),
}

/// The words of an array of a file.
#[derive(Debug)]
pub enum FileWords<T: Word> {
    /// Read into memory.
    Copied(Buffer<T>),
    /// In the file, which is mapped.
    Mapped(Shared<T>),
}

/// A word that arrays of files have.
pub trait Element: Word {
    /// Returns the array, if it has words of this kind.
    fn found(array: Array) -> Option<FileWords<Self>>;

    /// Returns an array of such words.
    fn array(found: FileWords<Self>) -> Array;
}

macro_rules! elements {
    ($($word:ty, $kind:ident;)*) => {$(
        impl Element for $word {
            fn found(array: Array) -> Option<FileWords<Self>> {
                match array {
                    Array::$kind(found) => Some(found),
                    _ => None,
                }
            }

            fn array(found: FileWords<Self>) -> Array {
                Array::$kind(found)
            }
        }
    )*};
}

elements! {
    u8, Byte;
    u16, Half;
    u32, Narrow;
    u64, Wide;
}

/// Why no engine could be made of what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartsError {
    /// A number or an array is not there, or is of another kind.
    Missing(&'static str),
    /// The engine would not be in order.
    Broken(CheckError),
    /// Memory ran out.
    Memory(OutOfMemory),
    /// The engine cannot be looked up in while its words may change in any way.
    NotMapped,
}

impl From<CheckError> for PartsError {
    fn from(error: CheckError) -> Self {
        Self::Broken(error)
    }
}

impl From<OutOfMemory> for PartsError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl Parts {
    /// Returns what was found.
    #[must_use]
    pub fn new(limits: Limits, shape: Vec<(String, u64)>, arrays: Vec<(String, Array)>) -> Self {
        Self { limits, shape, arrays }
    }

    /// Returns whether the words of the arrays lie in a file that is mapped, and may change at any time.
    #[must_use]
    pub fn are_mapped(&self) -> bool {
        self.arrays.iter().any(|(_, array)| match array {
            Array::Byte(words) => matches!(words, FileWords::Mapped(_)),
            Array::Half(words) => matches!(words, FileWords::Mapped(_)),
            Array::Narrow(words) => matches!(words, FileWords::Mapped(_)),
            Array::Wide(words) => matches!(words, FileWords::Mapped(_)),
        })
    }

    /// Returns the limits of what is made of the parts.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns a number.
    pub fn number(&self, name: &'static str) -> Result<u64, PartsError> {
        let found = self.shape.iter().find(|(found, _)| found == name);
        found.map(|&(_, number)| number).ok_or(PartsError::Missing(name))
    }

    /// Returns a number that is at most `most`.
    pub fn number_to(&self, name: &'static str, most: u64) -> Result<u32, PartsError> {
        let number = self.number(name)?;
        CheckError::unless(
            number <= most,
            "the numbers of an engine are within their bounds",
            number as usize,
        )?;
        u32::try_from(number).map_err(|_| PartsError::Missing(name))
    }

    fn take<T: Element>(&mut self, name: &'static str) -> Result<FileWords<T>, PartsError> {
        let at = self.arrays.iter().position(|(found, _)| found == name);
        let (_, array) = self.arrays.swap_remove(at.ok_or(PartsError::Missing(name))?);
        T::found(array).ok_or(PartsError::Missing(name))
    }

    /// Returns the words of an array, copied or mapped.
    pub fn shared<T: Element>(&mut self, name: &'static str) -> Result<Shared<T>, PartsError> {
        Ok(match self.take(name)? {
            FileWords::Copied(words) => words.into(),
            FileWords::Mapped(words) => words,
        })
    }

    /// Returns the words of an array that was copied.
    pub fn buffer<T: Element>(&mut self, name: &'static str) -> Result<Buffer<T>, PartsError> {
        match self.take(name)? {
            FileWords::Copied(words) => Ok(words),
            FileWords::Mapped(_) => Err(PartsError::NotMapped),
        }
    }

    /// Returns the words of an array that was copied, in a vector.
    pub fn vec<T: Element>(&mut self, name: &'static str) -> Result<Vec<T>, PartsError> {
        let words = self.buffer::<T>(name)?;
        let mut copy = Budget::new(self.limits).vec(words.len())?;
        copy.extend_from_slice(&words);
        Ok(copy)
    }

    /// Returns an array that was copied as nodes of `WORDS` words each.
    pub fn nodes<T: Element, N: Copy, const WORDS: usize>(
        &mut self,
        name: &'static str,
        node: impl Fn(&[T; WORDS]) -> N,
    ) -> Result<Buffer<N>, PartsError> {
        let words = self.buffer::<T>(name)?;
        let (of_nodes, rest) = words.as_chunks::<WORDS>();
        CheckError::unless(rest.is_empty(), "nodes are whole", words.len())?;
        let mut nodes = Budget::new(self.limits).buffer(of_nodes.len())?;
        nodes.extend(of_nodes.iter().map(node));
        Ok(nodes)
    }
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "'{name}' is missing or of another kind"),
            Self::Broken(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::NotMapped => f.write_str("it cannot be mapped"),
        }
    }
}
