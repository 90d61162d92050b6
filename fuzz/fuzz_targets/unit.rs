//! Tries units of ConsumeQueues.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["unit"], bytes));
