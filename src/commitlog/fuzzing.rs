//! The group's header, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::group::{GROUP_HEADER, GroupHeader, GroupKind, GroupMagic};
use crate::clock::Timestamp;
use crate::message::offset::Offset;

const SECRET: GroupMagic = GroupMagic(0x1122_3344_5566_7788);
const OFFSET: Offset = Offset::new(9600);

pub(crate) fn decoders() -> Vec<Decoder> {
    let group = Decoder::new("group", samples, seal, judge);
    let mut all = super::settled::decoders();
    all.push(group);
    all
}

fn samples() -> Vec<Vec<u8>> {
    let records = GroupHeader {
        offset: OFFSET,
        number: 7,
        incarnation: 3,
        durable_upto: Offset::new(9600),
        previous_hash: u128::MAX - 5,
        length: 960,
        count: 5,
        closed_at: Timestamp::from_millis(1_790_000_000_000),
        kind: GroupKind::Records,
        records_hash: 42,
    };
    let end = GroupHeader { kind: GroupKind::EndOfSegment, length: 1 << 20, count: 0, ..records };
    vec![records.encode(SECRET).to_vec(), end.encode(SECRET).to_vec()]
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= GROUP_HEADER {
        let crc = crc32c::crc32c(&bytes[..GROUP_HEADER - 4]);
        bytes[GROUP_HEADER - 4..GROUP_HEADER].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge(bytes: &[u8]) -> Judged {
    let header = &bytes[..bytes.len().min(GROUP_HEADER)];
    let read = GroupHeader::decode(bytes, OFFSET, SECRET).ok();
    Judged::of(header, read, |read| read.encode(SECRET).to_vec())
}
