//! A row of files of one size that reads as a single, ever growing run of bytes.
//!
//! ```text
//!   00000000000000000000   00000000000000012288   00000000000000024576
//!   +--------------------+ +--------------------+ +--------------------+
//!   |####################| |##########..........| |....................|
//!   +--------------------+ +--------------------+ +--------------------+
//!   ^ begin                          ^ length                           ^ allocated
//! ```
//!
//! A position is the number of a byte in the row. A file is named by the position it starts at, in 20
//! digits, so names sort as positions do. `#` is appended, `.` is allocated space: zeros, or leftovers
//! of an earlier life, which nobody may read as if they were appended.
//!
//! Ground rules:
//!
//! - One [`Row`] writes; any number of [`RowReader`]s read, at the same time and without a lock that
//!   the writer holds during I/O. The race between them is settled by `committed`: the writer stores
//!   it (release) after the bytes are written, a reader loads it (acquire) before it reads.
//! - Bytes of one append never straddle two files.
//! - A file is allocated, synced and named durably before the first byte is appended to it, so a full
//!   disk shows when a file is made and at no other time.
//! - After a failed sync the row refuses everything with that first error. Nothing is synced twice.

mod error;
mod name;
mod open;
mod reader;
mod row;
mod shared;
#[cfg(test)]
mod tests;

pub use error::RowError;
pub use reader::RowReader;
pub use row::Row;
pub use shared::RowFlush;
