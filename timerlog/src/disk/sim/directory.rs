//! The handles on simulated directories, and the locks.

use std::io;
use std::sync::Arc;

use super::Machine;
use super::file::{Inode, SimFile};
use super::folder::{Change, Folder, Node};
use super::gate::Refusal;
use crate::disk::checks::assert_plain;
use crate::disk::{Directory, DiskError, File, Lock, Operation, Space};

/// The size of a disk that was given no capacity.
const ENDLESS: u64 = 1 << 50;

/// The room that making a directory needs, in bytes. What directories take is not counted afterwards.
const DIRECTORY_LENGTH: u64 = 4096;

/// A handle on a directory of a [`SimDisk`](super::SimDisk).
#[derive(Debug)]
pub struct SimDirectory {
    pub(super) machine: Arc<Machine>,
    pub(super) folder: Arc<Folder>,
    pub(super) path: String,
    pub(super) life: u64,
}

impl SimDirectory {
    fn path_of(&self, name: &str) -> String {
        assert_plain(name);
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    fn pass(&self, operation: Operation, path: &str) -> Result<(), DiskError> {
        self.machine
            .enter(operation, path)
            .pass(self.life, operation)
            .map_err(|refusal| DiskError::new(operation, path, refusal.cause()))
    }

    fn file(&self, inode: Arc<Inode>, path: String) -> Arc<dyn File> {
        let length = inode.content.lock().length;
        Arc::new(SimFile {
            machine: Arc::clone(&self.machine),
            inode,
            length,
            path,
            life: self.life,
        })
    }

    fn check_room(&self, length: u64, path: &str) -> Result<(), DiskError> {
        let capacity = self.machine.gate.lock().capacity;
        if capacity.is_some_and(|capacity| self.machine.allocated() + length > capacity) {
            return Err(failure(Operation::Create, path, io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn names(&self, wanted: fn(&Node) -> bool) -> Result<Vec<String>, DiskError> {
        self.pass(Operation::List, &self.path)?;
        let names = self.folder.names.lock();
        let wanted = names.live().iter().filter(|(_, node)| wanted(node));
        Ok(wanted.map(|(name, _)| name.clone()).collect())
    }

    fn change(&self, change: Change) {
        self.folder.names.lock().change(change);
    }
}

impl Directory for SimDirectory {
    fn create(&self, name: &str, length: u64) -> Result<Arc<dyn File>, DiskError> {
        let path = self.path_of(name);
        self.pass(Operation::Create, &path)?;
        if self.folder.names.lock().live().contains_key(name) {
            return Err(failure(Operation::Create, &path, io::ErrorKind::AlreadyExists));
        }
        self.check_room(length, &path)?;
        let inode = Inode::new(length);
        self.change(Change::Link { name: name.to_owned(), node: Node::File(Arc::clone(&inode)) });
        Ok(self.file(inode, path))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>, DiskError> {
        let path = self.path_of(name);
        self.pass(Operation::Open, &path)?;
        let node = self.folder.names.lock().live().get(name).cloned();
        match node {
            Some(Node::File(inode)) => Ok(self.file(inode, path)),
            Some(Node::Folder(_)) => {
                Err(failure(Operation::Open, &path, io::ErrorKind::IsADirectory))
            }
            None => Err(failure(Operation::Open, &path, io::ErrorKind::NotFound)),
        }
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.names(|node| matches!(node, Node::File(_)))
    }

    fn subdirectories(&self) -> Result<Vec<String>, DiskError> {
        self.names(|node| matches!(node, Node::Folder(_)))
    }

    fn subdirectory(&self, name: &str) -> Result<Arc<dyn Directory>, DiskError> {
        let path = self.path_of(name);
        let node = self.folder.names.lock().live().get(name).cloned();
        let folder = match node {
            Some(Node::Folder(folder)) => folder,
            Some(Node::File(_)) => {
                return Err(failure(Operation::Create, &path, io::ErrorKind::NotADirectory));
            }
            None => {
                self.pass(Operation::Create, &path)?;
                self.check_room(DIRECTORY_LENGTH, &path)?;
                let folder = Arc::new(Folder::default());
                let node = Node::Folder(Arc::clone(&folder));
                self.change(Change::Link { name: name.to_owned(), node });
                folder
            }
        };
        Ok(Arc::new(Self { machine: Arc::clone(&self.machine), folder, path, life: self.life }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let path = self.path_of(from);
        assert_plain(to);
        self.pass(Operation::Rename, &path)?;
        if !self.folder.names.lock().live().contains_key(from) {
            return Err(failure(Operation::Rename, &path, io::ErrorKind::NotFound));
        }
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let path = self.path_of(name);
        self.pass(Operation::Remove, &path)?;
        if !matches!(self.folder.names.lock().live().get(name), Some(Node::File(_))) {
            return Err(failure(Operation::Remove, &path, io::ErrorKind::NotFound));
        }
        self.change(Change::Unlink { name: name.to_owned() });
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        let operation = Operation::SyncDirectory;
        let passed = self.machine.enter(operation, &self.path).pass(self.life, operation);
        let mut names = self.folder.names.lock();
        match passed {
            Ok(()) => names.sync(),
            Err(Refusal::Planned(_)) => names.fail_sync(),
            Err(Refusal::Dead | Refusal::PowerOff) => {}
        }
        passed.map_err(|refusal| DiskError::new(operation, self.path.clone(), refusal.cause()))
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Box<dyn Lock>, DiskError> {
        let path = self.path_of(name);
        self.pass(Operation::Lock, &path)?;
        if !self.folder.names.lock().live().contains_key(name) {
            let node = Node::File(Inode::new(0));
            self.change(Change::Link { name: name.to_owned(), node });
        }
        let inode = match self.folder.names.lock().live().get(name) {
            Some(Node::File(inode)) => Arc::clone(inode),
            _ => return Err(failure(Operation::Lock, &path, io::ErrorKind::IsADirectory)),
        };
        let mut gate = self.machine.gate.lock();
        if let Some(holder) = gate.locks.get(&path) {
            let text = format!("held by {holder}");
            let cause = io::Error::new(io::ErrorKind::WouldBlock, text);
            return Err(DiskError::new(Operation::Lock, path, cause));
        }
        gate.locks.insert(path.clone(), holder.to_owned());
        drop(gate);
        let (machine, folder) = (Arc::clone(&self.machine), Arc::clone(&self.folder));
        let (name, life) = (name.to_owned(), self.life);
        Ok(Box::new(SimLock { machine, folder, inode, name, path, life }))
    }

    fn space(&self) -> Result<Space, DiskError> {
        self.pass(Operation::Measure, &self.path)?;
        let total = self.machine.gate.lock().capacity.unwrap_or(ENDLESS);
        Ok(Space { total, free: total.saturating_sub(self.machine.allocated()) })
    }

    fn path(&self) -> String {
        self.path.clone()
    }
}

fn failure(operation: Operation, path: &str, kind: io::ErrorKind) -> DiskError {
    DiskError::new(operation, path, io::Error::from(kind))
}

/// A held lock; a kill or a crash ends it before its handle is dropped.
#[derive(Debug)]
struct SimLock {
    machine: Arc<Machine>,
    folder: Arc<Folder>,
    inode: Arc<Inode>,
    name: String,
    path: String,
    life: u64,
}

impl Lock for SimLock {
    fn check(&self) -> Result<(), DiskError> {
        match self.folder.names.lock().live().get(&self.name) {
            Some(Node::File(there)) if Arc::ptr_eq(there, &self.inode) => Ok(()),
            _ => Err(failure(Operation::Lock, &self.path, io::ErrorKind::NotFound)),
        }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut gate = self.machine.gate.lock();
        if gate.life == self.life {
            gate.locks.remove(&self.path);
        }
    }
}
