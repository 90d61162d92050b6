//! One of every record there is, and more of those that have a shape.

use super::super::*;
use crate::clock::Timestamp;
use crate::message::{Attributes, GroupSettings, StartFrom, TagFilter, TopicSettings, TopicType};

pub(in crate::message::record) const OFFSET: Offset = Offset::new(0x0001_2340);
pub(in crate::message::record) const MAGIC: Magic = Magic(0x5ec4_e75a);

/// What a record says, whatever its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::message::record) enum Fact {
    Message(Box<Message>, Vec<u8>),
    Reschedule(Reschedule),
    Cancel(Cancel),
    Round(Round),
    Commit(Commit),
    Rollback(Rollback),
    Delivery(Delivery),
    Ack(Ack),
    LeaseExpired(LeaseExpired),
    Quarantine(Quarantine),
    IdempotencyKey(IdempotencyKey),
    TopicSet(TopicSet),
    TopicDeleted(TopicDeleted),
    GroupSet(GroupSet),
    OffsetsReset(OffsetsReset),
    Nack(Nack),
    DeadLetter(DeadLetter),
    Redrive(Redrive),
    Move(Box<Moved>, Vec<u8>),
    StatePart(Offset, u32, Vec<u8>),
    StateEnd(StateEnd),
    Opened(Opened),
}

impl Fact {
    pub(in crate::message::record) fn encode(&self) -> Encoded {
        match self {
            Self::Message(message, body) => message.encode(body),
            Self::Reschedule(reschedule) => reschedule.encode(),
            Self::Cancel(cancel) => cancel.encode(),
            Self::Round(round) => round.encode(),
            Self::Commit(commit) => commit.encode(),
            Self::Rollback(rollback) => rollback.encode(),
            Self::Delivery(run) => run.encode(),
            Self::Ack(ack) => ack.encode(),
            Self::LeaseExpired(expired) => expired.encode(),
            Self::Quarantine(quarantine) => quarantine.encode(),
            Self::IdempotencyKey(key) => key.encode(),
            Self::TopicSet(topic) => topic.encode(),
            Self::TopicDeleted(deleted) => deleted.encode(),
            Self::GroupSet(group) => group.encode(),
            Self::OffsetsReset(reset) => reset.encode(),
            Self::Nack(nack) => nack.encode(),
            Self::DeadLetter(letter) => letter.encode(),
            Self::Redrive(redrive) => redrive.encode(),
            Self::Move(moved, body) => moved.encode(body),
            Self::StatePart(at, part, bytes) => StatePart { at: *at, part: *part, bytes }.encode(),
            Self::StateEnd(end) => end.encode(),
            Self::Opened(opened) => opened.encode(),
        }
    }

    /// By the decoder of the record's kind.
    pub(in crate::message::record) fn decode(record: &Record<'_>) -> Result<Self, RecordError> {
        match record.header.kind {
            Kind::Message | Kind::HalfMessage => {
                Message::decode(record).map(|m| Self::Message(m.into(), record.body.into()))
            }
            Kind::Reschedule => Reschedule::decode(record).map(Self::Reschedule),
            Kind::Cancel => Cancel::decode(record).map(Self::Cancel),
            Kind::Check | Kind::Resume | Kind::Abandon => Round::decode(record).map(Self::Round),
            Kind::Commit => Commit::decode(record).map(Self::Commit),
            Kind::Rollback => Rollback::decode(record).map(Self::Rollback),
            Kind::Delivery => Delivery::decode(record).map(Self::Delivery),
            Kind::Ack => Ack::decode(record).map(Self::Ack),
            Kind::LeaseExpired => LeaseExpired::decode(record).map(Self::LeaseExpired),
            Kind::Quarantine => Quarantine::decode(record).map(Self::Quarantine),
            Kind::IdempotencyKey => IdempotencyKey::decode(record).map(Self::IdempotencyKey),
            Kind::TopicSet => TopicSet::decode(record).map(Self::TopicSet),
            Kind::TopicDeleted => TopicDeleted::decode(record).map(Self::TopicDeleted),
            Kind::GroupSet => GroupSet::decode(record).map(Self::GroupSet),
            Kind::OffsetsReset => OffsetsReset::decode(record).map(Self::OffsetsReset),
            Kind::Nack => Nack::decode(record).map(Self::Nack),
            Kind::DeadLetter => DeadLetter::decode(record).map(Self::DeadLetter),
            Kind::Redrive => Redrive::decode(record).map(Self::Redrive),
            Kind::Move => Moved::decode(record).map(|m| Self::Move(m.into(), record.body.into())),
            Kind::State => StatePart::decode(record)
                .map(|part| Self::StatePart(part.at, part.part, part.bytes.into())),
            Kind::StateEnd => StateEnd::decode(record).map(Self::StateEnd),
            Kind::Opened => Opened::decode(record).map(Self::Opened),
            kind => panic!("no sample has the kind {kind:?}, which has no decoder yet"),
        }
    }
}

