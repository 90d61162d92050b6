//! What a disk may hold is anything: no decoder panics on it, and none believes a count before it has
//! seen the bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::*;
use super::samples::{Fact, MAGIC, OFFSET, samples};
use crate::clock::Timestamp;
use crate::message::Attributes;

/// The kinds that have a decoder.
const DECODED: [Kind; 25] = [
    Kind::Message,
    Kind::HalfMessage,
    Kind::Commit,
    Kind::Rollback,
    Kind::Check,
    Kind::Resume,
    Kind::Abandon,
    Kind::Reschedule,
    Kind::IdempotencyKey,
    Kind::TopicDeleted,
    Kind::Cancel,
    Kind::Delivery,
    Kind::Ack,
    Kind::LeaseExpired,
    Kind::Quarantine,
    Kind::TopicSet,
    Kind::GroupSet,
    Kind::OffsetsReset,
    Kind::Nack,
    Kind::DeadLetter,
    Kind::Redrive,
    Kind::Move,
    Kind::State,
    Kind::StateEnd,
    Kind::Opened,
];

fn text() -> impl Strategy<Value = String> {
    // Any scalar value: controls, NUL, right to left marks, what takes one to four bytes.
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

prop_compose! {
    fn any_attributes()(
        content_type in text(),
        tag in option::of(text()),
        keys in vec(text(), 0..5),
        message_group in option::of(text()),
        properties in vec((text(), text()), 0..5),
        traceparent in option::of(text()),
        tracestate in option::of(text()),
    ) -> Attributes {
        Attributes { content_type, tag, keys, message_group, properties, traceparent, tracestate }
    }
}

fn any_placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        any::<u64>().prop_map(|queue_offset| Placement::Ready { queue_offset }),
        any::<u64>()
            .prop_map(|millis| Placement::Timed { deadline: Timestamp::from_millis(millis) }),
        (any::<u64>(), 0..u16::MAX).prop_map(|(millis, queue)| {
            Placement::Level { deadline: Timestamp::from_millis(millis), queue }
        }),
    ]
}

prop_compose! {
    fn any_timer()(key in text(), replaces in option::of(any::<[u64; 3]>())) -> KeyedTimer {
        let replaces = replaces.map(|[cause, deadline, tag]| Replaced {
            cause: Offset::new(cause),
            deadline: Timestamp::from_millis(deadline),
            tag,
        });
        KeyedTimer { key, replaces }
    }
}

prop_compose! {
    fn any_terms()(
        producer_group in text(),
        [check_after_ms, check_interval_ms, abandon_after_ms] in any::<[u64; 3]>(),
        max_checks in any::<u32>(),
        url in option::of(text()),
        secret in option::of(text()),
    ) -> Terms {
        let check_url = url.map(|url| CheckUrl { url, secret });
        Terms {
            producer_group,
            check_after_ms,
            check_interval_ms,
            max_checks,
            abandon_after_ms,
            check_url,
        }
    }
}

prop_compose! {
    fn any_message()(
        (nonce, born_at, placement) in (any::<u64>(), any::<u64>(), any_placement()),
        (topic_id, queue, tag_hash) in (any::<u32>(), any::<u16>(), any::<u16>()),
        topic in text(),
        attributes in any_attributes(),
        timer in option::of(any_timer()),
        terms in option::of(any_terms()),
    ) -> Message {
        let born_at = Timestamp::from_millis(born_at);
        Message {
            nonce, born_at, placement, topic_id, queue, tag_hash, topic, attributes, timer, terms,
        }
    }
}

/// A record of `kind` whose crcs are right, whatever its head and body are.
fn sealed(kind: Kind, head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut record = Encoded::start(kind, head.len(), body.len());
    record.head(head);
    record.finish(body).seal(OFFSET, MAGIC).to_vec()
}

/// Decodes; what can be read at all can be written again and says the same.
fn decode_and_compare(bytes: &[u8]) -> Result<(), TestCaseError> {
    let record = Record::check(bytes, OFFSET, MAGIC).expect("its crcs are right");
    if let Ok(fact) = Fact::decode(&record) {
        let mut again = fact.encode();
        let again = Record::check(again.seal(OFFSET, MAGIC), OFFSET, MAGIC).expect("just sealed");
        prop_assert_eq!(Fact::decode(&again), Ok(fact));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_message_comes_back_whatever_its_texts_are(
        message in any_message(),
        body in vec(any::<u8>(), 0..200),
    ) {
        let mut encoded = message.encode(&body);
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap();
        prop_assert_eq!(record.body, &body[..]);
        prop_assert_eq!(Message::decode(&record), Ok(message));
    }

    #[test]
    fn any_bytes_are_judged_and_never_panic(bytes in vec(any::<u8>(), 0..400)) {
        prop_assert!(Record::check(&bytes, OFFSET, MAGIC).is_err());
    }

    #[test]
    fn any_head_and_body_are_judged_and_never_panic(
        kind in proptest::sample::select(&DECODED[..]),
        head in vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..100),
        body in vec(any::<u8>(), 0..100),
    ) {
        decode_and_compare(&sealed(kind, &head, &body))?;
    }

    #[test]
    fn a_changed_head_or_body_with_right_crcs_is_judged_and_never_panics(
        sample in 0..samples().len(),
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, fact) = &samples()[sample];
        let mut encoded = fact.encode();
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).unwrap();
        let (mut head, mut body) = (record.head.to_vec(), record.body.to_vec());
        for (place, value) in edits {
            let at = place.index(head.len() + body.len());
            match at.checked_sub(head.len()) {
                None => head[at] = value,
                Some(at) => body[at] = value,
            }
        }
        decode_and_compare(&sealed(record.header.kind, &head, &body))?;
        head.truncate(cut.index(head.len() + 1));
        body.truncate(cut.index(body.len() + 1));
        decode_and_compare(&sealed(record.header.kind, &head, &body))?;
    }
}

