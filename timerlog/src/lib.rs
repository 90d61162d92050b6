mod bytes;
pub mod checkpoint;
pub mod disk;
mod error;
mod log;
mod position;
pub mod segment;
mod wheel;

pub use error::{Damage, DamageKind, TimerError};
pub use log::{Chain, ChainError, ChainReader, Entry, EntryKind, Record};
pub use position::Position;
pub use wheel::*;
