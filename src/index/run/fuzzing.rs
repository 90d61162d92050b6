//! Headers and pages of runs, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::header::{HEADER_LENGTH, Header};
use super::page::{PAGE_ENTRIES, PAGE_LENGTH, Page};
use crate::index::entry::{Entry, KeyHash};
use crate::message::offset::Offset;

const RUN: u64 = 3;
const NUMBER: u64 = 5;
const COUNT: usize = 200;

pub(crate) fn decoders() -> Vec<Decoder> {
    vec![
        Decoder::new("index_header", headers, seal_header, judge_header),
        Decoder::new("index_page", pages, seal_page, judge_page),
    ]
}

fn headers() -> Vec<Vec<u8>> {
    let header = Header {
        number: RUN,
        capacity: 1 << 20,
        entries: 1 << 19,
        lowest: Offset::new(0x20),
        highest: Offset::new(1 << 40),
        pages_hash: u64::MAX,
        fence_crc: 1,
        filter_crc: 2,
    };
    vec![header.encode().to_vec()]
}

fn seal_header(bytes: &mut [u8]) {
    if bytes.len() >= HEADER_LENGTH {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..HEADER_LENGTH]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge_header(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk() else { return Judged::Refused };
    Judged::of(bytes, Header::decode(bytes).ok(), |header| header.encode().to_vec())
}

fn pages() -> Vec<Vec<u8>> {
    let mut page = Page::empty();
    for number in 0..COUNT as u64 {
        page.push(Entry::new(KeyHash::new(number << 32), Offset::new(3200 + number * 32)));
    }
    vec![page.seal(RUN, NUMBER).to_vec()]
}

fn seal_page(bytes: &mut [u8]) {
    if bytes.len() >= PAGE_LENGTH {
        let crc = crc32c::crc32c(&bytes[4..PAGE_LENGTH]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge_page(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk::<PAGE_LENGTH>() else { return Judged::Refused };
    let read = Page::read(Box::new(*bytes), RUN, NUMBER, COUNT).ok();
    Judged::of(bytes, read, |page| {
        // Whatever the entries are, they are searched without a panic.
        for entry in (0..=PAGE_ENTRIES).map_while(|at| page.get(at)) {
            assert!(page.count_before(entry) <= COUNT);
        }
        page.clone().seal(RUN, NUMBER).to_vec()
    })
}
