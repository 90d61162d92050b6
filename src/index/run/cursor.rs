//! Walks the offsets of one key in one run, newest first, a page at a time.

use std::sync::Arc;

use super::page::Page;
use super::{Run, fence};
use crate::index::entry::{Entry, KeyHash};
use crate::index::error::IndexError;
use crate::message::offset::Offset;

#[derive(Debug)]
pub(in crate::index) struct RunCursor {
    run: Arc<Run>,
    key: KeyHash,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing was read yet, not even the filter.
    Before,
    At {
        number: u64,
        page: Page,
        index: usize,
    },
    After,
}

impl RunCursor {
    pub(in crate::index) fn new(run: Arc<Run>, key: KeyHash) -> Self {
        Self { run, key, state: State::Before }
    }

    /// What no offset to come is above, known without reading anything.
    pub(in crate::index) fn ceiling(&self) -> Option<Offset> {
        match &self.state {
            State::Before => Some(self.run.highest()),
            State::At { page, index, .. } => page.get(*index).map(|entry| entry.offset),
            State::After => None,
        }
    }

    /// The newest offset below `below`, which never grows from call to call.
    pub(in crate::index) fn newest(
        &mut self,
        below: Option<Offset>,
    ) -> Result<Option<Offset>, IndexError> {
        let Some(bound) = Entry::first_below(self.key, below) else { return Ok(None) };
        if matches!(self.state, State::Before) {
            self.state = self.seek(bound)?;
        }
        loop {
            let State::At { number, page, index } = &mut self.state else { return Ok(None) };
            match page.get(*index) {
                Some(entry) if entry.hash != self.key => self.state = State::After,
                Some(entry) if entry >= bound => return Ok(Some(entry.offset)),
                Some(_) => *index += 1,
                None => {
                    let next = *number + 1;
                    self.state = self.turn_to(next, |_| 0)?;
                }
            }
        }
    }

    /// To the first entry that is not before `bound`.
    fn seek(&self, bound: Entry) -> Result<State, IndexError> {
        if !self.run.may_contain(self.key)? {
            return Ok(State::After);
        }
        let number = fence::count_before(self.run.pages(), bound, |page| self.run.fence(page))?;
        self.turn_to(number, |page| page.count_before(bound))
    }

    fn turn_to(
        &self,
        number: u64,
        index: impl FnOnce(&Page) -> usize,
    ) -> Result<State, IndexError> {
        if number == self.run.pages() {
            return Ok(State::After);
        }
        let page = self.run.page(number)?;
        let index = index(&page);
        Ok(State::At { number, page, index })
    }
}
