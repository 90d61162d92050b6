//! No flipped bit goes unnoticed.

use super::super::*;
use super::samples::{MAGIC, OFFSET, samples};

#[test]
fn every_flipped_bit_of_every_record_is_noticed() {
    for (name, fact) in samples() {
        let mut bytes = fact.encode().seal(OFFSET, MAGIC).to_vec();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Record::check(&bytes, OFFSET, MAGIC).is_err(), "{name}: bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Record::check(&bytes, OFFSET, MAGIC).is_ok(), "{name}: every bit is back");
    }
}

#[test]
fn a_damaged_body_costs_the_body_only() {
    for (name, fact) in samples() {
        let mut bytes = fact.encode().seal(OFFSET, MAGIC).to_vec();
        let header = Header::check(&bytes, OFFSET, MAGIC).expect(name);
        for at in header.head_end()..header.length() {
            bytes[at] ^= 1;
            assert_eq!(Header::check(&bytes, OFFSET, MAGIC), Ok(header), "{name}: byte {at}");
            let refused = Record::check_body(&bytes, header).unwrap_err();
            assert!(matches!(refused, RecordError::BodyCrc { .. }), "{name}: byte {at}");
            bytes[at] ^= 1;
        }
    }
}

#[test]
fn a_damaged_pad_is_told_from_a_damaged_body() {
    for (name, fact) in samples() {
        let mut bytes = fact.encode().seal(OFFSET, MAGIC).to_vec();
        let header = Header::check(&bytes, OFFSET, MAGIC).expect(name);
        for at in header.length()..header.padded_length() {
            bytes[at] ^= 0x80;
            let refused = Record::check(&bytes, OFFSET, MAGIC).unwrap_err();
            assert_eq!(refused, RecordError::NotZero, "{name}: byte {at}");
            bytes[at] ^= 0x80;
        }
    }
}

/// The crc of a run's chunk is there for one who has a damaged body and wants what is left of it.
#[test]
fn every_flipped_bit_of_a_delivery_is_noticed_by_the_crcs_of_its_chunks_too() {
    for count in [1, 256, 257] {
        let fired = Fired { cause: Offset::new(96), length: 100, tag_hash: 7 };
        let run = Delivery {
            fired_at: crate::clock::Timestamp::from_millis(1),
            first_queue_offset: 0,
            topic_id: 1,
            queue: 0,
            reason: DeliveryReason::Deadline,
            fired: vec![fired; count],
        };
        let mut encoded = run.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        let record = Record::check(sealed, OFFSET, MAGIC).unwrap();
        let mut body = record.body.to_vec();
        for bit in 0..body.len() * 8 {
            body[bit / 8] ^= 1 << (bit % 8);
            let damaged = Record { body: &body, ..record };
            let refused = Delivery::decode(&damaged).unwrap_err();
            assert!(matches!(refused, RecordError::BodyCrc { .. }), "{count} entries: bit {bit}");
            body[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
