//! A decoder as the tests and the fuzz targets see it: bytes go in that anybody may have made up.
//!
//! A decoder either refuses, or what it has read is written as the very bytes it was read from. So there is
//! no second way to say anything, nothing that is ignored, and nothing that is believed without a look.

/// What became of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Refused,
    /// They were read, and are what would have been written.
    Accepted,
}

impl Judged {
    /// What is known once `read` has been tried; `written` is what is made of what was read.
    ///
    /// # Panics
    ///
    /// When something was read that is written in another way.
    pub fn of<T>(bytes: &[u8], read: Option<T>, written: impl FnOnce(&T) -> Vec<u8>) -> Self {
        let Some(read) = read else { return Self::Refused };
        assert_eq!(written(&read), bytes, "it was read from bytes that nobody would write");
        Self::Accepted
    }
}

/// One decoder.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    pub name: &'static str,
    /// Bytes that it accepts.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Puts the checksums right, so that what they guard is looked at, too.
    pub seal: fn(&mut [u8]),
    pub judge: fn(&[u8]) -> Judged,
    per_byte: u64,
}

/// No checksum guards it.
pub fn unsealed(_: &mut [u8]) {}

impl Decoder {
    pub const fn new(
        name: &'static str,
        samples: fn() -> Vec<Vec<u8>>,
        seal: fn(&mut [u8]),
        judge: fn(&[u8]) -> Judged,
    ) -> Self {
        Self { name, samples, seal, judge, per_byte: 64 }
    }

    /// The same, that may take so many bytes of memory for each byte of its input.
    #[must_use]
    pub const fn costing(self, per_byte: u64) -> Self {
        Self { per_byte, ..self }
    }

    /// The most memory that an input of `length` bytes may cost at a time, whatever it claims to hold: the pages and
    /// tables that there are anyway, and a small multiple of the input.
    pub const fn memory_max(&self, length: usize) -> u64 {
        32 * 1024 + self.per_byte * length as u64
    }

    /// Judges the bytes as they are, and with their checksums put right.
    ///
    /// # Panics
    ///
    /// When the decoder panics, or accepts what it should not.
    pub fn try_bytes(&self, bytes: &[u8]) -> Judged {
        let judged = (self.judge)(bytes);
        let mut sealed = bytes.to_vec();
        (self.seal)(&mut sealed);
        if sealed == bytes { judged } else { (self.judge)(&sealed) }
    }
}

/// One change of some bytes. Places are taken as remainders, so that each change fits all bytes.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    Flip {
        bit: usize,
    },
    Set {
        at: usize,
        byte: u8,
    },
    Cut {
        length: usize,
    },
    /// Puts so many bytes of another sample in.
    Splice {
        at: usize,
        from: usize,
        length: usize,
    },
    Remove {
        at: usize,
        length: usize,
    },
}

/// `bytes` after these changes.
pub fn edited(bytes: &[u8], edits: &[Edit], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for edit in edits {
        let length_now = bytes.len();
        let within = |at: usize| at % length_now.max(1);
        match *edit {
            Edit::Flip { bit } if length_now > 0 => {
                let bit = bit % (length_now * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Edit::Set { at, byte } if length_now > 0 => bytes[within(at)] = byte,
            Edit::Cut { length } => bytes.truncate(length % (length_now + 1)),
            Edit::Splice { at, from, length } => {
                let from = from % (other.len() + 1);
                let end = other.len().min(from + length % 64);
                let at = at % (length_now + 1);
                bytes.splice(at..at, other[from..end].iter().copied());
            }
            Edit::Remove { at, length } => {
                let at = at % (length_now + 1);
                bytes.drain(at..length_now.min(at + length % 64));
            }
            Edit::Flip { .. } | Edit::Set { .. } => {}
        }
    }
    bytes
}