/// The head of a run or of acks with this count.
fn head_with_count(kind: Kind, count: u32) -> Vec<u8> {
    let (length, at) = match kind {
        Kind::Delivery => (32, 24),
        Kind::IdempotencyKey => (48, 40),
        _ => (16, 4),
    };
    let mut head = vec![0; length];
    head[at..at + 4].copy_from_slice(&count.to_le_bytes());
    if kind == Kind::Delivery {
        head[22] = DeliveryReason::Deadline as u8;
    }
    head
}

#[test]
fn a_count_is_not_believed_before_the_body_has_been_measured() {
    let cases = [
        (Kind::Delivery, "a delivery's count and body disagree"),
        (Kind::Ack, "an ack's count and body disagree"),
        (Kind::IdempotencyKey, "an idempotency key's count and body disagree"),
    ];
    for (kind, reason) in cases {
        for count in [1, 2, 255, 257, 1 << 28, 0x1555_5556, u32::MAX - 1, u32::MAX] {
            let bytes = sealed(kind, &head_with_count(kind, count), &[]);
            let record = Record::check(&bytes, OFFSET, MAGIC).unwrap();
            let refused = Fact::decode(&record).unwrap_err();
            assert_eq!(refused, RecordError::Head(reason), "{kind:?} of {count}");
        }
    }
}

#[test]
fn what_is_decoded_takes_no_more_room_than_its_bytes_account_for() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let record = Record::check(encoded.seal(OFFSET, MAGIC), OFFSET, MAGIC).expect(name);
        let room = match Fact::decode(&record).expect(name) {
            Fact::Delivery(run) => run.fired.capacity() * size_of::<Fired>(),
            Fact::Ack(ack) => ack.acked.capacity() * size_of::<AckedRun>(),
            Fact::IdempotencyKey(key) => key.items.capacity() * size_of::<ItemOutcome>(),
            _ => 0,
        };
        assert!(room <= 2 * record.body.len() + 64, "{name} takes {room} bytes");
    }
}

#[test]
fn a_head_that_claims_more_than_the_limit_is_refused_before_it_is_read() {
    for claimed in [MAX_HEAD_LENGTH as u32 + 1, 1 << 20, u32::MAX] {
        let mut bytes = sealed(Kind::Opened, &[], &[]);
        bytes[HEAD_LENGTH..HEAD_LENGTH + 4].copy_from_slice(&claimed.to_le_bytes());
        let expected = RecordError::HeadTooLong { got: claimed as usize };
        assert_eq!(Header::needed(&bytes), Err(expected.clone()));
        assert_eq!(Record::check(&bytes, OFFSET, MAGIC).unwrap_err(), expected);
    }
}

#[test]
fn a_field_that_is_not_known_twice_there_or_not_text_is_refused() {
    let field = |number: u8, bytes: &[u8]| {
        let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&[number], &length[..], bytes].concat()
    };
    let topic = field(1, b"t");
    let not_utf8 = [0xc3, 0x28];
    let refusals = [
        (Vec::new(), AttributesError::NoTopic),
        (field(14, b"x"), AttributesError::UnknownField { field: 14 }),
        ([topic.clone(), field(12, b"u")].concat(), AttributesError::NoTerms),
        ([topic.clone(), field(13, b"s")].concat(), AttributesError::NoTerms),
        (field(11, &[0; 27]), AttributesError::Short),
        ([topic.clone(), field(10, &[0; 24])].concat(), AttributesError::NoTimerKey),
        (field(10, b"x"), AttributesError::Length { field: 10, got: 1, expected: 24 }),
        (field(0, b""), AttributesError::UnknownField { field: 0 }),
        ([topic.clone(), topic.clone()].concat(), AttributesError::Twice { field: 1 }),
        (
            [topic.clone(), field(3, b"a"), field(3, b"a")].concat(),
            AttributesError::Twice { field: 3 },
        ),
        ([topic.clone(), field(2, b"")].concat(), AttributesError::NotAsWritten { field: 2 }),
        (
            [topic.clone(), field(4, b"k"), field(3, b"t")].concat(),
            AttributesError::NotAsWritten { field: 3 },
        ),
        (field(1, &not_utf8), AttributesError::NotText { field: 1 }),
        (field(4, &not_utf8), AttributesError::NotText { field: 4 }),
        (field(6, &[1, 0, 0xff, b'v']), AttributesError::NotText { field: 6 }),
        (field(6, &[1, 0, b'k', 0xff]), AttributesError::NotText { field: 6 }),
        (field(6, &[1]), AttributesError::Short),
        (field(6, &[2, 0, b'k']), AttributesError::Short),
        (topic[..5].to_vec(), AttributesError::Short),
        (vec![1, 0, 0, 0], AttributesError::Short),
        (vec![1, 0xff, 0xff, 0xff, 0xff, b't'], AttributesError::Short),
    ];
    for (fields, expected) in refusals {
        let head = [&[0; 44][..], &fields].concat();
        let bytes = sealed(Kind::Message, &head, &[]);
        let record = Record::check(&bytes, OFFSET, MAGIC).unwrap();
        assert_eq!(Message::decode(&record), Err(RecordError::Attributes(expected)), "{fields:?}");
    }
}
