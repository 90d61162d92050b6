//! Making a wheel, and finding one again.
//!
//! ```text
//!   checkpoint ──> cut both logs ──> newest usable snapshot ──> replay the records after it
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::checkpoint::TimerCheckpoint;
use super::config::Config;
use super::durable::SnapshotDue;
use super::ring::Ring;
use super::snapshot::{self, Head};
use super::track::Track;
use super::wheel::TimerWheel;
use super::window::Window;
use crate::disk::{Directory, DiskError};
use crate::error::{Damage, DamageKind, TimerError};
use crate::log::{Extent, Shape, TimerLog};

/// How a wheel was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The revision of the snapshot it was made from; `None`: from the logs alone.
    pub snapshot: Option<u64>,
    /// How many records were replayed after it, in both logs.
    pub replayed: u64,
    /// Snapshots that could not be used, and were removed. To be reported; nothing is lost by them.
    pub damaged: Vec<Damage>,
}

/// What a new wheel begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The first open slot.
    pub read_time: u64,
    /// A number that no earlier wheel in the same directory had. An old checkpoint that turns up
    /// again, because a newer one was damaged, is told by it from one of this wheel.
    pub lineage: u64,
}

impl TimerWheel {
    /// Makes an empty wheel in `directory`. What an earlier wheel has left there is removed.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    ///
    /// # Panics
    ///
    /// When the measures of `config` are not as it says they must be.
    pub fn create(
        directory: Arc<dyn Directory>,
        config: Config,
        origin: Origin,
    ) -> Result<Self, TimerError> {
        config.assert_valid();
        let Origin { read_time, lineage } = origin;
        let window = window(&config);
        for revision in snapshot::list(&*directory)? {
            snapshot::remove(&*directory, revision)?;
        }
        let near = TimerLog::create(directory.subdirectory(NEAR)?, near_shape(&config, lineage))?;
        let far = TimerLog::create(directory.subdirectory(FAR)?, far_shape(&config, lineage))?;
        directory.sync()?;
        Ok(Self {
            directory,
            config,
            window,
            near: Track { log: near, ring: Ring::new(window.near_slots) },
            far: Track { log: far, ring: Ring::new(window.far_slots) },
            read_time,
            boundary: window.boundary_for(read_time),
            revision: 0,
            mark: 0,
            lineage,
            refiling: None,
            snapshot_due: SnapshotDue::No,
            recovery: Recovery::default(),
        })
    }

    /// Opens the wheel in `directory` as it was when `checkpoint` was taken. What was filed later
    /// is cut off: the caller files it again, from the checkpoint's mark on.
    ///
    /// # Errors
    ///
    /// [`TimerError::NeedsRebuild`], naming the file, when the files are not what the checkpoint
    /// says, or the wheel had other measures than `config`. Then [`TimerWheel::create`] and file
    /// everything that is pending.
    ///
    /// # Panics
    ///
    /// When the measures of `config` are not as it says they must be.
    pub fn open(
        directory: Arc<dyn Directory>,
        config: Config,
        checkpoint: &TimerCheckpoint,
    ) -> Result<Self, TimerError> {
        config.assert_valid();
        if !checkpoint.is_of(&config) {
            return Err(Damage::of(directory.path(), DamageKind::OtherMeasures).into());
        }
        let near_extent = Extent { floor: checkpoint.near_floor, length: checkpoint.near_length };
        let far_extent = Extent { floor: checkpoint.far_floor, length: checkpoint.far_length };
        let near = TimerLog::open(
            directory.subdirectory(NEAR)?,
            near_shape(&config, checkpoint.lineage),
            near_extent,
        )?;
        let far = TimerLog::open(
            directory.subdirectory(FAR)?,
            far_shape(&config, checkpoint.lineage),
            far_extent,
        )?;

        let window = window(&config);
        let mut recovery = Recovery::default();
        let windows = Windows::of(window, checkpoint);
        let base = find_base(&*directory, checkpoint, &windows, &mut recovery)?;
        let mut near = Track { log: near, ring: base.near };
        let mut far = Track { log: far, ring: base.far };
        recovery.replayed = near.replay(base.near_length, &windows.near)?
            + far.replay(base.far_length, &windows.far)?;
        Ok(Self {
            directory,
            config,
            window,
            near,
            far,
            read_time: checkpoint.read_time,
            boundary: checkpoint.far_boundary,
            revision: checkpoint.revision,
            mark: checkpoint.mark,
            lineage: checkpoint.lineage,
            refiling: None,
            snapshot_due: SnapshotDue::No,
            recovery,
        })
    }
}