/// How each decoder refuses `record`, if it does.
pub(in crate::message::record) fn refusals(
    record: &Record<'_>,
) -> Vec<(Kind, Option<RecordError>)> {
    vec![
        (Kind::Message, Message::decode(record).err()),
        (Kind::Message, Message::decode_fixed(record).err()),
        (Kind::Reschedule, Reschedule::decode(record).err()),
        (Kind::Commit, Commit::decode(record).err()),
        (Kind::Rollback, Rollback::decode(record).err()),
        (Kind::Check, Round::decode(record).err()),
        (Kind::Cancel, Cancel::decode(record).err()),
        (Kind::Delivery, Delivery::decode(record).err()),
        (Kind::Ack, Ack::decode(record).err()),
        (Kind::LeaseExpired, LeaseExpired::decode(record).err()),
        (Kind::Quarantine, Quarantine::decode(record).err()),
        (Kind::IdempotencyKey, IdempotencyKey::decode(record).err()),
        (Kind::IdempotencyKey, IdempotencyKey::decode_fixed(record).err()),
        (Kind::TopicSet, TopicSet::decode(record).err()),
        (Kind::TopicDeleted, TopicDeleted::decode(record).err()),
        (Kind::GroupSet, GroupSet::decode(record).err()),
        (Kind::OffsetsReset, OffsetsReset::decode(record).err()),
        (Kind::Nack, Nack::decode(record).err()),
        (Kind::DeadLetter, DeadLetter::decode(record).err()),
        (Kind::Redrive, Redrive::decode(record).err()),
        (Kind::Move, Moved::decode(record).err()),
        (Kind::State, StatePart::decode(record).err()),
        (Kind::StateEnd, StateEnd::decode(record).err()),
        (Kind::Opened, Opened::decode(record).err()),
    ]
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(1_790_000_000_000 + millis)
}

fn message(placement: Placement, attributes: Attributes) -> Message {
    Message {
        nonce: 0x1112_1314_1516_1718,
        born_at: at(1),
        placement,
        topic_id: 3,
        queue: 2,
        tag_hash: 0xabcd,
        topic: "orders".into(),
        attributes,
        timer: None,
        terms: None,
    }
}

/// The timer of a key that replaces another one.
fn keyed_timer() -> Message {
    let replaces = Replaced { cause: Offset::new(96), deadline: at(60_001), tag: 1 << 60 };
    let timer = KeyedTimer { key: "k".into(), replaces: Some(replaces) };
    let placement = Placement::Timed { deadline: at(60_002) };
    let plain = message(placement, Attributes::default());
    Message { topic: "t".into(), tag_hash: 0, timer: Some(timer), ..plain }
}

/// Waits in the last queue that the level topic can have.
fn leveled() -> Message {
    let placement = Placement::Level { deadline: at(1001), queue: 0xfffe };
    Message { topic: "t".into(), tag_hash: 0, ..message(placement, Attributes::default()) }
}

