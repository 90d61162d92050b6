//! Which causes are settled, and how: three bits a cause, on disk, through a bounded cache.
//!
//! A cause is a record that gives a message a moment; its offset is its name. Records begin at
//! multiples of 32 bytes and a cause takes at least 96, so of the one bit there is per 32 bytes of log
//! each cause owns three: the first says *settled*, the next two say how ([`Outcome`]).
//!
//! ```text
//!   appender ── set ──> cache of pages ── copy at checkpoint ──> journal ──> settled/00000000000000000000
//!                          ^ miss: read ────────────────────────────────────────┘
//! ```
//!
//! Ground rules:
//!
//! - Only the appender sets bits while the server runs, inside its turn; recovery sets them as it reads
//!   the facts. A bit is never cleared.
//! - A page is written only when the log is durable up to every fact that it knows: at a checkpoint,
//!   after the flush. A page that knew of a fact the log then lost would swallow a message for ever.
//! - A page may know more than the checkpoint: replay sets bits again without harm.
//! - Pages are written in place, so a torn write could damage what an older page knew. So the pages of
//!   a checkpoint go to a journal first; a start that finds a whole journal writes it out again.
//! - The journal also has a digest of each file, so that a start notices one that is missing, damaged or an
//!   older copy. All of this is derived data: then it is built again from the log.

#[cfg(any(test, fuzzing))]
mod fuzzing;
mod journal;
mod page;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, File};

#[cfg(any(test, fuzzing))]
pub(super) use self::fuzzing::decoders;
use self::journal::Journal;
use self::page::{PAGE_BITS, PAGE_LENGTH, Page, PageError};
use crate::message::offset::{Offset, STEP};
use crate::sync::Mutex;

/// How a cause was settled. Persisted as the two bits after the settled bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is on its topic.
    Delivered,
    /// It was cancelled or rolled back, and will never be delivered.
    Withdrawn,
    /// A later cause speaks for the message: a reschedule, a move, a commit.
    Superseded,
    /// It cannot be delivered: its topic is gone.
    Dropped,
}

impl Outcome {
    const fn bits(self) -> [bool; 2] {
        match self {
            Self::Delivered => [false, false],
            Self::Withdrawn => [true, false],
            Self::Superseded => [false, true],
            Self::Dropped => [true, true],
        }
    }

    const fn from_bits(bits: [bool; 2]) -> Self {
        match bits {
            [false, false] => Self::Delivered,
            [true, false] => Self::Withdrawn,
            [false, true] => Self::Superseded,
            [true, true] => Self::Dropped,
        }
    }
}

/// Why a cause's page cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SettledError {
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error("{file} is damaged at page {page}: {cause}")]
    Damaged { file: String, page: u64, cause: PageError },
    #[error("{file} has {got} bytes where {expected} belong")]
    Length { file: String, got: u64, expected: u64 },
    #[error("{file} is missing or not what the last checkpoint wrote")]
    Stale { file: String },
}

/// Pages kept in memory: 16 MiB of them cover 4 GiB of log.
const CACHED_PAGES: usize = 4096;

/// The settled bits of a log.
#[derive(Debug)]
pub struct Settled {
    directory: Arc<dyn Directory>,
    pages_per_segment: u64,
    segment_steps: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    pages: HashMap<u64, Cached>,
    files: BTreeMap<u64, Option<Arc<dyn File>>>,
    /// Of each segment's file as it is on the disk.
    digests: BTreeMap<u64, u64>,
    /// Of the last journal.
    durable_upto: Offset,
    /// What is below is settled, however it was: its segments were let go.
    floor: Offset,
    tick: u64,
    dirty: usize,
    pages_written: u64,
}

#[derive(Debug)]
struct Cached {
    page: Page,
    /// What the page on the disk adds to its file's digest.
    digest: u64,
    used: u64,
    state: PageState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    /// As on the disk: may be forgotten.
    Clean,
    /// Copied for a checkpoint that has not written it yet.
    Writing,
    Dirty,
}

/// One bit's place: page number over all segments, bit within the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    page: u64,
    bit: usize,
}

