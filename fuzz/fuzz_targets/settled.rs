//! Tries settled pages and their journal.

#![no_main]

horolog_fuzz::target!(["settled_page", "journal"]);
