//! The state, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged, unsealed};

use super::*;
use crate::clock::Timestamp;
use crate::message::TagFilter;
use crate::store::resets::{Reset, Resets};
use crate::store::topics::{LEVEL_TOPIC, LEVEL_TOPIC_ID};

/// The checkpoint's envelope guards it, which has a decoder of its own.
pub(in crate::store) fn decoder() -> Decoder {
    Decoder::new("state", samples, unsealed, judge)
}

fn samples() -> Vec<Vec<u8>> {
    vec![sample().encode(), State::default().encode()]
}

fn judge(bytes: &[u8]) -> Judged {
    Judged::of(bytes, State::decode(bytes).ok(), State::encode)
}

pub(super) fn sample() -> State {
    let mut progress = QueueProgress::default();
    [0, 1, 5, 200].into_iter().for_each(|offset| progress.ack(offset));
    progress.attempted(7, 3);
    progress.give_back(9);
    progress.delayed(8, 1, Timestamp::from_millis(9));
    let mut resets = Resets::default();
    resets.push(Reset { at: Offset::new(640), start: 2, retries_end: 1 });
    resets.push(Reset { at: Offset::new(704), start: 5, retries_end: 1 });
    let progress = progress.with_resets(resets);
    let free_after = Timestamp::from_millis(99);
    let segment = SegmentKeep { free_after, messages: 5, waiting: 2 };
    let filter = Some(TagFilter::new(["paid".to_owned(), "late".to_owned()]));
    let topic = |id, name: &str, queues| TopicState {
        id,
        name: name.into(),
        set_at: Offset::new(320),
        of: TopicType::Fifo,
        retention_ms: Some(3_600_000),
        pending: 4,
        queues,
    };
    let group = |id, name: &str| GroupState {
        id,
        epoch: 0,
        name: name.into(),
        settings: GroupSettings { invisible_for_ms: 7, max_attempts: 3, ..Default::default() },
        progress: BTreeMap::new(),
        readings: BTreeMap::new(),
    };
    State {
        at: ScanFrom {
            offset: Offset::new(9600),
            next_number: 4,
            previous_hash: 1 << 100 | 5,
            incarnation: 2,
        },
        durable_upto: Offset::new(9696),
        settled_upto: Offset::new(9600),
        begin: Offset::new(4096),
        counts: Counts {
            accepted: 9,
            scheduled: 8,
            fired: 3,
            cancelled: 1,
            dropped: 1,
            timer_units: 9,
        },
        next_topic_id: 17,
        next_group_id: 3,
        topics: vec![
            topic(LEVEL_TOPIC_ID, LEVEL_TOPIC, vec![(2, 7)]),
            topic(16, "orders", vec![(1, 1), (0, 0), (0, 2), (6, 7)]),
        ],
        groups: vec![
            GroupState {
                progress: [((16, 3), progress)].into(),
                readings: [
                    (16, Reading { fence: 9, filter }),
                    (17, Reading { fence: 1, filter: Some(TagFilter::everything()) }),
                    (18, Reading { fence: 2, filter: None }),
                ]
                .into(),
                ..group(1, "billing")
            },
            group(2, "shipping"),
        ],
        levels: vec![LevelQueue { delay_ms: 1000, released: 6 }],
        latest: Timestamp::from_millis(77),
        hold_until: Timestamp::from_millis(78),
        segments: [(4096, segment), (8192, SegmentKeep::default())].into(),
        boundaries: [(8192, vec![Offset::new(8320), Offset::new(8960)])].into(),
        quarantined: Quarantined {
            count: 3,
            listed: [(8256, (96, DamageReason::Body)), (9000, (64, DamageReason::Unreadable))]
                .into(),
        },
        index: vec![4, 5],
        timer: vec![1, 2, 3],
    }
}