impl Settled {
    /// Opens the bits below `directory`, finishing a checkpoint that a crash cut short. `written_upto` is
    /// what [`Settled::written_upto`] said at the checkpoint that the start goes by, and `floor` where the log
    /// began: the segments before it may have no files any more.
    ///
    /// # Errors
    ///
    /// When the disk fails, and when the files are not whole or older than the checkpoint: then remove
    /// them and build the bits again ([`Settled::empty`]).
    pub fn open(
        directory: Arc<dyn Directory>,
        segment_size: u64,
        written_upto: Offset,
        floor: Offset,
    ) -> Result<Self, SettledError> {
        let journal = Journal::read(&*directory)?.unwrap_or_default();
        let settled = Self::over(directory, segment_size);
        settled.forget_below(floor);
        let (first, first_page) = settled.first_kept(floor);
        if journal.durable_upto < written_upto {
            return Err(SettledError::Stale { file: settled.directory.path() });
        }
        for (number, bytes) in journal.pages.iter().filter(|(number, _)| *number >= first_page) {
            settled.write_page(*number, bytes)?;
        }
        settled.sync()?;
        for (segment, digest) in journal.digests.into_iter().filter(|&(of, _)| of >= first) {
            settled.check_file(segment, digest)?;
        }
        settled.remove_strays()?;
        settled.inner.lock().durable_upto = journal.durable_upto;
        Ok(settled)
    }

    /// Files that no digest speaks of were made for a checkpoint that was never written: a power cut may have cost them
    /// their room, too.
    fn remove_strays(&self) -> Result<(), SettledError> {
        let mut inner = self.inner.lock();
        let mut removed = false;
        for name in self.directory.list()? {
            let Ok(begins) = name.parse::<u64>() else { continue };
            let segment = begins / (self.segment_steps * STEP);
            if !inner.digests.contains_key(&segment) {
                inner.files.remove(&segment);
                self.directory.remove(&name)?;
                removed = true;
            }
        }
        drop(inner);
        if removed { Ok(self.directory.sync()?) } else { Ok(()) }
    }

