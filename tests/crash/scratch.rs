//! A directory for one test, kept when the test fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Below it: `data`, the server's data directory, and `server.log`, what its lives had to say.
#[derive(Debug)]
pub(crate) struct Scratch {
    directory: Option<TempDir>,
    path: PathBuf,
    data: PathBuf,
    seed: u64,
}

impl Scratch {
    pub(crate) fn new(seed: u64) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("horolog-crash-")
            .tempdir()
            .expect("a test needs a directory");
        let path = directory.path().to_owned();
        let data = path.join("data");
        Self { directory: Some(directory), path, data, seed }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.data.clone()
    }

    /// Keeps the data somewhere else: on a disk of its own.
    pub(crate) fn put_data(&mut self, path: PathBuf) {
        self.data = path;
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// What the servers have logged so far.
    pub(crate) fn logged(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else { return };
        if std::thread::panicking() {
            let kept = directory.keep();
            println!("HOROLOG_CRASH_SEED={}, kept: {}", self.seed, kept.display());
        }
    }
}

/// Every file below `directory` with its bytes, by its path: equal before and after means untouched.
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory) {
            if path.is_dir() {
                open.push(path.clone());
                files.insert(path, Vec::new());
            } else {
                let bytes = std::fs::read(&path).expect("a file that is listed can be read");
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Removes everything that can be built again from the log; how many entries that were.
pub(crate) fn remove_derived(data: &Path) -> usize {
    const TRUTH: [&str; 3] = ["commitlog", "id.key", "LOCK"];
    let derived = entries(data)
        .into_iter()
        .filter(|path| TRUTH.iter().all(|name| !path.ends_with(name)))
        .collect::<Vec<_>>();
    for path in &derived {
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        removed.expect("the server is down: nobody else uses the directory");
    }
    derived.len()
}

pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    entries.map(|entry| entry.expect("an entry can be read").path()).collect()
}
