//! The console of a run whose caller brings none.
//!
//! In: calls of `console.*`. Out: logs for the host, with cloned arguments, and text in the place of those that cannot
//! be cloned. Each method maps to one of the contract's five levels, and none of them throws: an exception during the
//! reading of a value is shown as text too. No method calls the host, so a log costs only a clone; the bytes held count
//! against the run's limit.

#![expect(unsafe_code, reason = "the engine calls this function with raw pointers")]

use std::{
    ffi::{CStr, c_int},
    time::Instant,
};

use super::{
    crossing::clone_out::{Crossing, clone_args_out},
    engine::{
        Cx, Local, Outcome, Raw, Thrown, is_object, is_proxy, is_string, sys, tag_of, undefined,
    },
    exception,
    state::State,
    trampoline,
};

use crate::{
    data::{inspect::inspect, outcome::LogLevel, text::bounded},
    value::{Arguments, Fault, Value, Writer, copy_message},
};

/// A method of the console; its place in [`METHODS`] is the number that the engine calls it by.
#[derive(Clone, Copy)]
enum Method {
    Write(LogLevel),
    Assert,
    Count,
    CountReset,
    Group,
    GroupEnd,
    Time,
    TimeEnd,
    TimeLog,
}

const METHODS: &[(&CStr, Method)] = &[
    (c"log", Method::Write(LogLevel::Log)),
    (c"info", Method::Write(LogLevel::Info)),
    (c"warn", Method::Write(LogLevel::Warn)),
    (c"error", Method::Write(LogLevel::Error)),
    (c"debug", Method::Write(LogLevel::Debug)),
    (c"trace", Method::Write(LogLevel::Debug)),
    (c"dir", Method::Write(LogLevel::Log)),
    (c"table", Method::Write(LogLevel::Log)),
    (c"assert", Method::Assert),
    (c"count", Method::Count),
    (c"countReset", Method::CountReset),
    (c"group", Method::Group),
    (c"groupEnd", Method::GroupEnd),
    (c"time", Method::Time),
    (c"timeEnd", Method::TimeEnd),
    (c"timeLog", Method::TimeLog),
];

/// The most labels that one run may count and time; further ones are not remembered.
const LABELS: usize = 1_000;

/// The longest label, in bytes of UTF-8.
const LABEL_LIMIT: usize = 1_000;

/// Bytes that a table takes for a label, beyond its text.
const LABEL_BYTES: usize = 96;

/// Bytes that a log takes beyond its arguments, for its reader.
const LOG_BYTES: usize = 96;

/// The object that modules see as `console`.
pub(super) fn build(cx: Cx) -> Outcome<Local> {
    let console = cx.object()?;
    for (number, (name, _)) in (0..).zip(METHODS) {
        let method = cx.c_function(call, name, 0, number)?;
        let key = name.to_str().map_err(|_| Thrown)?;
        cx.define_str(console.raw(), key, method, sys::JS_PROP_C_W_E)?;
    }
    Ok(console)
}

unsafe extern "C-unwind" fn call(
    ctx: *mut sys::JSContext,
    _this: Raw,
    argc: c_int,
    argv: *mut Raw,
    magic: c_int,
) -> Raw {
    trampoline::enter(ctx, |state| {
        state.still_running();
        let method = usize::try_from(magic).ok().and_then(|number| METHODS.get(number));
        if let Some((_, method)) = method {
            let done = run(state, *method, trampoline::args(argc, argv));
            // No value of the sandbox can cause this, but a full stack can.
            if let Err(Thrown) = done {
                let thrown = Cx(ctx).exception();
                let text = exception::headline(state, thrown.raw());
                state.log_text(LogLevel::Error, &format!("[console threw {text}]"));
            }
        }
        Ok(Cx(ctx).dup(undefined()))
    })
}

fn run(state: &State, method: Method, args: &[Raw]) -> Outcome<()> {
    match method {
        Method::Write(level) => write(state, level, args),
        Method::Group if args.is_empty() => Ok(()),
        Method::Group => write(state, LogLevel::Log, args),
        Method::GroupEnd => Ok(()),
        Method::Assert => assert(state, args),
        Method::Count => {
            count(state, label(state, args));
            Ok(())
        }
        Method::CountReset => {
            let label = label(state, args);
            if state.counts.borrow_mut().remove(&label).is_some() {
                state.let_go(LABEL_BYTES + label.len());
            } else {
                state.log_text(LogLevel::Warn, &format!("Count for '{label}' does not exist"));
            }
            Ok(())
        }
        Method::Time => {
            let label = label(state, args);
            let known = state.timers.borrow().contains_key(&label);
            if known {
                state.log_text(LogLevel::Warn, &format!("Label '{label}' already exists"));
            } else if state.timers.borrow().len() < LABELS {
                state.keep(LABEL_BYTES + label.len());
                state.timers.borrow_mut().insert(label, Instant::now());
            }
            Ok(())
        }
        Method::TimeEnd | Method::TimeLog => time(state, method, args),
    }
}

fn count(state: &State, label: Box<str>) {
    let mut counts = state.counts.borrow_mut();
    if !counts.contains_key(&label) {
        if counts.len() >= LABELS {
            return;
        }
        state.keep(LABEL_BYTES + label.len());
    }
    let text = {
        let prefix = format!("{label}: ");
        let count = counts.entry(label).or_insert(0);
        *count = count.saturating_add(1);
        format!("{prefix}{count}")
    };
    drop(counts);
    state.log_text(LogLevel::Log, &text);
}

