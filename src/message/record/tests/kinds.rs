//! Numbers that stand on disks for ever.

use super::super::*;
use super::samples::{MAGIC, OFFSET};
use crate::clock::Timestamp;

/// A new kind gets its number here, too; the compiler asks for it.
fn number(kind: Kind) -> u8 {
    match kind {
        Kind::Message => 1,
        Kind::HalfMessage => 2,
        Kind::Reschedule => 3,
        Kind::Cancel => 4,
        Kind::Delivery => 5,
        Kind::Commit => 6,
        Kind::Rollback => 7,
        Kind::Ack => 8,
        Kind::Nack => 9,
        Kind::LeaseExpired => 10,
        Kind::Move => 11,
        Kind::Drop => 12,
        Kind::Quarantine => 13,
        Kind::IdempotencyKey => 14,
        Kind::TopicSet => 15,
        Kind::TopicDeleted => 16,
        Kind::GroupSet => 17,
        Kind::GroupDeleted => 18,
        Kind::OffsetsReset => 19,
        Kind::Check => 20,
        Kind::Resume => 21,
        Kind::Abandon => 22,
        Kind::DeadLetter => 23,
        Kind::Redrive => 24,
        Kind::Settled => 25,
        Kind::State => 26,
        Kind::StateEnd => 27,
        Kind::SubscriptionSet => 28,
        Kind::SubscriptionDeleted => 29,
        Kind::Opened => 30,
    }
}

/// A record with this number in the place of its kind, and right crcs.
fn record_of(number: u8) -> Vec<u8> {
    let mut record = Encoded::start(Kind::Message, 0, 0);
    record.bytes[KIND] = number;
    record.finish(&[]).seal(OFFSET, MAGIC).to_vec()
}

#[test]
fn every_number_stands_for_the_kind_it_always_stood_for() {
    for kind in Kind::ALL {
        assert_eq!(kind as u8, number(kind), "{kind:?}");
        let header = Header::check(&record_of(number(kind)), OFFSET, MAGIC).unwrap();
        assert_eq!(header.kind, kind);
    }
}

#[test]
fn a_number_that_no_kind_has_is_refused_by_name() {
    for number in (0..=u8::MAX).filter(|number| !(1..=30).contains(number)) {
        let refused = Header::check(&record_of(number), OFFSET, MAGIC).unwrap_err();
        assert_eq!(refused, RecordError::UnknownKind { number });
    }
}

#[test]
fn a_version_that_is_newer_is_refused_by_name() {
    for version in VERSION + 1..=u8::MAX {
        let mut record = Encoded::start(Kind::Opened, 0, 0);
        record.bytes[VERSION_AT] = version;
        let mut record = record.finish(&[]);
        let refused = Header::check(record.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap_err();
        assert_eq!(refused, RecordError::Version { got: version });
    }
}

#[test]
fn what_must_be_zero_in_a_header_is_looked_at() {
    for at in RESERVED..MAGIC_AT {
        let mut record = Encoded::start(Kind::Opened, 0, 0);
        record.bytes[at] = 1;
        let mut record = record.finish(&[]);
        let refused = Header::check(record.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap_err();
        assert_eq!(refused, RecordError::NotZero, "byte {at}");
    }
}

const MAGIC_AT: usize = super::super::MAGIC;

#[test]
fn every_reason_of_a_delivery_has_the_number_it_always_had() {
    let reasons = [
        (1, DeliveryReason::Deadline),
        (2, DeliveryReason::Commit),
        (3, DeliveryReason::Level),
        (4, DeliveryReason::Retry),
        (5, DeliveryReason::Asked),
        (6, DeliveryReason::Redrive),
    ];
    for number in 0..=u8::MAX {
        let run = Delivery {
            fired_at: Timestamp::from_millis(1),
            first_queue_offset: 0,
            topic_id: 1,
            queue: 0,
            reason: DeliveryReason::Deadline,
            fired: vec![Fired { cause: Offset::ZERO, length: 96, tag_hash: 0 }],
        };
        let mut encoded = run.encode();
        encoded.bytes[HEADER_LENGTH + 22] = number;
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap();
        let reason = reasons.iter().find(|(of, _)| *of == number).map(|(_, reason)| *reason);
        match reason {
            Some(reason) => assert_eq!(Delivery::decode(&record), Ok(Delivery { reason, ..run })),
            None => {
                let refused = Delivery::decode(&record).unwrap_err();
                let expected = RecordError::Head("a delivery's reason is not known");
                assert_eq!(refused, expected, "reason {number}");
            }
        }
    }
}

#[test]
fn every_reason_of_a_quarantine_has_the_number_it_always_had() {
    for number in 0..=u8::MAX {
        let (from, length) = (Offset::new(96), 64);
        let quarantine = Quarantine { from, length, reason: DamageReason::Unreadable };
        let mut encoded = quarantine.encode();
        encoded.bytes[HEADER_LENGTH + 16] = number;
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap();
        let expected = match number {
            1 => Ok(quarantine),
            2 => Ok(Quarantine { reason: DamageReason::Body, ..quarantine }),
            _ => Err(RecordError::Head("a quarantine's reason is not known")),
        };
        assert_eq!(Quarantine::decode(&record), expected, "reason {number}");
    }
}
