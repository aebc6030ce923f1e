//! Random sequences of cells, compared with scripts of the same text.
//!
//! Each program is run twice by Node: as `node:vm` runs it, and compiled here with a session's names emulated. Values,
//! errors, logs and variables are the same. Names are unique in a sequence, since scripts cannot declare one anew. Without
//! Node the test does nothing.

use std::{fmt::Write as _, process::Command};

use super::*;

const SEQUENCES: usize = 1_000;

/// A writer of programs.
struct Writer {
    state: u64,
    names: usize,
    /// Names that can be read, and those that can be assigned.
    readable: Vec<String>,
    assignable: Vec<String>,
    labels: Vec<String>,
    /// Loops and `switch` around; loops around.
    breakable: usize,
    loops: usize,
    out: String,
}

impl Writer {
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % limit as u64).expect("small")
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn fresh(&mut self, assignable: bool) -> String {
        self.names += 1;
        let name = format!("n{}", self.names);
        self.readable.push(name.clone());
        if assignable {
            self.assignable.push(name.clone());
        }
        name
    }

    fn pick(&mut self, of: &[String]) -> Option<String> {
        (!of.is_empty()).then(|| of[self.below(of.len())].clone())
    }

    fn name(&mut self) -> String {
        let names = self.readable.clone();
        self.pick(&names).unwrap_or_else(|| "logs.length".to_owned())
    }

    fn expression(&mut self, depth: usize) -> String {
        let inner = depth.saturating_sub(1);
        match self.below(if depth == 0 { 3 } else { 13 }) {
            0 => format!("{}", self.below(9)),
            1 => format!("'s{}'", self.below(9)),
            2 => format!("typeof {}", self.name()),
            3 => format!("log({})", self.expression(inner)),
            4 => self.name(),
            5 => format!("[{}, {}]", self.expression(inner), self.expression(inner)),
            6 => "(() => 1)".to_owned(),
            7 => "(function () {})".to_owned(),
            8 => format!("(class {{ a = {} }})", self.expression(inner)),
            9 => format!("(typeof {} + typeof {})", self.expression(inner), self.expression(inner)),
            10 => {
                let names = self.assignable.clone();
                let target = self.pick(&names).unwrap_or_else(|| "logs.extra".to_owned());
                format!("({target} = {})", self.expression(inner))
            }
            11 => format!("((x) => {{ var v = x; return {} }})(1)", self.name()),
            _ => "fuel()".to_owned(),
        }
    }

    fn end(&mut self) {
        let end = if self.one_in(3) { "\n" } else { "; " };
        self.put(end);
    }

    fn pattern(&mut self, depth: usize, assignable: bool) -> String {
        if depth == 0 || self.one_in(2) {
            return self.fresh(assignable);
        }
        let (first, second) = (self.pattern(depth - 1, assignable), self.fresh(assignable));
        match self.below(4) {
            0 => format!("[{first} = () => 1, ...{second}]"),
            1 => format!("{{ a: {first} = function () {{}}, {second} = class {{}} }}"),
            2 => format!("{{ [{}]: {first} = 1, ...{second} }}", self.expression(0)),
            _ => format!("[, {first} = 2, {second}]"),
        }
    }

    fn variables(&mut self, kind: &str) -> String {
        let assignable = kind != "const";
        let count = 1 + self.below(3);
        let mut parts = Vec::new();
        for _ in 0..count {
            if kind != "const" && self.one_in(4) {
                parts.push(self.fresh(assignable));
                continue;
            }
            let value = self.expression(2);
            let pattern = self.pattern(2, assignable);
            let simple = pattern.starts_with('n');
            let value = match self.below(3) {
                0 if simple => "() => 1".to_owned(),
                1 if simple => "(function () {})".to_owned(),
                _ if simple => value,
                _ if pattern.starts_with('[') => format!("[{value}, 2, 3]"),
                _ => format!("{{ a: {value}, s1: 2, 3: 4 }}"),
            };
            parts.push(format!("{pattern} = {value}"));
        }
        format!("{kind} {}", parts.join(", "))
    }

    fn list(&mut self, depth: usize, most: usize) {
        self.put("{ ");
        for _ in 0..self.below(most + 1) {
            self.statement(depth, true);
        }
        self.put("} ");
    }

    fn body(&mut self, depth: usize) {
        if self.one_in(2) { self.list(depth, 3) } else { self.statement(depth, false) }
    }

    fn looped(&mut self, head: &str, depth: usize) {
        self.put(head);
        self.loops += 1;
        self.breakable += 1;
        self.body(depth);
        self.loops -= 1;
        self.breakable -= 1;
    }

    fn simple(&mut self) {
        let expression = self.expression(2);
        if self.one_in(20) {
            return self.put("async () => 1; ");
        }
        self.put(&expression);
        self.end();
    }

    fn statement(&mut self, depth: usize, in_list: bool) {
        if depth == 0 {
            return self.simple();
        }
        let inner = depth - 1;
        match self.below(26) {
            5 | 6 => {
                let text = self.variables("var");
                self.put(&text);
                self.end();
            }
            7 if in_list => self.list(inner, 3),
            8 | 9 => {
                let test = self.expression(1);
                self.put(&format!("if ({test}) "));
                self.body(inner);
                if self.one_in(2) {
                    self.put(" else ");
                    self.body(inner);
                }
            }
            10 => {
                let value = if self.one_in(2) {
                    "let q = 0".to_owned()
                } else {
                    format!("var {} = 0", self.fresh(true))
                };
                self.looped(&format!("for ({value}; fuel();) "), inner);
            }
            11 => {
                let kind = ["var", "let", "const"][self.below(3)];
                let target =
                    if kind == "var" { self.pattern(1, true) } else { format!("q{}", self.names) };
                let text = format!("for ({kind} {target} of [[1, 2], [3]]) ");
                self.looped(&text, inner);
            }
            12 => {
                let name = self.fresh(true);
                self.looped(&format!("for (var {name} in {{ a: 1, b: 2 }}) "), inner);
            }
            13 => self.looped("while (fuel()) ", inner),
            14 => {
                self.looped("do ", inner);
                self.put(" while (fuel())");
                self.end();
            }
            15 => {
                let subject = self.expression(1);
                self.put(&format!("switch ({subject}) {{ "));
                self.breakable += 1;
                for label in ["case 1: ", "default: ", "case 's1': "] {
                    self.put(label);
                    for _ in 0..self.below(3) {
                        self.statement(inner, true);
                    }
                }
                self.breakable -= 1;
                self.put("} ");
            }
            16 | 17 => self.attempt(inner),
            18 => {
                let label = format!("l{}", self.labels.len());
                self.put(&format!("{label}: "));
                self.labels.push(label);
                self.list(inner, 3);
                self.labels.pop();
            }
            19 | 20 => self.jump(),
            21 => self.put("; "),
            22 if self.one_in(4) => {
                let value = self.expression(1);
                self.put(&format!("throw {value}"));
                self.end();
            }
            _ => self.simple(),
        }
    }

    fn jump(&mut self) {
        let labels = self.labels.clone();
        match self.below(3) {
            0 if self.breakable > 0 => self.put("break; "),
            1 if self.loops > 0 => self.put("continue; "),
            _ => match self.pick(&labels) {
                Some(label) => self.put(&format!("break {label}; ")),
                None => self.simple(),
            },
        }
    }

    fn attempt(&mut self, depth: usize) {
        self.put("try ");
        self.list(depth, 3);
        let catches = self.one_in(2);
        if catches {
            // V8 lets the value of the block stand, where the language does not.
            self.put("catch (e) { 0; ");
            self.list(depth, 2);
            self.put("} ");
        }
        if !catches || self.one_in(2) {
            self.put("finally ");
            self.list(depth, 2);
        }
    }

    fn declaration(&mut self) {
        let text = match self.below(4) {
            0 => {
                let value = self.name();
                let name = self.fresh(true);
                format!("function {name}() {{ return [typeof {name}, typeof {value}] }} ")
            }
            1 => {
                let value = self.expression(1);
                let name = self.fresh(true);
                format!("class {name} {{ static a = {value}; static b = {name}.name }} ")
            }
            other => {
                let text = self.variables(if other == 2 { "let" } else { "const" });
                format!("{text};\n")
            }
        };
        self.put(&text);
    }

    fn cell(&mut self) -> String {
        self.out.clear();
        // It is no object.
        self.put("; ");
        for _ in 0..=self.below(5) {
            if self.one_in(3) { self.declaration() } else { self.statement(3, true) }
        }
        if self.one_in(5) {
            self.put(" // end");
        }
        std::mem::take(&mut self.out)
    }
}

