//! Names that programs expect of other hosts and languages, with what this sandbox has instead.
//!
//! In: a name that is not declared, or a method that a value lacks. Out: one clause, where it is certain.

/// A clause on a name that is not declared, with what the host has given in its place.
pub(super) fn absent_name(name: &str, globals: &[String]) -> Option<&'static str> {
    stand_in(name, globals).or_else(|| missing(name))
}

/// A clause on a name that nothing given stands in for.
fn missing(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" | "axios" | "http" | "https" => {
            "this sandbox has no network"
        }
        "setTimeout"
        | "setInterval"
        | "setImmediate"
        | "clearTimeout"
        | "clearInterval"
        | "clearImmediate"
        | "requestAnimationFrame" => "this sandbox has no timers",
        "process" | "Buffer" | "__dirname" | "__filename" | "fs" | "path" | "os" => {
            "this sandbox is not Node.js"
        }
        "Deno" | "Bun" => "this sandbox is another runtime",
        "window" | "document" | "navigator" | "localStorage" | "sessionStorage" | "alert"
        | "confirm" | "prompt" | "location" | "history" | "HTMLElement" | "Image" | "self" => {
            "this sandbox is no browser"
        }
        "module" | "exports" => "use export: the code is an ECMAScript module",
        "global" | "root" => "use globalThis",
        "eval" => "code cannot be made from text here",
        "print" | "println" | "printf" | "puts" | "echo" => "use console.log",
        "None" | "nil" | "NULL" => "use null",
        "True" => "use true",
        "False" => "use false",
        "len" => "use .length",
        "range" => "use Array.from({ length: n }, (_, i) => i)",
        "str" => "use String()",
        "int" => "use Math.trunc(Number())",
        "float" => "use Number()",
        "dict" => "use {}",
        "list" => "use Array.from()",
        "json" => "use JSON",
        "performance" | "crypto" | "TextEncoder" | "TextDecoder" | "URL" | "URLSearchParams"
        | "Blob" | "File" | "FormData" | "Headers" | "Request" | "Response" | "AbortController"
        | "AbortSignal" | "Event" | "EventTarget" | "ReadableStream" | "WritableStream"
        | "TransformStream" | "MessageChannel" | "Worker" | "WebAssembly" | "SharedArrayBuffer"
        | "Atomics" | "DOMException" | "atob" | "btoa" | "DOMParser" => {
            "this sandbox has the objects of the language alone"
        }
        _ => return None,
    })
}

/// A clause on a name for which the host has given another one.
fn stand_in(name: &str, globals: &[String]) -> Option<&'static str> {
    let (given, clause) = match name {
        "setImmediate" | "requestAnimationFrame" => ("setTimeout", "use setTimeout(f, 0)"),
        "setInterval" => ("setTimeout", "use setTimeout(f, ms)"),
        "clearImmediate" | "clearInterval" | "cancelAnimationFrame" => {
            ("clearTimeout", "use clearTimeout(id)")
        }
        "XMLHttpRequest" | "WebSocket" | "EventSource" | "axios" | "http" | "https" => {
            ("fetch", "use fetch(url): this sandbox has no other network")
        }
        _ => return None,
    };
    globals.iter().any(|global| global == given).then_some(clause)
}

/// The character that an entity of HTML stands for.
pub(super) fn entity(name: &str) -> Option<&'static str> {
    Some(match name {
        "lt" => "<",
        "gt" => ">",
        "amp" => "&",
        "quot" => "\"",
        _ => return None,
    })
}

/// The method of the language that a method of another language or library means.
pub(super) fn method(kind: &str, name: &str) -> Option<&'static str> {
    Some(match (kind, name) {
        ("a string" | "an array", "contains" | "include" | "has") => "includes",
        ("a string", "strip") => "trim",
        ("a string", "lstrip") => "trimStart",
        ("a string", "rstrip") => "trimEnd",
        ("a string", "lower") => "toLowerCase",
        ("a string", "upper") => "toUpperCase",
        ("a string", "startswith" | "starts_with" | "beginsWith") => "startsWith",
        ("a string", "endswith" | "ends_with") => "endsWith",
        ("a string", "ljust") => "padEnd",
        ("a string", "rjust" | "zfill") => "padStart",
        ("a string" | "an array", "len" | "size" | "count" | "length") => "length",
        ("an array", "append" | "add") => "push",
        ("an array", "each") => "forEach",
        ("an array", "select" | "where") => "filter",
        ("an array", "collect") => "map",
        ("an array", "first") => "at(0)",
        ("an array", "last") => "at(-1)",
        ("a Map" | "a Set", "length" | "count" | "len") => "size",
        ("a Map" | "a Set", "contains" | "includes") => "has",
        ("a Map", "put" | "add") => "set",
        ("a Set", "push" | "append") => "add",
        ("a Map" | "a Set", "remove") => "delete",
        _ => return None,
    })
}
