//! The delay levels: which queue of the level topic a level's messages wait in, and how far each is released.
//!
//! ```text
//!   level 3 ──table──> delay 10 s ──> queue 2 of SCHEDULE_TOPIC_XXXX     the setting of this start
//!                                     queue 2 delays by 10 s             the level topic's record, for ever
//!                                     queue 2 is released up to 17       a hint, in the checkpoint
//! ```
//!
//! A queue has one delay for as long as it is there, so what waits in it is in the order of its deadlines.
//! With another table a level may lead to another queue, or to a new one; the old ones drain. By the first
//! table the queue of a level is the level - 1.
//!
//! Ground rules:
//!
//! - What a queue delays by is said by a record before the first message in it. Where rot took that record,
//!   the messages say the same.
//! - *Released up to* says where the scan goes on. Everything before it is settled, or was passed over for
//!   a reason that stays; a scan that starts earlier finds that out again. Only the scan moves it, after
//!   the turn that settled what it passes. A checkpoint copies it before it flushes the log, so it never
//!   says more than the disk holds.

use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::topics::{LEVEL_TOPIC, LEVEL_TOPIC_ID, TopicAt};
use super::{MakeError, Store, Topic};
use crate::clock::Timestamp;
use crate::message::record::TopicSet;
use crate::message::{LevelTable, TopicSettings};
use crate::sync::RwLock;

/// Most queues of the level topic: a message's record counts them from 1 in 16 bits.
const MAX_QUEUES: usize = 65_535;

/// What a message put with a level gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Of the level topic.
    pub queue: u16,
    pub delay_ms: u64,
}

/// The levels. Shared by reference.
#[derive(Debug, Default)]
pub struct Levels(RwLock<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queues: Vec<LevelQueue>,
    /// The queue of each level, from level 1.
    table: Vec<u16>,
}

/// A queue of the level topic, as a checkpoint has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LevelQueue {
    /// 0: not known; then no level leads to it.
    pub(super) delay_ms: u64,
    pub(super) released: u64,
}

impl LevelQueue {
    const fn of(delay_ms: u64) -> Self {
        Self { delay_ms, released: 0 }
    }
}

impl Levels {
    /// What `level` stands for: the table's last when it is above that, and nothing below 1 or while there
    /// is no table.
    pub fn of(&self, level: u32) -> Option<Level> {
        let inner = self.0.read();
        let last = inner.table.len().checked_sub(1)?;
        let index = usize::try_from(level.checked_sub(1)?).unwrap_or(last).min(last);
        let queue = inner.table[index];
        Some(Level { queue, delay_ms: inner.queues[usize::from(queue)].delay_ms })
    }

    /// Where the scan of the queue goes on.
    pub fn released(&self, queue: u16) -> u64 {
        self.0.read().queues.get(usize::from(queue)).map_or(0, |queue| queue.released)
    }

    /// Everything in the queue before `upto` is settled, or need not be.
    pub fn set_released(&self, queue: u16, upto: u64) {
        if let Some(queue) = self.0.write().queues.get_mut(usize::from(queue)) {
            queue.released = upto;
        }
    }

    /// Puts back what a checkpoint says.
    pub(super) fn restore(&self, queues: Vec<LevelQueue>) {
        self.0.write().queues = queues;
    }

    /// What a checkpoint is to say of queues of these lengths.
    pub(super) fn capture(&self, topic: &Topic) -> Vec<LevelQueue> {
        let mut queues = self.0.read().queues.clone();
        for (queue, units) in queues.iter_mut().zip(&topic.queues) {
            let length = units.units.committed();
            assert!(queue.released <= length, "what is released was read in the queue");
            if planted::is(Fault::LevelReleasedAhead) {
                queue.released = length;
            }
        }
        queues
    }

    /// What has expired in the queues of the level topic is settled, or waits elsewhere.
    pub(super) fn expire(&self, topic: Option<&Topic>) {
        let queues = topic.map_or(&[][..], |topic| &topic.queues);
        for (queue, units) in self.0.write().queues.iter_mut().zip(queues) {
            queue.released = queue.released.max(units.units.first());
        }
    }

    fn delays(&self) -> Vec<u64> {
        self.0.read().queues.iter().map(|queue| queue.delay_ms).collect()
    }

    /// A record of the level topic says what its queues delay by.
    pub(super) fn set_delays(&self, delays_ms: &[u64]) {
        let mut inner = self.0.write();
        for (index, &delay_ms) in delays_ms.iter().enumerate() {
            match inner.queues.get_mut(index) {
                Some(queue) => queue.delay_ms = delay_ms,
                None => inner.queues.push(LevelQueue::of(delay_ms)),
            }
        }
    }

    /// A message says what its queue delays by.
    pub(super) fn set_delay(&self, queue: u16, delay_ms: u64) {
        let mut inner = self.0.write();
        let index = usize::from(queue);
        if inner.queues.len() <= index {
            inner.queues.resize(index + 1, LevelQueue::of(0));
        }
        if inner.queues[index].delay_ms == 0 {
            inner.queues[index].delay_ms = delay_ms;
        }
    }
}

