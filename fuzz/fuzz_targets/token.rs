//! Tries ids, receipt handles and cursors.

#![no_main]

horolog_fuzz::target!(["message_id", "receipt_handle", "cursor", "place"]);
