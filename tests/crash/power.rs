//! Power cuts of a real file system.
//!
//! The file system in an image file is shut down under load, its journal not flushed: what was not synced is lost, as
//! when the power goes. Then it is mounted again, which recovers its journal, the server starts on what there is, and
//! the audit asks for all that was acknowledged.
//!
//! The server is halted before, and not in the midst of a call. An ext4 that is shut down while an fdatasync is under
//! way may have lost the very last one that was answered (Linux 6.18: 14 of 762 shutdowns under a loop of nothing but
//! pwrite and fdatasync into an allocated file, none of 494 when the loop had ended 20 ms before). So what the halted
//! server had begun is let come to its end first.
//!
//! ```text
//! HOROLOG_POWER_CUTS=100 cargo test --release --test crash power -- --nocapture
//! ```

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::check;
use crate::disks::{self, Disk, FileSystem, skipped};
use crate::run::{self, Far, Life, Run, SOON};

/// Cuts of each file system, unless it is said.
const CUTS: u64 = 3;
/// An XFS is no smaller.
const MEBIBYTES: u64 = 400;
/// What was under way when the server was halted has come to its end by then.
const COMES_TO_ITS_END: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_power_cut_of_an_ext4_everything_acknowledged_is_there() {
    cut_the_power(FileSystem::Ext4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_power_cut_of_an_xfs_everything_acknowledged_is_there() {
    cut_the_power(FileSystem::Xfs).await;
}

async fn cut_the_power(kind: FileSystem) {
    let disk = match Disk::in_a_file(kind, MEBIBYTES) {
        Ok(disk) => disk,
        Err(why) => return skipped(&why),
    };
    let cuts = run::number("HOROLOG_POWER_CUTS").unwrap_or(CUTS);
    let mut run = Run::new(200, &[]);
    run.scratch.put_data(disk.path().join("data"));
    for _ in 0..cuts {
        let Life { server, address } = run.start().await;
        let mut running = run.load.start(address);
        let moment = run.moment(SOON) + Duration::from_millis(100);
        run.keep_up(&mut running, moment).await;
        server.halt();
        tokio::time::sleep(COMES_TO_ITS_END).await;
        if let Err(why) = shut_down(disk.path()) {
            server.kill();
            run.load.stop(running).await;
            return skipped(&format!("{kind:?} cannot be shut down: {why}"));
        }
        server.kill();
        run.load.stop(running).await;
        disk.unmount().expect("nobody uses it any more");
        disk.mount().expect("its journal can be recovered");
    }
    let life = run.start().await;
    println!("{cuts} cuts of {kind:?}");
    check(&run.audit(&life, "auditor", Far::Cancel).await);
    life.server.kill();
}

/// The ioctl that XFS and ext4 have in common, without a flush of the journal.
fn shut_down(path: &Path) -> Result<(), String> {
    disks::run(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(path))
}
