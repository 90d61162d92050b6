//! Tries headers of append groups.

#![no_main]

horolog_fuzz::target!(["group"]);
