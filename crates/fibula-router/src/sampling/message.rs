//! Messages of IPFIX: a header, and sets of records (RFC 7011, section 3).

/// Bytes of the header of a message.
pub const HEADER: usize = 16;
/// Bytes of the header of a set.
const SET_HEADER: usize = 4;
/// The version of the protocol (RFC 7011, section 3.1).
const VERSION: u16 = 10;
/// Length of a field whose length is in each record (RFC 7011, section 7).
pub const VARIABLE: u16 = u16::MAX;

/// A message that is being written.
#[derive(Debug)]
pub struct IpfixMessage {
    bytes: Vec<u8>,
    /// Most bytes.
    most: usize,
    /// Where the set begins that records are added to.
    set: Option<usize>,
    /// Data records so far, which sequence numbers count.
    data_records: u32,
}

impl IpfixMessage {
    /// Begins a message of at most `most` bytes. More than 65,535 do not fit its header's length.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let most = most.min(usize::from(u16::MAX));
        let mut bytes = Vec::with_capacity(most);
        bytes.resize(HEADER, 0);
        Self { bytes, most, set: None, data_records: 0 }
    }

    /// Ends the set before, and begins another one. `id` is 2 for templates, 3 for templates of options, otherwise the template of data
    /// records.
    pub fn begin_set(&mut self, id: u16) {
        self.end_set();
        self.set = Some(self.bytes.len());
        self.bytes.extend_from_slice(&id.to_be_bytes());
        self.bytes.extend_from_slice(&[0, 0]);
    }

    /// Adds a record to the set. Returns `false` if there is no room for it, and leaves it out.
    pub fn record(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Some(set) = self.set else { return false };
        let before = self.bytes.len();
        write(&mut self.bytes);
        if self.bytes.len() > self.most {
            self.bytes.truncate(before);
            return false;
        }
        // Templates are no data records (RFC 7011, section 3.1).
        let is_data = u16::from_be_bytes([self.bytes[set], self.bytes[set + 1]]) > 255;
        self.data_records += u32::from(is_data);
        true
    }

    /// Returns whether there is no record in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= HEADER + self.set.map_or(0, |_| SET_HEADER)
    }

    fn end_set(&mut self) {
        let Some(set) = self.set.take() else { return };
        let len = self.bytes.len() - set;
        if len == SET_HEADER {
            // A set has at least one record (RFC 7011, section 3.3.1).
            self.bytes.truncate(set);
            return;
        }
        // It fits, because the message does.
        self.bytes[set + 2..set + 4].copy_from_slice(&(len as u16).to_be_bytes());
    }

    /// Ends the message, which is exported at this second since 1970.
    #[must_use]
    pub fn finish(mut self, seconds: u32, domain: u32) -> SealedMessage {
        self.end_set();
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(&VERSION.to_be_bytes());
        header.extend_from_slice(&(self.bytes.len() as u16).to_be_bytes());
        header.extend_from_slice(&seconds.to_be_bytes());
        header.extend_from_slice(&0_u32.to_be_bytes());
        header.extend_from_slice(&domain.to_be_bytes());
        self.bytes[..HEADER].copy_from_slice(&header);
        SealedMessage { bytes: self.bytes, data_records: self.data_records }
    }
}

/// A message that is complete but for its sequence number, which each collector has its own of.
#[derive(Debug, Clone)]
pub struct SealedMessage {
    bytes: Vec<u8>,
    /// Its data records.
    pub data_records: u32,
}

impl SealedMessage {
    /// Returns the message for a collector that was sent so many data records before (RFC 7011, section 3.1).
    pub fn numbered(&mut self, sequence: u32) -> &[u8] {
        self.bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
        &self.bytes
    }
}

