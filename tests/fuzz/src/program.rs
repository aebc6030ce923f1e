//! Programs made of bytes: JavaScript or TypeScript that mostly parses, unlike random text.
//!
//! In: the fuzzer's bytes, each a choice. Out: a module. The grammar favors known weaknesses of engines: getters and
//! proxies in odd places, tampered intrinsics, generators and async code that is never finished, extreme lengths,
//! arrays that change while a builtin walks them.

use std::fmt::Write;

use arbitrary::Unstructured;

const NAMES: &str = r"
    a b c d e
";

const OBJECTS: &str = r"
    Object Array String Number BigInt Symbol Map Set WeakMap WeakSet WeakRef Promise Proxy Reflect
    JSON Math Date RegExp Error TypeError AggregateError ArrayBuffer DataView Uint8Array
    Float64Array BigInt64Array Uint8ClampedArray Iterator FinalizationRegistry globalThis console
    Function structuredClone queueMicrotask echo later fail forget report Boolean
";

const METHODS: &str = r"
    from of prototype constructor map filter reduce flat flatMap splice sort toSorted slice concat
    fill copyWithin includes indexOf join push pop shift unshift reverse at with keys values entries
    then catch finally resolve reject all race any allSettled withResolvers apply call bind
    construct defineProperty freeze seal assign create getOwnPropertyDescriptors setPrototypeOf
    fromEntries groupBy toString valueOf toJSON stringify parse raw replace replaceAll match
    matchAll split padEnd repeat normalize localeCompare exec test lastIndex source flags get set
    has delete clear add size union forEach next return throw take drop toArray resize transfer
    buffer byteLength length subarray getInt8 setFloat64 setBigInt64 toISOString setFullYear getTime
    asIntN toFixed toPrecision deref register log error stack message name cause __proto__
    __defineGetter__ hasOwn revocable isArray description
";

const SYMBOLS: &str = r"
    iterator asyncIterator toPrimitive toStringTag species hasInstance match replace split
    isConcatSpreadable unscopables
";

const PATTERNS: &str = r"
    /(a+)+b/ /(?<n>.)\k<n>/u /[^]*?/gy /\p{L}/v /(?<=a)b|(?!c)/i /^$/m /(?:)/dg /a{2,}?[\d-x]/
    /(()|a)*/s /\b\B/
";

const NUMBERS: &str = r"
    0 -0 1 -1 2 7 255 256 4096 65536 1e5 2147483647 -2147483648 4294967295 4294967296
    9007199254740991 1e308 NaN Infinity 0.5 1n -1n (1n<<64n) 0x10n 1e21
";

const STRINGS: &str = r#"
    '' 'a' 'length' '__proto__' 'constructor' '0' '4294967295' 'é' '\ud800' '😀' 'then' 'toString'
    '\0' 'default' 'aaaaaaaaaaaaaaaaaaaaaaaa' 'ǅ' '[1,{"a":2}]'
"#;

const BINARY: &str = r"
    + - * / % ** << >> >>> & | ^ < >= == === !== && || ?? in instanceof ,
";

const TYPES: &str = r"
    number string any unknown Array<string> {a?:1} any[] `${'x'}`
";

/// The size limit of a program, so that the time goes into running.
const MOST_BYTES: usize = 8 << 10;

/// The program that those bytes choose.
pub(crate) fn write(bytes: &[u8], typescript: bool) -> String {
    let text = "let a = 1, b = [1, 2, 3], c = { x: 1, get y() { return 2; } }, d = () => a, e;\n"
        .to_owned();
    let mut program =
        Program { choices: Unstructured::new(bytes), text, typescript, depth: 0, names: 0 };
    while !program.spent() {
        program.statement();
    }
    if program.chance() {
        program.text.push_str("export default ");
        program.expression();
        program.text.push(';');
    }
    program.text
}

struct Program<'b> {
    choices: Unstructured<'b>,
    text: String,
    typescript: bool,
    depth: u32,
    names: u32,
}

