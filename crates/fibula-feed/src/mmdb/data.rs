//! The section of records: values with a type and a size in front (MaxMind DB file format, "Output Data Section").

use std::collections::HashMap;

use super::MmdbError;

const POINTER: u8 = 1;
const TEXT: u8 = 2;
const DOUBLE: u8 = 3;
const BYTES: u8 = 4;
const U16: u8 = 5;
const U32: u8 = 6;
const MAP: u8 = 7;
const I32: u8 = 8;
const U64: u8 = 9;
const LIST: u8 = 11;
const BOOL: u8 = 14;

/// Shorter texts are written again, because a place takes as much.
const LEAST_SHARED: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Data {
    bytes: Vec<u8>,
    /// Where each text is.
    texts: HashMap<Box<str>, usize>,
    /// Each text is written, however often it comes.
    repeats: bool,
}

impl Data {
    /// Creates a section in which each text is written in full. In a description, readers count places from different beginnings.
    pub(super) fn without_places() -> Self {
        Self { repeats: true, ..Self::default() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn control(&mut self, kind: u8, size: usize) -> Result<(), MmdbError> {
        let (code, rest) = match size {
            0..29 => (size as u8, 0),
            29..285 => (29, 1),
            285..65_821 => (30, 2),
            65_821..16_843_037 => (31, 3),
            _ => return Err(MmdbError::TooLarge),
        };
        let from = [0, 29, 285, 65_821][rest];
        match kind {
            0..=7 => self.bytes.push(kind << 5 | code),
            _ => self.bytes.extend([code, kind - 7]),
        }
        self.bytes.extend(&((size - from) as u32).to_be_bytes()[4 - rest..]);
        Ok(())
    }

    /// Writes a number without its leading zero bytes.
    fn number(&mut self, kind: u8, bytes: &[u8]) -> Result<(), MmdbError> {
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        self.control(kind, bytes.len() - zeros)?;
        self.bytes.extend(&bytes[zeros..]);
        Ok(())
    }

    pub(super) fn u16(&mut self, number: u16) -> Result<(), MmdbError> {
        self.number(U16, &number.to_be_bytes())
    }

    pub(super) fn u32(&mut self, number: u32) -> Result<(), MmdbError> {
        self.number(U32, &number.to_be_bytes())
    }

    pub(super) fn u64(&mut self, number: u64) -> Result<(), MmdbError> {
        self.number(U64, &number.to_be_bytes())
    }

    pub(super) fn i32(&mut self, number: i32) -> Result<(), MmdbError> {
        self.control(I32, 4)?;
        self.bytes.extend(number.to_be_bytes());
        Ok(())
    }

    pub(super) fn f64(&mut self, number: f64) -> Result<(), MmdbError> {
        self.control(DOUBLE, 8)?;
        self.bytes.extend(number.to_be_bytes());
        Ok(())
    }

    pub(super) fn bool(&mut self, is_true: bool) -> Result<(), MmdbError> {
        self.control(BOOL, usize::from(is_true))
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), MmdbError> {
        self.control(BYTES, bytes.len())?;
        self.bytes.extend(bytes);
        Ok(())
    }

    pub(super) fn map(&mut self, pairs: usize) -> Result<(), MmdbError> {
        self.control(MAP, pairs)
    }

    pub(super) fn list(&mut self, values: usize) -> Result<(), MmdbError> {
        self.control(LIST, values)
    }

    /// Writes a text, or where it is if it was written before.
    pub(super) fn text(&mut self, text: &str) -> Result<(), MmdbError> {
        if let Some(&at) = self.texts.get(text) {
            return self.pointer(at);
        }
        if text.len() >= LEAST_SHARED && !self.repeats {
            self.texts.insert(text.into(), self.bytes.len());
        }
        self.control(TEXT, text.len())?;
        self.bytes.extend(text.as_bytes());
        Ok(())
    }

    fn pointer(&mut self, at: usize) -> Result<(), MmdbError> {
        let (size, rest) = match at {
            0..0x800 => (0, at),
            0x800..0x8_0800 => (1, at - 0x800),
            0x8_0800..0x808_0800 => (2, at - 0x8_0800),
            _ => (3, at),
        };
        let rest = u32::try_from(rest).map_err(|_| MmdbError::TooLarge)?;
        let head = POINTER << 5 | size << 3;
        let bytes = rest.to_be_bytes();
        let len = usize::from(size) + 1;
        match size {
            3 => self.bytes.push(head),
            _ => self.bytes.push(head | bytes[3 - len]),
        }
        self.bytes.extend(&bytes[4 - len..]);
        Ok(())
    }
}
