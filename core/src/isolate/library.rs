//! Libraries: texts that the extension compiles while the run goes on.
//!
//! In: the text of a library, the name of its file, its language, and the names that it does not see. Out: a function of
//! `exports`, `module` and `require`, or a throw of the text's first error with its place. Its errors name places in its
//! own text. In a session a library sees what modules see, and not what cells declared.

use super::{
    engine::{Cx, Local, Outcome, Raw, Text, is_string, sys},
    link_errors, loader,
    state::State,
};
use crate::{
    data::source::{Language, SourceText},
    modules::program::Unlinked,
    value::ErrorClass,
};

/// Answers `compile(text, filename, language, hidden)`.
pub(super) fn compile(state: &State, args: &[Raw]) -> Outcome<Local> {
    let cx = state.realm().cx;
    let [text, filename, language, hidden] = args else {
        let message = "compile takes a text, a filename, a language and names";
        return Err(state.throw_error(ErrorClass::TypeError, "TypeError", message));
    };
    if ![text, filename, language].into_iter().all(|text| is_string(*text)) {
        let message = "compile takes a text, a filename and a language";
        return Err(state.throw_error(ErrorClass::TypeError, "TypeError", message));
    }
    let hidden = names(cx, *hidden)?;
    let language = match cx.text(*language)?.into_lossy().as_str() {
        "javascript" => Language::JavaScript,
        _ => Language::TypeScript,
    };
    let filename = cx.text(*filename)?.into_lossy();
    let source = match cx.text(*text)? {
        Text::Utf8(text) => SourceText::from(text),
        Text::Utf16(units) => SourceText::from_utf16(&units),
    };
    let text_bytes = source.text.len();
    state.keep(text_bytes);
    let (held, room) = state.held_and_room_bytes();
    let found = state.linker.borrow_mut().library(&filename, &source, language, &hidden, room);
    state.charge_compiled(held);
    state.let_go(text_bytes);
    drop(source);
    let (name, code) = match found {
        Ok(found) => found,
        Err(Unlinked::Memory(module)) => state.exhaust_by(*module),
        Err(Unlinked::Error(error)) => {
            return Err(link_errors::throw_link_error(state, &error, None));
        }
    };
    let kind = sys::JS_EVAL_TYPE_GLOBAL | sys::JS_EVAL_FLAG_STRICT;
    let bytecode = loader::bytecode(state, &code, &name, kind)?;
    let realm = state.realm();
    let session = realm.session.filter(|_| state.session.is_some());
    let cx = match session {
        Some(parts) => parts.modules(),
        None => realm.cx,
    };
    cx.evaluate(cx.load(&bytecode)?)
}

fn names(cx: Cx, array: Raw) -> Outcome<Vec<String>> {
    let length = u32::try_from(cx.length(array)?).unwrap_or_default();
    (0..length).map(|index| Ok(cx.text(cx.get_index(array, index)?.raw())?.into_lossy())).collect()
}
