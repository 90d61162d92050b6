//! Tries the index: runs and manifest.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["index_header", "index_page", "manifest"], bytes));
