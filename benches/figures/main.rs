//! The figures that Horolog is measured by, taken on the machine this runs on.
//!
//! `cargo bench` takes them all, `cargo bench --bench figures -- put fire` those that are named.
//! Servers run as processes of their own, from the binary that is built along, with their default
//! settings unless it says so; the load comes from this process, on the same machine.

#![expect(clippy::disallowed_types, reason = "it runs on real threads alone")]

mod batch;
mod changes;
mod consume;
mod consumers;
mod disk;
mod empty;
mod ends;
mod fan;
mod fire;
mod machine;
mod memory;
mod overload;
mod pending;
mod process;
mod put;
mod rate;
mod rounds;
mod table;

use std::process::ExitCode;
use std::sync::Arc;

use horolog::clock::{Clock, SystemClock};
use tempfile::TempDir;

use table::Figure;

/// How long an overload lasts when no number says otherwise: `-- overload 10` takes ten seconds.
const OVERLOAD_SECONDS: u64 = 60;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const NAMES: [&str; 10] = [
    "put",
    "batch",
    "fire",
    "rate",
    "consumers",
    "changes",
    "ends",
    "memory",
    "pending",
    "overload",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(AnyError::from)
        .and_then(|runtime| runtime.block_on(run(&arguments)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            table::say(&format!("the figures could not be taken: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &[String]) -> Result<(), AnyError> {
    if arguments.iter().any(|argument| argument == empty::FLAG) {
        return empty::serve().await;
    }
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = arguments.iter().find_map(|argument| argument.parse().ok());
    let all = !NAMES.into_iter().any(named);
    table::print("machine", &machine::describe(env!("CARGO_TARGET_TMPDIR")));
    for name in NAMES.into_iter().filter(|name| all || named(name)) {
        let figures: Vec<Figure> = match name {
            "put" => put::take().await?,
            "batch" => batch::take().await?,
            "fire" => fire::take().await?,
            "consumers" => consumers::take().await?,
            "changes" => changes::take(number.unwrap_or(changes::PENDING)).await?,
            "ends" => ends::take().await?,
            "rate" => rate::take().await?,
            "memory" => memory::take().await?,
            "overload" => overload::take(number.unwrap_or(OVERLOAD_SECONDS)).await?,
            _ => pending::take().await?,
        };
        table::print(name, &figures);
    }
    Ok(())
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// A directory on the disk that builds go to, since the system's temporary one may be memory.
fn data_directory() -> Result<TempDir, AnyError> {
    Ok(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?)
}

/// Lets real time pass.
#[expect(clippy::disallowed_methods, reason = "a figure is taken in real time")]
async fn pause(milliseconds: u64) {
    tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
}