impl Program<'_> {
    fn spent(&self) -> bool {
        self.choices.is_empty() || self.text.len() > MOST_BYTES
    }

    fn choose(&mut self, count: u8) -> u8 {
        self.choices.int_in_range(0..=count - 1).unwrap_or(0)
    }

    fn chance(&mut self) -> bool {
        self.choose(2) == 1
    }

    /// One of some words.
    fn one_of(&mut self, words: &str) {
        let last = words.split_ascii_whitespace().count() - 1;
        let place = self.choices.int_in_range(0..=last).unwrap_or(0);
        self.text.extend(words.split_ascii_whitespace().nth(place));
    }

    /// A template in which `$e` is an expression, `$b` a block, `$n` a name, `$p` a pattern, `$m` a
    /// method's name, `$o` an object, `$s` a symbol, `$i` a number, `$t` a text, `$r` a RegExp, `$2`
    /// an operator, `$f` a function, `$a` and `$w` an `await`, `$y` a type; the last three where they
    /// may stand.
    fn expand(&mut self, template: &str) {
        let mut pieces = template.split('$');
        self.text.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let mut rest = piece.chars();
            match rest.next() {
                Some('e') => self.expression(),
                Some('b') => self.block(),
                Some('n') => self.one_of(NAMES),
                Some('p') => self.pattern(),
                Some('m') => self.one_of(METHODS),
                Some('o') => self.one_of(OBJECTS),
                Some('s') => self.one_of(SYMBOLS),
                Some('i') => self.one_of(NUMBERS),
                Some('t') => self.one_of(STRINGS),
                Some('r') => self.one_of(PATTERNS),
                Some('2') => self.one_of(BINARY),
                Some('f') => self.function(),
                Some('a') => self.text.push_str(if self.awaits() { "await " } else { "void " }),
                Some('w') => self.text.push_str(if self.awaits() { " await" } else { "" }),
                Some('y') if self.typescript => {
                    self.text.push_str(": ");
                    self.one_of(TYPES);
                }
                _ => {}
            }
            self.text.push_str(rest.as_str());
        }
    }

    /// One of the templates, or the last if the nesting is deep or the bytes are spent.
    fn template(&mut self, templates: &[&str]) {
        let last = templates.len() - 1;
        let chosen = if self.depth > 6 || self.spent() {
            last
        } else {
            usize::from(self.choose(u8::try_from(templates.len()).unwrap_or(u8::MAX)))
        };
        self.depth += 1;
        self.expand(templates[chosen]);
        self.depth -= 1;
    }

    fn statement(&mut self) {
        if self.typescript && self.choose(6) == 0 {
            self.template(&[
                "type T = { x: number } & string;\n",
                "enum E { A = $i, B = 'b', C }\n",
                "namespace N { export const x = $e; }\n",
                "interface I { (x: number): string }\n",
                "abstract class K<T> { constructor(public x$y, private readonly z = $e) {} }\n",
                "declare const q: number;\n",
                "$n = <any>$n as unknown;\n",
                "function over(x: string): void; function over(x: any) { $e; }\n",
                "$n = ($e)!;\n",
            ]);
            return;
        }
        self.template(&[
            "let $p$y = $e;\n",
            "{ let $p = $e; $b }\n",
            "if ($e) $b else $b\n",
            "for (let i = 0; i < $i && i < 99; i++) $b\n",
            "for (const $p of $e) $b\n",
            "for (const k in $e) $b\n",
            "for$w (const $p of $e) $b\n",
            "try $b catch ($p) $b finally $b\n",
            "try $b catch $b\n",
            "l: while ($e) { $e; if ($e) continue l; break l; }\n",
            "switch ($e) { case $e: $e; default: $e; case $e: break; }\n",
            "class C extends ($e) { static #p = $e; [$e] = $e; get x() { return super.$m; } static $b }\n",
            "function $n($p, ...r) { $e; return $e; }\n",
            "async function $n() { await $e; $e; }\n",
            "function* $n() { try { yield* $e; yield $e; } finally { $e; } }\n",
            "$o.prototype.$m = $e;\n",
            "$o.$m = $e;\n",
            "Object.prototype[$t] = $e;\n",
            "Object.defineProperty($e, $e, { get() { return $e; }, configurable: true });\n",
            "$o.prototype[Symbol.$s] = $f;\n",
            "delete $o.$m;\n",
            "throw $e;\n",
            "$a$e;\n",
            "try { $a$e; } catch (x) { e = x; }\n",
            "queueMicrotask(() => $b);\n",
            "report($e);\n",
            "console.log($e, $e);\n",
            "$n = $e;\n",
            "$e;\n",
            "$n;\n",
        ]);
    }

    fn block(&mut self) {
        self.text.push_str("{ ");
        if self.depth < 6 && !self.spent() {
            self.depth += 1;
            self.statement();
            self.depth -= 1;
        }
        self.text.push('}');
    }

    /// A new name.
    fn pattern(&mut self) {
        self.names += 1;
        let _ = write!(self.text, "v{}", self.names);
    }

    /// Whether `await` is allowed here: near enough to the top to be outside of every function.
    fn awaits(&self) -> bool {
        self.depth <= 2
    }

    fn function(&mut self) {
        self.template(&[
            "(x => $e)",
            "(async (x$y) => { $e; return $e; })",
            "(function () { return $e; })",
            "(function* () { yield $e; $e; })",
            "(async function* () { yield $e; })",
            "(class { constructor() { return $e; } static [Symbol.$s]() { return $e; } })",
            "(({ x = $e, ...y } = {}, [z] = [$e]) => $e)",
            "d",
        ]);
    }

    fn expression(&mut self) {
        self.template(&[
            "($e $2 $e)",
            "[$e, $e]",
            "[$e, , ...b]",
            "({ x: $e, [$e]: $e, ...c })",
            "({ get $m() { return $e; }, $m() { $e; } })",
            "({ __proto__: $e, length: $i, 0: $e })",
            "({ then(r, j) { r($e); $e; } })",
            "({ [Symbol.$s]() { $e; return $e; }, valueOf() { return $e; } })",
            "({ [Symbol.iterator]() { return { next() { return { done: $e, value: $e }; }, return() { $e; } }; } })",
            "new Proxy($e, { $m: $f, get(t, k, r) { return $e; }, ownKeys: $f, has: $f })",
            "new Proxy($e, {})",
            "new $o($e)",
            "new $o($e, $e)",
            "new Uint8Array($i)",
            "new ArrayBuffer($i, { maxByteLength: 9999 })",
            "new DataView($e)",
            "$o.$m($e)",
            "$o.$m($e, $e, $f)",
            "$e.$m($e)",
            "$e?.$m?.($e, $f)",
            "$n.$m",
            "$n.$m($f)",
            "$n.$m($i, $i)",
            "b.$m($f, $e)",
            "$t.$m($r, $f)",
            "$r.$m($t)",
            "$e[$e]",
            "($n[$e] = $e)",
            "($n ??= $e)",
            "(b.length = $i)",
            "$o.prototype.$m.call($e, $e)",
            "$o.prototype.$m.apply($e, b)",
            "Reflect.construct($f, b, $e)",
            "Reflect.ownKeys($e)",
            "structuredClone($e)",
            "JSON.stringify($e, $e, $e)",
            "JSON.parse($e, $f)",
            "Promise.$m([$e, $e])",
            "($a$e)",
            "($aimport($t))",
            "(typeof $e)",
            "(- $e)",
            "(delete $n.$m)",
            "`x${$e}y`",
            "String.raw`a${$e}`",
            "($e ? $e : $e)",
            "echo($e, $f)",
            "later($e)",
            "fail($e)",
            "forget($e)",
            "($f)($e)",
            "new ($f)()",
            "Array.from({ length: 9, get 3() { b.length = 0; return $e; } })",
            "b.sort(() => { b.$m($e); return $i; })",
            "Symbol.$s",
            "$o",
            "$f",
            "$r",
            "$t",
            "$i",
            "$n",
        ]);
    }
}
