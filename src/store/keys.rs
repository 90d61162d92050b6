//! What the index is asked for: everything that has a key, hashed to 64 bits.
//!
//! The hash is seeded by a secret of the data directory, so that nobody can make keys that collide. Two
//! keys may still have one hash: whoever looks up reads the record and compares.

use xxhash_rust::xxh3::Xxh3;

use crate::index::KeyHash;
use crate::message::offset::Offset;
use crate::message::record::{Message, Moved};

/// What a key is a key of. A part of what is hashed, so of what is on the disk.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Space {
    /// A message's own keys, within its topic.
    Key = 1,
    /// The key of a timer, within its topic.
    Timer = 2,
    /// A message that was moved, to its reschedules; a half message, to what has happened to it.
    Moved = 3,
    /// A cause that was asked to fire, to its delivery.
    Asked = 4,
    /// An idempotency key, to its record.
    Idempotency = 5,
    /// A message, by where it first stood, to the records that it was moved to.
    Home = 6,
}

/// Makes hashes for one data directory.
#[derive(Clone)]
pub struct Keys {
    seed: u64,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keys(secret)")
    }
}

impl Keys {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    pub fn key(&self, topic_id: u32, key: &str) -> KeyHash {
        self.hash(Space::Key, &[&topic_id.to_le_bytes(), key.as_bytes()])
    }

    pub fn timer(&self, topic_id: u32, key: &str) -> KeyHash {
        self.hash(Space::Timer, &[&topic_id.to_le_bytes(), key.as_bytes()])
    }

    pub fn moved(&self, message: Offset) -> KeyHash {
        self.hash(Space::Moved, &[&message.get().to_le_bytes()])
    }

    pub fn asked(&self, cause: Offset) -> KeyHash {
        self.hash(Space::Asked, &[&cause.get().to_le_bytes()])
    }

    pub fn home(&self, message: Offset) -> KeyHash {
        self.hash(Space::Home, &[&message.get().to_le_bytes()])
    }

    /// All that the message of a move is found by.
    pub fn of_moved(&self, moved: &Moved, mut each: impl FnMut(KeyHash)) {
        each(self.home(moved.message));
        let timer = moved.of.timer.as_ref().filter(|_| !moved.waits);
        let passed_over = timer.map(|timer| self.timer(moved.of.topic_id, &timer.key));
        self.of_message(&moved.of, |key| {
            // Another one may wait under the key by now.
            if Some(key) != passed_over {
                each(key);
            }
        });
    }

    pub fn idempotency(&self, digest: &[u8; 16]) -> KeyHash {
        self.hash(Space::Idempotency, &[digest])
    }

    /// All that a message is found by, besides its id.
    pub fn of_message(&self, message: &Message, mut each: impl FnMut(KeyHash)) {
        for key in &message.attributes.keys {
            each(self.key(message.topic_id, key));
        }
        if let Some(timer) = &message.timer {
            each(self.key(message.topic_id, &timer.key));
            each(self.timer(message.topic_id, &timer.key));
        }
    }

    fn hash(&self, space: Space, parts: &[&[u8]]) -> KeyHash {
        let mut hasher = Xxh3::with_seed(self.seed);
        hasher.update(&[space as u8]);
        for part in parts {
            hasher.update(part);
        }
        KeyHash::new(hasher.digest())
    }
}
