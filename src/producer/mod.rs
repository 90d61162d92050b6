//! Everything that enters: messages put, and changes of mind.
//!
//! Each operation is a function of the store, the request and `now`. It decides and appends in one turn
//! and answers a [`Decided`]: the answer, and the claim on the log that must be durable before the
//! answer is told. Nothing here waits.

mod cancel;
mod lookup;
mod put;
mod scheduled;

pub use cancel::{CancelAnswer, CancelError, Cancelled, Cause, cancel, cancel_all};
pub use lookup::{BodyError, Found, NotFound, Standing, body, find, of_cause};
pub use put::{PutAnswer, PutError, PutSettings, put};
pub use scheduled::{
    BulkCancel, Listed, MAX_BULK_CANCEL, Page, Query, ScheduledError, Selected, WhenMatched,
    cancel_scheduled, list_scheduled,
};

use crate::commitlog::Receipt;

/// An answer that holds once its receipt is durable.
#[derive(Clone, Debug)]
pub struct Decided<T> {
    pub answer: T,
    pub receipt: Receipt,
}
