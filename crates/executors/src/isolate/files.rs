//! The module `files` of a call: its input files, and the files that it writes.
//!
//! In: the input files of a call, and calls of four native functions. Out: answers, and the files that were written. All
//! is in memory, within the limits of output files.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use isolane::{
    Charge, Completion, HostError, NativeAnswer, NativeCall, NativeFunction, NativeFunctions,
    NativeRun, Value,
    value::{Event, Str, ViewKind, Writer},
};

use super::session::CallState;
use crate::{ExecFile, checks::check_name};

/// The name of the module.
pub(super) const FILES: &str = "files";

/// The names of its functions.
pub(super) const FUNCTIONS: [&str; 4] = ["list", "read", "readText", "write"];

/// The most files that one call writes, the bytes of each, and of all together.
const MOST_FILES: usize = 64;
const MOST_FILE_BYTES: usize = 8 << 20;
const MOST_TOTAL_BYTES: usize = 32 << 20;

/// The bytes that are copied at once. More are copied by another thread than that which serves all runs.
const MOST_BYTES_AT_ONCE: usize = 64 << 10;

/// The names that are listed at once.
const MOST_NAMES_AT_ONCE: usize = 500;

/// The longest name that is read. It is refused before it is copied.
const MOST_NAME_BYTES: usize = 4096;

/// The most names that an error lists.
const MOST_LISTED: usize = 20;

/// The files of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Files(Arc<Mutex<Folder>>);

#[derive(Debug, Default)]
struct Folder {
    given: BTreeMap<String, Arc<Vec<u8>>>,
    written: BTreeMap<String, Written>,
    total_bytes: usize,
}

#[derive(Debug)]
struct Written {
    content: Arc<Vec<u8>>,
    /// Counts the bytes against the memory limit of the session.
    _charge: Charge,
}

impl Files {
    /// The folder of a call that begins with those files.
    pub(super) fn new(given: Vec<ExecFile>) -> Self {
        let given = given.into_iter().map(|file| (file.name, Arc::new(file.content))).collect();
        Self(Arc::new(Mutex::new(Folder { given, ..Folder::default() })))
    }

    /// The call is over. The files that it wrote, in the order of their names.
    pub(super) fn end(&self) -> Vec<ExecFile> {
        let Folder { given, written, .. } = std::mem::take(&mut *self.folder());
        let is_new = |(name, file): &(String, Written)| {
            !name.starts_with('.') && given.get(name) != Some(&file.content)
        };
        let file = |(name, Written { content, .. })| {
            let content = Arc::try_unwrap(content).unwrap_or_else(|shared| shared.to_vec());
            ExecFile { name, content, mime_type: None }
        };
        written.into_iter().filter(is_new).map(file).collect()
    }

