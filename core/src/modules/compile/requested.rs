//! The specifiers that a text requests, for hosts that look for modules before they hand them over.
//!
//! In: a text that may be anything. Out: the specifiers of its imports, as they are written. Nothing is checked: a text
//! with errors is refused when it is compiled.

use std::collections::BTreeSet;

use oxc_allocator::Allocator;

use super::{
    bounds::stack::with_stack_for,
    parse::{parser, without_mark},
};
use crate::data::source::Language;

/// A longer text requests nothing.
const MOST_TEXT_BYTES: usize = 16 << 20;

/// A text that takes more memory to parse requests nothing.
const MOST_BYTES: usize = 512 << 20;

/// The specifiers that a cell or a module requests: of `import`, of `export … from`, and of `import('…')` with a literal
/// that has no escapes. Empty for a text that cannot be parsed. Takes about as long as parsing the text.
#[must_use]
pub fn requested_modules(text: &str, language: Language) -> BTreeSet<String> {
    let text = without_mark(text);
    if text.len() > MOST_TEXT_BYTES {
        return BTreeSet::new();
    }
    let typescript = language == Language::TypeScript;
    let read = with_stack_for(text, typescript, |weight| {
        if weight.bytes > MOST_BYTES {
            return BTreeSet::new();
        }
        let allocator = Allocator::default();
        let record = parser(&allocator, text, typescript, true).parse().module_record;
        let fixed = record.requested_modules.keys().map(ToString::to_string);
        let dynamic = record.dynamic_imports.iter().filter_map(|import| {
            let span = import.module_request;
            literal(text.get(span.start as usize..span.end as usize)?)
        });
        fixed.chain(dynamic).collect()
    });
    read.unwrap_or_default()
}

/// The text of a literal without escapes.
fn literal(source: &str) -> Option<String> {
    let quote = source.chars().next().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
    let inner = source.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_more = inner.contains(['\\', quote, '\n']) || (quote == '`' && inner.contains("${"));
    (!is_more).then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(text: &str) -> Vec<String> {
        requested_modules(text, Language::TypeScript).into_iter().collect()
    }

    #[test]
    fn specifiers_are_found_wherever_they_stand() {
        let text = "import a, { b } from './a.js'; import './b.js'; export * from \"./c.ts\";\n\
            if (a) { const d = await import('./d.js'); return import(`./e.js`) }\n\
            import('./f' + b); import(a); import('./\\x61.js'); import(`./${b}`);\n\
            // import './g.js'\n\"import './h.js'\";";
        assert_eq!(requested(text), ["./a.js", "./b.js", "./c.ts", "./d.js", "./e.js"]);
    }

    #[test]
    fn any_text_is_read() {
        for text in
            ["", "import", "import (", "import('", "import('./a.js'", "\u{feff}{", "import.meta"]
        {
            let _ = requested(text);
        }
        assert_eq!(requested(&"(".repeat(1 << 20)), [""; 0]);
    }
}
