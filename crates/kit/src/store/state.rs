//! The capability `state`: values by key, of one agent.
//!
//! In: `get`, `set`, `delete` and `keys` of runs, or of the host. Out: values, or errors by name. A value is kept as JSON
//! text in the table `agent_state`. To the host it is a message; a run sends and is sent the text, as its own engine
//! reads and writes JSON sooner. Each call is a transaction; the last write wins.

use std::sync::{Arc, Mutex};

use isolane::{
    Completion, HostError, NativeAnswer, NativeCall, NativeFunction, NativeMode, NativeRun, Value,
    value::{Event, Str, Writer},
};
use rusqlite::{
    Connection, OptionalExtension, params,
    types::{ToSql, ToSqlOutput, ValueRef},
};

use super::{
    SHORT_BYTES, Store,
    agent::{Failure, writing},
    json_text, locked, no_room,
    read_values::ReadValues,
};
use crate::{
    json_form::{ParseFault, check_json, parse_json},
    room::{self, Room},
};

/// The limits of a [`State`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// The most bytes of a key. 1 KiB.
    pub max_key_bytes: u64,
    /// The most bytes of a value's JSON text. 1 MiB.
    pub max_value_bytes: u64,
    /// The most bytes of all keys and values of the agent. 64 MiB.
    pub max_total_bytes: u64,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self { max_key_bytes: 1 << 10, max_value_bytes: 1 << 20, max_total_bytes: 64 << 20 }
    }
}

/// The state of an agent. All clones are one.
#[derive(Clone)]
pub struct State(Arc<Inner>);

struct Inner {
    store: Store,
    limits: StateLimits,
    /// The bytes of all rows of the agent, and the version of the database for which that holds.
    total: Mutex<Option<Total>>,
    read: ReadValues,
}

#[derive(Clone, Copy)]
struct Total {
    bytes: u64,
    /// Changes when another connection writes.
    version: i64,
}

/// A function of `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateFunction {
    /// `get(key)`: the value, or `null`
    Get,
    /// `set(key, value)`
    Set,
    /// `delete(key)`: whether there was one
    Delete,
    /// `keys(prefix?)`: the keys in the order of their bytes
    Keys,
}

impl StateFunction {
    const ALL: [Self; 4] = [Self::Get, Self::Set, Self::Delete, Self::Keys];

    /// The names in records and in the sandbox: `state.get`, `get`.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Get => ("state.get", "get"),
            Self::Set => ("state.set", "set"),
            Self::Delete => ("state.delete", "delete"),
            Self::Keys => ("state.keys", "keys"),
        }
    }
}

impl State {
    /// The state of the store's agent.
    #[must_use]
    pub fn new(store: &Store, limits: StateLimits) -> Self {
        let (store, total, read) = (store.clone(), Mutex::new(None), ReadValues::default());
        Self(Arc::new(Inner { store, limits, total, read }))
    }

    /// The functions for the sandbox, by their names in `state`. Values are JSON texts there: `get(key)` gives the text
    /// or `null`, and `set(key, text)` takes it. Code around them parses and writes JSON.
    #[must_use]
    pub fn functions(&self) -> [(&'static str, Arc<dyn NativeFunction>); 4] {
        StateFunction::ALL.map(|function| -> (_, Arc<dyn NativeFunction>) {
            (function.names().1, Arc::new(Native { state: self.clone(), function }))
        })
    }

    /// Calls a function for the host: `args` is the array of its arguments, and values are values. The future runs in
    /// tokio, with its clock; dropping it stops the call.
    ///
    /// # Errors
    /// The error that the sandbox would be thrown.
    pub async fn call(&self, function: StateFunction, args: Value) -> Completion {
        self.begin(function, args, None).await
    }

    fn begin(
        &self,
        function: StateFunction,
        args: Value,
        run: Option<NativeRun>,
    ) -> impl Future<Output = Completion> + Send + use<> {
        let inner = Arc::clone(&self.0);
        let form = if run.is_some() { Form::Text } else { Form::Value };
        let done = self.0.store.call(run, "State", move |sqlite, agent, room| {
            inner.answer(sqlite, agent, function, &args, form, room)
        });
        async move {
            // The charges of the room end when the answer is handed over.
            done.await.map(|(answer, _room)| answer).map_err(super::thrown)
        }
    }
}

impl State {
    /// Answers a call of `get` whose value was read before.
    fn known(&self, function: StateFunction, args: &Value) -> Option<Value> {
        if function != StateFunction::Get || !self.0.store.is_in_memory() {
            return None;
        }
        let mut reader = args.reader();
        let (Ok(Event::Array(_)), Ok(Event::String(Str::Utf8(key)))) =
            (reader.event(), reader.event())
        else {
            return None;
        };
        let text = self.0.store.while_free(|| self.0.read.get(key))?;
        let mut writer = Writer::new();
        writer.string(&text);
        Some(writer.finish())
    }