fn write(state: &State, level: LogLevel, args: &[Raw]) -> Outcome<()> {
    let args = clone_args_out(state, args, Crossing::Log, "arguments")?;
    let args = if state.refusal(&args).is_some() { held(state, &args) } else { args };
    state.log(level, args);
    Ok(())
}

/// The arguments as the host can hold them: text stands for each that it cannot hold. Each then has its own copy of
/// shared parts, which is charged as it grows.
fn held(state: &State, args: &Value) -> Value {
    let before = args.held_bytes();
    // While it is copied, an argument exists two more times.
    state.charge(2 * before);
    let mut charged = 0;
    let args = held_each(state, args, &mut charged).unwrap_or_else(|_| {
        let mut writer = Writer::new();
        writer.array(1);
        writer.string("[values that share too much]");
        writer.finish()
    });
    state.charge(args.held_bytes().saturating_sub(charged));
    state.discharge(charged.saturating_sub(args.held_bytes()));
    state.discharge(3 * before);
    args
}

fn held_each(state: &State, args: &Value, charged: &mut usize) -> Result<Value, Fault> {
    const LONGEST_TEXT: usize = 16 << 10;
    let mut each = Arguments::new(args, None)?;
    let count = each.left();
    let mut writer = Writer::new();
    writer.array(count);
    for _ in 0..count {
        let arg: Value = each.next()?;
        if state.refusal(&arg).is_some() {
            writer.string(&inspect(&arg, LONGEST_TEXT));
        } else {
            copy_message(&arg, &mut writer, "", &mut |_, _, _| Ok(()))?;
        }
        let held = writer.held_bytes();
        state.charge(held.saturating_sub(*charged));
        *charged = held.max(*charged);
    }
    Ok(writer.finish())
}

fn assert(state: &State, args: &[Raw]) -> Outcome<()> {
    let (condition, rest) = args.split_first().map_or((undefined(), args), |(c, rest)| (*c, rest));
    if truthy(state, condition)? {
        return Ok(());
    }
    let cx = state.realm().cx;
    let failed = cx.string("Assertion failed")?;
    let mut args = vec![failed.raw()];
    let joined;
    match rest.split_first() {
        Some((&first, rest)) if is_string(first) => {
            // The engine concatenates them, so that the text is charged.
            let colon = cx.string("Assertion failed: ")?;
            let concat = state.realm().intrinsics.string_concat;
            joined = cx.call(concat, colon.raw(), &[first])?;
            args[0] = joined.raw();
            args.extend(rest);
        }
        _ => args.extend(rest),
    }
    write(state, LogLevel::Error, &args)
}

fn time(state: &State, method: Method, args: &[Raw]) -> Outcome<()> {
    let label = label(state, args);
    let started = state.timers.borrow().get(&label).copied();
    let Some(started) = started else {
        state.log_text(LogLevel::Warn, &format!("No such label '{label}'"));
        return Ok(());
    };
    if matches!(method, Method::TimeEnd) {
        state.timers.borrow_mut().remove(&label);
        state.let_go(LABEL_BYTES + label.len());
    }
    let cx = state.realm().cx;
    let elapsed = started.elapsed().as_secs_f64() * 1e3;
    let text = cx.string(&format!("{label}: {elapsed:.3}ms"))?;
    let rest = args.get(1..).unwrap_or_default();
    let args: Vec<Raw> = [text.raw()].into_iter().chain(rest.iter().copied()).collect();
    write(state, LogLevel::Log, &args)
}

fn truthy(state: &State, value: Raw) -> Outcome<bool> {
    if is_object(value) {
        return Ok(true);
    }
    state.realm().cx.truthy(value)
}

/// The text of a label, cut before it is copied.
fn label(state: &State, args: &[Raw]) -> Box<str> {
    let cx = state.realm().cx;
    let label = match args.first() {
        None => "default".to_owned(),
        Some(&label) => match tag_of(label) {
            sys::JS_TAG_UNDEFINED => "default".to_owned(),
            sys::JS_TAG_SYMBOL => state.symbol_text(label),
            // A proxy's text would come from one of its traps.
            sys::JS_TAG_OBJECT if is_proxy(label) => "[Proxy]".to_owned(),
            _ => match cx.to_string(label) {
                Ok(text) => state.excerpt(text.raw(), LABEL_LIMIT),
                Err(Thrown) => {
                    let thrown = cx.exception();
                    format!("[toString threw {}]", exception::headline(state, thrown.raw()))
                }
            },
        },
    };
    // A box has no room to spare.
    bounded(label, LABEL_LIMIT).into()
}

impl State {
    /// Logs one text. Ends the run if the text does not fit into the limit any more.
    pub(super) fn log_text(&self, level: LogLevel, text: &str) {
        let mut writer = Writer::new();
        writer.array(1);
        writer.string(text);
        let args = writer.finish();
        self.charge(args.held_bytes());
        self.log(level, args);
    }

    /// Passes a log on, which is charged already. If the host keeps it until the run ends, it stays charged.
    fn log(&self, level: LogLevel, args: Value) {
        let embedder = self.embedder();
        if embedder.keeps_logs() {
            self.keep_for_now(LOG_BYTES);
            return embedder.log(level, args);
        }
        let bytes = args.held_bytes();
        embedder.log(level, args);
        self.discharge(bytes);
    }
}
