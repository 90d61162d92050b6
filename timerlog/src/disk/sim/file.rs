//! The simulated files, and the handles on them.

use std::io;
use std::sync::Arc;

use super::gate::Refusal;
use super::pages::Pages;
use super::{Machine, Random};
use crate::disk::checks::end_within;
use crate::disk::{DiskError, File, Mapping, Operation};
use crate::sync::Mutex;

/// What a name points at: bytes, and whether the length itself would survive.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) content: Mutex<Content>,
}

#[derive(Debug)]
pub(super) struct Content {
    pub(super) length: u64,
    /// Set by the first sync: until then a power cut may leave the file with no bytes at all.
    allocated: bool,
    pub(super) pages: Pages,
}

impl Inode {
    pub(super) fn new(length: u64) -> Arc<Self> {
        let content = Content { length, allocated: false, pages: Pages::default() };
        Arc::new(Self { content: Mutex::new(content) })
    }

    pub(super) fn crash(&self, random: &mut Random) {
        let content = &mut *self.content.lock();
        content.pages.crash(random);
        if !content.allocated && random.once_in(2) {
            content.length = 0;
            content.pages = Pages::default();
        }
        content.allocated = true;
    }

    /// Replaces the content, in both images.
    pub(super) fn replace(&self, bytes: &[u8]) {
        let mut pages = Pages::default();
        pages.write(0, bytes);
        pages.sync();
        *self.content.lock() = Content { length: bytes.len() as u64, allocated: true, pages };
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let content = self.content.lock();
        let mut bytes = vec![0; usize::try_from(content.length).expect("a simulated file fits")];
        content.pages.read(0, &mut bytes);
        bytes
    }
}

/// A handle on a simulated file.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) machine: Arc<Machine>,
    pub(super) inode: Arc<Inode>,
    pub(super) length: u64,
    pub(super) path: String,
    pub(super) life: u64,
}

impl SimFile {
    fn error(&self, operation: Operation, cause: io::Error) -> DiskError {
        DiskError::new(operation, self.path.clone(), cause)
    }

    fn check_range(
        &self,
        operation: Operation,
        offset: u64,
        length: usize,
    ) -> Result<(), DiskError> {
        if end_within(offset, length, self.length).is_some() {
            return Ok(());
        }
        let text = format!("{length} bytes reach past the end at {}", self.length);
        Err(self.error(operation, io::Error::new(io::ErrorKind::InvalidInput, text)).at(offset))
    }
}

impl File for SimFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.check_range(Operation::Read, offset, buffer.len())?;
        let mut gate = self.machine.enter(Operation::Read, &self.path);
        gate.pass(self.life, Operation::Read)
            .map_err(|refusal| self.error(Operation::Read, refusal.cause()).at(offset))?;
        gate.counters.bytes_read += buffer.len() as u64;
        self.inode.content.lock().pages.read(offset, buffer);
        Ok(())
    }

    fn next_data(&self, offset: u64) -> Result<Option<u64>, DiskError> {
        let found = self.inode.content.lock().pages.next_data(offset);
        Ok(found.filter(|found| *found < self.length))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check_range(Operation::Write, offset, bytes.len())?;
        let mut gate = self.machine.enter(Operation::Write, &self.path);
        let passed = gate.pass(self.life, Operation::Write);
        let written = match passed {
            // The cut came while the bytes were on their way: the crash decides over each page.
            Ok(()) | Err(Refusal::PowerOff) => bytes.len(),
            Err(Refusal::Dead) => 0,
            Err(Refusal::Planned(_)) => {
                usize::try_from(gate.random.below(bytes.len() as u64 + 1)).unwrap_or(0)
            }
        };
        gate.counters.bytes_written += written as u64;
        self.inode.content.lock().pages.write(offset, &bytes[..written]);
        passed.map_err(|refusal| self.error(Operation::Write, refusal.cause()).at(offset))
    }

    fn sync(&self) -> Result<(), DiskError> {
        let passed =
            self.machine.enter(Operation::Sync, &self.path).pass(self.life, Operation::Sync);
        let content = &mut *self.inode.content.lock();
        match passed {
            Ok(()) => {
                content.allocated = true;
                content.pages.sync();
            }
            Err(Refusal::Planned(_)) => content.pages.fail_sync(),
            Err(Refusal::Dead | Refusal::PowerOff) => {}
        }
        passed.map_err(|refusal| self.error(Operation::Sync, refusal.cause()))
    }

    fn map(&self) -> Result<Arc<dyn Mapping>, DiskError> {
        let mut gate = self.machine.enter(Operation::Map, &self.path);
        gate.pass(self.life, Operation::Map)
            .map_err(|refusal| self.error(Operation::Map, refusal.cause()))?;
        Ok(Arc::new(SimMapping { inode: Arc::clone(&self.inode), length: self.length }))
    }

    fn path(&self) -> String {
        self.path.clone()
    }
}

/// A mapping costs no call, so it passes no gate: it outlives its process harmlessly, as a view of
/// what is live.
#[derive(Debug)]
struct SimMapping {
    inode: Arc<Inode>,
    length: u64,
}

impl Mapping for SimMapping {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> bool {
        if end_within(offset, buffer.len(), self.length).is_none() {
            return false;
        }
        self.inode.content.lock().pages.read(offset, buffer);
        true
    }
}