pub(super) const NEAR: &str = "near";
pub(super) const FAR: &str = "far";

pub(super) fn window(config: &Config) -> Window {
    Window {
        precision_ms: u64::from(config.precision_ms),
        near_slots: config.near_slots,
        far_slots: config.far_slots,
    }
}

pub(super) fn near_shape(config: &Config, lineage: u64) -> Shape {
    let slot_width_ms = u64::from(config.precision_ms);
    Shape { segment_size: config.segment_size, slot_width_ms, lineage }
}

pub(super) fn far_shape(config: &Config, lineage: u64) -> Shape {
    let slot_width_ms = u64::from(config.precision_ms) * window(config).far_width();
    Shape { segment_size: config.segment_size, slot_width_ms, lineage }
}

/// The slots that can be in use in each ring.
pub(super) struct Windows {
    slots: Window,
    near: Range<u64>,
    far: Range<u64>,
}

impl Windows {
    pub(super) fn of(slots: Window, checkpoint: &TimerCheckpoint) -> Self {
        let (read_time, far) = (checkpoint.read_time, slots.far_slot_of(checkpoint.far_boundary));
        Self {
            slots,
            near: read_time..read_time.saturating_add(slots.near_slots),
            far: far..far.saturating_add(slots.far_slots),
        }
    }
}

/// The rings as a snapshot has them, and how much of the logs is in them.
pub(super) struct Base {
    near: Ring,
    far: Ring,
    near_length: u64,
    far_length: u64,
}

impl Base {
    fn empty(slots: Window) -> Self {
        let (near, far) = (Ring::new(slots.near_slots), Ring::new(slots.far_slots));
        Self { near, far, near_length: 0, far_length: 0 }
    }
}

/// The newest usable snapshot, or empty rings. Snapshots from after the checkpoint are removed, and
/// durably: their revisions come again, with other slots.
fn find_base(
    directory: &dyn Directory,
    checkpoint: &TimerCheckpoint,
    windows: &Windows,
    recovery: &mut Recovery,
) -> Result<Base, DiskError> {
    let all = snapshot::list(directory)?;
    let (later, usable): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|revision| *revision > checkpoint.revision);
    for revision in &later {
        snapshot::remove(directory, *revision)?;
    }
    let mut found = None;
    for revision in usable {
        match load(directory, revision, checkpoint, windows) {
            Ok(base) => {
                recovery.snapshot = Some(revision);
                found = Some(base);
                break;
            }
            Err(kind) => {
                let path = format!("{}/{}", directory.path(), snapshot::name_of(revision));
                recovery.damaged.push(Damage::of(path, kind));
                snapshot::remove(directory, revision)?;
            }
        }
    }
    if !later.is_empty() || !recovery.damaged.is_empty() {
        directory.sync()?;
    }
    Ok(found.unwrap_or_else(|| Base::empty(windows.slots)))
}

/// The rings of snapshot `revision`, without the slots that were settled between it and the
/// checkpoint.
pub(super) fn load(
    directory: &dyn Directory,
    revision: u64,
    checkpoint: &TimerCheckpoint,
    windows: &Windows,
) -> Result<Base, DamageKind> {
    let mut base = Base::empty(windows.slots);
    let accept = |head: &Head| {
        let within =
            head.near_length <= checkpoint.near_length && head.far_length <= checkpoint.far_length;
        if within { Ok(()) } else { Err(DamageKind::BeyondCheckpoint) }
    };
    let head = snapshot::load(directory, revision, accept, |head, index, number, state| {
        let is_near = index < head.near_count;
        let (ring, window, end) = if is_near {
            (&mut base.near, &windows.near, head.near_length)
        } else {
            (&mut base.far, &windows.far, head.far_length)
        };
        if number < window.start {
            return Ok(());
        }
        if number >= window.end || !ring.has_place_for(number) {
            return Err(DamageKind::OutsideWindow { slot: number });
        }
        if state.last.get() >= end {
            return Err(DamageKind::PastEnd { end });
        }
        ring.set(number, state);
        Ok(())
    })?;
    base.near_length = head.near_length;
    base.far_length = head.far_length;
    Ok(base)
}
