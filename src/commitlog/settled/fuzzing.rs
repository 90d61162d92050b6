//! Settled pages and their journal, to be tried with bytes that nobody wrote.

use timerlog::decoder::{Decoder, Judged};

use super::journal::Journal;
use super::page::{PAGE_LENGTH, Page};
use crate::message::offset::Offset;

const NUMBER: u64 = 5;

pub(crate) fn decoders() -> Vec<Decoder> {
    vec![
        Decoder::new("settled_page", pages, seal_page, judge_page),
        Decoder::new("journal", journals, seal_journal, judge_journal),
    ]
}

fn page() -> Page {
    let mut page = Page::empty();
    [0, 7, 8, 32_703].into_iter().for_each(|bit| page.set(bit));
    page
}

fn pages() -> Vec<Vec<u8>> {
    vec![page().seal(NUMBER).to_vec()]
}

fn seal_page(bytes: &mut [u8]) {
    if bytes.len() >= PAGE_LENGTH {
        let crc = crc32c::crc32c(&bytes[4..PAGE_LENGTH]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge_page(bytes: &[u8]) -> Judged {
    let Some(bytes) = bytes.first_chunk::<PAGE_LENGTH>() else { return Judged::Refused };
    let read = Page::read(bytes, NUMBER).ok();
    // One that was never written is all zeros.
    let never = bytes.iter().all(|&byte| byte == 0);
    Judged::of(
        bytes,
        read,
        |page| if never { vec![0; PAGE_LENGTH] } else { page.seal(NUMBER).to_vec() },
    )
}

fn journals() -> Vec<Vec<u8>> {
    let journal = Journal {
        durable_upto: Offset::new(640),
        digests: vec![(0, 11), (1, 12)],
        pages: vec![(NUMBER, page().seal(NUMBER))],
    };
    vec![journal.encode(), Journal::default().encode()]
}

fn seal_journal(bytes: &mut [u8]) {
    if bytes.len() >= 36 {
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..28]), &bytes[32..]);
        bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    }
}

fn judge_journal(bytes: &[u8]) -> Judged {
    Judged::of(bytes, Journal::decode(bytes), Journal::encode)
}