/// The sequences as JSON. Their texts are of ASCII, so Rust's quotes are JavaScript's.
fn sequences(count: usize) -> String {
    let mut json = String::from("[");
    for seed in 0..count {
        let mut writer = Writer {
            state: (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            names: 0,
            readable: Vec::new(),
            assignable: Vec::new(),
            labels: Vec::new(),
            breakable: 0,
            loops: 0,
            out: String::new(),
        };
        json.push_str(if seed == 0 { "[" } else { ",\n[" });
        for index in 0..3 {
            let source = writer.cell();
            let language = LANGUAGES[seed % 2];
            let cell = cell(&source, language);
            let names =
                cell.plan.names.iter().map(|it| format!("[{:?}, \"{:?}\"]", it.name, it.kind));
            let names = names.collect::<Vec<_>>().join(", ");
            let comma = if index == 0 { "" } else { "," };
            let code = cell.module.code();
            write!(
                json,
                "{comma}{{\"source\": {source:?}, \"code\": {code:?}, \"names\": [{names}]}}"
            )
            .expect("a string");
        }
        json.push(']');
    }
    json.push(']');
    json
}

#[test]
fn cells_do_as_scripts_do() {
    let directory = std::env::temp_dir().join(format!("isolane-cells-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (script, input) = (directory.join("oracle.mjs"), directory.join("cells.json"));
    std::fs::write(&script, include_str!("oracle.mjs")).expect("the script");
    let count = std::env::var("ISOLANE_SEQUENCES").ok().and_then(|count| count.parse().ok());
    std::fs::write(&input, sequences(count.unwrap_or(SEQUENCES))).expect("the cells");
    let run = Command::new("node").arg(&script).arg(&input).output();
    std::fs::remove_dir_all(&directory).expect("it was made");
    let Ok(run) = run else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (differences, errors) = (text(&run.stdout), text(&run.stderr));
    assert!(run.status.success(), "{errors}");
    let beginning = differences.get(..differences.floor_char_boundary(8_000)).unwrap_or_default();
    assert!(differences.is_empty(), "{} lines:\n{beginning}", differences.lines().count());
}
