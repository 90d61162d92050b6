//! The bytes of one simulated file: what readers see, and what the platter has.
//!
//! The live image is a map of pages, a missing page being zero. The durable image is not stored: it
//! is the live one with the `old` pages put back. So a write costs the pages it touches and a sync
//! costs nothing but forgetting, whatever the length of the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Random;

pub(super) const PAGE_SIZE: usize = 4096;
const SECTOR_SIZE: usize = 512;

type Page = Arc<[u8; PAGE_SIZE]>;

#[derive(Debug, Default)]
pub(super) struct Pages {
    live: BTreeMap<u64, Page>,
    /// For each page written since the last sync: what the platter holds (`None`: zeros).
    old: BTreeMap<u64, Option<Page>>,
    /// The same for pages that a failed sync dropped: clean to the kernel, lost to the platter.
    dropped: BTreeMap<u64, Option<Page>>,
}

impl Pages {
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) {
        for piece in pieces(offset, buffer.len()) {
            let target = &mut buffer[piece.at..piece.at + piece.length];
            match self.live.get(&piece.page) {
                Some(page) => {
                    target.copy_from_slice(&page[piece.start..piece.start + piece.length]);
                }
                None => target.fill(0),
            }
        }
    }

    /// The first offset from `offset` on that lies in a page with content.
    pub(super) fn next_data(&self, offset: u64) -> Option<u64> {
        let (page, _) = self.live.range(offset / PAGE_SIZE as u64..).next()?;
        Some(offset.max(page * PAGE_SIZE as u64))
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for piece in pieces(offset, bytes.len()) {
            self.remember_old(piece.page);
            let page = self.live.entry(piece.page).or_insert_with(|| Arc::new([0; PAGE_SIZE]));
            Arc::make_mut(page)[piece.start..piece.start + piece.length]
                .copy_from_slice(&bytes[piece.at..piece.at + piece.length]);
        }
    }

    /// A page that was dropped is dirty again once it is rewritten, over the same old content.
    fn remember_old(&mut self, page: u64) {
        if !self.old.contains_key(&page) {
            let old = match self.dropped.remove(&page) {
                Some(old) => old,
                None => self.live.get(&page).cloned(),
            };
            self.old.insert(page, old);
        }
    }

    pub(super) fn sync(&mut self) {
        self.old.clear();
    }

    pub(super) fn fail_sync(&mut self) {
        self.dropped.append(&mut self.old);
    }

    /// Makes live what a power cut leaves.
    pub(super) fn crash(&mut self, random: &mut Random) {
        for (page, old) in std::mem::take(&mut self.dropped) {
            self.put(page, old);
        }
        for (page, old) in std::mem::take(&mut self.old) {
            match random.below(3) {
                0 => {}
                1 => self.put(page, old),
                _ => self.tear(page, old, random.next()),
            }
        }
    }

    fn put(&mut self, page: u64, content: Option<Page>) {
        match content {
            Some(content) => self.live.insert(page, content),
            None => self.live.remove(&page),
        };
    }

    /// Each sector of the page becomes old or stays new, by one bit of `choice`.
    fn tear(&mut self, page: u64, old: Option<Page>, choice: u64) {
        let old = old.unwrap_or_else(|| Arc::new([0; PAGE_SIZE]));
        let Some(live) = self.live.get_mut(&page) else { return };
        let live = Arc::make_mut(live);
        for (index, range) in (0..PAGE_SIZE).step_by(SECTOR_SIZE).enumerate() {
            if choice >> index & 1 == 0 {
                let range = range..range + SECTOR_SIZE;
                live[range.clone()].copy_from_slice(&old[range]);
            }
        }
    }

    /// Turns one bit over in both images.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) {
        let page = offset / PAGE_SIZE as u64;
        let within = byte_within(offset);
        let flip = |content: &mut Page| Arc::make_mut(content)[within] ^= 1 << bit;
        flip(self.live.entry(page).or_insert_with(|| Arc::new([0; PAGE_SIZE])));
        for map in [&mut self.old, &mut self.dropped] {
            if let Some(old) = map.get_mut(&page) {
                flip(old.get_or_insert_with(|| Arc::new([0; PAGE_SIZE])));
            }
        }
    }

    /// Calls `visit` with every page of the live image, then of the durable one, that is not zero.
    pub(super) fn visit(&self, mut visit: impl FnMut(u64, &[u8])) {
        let mut show = |page: u64, content: &Page| {
            if content.iter().any(|byte| *byte != 0) {
                visit(page, &content[..]);
            }
        };
        self.live.iter().for_each(|(page, content)| show(*page, content));
        for (page, content) in &self.live {
            if !self.old.contains_key(page) && !self.dropped.contains_key(page) {
                show(*page, content);
            }
        }
        for (page, content) in self.old.iter().chain(&self.dropped) {
            content.iter().for_each(|content| show(*page, content));
        }
    }
}

/// The part of a range that lies in one page.
struct Piece {
    page: u64,
    start: usize,
    at: usize,
    length: usize,
}

fn pieces(offset: u64, length: usize) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let position = offset + at as u64;
        let start = byte_within(position);
        let piece = Piece {
            page: position / PAGE_SIZE as u64,
            start,
            at,
            length: (PAGE_SIZE - start).min(length - at),
        };
        at += piece.length;
        (piece.length > 0).then_some(piece)
    })
}

fn byte_within(offset: u64) -> usize {
    usize::try_from(offset % PAGE_SIZE as u64).expect("a remainder by 4096 fits")
}
