//! Tries records of the CommitLog, of every kind.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["record"], bytes));
