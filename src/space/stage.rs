//! The watch over the disk, as a stage.

use std::sync::Arc;

use timerlog::disk::DiskError;

use super::marks::{Ballast, Marks, Pressure, Seen};
use crate::clock::Now;
use crate::commitlog::NewWork;
use crate::stage::{Progress, Signal, Stage, StageError};
use crate::store::Store;
use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// How often the disk is asked, in milliseconds.
const LOOK_EVERY_MS: u64 = 250;

/// What was last seen, for those who tell of it.
#[derive(Debug)]
pub struct Watch {
    marks: Marks,
    free: AtomicU64,
    pressure: AtomicU8,
}

impl Watch {
    pub fn new(marks: Marks) -> Self {
        Self { marks, free: AtomicU64::new(u64::MAX), pressure: AtomicU8::new(0) }
    }

    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Bytes that are free.
    pub fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    pub fn pressure(&self) -> Pressure {
        match self.pressure.load(Ordering::Relaxed) {
            0 => Pressure::None,
            1 => Pressure::NewWorkRefused,
            _ => Pressure::BallastGivenUp,
        }
    }

    fn set(&self, free: u64, pressure: Pressure) {
        self.free.store(free, Ordering::Relaxed);
        self.pressure.store(pressure as u8, Ordering::Relaxed);
    }
}

/// Why the server ends over its disk.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpaceError {
    #[error("the data directory {path} was taken away while the server was running: {cause}")]
    TakenAway { path: String, cause: DiskError },
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Watches the free space, and keeps the ballast.
#[derive(Debug)]
pub struct SpaceStage {
    store: Arc<Store>,
    watch: Arc<Watch>,
    pressure: Pressure,
    /// The ballast, as it was last made or found.
    has_ballast: Option<bool>,
}

impl SpaceStage {
    pub fn new(store: Arc<Store>, watch: Arc<Watch>) -> Self {
        Self { store, watch, pressure: Pressure::None, has_ballast: None }
    }

    fn look(&mut self) -> Result<(), SpaceError> {
        let store = Arc::clone(&self.store);
        let room = store.room();
        let taken_away = |cause| SpaceError::TakenAway { path: room.path(), cause };
        let free = room.space().map_err(taken_away)?.free;
        let has_ballast = self.has_ballast()?;
        let room_is_wanted = room.take_wanted() | store.log().is_full();
        let seen = Seen { free, has_ballast, room_is_wanted };
        let (pressure, ballast) = self.watch.marks.judge(seen);
        match ballast {
            Ballast::Leave => {}
            Ballast::Make => self.make_ballast()?,
            Ballast::GiveUp => {
                room.give_up_ballast()?;
                self.has_ballast = Some(false);
            }
        }
        self.change_to(pressure, free);
        if room_is_wanted {
            // Only when it has nothing else to do does the flush look for room.
            store.log().flush_signal().raise();
        }
        Ok(())
    }

    /// A ballast of another length, from before the reserve was set anew, goes.
    fn has_ballast(&mut self) -> Result<bool, DiskError> {
        if let Some(has) = self.has_ballast {
            return Ok(has);
        }
        let found = self.store.room().ballast()?;
        let has = found.is_some_and(|length| length == self.watch.marks.ballast);
        if found.is_some() && !has {
            self.store.room().give_up_ballast()?;
        }
        self.has_ballast = Some(has);
        Ok(has)
    }

    fn make_ballast(&mut self) -> Result<(), DiskError> {
        match self.store.room().make_ballast(self.watch.marks.ballast) {
            Ok(()) => self.has_ballast = Some(true),
            // Somebody was faster; the next look sees how much is left.
            Err(error) if error.wants_room() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn change_to(&mut self, pressure: Pressure, free: u64) {
        self.watch.set(free, pressure);
        if pressure == self.pressure {
            return;
        }
        self.pressure = pressure;
        match pressure {
            Pressure::None => tracing::info!(free, "the disk has room: new work is taken"),
            Pressure::NewWorkRefused => {
                tracing::warn!(free, "the disk is nearly full: new work is refused");
            }
            Pressure::BallastGivenUp => {
                tracing::error!(
                    free,
                    "the disk is full: the ballast is given up for what was accepted"
                );
            }
        }
        self.store.log().set_new_work(match pressure {
            Pressure::None => NewWork::Taken,
            Pressure::NewWorkRefused | Pressure::BallastGivenUp => NewWork::Refused,
        });
    }
}

impl Stage for SpaceStage {
    fn name(&self) -> &'static str {
        "space"
    }

    fn step(&mut self, now: Now) -> Result<Progress, StageError> {
        self.look().map_err(|error| StageError::new(self.name(), error))?;
        let next = now.wall.checked_add(LOOK_EVERY_MS);
        Ok(next.map_or(Progress::Idle, Progress::IdleUntil))
    }

    fn signal(&self) -> &Signal {
        self.store.room().signal()
    }
}
