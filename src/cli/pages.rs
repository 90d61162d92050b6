//! Lists that the server gives a page at a time.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::arguments::{Common, Output, Paging};
use super::remote::{Good, Remote, query};
use super::table::Table;
use super::{CliError, Io};
use crate::clock::Timestamp;

/// So many on a page when all pages are wanted: the most that there can be.
const LARGEST_PAGE: u64 = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    items: Vec<T>,
    next_cursor: Option<String>,
}

/// A list of the server's, and how much of it is wanted.
#[derive(Debug)]
pub(super) struct List<'a> {
    pub(super) path: &'a str,
    pub(super) parameters: &'a [(&'a str, Option<&'a str>)],
    pub(super) paging: Paging,
    /// What to say when it is empty.
    pub(super) nothing: &'a str,
}

impl List<'_> {
    /// Shows the first page, or all of them, as `table` has it or as the server wrote it.
    pub(super) async fn show<T: DeserializeOwned, const N: usize>(
        &self,
        common: &Common,
        io: &mut Io<'_>,
        table: impl Fn(&[T], Timestamp) -> Table<N>,
    ) -> Result<(), CliError> {
        let mut remote = Remote::new(&common.url);
        match common.output {
            Output::Table => self.tables(&mut remote, io, table).await,
            Output::Json if self.paging.all => self.document(&mut remote, io).await,
            Output::Json => Ok(self.page(&mut remote, None).await?.write(io.output)?),
        }
    }

    async fn page(&self, remote: &mut Remote, cursor: Option<&str>) -> Result<Good, CliError> {
        let Paging { limit, all } = self.paging;
        let limit = limit.or(all.then_some(LARGEST_PAGE)).map(|limit| limit.to_string());
        let paging = [("limit", limit.as_deref()), ("cursor", cursor)];
        let query = query(&[self.parameters, &paging].concat());
        remote.get(&format!("{}{query}", self.path)).await
    }

    /// Tables, one a page, each written when it is there: there may be more than fits in memory.
    async fn tables<T: DeserializeOwned, const N: usize>(
        &self,
        remote: &mut Remote,
        io: &mut Io<'_>,
        table: impl Fn(&[T], Timestamp) -> Table<N>,
    ) -> Result<(), CliError> {
        let mut cursor = None;
        let mut is_empty = true;
        loop {
            let good = self.page(remote, cursor.as_deref()).await?;
            let page: Page<T> = good.read()?;
            let table = table(&page.items, (io.now)());
            is_empty &= table.is_empty();
            table.write(io.output)?;
            match page.next_cursor {
                Some(next) if self.paging.all => cursor = Some(next),
                Some(_) => {
                    writeln!(io.notes, "horolog: there may be more (--all)")?;
                    return Ok(());
                }
                None if is_empty => return Ok(writeln!(io.notes, "horolog: {}", self.nothing)?),
                None => return Ok(()),
            }
        }
    }

    /// All pages as one, written as they come.
    async fn document(&self, remote: &mut Remote, io: &mut Io<'_>) -> Result<(), CliError> {
        let mut cursor = None;
        let mut separator = "";
        // Nothing is written before the first answer: a refusal leaves no half a document.
        let mut begin = "{\"items\":[";
        loop {
            let good = self.page(remote, cursor.as_deref()).await?;
            let page: Page<&RawValue> = good.read()?;
            write!(io.output, "{begin}")?;
            begin = "";
            for item in page.items {
                write!(io.output, "{separator}{item}")?;
                separator = ",";
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(writeln!(io.output, "],\"nextCursor\":null}}")?),
            }
        }
    }
}
