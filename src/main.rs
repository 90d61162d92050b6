//! The program: reads its command line, names the clock, the files and the randomness, and leaves
//! the rest to the library.

mod command_line;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use horolog::app::{self, Ending, StartError, World};
use horolog::cli::{self, Io};
use horolog::clock::{Clock, SystemClock};
use horolog::config::{Config, Given, LogFormat};
use horolog::demo::{self, Verdict};
use horolog::load::{self, Load, Until};
use horolog::offline::{self, OfflineError, Shown};
use horolog::shutdown::Signals;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use timerlog::disk::{Directory, OsDirectory};

use command_line::{BenchArgs, Command, CommandLine, DemoArgs, RebuildArgs, ServeArgs, VerifyArgs};

/// Files for what the store has open, and for connections that are being refused: so many, or a quarter of
/// all where few are allowed.
const FILES_OF_OUR_OWN: u64 = 1000;

/// How the process ends, as its exit code; `--help` lists them.
#[derive(Clone, Copy)]
enum Exit {
    Fine = 0,
    Broken = 1,
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
        Command::Serve(args) => serve(*args),
        Command::Demo(args) => demo(&args),
        Command::Bench(args) => bench(&args),
        Command::Verify(args) => verify(&args),
        Command::Rebuild(args) => rebuild(&args),
        Command::Client(command) => client(&command),
    };
    let exit = outcome.unwrap_or_else(|Failure { exit, message }| {
        say(&mut io::stderr(), &format!("horolog: {message}"));
        exit
    });
    ExitCode::from(exit as u8)
}

fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let mut config = settings(args)?;
    start_logging(config.log_format, config.log_level);
    if let Some(files) = raise_file_limit() {
        config.max_connections = within_files(config.max_connections, files);
    }
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

fn demo(args: &DemoArgs) -> Result<Exit, Failure> {
    let failed = |message| Failure { exit: Exit::Broken, message };
    start_logging(LogFormat::Text, tracing::Level::WARN);
    let runtime = runtime(2)?;
    let random = random()?;
    let outcome = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| failed(error.to_string()))?;
        let clock = Arc::new(SystemClock::new());
        demo::run(args.orders, clock, random, signals.next(), &mut io::stdout())
            .await
            .map_err(|error| failed(error.to_string()))
    });
    runtime.shutdown_background();
    Ok(match outcome? {
        Verdict::Kept => Exit::Fine,
        Verdict::Broken => Exit::Broken,
    })
}

fn bench(args: &BenchArgs) -> Result<Exit, Failure> {
    let body = Bytes::from(vec![b'x'; args.size]);
    let load = Load {
        address: args.address,
        connections: args.connections,
        until: Until::Elapsed(Duration::from_secs(args.seconds)),
        make: Arc::new(move |_| load::raw_put("horolog-bench", body.clone())),
    };
    let runtime = runtime(2)?;
    let outcome = runtime.block_on(load::run(&load, Arc::new(SystemClock::new())));
    let outcome =
        outcome.map_err(|error| Failure { exit: Exit::Address, message: error.to_string() })?;
    let at = |quantile| outcome.latency_us.value_at_quantile(quantile);
    say(
        &mut io::stdout(),
        &format!(
            "{:.0} messages a second, {} refused; answered within p50 {} us, p99 {} us, max {} us",
            outcome.rate(),
            outcome.refused,
            at(0.5),
            at(0.99),
            outcome.latency_us.max(),
        ),
    );
    Ok(Exit::Fine)
}

fn verify(args: &VerifyArgs) -> Result<Exit, Failure> {
    let directory = data_directory(&args.directory)?;
    let shown = match args.output {
        cli::Output::Table => Shown::Table,
        cli::Output::Json => Shown::Json,
    };
    match offline::verify(&directory, &holder(), shown, &mut io::stdout()) {
        Ok(true) => Ok(Exit::Fine),
        Ok(false) => Ok(Exit::Broken),
        Err(error) => Err(unusable(&error)),
    }
}

fn rebuild(args: &RebuildArgs) -> Result<Exit, Failure> {
    start_logging(LogFormat::Text, tracing::Level::WARN);
    let directory = data_directory(&args.directory)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let rebuilt = offline::rebuild_all(&directory, holder(), &clock, &mut io::stdout());
    rebuilt.map(|()| Exit::Fine).map_err(|error| unusable(&error))
}

fn holder() -> String {
    format!("process {}", std::process::id())
}

fn unusable(error: &OfflineError) -> Failure {
    Failure { exit: Exit::DataDirectory, message: error.to_string() }
}

/// One that is there: none is made.
fn data_directory(path: &Path) -> Result<Arc<dyn Directory>, Failure> {
    let refused = |message| Failure { exit: Exit::DataDirectory, message };
    if !path.is_dir() {
        return Err(refused(format!("there is no directory {}", path.display())));
    }
    let directory = OsDirectory::open(path).map_err(|error| refused(error.to_string()))?;
    Ok(Arc::new(directory))
}

fn client(command: &cli::Command) -> Result<Exit, Failure> {
    let runtime = runtime(1)?;
    let clock = SystemClock::new();
    let mut io = Io {
        input: &mut io::stdin().lock(),
        output: &mut io::stdout().lock(),
        notes: &mut io::stderr(),
        now: &|| clock.now().wall,
    };
    let outcome = runtime.block_on(cli::run(command, &mut io));
    // A long poll that nobody waits for any more is no reason to stay.
    runtime.shutdown_background();
    outcome.map_err(|error| Failure { exit: Exit::Broken, message: error.to_string() })?;
    Ok(Exit::Fine)
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

/// A connection is an open file, and shells commonly allow 1,024 of them where the system would
/// allow more. The number that is allowed then, if there is one.
fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
        return limit.current;
    }
    raised.current
}

/// As many connections as there are files for them. One more would not be refused but left to wait, since
/// the system gives no file to refuse it on.
fn within_files(connections: usize, files: u64) -> usize {
    let left = files - FILES_OF_OUR_OWN.min(files / 4);
    let left = usize::try_from(left).unwrap_or(usize::MAX).max(1);
    if connections > left {
        tracing::warn!(
            max_connections = connections,
            files,
            "only {left} connections are taken: the system allows no more open files"
        );
    }
    connections.min(left)
}

/// Logs go to standard error, so that standard output has only what the program is asked for.
fn start_logging(format: LogFormat, level: tracing::Level) {
    let logging = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_max_level(level)
        .with_target(false);
    match format {
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
