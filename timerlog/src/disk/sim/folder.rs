//! The simulated directories: the names readers see, and the names the platter has.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Random;
use super::file::Inode;
use crate::sync::Mutex;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Arc<Inode>),
    Folder(Arc<Folder>),
}

/// One change of the names of a folder, in its journal until it is durable.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Link { name: String, node: Node },
    Rename { from: String, to: String },
    Unlink { name: String },
}

type Names = BTreeMap<String, Node>;

#[derive(Debug, Default)]
pub(super) struct Folder {
    pub(super) names: Mutex<FolderNames>,
}

/// The live names are always the durable ones with the whole journal applied.
#[derive(Debug, Default)]
pub(super) struct FolderNames {
    live: Names,
    durable: Names,
    journal: Vec<Change>,
    /// After a failed sync the file system has given up its journal: later syncs answer as if all
    /// were well and make nothing durable.
    aborted: bool,
}

impl FolderNames {
    pub(super) fn live(&self) -> &Names {
        &self.live
    }

    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.live, &change);
        self.journal.push(change);
    }

    /// Changes the names in both images at once, as a hand from outside would.
    pub(super) fn change_durably(&mut self, change: &Change) {
        self.settle();
        apply(&mut self.live, change);
        self.settle();
    }

    pub(super) fn sync(&mut self) {
        if !self.aborted {
            self.settle();
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.aborted = true;
    }

    fn settle(&mut self) {
        self.durable = self.live.clone();
        self.journal.clear();
    }

    /// Keeps a prefix of the journal that the seed picks, and forgets the rest.
    fn crash(&mut self, random: &mut Random) {
        let kept = random.below(self.journal.len() as u64 + 1);
        for change in self.journal.iter().take(usize::try_from(kept).unwrap_or(usize::MAX)) {
            apply(&mut self.durable, change);
        }
        self.live = self.durable.clone();
        self.journal.clear();
        self.aborted = false;
    }
}

impl Folder {
    /// Turns this folder and everything below it into what a power cut leaves.
    pub(super) fn crash(&self, random: &mut Random) {
        let mut names = self.names.lock();
        names.crash(random);
        for node in names.live.values() {
            match node {
                Node::File(inode) => inode.crash(random),
                Node::Folder(folder) => folder.crash(random),
            }
        }
    }

    /// The sum of the lengths of all files below, in bytes.
    pub(super) fn length(&self) -> u64 {
        let names = self.names.lock();
        let length = |node: &Node| match node {
            Node::File(inode) => inode.content.lock().length,
            Node::Folder(folder) => folder.length(),
        };
        names.live.values().map(length).sum()
    }

    /// Calls `visit` with the path and node of all there is below, in order of the names.
    pub(super) fn walk(&self, path: &str, visit: &mut dyn FnMut(&str, &Node)) {
        for (name, node) in &self.names.lock().live {
            let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            visit(&path, node);
            if let Node::Folder(folder) = node {
                folder.walk(&path, visit);
            }
        }
    }

    /// Calls `visit` with a line of text for each durable name and each journaled change.
    pub(super) fn describe(&self, visit: &mut dyn FnMut(&str)) {
        let names = self.names.lock();
        names.durable.keys().for_each(|name| visit(name));
        for change in &names.journal {
            match change {
                Change::Link { name, .. } => visit(&format!("+{name}")),
                Change::Rename { from, to } => visit(&format!("{from}>{to}")),
                Change::Unlink { name } => visit(&format!("-{name}")),
            }
        }
    }
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Link { name, node } => {
            names.insert(name.clone(), node.clone());
        }
        Change::Rename { from, to } => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
        Change::Unlink { name } => {
            names.remove(name);
        }
    }
}
