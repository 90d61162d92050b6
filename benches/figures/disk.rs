//! How long the disk takes to make 8 KiB durable, with nothing else going on.

use std::path::Path;

use hdrhistogram::Histogram;
use horolog::clock::Clock;
use timerlog::disk::{Directory, OsDirectory};

use crate::AnyError;

const BLOCK: usize = 8 * 1024;
const BLOCKS: u64 = 200;

/// The median in microseconds of as many writes into a preallocated file, each with `fdatasync`.
pub(crate) fn sync_us(directory: &Path, clock: &dyn Clock) -> Result<u64, AnyError> {
    let directory = OsDirectory::open(directory)?;
    let file = directory.create("probe", BLOCKS * BLOCK as u64)?;
    let block = [0xa5; BLOCK];
    let mut times = Histogram::<u64>::new(3)?;
    for number in 0..BLOCKS {
        let start = clock.now().monotonic;
        file.write_at(number * BLOCK as u64, &block)?;
        file.sync()?;
        let took = clock.now().monotonic.saturating_sub(start);
        times.record(u64::try_from(took.as_micros())?)?;
    }
    directory.remove("probe")?;
    Ok(times.value_at_quantile(0.5))
}