/// Appends a text of variable length (RFC 7011, section 7). Of one beyond 65,535 bytes the end is left out, because its length has two
/// bytes.
pub fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let mut len = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    match u8::try_from(len) {
        Ok(short) if short < u8::MAX => bytes.push(short),
        _ => {
            bytes.push(u8::MAX);
            bytes.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&text.as_bytes()[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of RFC 7011, appendix A: a set of templates (A.2.1), one of data (A.3), one of options' templates (A.4.1), and one of
    /// options (A.4.3). Its header is A.1's, with lengths and numbers of this message.
    #[test]
    fn the_examples_of_the_rfc() {
        let mut message = IpfixMessage::new(1500);
        message.begin_set(2);
        let fields = [(8_u16, 4_u16), (12, 4), (15, 4), (2, 4), (1, 4)];
        let template = |bytes: &mut Vec<u8>| {
            for number in [256, 5].into_iter().chain(fields.iter().flat_map(|&(id, len)| [id, len])) {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
        };
        assert!(message.record(template));
        message.begin_set(256);
        let flows = [
            ([192, 0, 2, 12], [192, 0, 2, 254], [192, 0, 2, 1], 5009_u32, 5_344_385_u32),
            ([192, 0, 2, 27], [192, 0, 2, 23], [192, 0, 2, 2], 748, 388_934),
            ([192, 0, 2, 56], [192, 0, 2, 65], [192, 0, 2, 3], 5, 6534),
        ];
        for (source, destination, next_hop, packets, octets) in flows {
            assert!(message.record(|bytes| {
                bytes.extend(
                    [source, destination, next_hop, packets.to_be_bytes(), octets.to_be_bytes()].concat(),
                );
            }));
        }
        message.begin_set(3);
        // lineCardId (141) is the scope; exportedMessageTotalCount (41) and exportedFlowRecordTotalCount (42) are the options.
        assert!(message.record(|bytes| {
            for number in [258_u16, 3, 1, 141, 4, 41, 2, 42, 2] {
                bytes.extend_from_slice(&number.to_be_bytes());
            }
        }));
        message.begin_set(258);
        for (card, messages, records) in [(1_u32, 345_u16, 10_201_u16), (2, 690, 20_402)] {
            assert!(message.record(|bytes| {
                bytes.extend_from_slice(&card.to_be_bytes());
                bytes.extend_from_slice(&messages.to_be_bytes());
                bytes.extend_from_slice(&records.to_be_bytes());
            }));
        }
        let mut ended = message.finish(0x5a01_0203, 7);
        assert_eq!(ended.data_records, 5);
        let words = |bytes: &[u8]| -> Vec<u16> {
            bytes.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
        };
        let bytes = ended.numbered(0x0102_0304);
        let header = words(&bytes[..16]);
        assert_eq!(header, [10, 16 + 28 + 64 + 22 + 20, 0x5a01, 0x0203, 0x0102, 0x0304, 0, 7]);
        let template = [2, 28, 256, 5, 8, 4, 12, 4, 15, 4, 2, 4, 1, 4];
        assert_eq!(words(&bytes[16..44]), template, "A.2.1");
        assert_eq!(words(&bytes[44..48]), [256, 64], "A.3: 4 bytes and three records of 20");
        assert_eq!(bytes[48..60], [192, 0, 2, 12, 192, 0, 2, 254, 192, 0, 2, 1]);
        assert_eq!(bytes[60..68], [0, 0, 0x13, 0x91, 0, 0x51, 0x8c, 0x81]);
        assert_eq!(words(&bytes[108..130]), [3, 22, 258, 3, 1, 141, 4, 41, 2, 42, 2], "A.4.1");
        assert_eq!(words(&bytes[130..150]), [258, 20, 0, 1, 345, 10_201, 0, 2, 690, 20_402], "A.4.3");
    }

    #[test]
    fn texts_have_their_length_before_them() {
        let encoded = |text: &str| {
            let mut bytes = Vec::new();
            put_text(&mut bytes, text);
            bytes
        };
        // RFC 7011, figures R and S: one byte below 255, otherwise 255 and two bytes.
        assert_eq!(encoded("lan"), [3, b'l', b'a', b'n']);
        assert_eq!(encoded(""), [0]);
        assert_eq!(encoded(&"x".repeat(254))[..2], [254, b'x']);
        assert_eq!(encoded(&"x".repeat(255))[..4], [255, 0, 255, b'x']);
        assert_eq!(encoded(&"x".repeat(1000))[..4], [255, 3, 232, b'x']);
        // Cut between characters.
        let long = encoded(&"é".repeat(40_000));
        assert_eq!((long.len(), &long[..3]), (3 + 65_534, &[255, 255, 254][..]));
    }

    #[test]
    fn a_record_that_does_not_fit_is_left_out_whole() {
        let mut message = IpfixMessage::new(HEADER + 4 + 10);
        assert!(!message.record(|bytes| bytes.push(1)), "outside a set");
        assert!(message.is_empty());
        message.begin_set(300);
        assert!(message.is_empty());
        assert!(message.record(|bytes| bytes.extend_from_slice(&[1; 6])));
        assert!(!message.record(|bytes| bytes.extend_from_slice(&[2; 5])));
        assert!(message.record(|bytes| bytes.extend_from_slice(&[3; 4])));
        assert!(!message.is_empty());
        // A set without a record goes.
        message.begin_set(301);
        let mut ended = message.finish(0, 0);
        assert_eq!(ended.data_records, 2);
        let bytes = ended.numbered(0);
        assert_eq!(bytes[2..4], [0, 30]);
        assert_eq!(bytes[16..], [1, 44, 0, 14, 1, 1, 1, 1, 1, 1, 3, 3, 3, 3]);
    }
}