    /// Starts with no bit set, removing what is in `directory`.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn empty(directory: Arc<dyn Directory>, segment_size: u64) -> Result<Self, SettledError> {
        for name in directory.list()? {
            directory.remove(&name)?;
        }
        directory.sync()?;
        Ok(Self::over(directory, segment_size))
    }

    fn over(directory: Arc<dyn Directory>, segment_size: u64) -> Self {
        let segment_steps = segment_size / STEP;
        Self {
            directory,
            pages_per_segment: segment_steps.div_ceil(PAGE_BITS as u64),
            segment_steps,
            inner: Mutex::default(),
        }
    }

    /// Reads a segment's whole file and compares it with its digest.
    fn check_file(&self, segment: u64, expected: u64) -> Result<(), SettledError> {
        let mut inner = self.inner.lock();
        let Some(file) = self.file(&mut inner, segment, IfMissing::LeaveOut)? else {
            return Err(SettledError::Stale { file: self.file_name(segment) });
        };
        let mut digest = 0;
        let mut bytes = [0; PAGE_LENGTH];
        for within in 0..self.pages_per_segment {
            file.read_at(within * PAGE_LENGTH as u64, &mut bytes)?;
            let number = segment * self.pages_per_segment + within;
            Page::read(&bytes, number).map_err(|cause| SettledError::Damaged {
                file: file.path(),
                page: within,
                cause,
            })?;
            digest ^= page::digest(&bytes);
        }
        if digest != expected {
            return Err(SettledError::Stale { file: file.path() });
        }
        inner.digests.insert(segment, digest);
        Ok(())
    }

    /// How far the log was flushed when the pages on the disk were last written.
    pub fn written_upto(&self) -> Offset {
        self.inner.lock().durable_upto
    }

    /// What is below `floor` counts as superseded from here on, however it was settled: what of it goes on has
    /// been carried on by a later record.
    pub fn forget_below(&self, floor: Offset) {
        let mut inner = self.inner.lock();
        inner.floor = inner.floor.max(floor);
    }

    /// Removes the files of the segments below `floor`. Not to be called while pages are written.
    pub(super) fn release(&self, floor: Offset) -> Result<(), SettledError> {
        let (first, first_page) = self.first_kept(floor);
        let mut inner = self.inner.lock();
        let gone = inner.pages.extract_if(|&number, _| number < first_page);
        let dirty = gone.filter(|(_, cached)| cached.state == PageState::Dirty).count();
        inner.dirty -= dirty;
        inner.digests.retain(|&segment, _| segment >= first);
        inner.files.retain(|&segment, _| segment >= first);
        drop(inner);
        let mut removed = false;
        for name in self.directory.list()? {
            let begins = name.parse::<u64>().ok();
            if begins.is_some_and(|begins| begins < first * self.segment_steps * STEP) {
                self.directory.remove(&name)?;
                removed = true;
            }
        }
        if removed { Ok(self.directory.sync()?) } else { Ok(()) }
    }

    /// The first segment, and its first page, that holds anything from `floor` on.
    fn first_kept(&self, floor: Offset) -> (u64, u64) {
        let first = floor.get() / STEP / self.segment_steps;
        (first, first * self.pages_per_segment)
    }

    /// How `cause` was settled, if it was.
    ///
    /// # Errors
    ///
    /// When its page cannot be read.
    pub fn get(&self, cause: Offset) -> Result<Option<Outcome>, SettledError> {
        let mut inner = self.inner.lock();
        if cause < inner.floor {
            return Ok(Some(Outcome::Superseded));
        }
        if !self.bit(&mut inner, self.place(cause, 0))? {
            return Ok(None);
        }
        let first = self.bit(&mut inner, self.place(cause, 1))?;
        let second = self.bit(&mut inner, self.place(cause, 2))?;
        Ok(Some(Outcome::from_bits([first, second])))
    }

    /// Settles `cause` and answers `None`, or changes nothing and answers how it was settled before.
    ///
    /// # Errors
    ///
    /// When its page cannot be read; nothing is changed then.
    pub(super) fn set(
        &self,
        cause: Offset,
        outcome: Outcome,
    ) -> Result<Option<Outcome>, SettledError> {
        if let Some(before) = self.get(cause)? {
            return Ok(Some(before));
        }
        let places = [0, 1, 2].map(|step| self.place(cause, step));
        let mut inner = self.inner.lock();
        for place in places {
            self.load(&mut inner, place.page)?;
        }
        let [first, second] = outcome.bits();
        for (place, on) in places.into_iter().zip([true, first, second]) {
            if on {
                inner.set(place);
            }
        }
        Ok(None)
    }

    /// Sets what recovery reads from the log; the same fact may come again.
    ///
    /// # Errors
    ///
    /// As [`Settled::set`].
    pub fn replay(&self, cause: Offset, outcome: Outcome) -> Result<(), SettledError> {
        self.set(cause, outcome).map(drop)
    }

    /// Bytes written to pages and their journal since the start.
    pub fn bytes_written(&self) -> u64 {
        // Each page goes to the journal and to its place.
        self.inner.lock().pages_written * 2 * PAGE_LENGTH as u64
    }

    /// Pages that wait for the next checkpoint.
    pub fn dirty_pages(&self) -> usize {
        self.inner.lock().dirty
    }

    /// Whether a checkpoint should come soon, since most of the cache cannot be forgotten.
    pub fn wants_checkpoint(&self) -> bool {
        self.dirty_pages() > CACHED_PAGES / 2
    }

    /// Copies what is dirty, for [`Settled::write`].
    pub fn copy_dirty(&self) -> DirtyPages {
        let mut inner = self.inner.lock();
        let mut pages = Vec::with_capacity(inner.dirty);
        for (&number, cached) in &mut inner.pages {
            if cached.state == PageState::Dirty {
                cached.state = PageState::Writing;
                pages.push((number, cached.page.seal(number)));
            }
        }
        inner.dirty = 0;
        pages.sort_by_key(|&(number, _)| number);
        DirtyPages(pages)
    }

    /// Writes and syncs the copied pages: to the journal, then in place. The log is durable up to
    /// `durable_upto`, which must not lie before its end at the time of the copy.
    ///
    /// # Errors
    ///
    /// When the disk fails. After want of room ([`DiskError::wants_room`]) the pages are dirty as before;
    /// after anything else they are in doubt, and the server must end.
    pub fn write(&self, dirty: DirtyPages, durable_upto: Offset) -> Result<(), SettledError> {
        if dirty.0.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.make_files(&dirty) {
            self.take_back(&dirty);
            return Err(error);
        }
        let digests = self.digests_with(&dirty);
        let journal = Journal {
            durable_upto,
            digests: digests.iter().map(|(&segment, &digest)| (segment, digest)).collect(),
            pages: dirty.0,
        };
        if let Err(error) = journal.write(&*self.directory) {
            self.take_back(&DirtyPages(journal.pages));
            return Err(error.into());
        }
        for (number, bytes) in &journal.pages {
            self.write_page(*number, bytes)?;
        }
        self.sync()?;
        let mut inner = self.inner.lock();
        inner.durable_upto = durable_upto;
        inner.digests = digests;
        inner.pages_written += journal.pages.len() as u64;
        for (number, bytes) in &journal.pages {
            if let Some(cached) = inner.pages.get_mut(number) {
                cached.digest = page::digest(bytes);
                if cached.state == PageState::Writing {
                    cached.state = PageState::Clean;
                }
            }
        }
        Ok(())
    }

    /// Makes the files that the pages belong in: a disk with no room says so before anything is written.
    fn make_files(&self, dirty: &DirtyPages) -> Result<(), SettledError> {
        for (number, _) in &dirty.0 {
            let segment = number / self.pages_per_segment;
            self.file(&mut self.inner.lock(), segment, IfMissing::Create)?;
        }
        Ok(())
    }

    /// The pages were not written: they wait for the next checkpoint again.
    fn take_back(&self, dirty: &DirtyPages) {
        let mut inner = self.inner.lock();
        for (number, _) in &dirty.0 {
            if let Some(cached) = inner.pages.get_mut(number)
                && cached.state == PageState::Writing
            {
                cached.state = PageState::Dirty;
                inner.dirty += 1;
            }
        }
    }

    /// The files' digests as they will be with `dirty` in place. Pages that are being written stay in the
    /// cache, so what each adds today is known.
    fn digests_with(&self, dirty: &DirtyPages) -> BTreeMap<u64, u64> {
        let inner = self.inner.lock();
        let mut digests = inner.digests.clone();
        for (number, bytes) in &dirty.0 {
            let today = inner.pages.get(number).map_or(0, |cached| cached.digest);
            *digests.entry(number / self.pages_per_segment).or_default() ^=
                today ^ page::digest(bytes);
        }
        digests
    }

    fn place(&self, cause: Offset, step: u64) -> Place {
        debug_assert!(cause.is_on_step());
        let index = cause.get() / STEP + step;
        let (segment, within) = (index / self.segment_steps, index % self.segment_steps);
        let bits = PAGE_BITS as u64;
        Place {
            page: segment * self.pages_per_segment + within / bits,
            bit: usize::try_from(within % bits).expect("a remainder of a small number"),
        }
    }

    fn bit(&self, inner: &mut Inner, place: Place) -> Result<bool, SettledError> {
        self.load(inner, place.page)?;
        inner.tick += 1;
        let tick = inner.tick;
        let cached = inner.pages.get_mut(&place.page).expect("the page was loaded just now");
        cached.used = tick;
        Ok(cached.page.get(place.bit))
    }

    fn load(&self, inner: &mut Inner, number: u64) -> Result<(), SettledError> {
        if inner.pages.contains_key(&number) {
            return Ok(());
        }
        let (page, digest) = self.read_page(inner, number)?;
        if inner.pages.len() >= CACHED_PAGES {
            inner.forget_some();
        }
        inner.tick += 1;
        let used = inner.tick;
        inner.pages.insert(number, Cached { page, digest, used, state: PageState::Clean });
        Ok(())
    }

    fn read_page(&self, inner: &mut Inner, number: u64) -> Result<(Page, u64), SettledError> {
        let (segment, within) = (number / self.pages_per_segment, number % self.pages_per_segment);
        let Some(file) = self.file(inner, segment, IfMissing::LeaveOut)? else {
            return Ok((Page::empty(), 0));
        };
        let mut bytes = [0; PAGE_LENGTH];
        file.read_at(within * PAGE_LENGTH as u64, &mut bytes)?;
        match Page::read(&bytes, number) {
            Ok(page) => Ok((page, page::digest(&bytes))),
            Err(cause) => Err(SettledError::Damaged { file: file.path(), page: within, cause }),
        }
    }

    fn write_page(&self, number: u64, bytes: &[u8; PAGE_LENGTH]) -> Result<(), SettledError> {
        let (segment, within) = (number / self.pages_per_segment, number % self.pages_per_segment);
        let file = self.file(&mut self.inner.lock(), segment, IfMissing::Create)?;
        let file = file.expect("a missing file was just created");
        Ok(file.write_at(within * PAGE_LENGTH as u64, bytes)?)
    }

    fn sync(&self) -> Result<(), SettledError> {
        let files: Vec<_> = self.inner.lock().files.values().flatten().cloned().collect();
        for file in files {
            file.sync()?;
        }
        Ok(self.directory.sync()?)
    }

    fn file_name(&self, segment: u64) -> String {
        format!("{:020}", segment * self.segment_steps * STEP)
    }

    fn file(
        &self,
        inner: &mut Inner,
        segment: u64,
        if_missing: IfMissing,
    ) -> Result<Option<Arc<dyn File>>, SettledError> {
        if let Some(Some(file)) = inner.files.get(&segment) {
            return Ok(Some(Arc::clone(file)));
        }
        if inner.files.contains_key(&segment) && if_missing == IfMissing::LeaveOut {
            return Ok(None);
        }
        let name = self.file_name(segment);
        let expected = self.pages_per_segment * PAGE_LENGTH as u64;
        let file = match self.directory.open(&name) {
            Ok(file) => Some(file),
            Err(error) if !error.is_not_found() => return Err(error.into()),
            Err(_) => match if_missing {
                IfMissing::LeaveOut => None,
                IfMissing::Create => Some(self.directory.create(&name, expected)?),
            },
        };
        if let Some(file) = &file
            && file.length() != expected
        {
            return Err(SettledError::Length { file: file.path(), got: file.length(), expected });
        }
        inner.files.insert(segment, file.clone());
        Ok(file)
    }
}

