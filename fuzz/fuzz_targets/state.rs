//! Tries the state in a checkpoint, and the identity of a directory.

#![no_main]

horolog_fuzz::target!(["state", "identity"]);
