//! The code of a session's cell, in the engine.
//!
//! In: the text of a cell, and its name in the engine. Out: the function that is its code, or the bytecode of its module.
//! Cells of one text share their bytecode, in whatever session they run. A cell's name is in its bytecode, and each cell
//! has another one; so all are compiled under one name, and a cell's own name takes the place of that.

use std::sync::Arc;

use memchr::memmem;

use crate::{
    isolate::{
        engine::{Local, Outcome, Thrown, c_string, sys},
        link_errors::throw_compile_error,
        marks::marked,
        state::State,
    },
    modules::compile::cell::CompiledCell,
};

/// The parts of a cell's text around its parameter, and those of a script of the same length.
/// The engine frees what is left of a script, and never frees a module. A script whose statement begins with a bracket
/// would be read twice.
const MODULE: [&str; 2] = ["export default async(", ")=>{"];
const SCRIPT: [&str; 2] = ["    0,async function(", "){  "];

/// The name under which cells are compiled, behind the mark that no text has.
const ANY: &str = "cell";

/// The function of a cell whose text means the same in a script; `None` for others. Evaluating the script runs no code of
/// the sandbox.
pub(in crate::isolate) fn load_script(
    state: &State,
    cell: &CompiledCell,
    name: &str,
) -> Option<Outcome<Local>> {
    let (parameter, rest) = parts_of(cell)?;
    let script = || [SCRIPT[0], parameter, SCRIPT[1], rest].concat();
    let cx = state.realm().cx;
    let kind = sys::JS_EVAL_TYPE_GLOBAL | sys::JS_EVAL_FLAG_STRICT;
    let bytecode = bytecode(state, cell, name, script, kind);
    Some(bytecode.and_then(|bytecode| cx.evaluate(cx.load(&bytecode)?)))
}

/// The bytecode of a cell's module.
pub(in crate::isolate) fn module_bytecode(
    state: &State,
    cell: &CompiledCell,
    name: &str,
) -> Outcome<Arc<[u8]>> {
    bytecode(state, cell, name, || cell.module.code().to_owned(), sys::JS_EVAL_TYPE_MODULE)
}

/// The parameter, and the text behind it, if the text means the same in a script.
fn parts_of(cell: &CompiledCell) -> Option<(&str, &str)> {
    let text = cell.module.code().strip_prefix(MODULE[0]);
    text.filter(|_| !cell.plan.is_of_module)?.split_once(MODULE[1])
}

/// The bytecode of a cell with that name, compiled once for all cells of that text.
fn bytecode(
    state: &State,
    cell: &CompiledCell,
    name: &str,
    text: impl Fn() -> String,
    kind: u32,
) -> Outcome<Arc<[u8]>> {
    // Whether it was compiled before does not show in the accounting.
    state.keep_for_now(cell.module.code().len());
    let compiler = state.realm().compiler;
    let compile = |as_name: &str| {
        let compiled = compiler.compile(&text(), &c_string(&marked(as_name)), kind);
        compiled.map_err(|Thrown| throw_compile_error(state, name))
    };
    let kept = match cell.bytecode.get() {
        Some(kept) => Arc::clone(kept),
        None => {
            let compiled = compile(ANY)?;
            Arc::clone(cell.bytecode.get_or_init(|| compiled.into()))
        }
    };
    let bytecode = match renamed(&kept, &marked(ANY), &marked(name)) {
        Some(renamed) => renamed,
        None => compile(name)?,
    };
    state.keep_for_now(bytecode.len());
    Ok(bytecode.into())
}

/// Bytecode is a byte for the version, four for the checksum, and texts by which the rest refers to names: a byte for the
/// kind, the length, and the characters.
const VERSION_BYTES: usize = 1;
const UNCHECKED: [u8; 4] = [0xFF; 4];
const KIND_OF_NAMES: u8 = 1;

