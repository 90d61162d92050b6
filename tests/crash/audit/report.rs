//! What an audit found, as a table.

use std::fmt;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::{Fault, Violation};

/// What the audit found.
#[derive(Debug)]
pub(crate) struct Report {
    pub tally: Tally,
    pub violations: Vec<Violation>,
    pub kills: Kills,
    pub segments: usize,
}

/// How often the server was killed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kills {
    /// Lives under load, each of which was to end by a kill.
    pub rounds: usize,
    pub all: usize,
    pub in_recovery: usize,
    pub in_stop: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub puts_ok: usize,
    pub puts_unknown: usize,
    pub puts_refused: usize,
    pub cancelled: usize,
    pub told_delivered: usize,
    pub fired: usize,
    pub leveled: usize,
    pub acked: usize,
    pub nacked: usize,
    pub redriven: usize,
    /// Handed to one group more than once: leases that ran out, and lives that ended.
    pub redelivered: usize,
}

impl Report {
    fn count(&self, fault: Fault) -> usize {
        self.violations.iter().filter(|violation| violation.fault == fault).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kills, tally) = (self.kills, self.tally);
        let named = [Fault::Lost, Fault::Early, Fault::Twice];
        let other = self.violations.iter().filter(|violation| !named.contains(&violation.fault));
        let rows = [
            ("rounds", kills.rounds),
            ("kills", kills.all),
            ("  of these in recovery", kills.in_recovery),
            ("  of these while stopping", kills.in_stop),
            ("puts, ok", tally.puts_ok),
            ("puts, unknown", tally.puts_unknown),
            ("puts, refused", tally.puts_refused),
            ("cancelled", tally.cancelled),
            ("told already delivered", tally.told_delivered),
            ("fired", tally.fired),
            ("put with a level", tally.leveled),
            ("acked", tally.acked),
            ("given back", tally.nacked),
            ("redriven", tally.redriven),
            ("handed out again", tally.redelivered),
            ("segments of the log", self.segments),
            ("lost", self.count(Fault::Lost)),
            ("early", self.count(Fault::Early)),
            ("twice", self.count(Fault::Twice)),
            ("any other promise broken", other.count()),
        ];
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED);
        for (name, value) in rows {
            table.add_row([name, &value.to_string()]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        write!(formatter, "{table}")
    }
}
