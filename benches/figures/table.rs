//! Figures on standard output.

use std::io::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

/// One row: what was measured, what came out, and what it has to be.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: String,
    target: String,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), target: String::new() }
    }

    /// With the target it has, and whether it is met.
    #[must_use]
    pub(crate) fn target(mut self, target: &str, verdict: Verdict) -> Self {
        let word = match verdict {
            Verdict::Met => "met",
            Verdict::Missed => "MISSED",
        };
        self.target = format!("{target}: {word}");
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Met,
    Missed,
}

impl Verdict {
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Met } else { Self::Missed }
    }
}

pub(crate) fn print(title: &str, figures: &[Figure]) {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header([title, "", "target"]);
    for figure in figures {
        table.add_row([&figure.what, &figure.value, &figure.target]);
    }
    if let Some(values) = table.column_mut(1) {
        values.set_cell_alignment(CellAlignment::Right);
    }
    say(&format!("{table}\n"));
}

/// A reader that went away is no reason to stop measuring.
pub(crate) fn say(text: &str) {
    let mut output = std::io::stdout();
    let _ = writeln!(output, "{text}").and_then(|()| output.flush());
}