/// Bytecode with another name of the file. `None` if it does not have the name exactly once, or the new one is not in
/// ASCII. The name is marked, so no other text has it by chance.
fn renamed(bytecode: &[u8], name: &str, new_name: &str) -> Option<Vec<u8>> {
    let (old, new) = (name_entry(name)?, name_entry(new_name)?);
    // A source that had the mark would have the name in another text, whose length must stay.
    let mut places = memmem::find_iter(bytecode, name.as_bytes());
    let (place, None) = (places.next()?, places.next()) else { return None };
    let place = (place + name.len()).checked_sub(old.len())?;
    if bytecode.get(place..place + old.len())? != old {
        return None;
    }
    let version = bytecode.get(..VERSION_BYTES)?;
    let before = bytecode.get(VERSION_BYTES + UNCHECKED.len()..place)?;
    let after = bytecode.get(place + old.len()..)?;
    Some([version, &UNCHECKED, before, &new, after].concat())
}

/// A name as bytecode has it.
fn name_entry(name: &str) -> Option<Vec<u8>> {
    if !name.is_ascii() {
        return None;
    }
    let mut entry = vec![KIND_OF_NAMES];
    // The lowest bit tells wide characters from narrow ones.
    let mut length = u32::try_from(name.len()).ok()?.checked_mul(2)?;
    while length >= 0x80 {
        entry.push((length & 0x7F) as u8 | 0x80);
        length >>= 7;
    }
    entry.push((length & 0x7F) as u8);
    entry.extend_from_slice(name.as_bytes());
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{data::source::Language, modules::compile::compile_cell};

    #[test]
    fn a_script_has_the_places_of_the_module() {
        for (module, script) in MODULE.iter().zip(SCRIPT) {
            assert_eq!(module.len(), script.len());
        }
    }

    #[test]
    fn only_code_that_means_something_else_stays_a_module() {
        let cell = |text: &str| compile_cell(text, Language::TypeScript, &[], usize::MAX);
        let has_parts = |text: &str| {
            let cell = cell(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
            parts_of(&cell).is_some()
        };
        let scripts = [
            "1",
            "'metadata arguments <!-- --> => \\u0041'",
            "`metadata ${'<!--'} -->`",
            "const metadata = { meta: 1, arguments: 2 }; metadata.arguments",
            "/* import.meta */ // arguments <!--",
            "function f() { return (() => arguments.length)() } f(1)",
            "({ f() { return arguments }, get g() { return arguments } })",
            "class C { constructor() { arguments } static m() { return arguments[0] } }",
            "let a = 1; a-->0",
            "let a = 1, b = 1; a < !--b",
            "const \\u0061 = 1; \\u0061",
            "/<!--/.test('x')",
            "1 <<!--[0][0]",
        ];
        for text in scripts {
            assert!(has_parts(text), "{text}");
        }
        let modules = [
            "import.meta",
            "(() => import.meta)()",
            "function f() { return import.meta }",
            "typeof arguments",
            "() => () => arguments",
            "\\u0061rguments",
            "class C { [arguments]() {} }",
            "let a = 1, b = 1; a<!--b",
            "let a = 1, b = 1; a<!--b < 1",
        ];
        for text in modules {
            assert!(!has_parts(text), "{text}");
        }
    }

    #[test]
    fn a_name_is_replaced_where_it_is_alone() {
        let entry = |name: &str| name_entry(name).expect("a short name in ASCII");
        let long = "x".repeat(100);
        assert_eq!(entry("ab"), [1, 4, b'a', b'b']);
        assert_eq!(entry(&long)[..3], [1, 0xC8, 1]);
        let code = |name: &str| [&[26, 9, 9, 9, 9, 7][..], &entry(name), &[5, 5]].concat();
        let unchecked =
            |name: &str| [&[26, 255, 255, 255, 255, 7][..], &entry(name), &[5, 5]].concat();
        assert_eq!(renamed(&code("any"), "any", &long), Some(unchecked(&long)));
        assert_eq!(renamed(&code("any"), "other", "b"), None);
        assert_eq!(renamed(&[code("any"), entry("any")].concat(), "any", "b"), None);
        assert_eq!(renamed(&[code("any"), b"many".to_vec()].concat(), "any", "b"), None);
        assert_eq!(renamed(b"\x1A\xFF\xFF\xFF\xFF\x07any", "any", "b"), None);
        assert_eq!(renamed(&code("any"), "any", "é"), None);
    }
}
