//! What the server tells about itself: counters that cost one addition, read at `GET /metrics`.
//!
//! The handles are made once, at start, and belong to this value and not to the process, so that two
//! servers in one process (as in the tests) do not count into each other. Names, help and buckets
//! stand in [`table`].

mod bound;
mod http;
mod table;

use std::fmt;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

pub use bound::Bound;
use bound::Refused;
use http::HttpRequests;
pub use http::Route;
use table::{FIGURES, Kind};

static METADATA: Metadata<'static> = Metadata::new("horolog", Level::INFO, Some(module_path!()));

/// Which way the wall clock jumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    Forward,
    Backward,
}

/// A kind of file whose growth is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFile {
    CommitLog,
    ConsumeQueue,
    TimerLog,
    /// Settled pages, wheel snapshots, checkpoints.
    Snapshot,
}

/// Something that is held as long as somebody needs it, and has a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Connections,
    RequestBytes,
    AnswerBytes,
    Leases,
    QueuedAppends,
    QueuedAppendBytes,
}

/// The figures of one server.
pub struct Metrics {
    recorder: PrometheusRecorder,
    accepted: Counter,
    fired: Counter,
    cancelled: Counter,
    pending: Gauge,
    lateness: Histogram,
    early: Counter,
    fsync: Histogram,
    group_records: Histogram,
    steps_forward: Counter,
    steps_backward: Counter,
    commitlog_bytes: Counter,
    consumequeue_bytes: Counter,
    timerlog_bytes: Counter,
    snapshot_bytes: Counter,
    waiting: Gauge,
    at_bound_out: Gauge,
    at_bound_parked: Gauge,
    held: [(Held, Gauge); 6],
    refused: Refused,
    carried: Counter,
    expired_unread: Counter,
    quarantined: Counter,
    disk_free: Gauge,
    disk_pressure: Gauge,
    http: HttpRequests,
}

impl Metrics {
    /// Figures that all stand at zero.
    pub fn new() -> Self {
        let recorder = describe(recorder_with_buckets());
        let counter = |name| recorder.register_counter(&Key::from_static_name(name), &METADATA);
        let histogram = |name| recorder.register_histogram(&Key::from_static_name(name), &METADATA);
        let labelled = |name, label, value| {
            let labels = vec![Label::from_static_parts(label, value)];
            recorder.register_counter(&Key::from_parts(name, labels), &METADATA)
        };
        let gauge = |name| recorder.register_gauge(&Key::from_static_name(name), &METADATA);
        let at_bound = |bound| {
            let labels = vec![Label::from_static_parts("bound", bound)];
            recorder.register_gauge(&Key::from_parts(table::QUEUES_AT_BOUND, labels), &METADATA)
        };
        Self {
            accepted: counter(table::ACCEPTED),
            fired: counter(table::FIRED),
            cancelled: counter(table::CANCELLED),
            pending: gauge(table::PENDING),
            lateness: histogram(table::LATENESS),
            early: counter(table::EARLY),
            fsync: histogram(table::FSYNC),
            group_records: histogram(table::GROUP_RECORDS),
            steps_forward: labelled(table::CLOCK_STEPS, "direction", "forward"),
            steps_backward: labelled(table::CLOCK_STEPS, "direction", "backward"),
            commitlog_bytes: labelled(table::LOG_BYTES, "file", "commitlog"),
            consumequeue_bytes: labelled(table::LOG_BYTES, "file", "consumequeue"),
            timerlog_bytes: labelled(table::LOG_BYTES, "file", "timerlog"),
            snapshot_bytes: labelled(table::LOG_BYTES, "file", "snapshot"),
            waiting: gauge(table::WAITING),
            at_bound_out: at_bound("out"),
            at_bound_parked: at_bound("parked"),
            held: [
                (Held::Connections, gauge(table::CONNECTIONS)),
                (Held::RequestBytes, gauge(table::REQUEST_BYTES)),
                (Held::AnswerBytes, gauge(table::ANSWER_BYTES)),
                (Held::Leases, gauge(table::LEASES)),
                (Held::QueuedAppends, gauge(table::QUEUED_APPENDS)),
                (Held::QueuedAppendBytes, gauge(table::QUEUED_APPEND_BYTES)),
            ],
            refused: Refused::new(|value| labelled(table::REFUSED, "limit", value)),
            carried: counter(table::CARRIED),
            expired_unread: counter(table::EXPIRED_UNREAD),
            quarantined: counter(table::QUARANTINED),
            disk_free: gauge(table::DISK_FREE),
            disk_pressure: gauge(table::DISK_PRESSURE),
            http: HttpRequests::new(),
            recorder,
        }
    }

