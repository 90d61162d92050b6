//! Every bound of the HTTP door, by name; `GET /v1/limits` shows them.

use serde::Serialize;
use tokio::sync::Semaphore;

use super::fields::{MAX_KEYS, MAX_LABEL_LENGTH, MAX_PROPERTIES_LENGTH};
use super::group_settings::{
    MAX_ATTEMPTS, MAX_BACKOFF_MS, MAX_BACKOFF_STEPS, MAX_FILTERS, MAX_TAGS,
};
use super::json_put::MAX_DEPTH;
use crate::config::{Deadlines, LeaseBounds, QueuedAppends};
use crate::consumer::{INVISIBLE_FOR_MS, MAX_PARKED};
use crate::message::MAX_DELAY_MS;
use crate::outbound::MAX_REPLY_BYTES;
use crate::service::{MAX_BUCKETS, MAX_BULK_CANCEL, MAX_CALLED_HOSTS, MAX_CALLS_OF_HOST};
use crate::space::Marks;

/// Most headers of a request.
pub(super) const MAX_HEADERS: usize = 100;
/// Most connections that are refused and kept until the client has read so. Further ones are closed at once.
pub(super) const MAX_FAREWELLS: usize = 256;
/// Most messages of one receive.
pub(super) const MAX_RECEIVE: usize = 256;
/// The longest wait of one receive.
pub(super) const MAX_WAIT_MS: u64 = 30_000;
/// Most receipt handles of one ack.
pub(super) const MAX_HANDLES: usize = 1000;
/// Most items of one page of a list, and how many there are unless it is said.
pub(super) const MAX_PAGE: usize = 1000;
pub(super) const DEFAULT_PAGE: usize = 100;
/// Most messages of one batch.
pub(super) const MAX_BATCH: usize = 1000;
/// Most bytes of bodies in one batch, as they are stored, and in one that is atomic.
pub(super) const MAX_BATCH_BYTES: usize = 6 * 1024 * 1024;
pub(super) const MAX_ATOMIC_BYTES: usize = 4 * 1024 * 1024;
/// The longest idempotency key, in bytes.
pub(super) const MAX_IDEMPOTENCY_KEY: usize = 255;
/// Most queues of a topic.
pub(super) const MAX_QUEUES: u16 = 1024;
/// Most bytes of a request that carries no message.
pub(super) const MAX_CONTROL_BYTES: usize = 1024 * 1024;
/// What a JSON put may carry besides its body: names, keys, properties.
const ENVELOPE_BYTES: usize = 512 * 1024;

/// The bounds that are settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of a message's body, as it is stored.
    pub body_bytes: usize,
    pub connections: usize,
    /// Most receives that wait for a message at the same time.
    pub waiting_receives: usize,
    /// Most bytes of request bodies that are in memory at the same time.
    pub request_bytes: usize,
    /// Most bytes of answers that are in memory at the same time.
    pub answer_bytes: usize,
    /// Most bytes of request line and headers together.
    pub header_bytes: usize,
    pub deadlines: Deadlines,
    pub queued_appends: QueuedAppends,
    pub leases: LeaseBounds,
}

impl Limits {
    /// Most connections, as many as can be counted.
    pub(super) fn connections(&self) -> usize {
        self.connections.min(Semaphore::MAX_PERMITS)
    }

    /// Most bytes of a JSON put. Escapes make text longer on the wire than it is stored, threefold
    /// at worst for what is not a control character; base64 by a third.
    pub(super) const fn json_put_bytes(&self) -> usize {
        self.body_bytes.saturating_mul(3).saturating_add(ENVELOPE_BYTES)
    }

    /// Most bytes of a batch on the wire, by the same reckoning.
    pub(super) const fn batch_request_bytes(&self) -> usize {
        MAX_BATCH_BYTES * 3 + 2 * ENVELOPE_BYTES
    }

