//! What holds for every kind of record: round trip, fixed bytes, no flipped bit unnoticed, and nothing
//! that a disk can hold makes a decoder panic.

mod arbitrary;
mod fixed;
mod flipped;
mod kinds;
pub(super) mod samples;

use self::samples::{Fact, MAGIC, OFFSET, samples};
use super::*;
use crate::clock::Timestamp;
use crate::message::{Attributes, TopicSettings};

#[test]
fn every_record_comes_back_as_it_was_written() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC).to_vec();
        let record = Record::check(&sealed, OFFSET, MAGIC).expect(name);
        assert_eq!(Fact::decode(&record), Ok(fact), "{name}");
        assert_eq!(record.header.offset, OFFSET, "{name}");
        assert_eq!(record.header.padded_length(), sealed.len(), "{name}");
        assert_eq!(encoded.len(), sealed.len(), "{name}");
        assert!(OFFSET.plus(sealed.len() as u64).is_on_step(), "{name}");
    }
}

#[test]
fn a_record_may_be_followed_by_anything() {
    for (name, fact) in samples() {
        let mut bytes = fact.encode().seal(OFFSET, MAGIC).to_vec();
        bytes.extend_from_slice(&[0xff; 64]);
        let record = Record::check(&bytes, OFFSET, MAGIC).expect(name);
        assert_eq!(Fact::decode(&record), Ok(fact), "{name}");
    }
}

#[test]
fn a_record_is_none_at_another_offset() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        for elsewhere in [0, OFFSET.get() - 32, OFFSET.get() + 32, OFFSET.get() | 1 << 40] {
            let refused = Record::check(sealed, Offset::new(elsewhere), MAGIC).unwrap_err();
            let expected = RecordError::Offset { got: OFFSET.get(), expected: elsewhere };
            assert_eq!(refused, expected, "{name}");
        }
    }
}

#[test]
fn a_record_of_another_data_directory_is_none() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        for other in [0, 1, !MAGIC.0, MAGIC.0.swap_bytes()] {
            let refused = Record::check(sealed, OFFSET, Magic(other)).unwrap_err();
            assert_eq!(refused, RecordError::Magic, "{name}");
        }
    }
}

#[test]
fn a_record_claims_its_own_place_and_directory_only() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        assert!(Header::claims(sealed, OFFSET, MAGIC), "{name}");
        assert!(!Header::claims(sealed, OFFSET.plus(32), MAGIC), "{name}");
        assert!(!Header::claims(sealed, OFFSET, Magic(1)), "{name}");
        assert!(!Header::claims(&sealed[..HEADER_LENGTH - 1], OFFSET, MAGIC), "{name}");
    }
}

#[test]
fn a_record_can_be_given_another_place_before_it_is_written() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        encoded.seal(Offset::new(32), Magic(1));
        assert_eq!(encoded.seal(OFFSET, MAGIC), fact.encode().seal(OFFSET, MAGIC), "{name}");
    }
}

#[test]
fn a_part_of_a_record_is_none() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        let length = Record::check(sealed, OFFSET, MAGIC).expect(name).header.length();
        for end in 0..length {
            let refused = Record::check(&sealed[..end], OFFSET, MAGIC).unwrap_err();
            assert!(
                matches!(refused, RecordError::Short { got, .. } if got == end),
                "{name} {end}"
            );
        }
    }
}

#[test]
fn a_decoder_refuses_every_other_kind() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).expect(name);
        for (decoder, refusal) in samples::refusals(&record) {
            let expected = RecordError::Kind { got: record.header.kind, expected: decoder };
            let same = decoder == decoder_of(record.header.kind);
            assert_eq!(refusal, (!same).then_some(expected), "{name}");
        }
    }
}

/// The kind that a decoder of several is named by.
fn decoder_of(kind: Kind) -> Kind {
    match kind {
        Kind::HalfMessage => Kind::Message,
        Kind::Resume | Kind::Abandon => Kind::Check,
        kind => kind,
    }
}

#[test]
fn a_ready_message_takes_the_place_in_its_queue_that_the_appender_gives_it() {
    let (_, fact) = samples().into_iter().find(|(name, _)| *name == "ready").unwrap();
    let mut encoded = fact.encode();
    Message::set_queue_offset(&mut encoded, 77);
    let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap();
    let Fact::Message(mut message, body) = fact else { panic!("it is a message") };
    message.placement = Placement::Ready { queue_offset: 77 };
    assert_eq!(Message::decode(&record), Ok(*message));
    assert_eq!(record.body, body);
}

#[test]
fn the_fixed_part_of_a_message_says_the_same_as_the_whole() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).expect(name);
        let Fact::Message(message, _) = fact else { continue };
        let expected = MessageHead {
            nonce: message.nonce,
            born_at: message.born_at,
            placement: message.placement,
            topic_id: message.topic_id,
            queue: message.queue,
            tag_hash: message.tag_hash,
            indexed: !message.attributes.keys.is_empty() || message.timer.is_some(),
            replaces: message.timer.is_some_and(|timer| timer.replaces.is_some()),
        };
        assert_eq!(Message::decode_fixed(&record), Ok(expected), "{name}");
    }
}

#[test]
fn every_cause_takes_the_three_steps_that_its_outcome_needs() {
    let message = Message {
        nonce: 0,
        born_at: Timestamp::from_millis(0),
        placement: Placement::Ready { queue_offset: 0 },
        topic_id: 0,
        queue: 0,
        tag_hash: 0,
        topic: String::new(),
        attributes: Attributes::default(),
        timer: None,
        terms: None,
    };
    assert_eq!(message.encode(&[]).len(), 96);
    let zero = Timestamp::from_millis(0);
    let reschedule = Reschedule {
        cause: Offset::ZERO,
        message: Offset::ZERO,
        was_due_at: zero,
        deadline: zero,
        tag: 0,
        at: zero,
        message_length: 0,
    };
    assert_eq!(reschedule.encode().len(), 96);
    let length_of = |name| {
        let found = samples().into_iter().find(|(of, _)| *of == name);
        found.expect("a sample").1.encode().len()
    };
    for name in ["commit", "commit with a moment", "check", "resume", "abandon"] {
        assert_eq!(length_of(name), 96, "{name}");
    }
}

#[test]
fn a_delivery_takes_what_it_says_it_will() {
    for (name, fact) in samples() {
        if let Fact::Delivery(run) = &fact {
            assert_eq!(Delivery::encoded_length(run.fired.len()), fact.encode().len(), "{name}");
        }
    }
}

#[test]
#[should_panic(expected = "a head is at most")]
fn a_head_too_long_to_be_read_again_is_not_written() {
    let name = "n".repeat(MAX_HEAD_LENGTH);
    let settings = TopicSettings::mixed(1);
    TopicSet { topic_id: 1, settings, at: Timestamp::from_millis(0), name, delays_ms: vec![] }
        .encode();
}
