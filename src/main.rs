//! The program: reads its command line, names the clock, the files and the randomness, and leaves
//! the rest to the library.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use horolog::app::{self, Ending, StartError, World};
use horolog::clock::SystemClock;
use horolog::config::{Config, Given, LogFormat};
use horolog::shutdown::Signals;
use timerlog::disk::OsDirectory;

/// A scheduling service: hand it a message and a moment, and at that moment, never before, the
/// message is readable on its topic.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server
    Serve(ServeArgs),
}

#[derive(Args)]
#[command(
    about = "Run the server",
    long_about = "Run the server.\n\n\
        Each setting can also stand in a TOML file (data_dir = \"/var/lib/horolog\") or in the \
        environment; a flag wins over a variable, a variable over the file.",
    after_help = "Exit codes: 0 stopped in order, 2 the settings cannot be used, 3 the data \
        directory cannot be used, 4 the address cannot be used, 5 the disk failed, 6 a second \
        signal ended the process before it had stopped in order."
)]
struct ServeArgs {
    /// A TOML file with settings
    #[arg(long, env = "HOROLOG_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    given: Given,
}

/// How the process ends, as its exit code; `--help` lists them.
#[derive(Clone, Copy)]
enum Exit {
    Fine = 0,
    Settings = 2,
    DataDirectory = 3,
    Address = 4,
    Disk = 5,
    Hurried = 6,
}

/// What to tell on standard error before ending.
struct Failure {
    exit: Exit,
    message: String,
}

fn main() -> ExitCode {
    let outcome = match CommandLine::parse().command {
        Command::Serve(args) => serve(args),
    };
    let exit = outcome.unwrap_or_else(|Failure { exit, message }| {
        say(&mut io::stderr(), &format!("horolog: {message}"));
        exit
    });
    ExitCode::from(exit as u8)
}

fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let config = settings(args)?;
    start_logging(&config);
    let runtime = runtime(config.http_threads)?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| Failure {
            exit: Exit::Settings,
            message: format!("cannot listen for signals: {error}"),
        })?;
        let world = world(&config.data_dir)?;
        let announce = |address| announce(address, &config.data_dir);
        app::serve(&config, world, &mut signals, announce).await.map_err(|error| Failure {
            exit: match error {
                StartError::Listen { .. } => Exit::Address,
                StartError::Open(_) => Exit::DataDirectory,
            },
            message: error.to_string(),
        })
    });
    // What still runs then was left behind on purpose.
    runtime.shutdown_background();
    Ok(match outcome? {
        Ending::Stopped(_) => Exit::Fine,
        Ending::Hurried(_) => Exit::Hurried,
        Ending::StoreFailed { .. } => Exit::Disk,
    })
}

fn settings(args: ServeArgs) -> Result<Config, Failure> {
    let refused = |message| Failure { exit: Exit::Settings, message };
    let file = match &args.config {
        Some(path) => read_settings(path).map_err(refused)?,
        None => Given::default(),
    };
    Config::new(&args.given.or(file)).map_err(|error| refused(error.to_string()))
}

#[expect(clippy::disallowed_methods, reason = "settings are read before there is a directory")]
fn read_settings(path: &Path) -> Result<Given, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    Given::from_toml(&text).map_err(|error| named(&error))
}

fn world(data_dir: &Path) -> Result<World, Failure> {
    let refused = |message| Failure { exit: Exit::DataDirectory, message };
    let directory = OsDirectory::open(data_dir).map_err(|error| refused(error.to_string()))?;
    Ok(World {
        directory: Arc::new(directory),
        clock: Arc::new(SystemClock::new()),
        random: random()?,
    })
}

#[expect(clippy::disallowed_methods, reason = "the one place that asks for randomness")]
fn random() -> Result<[u8; 32], Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Failure {
        exit: Exit::Settings,
        message: format!("the operating system has no randomness: {error}"),
    })?;
    Ok(bytes)
}

fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("horolog-http")
        .enable_all()
        .build()
        .map_err(|error| Failure {
            exit: Exit::Settings,
            message: format!("cannot start {threads} HTTP threads: {error}"),
        })
}

/// Logs go to standard error, so that standard output has only what the program is asked for.
fn start_logging(config: &Config) {
    let logging = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_max_level(config.log_level)
        .with_target(false);
    match config.log_format {
        LogFormat::Text => logging.init(),
        LogFormat::Json => logging.json().flatten_event(true).init(),
    }
}

fn announce(address: SocketAddr, data_dir: &Path) {
    let version = env!("CARGO_PKG_VERSION");
    let data_dir = data_dir.display();
    say(
        &mut io::stdout(),
        &format!("horolog {version} listens on http://{address}, data in {data_dir}"),
    );
}

/// Writes a line. A reader that went away is no reason to end.
fn say(output: &mut impl Write, line: &str) {
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
