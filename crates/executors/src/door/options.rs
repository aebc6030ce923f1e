//! Options of executors of programs.
//!
//! In: the options that a face was given. Out: executors, or the option that is wrong, in the words of the caller's
//! language.

use std::{path::PathBuf, time::Duration};

use isolane::{
    Error, ErrorKind, OptionDeclaration, OptionKind, Spelling, unknown_name, wrong_type,
};
use isolane_door::Given;

use crate::{
    CodeExecutor as _, ConfinedCodeExecutor, ContainerCodeExecutor, IsolateCodeExecutor,
    LocalCodeExecutor,
};

/// The items of the confinement that may be required.
const ITEMS: [&str; 6] =
    ["privileges", "network", "file_system", "system_calls", "processes", "resources"];

/// The options that are given, by their names in snake case.
pub(super) struct Options<'g> {
    given: Vec<(&'static str, &'g Given)>,
    spelling: Spelling,
}

impl<'g> Options<'g> {
    /// # Errors
    /// Options that are no object; one that is none of these names.
    pub(super) fn read(
        given: &'g Given,
        names: &[&'static str],
        spelling: Spelling,
    ) -> Result<Self, Error> {
        let spelled_names: Vec<String> = names.iter().map(|name| spelled(name, spelling)).collect();
        let fields = match given {
            Given::Object(fields) => fields.as_slice(),
            Given::Undefined => &[],
            other => return Err(wrong_type("options", "an object", &kind(other, spelling))),
        };
        let mut found = Vec::new();
        for (key, value) in fields {
            let Some(at) = spelled_names.iter().position(|name| name == key) else {
                return Err(unknown_name("", key, &spelled_names));
            };
            found.push((names[at], value));
        }
        Ok(Self { given: found, spelling })
    }

    /// For arguments of a call.
    pub(super) fn of_call(spelling: Spelling) -> Self {
        Self { given: Vec::new(), spelling }
    }

    pub(super) fn local(&self) -> Result<LocalCodeExecutor, Error> {
        let mut executor = LocalCodeExecutor::new();
        executor = match self.timeout(executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = self.count("retry_attempts", 0)? {
            executor = executor.with_retry_attempts(attempts);
        }
        if let Some(bytes) = self.count("output_limit_bytes", 1)? {
            executor = executor.with_output_limit(bytes as usize);
        }
        if let Some(interpreter) = self.line("interpreter")? {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = self.lines("args", "strings")? {
            executor = executor.with_args(args);
        }
        for (name, value) in self.pairs("env")? {
            executor = executor.with_env(name, value);
        }
        if self.flag("inherit_env")? == Some(true) {
            executor = executor.with_inherited_env();
        }
        Ok(executor)
    }

    pub(super) fn container(&self) -> Result<ContainerCodeExecutor, Error> {
        let mut executor = ContainerCodeExecutor::default();
        executor.timeout = self.timeout(executor.timeout)?;
        set(&mut executor.retry_attempts, self.count("retry_attempts", 0)?);
        set(&mut executor.pids_limit, self.count("pids_limit", 1)?);
        let bytes = self.count("output_limit_bytes", 1)?.map(|bytes| bytes as usize);
        set(&mut executor.output_limit_bytes, bytes);
        set(&mut executor.image, self.line("image")?);
        set(&mut executor.argv, self.lines("argv", "strings")?);
        set(&mut executor.memory, self.line("memory")?);
        let cpus = match self.get("cpus") {
            Some(Given::Number(number)) => Some(shown(*number)),
            _ => self.line("cpus")?,
        };
        set(&mut executor.cpus, cpus);
        set(&mut executor.user, self.line("user")?);
        set(&mut executor.drop_capabilities, self.flag("drop_capabilities")?);
        set(&mut executor.extra_args, self.lines("extra_args", "strings")?);
        set(&mut executor.output_files, self.flag("output_files")?);
        executor.engine = self.line("engine")?;
        Ok(executor)
    }

    pub(super) fn confined(&self, worker: PathBuf) -> Result<ConfinedCodeExecutor, Error> {
        let mut executor = ConfinedCodeExecutor::new().with_worker(worker);
        executor = match self.timeout(executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = self.count("retry_attempts", 0)? {
            executor = executor.with_retry_attempts(attempts);
        }
        if let Some(pids) = self.count("pids_limit", 1)? {
            executor = executor.with_pids_limit(pids);
        }
        if let Some(bytes) = self.count("output_limit_bytes", 1)? {
            executor = executor.with_output_limit(bytes as usize);
        }
        if let Some(interpreter) = self.line("interpreter")? {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = self.lines("args", "strings")? {
            executor = executor.with_args(args);
        }
        if let Some(memory) = self.line("memory")? {
            executor = executor.with_memory(memory);
        }
        for (name, value) in self.pairs("env")? {
            executor = executor.with_env(name, value);
        }
        for path in self.lines("readable", "paths")?.unwrap_or_default() {
            executor = executor.with_readable(path);
        }
        if let Some(required) = self.lines("required", "strings")? {
            executor = executor.with_required(self.items(required)?);
        }
        Ok(executor)
    }

    /// The executor without its sessions, whose options the binding reads.
    pub(super) fn isolate(&self) -> Result<IsolateCodeExecutor, Error> {
        let mut executor = IsolateCodeExecutor::new();
        executor = match self.timeout(executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = self.count("retry_attempts", 0)? {
            executor = executor.with_retry_attempts(attempts);
        }
        if let Some(bytes) = self.count("output_limit_bytes", 1)? {
            executor = executor.with_output_limit(bytes as usize);
        }
        if let Some(stateful) = self.flag("stateful")? {
            executor = executor.with_stateful(stateful);
        }
        if let Some(show_value) = self.flag("show_value")? {
            executor = executor.with_show_value(show_value);
        }
        Ok(executor)
    }

    /// A text that a program can have as an argument.
    pub(super) fn text(&self, place: &str, given: &Given) -> Result<String, Error> {
        match given {
            Given::Text(text) if text.contains('\0') => {
                Err(range(format!("{place} must not contain NUL")))
            }
            Given::Text(text) => Ok(text.clone()),
            Given::Torn(_) => {
                Err(Error::new(ErrorKind::Type, format!("{place} has a lone surrogate")))
            }
            other => Err(wrong_type(place, "a string", &kind(other, self.spelling))),
        }
    }

    /// The value of an option that is given. In Python `None` is as if not given.
    fn get(&self, name: &'static str) -> Option<&'g Given> {
        let found = self.given.iter().find(|(known, _)| *known == name);
        let is_given = |value: &&Given| match value {
            Given::Undefined => false,
            Given::Null => self.spelling == Spelling::Camel || name == "timeout_ms",
            _ => true,
        };
        found.map(|(_, value)| *value).filter(is_given)
    }

    /// An option's name as the caller's language spells it.
    fn name(&self, name: &'static str) -> String {
        spelled(name, self.spelling)
    }

    fn wrong<T>(&self, name: &'static str, expected: &str, given: &Given) -> Result<T, Error> {
        Err(wrong_type(&self.name(name), expected, &kind(given, self.spelling)))
    }

    fn line(&self, name: &'static str) -> Result<Option<String>, Error> {
        self.get(name).map(|given| self.text(&self.name(name), given)).transpose()
    }

    fn lines(&self, name: &'static str, of: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(given) = self.get(name) else { return Ok(None) };
        let is_python = self.spelling == Spelling::Snake;
        let list = if is_python { "a list" } else { "an array" };
        let items = match given {
            Given::List(items) => items,
            // It is a list of texts for Python.
            Given::Text(_) | Given::Torn(_) | Given::Bytes(_) if is_python => {
                return self.wrong(name, list, given);
            }
            other => return self.wrong(name, &format!("{list} of {of}"), other),
        };
        let is_text = |item: &Given| matches!(item, Given::Text(_) | Given::Torn(_));
        if is_python && !items.iter().all(is_text) {
            return self.wrong(name, &format!("{list} of {of}"), given);
        }
        let name = self.name(name);
        let text = |(index, item)| self.text(&format!("{name}[{index}]"), item);
        items.iter().enumerate().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// Variables. One that is undefined is not set: `process.env` is such an object for TypeScript.
    fn pairs(&self, name: &'static str) -> Result<Vec<(String, String)>, Error> {
        let Some(given) = self.get(name) else { return Ok(Vec::new()) };
        let is_python = self.spelling == Spelling::Snake;
        let expected = if is_python { "a mapping of strings" } else { "an object" };
        let Given::Object(fields) = given else { return self.wrong(name, expected, given) };
        let fields = fields.iter().filter(|(_, value)| *value != Given::Undefined);
        let pair = |(key, value): &(String, Given)| match value {
            Given::Text(_) | Given::Torn(_) => {
                Ok((key.clone(), self.text(&format!("{name}.{key}"), value)?))
            }
            _ if is_python => self.wrong(name, expected, given),
            other => self.text(&format!("{name}.{key}"), other).map(|text| (key.clone(), text)),
        };
        fields.map(pair).collect()
    }

    fn flag(&self, name: &'static str) -> Result<Option<bool>, Error> {
        match self.get(name) {
            None => Ok(None),
            Some(Given::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => self.wrong(name, "a boolean", other),
        }
    }

    /// A whole number.
    fn count(&self, name: &'static str, least: u32) -> Result<Option<u32>, Error> {
        let number = match self.get(name) {
            None => return Ok(None),
            Some(Given::Number(number)) => *number,
            Some(Given::BigInt(digits)) if self.spelling == Spelling::Snake => float(digits),
            Some(other) if self.spelling == Spelling::Snake => {
                return self.wrong(name, "a whole number", other);
            }
            Some(other) => return self.wrong(name, "a number", other),
        };
        if number.fract() != 0.0 || !(f64::from(least)..=MOST_COUNT).contains(&number) {
            let (name, got) = (self.name(name), shown(number));
            let message = if number > MOST_COUNT && number.is_finite() {
                format!("{name} must be a whole number below 2^53, got {got}")
            } else {
                format!("{name} must be a whole number of at least {least}, got {got}")
            };
            return Err(range(message));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
        Ok(Some(number as u32))
    }

    fn timeout(&self, default: Option<Duration>) -> Result<Option<Duration>, Error> {
        let is_python = self.spelling == Spelling::Snake;
        match self.get("timeout_ms") {
            None => Ok(default),
            Some(Given::Null) => Ok(None),
            Some(Given::Number(ms)) => duration(&self.name("timeout_ms"), *ms).map(Some),
            Some(Given::BigInt(digits)) if is_python => {
                duration(&self.name("timeout_ms"), float(digits)).map(Some)
            }
            Some(other) => {
                let expected = if is_python { "a number or None" } else { "a number or null" };
                self.wrong("timeout_ms", expected, other)
            }
        }
    }

    /// The items of that name, by the names that the executor has for them.
    fn items(&self, given: Vec<String>) -> Result<Vec<String>, Error> {
        if self.spelling == Spelling::Snake {
            return Ok(given);
        }
        let names = ITEMS.map(|item| self.name(item));
        let item = |(index, word): (usize, String)| {
            let found = names.iter().position(|name| *name == word);
            found.map(|at| ITEMS[at].to_owned()).ok_or_else(|| {
                let quoted = names.each_ref().map(|name| format!("'{name}'")).join(", ");
                let got = kind(&Given::Text(word), self.spelling);
                wrong_type(&format!("required[{index}]"), &format!("one of {quoted}"), &got)
            })
        };
        given.into_iter().enumerate().map(item).collect()
    }
}

/// A time in milliseconds, whole ones or not. A positive time is at least a nanosecond.
pub(super) fn duration(name: &str, ms: f64) -> Result<Duration, Error> {
    if !ms.is_finite() || ms <= 0.0 {
        let got = shown(ms);
        return Err(range(format!("{name} must be a positive number of milliseconds, got {got}")));
    }
    match Duration::try_from_secs_f64(ms / 1e3) {
        Ok(time) => Ok(time.max(Duration::from_nanos(1))),
        Err(_) => Err(range(format!("{name} is too long a time: {ms:e} milliseconds"))),
    }
}

/// The largest whole number of JavaScript.
const MOST_COUNT: f64 = 9_007_199_254_740_991.0;

/// The number nearest to that of the digits: the largest one, if none is near. An integer is finite.
pub(super) fn float(digits: &str) -> f64 {
    digits.parse::<f64>().unwrap_or(f64::NAN).clamp(f64::MIN, f64::MAX)
}

/// A number as JavaScript shows it.
fn shown(number: f64) -> String {
    match number.to_string().as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        other => other.to_owned(),
    }
}

/// The kind of a value, in the words of a language.
fn kind(given: &Given, spelling: Spelling) -> String {
    if spelling == Spelling::Camel {
        return match given {
            Given::Text(text) if text.encode_utf16().count() <= 32 => {
                // Quotes of JSON, but for the outer ones.
                let json = serde_json::Value::from(text.as_str()).to_string();
                format!("'{}'", &json[1..json.len() - 1])
            }
            Given::Torn(_) => "a string".to_owned(),
            other => other.kind().to_owned(),
        };
    }
    let word = match given {
        Given::Undefined | Given::Null => "NoneType",
        Given::Bool(_) => "bool",
        Given::Number(number) if number.fract() == 0.0 => "int",
        Given::Number(_) => "float",
        Given::BigInt(_) => "int",
        Given::Text(_) | Given::Torn(_) => "str",
        Given::Bytes(_) => "bytes",
        Given::List(_) => "list",
        // A dict whose keys are not all texts is a Map.
        Given::Object(_) | Given::Other("a Map") => "dict",
        Given::Date(_) => "datetime",
        Given::Function(_) => "function",
        Given::Other(kind) => kind,
    };
    word.to_owned()
}

pub(super) fn spelled(name: &'static str, spelling: Spelling) -> String {
    OptionDeclaration { name, kind: OptionKind::Other }.spelled(spelling)
}

fn range(message: String) -> Error {
    Error::new(ErrorKind::Range, message)
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}
