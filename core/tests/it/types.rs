//! Types erased in place: the engine runs the same program without them, and every place is that of the original, inside
//! the sandbox as outside.

use isolane::{ExecutionOptions, ExecutionResult, run_code};
use serde_json::{Value as Json, json};

/// A statement for which the compiler inserts code.
const INSERTED: &str = "\n;enum Inserted {}";

fn run(text: &str) -> ExecutionResult {
    run_code(text, ExecutionOptions::default()).wait().expect("valid options")
}

fn value(text: &str) -> Result<Json, String> {
    let result = run(text);
    match (result.result, result.error) {
        (Some(value), _) => value.deserialize().map_err(|error| error.to_string()),
        (None, error) => Err(format!("{error:?}")),
    }
}

/// Asserts the value of a program, alone and beside inserted code.
fn comes_to(text: &str, expected: &Json) {
    assert_eq!(value(text).as_ref(), Ok(expected), "{text}");
    let more = format!("{text}{INSERTED}");
    assert_eq!(value(&more).as_ref(), Ok(expected), "{more}");
}

#[test]
fn statements_end_where_their_types_ended() {
    for (text, expected) in [
        ("const f = () => 1\nconst a = f as any\n(f)\nexport default typeof a", json!("function")),
        ("const a = [1] as any\n[0].map(String)\nexport default a", json!([1])),
        (
            "const t = (s: any) => s\nconst a = t satisfies Function\n`x`\nexport default typeof a",
            json!("function"),
        ),
        ("const a = 1\ntype T = 2\n(3)\nexport default a", json!(1)),
        ("const a = [1]\ninterface T {}\n[0].toString()\nexport default a", json!([1])),
        ("const a = 8\ndeclare const g: 2\n/2/g.test('2')\nexport default a", json!(8)),
        ("const a = [[7]]!\n[0]\nexport default a", json!([7])),
        ("let a: number\n[a] = [4]\nexport default a", json!(4)),
        ("let a = 1 as number\n++a\nexport default a", json!(2)),
        ("let a = 0; if (a) a = 1 as any\nelse a = 2 as any\nexport default a", json!(2)),
        ("let a = 0; do a++ as any\nwhile (a < 3)\nexport default a", json!(3)),
        ("const a = { b: 1 } as const\nexport default <any>a\n;[0]", json!({ "b": 1 })),
    ] {
        comes_to(text, &expected);
    }
}

#[test]
fn restricted_keywords_keep_their_values() {
    for (text, expected) in [
        ("const f = () => { return <number>(\n1) }\nexport default f()", json!(1)),
        ("const f = () => { return <number>\n1 }\nexport default f()", json!(1)),
        ("const f = () => { return <\nT>(a: T): T => a }\nexport default f()(2)", json!(2)),
        ("function* g() { yield <number>\n1 }\nexport default [...g()]", json!([1])),
        (
            "let a; try { throw <string>\n'b' } catch (e: unknown) { a = e }\nexport default a",
            json!("b"),
        ),
        ("const f = async <\nT>(a: T) => a\nexport default await f(1)", json!(1)),
        ("const f = (a: number):\nnumber => a\nexport default f(1)", json!(1)),
        ("const f = (a: number) // b\n: { c: 1 } |\n2 => a as any\nexport default f(1)", json!(1)),
        ("const f = () => <any>{ a: 1 }\nexport default f()", json!({ "a": 1 })),
        ("const f = () => <any>[1]\nexport default f()", json!([1])),
    ] {
        comes_to(text, &expected);
    }
}

#[test]
fn members_of_classes_stay_apart() {
    for (text, expected) in [
        (
            "const c = 'd'; class A { a: number = 1\nprivate [c]: number = 2\ndeclare e: 3\n*f() { yield 4 } }
            const a = new A() as any; export default [a.a, a.d, 'e' in a, ...a.f()]",
            json!([1, 2, false, 4]),
        ),
        (
            "class A { get: number\nb() { return 1 }\nset: number\nasync: number\nc() { return 2 }\nstatic: number\nd = 3 }
            const a = new A(); export default [a.b(), a.c(), a.d, Object.keys(a)]",
            json!([1, 2, 3, ["get", "set", "async", "static", "d"]]),
        ),
        (
            "class A { a = 1\nreadonly in: number = 2\npublic instanceof?: number }
            export default Object.keys(new A())",
            json!(["a", "in", "instanceof"]),
        ),
        (
            "abstract class A<T> { abstract a: T; abstract b(): T; [k: string]: unknown; constructor(); constructor(public_?: T) {} c?(): T }
            class B extends A<number> implements Iterable<1> { override b(): number { return 1 } *[Symbol.iterator](): any {} a!: number }
            export default [new B().b(), Object.keys(new B())]",
            json!([1, ["a"]]),
        ),
    ] {
        comes_to(text, &expected);
    }
}