    /// So many messages are stored, and their producers may be told.
    pub fn accepted(&self, count: u64) {
        self.accepted.increment(count);
    }

    /// So many messages were appended again, so that old files can go.
    pub fn carried(&self, count: u64) {
        self.carried.increment(count);
    }

    /// So many messages had not been acknowledged when their retention was over.
    pub fn expired_unread(&self, count: u64) {
        self.expired_unread.increment(count);
    }

    /// So many stretches of the log have been set aside in all.
    pub fn quarantined_in_all(&self, count: u64) {
        self.quarantined.absolute(count);
    }

    /// Timed messages became readable, so long after their moment.
    pub fn fired(&self, count: u64, lateness_ms: u64) {
        self.fired.increment(count);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.lateness.record_many(Duration::from_millis(lateness_ms), count);
    }

    /// Messages became readable before their moment, which must not happen.
    pub fn early(&self, count: u64) {
        self.early.increment(count);
    }

    pub fn cancelled(&self, count: u64) {
        self.cancelled.increment(count);
    }

    pub fn set_pending(&self, count: u64) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 pending messages")]
        self.pending.set(count as f64);
    }

    /// So many queues are read no further by a group, since as many of their messages as may be are out, or
    /// parked behind others of their message groups.
    pub fn set_queues_at_bound(&self, out: u32, parked: u32) {
        self.at_bound_out.set(f64::from(out));
        self.at_bound_parked.set(f64::from(parked));
    }

    /// A receive begins to wait.
    pub fn waits(&self) {
        self.waiting.increment(1);
    }

    /// A receive has stopped waiting.
    pub fn waits_no_more(&self) {
        self.waiting.decrement(1);
    }

    /// A client was refused something, or given up, for this bound.
    pub fn refused(&self, bound: Bound) {
        self.refused.count(bound);
    }

    /// So much is held right now.
    pub fn set_held(&self, what: Held, count: usize) {
        for (_, gauge) in self.held.iter().filter(|(held, _)| *held == what) {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 of anything")]
            gauge.set(count as f64);
        }
    }

    /// So many bytes are free on the disk; 0, 1 or 2 watermarks are passed.
    pub fn set_disk(&self, free: u64, marks_passed: u8) {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 bytes")]
        self.disk_free.set(free as f64);
        self.disk_pressure.set(f64::from(marks_passed));
    }

    /// The disk made one group durable in this time.
    pub fn fsync(&self, duration: Duration) {
        self.fsync.record(duration);
    }

    /// So many records were written by one flush.
    pub fn group(&self, records: u32) {
        self.group_records.record(records);
    }

    pub fn clock_step(&self, step: ClockStep) {
        match step {
            ClockStep::Forward => self.steps_forward.increment(1),
            ClockStep::Backward => self.steps_backward.increment(1),
        }
    }

    /// Bytes went to a file, as many as were handed to the operating system.
    pub fn written(&self, file: LogFile, bytes: u64) {
        self.bytes(file).increment(bytes);
    }

    /// So many bytes went to a file since the start, by its own count.
    pub fn written_in_all(&self, file: LogFile, bytes: u64) {
        self.bytes(file).absolute(bytes);
    }

    fn bytes(&self, file: LogFile) -> &Counter {
        match file {
            LogFile::CommitLog => &self.commitlog_bytes,
            LogFile::ConsumeQueue => &self.consumequeue_bytes,
            LogFile::TimerLog => &self.timerlog_bytes,
            LogFile::Snapshot => &self.snapshot_bytes,
        }
    }

    /// A request was answered.
    pub fn http_request(&self, route: Route, code: u16) {
        self.http.count(route, code, |labels| {
            let key = Key::from_parts(table::HTTP_REQUESTS, labels);
            self.recorder.register_counter(&key, &METADATA)
        });
    }

    /// The figures as Prometheus text.
    pub fn render(&self) -> String {
        self.recorder.handle().render()
    }

    /// Sorts what the histograms took in since the last call into their buckets, so that a server
    /// nobody asks for its figures does not hoard samples. Call it every few seconds.
    pub fn tidy(&self) {
        self.recorder.handle().run_upkeep();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Metrics").finish_non_exhaustive()
    }
}

