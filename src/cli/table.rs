//! Aligned columns, and blocks of one fact a line.

use std::io::{self, Write};

use super::terminal::{cut, plain, width};

const GAP: &str = "  ";
/// A column that is neither the last nor of names is cut at this.
const WIDEST: usize = 30;
/// A line is cut at this.
const LINE: usize = 100;

/// Rows under a heading, all of as many cells. The last column takes what is left of the line.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    heading: [&'static str; N],
    /// So many columns, from the left, are names.
    names: usize,
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(heading: [&'static str; N]) -> Self {
        Self::of_names(0, heading)
    }

    /// A table whose first columns are names, which are never cut: they are there to be copied.
    pub(super) fn of_names(names: usize, heading: [&'static str; N]) -> Self {
        Self { heading, names, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| plain(&cell).into_owned()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Writes heading and rows, nothing when there are none. Columns in which every cell is empty are
    /// left out.
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let shown: Vec<usize> =
            (0..N).filter(|&column| self.rows.iter().any(|row| !row[column].is_empty())).collect();
        let widths: Vec<usize> = shown.iter().map(|&column| self.width(column)).collect();
        let heading = self.heading.map(str::to_owned);
        for row in std::iter::once(&heading).chain(&self.rows) {
            let mut line = String::new();
            let mut left = LINE;
            for (place, (&column, &columns)) in shown.iter().zip(&widths).enumerate() {
                let is_last = place + 1 == shown.len();
                let least = width(self.heading[column]).max(8);
                let text = cut(&row[column], if is_last { left.max(least) } else { columns });
                line.push_str(&text);
                if !is_last {
                    let padding = columns.saturating_sub(width(&text));
                    line.push_str(&" ".repeat(padding));
                    line.push_str(GAP);
                    left = left.saturating_sub(columns + GAP.len());
                }
            }
            writeln!(output, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| width(&row[column]));
        let widest = if column < self.names { usize::MAX } else { WIDEST };
        cells.max().unwrap_or(0).min(widest).max(width(self.heading[column]))
    }
}

/// One fact a line: its name, and what it is. What is longer than a line is shown whole: it was asked for.
#[derive(Debug, Default)]
pub(super) struct Facts(Vec<(&'static str, String)>);

impl Facts {
    pub(super) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }

    /// Adds a fact that may be missing.
    pub(super) fn add_if(&mut self, name: &'static str, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let widest = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.0 {
            writeln!(output, "{name:widest$}{GAP}{}", plain(value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(["ID", "TAG", "KEYS", "BODY"]);
        table.row(["a".into(), String::new(), "日本".into(), "x\ny".into()]);
        table.row(["long id".into(), String::new(), String::new(), String::new()]);
        let expected = "ID       KEYS  BODY\na        日本  x\\ny\nlong id\n";
        assert_eq!(written(|output| table.write(output)), expected);
        assert_eq!(written(|output| Table::new(["ID"]).write(output)), "");
    }

    #[test]
    fn no_line_is_longer_than_a_hundred_columns() {
        let mut table = Table::new(["A", "B", "C"]);
        table.row(["a".repeat(50), "b".repeat(50), "c".repeat(500)]);
        let text = written(|output| table.write(output));
        let row = text.lines().nth(1).unwrap();
        assert_eq!(width(row), 100);
        assert!(row.ends_with("c…"), "{row}");
    }

    #[test]
    fn names_are_never_cut() {
        let mut table = Table::of_names(1, ["NAME", "A", "RETENTION"]);
        table.row(["n".repeat(95), "a".repeat(50), "7d".to_owned()]);
        let text = written(|output| table.write(output));
        let expected = format!("{}  {}…  7d", "n".repeat(95), "a".repeat(29));
        assert_eq!(text.lines().nth(1), Some(expected.as_str()));
        assert!(text.starts_with("NAME ") && text.contains("  RETENTION\n"), "{text}");
    }

    #[test]
    fn facts_stand_below_each_other() {
        let mut facts = Facts::default();
        facts.add("id", "a");
        facts.add_if("topic", Some("b\u{7}"));
        facts.add_if("tag", None::<String>);
        assert_eq!(written(|output| facts.write(output)), "id     a\ntopic  b\\u{7}\n");
    }
}
