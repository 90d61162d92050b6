//! Reads all entries of a run in order, for a merge: many pages at a time.

use std::sync::Arc;

use super::Run;
use super::header::Layout;
use super::page::{PAGE_LENGTH, Page};
use crate::index::entry::Entry;
use crate::index::error::IndexError;

/// Pages read by one call: 64 KiB.
const READ_AHEAD: u64 = 16;

#[derive(Debug)]
pub(in crate::index) struct RunStream {
    run: Arc<Run>,
    /// Bytes of the pages before `read_upto`; the next one is `next`.
    ahead: Vec<u8>,
    read_upto: u64,
    next: u64,
    page: Page,
    index: usize,
}

impl RunStream {
    pub(in crate::index) fn new(run: Arc<Run>) -> Self {
        Self { run, ahead: Vec::new(), read_upto: 0, next: 0, page: Page::empty(), index: 0 }
    }

    pub(in crate::index) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// The next entry; `None` at the end.
    pub(in crate::index) fn next(&mut self) -> Result<Option<Entry>, IndexError> {
        loop {
            if let Some(entry) = self.page.get(self.index) {
                self.index += 1;
                return Ok(Some(entry));
            }
            if self.next == self.run.pages() {
                return Ok(None);
            }
            self.turn_page()?;
        }
    }

    fn turn_page(&mut self) -> Result<(), IndexError> {
        if self.next == self.read_upto {
            self.read_ahead()?;
        }
        let ahead = self.read_upto - self.next;
        let at = self.ahead.len() - usize::try_from(ahead).expect("few pages") * PAGE_LENGTH;
        let mut bytes = Box::new([0; PAGE_LENGTH]);
        bytes.copy_from_slice(&self.ahead[at..at + PAGE_LENGTH]);
        self.page = self.run.whole_page(bytes, self.next)?;
        self.next += 1;
        self.index = 0;
        Ok(())
    }

    fn read_ahead(&mut self) -> Result<(), IndexError> {
        let pages = READ_AHEAD.min(self.run.pages() - self.next);
        self.ahead.resize(usize::try_from(pages).expect("few pages") * PAGE_LENGTH, 0);
        self.run.file.read_at(Layout::page_at(self.next), &mut self.ahead)?;
        self.read_upto = self.next + pages;
        Ok(())
    }
}
