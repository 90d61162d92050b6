//! How far the demo is: a bar on a terminal, a line now and then in a pipe.

use std::io;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::book::{Book, Tally};
use super::report::thousands;

pub(super) const REFRESH: Duration = Duration::from_millis(100);

/// In a pipe, every so many refreshes there is a line.
const REFRESHES_A_LINE: u32 = 50;

#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    refreshes: u32,
}

impl Progress {
    pub(super) fn start(orders: usize) -> Self {
        let style =
            ProgressStyle::with_template("{elapsed:>4} {bar:40.cyan/dim} {percent:>3}% {msg}")
                .expect("the template is a constant that is shown by every run");
        let bar = ProgressBar::new(orders as u64).with_style(style.progress_chars("━╸─"));
        Self { bar, refreshes: 0 }
    }

    pub(super) fn show(&mut self, book: &Book, output: &mut impl io::Write) -> io::Result<()> {
        if !self.bar.is_hidden() {
            self.bar.set_position(book.settled() as u64);
            self.bar.set_message(line(&book.tally()));
        } else if self.refreshes.is_multiple_of(REFRESHES_A_LINE) && self.refreshes > 0 {
            self.line(book, output)?;
        }
        self.refreshes += 1;
        Ok(())
    }

    pub(super) fn finish(&self, book: &Book, output: &mut impl io::Write) -> io::Result<()> {
        if self.bar.is_hidden() {
            self.line(book, output)
        } else {
            self.bar.set_position(book.settled() as u64);
            self.bar.set_message(line(&book.tally()));
            self.bar.abandon();
            Ok(())
        }
    }

    fn line(&self, book: &Book, output: &mut impl io::Write) -> io::Result<()> {
        writeln!(output, "{:>4} s  {}", self.bar.elapsed().as_secs(), line(&book.tally()))?;
        output.flush()
    }
}

fn line(tally: &Tally) -> String {
    let Tally { scheduled, cancelled, fired, .. } = tally;
    let [scheduled, cancelled, fired] = [*scheduled, *cancelled, *fired].map(thousands);
    format!("scheduled {scheduled}, cancelled {cancelled}, fired {fired}")
}
