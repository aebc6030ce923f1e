//! The public names: types that any thread may own and share.

use std::{collections::BTreeSet, fs, path::Path};

fn shared<T: Send + Sync + 'static>() {}

/// Asserts `Send` and `Sync` of each type, and returns their names.
macro_rules! shared {
    ($($type:ident $(<$($argument:ty),+>)?),* $(,)?) => {{
        $(shared::<$type $(<$($argument),+>)?>();)*
        [$(stringify!($type)),*]
    }};
}

/// Traits and numbers; the arguments of a call, which stay on its thread and are opaque; and names that some systems
/// lack.
const OTHERS: &[&str] = &[
    "ASYNC_FUNCTION",
    "Answering",
    "Callable",
    "FutureCallable",
    "Host",
    "LARGE_COLLECTION",
    "IntoOutput",
    "KEPT_THROWS",
    "LARGE_THROW_BYTES",
    "MESSAGE_LIMIT",
    "MessageVisitor",
    "NativeAnswer",
    "NativeFunction",
    "NativeRecord",
    "Parameters",
    "REPORT_SINK",
    "RunInterceptor",
    "STACK_LIMIT",
    "STALLED",
    "SessionInterceptor",
    "Validate",
    "Wake",
    "WorkerAllocator",
];

/// The public types of the crate root.
fn types_of_root() -> BTreeSet<&'static str> {
    use isolane::*;
    shared![
        Answer<u8>,
        BoxedError,
        CallOptions,
        CallRequest,
        Callback,
        Caller,
        Cause,
        CellOptions,
        CellOutcome,
        CellRequest,
        Cells,
        Charge,
        Collection,
        Completion,
        Confinement,
        EndHook,
        EndedBy,
        Error,
        ErrorCode,
        ErrorKind,
        EventPoller,
        Execute,
        Extension,
        ExtensionFunction,
        ExtensionReturns,
        ExtensionRequest,
        Execution,
        ExecutionError,
        ExecutionLog,
        ExecutionOptions,
        ExecutionResult,
        Fallible,
        HostCall,
        HostError,
        HostFunction,
        HostPromise,
        Input,
        Inputs,
        Interception,
        Isolation,
        MakeAnswer, Meter,
        Language,
        HostEvent,
        LogLevel,
        NativeCall,
        NativeFunctions,
        NativeMode,
        NativeRun,
        OptionDeclaration,
        OptionKind,
        OptionSet,
        OptionValue,
        Mailbox<u8>,
        Plain,
        Refusal,
        Refused,
        RunHandle,
        Reply,
        Report,
        Reports,
        Request,
        Rest,
        Returned,
        Runtime,
        RuntimeOptions,
        SandboxCall<u8>,
        SandboxFunction,
        SandboxPromise,
        Name,
        NameKind,
        Session,
        SessionHandle,
        SessionOptions,
        SessionRequest,
        SessionState,
        SessionUpdate,
        Shape,
        SourceText,
        Spelling,
        Stats,
        Status,
        Step,
        StatusError,
        Terminated,
        Terminator,
        UpdateRequest,
        ValueFrom,
        WeakSessionHandle,
        MailboxHost<u8, u8>,
        Value,
    ]
    .into()
}

#[test]
fn every_public_type_can_be_sent_and_shared() {
    let mut known = types_of_root();
    known.extend(types_of_messages());
    for name in public_names() {
        assert!(
            known.contains(name.as_str()) || OTHERS.contains(&name.as_str()),
            "is {name} Send and Sync?"
        );
    }
}

/// The public types of the module of values.
fn types_of_messages() -> [&'static str; 9] {
    use isolane::value::{
        ErrorClass, Event, Kinds, Malformed, Reader, Str, Unchecked, ViewKind, Writer,
    };
    shared![ErrorClass, Event, Kinds, Malformed, Reader, Str, Unchecked, ViewKind, Writer]
}

/// The exports of the crate root and of the module of values, read from their text.
fn public_names() -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = Vec::new();
    for file in ["lib.rs", "value/mod.rs"] {
        let text = fs::read_to_string(sources.join(file)).expect("a readable source");
        for item in text.split("\npub ").skip(1) {
            let part = match item.split(' ').next() {
                Some("use") => item.split(';').next(),
                Some("struct" | "enum" | "type" | "trait") => item.split(' ').nth(1),
                _ => None,
            };
            let words = part.unwrap_or_default().split(|c: char| !c.is_alphanumeric() && c != '_');
            let types = words.filter(|word| word.starts_with(char::is_uppercase));
            names.extend(types.map(str::to_owned));
        }
    }
    assert!(names.len() > 40, "{names:?}");
    names
}
