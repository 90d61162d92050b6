//! The table at the end of the first act, its verdict, and what the second needs of both.

use std::io;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use hdrhistogram::Histogram;

use super::DemoError;
use super::book::Book;

/// Whether every promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Kept,
    Broken,
}

impl Verdict {
    /// Kept when there are no faults.
    pub(super) fn of<F: Default + PartialEq>(faults: &F) -> Self {
        if *faults == F::default() { Self::Kept } else { Self::Broken }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Kept, Self::Kept) => Self::Kept,
            (Self::Broken, _) | (_, Self::Broken) => Self::Broken,
        }
    }
}

pub(super) fn print(book: &Book, output: &mut impl io::Write) -> Result<Verdict, DemoError> {
    let tally = book.tally();
    let faults = book.faults();
    let (fired, received) = book.lateness();
    let rows = [
        ("scheduled", thousands(tally.scheduled), ""),
        ("cancelled: paid in time", thousands(tally.cancelled), ""),
        ("paid too late: already delivered", thousands(tally.already_delivered), ""),
        ("fired: not paid in time", thousands(tally.fired), ""),
        ("early", faults.early.to_string(), "0"),
        ("lost", faults.lost.to_string(), "0"),
        ("twice", faults.twice.to_string(), "0"),
        ("delivered after a cancel", faults.after_cancel.to_string(), "0"),
        ("lateness, fired: p50, p99, max", lateness(&fired), ""),
        ("lateness, received: p50, p99, max", lateness(&received), ""),
    ];
    write_table("orders", &rows, output)?;
    let verdict = Verdict::of(&faults);
    writeln!(output, "{}", sentence(verdict))?;
    Ok(verdict)
}

/// A table of names, values and what was promised of them.
pub(super) fn write_table(
    heading: &str,
    rows: &[(&str, String, &str)],
    output: &mut impl io::Write,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header([heading, "", "promised"]);
    for (name, value, promised) in rows {
        table.add_row([*name, value.as_str(), *promised]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(output, "\n{table}")
}

/// `10000` as `10,000`.
pub(super) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn lateness(histogram: &Histogram<u64>) -> String {
    let at = |quantile| histogram.value_at_quantile(quantile);
    format!("{} ms, {} ms, {} ms", at(0.5), at(0.99), histogram.max())
}

const fn sentence(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "Every order was cancelled or timed out, once, and never early.",
        Verdict::Broken => "A promise was broken: see the table.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::book::Faults;
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (10_000, "10,000"), (1_234_567, "1,234,567")]
        {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn any_fault_breaks_the_promise() {
        assert_eq!(Verdict::of(&Faults::default()), Verdict::Kept);
        let lost = Verdict::of(&Faults { lost: 1, ..Faults::default() });
        let after_cancel = Verdict::of(&Faults { after_cancel: 1, ..Faults::default() });
        assert_eq!((lost, after_cancel), (Verdict::Broken, Verdict::Broken));
        assert_eq!(Verdict::Kept.and(Verdict::Kept), Verdict::Kept);
        assert_eq!(Verdict::Kept.and(Verdict::Broken), Verdict::Broken);
        assert_eq!(Verdict::Broken.and(Verdict::Kept), Verdict::Broken);
    }
}