impl Store {
    pub fn levels(&self) -> &Levels {
        &self.fold.levels
    }

    /// Levels are those of `table` from now on. A delay that no queue has gets a new one.
    ///
    /// # Errors
    ///
    /// When a queue must be made and cannot.
    pub fn set_levels(&self, table: &LevelTable, now: Timestamp) -> Result<Arc<Topic>, MakeError> {
        let _making = self.making.lock();
        let before = self.levels().delays();
        let (delays_ms, table) = assign(&before, table).ok_or(MakeError::TooMany)?;
        let topic = self.topic_by_id(LEVEL_TOPIC_ID);
        let mut topic = topic.expect("the store makes the level topic itself");
        if delays_ms.len() > before.len() {
            let queues = u16::try_from(delays_ms.len()).map_err(|_| MakeError::TooMany)?;
            let (name, settings) = (LEVEL_TOPIC, TopicSettings::mixed(queues));
            let (topic_id, at) = (LEVEL_TOPIC_ID, now);
            let set = TopicSet { topic_id, settings, at, name: name.to_owned(), delays_ms };
            let record = set.encode();
            let set_at = self.log.turn_for_accepted(record.len())?.append(record);
            topic = self.fold.topics.set(&TopicAt { id: topic_id, name, settings, set_at });
            self.levels().set_delays(&set.delays_ms);
        }
        self.levels().0.write().table = table;
        Ok(topic)
    }
}

/// The delays of all queues, and the queue of each level, by `table` on top of queues that delay by
/// `before`; `None` when there would be too many queues.
fn assign(before: &[u64], table: &LevelTable) -> Option<(Vec<u64>, Vec<u16>)> {
    let table = table.delays_ms();
    let mut delays = if before.is_empty() { table.to_vec() } else { before.to_vec() };
    let mut queues = Vec::with_capacity(table.len());
    for (index, delay) in table.iter().enumerate() {
        // Levels that are alike have a queue each, as long as the table stays.
        let own = (delays.get(index) == Some(delay)).then_some(index);
        let there = own.or_else(|| delays.iter().position(|of_queue| of_queue == delay));
        let queue = there.unwrap_or_else(|| {
            delays.push(*delay);
            delays.len() - 1
        });
        queues.push(u16::try_from(queue).ok()?);
    }
    (delays.len() <= MAX_QUEUES).then_some((delays, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(delays_ms: &[u64]) -> LevelTable {
        LevelTable::new(delays_ms.to_vec()).expect("a good table")
    }

    #[test]
    fn by_the_first_table_the_queue_of_a_level_is_the_level_less_one() {
        let (delays, queues) = assign(&[], &table(&[5, 1, 5, 9])).unwrap();
        assert_eq!(delays, [5, 1, 5, 9]);
        assert_eq!(queues, [0, 1, 2, 3]);
        assert_eq!(assign(&delays, &table(&[5, 1, 5, 9])).unwrap(), (delays, queues));
    }

    #[test]
    fn a_delay_keeps_its_queue_and_a_new_one_gets_one() {
        let (delays, queues) = assign(&[5, 1, 5, 9], &table(&[1, 7, 9])).unwrap();
        assert_eq!(delays, [5, 1, 5, 9, 7]);
        assert_eq!(queues, [1, 4, 3]);
        let (delays, queues) = assign(&delays, &table(&[5, 7, 7])).unwrap();
        assert_eq!(delays, [5, 1, 5, 9, 7]);
        assert_eq!(queues, [0, 4, 4]);
    }

    #[test]
    fn a_queue_whose_delay_is_not_known_is_nobodys() {
        assert_eq!(assign(&[0, 3], &table(&[3, 4])).unwrap(), (vec![0, 3, 4], vec![1, 2]));
    }

    #[test]
    fn there_are_as_many_queues_as_a_record_can_name() {
        assert!(assign(&vec![1; MAX_QUEUES - 1], &table(&[2])).is_some());
        assert!(assign(&vec![1; MAX_QUEUES], &table(&[2])).is_none());
        assert!(assign(&vec![1; MAX_QUEUES], &table(&[1])).is_some());
    }

    #[test]
    fn a_level_above_the_table_is_its_last_and_0_is_none() {
        let levels = Levels::default();
        assert_eq!(levels.of(1), None, "no table yet");
        levels.set_delays(&[5, 9]);
        levels.0.write().table = vec![0, 1];
        let of = |level| levels.of(level).map(|level| (level.queue, level.delay_ms));
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some((0, 5)));
        for above in [2, 3, 999, u32::MAX] {
            assert_eq!(of(above), Some((1, 9)), "{above}");
        }
    }

    #[test]
    fn what_a_message_says_of_its_queue_counts_where_no_record_does() {
        let levels = Levels::default();
        levels.set_delay(2, 30);
        levels.set_delay(2, 31);
        assert_eq!(levels.delays(), [0, 0, 30]);
        levels.set_released(2, 7);
        levels.set_delays(&[10, 20, 30, 40]);
        assert_eq!(levels.delays(), [10, 20, 30, 40]);
        assert_eq!((levels.released(2), levels.released(3), levels.released(9)), (7, 0, 0));
    }
}