    fn folder(&self) -> MutexGuard<'_, Folder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the functions of the module: their numbers in the table of a session.
pub(super) fn write_functions(native: &NativeFunctions, out: &mut Writer) {
    // The same functions for all sessions: a binding's sessions may share a table.
    static SHARED: LazyLock<[Arc<dyn NativeFunction>; FUNCTIONS.len()]> =
        LazyLock::new(|| FUNCTIONS.map(|name| Arc::new(FilesFunction(name)) as _));
    for function in &*SHARED {
        out.host_function(native.number(function));
        out.string(function.name());
    }
}

/// A function of the module, by its name. The files are those of the call whose code calls it.
struct FilesFunction(&'static str);

impl NativeFunction for FilesFunction {
    fn name(&self) -> &str {
        self.0
    }

    fn call(&self, call: NativeCall) -> NativeAnswer {
        let NativeCall { args, run } = call;
        let Some(files) = CallState::of(&run).map(|call| call.files.clone()) else {
            return Err(HostError::new("Error", "no call is running").to_value()).into();
        };
        match self.0 {
            "list" => {
                let is_long = files.folder().given.len() > MOST_NAMES_AT_ONCE;
                let list = move || Ok(files.folder().list());
                if is_long { NativeAnswer::blocking(list) } else { list().into() }
            }
            "write" => {
                let is_long = args.held_bytes() > MOST_BYTES_AT_ONCE;
                let write = move || write(&files, &args, &run);
                if is_long { NativeAnswer::blocking(write) } else { write().into() }
            }
            name => read(&files, &args, name == "readText"),
        }
    }
}

fn read(files: &Files, args: &Value, as_text: bool) -> NativeAnswer {
    let content = name_of(args).and_then(|(name, _)| files.folder().find(&name));
    let content = match content {
        Ok(content) => content,
        Err(thrown) => return Err(thrown).into(),
    };
    let is_long = content.len() > MOST_BYTES_AT_ONCE;
    let answer = move || {
        let mut writer = Writer::new();
        if as_text {
            writer.string(&String::from_utf8_lossy(&content));
        } else {
            let blob = writer.blob(content.to_vec());
            writer.view(ViewKind::Uint8Array, blob, 0, content.len() as u64);
        }
        Ok(writer.finish())
    };
    if is_long { NativeAnswer::blocking(answer) } else { answer().into() }
}

impl Folder {
    /// How many files there are.
    fn count(&self) -> usize {
        let new = self.written.keys().filter(|name| !self.given.contains_key(*name)).count();
        self.given.len() + new
    }

    /// The first names, in order: an error must not take longer the more files there are.
    fn first_names(&self, most: usize) -> BTreeSet<&str> {
        let names = self.given.keys().take(most).chain(self.written.keys().take(most));
        names.map(String::as_str).collect::<BTreeSet<_>>().into_iter().take(most).collect()
    }

    fn list(&self) -> Value {
        let names = self.first_names(usize::MAX);
        let mut writer = Writer::new();
        writer.array(u32::try_from(names.len()).unwrap_or(u32::MAX));
        for name in names {
            writer.string(name);
        }
        writer.finish()
    }

    fn find(&self, name: &str) -> Result<Arc<Vec<u8>>, Value> {
        let written = self.written.get(name).map(|written| &written.content);
        written.or_else(|| self.given.get(name)).cloned().ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> Value {
        let names = self.first_names(MOST_LISTED);
        let mut listed: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        if let Some(more) = self.count().checked_sub(MOST_LISTED).filter(|more| *more > 0) {
            listed.push(format!("and {more} more"));
        }
        let there = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
        let name: String = name.chars().take(100).collect();
        HostError::new("Error", format!("no file '{name}'; there are: {there}"))
            .with_code("ENOENT")
            .to_value()
    }

    /// Whether a file of that name and size may be written.
    fn check(&self, name: &str, bytes: usize) -> Result<usize, Value> {
        let former = self.written.get(name).map(|written| written.content.len());
        let total = self.total_bytes - former.unwrap_or(0) + bytes;
        let shown: String = name.chars().take(100).collect();
        let message = if bytes > MOST_FILE_BYTES {
            format!("'{shown}' is larger than {MOST_FILE_BYTES} bytes")
        } else if former.is_none() && self.written.len() >= MOST_FILES {
            format!("a program may write {MOST_FILES} files, and '{shown}' is one more")
        } else if total > MOST_TOTAL_BYTES {
            format!("with '{shown}' all files together are larger than {MOST_TOTAL_BYTES} bytes")
        } else {
            return Ok(total);
        };
        Err(HostError::new("RangeError", message).to_value())
    }
}

/// Writes a file. It is checked before its bytes are copied.
fn write(files: &Files, args: &Value, run: &NativeRun) -> Completion {
    let (name, content) = name_of(args)?;
    let Some(content) = content else {
        return Err(type_error("the content of a file must be a string, bytes or an ArrayBuffer"));
    };
    let name = match check_name(&name) {
        Ok(()) => name,
        Err(error) => return Err(type_error(error.message())),
    };
    files.folder().check(&name, content.least_bytes())?;
    let Some(charge) = run.charge(content.least_bytes()) else {
        return Err(type_error("the file does not fit into the memory limit"));
    };
    let content = Arc::new(content.to_vec());
    let mut folder = files.folder();
    folder.total_bytes = folder.check(&name, content.len())?;
    folder.written.insert(name, Written { content, _charge: charge });
    let mut writer = Writer::new();
    writer.undefined();
    Ok(writer.finish())
}

/// The first argument, a name, and the second one as bytes, if it is a text or bytes.
fn name_of(args: &Value) -> Result<(String, Option<Content<'_>>), Value> {
    let mut reader = args.reader();
    let wrong = || type_error("the name of a file must be a string");
    let count = match reader.event() {
        Ok(Event::Array(count)) => count,
        _ => 0,
    };
    if count == 0 {
        return Err(wrong());
    }
    let name = match reader.event() {
        Ok(Event::String(name)) if least_bytes(&name) > MOST_NAME_BYTES => {
            return Err(type_error("the name of a file must not be longer than 255 bytes"));
        }
        Ok(Event::String(name)) => name.to_string_lossy(),
        _ => return Err(wrong()),
    };
    if count == 1 {
        return Ok((name, None));
    }
    let content = match reader.event() {
        Ok(Event::String(text)) => Some(Content::Text(text)),
        Ok(Event::Buffer(blob)) => args.blobs().get(blob as usize).map(|blob| Content::Bytes(blob)),
        Ok(Event::View { kind, blob, byte_offset, length }) => {
            bytes_of_view(args, kind, (blob, byte_offset, length))
        }
        _ => None,
    };
    Ok((name, content))
}

/// The content of a file that is to be written.
enum Content<'v> {
    Text(Str<'v>),
    Bytes(&'v [u8]),
}

impl Content<'_> {
    /// The bytes that it takes at least: all of them but for texts with a lone surrogate.
    fn least_bytes(&self) -> usize {
        match self {
            Self::Text(text) => least_bytes(text),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    fn to_vec(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.to_string_lossy().into_bytes(),
            Self::Bytes(bytes) => bytes.to_vec(),
        }
    }
}

/// The bytes that a text takes at least in UTF-8.
fn least_bytes(text: &Str<'_>) -> usize {
    match text {
        Str::Utf8(text) => text.len(),
        Str::Utf16(units) => units.len() / 2,
    }
}

fn bytes_of_view(args: &Value, kind: ViewKind, view: (u32, u64, u64)) -> Option<Content<'_>> {
    let (blob, start, length) = view;
    let start = usize::try_from(start).ok()?;
    let size = usize::try_from(length).ok()?.checked_mul(kind.element_bytes())?;
    let bytes = args.blobs().get(blob as usize)?;
    bytes.get(start..start.checked_add(size)?).map(Content::Bytes)
}

fn type_error(message: &str) -> Value {
    HostError::new("TypeError", message).to_value()
}