/// What to do about a segment that has no file yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    LeaveOut,
    Create,
}

/// Pages copied for a checkpoint.
#[derive(Debug)]
#[must_use = "what was copied must be written, or it is never clean again"]
pub struct DirtyPages(Vec<(u64, [u8; PAGE_LENGTH])>);

impl Inner {
    fn set(&mut self, place: Place) {
        let cached = self.pages.get_mut(&place.page).expect("the page was loaded just now");
        cached.page.set(place.bit);
        if cached.state != PageState::Dirty {
            cached.state = PageState::Dirty;
            self.dirty += 1;
        }
    }

    /// Forgets the older half of the clean pages: seldom, so that the search for them costs little.
    fn forget_some(&mut self) {
        let mut used: Vec<u64> = self
            .pages
            .values()
            .filter(|cached| cached.state == PageState::Clean)
            .map(|cached| cached.used)
            .collect();
        if used.is_empty() {
            return;
        }
        let middle = used.len() / 2;
        let (_, &mut median, _) = used.select_nth_unstable(middle);
        self.pages.retain(|_, cached| cached.state != PageState::Clean || cached.used > median);
    }
}

/// Reads the files in `directory`, which a checkpoint vouches for, and changes nothing: how many pages are whole. Files
/// of which the journal has newer pages, as a start writes them, are not compared with their digests.
///
/// # Errors
///
/// As [`Settled::open`].
pub fn check_files(
    directory: Arc<dyn Directory>,
    segment_size: u64,
    written_upto: Offset,
    floor: Offset,
) -> Result<u64, SettledError> {
    let journal = Journal::read(&*directory)?.unwrap_or_default();
    let settled = Settled::over(directory, segment_size);
    let (first, _) = settled.first_kept(floor);
    if journal.durable_upto < written_upto {
        return Err(SettledError::Stale { file: settled.directory.path() });
    }
    let of_segment = |number: u64| number / settled.pages_per_segment;
    let journaled: BTreeSet<_> =
        journal.pages.iter().map(|&(number, _)| of_segment(number)).collect();
    let mut pages = 0;
    for (segment, digest) in journal.digests {
        if segment >= first && !journaled.contains(&segment) {
            settled.check_file(segment, digest)?;
            pages += settled.pages_per_segment;
        }
    }
    Ok(pages)
}

#[cfg(test)]
mod tests;