    /// Serves a call of one key at once, if it is short and the connection is free.
    fn at_once(
        &self,
        function: StateFunction,
        call: &NativeCall,
    ) -> Option<Result<Value, HostError>> {
        let writes = match function {
            StateFunction::Get => false,
            StateFunction::Set | StateFunction::Delete => true,
            StateFunction::Keys => return None,
        };
        if call.args.held_bytes() > SHORT_BYTES {
            return None;
        }
        self.0.store.at_once(&call.run, "State", writes, |sqlite, agent, room| {
            self.0.answer(sqlite, agent, function, &call.args, Form::Text, room)
        })
    }
}

/// How a value crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As JSON text.
    Text,
    /// As itself.
    Value,
}

/// A function of `state` for the sandbox.
struct Native {
    state: State,
    function: StateFunction,
}

impl NativeFunction for Native {
    fn name(&self) -> &str {
        self.function.names().0
    }

    fn mode(&self) -> NativeMode {
        NativeMode::Async
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        if let Some(value) = self.state.known(self.function, &call.args) {
            return Ok(value).into();
        }
        if let Some(done) = self.state.at_once(self.function, &call) {
            return done.map_err(super::thrown).into();
        }
        NativeAnswer::later(self.state.begin(self.function, call.args, Some(call.run)))
    }
}

impl Inner {
    fn answer(
        &self,
        sqlite: &Connection,
        agent: &str,
        function: StateFunction,
        args: &Value,
        form: Form,
        room: &mut dyn Room,
    ) -> Result<Value, Failure> {
        // They are copied once more for their text, and once for SQLite.
        if !room.take(args.held_bytes().saturating_mul(2)) {
            return Err(no_room().into());
        }
        let args = room::elements(args, room).ok_or_else(|| wrong_key(function))?;
        let first = args.first();
        match function {
            StateFunction::Get => self.get(sqlite, agent, &self.key(first, function)?, form, room),
            StateFunction::Set => {
                let key = self.key(first, function)?;
                let text = self.text(args.get(1), form, room)?;
                self.set(sqlite, agent, &key, &text)?;
                Ok(Value::undefined())
            }
            StateFunction::Delete => {
                let is_there = self.delete(sqlite, agent, &self.key(first, function)?)?;
                let mut writer = Writer::new();
                writer.bool(is_there);
                Ok(writer.finish())
            }
            StateFunction::Keys => {
                let is_given = first.is_some_and(|value| *value != Value::undefined());
                let prefix = if is_given { self.key(first, function)? } else { String::new() };
                keys(sqlite, agent, &prefix, room)
            }
        }
    }

    /// A key among the arguments.
    fn key(&self, value: Option<&Value>, function: StateFunction) -> Result<String, Failure> {
        let event = value.map(|value| value.reader().event());
        let Some(Ok(Event::String(Str::Utf8(key)))) = event else {
            return Err(wrong_key(function));
        };
        if key.len() as u64 > self.limits.max_key_bytes {
            return Err(limit("the key is", self.limits.max_key_bytes));
        }
        Ok(key.to_owned())
    }

    /// The JSON text of a value.
    fn text(
        &self,
        value: Option<&Value>,
        form: Form,
        room: &mut dyn Room,
    ) -> Result<String, Failure> {
        let wrong = |text: &str| HostError::new("TypeError", text);
        let no_value = || wrong("state.set takes a value that is not undefined");
        let value = value.ok_or_else(no_value)?;
        let text = match (value.reader().event(), form) {
            (Ok(Event::Undefined), _) => return Err(no_value().into()),
            (Ok(Event::HostFunction(_) | Event::SandboxFunction(_)), Form::Value) => {
                return Err(wrong("state.set takes a value that is no function").into());
            }
            (_, Form::Value) => json_text(value, "value", room)?,
            (Ok(Event::String(Str::Utf8(text))), Form::Text) => {
                self.check_length(text)?;
                check_json(text, room).map_err(|fault| match fault {
                    ParseFault::NoRoom => no_room(),
                    ParseFault::Malformed(_) => wrong("state.set takes JSON text"),
                })?;
                text.to_owned()
            }
            (_, Form::Text) => return Err(wrong("state.set takes JSON text").into()),
        };
        self.check_length(&text)?;
        Ok(text)
    }

    fn check_length(&self, text: &str) -> Result<(), Failure> {
        if text.len() as u64 > self.limits.max_value_bytes {
            return Err(limit("the value is", self.limits.max_value_bytes));
        }
        Ok(())
    }

    fn get(
        &self,
        sqlite: &Connection,
        agent: &str,
        key: &str,
        form: Form,
        room: &mut dyn Room,
    ) -> Result<Value, Failure> {
        let mut statement = sqlite
            .prepare_cached("SELECT value FROM agent_state WHERE agent_id = ?1 AND key = ?2")?;
        let mut rows = statement.query(params![agent, key])?;
        let mut writer = Writer::new();
        let Some(row) = rows.next()? else {
            writer.null();
            return Ok(writer.finish());
        };
        let text = row.get_ref(0)?;
        let text = text.as_str().map_err(|_| foreign(key))?;
        let failed = |fault| match fault {
            ParseFault::NoRoom => no_room().into(),
            ParseFault::Malformed(_) => foreign(key),
        };
        if form == Form::Value {
            return parse_json(text, room).map_err(failed);
        }
        check_json(text, room).map_err(failed)?;
        // The message has room for twice its bytes while it grows, and its reader copies them.
        if !room.take(64 + 3 * text.len()) {
            return Err(no_room().into());
        }
        if self.store.is_in_memory() {
            self.read.keep(key, text);
        }
        writer.string(text);
        Ok(writer.finish())
    }

