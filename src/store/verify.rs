//! Reads a data directory that nobody has open, whole, and says what of it is damaged. Changes nothing but the text in
//! the lock's file.
//!
//! The log is read as recovery reads it: every group by its chain, every record by its crcs. Of what is derived, the
//! queues are read unit by unit, the index page by page, the settled bits by the digests of their files and the timer's
//! logs record by record, as far as the newest checkpoint vouches for them. What is derived and damaged costs the next
//! start its time, and nothing else.

use std::cell::Cell;
use std::sync::Arc;

use timerlog::Checked;
use timerlog::checkpoint::read as read_checkpoint;
use timerlog::disk::{Directory, DiskError};

use super::checkpoint::FORMAT;
use super::identity::Identity;
use super::open::OpenError;
use super::state::State;
use super::topics::directory_name;
use super::{LOCK_NAME, StoreError};
use crate::commitlog::settled::check_files;
use crate::commitlog::{Damage, WholeLog, read_all};
use crate::consumequeue::{ConsumeQueue, Home};
use crate::index;
use crate::message::offset::Offset;
use crate::message::record::{Kind, Quarantine, Record};

/// What was found in a data directory.
#[derive(Clone, Debug)]
pub struct Verified {
    pub log: VerifiedLog,
    pub derived: Vec<VerifiedKind>,
}

#[derive(Clone, Debug)]
pub struct VerifiedLog {
    pub files: u64,
    /// Where it begins: not at 0 when older segments were let go.
    pub begin: Offset,
    pub end: Offset,
    pub records: u64,
    pub segment_size: u64,
    /// Stretches before its end that cannot be read.
    pub damage: Vec<Damage>,
    /// Stretches that a record sets aside.
    pub quarantined: Vec<Quarantine>,
    /// How far a checkpoint knows it to be, when it is not so far any more.
    pub shorter_than: Option<Offset>,
}

/// Derived files of one kind.
#[derive(Clone, Debug)]
pub struct VerifiedKind {
    pub name: &'static str,
    pub files: u64,
    pub bytes: u64,
    /// Units, pages, records or copies that were read and are whole.
    pub read: u64,
    /// What is wrong with it, as a sentence with the file's name.
    pub damage: Vec<String>,
}

impl Verified {
    /// Whether anything is lost for good, or may be.
    pub fn is_whole(&self) -> bool {
        let log = &self.log;
        let log = log.damage.is_empty() && log.quarantined.is_empty() && log.shorter_than.is_none();
        log && self.derived.iter().all(|kind| kind.damage.is_empty())
    }
}

/// Reads the timer's files, of which a checkpoint says so much.
pub type CheckTimer<'a> = &'a dyn Fn(&Arc<dyn Directory>, &[u8]) -> Result<Checked, DiskError>;

/// Reads the data directory `root`, the timer's files by `timer`. `progress` is told how far the log is read, and how
/// long it is.
///
/// # Errors
///
/// [`OpenError`] when it is not a data directory, somebody has it open, or the disk fails.
pub fn verify(
    root: &Arc<dyn Directory>,
    holder: &str,
    progress: &dyn Fn(u64, u64),
    timer: CheckTimer<'_>,
) -> Result<Verified, OpenError> {
    let identity = Identity::read(&**root)?;
    let identity = identity.ok_or_else(|| OpenError::NotThere { path: root.path() })?;
    let _lock = root.lock(LOCK_NAME, holder).map_err(|error| OpenError::locked(root, error))?;
    let copies = read_checkpoint(&**root, FORMAT)?;
    let mut checkpoint =
        VerifiedKind::of("checkpoint", root, |name| name.starts_with("checkpoint-"))?;
    checkpoint.read = checkpoint.files - copies.damaged.len() as u64;
    checkpoint.damage = copies.damaged.iter().map(ToString::to_string).collect();
    let state = match copies.newest.map(|newest| State::decode(&newest.payload)) {
        None => None,
        Some(Ok(state)) => Some(state),
        Some(Err(error)) => {
            checkpoint.damage.push(format!("the newest checkpoint: {error}"));
            None
        }
    };
    let log = verify_log(root, &identity, state.as_ref(), progress)?;
    let mut derived = vec![checkpoint];
    derived.push(verify_queues(root, state.as_ref())?);
    derived.push(verify_settled(root, &identity, state.as_ref())?);
    derived.push(verify_index(root, state.as_ref())?);
    derived.push(verify_timer(root, state.as_ref(), timer)?);
    Ok(Verified { log, derived })
}

fn verify_log(
    root: &Arc<dyn Directory>,
    identity: &Identity,
    state: Option<&State>,
    progress: &dyn Fn(u64, u64),
) -> Result<VerifiedLog, OpenError> {
    let log = there(root, "commitlog")?;
    let directory = log.ok_or_else(|| OpenError::NotThere { path: root.path() })?;
    let names = directory.list()?;
    let begins = || names.iter().filter_map(|name| name.parse::<u64>().ok());
    let segment_size = identity.segment_size;
    let begin = Offset::new(begins().min().unwrap_or(0));
    let upto = begins().max().map_or(0, |last| last + segment_size);
    let (records, mut quarantined) = (Cell::new(0_u64), Vec::new());
    let mut see = |record: &Record<'_>| {
        records.set(records.get() + 1);
        progress(record.header.offset.get() - begin.get(), upto - begin.get());
        if record.header.kind == Kind::Quarantine
            && let Ok(quarantine) = Quarantine::decode(record)
        {
            quarantined.push(quarantine);
        }
        false
    };
    let read = read_all(directory, segment_size, identity.secrets, begin, &mut see);
    let WholeLog { damage, end } = read.map_err(StoreError::from)?;
    let durable = state.map(|state| state.durable_upto);
    Ok(VerifiedLog {
        files: begins().count() as u64,
        begin,
        end,
        records: records.get(),
        segment_size,
        damage,
        quarantined,
        shorter_than: durable.filter(|&durable| durable > end),
    })
}

