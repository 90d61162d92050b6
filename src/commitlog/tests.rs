//! What the log promises, on a disk that is simulated: it loses, tears, fails and rots by a seed.

mod bench;
mod crash;
mod faults;
mod referee;
mod rot;
mod shape;
mod tail;

use super::*;
