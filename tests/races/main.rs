//! The races of the parts that go without a lock, or with little of one: every test runs the code that ships under a
//! scheduler that decides, before each lock, each unlock and each access of an atomic, which thread goes on.
//!
//! ```text
//! cargo test --features shuttle --test races
//! HOROLOG_RACE_ITERATIONS=100000 cargo test --features shuttle --test races
//! ```
//!
//! Each body runs under two schedulers: one that picks at random, and one that keeps to priorities and changes them at
//! a few random points (PCT: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs",
//! ASPLOS 2010), which finds what takes a thread to be left standing for long. Their seeds are fixed, so the bounded set
//! is the same at each run. And for each body there is a fault, planted in the code, that it must notice.
//!
//! A test that fails prints its schedule between two quotes. To run that one order again:
//!
//! ```text
//! HOROLOG_RACE_SCHEDULE=910217... cargo test --features shuttle --test races the_name_of_the_test -- --nocapture
//! ```
//!
//! What is not shown here: the order in which another core sees plain loads and stores. All accesses of atomics are
//! seen in one order, whatever ordering they name; see [`timerlog::sync`], which also says why no wait times out.

#![expect(clippy::panic, clippy::print_stdout, reason = "a test fails, and says in which order")]

mod bench;
mod cancel_against_fire;
mod committed_watermark;
mod explore;
mod pipes;
mod wake_ups;
