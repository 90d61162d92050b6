//! Tries times, durations and sizes.

#![no_main]

horolog_fuzz::target!(["time", "duration", "size"]);
