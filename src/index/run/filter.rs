//! Which hashes a run does not hold: a blocked Bloom filter (Putze, Sanders, Singler, *Cache-, hash- and
//! space-efficient Bloom filters*, 2007).
//!
//! ```text
//!   hash ── its place in 0..2^64, scaled to the blocks ──> one block of 512 bits
//!     └──── mixed again, seven times nine bits ──────────> seven bits of it
//! ```
//!
//! One block is one cache line, and all that a probe touches. A block is chosen by the *high* bits of
//! the hash, so the blocks of ascending hashes ascend too: a run writes its filter as a stream, in
//! constant memory, while it writes its entries. Sixteen bits an entry make about one in 900
//! look-ups of an absent hash a false positive.

use crate::index::entry::KeyHash;

/// A block, in bytes.
pub(super) const BLOCK_LENGTH: usize = 64;
const BLOCK_BITS: u64 = BLOCK_LENGTH as u64 * 8;
const BITS_PER_ENTRY: u64 = 16;
/// Near `16 * ln 2` is best for one large filter; in small blocks fewer are, and seven of nine bits each
/// fit a word.
const PROBES: u32 = 7;
const PROBE_BITS: u32 = BLOCK_BITS.ilog2();
const _: () = assert!(PROBES * PROBE_BITS <= u64::BITS);

pub(super) type Block = [u8; BLOCK_LENGTH];

/// Blocks for `entries` entries.
pub(super) const fn block_count(entries: u64) -> u64 {
    (entries * BITS_PER_ENTRY).div_ceil(BLOCK_BITS)
}

/// The block of `hash` among `blocks`.
pub(super) fn block_of(hash: KeyHash, blocks: u64) -> u64 {
    let scaled = (u128::from(hash.get()) * u128::from(blocks)) >> u64::BITS;
    u64::try_from(scaled).expect("a 64-bit number times a fraction below one")
}

/// Sets the bits of `hash` in its block.
pub(super) fn set(block: &mut Block, hash: KeyHash) {
    for (byte, bit) in bits(hash) {
        block[byte] |= bit;
    }
}

/// Whether the bits of `hash` are all set in its block.
pub(super) fn may_contain(block: &Block, hash: KeyHash) -> bool {
    bits(hash).all(|(byte, bit)| block[byte] & bit != 0)
}

fn bits(hash: KeyHash) -> impl Iterator<Item = (usize, u8)> {
    let mixed = mix(hash.get());
    (0..PROBES).map(move |probe| {
        let bit = mixed >> (probe * PROBE_BITS) & (BLOCK_BITS - 1);
        (usize::try_from(bit / 8).expect("a byte of a block"), 1 << (bit % 8))
    })
}

/// Hashes of one block share their high bits, so these are mixed with the rest (the finalizer of
/// MurmurHash3, Appleby).
const fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use timerlog::disk::sim::Random;

    use super::*;

    const ENTRIES: u64 = 50_000;

    fn filter(random: &mut Random) -> (Vec<Block>, Vec<KeyHash>) {
        let mut blocks = vec![[0; BLOCK_LENGTH]; usize::try_from(block_count(ENTRIES)).unwrap()];
        let hashes: Vec<_> = (0..ENTRIES).map(|_| KeyHash::new(random.next())).collect();
        for &hash in &hashes {
            let block = block_of(hash, blocks.len() as u64);
            set(&mut blocks[usize::try_from(block).unwrap()], hash);
        }
        (blocks, hashes)
    }

    fn holds(blocks: &[Block], hash: KeyHash) -> bool {
        let block = block_of(hash, blocks.len() as u64);
        may_contain(&blocks[usize::try_from(block).unwrap()], hash)
    }

    #[test]
    fn what_was_added_is_found_and_few_others_are() {
        let mut random = Random::new(1);
        let (blocks, hashes) = filter(&mut random);
        assert!(hashes.iter().all(|&hash| holds(&blocks, hash)));
        let false_positives =
            (0..200_000).filter(|_| holds(&blocks, KeyHash::new(random.next()))).count();
        assert!(false_positives < 350, "{false_positives} of 200,000");
    }

    #[test]
    fn blocks_ascend_with_the_hashes_and_reach_from_the_first_to_the_last() {
        let (blocks, mut hashes) = filter(&mut Random::new(2));
        hashes.sort();
        let count = blocks.len() as u64;
        assert!(hashes.is_sorted_by_key(|&hash| block_of(hash, count)));
        assert_eq!(block_of(KeyHash::new(0), count), 0);
        assert_eq!(block_of(KeyHash::new(u64::MAX), count), count - 1);
    }

    #[test]
    fn a_hash_has_these_bits_for_ever() {
        let mut block = [0; BLOCK_LENGTH];
        set(&mut block, KeyHash::new(0x0123_4567_89AB_CDEF));
        let set: Vec<_> = (0..512).filter(|bit| block[bit / 8] & 1 << (bit % 8) != 0).collect();
        assert_eq!(set, GOLDEN);
    }

    const GOLDEN: [usize; 7] = [31, 64, 95, 234, 278, 447, 465];
}