fn recorder_with_buckets() -> PrometheusRecorder {
    let mut builder = PrometheusBuilder::new();
    for figure in &FIGURES {
        if let Kind::Histogram(buckets) = figure.kind {
            builder = builder
                .set_buckets_for_metric(Matcher::Full(figure.name.to_owned()), buckets)
                .expect("the table gives every histogram at least one bucket");
        }
    }
    builder.build_recorder()
}

fn describe(recorder: PrometheusRecorder) -> PrometheusRecorder {
    for figure in &FIGURES {
        let (name, unit, help) = (figure.name.into(), Some(figure.unit), figure.help.into());
        match figure.kind {
            Kind::Counter => recorder.describe_counter(name, unit, help),
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
        }
    }
    recorder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_but_the_requests_is_listed_before_anything_happened() {
        let text = Metrics::new().render();
        for figure in FIGURES.iter().filter(|figure| figure.name != table::HTTP_REQUESTS) {
            assert!(text.contains(&format!("# HELP {} {}", figure.name, figure.help)), "{text}");
        }
        assert!(text.contains("\nhorolog_delivery_early_total 0\n"), "{text}");
    }

    #[test]
    fn what_is_counted_is_what_is_listed() {
        let metrics = Metrics::new();
        metrics.accepted(3);
        metrics.fired(1, 4);
        metrics.set_pending(2);
        metrics.set_queues_at_bound(3, 1);
        metrics.group(5);
        metrics.clock_step(ClockStep::Backward);
        metrics.written(LogFile::TimerLog, 96);
        metrics.http_request(Route::PutMessage, 201);
        metrics.http_request(Route::PutMessage, 418);
        metrics.refused(Bound::Leases);
        metrics.set_held(Held::AnswerBytes, 17);
        metrics.set_disk(4096, 1);
        metrics.tidy();
        let text = metrics.render();
        for line in [
            "horolog_messages_accepted_total 3",
            "horolog_messages_fired_total 1",
            "horolog_messages_pending 2",
            "horolog_queues_at_bound{bound=\"out\"} 3",
            "horolog_queues_at_bound{bound=\"parked\"} 1",
            "horolog_delivery_lateness_seconds_bucket{le=\"0.002\"} 0",
            "horolog_delivery_lateness_seconds_bucket{le=\"0.005\"} 1",
            "horolog_group_records_bucket{le=\"8\"} 1",
            "horolog_clock_steps_total{direction=\"backward\"} 1",
            "horolog_log_bytes_written_total{file=\"timerlog\"} 96",
            "horolog_refused_total{limit=\"leases\"} 1",
            "horolog_refused_total{limit=\"connections\"} 0",
            "horolog_answer_bytes 17",
            "horolog_disk_free_bytes 4096",
            "horolog_disk_pressure 1",
            "horolog_http_requests_total{route=\"put_message\",code=\"201\"} 1",
            "horolog_http_requests_total{route=\"put_message\",code=\"other\"} 1",
        ] {
            assert!(text.lines().any(|listed| listed == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn two_servers_in_one_process_count_apart() {
        let (one, other) = (Metrics::new(), Metrics::new());
        one.accepted(7);
        assert!(other.render().contains("\nhorolog_messages_accepted_total 0\n"));
    }
}