fn idempotency_key() -> IdempotencyKey {
    let accepted = |distance, timed| ItemOutcome::Accepted {
        distance,
        nonce: 7,
        timed,
        deliver_at: at(60_001),
    };
    let items = vec![
        accepted(224, true),
        ItemOutcome::Malformed,
        ItemOutcome::TooFarAhead,
        ItemOutcome::TypeMismatch,
        accepted(96, false),
    ];
    IdempotencyKey { at: at(8), bound: Bound { key: [1; 16], request: [2; 16] }, items }
}

fn all_attributes() -> Attributes {
    Attributes {
        content_type: "text/plain".into(),
        tag: Some("paid".into()),
        keys: vec!["order-7".into(), "schlüssel".into()],
        message_group: Some("customer-9".into()),
        properties: vec![("a".into(), "1".into()), ("ü".into(), String::new())],
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into()),
        tracestate: Some("vendor=1".into()),
    }
}

fn delivery(count: u32, reason: DeliveryReason) -> Fact {
    let fired = |i: u32| Fired {
        cause: Offset::new(96 * (u64::from(i) + 1)),
        length: 100 + i,
        tag_hash: u16::try_from(i).expect("a sample is short"),
    };
    Fact::Delivery(Delivery {
        fired_at: at(123),
        first_queue_offset: 1000,
        topic_id: 0x0102_0304,
        queue: 0x0506,
        reason,
        fired: (0..count).map(fired).collect(),
    })
}

fn quarantine(reason: DamageReason) -> Fact {
    Fact::Quarantine(Quarantine { from: Offset::new(4096), length: 128, reason })
}

fn ack(acked: Vec<AckedRun>) -> Fact {
    Fact::Ack(Ack { group_id: 7, at: at(3), acked })
}

fn group_set(settings: GroupSettings) -> Fact {
    let name = "billing".into();
    Fact::GroupSet(GroupSet { group_id: 7, epoch: 1, at: at(6), name, settings })
}

fn all_settings() -> GroupSettings {
    GroupSettings {
        ordered: true,
        max_attempts: 3,
        backoff_ms: vec![1000, 60_000],
        invisible_for_ms: 5000,
        start_from: StartFrom::Latest,
        filters: [
            ("orders".to_owned(), tags(&["late", "paid"])),
            ("refunds".to_owned(), tags(&["größer"])),
        ]
        .into(),
    }
}

fn tags(tags: &[&str]) -> TagFilter {
    TagFilter::new(tags.iter().map(ToString::to_string))
}

fn reset(queues: Vec<Option<u64>>, filter: Option<TagFilter>) -> Fact {
    Fact::OffsetsReset(OffsetsReset {
        group_id: 7,
        topic_id: 3,
        at: at(8),
        fence: 2 << 40 | 5,
        queues,
        filter,
        retries_end: 6,
    })
}

fn origin() -> Origin {
    Origin {
        topic_id: 3,
        queue: 2,
        queue_offset: 9,
        cause: Offset::new(96),
        length: 123,
        readable_at: at(60_003),
        message: Offset::new(64),
    }
}

fn nack(tag: Option<u64>) -> Fact {
    let place = Acked { topic_id: 5, queue: 0, queue_offset: 1 << 40 };
    let comes_at = at(90_001);
    let (group_id, attempt, origin) = (7, 4, origin());
    Fact::Nack(Nack { group_id, attempt, at: at(11), place, origin, comes_at, tag })
}

fn dead_letter(reason: DeathReason) -> Fact {
    Fact::DeadLetter(DeadLetter {
        group_id: 7,
        attempts: 16,
        at: at(12),
        place: Acked { topic_id: 5, queue: 0, queue_offset: 1 << 40 },
        origin: origin(),
        queue_offset: 77,
        dead_letters: 6,
        reason,
    })
}

