//! The libraries of an agent: sources that its code may `require`.
//!
//! In: names and sources that the caller has parsed. Out: rows of the table `agent_libraries`, and their sources for
//! `require`.

use std::{borrow::Cow, sync::Arc};

use isolane::{
    HostError, Language, NativeAnswer, NativeCall, NativeFunction, Value, value::Writer,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use tokio::runtime::Handle;

use super::{
    Store,
    agent::{Failure, writing},
    no_room,
};
use crate::room::Room;

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

    /// The function `library(name)` for the sandbox: `{ source, language }` of the library that code requires. Code around
    /// it compiles and caches libraries. It throws a RequireError if there is none of that name.
    #[must_use]
    pub fn function(&self) -> Arc<dyn NativeFunction> {
        Arc::new(Require(self.clone()))
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

/// The function `library` for the sandbox.
struct Require(Libraries);

impl NativeFunction for Require {
    fn name(&self) -> &'static str {
        "require"
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        const KIND: &str = "Require";
        let wrong = || HostError::new("TypeError", "require takes the name of a library");
        let Ok(Arguments { name, refusal }) = call.arguments() else {
            return Err(super::thrown(wrong())).into();
        };
        if let Some(refusal) = refusal {
            return Err(super::thrown(HostError::new("RequireError", refusal))).into();
        }
        let store = &self.0.store;
        let done = store.at_once(&call.run, KIND, false, |sqlite, agent, room| {
            required(sqlite, agent, &name, room)
        });
        if let Some(done) = done {
            return done.map_err(super::thrown).into();
        }
        let done = store.call(Some(call.run), KIND, move |sqlite, agent, room| {
            required(sqlite, agent, &name, room)
        });
        NativeAnswer::blocking(move || {
            let done = Handle::current().block_on(done);
            done.map(|(library, _room)| library).map_err(super::thrown)
        })
    }
}

/// The arguments of `library`.
#[derive(Deserialize)]
struct Arguments {
    name: String,
    /// Why the realm does not read it: libraries require each other, or nest too deeply.
    #[serde(default)]
    refusal: Option<String>,
}

/// The library that code requires, as a message.
fn required(
    sqlite: &Connection,
    agent: &str,
    name: &str,
    room: &mut dyn Room,
) -> Result<Value, Failure> {
    let mut found = sqlite.prepare_cached(
        "SELECT source, language FROM agent_libraries WHERE agent_id = ?1 AND name = ?2",
    )?;
    let mut rows = found.query(params![agent, name])?;
    let Some(row) = rows.next()? else {
        let names = some_names(sqlite, agent)?;
        let shown: String = name.chars().take(MOST_NAME_BYTES).collect();
        let text = format!("Cannot find library '{shown}'; libraries: {names}");
        return Err(HostError::new("RequireError", text).into());
    };
    let source = row.get_ref(0)?.as_bytes().unwrap_or_default();
    // To look for what is no UTF-8 takes forty times as long.
    let source =
        str::from_utf8(source).map_or_else(|_| String::from_utf8_lossy(source), Cow::Borrowed);
    // The message has room for twice its bytes while it grows, and its reader copies them.
    if !room.take(3 * source.len() + 512) {
        return Err(no_room().into());
    }
    let language = language_of(&row.get::<_, String>(1)?);
    let mut writer = Writer::new();
    writer.object();
    writer.key("source");
    writer.string(&source);
    writer.key("language");
    writer.string(text_of(language));
    writer.end_object();
    Ok(writer.finish())
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

/// TypeScript includes JavaScript, so any other text of another program is read as that.
fn language_of(text: &str) -> Language {
    if text == "javascript" { Language::JavaScript } else { Language::TypeScript }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<LibrarySummary> {
    Ok(LibrarySummary {
        name: row.get(0)?,
        language: language_of(&row.get::<_, String>(1)?),
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
