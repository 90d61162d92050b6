//! Message ids and receipt handles: what a client holds of us, under a MAC.
//!
//! An id needs no table: it says where the message's record stands, so a look-up is one read. It cannot
//! be forged or guessed: the MAC covers a random number that only the record has.
//!
//! ```text
//! message id      0       2            8       16         22 characters of base64url
//!                 +-------+------------+-------+
//!                 | shard | offset/32  | MAC   |
//!                 +-------+------------+-------+
//! receipt handle  0        4        8       10     12             20         24           32       40      44    52
//!                 +--------+--------+-------+------+--------------+----------+------------+--------+-------+-----+
//!                 | group  | topic  | queue | zero | queue offset | attempt  | lease      | until  | epoch | MAC |
//!                 +--------+--------+-------+------+--------------+----------+------------+--------+-------+-----+
//! ```
//!
//! MACs are the first eight bytes of HMAC-SHA-256, over a first byte that says what it is for, then the
//! fields (and, for an id, the record's nonce). Big-endian, so that ids sort by offset. The shard is 0.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::offset::{Offset, STEP};
use crate::clock::Timestamp;

const ID_LENGTH: usize = 16;
const HANDLE_LENGTH: usize = 52;
const MAC_LENGTH: usize = 8;
const FOR_ID: u8 = 1;
const FOR_HANDLE: u8 = 2;
const FOR_CURSOR: u8 = 3;

/// The key of one data directory.
#[derive(Clone)]
pub struct IdKey(Hmac<Sha256>);

impl fmt::Debug for IdKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("IdKey(secret)")
    }
}

/// An id as a client sent it: well formed, and not yet believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimedId {
    pub offset: Offset,
    mac: [u8; MAC_LENGTH],
}

/// What a receipt handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    pub group_id: u32,
    pub topic_id: u32,
    pub queue: u16,
    pub queue_offset: u64,
    pub attempt: u32,
    pub lease: u64,
    /// When the lease ended as it was first given.
    pub until: Timestamp,
    pub epoch: u32,
}

impl IdKey {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Hmac::new_from_slice(key).expect("HMAC takes a key of any length"))
    }

    /// The id of the message whose record stands at `offset` and has `nonce`.
    pub fn message_id(&self, offset: Offset, nonce: u64) -> String {
        let mut bytes = [0; ID_LENGTH];
        bytes[2..8].copy_from_slice(&step_bytes(offset));
        let mac = self.mac(FOR_ID, &[&bytes[..8], &nonce.to_be_bytes()]);
        bytes[8..].copy_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Whether the claim is the id of the message at its offset, given the nonce found there.
    pub fn confirms(&self, claimed: &ClaimedId, nonce: u64) -> bool {
        let mut fields = [0; 8];
        fields[2..].copy_from_slice(&step_bytes(claimed.offset));
        self.mac(FOR_ID, &[&fields, &nonce.to_be_bytes()]) == claimed.mac
    }

    pub fn write_handle(&self, handle: &Handle) -> String {
        let mut bytes = [0; HANDLE_LENGTH];
        bytes[..4].copy_from_slice(&handle.group_id.to_be_bytes());
        bytes[4..8].copy_from_slice(&handle.topic_id.to_be_bytes());
        bytes[8..10].copy_from_slice(&handle.queue.to_be_bytes());
        bytes[12..20].copy_from_slice(&handle.queue_offset.to_be_bytes());
        bytes[20..24].copy_from_slice(&handle.attempt.to_be_bytes());
        bytes[24..32].copy_from_slice(&handle.lease.to_be_bytes());
        bytes[32..40].copy_from_slice(&handle.until.as_millis().to_be_bytes());
        bytes[40..44].copy_from_slice(&handle.epoch.to_be_bytes());
        let mac = self.mac(FOR_HANDLE, &[&bytes[..44]]);
        bytes[44..].copy_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The handle that `text` spells, if this directory's key wrote it.
    pub fn read_handle(&self, text: &str) -> Option<Handle> {
        let mut bytes = [0; HANDLE_LENGTH];
        if URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) != Ok(HANDLE_LENGTH)
            || self.mac(FOR_HANDLE, &[&bytes[..44]]) != bytes[44..]
        {
            return None;
        }
        Some(Handle {
            group_id: u32_at(&bytes, 0),
            topic_id: u32_at(&bytes, 4),
            queue: u16::from_be_bytes([bytes[8], bytes[9]]),
            queue_offset: u64_at(&bytes, 12),
            attempt: u32_at(&bytes, 20),
            lease: u64_at(&bytes, 24),
            until: Timestamp::from_millis(u64_at(&bytes, 32)),
            epoch: u32_at(&bytes, 40),
        })
    }

    /// A cursor over `fields`, which the client is to give back as it is.
    pub fn write_cursor(&self, fields: &[u8]) -> String {
        let mac = self.mac(FOR_CURSOR, &[fields]);
        URL_SAFE_NO_PAD.encode([fields, &mac].concat())
    }

    /// The fields of the cursor that `text` spells, if this directory's key wrote it over so many bytes.
    pub fn read_cursor<const LENGTH: usize>(&self, text: &str) -> Option<[u8; LENGTH]> {
        // No longer text than a cursor is decoded.
        let expected = base64::encoded_len(LENGTH + MAC_LENGTH, false)?;
        let bytes =
            URL_SAFE_NO_PAD.decode(Some(text).filter(|text| text.len() == expected)?).ok()?;
        let (fields, mac) = bytes.split_at_checked(LENGTH)?;
        (self.mac(FOR_CURSOR, &[fields]) == mac).then(|| fields.try_into().ok()).flatten()
    }

    fn mac(&self, purpose: u8, parts: &[&[u8]]) -> [u8; MAC_LENGTH] {
        let mut hmac = self.0.clone();
        hmac.update(&[purpose]);
        for part in parts {
            hmac.update(part);
        }
        let mut mac = [0; MAC_LENGTH];
        mac.copy_from_slice(&hmac.finalize().into_bytes()[..MAC_LENGTH]);
        mac
    }
}

