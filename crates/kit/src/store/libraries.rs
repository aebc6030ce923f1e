//! The libraries of an agent: sources that its code may `require`.
//!
//! In: names and sources that the caller has parsed. Out: rows of the table `agent_libraries`, and their sources for
//! `require`.

use std::sync::Arc;

use isolane::{HostError, Language};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Store,
    agent::{Failure, writing},
};

/// The most names in an error.
const SHOWN: usize = 10;

/// The longest name, bytes.
const MOST_NAME_BYTES: usize = 64;

/// The limits of [`Libraries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryLimits {
    /// The most bytes of a source. 256 KiB.
    pub max_source_bytes: u64,
    /// The most libraries of an agent. 1,000.
    pub max_count: u64,
}

impl Default for LibraryLimits {
    fn default() -> Self {
        Self { max_source_bytes: 256 << 10, max_count: 1_000 }
    }
}

/// A library without its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibrarySummary {
    /// The name, by which code requires it.
    pub name: String,
    /// The language of the source.
    pub language: Language,
    /// The description; empty if there is none.
    pub description: String,
    /// The time of the last change, as ISO 8601 has it, in UTC.
    pub modified_on: String,
}

/// A library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// All but the source.
    pub summary: LibrarySummary,
    /// The source.
    pub source: String,
}

/// The libraries of an agent. All clones are one. Futures run in tokio, with its clock; dropping one stops its call.
#[derive(Clone)]
pub struct Libraries {
    store: Store,
    limits: Arc<LibraryLimits>,
}

impl Libraries {
    /// The libraries of the store's agent.
    #[must_use]
    pub fn new(store: &Store, limits: LibraryLimits) -> Self {
        Self { store: store.clone(), limits: Arc::new(limits) }
    }

    /// Adds a library, whose source the caller has parsed.
    ///
    /// # Errors
    /// The name is none or known; the source is too large; there are too many libraries.
    pub async fn create(
        &self,
        name: &str,
        source: &str,
        language: Language,
        description: &str,
    ) -> Result<(), HostError> {
        self.check(name, source)?;
        let (name, source) = (name.to_owned(), source.to_owned());
        let description = description.to_owned();
        let most = self.limits.max_count;
        self.call(move |sqlite, agent| {
            writing(sqlite, || {
                if find(sqlite, agent, &name)?.is_some() {
                    return Err(refused(format!("there is a library '{name}' already")));
                }
                let count: i64 = sqlite.query_row(
                    "SELECT count(*) FROM agent_libraries WHERE agent_id = ?1",
                    [agent],
                    |row| row.get(0),
                )?;
                if count.unsigned_abs() >= most {
                    return Err(refused(format!("there are already {most} libraries")));
                }
                sqlite.execute(
                    "INSERT INTO agent_libraries
                     VALUES (?1, ?2, ?3, ?4, ?5, strftime('%Y-%m-%dT%H:%M:%fZ'))",
                    params![agent, name, source, text_of(language), description],
                )?;
                Ok(())
            })
        })
        .await
    }

    /// Changes a library. Without a description it keeps its own.
    ///
    /// # Errors
    /// There is no library of that name; the source is too large.
    pub async fn update(
        &self,
        name: &str,
        source: &str,
        language: Language,
        description: Option<&str>,
    ) -> Result<(), HostError> {
        self.check(name, source)?;
        let (name, source) = (name.to_owned(), source.to_owned());
        let description = description.map(str::to_owned);
        self.call(move |sqlite, agent| {
            let changed = sqlite.execute(
                "UPDATE agent_libraries
                 SET source = ?3, language = ?4, description = coalesce(?5, description),
                     modified_on = strftime('%Y-%m-%dT%H:%M:%fZ')
                 WHERE agent_id = ?1 AND name = ?2",
                params![agent, name, source, text_of(language), description],
            )?;
            if changed == 0 {
                Err(refused(format!("there is no library '{name}'")))
            } else {
                Ok(())
            }
        })
        .await
    }

    /// Deletes a library; returns whether there was one.
    ///
    /// # Errors
    /// The database cannot be written in time.
    pub async fn delete(&self, name: &str) -> Result<bool, HostError> {
        let name = name.to_owned();
        self.call(move |sqlite, agent| {
            let sql = "DELETE FROM agent_libraries WHERE agent_id = ?1 AND name = ?2";
            Ok(sqlite.execute(sql, params![agent, name])? > 0)
        })
        .await
    }

