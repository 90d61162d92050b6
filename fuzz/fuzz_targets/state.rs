//! Tries the state in a checkpoint, and the identity of a directory.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["state", "identity"], bytes));