fn verify_queues(
    root: &Arc<dyn Directory>,
    state: Option<&State>,
) -> Result<VerifiedKind, OpenError> {
    let mut kind = VerifiedKind::below("consumequeue", root)?;
    let Some(queues) = there(root, kind.name)? else { return Ok(kind.missing(state)) };
    for topic in state.into_iter().flat_map(|state| &state.topics) {
        let name = directory_name(topic.id);
        if there(&queues, &name)?.is_none() {
            // A topic has a directory from its first message on.
            if topic.queues.iter().any(|&(_, length)| length > 0) {
                kind.damage.push(format!("topic {} has no queues", topic.name));
            }
            continue;
        }
        let home = Home::new(Arc::clone(&queues), name);
        for (number, &(first, length)) in (0..).zip(&topic.queues) {
            let checked = ConsumeQueue::open(Arc::clone(&home), number, first, length);
            match checked.and_then(|queue| queue.check()) {
                Ok(()) => kind.read += length - first,
                Err(error) => kind.damage.push(format!("topic {}: {error}", topic.name)),
            }
        }
    }
    Ok(kind)
}

fn verify_settled(
    root: &Arc<dyn Directory>,
    identity: &Identity,
    state: Option<&State>,
) -> Result<VerifiedKind, OpenError> {
    let mut kind = VerifiedKind::below("settled", root)?;
    let Some(state) = state else { return Ok(kind) };
    let Some(directory) = there(root, kind.name)? else { return Ok(kind.missing(Some(state))) };
    let checked = check_files(directory, identity.segment_size, state.settled_upto, state.begin);
    match checked {
        Ok(pages) => kind.read = pages,
        Err(error) => kind.damage.push(error.to_string()),
    }
    Ok(kind)
}

fn verify_index(
    root: &Arc<dyn Directory>,
    state: Option<&State>,
) -> Result<VerifiedKind, OpenError> {
    let mut kind = VerifiedKind::below("index", root)?;
    let Some(state) = state else { return Ok(kind) };
    let Some(directory) = there(root, kind.name)? else { return Ok(kind.missing(Some(state))) };
    match index::check_files(&*directory, &state.index) {
        Ok(pages) => kind.read = pages,
        Err(error) => kind.damage.push(error.to_string()),
    }
    Ok(kind)
}

fn verify_timer(
    root: &Arc<dyn Directory>,
    state: Option<&State>,
    timer: CheckTimer<'_>,
) -> Result<VerifiedKind, OpenError> {
    let mut kind = VerifiedKind::below("timerlog", root)?;
    // Without anything to go by the next start fills a wheel anew.
    let Some(state) = state.filter(|state| !state.timer.is_empty()) else { return Ok(kind) };
    let Some(directory) = there(root, kind.name)? else { return Ok(kind.missing(Some(state))) };
    let checked = timer(&directory, &state.timer)?;
    kind.read = checked.read;
    kind.damage = checked.damage.iter().map(ToString::to_string).collect();
    Ok(kind)
}

/// The subdirectory, if it is there: asking for one makes it.
fn there(
    directory: &Arc<dyn Directory>,
    name: &str,
) -> Result<Option<Arc<dyn Directory>>, DiskError> {
    let is_there = directory.subdirectories()?.iter().any(|found| found == name);
    is_there.then(|| directory.subdirectory(name)).transpose()
}

impl VerifiedKind {
    fn empty(name: &'static str) -> Self {
        Self { name, files: 0, bytes: 0, read: 0, damage: Vec::new() }
    }

    /// Without a checkpoint nobody vouches for it, and it is no damage.
    fn missing(mut self, state: Option<&State>) -> Self {
        if state.is_some() {
            self.damage.push(format!("{} is missing", self.name));
        }
        self
    }

    fn of(
        name: &'static str,
        directory: &Arc<dyn Directory>,
        which: impl Fn(&str) -> bool,
    ) -> Result<Self, DiskError> {
        let mut kind = Self::empty(name);
        kind.count(&**directory, &which)?;
        Ok(kind)
    }

    /// All that is below the subdirectory of that name.
    fn below(name: &'static str, root: &Arc<dyn Directory>) -> Result<Self, DiskError> {
        let Some(directory) = there(root, name)? else { return Ok(Self::empty(name)) };
        let mut kind = Self::of(name, &directory, |_| true)?;
        for below in directory.subdirectories()? {
            kind.count(&*directory.subdirectory(&below)?, &|_| true)?;
        }
        Ok(kind)
    }

    fn count(
        &mut self,
        directory: &dyn Directory,
        which: &impl Fn(&str) -> bool,
    ) -> Result<(), DiskError> {
        for name in directory.list()?.iter().filter(|name| which(name)) {
            self.files += 1;
            self.bytes += directory.open(name)?.length();
        }
        Ok(())
    }
}
