//! How far the demo is: a bar on a terminal, a line now and then in a pipe.

use std::io;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use super::DemoError;

const REFRESH: Duration = Duration::from_millis(100);

/// In a pipe, every so many refreshes there is a line.
const REFRESHES_A_LINE: u32 = 50;

/// What is on record while an act is played.
pub(super) trait Account {
    /// Orders that have come to their end.
    fn settled(&self) -> usize;

    /// The counts so far, in a line.
    fn line(&self) -> String;
}

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

    /// Shows how far it is until all `parts` have ended.
    pub(super) async fn follow(
        mut self,
        parts: &mut JoinSet<Result<(), DemoError>>,
        account: &impl Account,
        output: &mut impl io::Write,
    ) -> Result<(), DemoError> {
        let mut ticks = tokio::time::interval(REFRESH);
        loop {
            tokio::select! {
                ended = parts.join_next() => match ended {
                    Some(ended) => ended.expect("nobody aborts these tasks, and they do not panic")?,
                    None => break,
                },
                _ = ticks.tick() => self.show(account, output)?,
            }
        }
        Ok(self.finish(account, output)?)
    }

    fn show(&mut self, account: &impl Account, output: &mut impl io::Write) -> io::Result<()> {
        if !self.bar.is_hidden() {
            self.draw(account);
        } else if self.refreshes.is_multiple_of(REFRESHES_A_LINE) && self.refreshes > 0 {
            self.line(account, output)?;
        }
        self.refreshes += 1;
        Ok(())
    }

    fn finish(&self, account: &impl Account, output: &mut impl io::Write) -> io::Result<()> {
        if self.bar.is_hidden() {
            self.line(account, output)
        } else {
            self.draw(account);
            self.bar.abandon();
            Ok(())
        }
    }

    fn draw(&self, account: &impl Account) {
        self.bar.set_position(account.settled() as u64);
        self.bar.set_message(account.line());
    }

    fn line(&self, account: &impl Account, output: &mut impl io::Write) -> io::Result<()> {
        writeln!(output, "{:>4} s  {}", self.bar.elapsed().as_secs(), account.line())?;
        output.flush()
    }
}
