//! Every decoder of this crate, for its own tests and for the fuzz targets in `fuzz/`.

use crate::decoder::Decoder;
#[cfg(test)]
use crate::decoder::{Edit, Judged, edited};
use crate::{checkpoint, log, wheel};

/// All decoders.
pub fn decoders() -> Vec<Decoder> {
    let mut all = log::decoders();
    all.extend(wheel::decoders());
    all.push(checkpoint::decoder());
    all
}

#[cfg(test)]
#[path = "decoder/tests.rs"]
mod tests;
