//! The threads behind the service: how they start, fail and stop.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use timerlog::disk::Directory;

use super::observers::{Flushes, Retained, Timers};
use super::{OpenError, Service, ServiceConfig};
use crate::clock::Clock;
use crate::commitlog::FlushMode;
use crate::config::Flush;
use crate::engine::{Engine, Settings};
use crate::metrics::Metrics;
use crate::stage::StageError;
use crate::stage::runner::{self, OnFailure, Running};
use crate::sync::{Mutex, Notify};
use crate::{index, store, timer};

/// The first thing that went wrong for good, if anything did.
#[derive(Debug, Default)]
pub(super) struct Failure {
    reason: Mutex<Option<String>>,
    told: Notify,
}

impl Failure {
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.lock().clone()
    }

    fn tell(&self, error: &StageError) {
        tracing::error!(%error, "a stage has failed: the server must end");
        self.reason.lock().get_or_insert_with(|| error.to_string());
        self.told.notify_waiters();
        self.told.notify_one();
    }

    async fn happened(&self) -> String {
        loop {
            let told = self.told.notified();
            if let Some(reason) = self.reason() {
                return reason;
            }
            told.await;
        }
    }
}

pub(super) struct Started {
    pub(super) engine: Engine,
    pub(super) running: Running,
    pub(super) failure: Arc<Failure>,
}

/// Opens the engine and gives each stage a thread.
pub(super) fn start(
    config: &ServiceConfig,
    directory: &Arc<dyn Directory>,
    clock: &Arc<dyn Clock>,
    metrics: &Arc<Metrics>,
    random: &[u8; 32],
) -> Result<Started, OpenError> {
    let opened = Engine::open(
        directory,
        &settings(config, random),
        Arc::clone(clock),
        Box::new(Flushes(Arc::clone(metrics))),
        Arc::new(Timers(Arc::clone(metrics))),
        Box::new(Retained(Arc::clone(metrics))),
        clock.now(),
    );
    let refused = |cause| OpenError::Refused { path: directory.path(), cause };
    let opened = opened.map_err(refused)?;
    let failure = Arc::new(Failure::default());
    let told = Arc::clone(&failure);
    let on_failure: OnFailure = Arc::new(move |error| told.tell(&error));
    let running = runner::run(opened.stages.0, clock, &on_failure).map_err(OpenError::Threads)?;
    Ok(Started { engine: opened.engine, running, failure })
}

fn settings(config: &ServiceConfig, random: &[u8; 32]) -> Settings {
    let derive = |what: &[u8]| Sha256::new().chain_update(what).chain_update(random).finalize();
    let seed = derive(b"nonces");
    Settings {
        store: store::Settings {
            flush: match config.flush {
                Flush::Sync => FlushMode::Sync,
                Flush::Async { interval_ms } => FlushMode::Async { interval_ms },
            },
            segment_size: config.segment_size,
            index: index::Limits::default(),
            retention_ms: config.retention_ms,
            queued_appends: config.queued_appends,
            key: derive(b"id key").into(),
            holder: format!("process {}", std::process::id()),
            derived: store::Derived::default(),
            progress: store::Progress::default(),
        },
        timer: timer::Settings::default(),
        levels: config.levels.clone(),
        leases: config.leases,
        disk_reserve: config.disk_reserve,
        checkpoint_interval: Duration::from_millis(config.checkpoint_interval_ms),
        seed: crate::message::record::read_u64(&seed, 0),
    }
}

/// The threads behind a [`Service`].
#[derive(Debug)]
pub struct ServiceHandle {
    service: Service,
    running: Running,
}

impl ServiceHandle {
    pub(super) fn new(service: Service, running: Running) -> Self {
        Self { service, running }
    }

    /// Ends the threads, flushes, and writes a checkpoint last. Blocks until that is done. What was
    /// accepted is safe in any case; after this the next start has nothing to replay.
    pub fn stop(self) {
        self.service.drain();
        self.running.stop();
        let inner = &self.service.0;
        if inner.failure.reason().is_some() {
            return;
        }
        if let Err(error) = inner.engine.rest(inner.clock.now()) {
            tracing::error!(%error, "no last checkpoint: the next start takes longer");
        }
    }

    /// Ends when the store has failed and takes no more writes, with the reason.
    pub async fn failed(&self) -> String {
        self.service.0.failure.happened().await
    }
}
