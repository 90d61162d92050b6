//! Tries TimerLog, slots, snapshots.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| horolog_fuzz::try_all(&["timer_record", "timer_log_header", "slot", "timer_checkpoint", "snapshot_head"], bytes));
