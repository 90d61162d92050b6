//! Reading a wheel's files through without opening it: nothing is cut, removed or made.

use std::sync::Arc;

use super::checkpoint::TimerCheckpoint;
use super::config::Config;
use super::recovery::{FAR, NEAR, Windows, far_shape, load, near_shape, window};
use super::snapshot;
use crate::disk::{Directory, DiskError};
use crate::error::{Damage, DamageKind, TimerError};
use crate::log::{Extent, Shape, TimerLog};

/// What was found in the files of a wheel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Records of both logs and snapshots that were read and are whole.
    pub read: u64,
    /// What is not, as far as `checkpoint` speaks of it: of each log the first place.
    pub damage: Vec<Damage>,
}

/// Reads the wheel in `directory` as far as `checkpoint` speaks of it: every record of both logs, and the snapshots
/// that an opening may begin with.
///
/// # Errors
///
/// The disk's.
///
/// # Panics
///
/// When the measures of `config` are not as it says they must be.
pub fn check(
    directory: &Arc<dyn Directory>,
    config: &Config,
    checkpoint: &TimerCheckpoint,
) -> Result<Checked, DiskError> {
    config.assert_valid();
    let mut checked = Checked::default();
    if !checkpoint.is_of(config) {
        checked.damage.push(Damage::of(directory.path(), DamageKind::OtherMeasures));
        return Ok(checked);
    }
    let lineage = checkpoint.lineage;
    let near = Extent { floor: checkpoint.near_floor, length: checkpoint.near_length };
    let far = Extent { floor: checkpoint.far_floor, length: checkpoint.far_length };
    checked.log(directory, NEAR, near_shape(config, lineage), near)?;
    checked.log(directory, FAR, far_shape(config, lineage), far)?;
    let windows = Windows::of(window(config), checkpoint);
    for revision in snapshot::list(&**directory)? {
        // One that is newer was not yet vouched for, and goes at the next opening.
        if revision > checkpoint.revision {
            continue;
        }
        match load(&**directory, revision, checkpoint, &windows) {
            Ok(_) => checked.read += 1,
            Err(kind) => {
                let path = format!("{}/{}", directory.path(), snapshot::name_of(revision));
                checked.damage.push(Damage::of(path, kind));
            }
        }
    }
    Ok(checked)
}

impl Checked {
    fn log(
        &mut self,
        directory: &Arc<dyn Directory>,
        name: &str,
        shape: Shape,
        extent: Extent,
    ) -> Result<(), DiskError> {
        // Asking for a directory makes it.
        if !directory.subdirectories()?.iter().any(|there| there == name) {
            let path = format!("{}/{name}", directory.path());
            self.damage.push(Damage::of(path, DamageKind::Missing));
            return Ok(());
        }
        let log = TimerLog::open(directory.subdirectory(name)?, shape, extent);
        let read = log.and_then(|log| {
            log.replay(log.floor(), |_, _| {
                self.read += 1;
                Ok(())
            })
        });
        match read {
            Ok(()) => Ok(()),
            Err(TimerError::NeedsRebuild(damage)) => {
                self.damage.push(damage);
                Ok(())
            }
            Err(TimerError::Disk(error)) => Err(error),
        }
    }
}
