//! Tries TimerLog, slots, snapshots.

#![no_main]

horolog_fuzz::target!([
    "timer_record",
    "timer_log_header",
    "slot",
    "timer_checkpoint",
    "snapshot_head",
]);
