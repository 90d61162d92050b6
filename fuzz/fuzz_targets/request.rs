//! Tries request bodies and headers, and the settings file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["put", "batch", "control", "headers", "settings_file"], bytes));
