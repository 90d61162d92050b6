//! Tries settled pages and their journal.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["settled_page", "journal"], bytes));