    /// The library of that name.
    ///
    /// # Errors
    /// The database cannot be read in time.
    pub async fn get(&self, name: &str) -> Result<Option<Library>, HostError> {
        let name = name.to_owned();
        self.call(move |sqlite, agent| Ok(find(sqlite, agent, &name)?)).await
    }

    /// All libraries by name, without their sources.
    ///
    /// # Errors
    /// The database cannot be read in time.
    pub async fn list(&self) -> Result<Vec<LibrarySummary>, HostError> {
        self.call(|sqlite, agent| {
            let mut listed = sqlite.prepare_cached(
                "SELECT name, language, description, modified_on FROM agent_libraries
                 WHERE agent_id = ?1 ORDER BY name",
            )?;
            let rows = listed.query_map([agent], summary)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// The library that code requires.
    ///
    /// # Errors
    /// `RequireError`: there is none of that name. The message has the names of some.
    pub async fn require(&self, name: &str) -> Result<Library, HostError> {
        let name = name.to_owned();
        self.call(move |sqlite, agent| {
            if let Some(library) = find(sqlite, agent, &name)? {
                return Ok(library);
            }
            let names = some_names(sqlite, agent)?;
            let shown: String = name.chars().take(MOST_NAME_BYTES).collect();
            let text = format!("Cannot find library '{shown}'; libraries: {names}");
            Err(HostError::new("RequireError", text).into())
        })
        .await
    }

    fn check(&self, name: &str, source: &str) -> Result<(), HostError> {
        if !is_name(name) {
            let text = "a library's name is 1 to 64 letters of ASCII, digits, '_', '.' and '-'; it begins with none of the last two";
            return Err(HostError::new("TypeError", text));
        }
        let most = self.limits.max_source_bytes;
        if source.len() as u64 > most {
            let text = format!("the source of '{name}' is larger than {most} bytes");
            return Err(HostError::new("LibraryError", text));
        }
        Ok(())
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &str) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, HostError> {
        let called = self.store.call(None, "Library", |sqlite, agent, _| work(sqlite, agent));
        called.await.map(|(done, _room)| done)
    }
}

fn refused(text: String) -> Failure {
    HostError::new("LibraryError", text).into()
}

/// `[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}`
fn is_name(name: &str) -> bool {
    name.len() <= MOST_NAME_BYTES
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        && name.bytes().next().is_some_and(|first| !matches!(first, b'.' | b'-'))
}

fn text_of(language: Language) -> &'static str {
    match language {
        Language::JavaScript => "javascript",
        Language::TypeScript => "typescript",
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<LibrarySummary> {
    let language: String = row.get(1)?;
    Ok(LibrarySummary {
        name: row.get(0)?,
        // TypeScript includes JavaScript, so any other text of another program is read as that.
        language: if language == "javascript" {
            Language::JavaScript
        } else {
            Language::TypeScript
        },
        description: row.get(2)?,
        modified_on: row.get(3)?,
    })
}

fn find(sqlite: &Connection, agent: &str, name: &str) -> rusqlite::Result<Option<Library>> {
    let mut found = sqlite.prepare_cached(
        "SELECT name, language, description, modified_on, source FROM agent_libraries
         WHERE agent_id = ?1 AND name = ?2",
    )?;
    let library = |row: &Row<'_>| Ok(Library { summary: summary(row)?, source: row.get(4)? });
    found.query_row(params![agent, name], library).optional()
}

/// The first names, quoted; one more shows that there are others.
fn some_names(sqlite: &Connection, agent: &str) -> rusqlite::Result<String> {
    let mut listed = sqlite.prepare_cached(
        "SELECT name FROM agent_libraries WHERE agent_id = ?1 ORDER BY name LIMIT ?2",
    )?;
    let most = i64::try_from(SHOWN + 1).unwrap_or(i64::MAX);
    let names = listed.query_map(params![agent, most], |row| row.get::<_, String>(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    Ok(if shown.is_empty() { "none".to_owned() } else { shown.join(", ") })
}
