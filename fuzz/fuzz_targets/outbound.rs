//! Tries URLs and secrets that are given to the server, and what those who are called answer.

#![no_main]

horolog_fuzz::target!(["target", "secret", "retry_after", "check_answer"]);
