//! A page of settled bits.
//!
//! ```text
//! byte   0      4             8                                4096
//!        +------+-------------+--------------------------------+
//!        | crc  | page number | 32,704 bits, least bit first   |
//!        |      | + 1         |                                |
//!        +------+-------------+--------------------------------+
//! ```
//!
//! Little-endian. *crc* is CRC-32C over bytes 4 to 4096. The number (its low 32 bits, plus one) tells a
//! page that was written to another's place. A page never written is all zeros and has no bit set.

/// A page on the disk, in bytes.
pub(super) const PAGE_LENGTH: usize = 4096;

const CRC: usize = 0;
const NUMBER: usize = CRC + 4;
const BITS: usize = NUMBER + 4;
/// Bits in a page.
pub(super) const PAGE_BITS: usize = (PAGE_LENGTH - BITS) * 8;
const _: () = assert!(PAGE_BITS == 32_704);

/// Why bytes are not the page that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("crc is {got:08x}, computed {expected:08x}")]
    Crc { got: u32, expected: u32 },
    #[error("it is page {got}, not {expected}")]
    Number { got: u32, expected: u32 },
}

/// A page's share in the digest of its file: the digest is the XOR of all shares.
pub(super) fn digest(bytes: &[u8; PAGE_LENGTH]) -> u64 {
    if bytes[..BITS] == [0; BITS] { 0 } else { xxhash_rust::xxh3::xxh3_64(&bytes[..BITS]) }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page(Box<[u8; PAGE_LENGTH]>);

impl Page {
    pub(super) fn empty() -> Self {
        Self(Box::new([0; PAGE_LENGTH]))
    }

    pub(super) fn read(bytes: &[u8; PAGE_LENGTH], number: u64) -> Result<Self, PageError> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(Self::empty());
        }
        let (got, expected) = (word(bytes, CRC), crc32c::crc32c(&bytes[NUMBER..]));
        if got != expected {
            return Err(PageError::Crc { got, expected });
        }
        let (got, expected) = (word(bytes, NUMBER), numbered(number));
        if got != expected {
            return Err(PageError::Number { got, expected });
        }
        Ok(Self(Box::new(*bytes)))
    }

    /// The bytes to write.
    pub(super) fn seal(&self, number: u64) -> [u8; PAGE_LENGTH] {
        let mut bytes = *self.0;
        bytes[NUMBER..BITS].copy_from_slice(&numbered(number).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[NUMBER..]);
        bytes[CRC..NUMBER].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn get(&self, bit: usize) -> bool {
        self.0[BITS + bit / 8] & 1 << (bit % 8) != 0
    }

    pub(super) fn set(&mut self, bit: usize) {
        self.0[BITS + bit / 8] |= 1 << (bit % 8);
    }
}

fn numbered(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("masked to 32 bits").wrapping_add(1)
}

fn word(bytes: &[u8; PAGE_LENGTH], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
