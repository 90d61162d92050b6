mod bytes;
pub mod checkpoint;
pub mod disk;
mod error;
mod log;
mod position;
pub mod segment;

pub use error::{Damage, DamageKind};
pub use log::{Chain, ChainError, ChainReader, Entry, EntryKind, Record};
pub use position::Position;
