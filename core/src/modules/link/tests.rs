//! The rules of linking, each with a small graph that links or fails, and its message.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    graph::{Graph, LinkError},
    specifier::{ModuleKey, Resolved, Specifiers, is_typescript_name},
};
use crate::{
    data::source::Language,
    modules::compile::{CompileError, CompiledModule, compile},
};

struct World {
    sources: BTreeMap<ModuleKey, String>,
    compiled: HashMap<ModuleKey, usize>,
}

impl World {
    /// The entry's text and pairs of module key and text.
    fn new(entry: &str, modules: &[(&str, &str)]) -> Self {
        let module =
            |(key, text): &(&str, &str)| (ModuleKey::Module((*key).to_owned()), (*text).to_owned());
        let mut sources: BTreeMap<_, _> = modules.iter().map(module).collect();
        sources.insert(ModuleKey::Entry, entry.to_owned());
        Self { sources, compiled: HashMap::new() }
    }

    fn graph(&self) -> Graph {
        let keys = self.sources.keys().filter_map(|key| match key {
            ModuleKey::Module(key) => Some(key.clone()),
            ModuleKey::Entry | ModuleKey::Cell(_) => None,
        });
        let bridges = [
            ("fs".to_owned(), vec!["readFile".to_owned(), "writeFile".to_owned()]),
            ("greet".to_owned(), vec!["default".to_owned()]),
        ];
        Graph::new("main.ts", Specifiers::new("main.ts", keys, bridges))
    }

    fn compile(
        &mut self,
        key: &ModuleKey,
        erase: &[String],
    ) -> Result<Arc<CompiledModule>, CompileError> {
        *self.compiled.entry(key.clone()).or_default() += 1;
        let language = match key {
            ModuleKey::Module(name) if !is_typescript_name(name) => Language::JavaScript,
            _ => Language::TypeScript,
        };
        compile(&self.sources[key], language, erase, usize::MAX).map(Arc::new)
    }

    fn link(&mut self) -> Result<Graph, LinkError> {
        let mut graph = self.graph();
        graph.extend(&ModuleKey::Entry, &mut |key, erase| self.compile(key, erase))?;
        Ok(graph)
    }
}

fn links(entry: &str, modules: &[(&str, &str)]) -> Graph {
    World::new(entry, modules).link().expect("it links")
}

fn keys(graph: &Graph) -> Vec<String> {
    graph.modules().map(|(key, _)| graph.label(key)).collect()
}

/// `file:line:column: name: message`
fn fails(entry: &str, modules: &[(&str, &str)]) -> String {
    let error = World::new(entry, modules).link().expect_err("it does not link");
    let at = error.position.map_or(String::new(), |p| format!("{}:{}", p.line, p.column));
    format!("{}:{at}: {}: {}", error.filename, error.name, error.message)
}

#[test]
fn a_graph_holds_what_is_reached_in_order() {
    let graph = links(
        "export default 1; import './b.js'; import { a } from './a.js'; a",
        &[
            ("./a.js", "export const a = 1; export { c } from './c.js'"),
            (
                "./b.js",
                "import * as self from './b.js'; import { a } from './a.js'; import m from './main.ts'; import './c.js'",
            ),
            ("./c.js", "export { a as c } from './a.js'"),
            ("./unreached.js", "syntax error"),
        ],
    );
    assert_eq!(keys(&graph), ["main.ts", "b.js", "a.js", "c.js"]);
    assert_eq!(graph.export_names(&ModuleKey::Entry, 9), ["default"]);
    let resolved = graph.resolve(&ModuleKey::Module("./a.js".to_owned()), "./c.js");
    assert_eq!(resolved, Some(Resolved::Module(ModuleKey::Module("./c.js".to_owned()))));
}

