//! What a checkpoint keeps of the index: the runs it may trust.
//!
//! ```text
//! byte   0     4         8       16      20      24
//!        +-----+---------+-------+-------+-------+- - - - - - - - - - - -+
//!        | crc | version | floor | count | zeros | number 8, digest 8 .. |
//!        +-----+---------+-------+-------+-------+- - - - - - - - - - - -+
//! ```
//!
//! Little-endian. *crc* is CRC-32C over all that follows it. *floor* is what [`Index::forget_below`] said
//! last. A *digest* is that of a run's header, and so of its length, its counts, and the crcs of
//! all its parts. Runs ascend by number: equal indexes have equal manifests.
//!
//! [`Index::forget_below`]: super::Index::forget_below

use super::error::Damage;
use super::run::Listed;
use crate::message::offset::Offset;
use crate::message::record::{read_u32, read_u64};

const CRC: usize = 0;
const VERSION: usize = CRC + 4;
const FLOOR: usize = VERSION + 4;
const COUNT: usize = FLOOR + 8;
const ZEROS: usize = COUNT + 4;
const RUNS: usize = ZEROS + 4;
const LISTED: usize = 16;

const KNOWN_VERSION: u32 = 1;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) floor: Offset,
    pub(super) runs: Vec<Listed>,
}

impl Manifest {
    pub(super) fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.runs.len()).expect("there are some dozens of runs");
        let mut bytes = vec![0; CRC + 4];
        bytes.extend_from_slice(&KNOWN_VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.floor.get().to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&[0; RUNS - ZEROS]);
        for run in &self.runs {
            bytes.extend_from_slice(&run.number.to_le_bytes());
            bytes.extend_from_slice(&run.digest.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[VERSION..]);
        bytes[CRC..VERSION].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let got = bytes.len() as u64;
        if bytes.len() < RUNS {
            return Err(Damage::Length { got, expected: RUNS as u64 });
        }
        let (crc, computed) = (read_u32(bytes, CRC), crc32c::crc32c(&bytes[VERSION..]));
        if crc != computed {
            return Err(Damage::Crc { part: "manifest", got: crc, expected: computed });
        }
        let found = read_u32(bytes, VERSION);
        if found != KNOWN_VERSION {
            return Err(Damage::Version { found, known: KNOWN_VERSION });
        }
        let expected = RUNS as u64 + u64::from(read_u32(bytes, COUNT)) * LISTED as u64;
        if got != expected {
            return Err(Damage::Length { got, expected });
        }
        if bytes[ZEROS..RUNS] != [0; RUNS - ZEROS] {
            return Err(Damage::NotZero);
        }
        let runs = bytes[RUNS..].chunks_exact(LISTED);
        let listed = |run| Listed { number: read_u64(run, 0), digest: read_u64(run, 8) };
        let runs: Vec<_> = runs.map(listed).collect();
        if !runs.is_sorted_by(|one, next| one.number < next.number) {
            return Err(Damage::Order { part: "runs" });
        }
        Ok(Self { floor: Offset::new(read_u64(bytes, FLOOR)), runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let runs = vec![Listed { number: 3, digest: 0x0807_0605_0403_0201 }];
        Manifest { floor: Offset::new(64), runs }
    }

    #[test]
    fn the_bytes_of_a_manifest_are_these() {
        let bytes = manifest().encode();
        assert_eq!(
            bytes[4..],
            [
                1, 0, 0, 0, // version
                64, 0, 0, 0, 0, 0, 0, 0, // floor
                1, 0, 0, 0, 0, 0, 0, 0, // count, zeros
                3, 0, 0, 0, 0, 0, 0, 0, // number
                1, 2, 3, 4, 5, 6, 7, 8, // digest
            ]
        );
        assert_eq!(read_u32(&bytes, CRC), 0xF5AE_5787);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_of_a_manifest_is_noticed() {
        let whole = manifest().encode();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bytes).is_err(), "bit {bit}");
        }
        for length in 0..whole.len() {
            assert!(Manifest::decode(&whole[..length]).is_err(), "{length} bytes");
        }
        assert_eq!(Manifest::decode(&whole), Ok(manifest()));
    }

    #[test]
    fn runs_that_are_listed_twice_or_out_of_order_are_refused() {
        let manifest = |numbers: [u64; 2]| {
            let runs = numbers.map(|number| Listed { number, digest: 1 });
            Manifest { floor: Offset::new(64), runs: runs.to_vec() }
        };
        assert_eq!(Manifest::decode(&manifest([3, 4]).encode()), Ok(manifest([3, 4])));
        for numbers in [[3, 3], [4, 3]] {
            let refused = Manifest::decode(&manifest(numbers).encode());
            assert_eq!(refused, Err(Damage::Order { part: "runs" }), "{numbers:?}");
        }
    }
}
