//! Names that modules see besides the intrinsics.
//!
//! In: the values that the caller gave, and the run's own `console` and `report`. Out: `const` declarations of a
//! script, which modules may shadow and the global object does not show. Runs without globals use a script that is
//! built into the realm.

pub(super) mod defaults;

use self::defaults::{Defaults, FILE, HOLDER, script};
use super::{
    engine::{Cx, Local, Outcome, sys},
    loader,
    state::State,
};

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
