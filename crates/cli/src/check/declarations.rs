//! Declarations of all that code is handed, for a checker of types.
//!
//! In: JSON values by their names. Out: a `.d.ts` of globals and modules. Types are those of the values: a number is
//! `number`, whichever number it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

/// The deepest nesting of a type. Deeper types are `any`.
const MOST_DEPTH: usize = 12;

/// The most fields of an object's type. An object with more is a dictionary.
const MOST_FIELDS: usize = 200;

/// All that code has without being handed it, beside the library of the language.
const ALWAYS: &str = "\
declare function report(value: unknown): void;
declare function structuredClone<T>(value: T): T;
declare function queueMicrotask(callback: () => void): void;
declare const console: { [method in 'log' | 'info' | 'debug' | 'warn' | 'error' | 'trace' | 'dir' | 'table' | 'assert' |
  'count' | 'countReset' | 'group' | 'groupEnd' | 'time' | 'timeLog' | 'timeEnd']:
  (...args: unknown[]) => void };
";

/// The declarations of these globals and modules.
pub(crate) fn of(globals: &Map<String, Json>, imports: &Map<String, Json>) -> String {
    let mut text = ALWAYS.to_owned();
    for (name, value) in globals {
        text.push_str(&format!("declare const {name}: {};\n", type_of(&[value], 0)));
    }
    for (specifier, exports) in imports {
        text.push_str(&format!("declare module {} {{\n", Json::from(specifier.as_str())));
        for (at, (name, value)) in exports.as_object().into_iter().flatten().enumerate() {
            let (name, kind) = (Json::from(name.as_str()), type_of(&[value], 0));
            let name = if name == "default" { "default".to_owned() } else { name.to_string() };
            text.push_str(&format!(
                "  const export{at}: {kind};\n  export {{ export{at} as {name} }};\n"
            ));
        }
        // A module without exports is one all the same.
        text.push_str("  export {};\n}\n");
    }
    text
}

/// The type of a value, or of several at one place.
fn type_of(values: &[&Json], depth: usize) -> String {
    if depth == MOST_DEPTH {
        return "any".to_owned();
    }
    let mut types = BTreeSet::new();
    let (mut elements, mut objects): (Vec<&Json>, Vec<&Map<String, Json>>) = Default::default();
    for value in values {
        let name = match value {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(more) => {
                elements.extend(more);
                "[]"
            }
            Json::Object(fields) => {
                objects.push(fields);
                continue;
            }
        };
        types.insert(name.to_owned());
    }
    if types.remove("[]") {
        let of_elements = type_of(&elements, depth + 1);
        types.insert(if elements.is_empty() {
            "any[]".to_owned()
        } else {
            format!("({of_elements})[]")
        });
    }
    if !objects.is_empty() {
        types.insert(type_of_objects(&objects, depth));
    }
    types.into_iter().collect::<Vec<_>>().join(" | ")
}

/// One type for all: a field that one of them has not is optional.
fn type_of_objects(objects: &[&Map<String, Json>], depth: usize) -> String {
    let mut fields: BTreeMap<&str, Vec<&Json>> = BTreeMap::new();
    for (name, value) in objects.iter().copied().flatten() {
        fields.entry(name).or_default().push(value);
        if fields.len() > MOST_FIELDS {
            return "{ [key: string]: any }".to_owned();
        }
    }
    let field = |(name, values): (&&str, &Vec<&Json>)| {
        let optional = if values.len() < objects.len() { "?" } else { "" };
        format!("{}{optional}: {}", Json::from(*name), type_of(values, depth + 1))
    };
    format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_types() {
        for (value, expected) in [
            (json!({ "a b": [1, null], "c": [] }), r#"{ "a b": (null | number)[]; "c": any[] }"#),
            (
                json!([{ "a": 1 }, { "b": 2, "a": "x" }]),
                r#"({ "a": number | string; "b"?: number })[]"#,
            ),
            (json!([[1], ["x"], null]), "((number | string)[] | null)[]"),
            (json!({}), "{  }"),
        ] {
            assert_eq!(type_of(&[&value], 0), expected);
        }
        let fields: Map<String, Json> = (0..201).map(|n| (format!("k{n}"), json!(1))).collect();
        assert_eq!(type_of(&[&fields.into()], 0), "{ [key: string]: any }");
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        assert!(type_of(&[&deep], 0).starts_with("((((((((((((any)"));
    }

    #[test]
    fn modules_have_exports_of_any_name() {
        let imports = json!({ "shop": { "tax": 0.5, "default": "x", "a-b": true } });
        let text = of(&Map::new(), imports.as_object().expect("an object"));
        let expected = "declare module \"shop\" {\n  const export0: number;\n  export { export0 as \"tax\" };\n  \
                        const export1: string;\n  export { export1 as default };\n  const export2: boolean;\n  \
                        export { export2 as \"a-b\" };\n  export {};\n}\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
