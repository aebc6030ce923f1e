//! The description of the environment in Markdown, for a model that writes code for it.

use super::TypeScriptEnvironmentOptions;

/// The description.
pub(super) fn environment_docs(options: &TypeScriptEnvironmentOptions) -> String {
    let mut text = "# TypeScript\n\n\
        The code is one module of TypeScript or JavaScript in an isolate of its own. It has no network, no files and no \
        Node.js. Nothing stays for the next execution.\n\n\
        - `await` and `return` work at the top level. No export is needed.\n\
        - A value given by `return` or `export default` is merged into the output as `{ result: value }`.\n\
        - `output({ … })` merges fields into the output. They must be JSON; a Date becomes its ISO text.\n\
        - `console.log`, `info` and `debug` print to the standard output, `warn` and `error` to the standard error.\n\
        - `stdout(x)` and `stderr(x)` write text or a Uint8Array as it is.\n\
        - Tools are imports: `import { tool } from 'service'`. A tool takes one object and returns a promise.\n"
        .to_owned();
    let names = |names: Vec<&str>| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let lists = [
        ("Globals", options.globals.iter().map(|(name, _)| name).collect::<Vec<_>>()),
        ("Imports", options.imports.keys().map(String::as_str).collect()),
        ("Modules", options.modules.keys().map(String::as_str).collect()),
    ];
    for (title, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        text.push_str(&format!("- {title}: {}\n", names(list)));
    }
    text
}
