//! Names that modules see besides the intrinsics.
//!
//! In: the values that the caller gave, and the run's own `console` and `report`. Out: `const` declarations of a
//! script, which modules may shadow and the global object does not show. Runs without globals use a script that is
//! built into the realm.

use std::sync::OnceLock;

use super::{
    State,
    engine::{Cx, Local, Outcome, Raw, c_string, sys},
    loader,
};
use crate::os::process::PerProcess;

/// Under this name the script finds the values while it runs; lengthened where a global has the same name.
const HOLDER: &str = "$isolane";

const FILE: &str = "<globals>";

/// The declarations of a run without globals.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    /// `console` and `report`.
    values: Raw,
    /// The script that declares the first of them, and the one that declares both.
    scripts: [Raw; 2],
}

impl Defaults {
    /// Makes them in the context `cx`.
    pub(super) fn build(cx: Cx, compiler: Cx, console: Raw, report: Raw) -> Outcome<Self> {
        let values = cx.array()?;
        cx.define_index(values.raw(), 0, cx.dup(console))?;
        cx.define_index(values.raw(), 1, cx.dup(report))?;
        let [first, both] = bytecode(compiler)?;
        let scripts = [cx.load(first)?.into_raw(), cx.load(both)?.into_raw()];
        Ok(Self { values: values.into_raw(), scripts })
    }

    /// Every value that is held.
    pub(super) fn all(&self) -> [Raw; 3] {
        [self.values, self.scripts[0], self.scripts[1]]
    }
}

/// The scripts' bytecode, made by the first realm of the process.
fn bytecode(compiler: Cx) -> Outcome<&'static [Vec<u8>; 2]> {
    static MADE: PerProcess<OnceLock<[Vec<u8>; 2]>> = PerProcess::new();
    let known = MADE.get_or_init(OnceLock::new);
    if let Some(made) = known.get() {
        return Ok(made);
    }
    let compile = |names: &[String]| {
        compiler.compile(&script(names, HOLDER), &c_string(FILE), sys::JS_EVAL_TYPE_GLOBAL)
    };
    let names = ["console".to_owned(), "report".to_owned()];
    let made = [compile(&names[..1])?, compile(&names)?];
    Ok(known.get_or_init(|| made))
}

/// The script that declares each name as a constant, with its values in the array `holder`.
fn script(names: &[String], holder: &str) -> String {
    let declarations: Vec<String> =
        (0..).zip(names).map(|(index, name)| format!("{name}={holder}[{index}]")).collect();
    format!("const {};", declarations.join(","))
}

/// Declares the globals of the run, and the names that every run has.
pub(super) fn declare(state: &State) -> Outcome<()> {
    let task = state.task.borrow();
    let (cx, intrinsics) = (state.realm().cx, state.realm().intrinsics);
    if task.globals.is_empty() {
        let Defaults { values, scripts } = intrinsics.defaults;
        let script = cx.dup(scripts[usize::from(task.report)]);
        return run(cx, HOLDER, cx.dup(values), script);
    }
    let mut names = task.globals.clone();
    let mut values: Vec<Local> = state.inputs.borrow().iter().take(names.len()).cloned().collect();
    if !state.own_console.get() {
        names.push("console".to_owned());
        values.push(cx.dup(intrinsics.console));
    }
    if task.report && !names.iter().any(|name| name == "report") {
        names.push("report".to_owned());
        values.push(cx.dup(intrinsics.report));
    }
    drop(task);
    let mut holder = HOLDER.to_owned();
    while names.contains(&holder) {
        holder.push('$');
    }
    let array = cx.array()?;
    for (index, value) in (0..).zip(values) {
        cx.define_index(array.raw(), index, value)?;
    }
    let code = state.linker.borrow().script(script(&names, &holder));
    let bytecode = loader::bytecode(state, &code, FILE, sys::JS_EVAL_TYPE_GLOBAL)?;
    run(cx, &holder, array, cx.load(&bytecode)?)
}

/// Runs a script that declares the names of `values`.
fn run(cx: Cx, holder: &str, values: Local, script: Local) -> Outcome<()> {
    let global = cx.global()?;
    cx.define_str(global.raw(), holder, values, sys::JS_PROP_CONFIGURABLE)?;
    cx.evaluate(script)?;
    cx.delete(global.raw(), holder)
}
