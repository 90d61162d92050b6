pub mod disk;
mod error;
pub mod segment;

pub use error::{Damage, DamageKind};