#[test]
fn expressions_keep_their_meaning() {
    for (text, expected) in [
        ("let a: any = 1; (a as number) = 2; a! += 1; (<number>a)++; export default a", json!(4)),
        (
            "let a: any, b: any; [a as number, (b as number)] = [1, 2]; ({ a: a as any } = { a: 3 }); export default [a, b]",
            json!([3, 2]),
        ),
        (
            "let a: any = null; export default [a?.b!.c ?? 1, a?.b!() ?? 2, a?.<number>() ?? 3]",
            json!([1, 2, 3]),
        ),
        (
            "let a: any = null; let b = 0; try { (a?.b)!.c } catch { b = 1 } export default b",
            json!(1),
        ),
        (
            "let a: number[] = []; let b: any; for (b as number of [1, 2]) a.push(b!); export default a",
            json!([1, 2]),
        ),
        (
            "const t = <T,>(s: TemplateStringsArray, ...v: T[]) => [s[0], ...v]; export default t<number>`a${1 as any}`",
            json!(["a", 1]),
        ),
        (
            "class A<T> { b = 1 } export default [new A<string>()!.b, new A<string>, (A<number>).name].map(String)",
            json!(["1", "[object Object]", "A"]),
        ),
        (
            "function f(this: { a: number }, b?: number) { return this.a + (b ?? 1) } export default [f.call({ a: 1 }), f.length]",
            json!([2, 1]),
        ),
        (
            "export default [1 as number + 1, -((1 as any) ** 2), (2 as any) ** 2]",
            json!([2, -1, 4]),
        ),
        (
            "import * as N from 'nowhere'; import { T } from './x'; let a: N.X | T = 1 as any\nexport default a",
            json!(1),
        ),
        ("const s = 'é😀' as 'é'; const n: /* ü */ number = s.length; export default n", json!(3)),
    ] {
        comes_to(text, &expected);
    }
}

#[test]
fn places_are_those_of_the_original() {
    for (text, line, column) in [
        ("throw new Error()", 1, 11),
        ("const a: number = 1; throw new Error()", 1, 32),
        ("type A = { b: 1 }; throw new Error() as any", 1, 30),
        ("const s = 'é' as 'é'; const é: 'ü' = 1 as any; throw new Error()", 1, 58),
        (
            "interface A {\n  b: 1;\n}\nfunction f<T>(a: T): never {\n  throw new Error();\n}\nf<A>({ b: 1 });",
            5,
            13,
        ),
        (
            "import { B } from 'b';\r\nclass C<T> implements B { private d: A = this.e(); e(): any { throw new Error() } }\r\nnew C<A>();",
            2,
            73,
        ),
        (
            "type A =\u{2028} '\u{2029}' | /* \r \u{2028} */ 1;\u{2029}const a: `\u{2028}` = 1 as any;\rthrow new Error()",
            4,
            11,
        ),
        ("const f = (a: number):\n  | 1\n  | 2 => { throw new Error() };\nf(1)", 3, 22),
    ] {
        let error = run(text).error.expect("it throws");
        assert_eq!((error.line, error.column), (Some(line), Some(column)), "{text:?}");
    }
}

#[test]
fn a_stack_inside_is_that_of_the_original() {
    // A call of a name with arguments stands at its parenthesis.
    let text = "interface A { b: 'é' }\n\
        const f = <T extends A>(a: T, c?: number): string => new Error().stack!;\n\
        const é: 'ü' = null as any; export default f<A>({ b: 'é' } as A)";
    let stack = "Error\n    at f (<runCode>:2:58)\n    at <anonymous> (<runCode>:3:48)";
    assert_eq!(value(text), Ok(json!(stack)));
}

#[test]
fn what_produces_code_moves_no_line() {
    for (text, line, column) in [
        ("enum A { B, C } throw new Error()", 1, 27),
        ("enum A {\n B, // c\n C = 'é'\n}\nthrow new Error()", 5, 11),
        ("namespace N { export let a = 1; a; throw new Error() }", 1, 46),
        ("class A { constructor(readonly a: number) { throw new Error() } } new A(1)", 1, 55),
        ("namespace N { export const a = 1 } import a = N.a; a; throw new Error()", 1, 65),
        ("enum É { 'é' } /* \u{2028} */ const é: 1 = 1;\r\n enum F { A } throw new Error()", 2, 25),
        ("export default (function (): never { enum A { B } throw new Error() })()", 1, 61),
        ("-(1 as any) as any ** 2; <any>{ a: 1 }.a; throw new Error()", 1, 53),
    ] {
        let error = run(text).error.expect("it throws");
        assert_eq!((error.line, error.column), (Some(line), Some(column)), "{text:?}");
    }
}
