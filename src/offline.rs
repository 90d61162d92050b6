//! What `horolog verify` and `horolog rebuild` say of a data directory that no server has open.

use std::io::{self, Write};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use timerlog::disk::Directory;

use crate::clock::Clock;
use crate::commitlog::FlushMode;
use crate::config::QueuedAppends;
use crate::index;
use crate::message::offset::Offset;
use crate::rebuild::{RebuildError, Rebuilt, rebuild};
use crate::store::{self, OpenError, Verified};
use crate::timer;

/// Of an older topic that does not say so itself; what is rebuilt goes by the server's setting once that runs.
const RETENTION_MS: u64 = 72 * 3_600_000;

/// What `verify` found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    whole: bool,
    log: LogReport,
    derived: Vec<DerivedReport>,
    /// Damaged stretches of the log.
    damage: Vec<Stretch>,
    /// Those of them that a record sets aside: the server serves all else.
    quarantined: Vec<Stretch>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogReport {
    files: u64,
    begin: u64,
    end: u64,
    records: u64,
    /// A checkpoint knows the log to be durable up to here, and it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    shorter_than: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DerivedReport {
    kind: &'static str,
    files: u64,
    bytes: u64,
    read: u64,
    damage: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Stretch {
    file: String,
    at: u64,
    length: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// How to show what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Table,
    Json,
}

/// Why a command did not come to an end.
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Rebuild(#[from] RebuildError),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

/// Reads the data directory and says what is damaged. `true` when nothing is.
///
/// # Errors
///
/// [`OfflineError`] when it cannot be read.
pub fn verify(
    directory: &Arc<dyn Directory>,
    holder: &str,
    shown: Shown,
    output: &mut dyn Write,
) -> Result<bool, OfflineError> {
    let bar = bar("reading the log");
    let follow = |at, upto| {
        bar.set_length(upto);
        bar.set_position(at);
    };
    let verified = store::verify(directory, holder, &follow, &timer::check_files)?;
    bar.finish_and_clear();
    let report = report(&verified);
    match shown {
        Shown::Json => {
            serde_json::to_writer(&mut *output, &report).map_err(io::Error::from)?;
            writeln!(output)?;
        }
        Shown::Table => write_table(&report, output)?,
    }
    Ok(report.whole)
}

/// Makes anew what is derived from the log, and says what that came to.
///
/// # Errors
///
/// [`OfflineError`].
pub fn rebuild_all(
    directory: &Arc<dyn Directory>,
    holder: String,
    clock: &Arc<dyn Clock>,
    output: &mut dyn Write,
) -> Result<(), OfflineError> {
    let bar = bar("reading the log");
    bar.set_length(log_length(directory)?);
    let reading = bar.clone();
    let settings = store::Settings {
        flush: FlushMode::Sync,
        segment_size: 0,
        index: index::Limits::default(),
        queued_appends: QueuedAppends::default(),
        retention_ms: RETENTION_MS,
        key: [0; 32],
        holder,
        derived: store::Derived::Anew,
        progress: store::Progress::told_to(move |offset| reading.set_position(offset.get())),
    };
    let began = clock.now().monotonic;
    let filing = |filed: u64, units: u64| {
        bar.set_message("filing timers");
        bar.set_length(units);
        bar.set_position(filed);
    };
    let rebuilt = rebuild(directory, settings, timer::Settings::default(), clock, &filing)?;
    bar.finish_and_clear();
    let took = clock.now().monotonic.saturating_sub(began);
    let Rebuilt { log_begin, log_end, pending, quarantined } = rebuilt;
    writeln!(
        output,
        "rebuilt from the log, offsets {} to {}, in {:.1} s: {pending} messages are pending, {quarantined} damaged \
         stretches of the log are set aside",
        log_begin.get(),
        log_end.get(),
        took.as_secs_f64(),
    )?;
    Ok(())
}

fn log_length(directory: &Arc<dyn Directory>) -> Result<u64, OpenError> {
    // Asking for a directory makes it.
    if !directory.subdirectories()?.iter().any(|name| name == "commitlog") {
        return Ok(0);
    }
    let log = directory.subdirectory("commitlog")?;
    let (mut upto, names) = (0, log.list()?);
    for name in names {
        if let Ok(begin) = name.parse::<u64>() {
            upto = upto.max(begin + log.open(&name)?.length());
        }
    }
    Ok(upto)
}

/// Hidden by itself where standard error is no terminal.
fn bar(what: &'static str) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg:16} {bar:40.cyan/dim} {percent:>3}% {elapsed:>4}")
            .expect("the template is a constant that is shown by every run");
    ProgressBar::new(0).with_style(style.progress_chars("━╸─")).with_message(what)
}

fn report(verified: &Verified) -> Report {
    let log = &verified.log;
    let stretch = |from: Offset, length: u64, reason: Option<String>| {
        let at = from.get() % log.segment_size;
        Stretch { file: format!("commitlog/{:020}", from.get() - at), at, length, reason }
    };
    let derived = verified.derived.iter().map(|kind| DerivedReport {
        kind: kind.name,
        files: kind.files,
        bytes: kind.bytes,
        read: kind.read,
        damage: kind.damage.clone(),
    });
    let quarantined = log.quarantined.iter();
    Report {
        whole: verified.is_whole(),
        log: LogReport {
            files: log.files,
            begin: log.begin.get(),
            end: log.end.get(),
            records: log.records,
            shorter_than: log.shorter_than.map(Offset::get),
        },
        derived: derived.collect(),
        damage: log.damage.iter().map(|it| stretch(it.from, it.length, None)).collect(),
        quarantined: quarantined
            .map(|it| stretch(it.from, it.length, Some(it.reason.to_string())))
            .collect(),
    }
}

fn write_table(report: &Report, output: &mut dyn Write) -> io::Result<()> {
    let LogReport { files, begin, end, records, shorter_than } = &report.log;
    writeln!(output, "log          offsets {begin} to {end}, {files} files, {records} records")?;
    if let Some(durable) = shorter_than {
        writeln!(output, "  MISSING   a checkpoint knows it to be durable up to {durable}")?;
    }
    for Stretch { file, at, length, .. } in &report.damage {
        writeln!(output, "  DAMAGED   {file} at {at}, {length} bytes")?;
    }
    for Stretch { file, at, length, reason } in &report.quarantined {
        let reason = reason.as_deref().unwrap_or_default();
        writeln!(output, "  SET ASIDE {file} at {at}, {length} bytes: {reason}")?;
    }
    for DerivedReport { kind, files, bytes, read, damage } in &report.derived {
        let read = match *kind {
            "checkpoint" => format!(", {read} whole"),
            "consumequeue" => format!(", {read} units whole"),
            "timerlog" => format!(", {read} records whole"),
            _ => format!(", {read} pages whole"),
        };
        writeln!(output, "{kind:12} {files} files, {bytes} bytes{read}")?;
        for sentence in damage {
            writeln!(output, "  DAMAGED   {sentence}")?;
        }
    }
    let of_log = !report.damage.is_empty() || report.log.shorter_than.is_some();
    let verdict = match (report.whole, of_log || !report.quarantined.is_empty()) {
        (true, _) => "whole",
        (false, true) => {
            "damaged: what stands in the damaged stretches is lost, all else is served"
        }
        (false, false) => {
            "derived files are damaged: the next start, or horolog rebuild, makes them anew"
        }
    };
    writeln!(output, "{verdict}")
}
