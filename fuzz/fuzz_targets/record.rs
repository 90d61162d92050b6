//! Tries records of the CommitLog, of every kind.

#![no_main]

horolog_fuzz::target!(["record"]);
