//! What the stages do, told to the metrics.

use std::sync::Arc;
use std::time::Duration;

use crate::message::offset::Offset;
use crate::metrics::{ClockStep, LogFile, Metrics};
use crate::retention::RetentionObserver;
use crate::store::Expired;
use crate::store::flush::FlushObserver;
use crate::timer;

pub(super) struct Flushes(pub(super) Arc<Metrics>);

impl FlushObserver for Flushes {
    fn flushed(&self, records: u64, bytes: u64, took: Duration) {
        self.0.fsync(took);
        self.0.group(u32::try_from(records).unwrap_or(u32::MAX));
        self.0.written(LogFile::CommitLog, bytes);
    }
}

pub(super) struct Timers(pub(super) Arc<Metrics>);

impl timer::Observer for Timers {
    fn fired(&self, count: u64, late_ms: u64) {
        self.0.fired(count, late_ms);
    }

    fn clock_stepped(&self, step: timer::ClockStep) {
        self.0.clock_step(match step {
            timer::ClockStep::Forward { .. } => ClockStep::Forward,
            timer::ClockStep::Back { .. } => ClockStep::Backward,
        });
    }
}

pub(super) struct Retained(pub(super) Arc<Metrics>);

impl RetentionObserver for Retained {
    fn let_go(&self, begin: Offset) {
        tracing::info!(
            begin = begin.get(),
            "the log begins later: what stood before is needed by nobody"
        );
    }

    fn expired(&self, expired: &Expired) {
        let Expired { group, topic, unread } = expired;
        tracing::warn!(group, topic, unread, "messages have expired before they were acknowledged");
        self.0.expired_unread(*unread);
    }

    fn carried(&self, count: u64) {
        self.0.carried(count);
    }
}
