//! Files of captured packets (pcap), read and written: frame by frame, exactly.
//!
//! The classic format, with times in micro- or nanoseconds and in either byte order; files are written with nanoseconds.
//! (draft-ietf-opsawg-pcap.)

use core::fmt;
use std::io::{self, Read, Write};

/// Longest frame that is read. A longer one means that the file is damaged.
pub const MAX_FRAME: usize = 1 << 18;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;

/// A frame of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Time since 1970, in nanoseconds.
    pub time_ns: u64,
    /// The frame.
    pub bytes: Vec<u8>,
    /// Whether only the beginning of the frame was captured.
    pub cut: bool,
}

/// Why a file cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum PcapError {
    /// Reading failed.
    Io(io::Error),
    /// The file does not begin like a pcap file.
    NotPcap,
    /// Frames of another kind of link, by its number.
    LinkType(u32),
    /// A frame claims this length.
    FrameLength(u32),
    /// The file ends within a frame or header.
    Truncated,
}

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotPcap => {
                f.write_str("not a pcap file (pcapng is not supported: convert with 'tcpdump -r A -w B')")
            }
            Self::LinkType(link) => write!(f, "link type {link}: only Ethernet (1) is supported"),
            Self::FrameLength(len) => write!(f, "a frame of {len} bytes: at most {MAX_FRAME} are possible"),
            Self::Truncated => f.write_str("the file ends within a frame"),
        }
    }
}

impl core::error::Error for PcapError {}

impl From<io::Error> for PcapError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Truncated } else { Self::Io(error) }
    }
}

/// Reads a file.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    big_endian: bool,
    unit_ns: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// When it is not a pcap file of Ethernet frames, or reading fails.
    pub fn new(mut input: R) -> Result<Self, PcapError> {
        let mut header = [0; 24];
        input.read_exact(&mut header)?;
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let (big_endian, unit_ns) = match (u32::from_be_bytes(word(0)), u32::from_le_bytes(word(0))) {
            (MICROSECONDS, _) => (true, 1000),
            (NANOSECONDS, _) => (true, 1),
            (_, MICROSECONDS) => (false, 1000),
            (_, NANOSECONDS) => (false, 1),
            _ => return Err(PcapError::NotPcap),
        };
        let link = if big_endian { u32::from_be_bytes(word(20)) } else { u32::from_le_bytes(word(20)) };
        // The upper bits say whether frames end with a check sequence.
        if link & 0x0fff_ffff != ETHERNET {
            return Err(PcapError::LinkType(link));
        }
        Ok(Self { input, big_endian, unit_ns })
    }

    /// Reads the next frame; `None` at the end.
    ///
    /// # Errors
    /// When the file is damaged or reading fails.
    pub fn next_frame(&mut self) -> Result<Option<Captured>, PcapError> {
        let mut header = [0; 16];
        let mut read = 0;
        while read < header.len() {
            match self.input.read(&mut header[read..]) {
                Ok(0) if read == 0 => return Ok(None),
                Ok(0) => return Err(PcapError::Truncated),
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let word = |at: usize| {
            let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
            if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (seconds, part, captured, len) = (word(0), word(4), word(8), word(12));
        if captured as usize > MAX_FRAME {
            return Err(PcapError::FrameLength(captured));
        }
        let mut bytes = vec![0; captured as usize];
        self.input.read_exact(&mut bytes)?;
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(part) * self.unit_ns;
        Ok(Some(Captured { time_ns, bytes, cut: captured < len }))
    }
}

/// Writes a file.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(mut output: W) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&NANOSECONDS.to_le_bytes());
        header[4..8].copy_from_slice(&[2, 0, 4, 0]);
        header[16..20].copy_from_slice(&(MAX_FRAME as u32).to_le_bytes());
        header[20..24].copy_from_slice(&ETHERNET.to_le_bytes());
        output.write_all(&header)?;
        Ok(Self { output })
    }

    /// Writes a frame, given in parts.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&mut self, time_ns: u64, parts: &[&[u8]]) -> io::Result<()> {
        let len = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
        let mut header = [0; 16];
        header[..4].copy_from_slice(&((time_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&len.to_le_bytes());
        header[12..16].copy_from_slice(&len.to_le_bytes());
        self.output.write_all(&header)?;
        parts.iter().try_for_each(|part| self.output.write_all(part))
    }

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_they_were_written_and_cuts_are_errors() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file).unwrap();
        writer.write(1_700_000_000_123_456_789, &[b"abc", b"", b"de"]).unwrap();
        writer.write(5, &[&[7; 2000]]).unwrap();
        let mut reader = Reader::new(&file[..]).unwrap();
        let first = reader.next_frame().unwrap().unwrap();
        assert_eq!(
            first,
            Captured { time_ns: 1_700_000_000_123_456_789, bytes: b"abcde".to_vec(), cut: false }
        );
        assert_eq!(reader.next_frame().unwrap().unwrap().bytes, [7; 2000]);
        assert!(reader.next_frame().unwrap().is_none());
        for len in 0..file.len() {
            let Ok(mut reader) = Reader::new(&file[..len]) else {
                assert!(len < 24);
                continue;
            };
            let ends = loop {
                match reader.next_frame() {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert_eq!(ends.is_ok(), len == 24 || len == 24 + 16 + 5, "{len}");
        }
    }

    #[test]
    fn other_byte_order_units_and_kinds() {
        let mut file = MICROSECONDS.to_be_bytes().to_vec();
        file.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 1]);
        file.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 9, 0x55]);
        let frame = Reader::new(&file[..]).unwrap().next_frame().unwrap().unwrap();
        assert_eq!(frame, Captured { time_ns: 1_000_002_000, bytes: vec![0x55], cut: true });
        file[23] = 113;
        assert!(matches!(Reader::new(&file[..]), Err(PcapError::LinkType(113))));
        file[0] = 0;
        assert!(matches!(Reader::new(&file[..]), Err(PcapError::NotPcap)));
        let mut huge = file[..24].to_vec();
        huge[0] = 0xa1;
        huge[23] = 1;
        huge.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0xff, 0, 0, 0]);
        assert!(matches!(Reader::new(&huge[..]).unwrap().next_frame(), Err(PcapError::FrameLength(_))));
    }
}