fn redrive(count: u32) -> Fact {
    let redriven = (0..count).map(|index| Redriven {
        queue_offset: u64::from(index) + 70,
        record: Offset::new(u64::from(index) * 128 + 4096),
        length: 120,
        message: Offset::new(64),
    });
    Fact::Redrive(Redrive {
        group_id: 7,
        at: at(13),
        dead_letters: 6,
        retry_topic: 5,
        first_queue_offset: 1000,
        redriven: redriven.collect(),
    })
}

fn moved(placement: Placement, deadline: Option<Timestamp>, waits: bool) -> Fact {
    let of = message(placement, Attributes::default());
    let of = Message { topic: "t".into(), tag_hash: 0, ..of };
    let moved = Moved { message: Offset::new(64), at: at(14), deadline, waits, of };
    Fact::Move(moved.into(), b"b".to_vec())
}

fn state_end(lets_go: bool) -> Fact {
    let at = Offset::new(65_536);
    Fact::StateEnd(StateEnd { at, hash: 0x0102_0304_0506_0708, lets_go, parts: 3 })
}

const fn ready_at(queue_offset: u64) -> Placement {
    Placement::Ready { queue_offset }
}

fn half(placement: Placement) -> Message {
    let terms = Terms {
        producer_group: "shop".into(),
        check_after_ms: 6000,
        check_interval_ms: 30_000,
        max_checks: 15,
        abandon_after_ms: 259_200_000,
        check_url: None,
    };
    Message {
        topic: "t".into(),
        tag_hash: 0,
        terms: Some(terms),
        ..message(placement, Attributes::default())
    }
}

fn commit(placement: Placement) -> Commit {
    Commit {
        cause: Offset::new(96),
        message: Offset::new(64),
        home: Offset::new(80),
        placement,
        at: at(9),
        tag: 0x1000_0003_0002_0000,
        message_length: 123,
    }
}

fn round(
    kind: RoundKind,
    next_check_at: Option<Timestamp>,
    abandoned_at: Timestamp,
    count: u32,
) -> Round {
    Round {
        kind,
        cause: Offset::new(96),
        message: Offset::new(64),
        at: at(9),
        next_check_at,
        abandoned_at,
        tag: 0x2000_0003_0000_0000,
        message_length: 123,
        count,
    }
}

