//! Tries messages on their way in, by body and by headers.

#![no_main]

horolog_fuzz::target!(["put", "half", "batch", "headers", "conditions"]);
