//! The table at the end of the second act, and its verdict.

use std::io;

use super::super::report::{Verdict, thousands, write_table};
use super::book::{Book, Tally};
use crate::demo::DemoError;

pub(super) fn print(book: &Book, output: &mut impl io::Write) -> Result<Verdict, DemoError> {
    let Tally {
        begun,
        committed,
        rolled_back,
        never_answered,
        checked_back,
        fired,
        came_again,
        settled: _,
    } = book.tally();
    let faults = book.faults();
    let rows = [
        ("begun", thousands(begun), ""),
        ("never answered: the shop fell silent", thousands(never_answered), ""),
        ("checked back: the server asked", thousands(checked_back), ""),
        ("committed", thousands(committed), ""),
        ("rolled back", thousands(rolled_back), ""),
        ("fired: committed, and due", thousands(fired), ""),
        ("received again: a consumer crashed", thousands(came_again), ""),
        ("early: before its commit or moment", faults.early.to_string(), "0"),
        ("lost", faults.lost.to_string(), "0"),
        ("twice: fired, or after its ack", faults.twice.to_string(), "0"),
        ("delivered after a rollback", faults.after_rollback.to_string(), "0"),
    ];
    write_table("transactions", &rows, output)?;
    let verdict = Verdict::of(&faults);
    let sentence = match verdict {
        Verdict::Kept => {
            "Every order was committed or rolled back; what was committed fired, once, and never early."
        }
        Verdict::Broken => "A promise was broken: see the table.",
    };
    writeln!(output, "{sentence}")?;
    Ok(verdict)
}