    fn set(&self, sqlite: &Connection, agent: &str, key: &str, text: &str) -> Result<(), Failure> {
        self.read.forget(key);
        let total = writing(sqlite, || {
            let total = self.total(sqlite, agent)?;
            let row = (key.len() + text.len()) as u64;
            let before = row_bytes(sqlite, agent, key)?.unwrap_or(0);
            let bytes = (total.bytes + row).saturating_sub(before);
            if bytes > self.limits.max_total_bytes && row > before {
                return Err(limit("the state would be", self.limits.max_total_bytes));
            }
            sqlite
                .prepare_cached(
                    "INSERT INTO agent_state (agent_id, key, value, modified_on)
                     VALUES (?1, ?2, ?3, strftime('%Y-%m-%dT%H:%M:%fZ'))
                     ON CONFLICT (agent_id, key)
                     DO UPDATE SET value = excluded.value, modified_on = excluded.modified_on",
                )?
                .execute(params![agent, key, text])?;
            Ok(Total { bytes, ..total })
        })?;
        *locked(&self.total) = Some(total);
        Ok(())
    }

    fn delete(&self, sqlite: &Connection, agent: &str, key: &str) -> Result<bool, Failure> {
        self.read.forget(key);
        let (is_there, total) = writing(sqlite, || {
            let total = self.total(sqlite, agent)?;
            let bytes = row_bytes(sqlite, agent, key)?.unwrap_or(0);
            let deleted = sqlite
                .prepare_cached("DELETE FROM agent_state WHERE agent_id = ?1 AND key = ?2")?
                .execute(params![agent, key])?;
            Ok((deleted > 0, Total { bytes: total.bytes.saturating_sub(bytes), ..total }))
        })?;
        *locked(&self.total) = Some(total);
        Ok(is_there)
    }

    /// The bytes of all rows. They are added up anew if another connection has written.
    fn total(&self, sqlite: &Connection, agent: &str) -> Result<Total, Failure> {
        let version = sqlite
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |row| row.get::<_, i64>(0))?;
        if let Some(total) = locked(&self.total).filter(|total| total.version == version) {
            return Ok(total);
        }
        let bytes: i64 = sqlite
            .prepare_cached(
                "SELECT coalesce(sum(octet_length(key) + octet_length(value)), 0)
                 FROM agent_state WHERE agent_id = ?1",
            )?
            .query_row([agent], |row| row.get(0))?;
        Ok(Total { bytes: bytes.unsigned_abs(), version })
    }
}

fn wrong_key(function: StateFunction) -> Failure {
    let text = match function {
        StateFunction::Keys => {
            "state.keys takes a prefix, a well-formed string, or nothing".to_owned()
        }
        _ => format!("{} takes a key, a well-formed string, first", function.names().0),
    };
    HostError::new("TypeError", text).into()
}

fn limit(subject: &str, most_bytes: u64) -> Failure {
    HostError::new("StateLimit", format!("{subject} larger than {most_bytes} bytes")).into()
}

/// Another program wrote a value that is no JSON.
fn foreign(key: &str) -> Failure {
    HostError::new("StateError", format!("the value of '{key}' is no JSON")).into()
}

fn row_bytes(sqlite: &Connection, agent: &str, key: &str) -> rusqlite::Result<Option<u64>> {
    let mut statement = sqlite.prepare_cached(
        "SELECT octet_length(key) + octet_length(value) FROM agent_state
         WHERE agent_id = ?1 AND key = ?2",
    )?;
    let bytes = statement.query_row(params![agent, key], |row| row.get::<_, i64>(0)).optional()?;
    Ok(bytes.map(i64::unsigned_abs))
}

/// Text that may be no UTF-8, for a comparison.
struct Bytes(Vec<u8>);

impl ToSql for Bytes {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(&self.0)))
    }
}

fn keys(
    sqlite: &Connection,
    agent: &str,
    prefix: &str,
    room: &mut dyn Room,
) -> Result<Value, Failure> {
    // The first text behind all those with the prefix: no byte of UTF-8 is 255.
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    let mut statement = sqlite.prepare_cached(
        "SELECT key FROM agent_state WHERE agent_id = ?1 AND key >= ?2 AND (?2 = '' OR key < ?3)
         ORDER BY key",
    )?;
    let mut rows = statement.query(params![agent, prefix, Bytes(end)])?;
    let mut writer = Writer::new();
    let place = writer.open_array();
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?;
        let key = String::from_utf8_lossy(key.as_bytes().unwrap_or_default());
        if !room.take(64 + 3 * key.len()) {
            return Err(no_room().into());
        }
        writer.string(&key);
        count += 1;
    }
    writer.close_array(place, count);
    Ok(writer.finish())
}
