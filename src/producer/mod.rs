//! Everything that enters: messages put, and changes of mind.
//!
//! Each operation is a function of the store, the request and `now`. It decides and appends in one turn
//! and answers a [`Decided`]: the answer, and the claim on the log that must be durable before the
//! answer is told. Nothing here waits.

mod cancel;
mod lookup;
mod put;

pub use cancel::{CancelAnswer, CancelError, Cancelled, cancel};
pub use lookup::{BodyError, Found, NotFound, Standing, body, find};
pub use put::{PutAnswer, PutError, PutSettings, put};

use crate::commitlog::Receipt;

/// An answer that holds once its receipt is durable.
#[derive(Clone, Debug)]
pub struct Decided<T> {
    pub answer: T,
    pub receipt: Receipt,
}
