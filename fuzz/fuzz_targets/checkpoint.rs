//! Tries the checkpoint's envelope.

#![no_main]

horolog_fuzz::target!(["checkpoint"]);
