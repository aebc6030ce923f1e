//! The time that the engine's errors take, for texts in which many expressions may have failed.

use std::time::{Duration, Instant};

use isolane::{ExecutionOptions, Inputs, Status, run_code};

/// The longest text that is read again for an error.
const LONGEST: usize = 32 << 10;

/// Each text is read again for each failure: two places take turns.
const FAILURES: u32 = 50;

/// The most that a message may take on average. It took 25 ms at most, and 4 ms in a release build.
const MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 10 });

/// A shape of text: its name, its beginning, the part that is repeated, its end, and two statements that fail.
struct Shape {
    name: &'static str,
    start: &'static str,
    part: &'static str,
    end: &'static str,
    fails: [&'static str; 2],
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "calls beside each other",
        start: "if (0) { ",
        part: "o.f(o.g(1));",
        end: " }",
        fails: ["o.f(o.x);", "o.g();"],
    },
    Shape {
        name: "calls in a chain",
        start: "if (0) o",
        part: ".f()",
        end: ";",
        fails: ["o.f();", "o.g();"],
    },
    Shape {
        name: "calls in a chain that fails",
        start: "if (turn % 2) o.f()",
        part: ".f()",
        end: ";",
        fails: ["", "o.g();"],
    },
    Shape {
        name: "calls within each other",
        start: "if (0) o",
        part: ".a.b.c.d.e.f(o, o.x, `${o}`)",
        end: ";",
        fails: ["o.a.b.c.d();", "o.a.b.c.d.e();"],
    },
    Shape {
        name: "properties in a chain that fails",
        start: "if (turn % 2) o",
        part: ".abc",
        end: ";",
        fails: ["", "o.b.c;"],
    },
    Shape {
        name: "patterns beside each other",
        start: "let x; if (0) { ",
        part: "({ a: { b: [x] } } = o.a.b.c.d.e.f);",
        end: " }",
        fails: ["({ a: { b: [x] } } = o);", "({ c: { d: [x] } } = o);"],
    },
    Shape {
        name: "elements of one pattern",
        start: "let x; if (turn % 2) [",
        part: "[{ x }],",
        end: "] = [[null]];",
        fails: ["", "[{ x }] = [null];"],
    },
    Shape {
        name: "names that are nearly the same",
        start: "let orders1",
        part: ", ordersa, ordersb, ordersc",
        end: ";",
        fails: ["ordeds;", "ordexs;"],
    },
    Shape {
        name: "uses of one name",
        start: "if (0) { ",
        part: "ordeds;",
        end: " }",
        fails: ["ordeds;", "1 + ordeds;"],
    },
    Shape {
        name: "sums",
        start: "const b = 1n; if (0) { o.x = 1",
        part: " + o.a.b.c.d",
        end: " }",
        fails: ["1 + b;", "2 + b;"],
    },
];

/// The time of a run that fails that often.
fn time(shape: &Shape, text: &str, count: u32) -> Duration {
    let globals = Inputs::new().with("count", count);
    let started = Instant::now();
    let run = run_code(text, ExecutionOptions { globals, ..Default::default() });
    let result = run.wait().expect("the options are right");
    assert_eq!(result.status, Status::Success, "{}: {:?}", shape.name, result.error);
    let told = result.result.expect("a success has a result");
    let told: u32 = told.deserialize().expect("a number");
    assert_eq!(told, count, "{}", shape.name);
    started.elapsed()
}

#[test]
fn long_texts_have_messages() {
    for shape in SHAPES {
        time(shape, &text(shape), 4);
    }
}

#[test]
#[ignore = "measures the process: .ci/campaign measured"]
fn a_message_takes_little_time() {
    for shape in SHAPES {
        let text = text(shape);
        time(shape, &text, 0);
        let mut means: Vec<_> = (0..5)
            .map(|_| {
                let idle = time(shape, &text, 0);
                time(shape, &text, FAILURES).saturating_sub(idle) / FAILURES
            })
            .collect();
        means.sort_unstable();
        println!("{}: {:?} a message", shape.name, means[2]);
        assert!(means[2] <= MOST, "{}: {means:?}", shape.name);
    }
}

/// A module that fails `count` times, at two places in turn, and counts its failures.
fn text(shape: &Shape) -> String {
    let Shape { start, part, end, fails: [first, second], .. } = shape;
    let head = "const o = {}; let failed = 0;\nfor (let turn = 0; turn < count; turn++) {\n";
    let tail =
        "\n} catch (error) { failed += error.message === '' ? 0 : 1; } }\nexport default failed;\n";
    let fails = format!("\nif (turn % 2) {{ {first} }} else {{ {second} }}");
    let around = head.len() + tail.len() + fails.len() + start.len() + end.len() + "try {\n".len();
    let mut parts = String::new();
    let mut next = 0;
    loop {
        next += 1;
        // Declared names differ.
        let part = match shape.name {
            "names that are nearly the same" => format!(", orders{next}x"),
            _ => (*part).to_owned(),
        };
        if around + parts.len() + part.len() > LONGEST {
            break;
        }
        parts += &part;
    }
    format!("{head}try {{\n{start}{parts}{end}{fails}{tail}")
}