#[test]
fn names_resolve_as_ecmascript_says() {
    let modules = [
        ("./x.js", "export const a = 1, b = 2; export { a as a2 }; export default 1"),
        ("./y.js", "export const b = 3; export { a } from './x.js'"),
        ("./stars.js", "export * from './x.js'; export * from './y.js'"),
        ("./own.js", "export * from './x.js'; export * from './y.js'; export const b = 1"),
        ("./loop.js", "export * from './loop2.js'; export const l = 1"),
        ("./loop2.js", "export * from './loop.js'; export { nope } from './fine.js'"),
        ("./fine.js", "export const nope = 1"),
        ("./only.js", "export default 1"),
        ("./ring.js", "export { r } from './ring2.js'"),
        ("./ring2.js", "export { r } from './ring.js'"),
        ("./alias.js", "export { a as z } from './x.js'; export * as ns from './x.js'"),
        ("./alias2.js", "export { a2 as z } from './x.js'; export * as ns from './x.js'"),
        ("./same.js", "export * from './alias.js'; export * from './alias2.js'"),
    ];
    for name in [
        "{ a } from './stars.js'",
        "{ b } from './own.js'",
        "{ l, nope } from './loop2.js'",
        "{ z, ns } from './same.js'",
        "d from './x.js'",
        "* as n from './stars.js'",
        "'./stars.js'",
        "{ readFile } from 'fs'",
        "* as fs from 'fs'",
        "g from 'greet'",
        "{ default as g } from 'greet'",
    ] {
        links(&format!("import {name}"), &modules);
    }
    for (name, message) in [
        (
            "{ b } from './stars.js'",
            "main.ts:1:10: SyntaxError: Export 'b' of module './stars.js' is ambiguous: several 'export *' lead to different bindings of that name",
        ),
        (
            "d from './stars.js'",
            "main.ts:1:8: SyntaxError: Module './stars.js' has no default export; it exports 'a', 'b', 'a2'; write import * as d",
        ),
        (
            "{ q } from './loop.js'",
            "main.ts:1:10: SyntaxError: Module './loop.js' has no export 'q'; it exports 'l', 'nope'",
        ),
        (
            "{ r } from './ring.js'",
            "ring2.js:1:10: SyntaxError: Module './ring.js' has no export 'r'; it exports 'r'",
        ),
        (
            "{ rm } from 'fs'",
            "main.ts:1:10: SyntaxError: Module 'fs' has no export 'rm'; it exports 'readFile', 'writeFile'",
        ),
        (
            "fs from 'fs'",
            "main.ts:1:8: SyntaxError: Module 'fs' has no default export; it exports 'readFile', 'writeFile'; write import * as fs",
        ),
        (
            "readFile from 'fs'",
            "main.ts:1:8: SyntaxError: Module 'fs' has no default export; it exports 'readFile', 'writeFile'; write import { readFile }",
        ),
        (
            "{ readfile } from 'fs'",
            "main.ts:1:10: SyntaxError: Module 'fs' has no export 'readfile'; it exports 'readFile', 'writeFile'; did you mean 'readFile'?",
        ),
        (
            "readfile from 'fs'",
            "main.ts:1:8: SyntaxError: Module 'fs' has no default export; it exports 'readFile', 'writeFile'; did you mean import { readFile }?",
        ),
        (
            "{ main } from './only.js'",
            "main.ts:1:10: SyntaxError: Module './only.js' has no export 'main'; it exports 'default'",
        ),
        (
            "'fss'",
            "main.ts:1:8: ReferenceError: Cannot find module 'fss' imported from 'main.ts'; did you mean 'fs'?",
        ),
        (
            "'./none.js'",
            "main.ts:1:8: ReferenceError: Cannot find module './none.js' imported from 'main.ts'; did you mean './fine.js'?",
        ),
    ] {
        assert_eq!(fails(&format!("import {name}"), &modules), message);
    }
}

#[test]
fn the_first_error_in_reading_order_is_told() {
    let bad_name = "import { nope } from './ok.js';\n";
    let bad_specifier = "import 'nowhere';\n";
    let modules = [
        ("./ok.js", "export const ok = 1"),
        ("./syntax.js", "1;\n  let = ;"),
        ("./deep.js", "import './syntax.js'"),
        ("./name.js", "import { ok } from './ok.js';\nimport { nope } from './ok.js'"),
    ];
    for (entry, at) in [
        (format!("{bad_name}{bad_specifier}"), "main.ts:1:10: SyntaxError: Module"),
        (format!("{bad_specifier}{bad_name}"), "main.ts:1:8: ReferenceError"),
        (format!("{bad_name}import './deep.js'"), "main.ts:1:10: SyntaxError: Module"),
        (format!("import './deep.js';{bad_name}"), "syntax.js:2:9: SyntaxError"),
        (format!("import './name.js';{bad_specifier}"), "name.js:2:10: SyntaxError: Module"),
        (format!("{bad_name}let = ;"), "main.ts:2:7: SyntaxError"),
    ] {
        let message = fails(&entry, &modules);
        assert!(message.starts_with(at), "{entry}: {message}");
    }
}

