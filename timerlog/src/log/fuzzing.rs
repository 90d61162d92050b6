//! The decoders of this room, to be tried with bytes that nobody wrote.

use super::header::{self, Header};
use super::record::{self, Entry, EntryKind, Record};
use crate::bytes::{crc_at, put_u32};
use crate::decoder::{Decoder, Judged};
use crate::position::Position;

const POSITION: u64 = 4800;
const HEADER: Header = Header { start: 0x3000, slot_width_ms: 1000, lineage: 7 };

fn position() -> Position {
    Position::new(POSITION).expect("not zero")
}

pub(crate) fn decoders() -> Vec<Decoder> {
    let record = Decoder::new("timer_record", records, seal_record, judge_record);
    let header = Decoder::new("timer_log_header", headers, seal_header, judge_header);
    vec![record, header]
}

fn records() -> Vec<Vec<u8>> {
    let entry = Entry { deadline: 1_790_000_000_123, offset: 1 << 40, length: 120, tag: u64::MAX };
    let record = |kind, previous| {
        let record = Record { kind, slot: 1_790_000_000, previous, entry };
        record.encode(position()).to_vec()
    };
    vec![record(EntryKind::Add, None), record(EntryKind::Cancel, Position::new(4752))]
}

fn seal_record(bytes: &mut [u8]) {
    if bytes.len() >= record::SIZE {
        let crc = crc_at(POSITION, &bytes[4..record::SIZE]);
        put_u32(bytes, 0, crc);
    }
}

fn judge_record(bytes: &[u8]) -> Judged {
    // Blocks are read in whole records.
    let Some(bytes) = bytes.get(..record::SIZE) else { return Judged::Refused };
    let read = Record::decode(bytes, position()).ok();
    Judged::of(bytes, read, |record| record.encode(position()).to_vec())
}

fn headers() -> Vec<Vec<u8>> {
    vec![HEADER.encode().to_vec()]
}

fn seal_header(bytes: &mut [u8]) {
    if bytes.len() >= header::SIZE {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..header::SIZE]);
        put_u32(bytes, 12, crc);
    }
}

fn judge_header(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk() else { return Judged::Refused };
    Judged::of(bytes, HEADER.check(bytes).ok(), |()| HEADER.encode().to_vec())
}
