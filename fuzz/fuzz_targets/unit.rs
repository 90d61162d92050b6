//! Tries units of ConsumeQueues.

#![no_main]

horolog_fuzz::target!(["unit"]);
