//! Data directories that cannot be used, and such that go away under a running server.
//!
//! Whoever mistypes a path, mounts read-only or runs as the wrong user is told which file, and why, by an exit code of
//! its own; and finds everything as it was.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use horolog::client::Client;

use crate::disks::{self, Disk, skipped};
use crate::ledger::{Asked, Outcome};
use crate::load::TOPICS;
use crate::run::{Far, Life, Run};
use crate::scratch::{Scratch, tree};
use crate::{DATA_DIRECTORY, check, refusal};

/// The exit code of a disk that failed.
const DISK: Option<i32> = Some(5);
/// A user that owns nothing.
const NOBODY: u32 = 65534;

/// Starts on `data`, which must be refused with these words and the path, and be as it was.
async fn refused(case: &str, above: &Path, data: PathBuf, words: &[&str]) {
    let mut scratch = Scratch::new(0);
    scratch.put_data(data.clone());
    let before = tree(above);
    let (status, said) = refusal(&scratch).await;
    assert_eq!(status.code(), DATA_DIRECTORY, "{case}: {said}");
    for word in words.iter().chain(&[&*data.display().to_string()]) {
        assert!(said.contains(word), "{case}: {said:?} does not say {word:?}");
    }
    assert!(!said.contains("panicked"), "{case}: {said}");
    assert_eq!(tree(above), before, "{case}: something was made or changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_cannot_be_a_data_directory_is_refused_and_nothing_is_made() {
    let above = tempfile::tempdir().expect("a test needs a directory");
    let above = above.path();
    refused("no parent", above, above.join("missing/data"), &["No such file"]).await;
    std::fs::write(above.join("file"), "mine").unwrap();
    refused("a file", above, above.join("file"), &["File exists"]).await;
    refused("below a file", above, above.join("file/data"), &["Not a directory"]).await;
    std::fs::create_dir(above.join("theirs")).unwrap();
    std::fs::write(above.join("theirs/thesis.doc"), "chapter one").unwrap();
    refused("a stranger's", above, above.join("theirs"), &["thesis.doc"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_disk_is_refused_whether_it_was_used_before_or_not() {
    let disk = match Disk::in_memory("120m") {
        Ok(disk) => disk,
        Err(why) => return skipped(&why),
    };
    let mut run = Run::new(200, &[]);
    run.scratch.put_data(disk.path().join("used"));
    let Life { server, .. } = run.start().await;
    server.kill();
    disk.remount("ro").expect("nobody writes there");
    let words = ["Read-only file system"];
    refused("used before", disk.path(), disk.path().join("used"), &words).await;
    refused("new", disk.path(), disk.path().join("new"), &words).await;
    disk.remount("rw").expect("it was writable before");
    let Life { server, .. } = run.start().await;
    server.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_for_a_first_start_is_refused_and_one_with_room_goes_on_from_there() {
    let disk = match Disk::in_memory("512k") {
        Ok(disk) => disk,
        Err(why) => return skipped(&why),
    };
    let mut run = Run::new(200, &[]);
    run.scratch.put_data(disk.path().join("data"));
    let (status, said) = refusal(&run.scratch).await;
    assert_eq!(status.code(), DATA_DIRECTORY, "{said}");
    assert!(said.contains("No space left") && said.contains("commitlog"), "{said}");
    disk.remount("size=200m").expect("a tmpfs can grow");
    let life = run.start().await;
    let mut client = Client::new(life.address);
    let put = run.load.put(&mut client, TOPICS[0], Asked::Now).await;
    assert!(matches!(put, Outcome::Ok(_)), "{put:?}");
    check(&run.audit(&life, "auditor", Far::Leave).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_users_data_directory_is_refused() {
    let mut run = Run::new(200, &[]);
    let Life { server, .. } = run.start().await;
    server.kill();
    // Whoever may look at the path may not look into it.
    let above = run.scratch.data().parent().expect("it is below the scratch").to_owned();
    std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut as_nobody = Command::new(env!("CARGO_BIN_EXE_horolog"));
    as_nobody.uid(NOBODY).gid(NOBODY).current_dir("/");
    if let Err(why) = disks::run(as_nobody.arg("--version")) {
        return skipped(&why);
    }
    let before = tree(&run.scratch.data());
    let output = as_nobody_serves(&run.scratch.data());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), DATA_DIRECTORY, "{said}");
    let data = run.scratch.data().display().to_string();
    assert!(said.contains("Permission denied") && said.contains(&data), "{said}");
    assert!(tree(&run.scratch.data()) == before, "something was changed");
}

fn as_nobody_serves(data: &Path) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horolog"));
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env_clear();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data);
    command.output().expect("it has been run just now")
}

/// What becomes of the data directory under a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenAway {
    Renamed,
    Replaced,
    Removed,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_that_is_taken_away_ends_the_server_with_a_word() {
    for how in [TakenAway::Renamed, TakenAway::Replaced, TakenAway::Removed] {
        let mut run = Run::new(200, &[]);
        let mut life = run.start().await;
        let mut client = Client::new(life.address);
        let put = run.load.put(&mut client, TOPICS[0], Asked::Now).await;
        assert!(matches!(put, Outcome::Ok(_)), "{put:?}");
        let (data, aside) = (run.scratch.data(), run.scratch.data().with_extension("aside"));
        std::fs::rename(&data, &aside).expect("the server holds no name");
        match how {
            TakenAway::Renamed => {}
            TakenAway::Replaced => std::fs::create_dir(&data).expect("the name is free"),
            TakenAway::Removed => {
                std::fs::remove_dir_all(&aside).expect("nobody makes files there");
            }
        }
        let status = tokio::time::timeout(Duration::from_secs(60), life.server.ended()).await;
        let status = status.unwrap_or_else(|_| panic!("{how:?}: the server goes on"));
        let said = run.scratch.logged();
        assert_eq!(status.code(), DISK, "{how:?}: {said}");
        // Whoever wants to make a file there may be faster than the one who looks after the directory.
        let words = ["was taken away while the server was running", "No such file or directory"];
        assert!(words.iter().any(|word| said.contains(word)), "{how:?}: {said}");
        assert!(said.contains(&data.display().to_string()), "{how:?}: {said}");
        if how == TakenAway::Replaced {
            assert_eq!(tree(&data).len(), 0, "something was made in a directory that is not ours");
            std::fs::remove_dir(&data).expect("it is empty");
        }
        if how != TakenAway::Removed {
            std::fs::rename(&aside, &data).expect("the server is gone");
            let life = run.start().await;
            check(&run.audit(&life, "auditor", Far::Leave).await);
        }
    }
}
