//! Where the files of a topic's queues are.

use std::sync::{Arc, OnceLock};

use timerlog::disk::{Directory, DiskError};

/// The directory that the queues of one topic share.
///
/// The directory of a new topic is made when the first unit is written, as a file is: on a full disk both wait for
/// room, and the topic is there all the same.
#[derive(Debug)]
pub struct Home {
    parent: Arc<dyn Directory>,
    name: String,
    made: OnceLock<Arc<dyn Directory>>,
}

impl Home {
    /// The directory `name` below `parent`, which may not be there yet.
    pub fn new(parent: Arc<dyn Directory>, name: String) -> Arc<Self> {
        Arc::new(Self { parent, name, made: OnceLock::new() })
    }

    /// As [`Home::new`], and the directory is made now unless it is there.
    ///
    /// # Errors
    ///
    /// The disk's.
    pub fn open(parent: Arc<dyn Directory>, name: String) -> Result<Arc<Self>, DiskError> {
        let home = Self::new(parent, name);
        home.directory()?;
        Ok(home)
    }

    pub(super) fn directory(&self) -> Result<&Arc<dyn Directory>, DiskError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let directory = self.parent.subdirectory(&self.name)?;
        Ok(self.made.get_or_init(|| directory))
    }

    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.parent.path(), self.name)
    }
}
