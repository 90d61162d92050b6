//! Tries the index: runs and manifest.

#![no_main]

horolog_fuzz::target!(["index_header", "index_page", "manifest"]);
