//! The decoders of this room, to be tried with bytes that nobody wrote.

use super::TimerCheckpoint;
use super::slot::{self, SlotState};
use super::snapshot;
use crate::bytes::{crc_at, put_u32};
use crate::decoder::{Decoder, Judged};
use crate::position::Position;

const OFFSET: u64 = 96;

pub(crate) fn decoders() -> Vec<Decoder> {
    let slot = Decoder::new("slot", slots, seal_slot, judge_slot);
    let checkpoint =
        Decoder::new("timer_checkpoint", checkpoints, seal_checkpoint, judge_checkpoint);
    vec![slot, checkpoint, snapshot::decoder()]
}

fn slots() -> Vec<Vec<u8>> {
    let at = |bytes| Position::new(bytes).expect("not zero");
    let state = SlotState { first: at(48), last: at(9600), count: 3 };
    vec![state.encode(1_790_000_000, OFFSET).to_vec()]
}

fn seal_slot(bytes: &mut [u8]) {
    if bytes.len() >= slot::SIZE {
        let crc = crc_at(OFFSET, &bytes[..slot::SIZE - 4]);
        put_u32(bytes, slot::SIZE - 4, crc);
    }
}

fn judge_slot(bytes: &[u8]) -> Judged {
    // Snapshots are read in whole slots.
    let Some(bytes) = bytes.get(..slot::SIZE) else { return Judged::Refused };
    let read = SlotState::decode(bytes, OFFSET).ok();
    Judged::of(bytes, read, |(number, state)| state.encode(*number, OFFSET).to_vec())
}

fn checkpoints() -> Vec<Vec<u8>> {
    let checkpoint = TimerCheckpoint {
        precision_ms: 1000,
        near_slots: 1 << 20,
        far_slots: 1 << 14,
        segment_size: 1 << 24,
        near_floor: 48,
        near_length: 9600,
        far_floor: 48,
        far_length: 4800,
        read_time: 1_790_000_000,
        far_boundary: 1_790_262_144,
        revision: 17,
        mark: 1 << 40,
        lineage: 3,
    };
    vec![checkpoint.encode().to_vec()]
}

fn seal_checkpoint(bytes: &mut [u8]) {
    if bytes.len() >= TimerCheckpoint::SIZE {
        let crc = crc32c::crc32c(&bytes[..TimerCheckpoint::SIZE - 4]);
        put_u32(bytes, TimerCheckpoint::SIZE - 4, crc);
    }
}

fn judge_checkpoint(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk() else { return Judged::Refused };
    Judged::of(bytes, TimerCheckpoint::decode(bytes).ok(), |read| read.encode().to_vec())
}
