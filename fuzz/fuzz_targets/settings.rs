//! Tries the settings file.

#![no_main]

horolog_fuzz::target!(["settings_file"]);