pub(in crate::message::record) fn samples() -> Vec<(&'static str, Fact)> {
    let ready = Placement::Ready { queue_offset: 9 };
    let timed = Placement::Timed { deadline: at(60_001) };
    let smallest =
        Message { topic: "t".into(), tag_hash: 0, ..message(ready, Attributes::default()) };
    let first = Acked { topic_id: 3, queue: 2, queue_offset: 9 };
    let second = Acked { topic_id: 4, queue: 0, queue_offset: 1 << 40 };
    vec![
        ("smallest", Fact::Message(smallest.into(), Vec::new())),
        ("ready", Fact::Message(message(ready, all_attributes()).into(), b"cancel me".to_vec())),
        ("timed", Fact::Message(message(timed, all_attributes()).into(), (0..=255).collect())),
        ("keyed timer", Fact::Message(keyed_timer().into(), b"b".to_vec())),
        ("level", Fact::Message(leveled().into(), b"b".to_vec())),
        (
            "reschedule out of a level",
            Fact::Reschedule(Reschedule {
                cause: Offset::new(64),
                message: Offset::new(64),
                was_due_at: at(1001),
                deadline: at(90_001),
                tag: 0x4000_0003_0002_0000,
                at: at(9),
                message_length: 123,
            }),
        ),
        (
            "reschedule",
            Fact::Reschedule(Reschedule {
                cause: Offset::new(96),
                message: Offset::new(64),
                was_due_at: at(60_001),
                deadline: at(90_001),
                tag: 0x1000_0003_0002_0000,
                at: at(9),
                message_length: 123,
            }),
        ),
        ("half", Fact::Message(half(ready_at(0)).into(), b"b".to_vec())),
        ("half with a moment", Fact::Message(half(timed).into(), b"b".to_vec())),
        ("commit", Fact::Commit(commit(ready))),
        ("commit with a moment", Fact::Commit(commit(timed))),
        (
            "rollback",
            Fact::Rollback(Rollback {
                cause: Offset::new(96),
                message: Offset::new(64),
                at: at(9),
                tag: 0x1000_0003_0002_0000,
            }),
        ),
        ("check", Fact::Round(round(RoundKind::Check, Some(at(30_009)), at(72_000), 2))),
        ("last check", Fact::Round(round(RoundKind::Check, None, at(72_000), 15))),
        ("resume", Fact::Round(round(RoundKind::Resume, Some(at(9)), at(72_000), 0))),
        ("abandon", Fact::Round(round(RoundKind::Abandon, None, Timestamp::from_millis(0), 15))),
        ("idempotency key", Fact::IdempotencyKey(idempotency_key())),
        ("topic deleted", Fact::TopicDeleted(TopicDeleted { topic_id: 3, at: at(10) })),
        (
            "cancel",
            Fact::Cancel(Cancel {
                cause: Offset::new(96),
                deadline: at(60_001),
                tag: 0x1000_0003_0002_0000,
                at: at(2),
            }),
        ),
        ("delivery of 1", delivery(1, DeliveryReason::Deadline)),
        ("delivery of 256", delivery(256, DeliveryReason::Commit)),
        ("delivery of 257", delivery(257, DeliveryReason::Level)),
        ("delivery of 600", delivery(600, DeliveryReason::Redrive)),
        ("ack", ack(vec![first.into(), second.into()])),
        ("ack of runs", ack(vec![AckedRun { first, more: 1 }, AckedRun { first, more: 0xffff }])),
        ("ack of none", ack(Vec::new())),
        (
            "lease expired",
            Fact::LeaseExpired(LeaseExpired { group_id: 7, at: at(4), message: first, attempt: 5 }),
        ),
        (
            "topic set",
            Fact::TopicSet(TopicSet {
                topic_id: 3,
                settings: TopicSettings {
                    of: TopicType::Delay,
                    queues: 8,
                    retention_ms: Some(3_600_000),
                },
                at: at(5),
                name: "orders".into(),
                delays_ms: vec![],
            }),
        ),
        (
            "levels set",
            Fact::TopicSet(TopicSet {
                topic_id: 3,
                settings: TopicSettings::mixed(3),
                at: at(5),
                name: "SCHEDULE_TOPIC_XXXX".into(),
                delays_ms: vec![1000, 5000, 7_200_000],
            }),
        ),
        ("group set", group_set(GroupSettings { backoff_ms: vec![10_000], ..Default::default() })),
        ("group set, all", group_set(all_settings())),
        ("reset", reset(vec![Some(0), None, Some(1 << 40)], None)),
        ("first read", reset(vec![Some(9)], Some(TagFilter::everything()))),
        ("first read by tags", reset(vec![Some(9), Some(0)], Some(tags(&["late", "paid"])))),
        ("nack", nack(Some(0x2000_0005_0000_0004))),
        ("nack in place", nack(None)),
        ("dead letter, nacked", dead_letter(DeathReason::Nacked)),
        ("dead letter, expired", dead_letter(DeathReason::LeaseExpired)),
        ("redrive", redrive(2)),
        ("move", moved(timed, None, true)),
        ("move of a dead letter", moved(ready, Some(at(60_001)), false)),
        ("part of a state", Fact::StatePart(Offset::new(65_536), 2, b"state".to_vec())),
        ("state's end", state_end(false)),
        ("state's end that lets go", state_end(true)),
        ("opened", Fact::Opened(Opened { incarnation: 2, at: at(7), tail: OFFSET })),
        ("quarantine, unreadable", quarantine(DamageReason::Unreadable)),
        ("quarantine, body", quarantine(DamageReason::Body)),
    ]
}