    /// With the watermarks of the disk, which are known when the data directory is open.
    pub(super) fn written(&self, disk: Option<Marks>) -> impl Serialize + use<> {
        Written {
            body_bytes: self.body_bytes,
            json_put_bytes: self.json_put_bytes(),
            control_request_bytes: MAX_CONTROL_BYTES,
            header_bytes: self.header_bytes,
            headers: MAX_HEADERS,
            header_timeout_ms: self.deadlines.header_ms,
            idle_timeout_ms: self.deadlines.idle_ms,
            body_timeout_ms: self.deadlines.body_ms,
            body_grace_ms: self.deadlines.body_grace_ms,
            body_bytes_per_second: self.deadlines.least_body_rate,
            answer_timeout_ms: self.deadlines.answer_ms,
            connections: self.connections,
            waiting_receives: self.waiting_receives,
            request_bytes_in_memory: self.request_bytes,
            answer_bytes_in_memory: self.answer_bytes,
            queued_appends: self.queued_appends.records,
            queued_append_bytes: self.queued_appends.bytes,
            leases: self.leases.all,
            queue_leases: self.leases.per_queue,
            queue_parked_messages: MAX_PARKED,
            check_calls: MAX_CALLED_HOSTS * MAX_CALLS_OF_HOST,
            host_check_calls: MAX_CALLS_OF_HOST,
            check_answer_bytes: MAX_REPLY_BYTES,
            disk_reserve_bytes: disk.map(|marks| marks.refuse_below),
            disk_ballast_bytes: disk.map(|marks| marks.ballast),
            name_bytes: MAX_LABEL_LENGTH,
            keys: MAX_KEYS,
            properties_bytes: MAX_PROPERTIES_LENGTH,
            json_depth: MAX_DEPTH,
            delay_ms: MAX_DELAY_MS,
            receive_messages: MAX_RECEIVE,
            receive_wait_ms: MAX_WAIT_MS,
            receipt_handles: MAX_HANDLES,
            page_items: MAX_PAGE,
            batch_messages: MAX_BATCH,
            batch_bytes: MAX_BATCH_BYTES,
            atomic_batch_bytes: MAX_ATOMIC_BYTES,
            idempotency_key_bytes: MAX_IDEMPOTENCY_KEY,
            topic_queues: MAX_QUEUES,
            timeline_buckets: MAX_BUCKETS,
            bulk_cancels: MAX_BULK_CANCEL,
            group_attempts: MAX_ATTEMPTS,
            group_backoff_steps: MAX_BACKOFF_STEPS,
            group_backoff_ms: MAX_BACKOFF_MS,
            group_lease_ms: *INVISIBLE_FOR_MS.end(),
            filter_tags: MAX_TAGS,
            group_filters: MAX_FILTERS,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    body_bytes: usize,
    json_put_bytes: usize,
    control_request_bytes: usize,
    header_bytes: usize,
    headers: usize,
    header_timeout_ms: u64,
    idle_timeout_ms: u64,
    body_timeout_ms: u64,
    body_grace_ms: u64,
    body_bytes_per_second: u64,
    answer_timeout_ms: u64,
    connections: usize,
    waiting_receives: usize,
    request_bytes_in_memory: usize,
    answer_bytes_in_memory: usize,
    queued_appends: u64,
    queued_append_bytes: u64,
    leases: usize,
    queue_leases: usize,
    queue_parked_messages: usize,
    check_calls: usize,
    host_check_calls: usize,
    check_answer_bytes: usize,
    disk_reserve_bytes: Option<u64>,
    disk_ballast_bytes: Option<u64>,
    name_bytes: usize,
    keys: usize,
    properties_bytes: usize,
    json_depth: usize,
    delay_ms: u64,
    receive_messages: usize,
    receive_wait_ms: u64,
    receipt_handles: usize,
    page_items: usize,
    batch_messages: usize,
    batch_bytes: usize,
    atomic_batch_bytes: usize,
    idempotency_key_bytes: usize,
    topic_queues: u16,
    timeline_buckets: u64,
    bulk_cancels: usize,
    group_attempts: u32,
    group_backoff_steps: usize,
    group_backoff_ms: u64,
    group_lease_ms: u64,
    filter_tags: usize,
    group_filters: usize,
}
