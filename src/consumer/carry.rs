//! Dead letters carried on, so that the log may begin later.
//!
//! A dead letter whose record, or whose message's, lies in what is to be let go is appended again: its message as a
//! move, and the dead letter as the one that takes the place of the old. It stands at the end of the list then, with the
//! time of its death as it was.

use super::dead_letters::{DeadLettersError, Mark, NoOrigin, queue_of};
use super::lease::QueueLeases;
use super::{Consumers, seat};
use crate::clock::Now;
use crate::commitlog::ReadError;
use crate::message::offset::Offset;
use crate::message::record::{Acked, DeadLetter, Encoded, Moved, Origin};
use crate::store::{CauseError, Caused, Group, Read, Topic};

/// How long a dead letter waits to be looked after.
const DEAD_LETTERS_KEPT_MS: u64 = 30 * 24 * 3_600_000;

/// How far a walk over all dead letters of all groups has come.
#[derive(Clone, Debug, Default)]
pub struct LettersWalk {
    /// The group before the one at hand.
    after: Option<String>,
    mark: Mark,
    pub carried: u64,
}

impl Consumers {
    /// Looks at up to `max` dead letters and carries on those that need what is before `upto`, unless they have waited
    /// too long. `true` at the end of the walk.
    ///
    /// # Errors
    ///
    /// [`DeadLettersError`]; the walk goes on where it was.
    pub fn carry_letters(
        &self,
        walk: &mut LettersWalk,
        max: usize,
        upto: Offset,
        now: Now,
    ) -> Result<bool, DeadLettersError> {
        let mut left = max;
        loop {
            let next = self.store.groups(walk.after.as_deref(), 1).pop();
            let Some(group) = next else { return Ok(true) };
            for (topic, letters) in self.dead_letters_of(&group, None) {
                if topic.id < walk.mark.topic_id {
                    continue;
                }
                if topic.id > walk.mark.topic_id {
                    walk.mark = Mark { topic_id: topic.id, offset: 0 };
                }
                // Those that are carried on stand behind it.
                let end = queue_of(&letters).committed();
                while let Some(place) = self.next_letter(&group, &letters, walk.mark.offset) {
                    if place >= end {
                        break;
                    }
                    if left == 0 {
                        return Ok(false);
                    }
                    left -= 1;
                    if self.carry_letter(&group, &topic, &letters, place, upto, now)? {
                        walk.carried += 1;
                    }
                    walk.mark.offset = place + 1;
                }
            }
            walk.after = Some(group.name.clone());
            walk.mark = Mark::default();
        }
    }

    fn carry_letter(
        &self,
        group: &Group,
        topic: &Topic,
        letters: &Topic,
        place: u64,
        upto: Offset,
        now: Now,
    ) -> Result<bool, DeadLettersError> {
        let unit = queue_of(letters).unit(place)?;
        let mut bytes = Vec::new();
        let letter = match self.letter(unit, &mut bytes) {
            Ok(letter) => letter,
            Err(NoOrigin::Damaged(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let origin = letter.origin;
        let goes = [unit.offset, origin.cause, origin.message].iter().any(|&at| at < upto);
        if !goes || now.wall.since(letter.at) > DEAD_LETTERS_KEPT_MS {
            return Ok(false);
        }
        let caused = self.store.caused(origin.cause, origin.length, Read::Whole, &mut bytes);
        let caused = match caused {
            Ok(caused) => caused,
            Err(CauseError::Read(ReadError::Record { .. })) => return Ok(false),
            Err(error) => return Err(NoOrigin::from(error).into()),
        };
        let body = (caused.home < upto).then(|| moved(&caused, now));
        let (home, length) = (caused.home, caused.record.header.length());
        let room = DeadLetter::ENCODED_LENGTH + body.as_ref().map_or(0, |(_, record)| record.len());
        let at = seat(group, letters, 0);
        let mut leases = self.leases.lock();
        let done = leases
            .look(group, at, |state: &mut QueueLeases, progress| state.is_done(place, progress));
        let mut turn = self.store.log().turn_for_accepted(room)?;
        if done || topic.is_deleted() {
            return Ok(false);
        }
        let (home, length) = match body {
            Some((moved, record)) => {
                let length = record.unpadded_length();
                let offset = turn.append(record);
                self.store.keys().of_moved(&moved, |key| self.store.index().insert(key, offset));
                (offset, length)
            }
            None => (home, length),
        };
        let length = u32::try_from(length).expect("a record is shorter than its group of 8 MiB");
        let queue = letters.queue(0).expect("a system topic has a queue");
        let again = DeadLetter {
            place: Acked { topic_id: letters.id, queue: 0, queue_offset: place },
            origin: Origin { cause: home, length, message: home, ..origin },
            queue_offset: queue.take_offsets(1),
            ..letter
        };
        topic.appended(turn.append(again.encode()));
        drop(turn);
        let number = leases.numbers.next();
        leases.queue(group, at).acking(place, number);
        Ok(true)
    }
}

fn moved(caused: &Caused<'_>, now: Now) -> (Moved, Encoded) {
    let moved = Moved {
        message: caused.offset,
        at: now.wall,
        deadline: caused.deadline,
        waits: false,
        of: caused.message.clone(),
    };
    let record = moved.encode(caused.record.body);
    (moved, record)
}