impl ClaimedId {
    /// The claim that `text` makes, if it has the form of an id.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; ID_LENGTH];
        if URL_SAFE_NO_PAD.decode_slice(text, &mut bytes) != Ok(ID_LENGTH) || bytes[..2] != [0; 2] {
            return None;
        }
        let mut mac = [0; MAC_LENGTH];
        mac.copy_from_slice(&bytes[8..]);
        let step = u64_at(&bytes, 0);
        Some(Self { offset: Offset::new(step * STEP), mac })
    }
}

fn step_bytes(offset: Offset) -> [u8; 6] {
    let mut step = [0; 6];
    step.copy_from_slice(&(offset.get() / STEP).to_be_bytes()[2..]);
    step
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> IdKey {
        IdKey::new(&[7; 32])
    }

    #[test]
    fn an_id_names_its_offset_and_is_confirmed_by_its_nonce_only() {
        let text = key().message_id(Offset::new(96), 5);
        let claimed = ClaimedId::parse(&text).unwrap();
        assert_eq!(claimed.offset, Offset::new(96));
        assert!(key().confirms(&claimed, 5));
        assert!(!key().confirms(&claimed, 6));
        assert!(!IdKey::new(&[8; 32]).confirms(&claimed, 5));
    }

    #[test]
    fn what_is_not_of_the_form_is_no_id() {
        for text in ["", "abc", "AAAAAAAAAAAAAAAAAAAAA!", &"A".repeat(23), &"A".repeat(4096)] {
            assert_eq!(ClaimedId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_cursor_comes_back_and_every_flipped_bit_is_noticed() {
        let text = key().write_cursor(&[1, 2, 3]);
        assert_eq!(key().read_cursor(&text), Some([1, 2, 3]));
        assert_eq!(key().read_cursor::<2>(&text), None);
        assert_eq!(IdKey::new(&[8; 32]).read_cursor::<3>(&text), None);
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().read_cursor::<3>(&URL_SAFE_NO_PAD.encode(&bytes)), None, "bit {bit}");
        }
        for text in ["", "AAAA", "\u{e9}", &"A".repeat(4096)] {
            assert_eq!(key().read_cursor::<3>(text), None, "{text}");
        }
    }

    #[test]
    fn a_handle_comes_back_and_every_flipped_bit_is_noticed() {
        let handle = Handle {
            group_id: 1,
            topic_id: 20,
            queue: 3,
            queue_offset: 77,
            attempt: 2,
            lease: 1 << 40 | 9,
            until: Timestamp::from_millis(1_790_000_000_000),
            epoch: 4,
        };
        let text = key().write_handle(&handle);
        assert_eq!(key().read_handle(&text), Some(handle));
        let bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().read_handle(&URL_SAFE_NO_PAD.encode(&bytes)), None, "bit {bit}");
        }
    }
}
