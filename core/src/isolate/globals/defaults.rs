//! The declarations of a run without globals.
//!
//! In: the realm's own `console` and `report`. Out: scripts that declare them, built into the realm.

use std::sync::OnceLock;

use crate::{
    isolate::engine::{Cx, Outcome, Raw, c_string, sys},
    os::process::PerProcess,
};

/// Under this name the script finds the values while it runs; lengthened where a global has the same name.
pub(super) const HOLDER: &str = "$isolane";

pub(super) const FILE: &str = "<globals>";

/// The declarations of a run without globals.
#[derive(Clone, Copy)]
pub(in crate::isolate) struct Defaults {
    /// `console` and `report`.
    pub(super) values: Raw,
    /// The script that declares the first of them, and the one that declares both.
    pub(super) scripts: [Raw; 2],
}

impl Defaults {
    /// Makes them in the context `cx`.
    pub(in crate::isolate) fn build(
        cx: Cx,
        compiler: Cx,
        console: Raw,
        report: Raw,
    ) -> Outcome<Self> {
        let values = cx.array()?;
        cx.define_index(values.raw(), 0, cx.dup(console))?;
        cx.define_index(values.raw(), 1, cx.dup(report))?;
        let [first, both] = bytecode(compiler)?;
        let scripts = [cx.load(first)?.into_raw(), cx.load(both)?.into_raw()];
        Ok(Self { values: values.into_raw(), scripts })
    }

    /// Every value that is held.
    pub(in crate::isolate) fn all(&self) -> [Raw; 3] {
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
pub(super) fn script(names: &[String], holder: &str) -> String {
    let declarations: Vec<String> =
        (0..).zip(names).map(|(index, name)| format!("{name}={holder}[{index}]")).collect();
    format!("const {};", declarations.join(","))
}