#[test]
fn unused_types_erase_once_their_module_is_known() {
    let types = [
        (
            "./t.ts",
            "export interface T {} export const v = 1; export type U = 1; interface D {} export default D",
        ),
        ("./index.ts", "export * from './t.ts'"),
        ("./reexport.ts", "export type { T } from './t.ts'; export type * as ns from './t.ts'"),
        ("./star.ts", "export type * from './t.ts'"),
        ("./plain.js", "export const v = 1"),
    ];
    for (entry, left) in [
        ("import { T } from './t.ts'", 0),
        ("import { T, v } from './t.ts'; v", 1),
        ("import { T, v } from './t.ts'", 1),
        ("import { U } from './index.ts'", 0),
        ("import { T, ns } from './reexport.js'", 0),
        ("import { U } from './star.ts'", 0),
        ("import D from './t.ts'", 0),
        ("import { v } from './plain.js'", 1),
        ("import {} from './t.ts'", 1),
    ] {
        let graph = links(entry, &types);
        let requests = graph.module(&ModuleKey::Entry).map(|module| module.record().requests.len());
        assert_eq!(requests, Some(left), "{entry}");
    }
    for (entry, message) in [
        (
            "import { T } from './plain.js'",
            "main.ts:1:10: SyntaxError: Module './plain.js' has no export 'T'; it exports 'v'",
        ),
        (
            "import { X } from './t.ts'",
            "main.ts:1:10: SyntaxError: Module './t.ts' has no export 'X'; it exports 'v'",
        ),
        (
            "import { T } from './t.ts'; new T()",
            "main.ts:1:10: SyntaxError: Module './t.ts' exports 'T' only as a type: write 'import type'",
        ),
        (
            "export { T } from './t.ts'",
            "main.ts:1:10: SyntaxError: Module './t.ts' exports 'T' only as a type: write 'export type'",
        ),
        (
            "import { T } from './t.ts'; export { T }",
            "main.ts:1:10: SyntaxError: Module './t.ts' exports 'T' only as a type: write 'import type'",
        ),
    ] {
        assert_eq!(fails(entry, &types), message);
    }
}

#[test]
fn a_dynamic_import_extends_the_graph_or_leaves_it_as_it_was() {
    let mut world = World::new(
        "export default 1",
        &[
            ("./a.js", "import './b.js'; export const a = 1"),
            ("./b.js", "import './main.ts'"),
            ("./bad.js", "import './c.js'; import './nowhere.js'"),
            ("./c.js", ""),
        ],
    );
    let mut graph = world.link().expect("it links");
    let mut import = |graph: &mut Graph, specifier: &str| {
        graph.import(&ModuleKey::Entry, specifier, &mut |key, erase| world.compile(key, erase))
    };
    import(&mut graph, "./a.js").expect("it links");
    import(&mut graph, "./a.js").expect("it links");
    assert!(matches!(import(&mut graph, "fs"), Ok(Resolved::Bridge(_))));
    let error = import(&mut graph, "./bad.js").expect_err("it does not link");
    assert_eq!(
        (error.filename.as_str(), error.specifier.as_deref()),
        ("bad.js", Some("./nowhere.js"))
    );
    let error = import(&mut graph, "https://x").expect_err("it does not link");
    assert_eq!((error.filename.as_str(), error.position), ("main.ts", None));
    assert_eq!(keys(&graph), ["main.ts", "a.js", "b.js"]);
    assert_eq!(world.compiled[&ModuleKey::Module("./a.js".to_owned())], 1);
}

#[test]
fn thousands_of_modules_link_in_little_time() {
    for (each, entry) in [
        ("import { v as w } from './NEXT.js'; export const v = 1;", "import { v } from './m0.js'"),
        ("export { v } from './NEXT.js';", "import { v } from './m0.js'"),
        (
            "export * from './NEXT.js'; import { v as w } from './NEXT.js'",
            "import { v } from './m0.js'",
        ),
    ] {
        let mut modules = Vec::new();
        for n in 0..2_000 {
            modules.push((format!("./m{n}.js"), each.replace("NEXT", &format!("m{}", n + 1))));
        }
        modules.push(("./m2000.js".to_owned(), "export const v = 1; import './m0.js'".to_owned()));
        let borrowed: Vec<_> =
            modules.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
        let started = Instant::now();
        assert_eq!(keys(&links(entry, &borrowed)).len(), 2_002);
        assert!(
            started.elapsed() < Duration::from_mins(2) * crate::os::sanitized::PATIENCE,
            "{each} {:?}",
            started.elapsed()
        );
    }
    let mut entry = String::new();
    for n in 0..2_000 {
        let _ = writeln!(entry, "import {{ v as v{n} }} from './a.js';");
    }
    links(&entry, &[("./a.js", "export const v = 1")]);
}
