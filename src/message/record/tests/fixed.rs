//! The bytes of every record, so that the format cannot change in silence.
//!
//! They were worked out from the format pages by another program, not by the encoders.

use xxhash_rust::xxh3::xxh3_128;

use super::super::*;
use super::samples::{MAGIC, OFFSET, samples};

/// Short records in full.
const BYTES: [(&str, &str); 11] = [
    (
        "smallest",
        "af54ad830000000040230100000000003200000000000000010100005ae7c45e\
         1817161514131211016c50c4a001000000000000000000000900000000000000\
         0300000002000000000000000101000000740000000000000000000000000000",
    ),
    (
        "cancel",
        "63f85d400000000040230100000000002000000000000000040100005ae7c45e\
         6000000000000000615651c4a00100000000020003000010026c50c4a0010000",
    ),
    (
        "delivery of 1",
        "3884e3e3c74b674840230100000000002000000010000000050100005ae7c45e\
         7b6c50c4a0010000e80300000000000004030201060501000100000000000000\
         0300000000006400000000001cb3f74100000000000000000000000000000000",
    ),
    (
        "ack",
        "1d5367513062949440230100000000001000000020000000080100005ae7c45e\
         0700000002000000036c50c4a001000003000000020000000900000000000000\
         0400000000000000000000000001000000000000000000000000000000000000",
    ),
    (
        "ack of none",
        "5652bb390000000040230100000000001000000000000000080100005ae7c45e\
         0700000000000000036c50c4a001000000000000000000000000000000000000",
    ),
    (
        "lease expired",
        "ed9cd66200000000402301000000000028000000000000000a0100005ae7c45e\
         0700000001000000046c50c4a001000003000000020000000900000000000000\
         0500000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "topic set",
        "516c1b7700000000402301000000000016000000000000000f0100005ae7c45e\
         0300000008000100056c50c4a00100006f726465727300000000000000000000",
    ),
    (
        "group set",
        "821bc45a0000000040230100000000001f00000000000000110100005ae7c45e\
         0700000001000000066c50c4a0010000307500000000000062696c6c696e6700",
    ),
    (
        "opened",
        "6c6b43b600000000402301000000000018000000000000001e0100005ae7c45e\
         0200000000000000076c50c4a001000040230100000000000000000000000000",
    ),
    (
        "quarantine, unreadable",
        "85df6e1f00000000402301000000000018000000000000000d0100005ae7c45e\
         0010000000000000800000000000000001000000000000000000000000000000",
    ),
    (
        "quarantine, body",
        "ec582ac400000000402301000000000018000000000000000d0100005ae7c45e\
         0010000000000000800000000000000002000000000000000000000000000000",
    ),
];

/// Of the long ones the length and XXH3-128.
const HASHES: [(&str, usize, u128); 5] = [
    ("ready", 256, 0x7f40_5f7f_5cbe_a40b_809f_c03f_d69b_671d),
    ("timed", 512, 0xb6dd_b568_bd3c_181c_7b34_b79f_bf90_c86c),
    ("delivery of 256", 3168, 0xc489_f446_96ef_3d3c_13e6_3795_63d7_f7fe),
    ("delivery of 257", 3168, 0xc3c0_7415_829e_2e13_a695_5862_f094_ac5f),
    ("delivery of 600", 7296, 0x65b7_85ff_783c_5625_f66a_61aa_2b88_de2b),
];

#[test]
fn the_bytes_of_every_record_are_fixed() {
    for (name, fact) in samples() {
        let mut encoded = fact.encode();
        let sealed = encoded.seal(OFFSET, MAGIC);
        let short = BYTES.iter().find(|(of, _)| *of == name).map(|(_, hex)| *hex);
        let long = HASHES.iter().find(|(of, ..)| *of == name);
        match (short, long) {
            (Some(expected), None) => {
                let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(hex, expected, "{name}");
            }
            (None, Some(&(_, length, hash))) => {
                assert_eq!((sealed.len(), xxh3_128(sealed)), (length, hash), "{name}");
            }
            _ => panic!("{name} must have its bytes or its hash here, and once"),
        }
    }
}

#[test]
fn the_hash_of_a_tag_is_fixed_and_never_that_of_no_tag() {
    assert_eq!(tag_hash(None), 0);
    assert_eq!(tag_hash(Some("a")), 34_355);
    assert_eq!(tag_hash(Some("paid")), 32_216);
    for tag in 0..200_000 {
        assert_ne!(tag_hash(Some(&tag.to_string())), 0, "tag {tag}");
    }
}
