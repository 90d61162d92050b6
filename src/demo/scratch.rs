//! A data directory for one run.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use timerlog::disk::{Directory, DiskError, OsDirectory};

/// A new directory below the system's temporary one, removed when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    directory: Arc<dyn Directory>,
}

impl Scratch {
    pub(super) fn make(seed: u64) -> Result<Self, DiskError> {
        let path = std::env::temp_dir().join(format!("horolog-demo-{seed:016x}"));
        let directory = Arc::new(OsDirectory::open(&path)?);
        Ok(Self { path, directory })
    }

    pub(super) fn directory(&self) -> Arc<dyn Directory> {
        Arc::clone(&self.directory)
    }
}

impl fmt::Display for Scratch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.path.display())
    }
}

impl Drop for Scratch {
    #[expect(clippy::disallowed_methods, reason = "a Directory cannot remove itself")]
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the demo's data");
        }
    }
}
