//! Every figure the server gives: its name, what it says, its unit and its buckets.
//!
//! Dashboards and alert rules are written against these names, so they change only with an entry in
//! the changelog.

use metrics::Unit;

pub(super) const ACCEPTED: &str = "horolog_messages_accepted_total";
pub(super) const FIRED: &str = "horolog_messages_fired_total";
pub(super) const CANCELLED: &str = "horolog_messages_cancelled_total";
pub(super) const PENDING: &str = "horolog_messages_pending";
pub(super) const LATENESS: &str = "horolog_delivery_lateness_seconds";
pub(super) const EARLY: &str = "horolog_delivery_early_total";
pub(super) const FSYNC: &str = "horolog_fsync_duration_seconds";
pub(super) const GROUP_RECORDS: &str = "horolog_group_records";
pub(super) const CLOCK_STEPS: &str = "horolog_clock_steps_total";
pub(super) const LOG_BYTES: &str = "horolog_log_bytes_written_total";
pub(super) const WAITING: &str = "horolog_receives_waiting";
pub(super) const QUEUES_AT_BOUND: &str = "horolog_queues_at_bound";
pub(super) const CONNECTIONS: &str = "horolog_connections";
pub(super) const REQUEST_BYTES: &str = "horolog_request_bytes";
pub(super) const ANSWER_BYTES: &str = "horolog_answer_bytes";
pub(super) const LEASES: &str = "horolog_leases";
pub(super) const QUEUED_APPENDS: &str = "horolog_queued_appends";
pub(super) const QUEUED_APPEND_BYTES: &str = "horolog_queued_append_bytes";
pub(super) const REFUSED: &str = "horolog_refused_total";
pub(super) const CARRIED: &str = "horolog_retention_carried_total";
pub(super) const EXPIRED_UNREAD: &str = "horolog_expired_unread_total";
pub(super) const QUARANTINED: &str = "horolog_quarantined_total";
pub(super) const DISK_FREE: &str = "horolog_disk_free_bytes";
pub(super) const DISK_PRESSURE: &str = "horolog_disk_pressure";
pub(super) const HTTP_REQUESTS: &str = "horolog_http_requests_total";

pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) help: &'static str,
}

pub(super) enum Kind {
    Counter,
    Gauge,
    /// The upper bounds of its buckets.
    Histogram(&'static [f64]),
}

pub(super) const FIGURES: [Figure; 25] = [
    Figure {
        name: ACCEPTED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Messages whose producer was told that they are stored.",
    },
    Figure {
        name: FIRED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Timed messages that became readable on their topic.",
    },
    Figure {
        name: CANCELLED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Timed messages that were cancelled before their moment.",
    },
    Figure {
        name: PENDING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Timed messages that wait for their moment.",
    },
    Figure {
        name: LATENESS,
        kind: Kind::Histogram(&[
            0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0,
        ]),
        unit: Unit::Seconds,
        help: "How long after the moment asked for a message became readable.",
    },
    Figure {
        name: EARLY,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Messages that became readable before their moment. Anything but 0 is a fault.",
    },
    Figure {
        name: FSYNC,
        kind: Kind::Histogram(&[
            0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
        ]),
        unit: Unit::Seconds,
        help: "How long the disk took to make one group of records durable.",
    },
    Figure {
        name: GROUP_RECORDS,
        kind: Kind::Histogram(&[
            1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0,
        ]),
        unit: Unit::Count,
        help: "How many records shared one flush of the disk.",
    },
    Figure {
        name: CLOCK_STEPS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Jumps of the wall clock against the monotonic clock, by direction.",
    },
    Figure {
        name: LOG_BYTES,
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Bytes written to the data directory, by kind of file.",
    },
    Figure {
        name: WAITING,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Receives that wait for a message.",
    },
    Figure {
        name: QUEUES_AT_BOUND,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Queues that a group reads no further before it acknowledges, by what has reached its bound: messages out, or parked behind others of their message groups.",
    },
    Figure {
        name: CONNECTIONS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Connections that are open.",
    },
    Figure {
        name: REQUEST_BYTES,
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        help: "Request bodies in memory.",
    },
    Figure {
        name: ANSWER_BYTES,
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        help: "Answers in memory that their clients have not read yet, without short ones.",
    },
    Figure {
        name: LEASES,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Messages that are out, or wait in memory to be handed out again.",
    },
    Figure {
        name: QUEUED_APPENDS,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "Records that wait for the disk.",
    },
    Figure {
        name: QUEUED_APPEND_BYTES,
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        help: "Bytes that wait for the disk.",
    },
    Figure {
        name: REFUSED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "What clients were refused because a limit was met, by limit.",
    },
    Figure {
        name: CARRIED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Messages that were appended again so that old log files can go: those that still wait, and dead letters.",
    },
    Figure {
        name: EXPIRED_UNREAD,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Messages that a group had not acknowledged when their retention was over and their file went.",
    },
    Figure {
        name: QUARANTINED,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "Damaged stretches of the log that were set aside. /readyz?verbose lists them.",
    },
    Figure {
        name: DISK_FREE,
        kind: Kind::Gauge,
        unit: Unit::Bytes,
        help: "What is free on the disk of the data directory.",
    },
    Figure {
        name: DISK_PRESSURE,
        kind: Kind::Gauge,
        unit: Unit::Count,
        help: "0 while new messages are taken, 1 when they are refused for want of room on the disk, 2 when the ballast is given up too.",
    },
    Figure {
        name: HTTP_REQUESTS,
        kind: Kind::Counter,
        unit: Unit::Count,
        help: "HTTP requests answered, by route and status code.",
    },
];
