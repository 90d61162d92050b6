//! Tries times, durations and sizes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["time", "duration", "size"], bytes));
