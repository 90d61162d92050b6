//! A bounded queue between two stages.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use timerlog::planted::{self, Fault};

use super::Signal;
use crate::sync::Mutex;

/// A pipe of at most `capacity` values. A push raises the reader's signal; a pop that makes room
/// raises the writer's. Neither ever waits.
pub struct Pipe<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    values: Mutex<VecDeque<T>>,
    capacity: usize,
    reader: Signal,
    writer: Signal,
}

impl<T> Pipe<T> {
    pub fn new(capacity: usize, writer: Signal, reader: Signal) -> Self {
        let values = Mutex::new(VecDeque::with_capacity(capacity.min(64)));
        Self { inner: Arc::new(Inner { values, capacity, reader, writer }) }
    }

    /// Hands `value` on, or gives it back when the pipe is full.
    ///
    /// # Errors
    ///
    /// The value itself: keep it and try again when the writer's signal is raised.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut values = self.inner.values.lock();
        if values.len() >= self.inner.capacity {
            return Err(value);
        }
        values.push_back(value);
        drop(values);
        self.inner.reader.raise();
        Ok(())
    }

    pub fn pop(&self) -> Option<T> {
        let mut values = self.inner.values.lock();
        let was_full = values.len() >= self.inner.capacity;
        let value = values.pop_front();
        drop(values);
        if was_full && !planted::is(Fault::RoomNotTold) {
            self.inner.writer.raise();
        }
        value
    }

    pub fn is_full(&self) -> bool {
        self.inner.values.lock().len() >= self.inner.capacity
    }

    pub fn is_empty(&self) -> bool {
        self.inner.values.lock().is_empty()
    }
}

impl<T> Clone for Pipe<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> fmt::Debug for Pipe<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Pipe({} of {})", self.inner.values.lock().len(), self.inner.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_gives_the_value_back_and_keeps_the_order() {
        let pipe = Pipe::new(2, Signal::default(), Signal::default());
        assert_eq!(pipe.push(1), Ok(()));
        assert_eq!(pipe.push(2), Ok(()));
        assert_eq!(pipe.push(3), Err(3));
        assert_eq!(pipe.pop(), Some(1));
        assert_eq!(pipe.push(3), Ok(()));
        assert_eq!([pipe.pop(), pipe.pop(), pipe.pop()], [Some(2), Some(3), None]);
    }
}
