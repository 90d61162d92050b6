//! Tries ids, receipt handles and cursors.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["message_id", "receipt_handle", "cursor", "place"], bytes));
