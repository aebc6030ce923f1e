// Random programs: statements over a small grammar, typed so that most of them get far.
//
// In: choices. Out: the source of a module that ends with a result or with a throw at some depth. Its result depends on
// the language alone: no clock, no randomness, one pending promise of the host at a time, so that the order of two
// settlements never matters.

import { randomText } from './values.mjs';
import { quoted } from './source.mjs';

const KINDS = ['num', 'str', 'bool', 'arr', 'obj', 'big', 'map'];
const TYPES = { num: 'number', str: 'string', bool: 'boolean', arr: 'number[]', obj: 'Record<string, unknown>', big: 'bigint', map: 'Map<string, number>' };

/** Functions of the host that a program may call; each has the same result in every language. */
export const PROGRAM_HOST = ['echo', 'add', 'args', 'fail', 'failType', 'failCode', 'later', 'laterFail', 'makeAdder', 'call', 'callTwice', 'keep', 'callKept', 'isSame', 'settle'];

/** The source of a program, and the arguments of its default export if that is a function. */
export function randomProgram(random, typescript) {
  return new Program(random, typescript).whole();
}

class Program {
  constructor(random, typescript) {
    this.random = random;
    this.typescript = typescript;
    this.lines = [];
    this.indent = 0;
    this.names = 0;
    this.depth = 0;
    // Variables by kind, innermost scope last; functions and classes that can be called.
    this.scopes = [this.emptyScope()];
    this.inAsync = true;
    this.budget = random.between(4, 22);
  }

  whole() {
    const { random } = this;
    for (const kind of KINDS) this.declare(kind);
    while (this.budget > 0) this.statement();
    const ending = random.weighted({ value: 6, all: 3, fn: 2, async: 1, throwing: 2, rejecting: 1 });
    let args = [];
    switch (ending) {
      case 'value':
        this.line(`export default ${this.expression(random.pick(KINDS), 3)};`);
        break;
      case 'all':
        this.line(`export default { ${KINDS.map((kind) => `${kind}: ${this.variable(kind)}`).join(', ')} };`);
        break;
      case 'fn':
        args = [random.between(-9, 9), randomText(random, false)];
        this.line(`export default function (n${this.type('number')}, s${this.type('string')}) {`);
        this.block(() => {
          this.scope().num.push('n');
          this.scope().str.push('s');
          this.inAsync = false;
          for (let left = random.between(0, 3); left > 0; left -= 1) this.statement();
          this.line(`return [n, s, ${this.expression(random.pick(KINDS), 2)}];`);
        }, false);
        break;
      case 'async':
        this.line(`export default (async () => { await settle(); return ${this.expression(random.pick(KINDS), 2)}; })();`);
        break;
      case 'throwing':
        this.throwing(random.between(0, 4));
        break;
      default:
        this.line(`export default Promise.reject(${this.thrown()});`);
    }
    return { source: `${this.lines.join('\n')}\n`, args };
  }

  // Statements.

  statement() {
    this.budget -= 1;
    const { random } = this;
    const simple = { declare: 4, assign: 5, report: 2, console: 2, update: 3, loose: 0.3, hostCall: this.inAsync ? 2 : 1 };
    const nested = { branch: 3, loop: 3, attempt: 3, fn: 2, closure: 1, generator: 1, classes: 1.5, asyncFn: this.inAsync ? 1 : 0, destructure: 2, choose: 1, collect: 1.5, sorting: 1, regexps: 1, json: 1, iterator: 0.7, proxies: 0.5, erased: this.typescript ? 2 : 0, enums: this.typescript && this.scopes.length === 1 ? 1 : 0 };
    const kind = random.weighted(this.depth > 2 ? simple : { ...simple, ...nested });
    if (kind === 'declare') this.declare(random.pick(KINDS));
    else this[kind]();
  }

  declare(kind) {
    const name = this.fresh();
    const value = this.expression(kind, 2);
    this.line(`${this.random.pick(['let', 'let', 'var'])} ${name}${this.type(TYPES[kind])} = ${value};`);
    this.scope()[kind].push(name);
  }

  assign() {
    const kind = this.random.pick(KINDS);
    this.line(`${this.variable(kind)} = ${this.bounded(kind, this.expression(kind, 3))};`);
  }

  update() {
    const { random } = this;
    const num = this.variable('num');
    this.line(random.pick([
      () => `${num}${random.pick(['++', '--'])};`,
      () => `${num} ${random.pick(['+=', '-=', '*=', '%=', '|=', '^=', '&=', '>>>=', '<<=', '??=', '||=', '&&='])} ${this.expression('num', 2)};`,
      () => `${this.variable('arr')}.push(${this.expression('num', 2)}, ${this.expression('num', 1)});`,
      () => `${this.variable('arr')}.${random.pick(['pop()', 'shift()', 'reverse()', 'sort()', 'splice(1, 1)', 'fill(0, 1)', 'copyWithin(0, 1)'])};`,
      () => `${this.variable('obj')}[${this.expression('str', 1)}] = ${this.expression(random.pick(['num', 'str', 'bool', 'big']), 2)};`,
      () => `delete ${this.variable('obj')}[${this.expression('str', 1)}];`,
      () => `${this.variable('map')}.set(${this.expression('str', 1)}, ${this.expression('num', 2)});`,
      () => `${this.variable('map')}.delete(${this.expression('str', 1)});`,
    ])());
  }

  report() {
    this.line(`report(${this.expression(this.random.pick(KINDS), 2)});`);
  }

  console() {
    const { random } = this;
    const args = random.list(random.between(0, 3), () => this.expression(random.pick(KINDS), 1)).join(', ');
    this.line(random.pick([
      () => `console.${random.pick(['log', 'info', 'warn', 'error', 'debug'])}(${args});`,
      () => `console.${random.pick(['log', 'trace', 'dir', 'table'])}(${args});`,
      () => `console.assert(${this.expression('bool', 1)}, ${this.expression('str', 1)});`,
      () => `console.${random.pick(['count', 'countReset', 'group'])}(${quoted(random.pick(['a', 'b', '']))}); console.groupEnd();`,
    ])());
  }

  /** An unhandled failure. */
  loose() {
    this.line(this.random.pick([`void Promise.reject(${this.thrown()});`, `queueMicrotask(() => { throw ${this.thrown()}; });`]));
  }

  hostCall() {
    const { random } = this;
    const arr = this.variable('arr');
    const calls = [
      () => `${arr} = echo(${this.expression('arr', 2)});`,
      () => `${this.variable('str')} = echo(${this.expression('str', 2)});`,
      () => `${this.variable('num')} = add(${random.between(-99, 99)}, ${random.between(-99, 99)});`,
      () => `${this.variable('obj')} = { args: args(${this.expression('num', 1)}, ${this.expression('str', 1)}, ${this.expression('bool', 1)}) };`,
      () => `${this.variable('bool')} = isSame(${random.pick(['echo', 'add', 'echo(echo)', '(x) => x', 'undefined'])});`,
      () => `${this.variable('num')} = makeAdder(${random.between(-9, 9)})(${random.between(-9, 9)});`,
      () => this.attempted(() => this.line(`${random.pick(['fail', 'failType'])}(${quoted(randomText(random, false))});`)),
      () => this.attempted(() => this.line(`failCode(${quoted(randomText(random, false))}, ${random.pick(["'E_NOT'", '404', '-1.5'])});`)),
    ];
    const awaiting = [
      () => `${arr} = await later(${this.expression('arr', 2)});`,
      () => `${this.variable('str')} = await later(${this.expression('str', 1)});`,
      () => `${this.variable('num')} = await call((a${this.type('number')}, b${this.type('number')}) => a * b, ${random.between(0, 99)}, ${random.between(0, 99)});`,
      () => `${this.variable('num')} = await callTwice(async (x${this.type('number')}) => x + ${random.between(1, 9)}, ${random.between(0, 9)});`,
      () => `keep((...xs${this.type('number[]')}) => xs.length); ${this.variable('num')} = await callKept(${random.list(random.below(4), (i) => i).join(', ')});`,
      () => `${arr} = await Promise.all([later(${random.below(9)}), ${random.below(9)}, later(${random.below(9)})]);`,
      () => this.attempted(() => this.line(`await laterFail(${quoted(randomText(random, false))});`)),
      () => this.attempted(() => this.line(`await call(() => { throw ${this.thrownError()}; });`)),
    ];
    const written = random.pick(this.inAsync ? [...calls, ...awaiting] : calls)();
    if (written !== undefined) this.line(written);
  }

  branch() {
    this.line(`if (${this.expression('bool', 2)}) {`);
    this.block(() => this.some(1, 3));
    if (this.random.chance(0.5)) {
      this.lines[this.lines.length - 1] += ' else {';
      this.block(() => this.some(1, 2));
    }
  }

  loop() {
    const { random } = this;
    const name = this.fresh();
    const label = random.chance(0.2) ? `${this.fresh()}: ` : '';
    const head = random.pick([
      `for (let ${name} = ${random.below(3)}; ${name} < ${random.between(1, 6)}; ${name} += ${random.pick([1, 1, 2, 0.5])}) {`,
      `for (const ${name} of ${this.expression('arr', 1)}.slice(0, 5)) {`,
      `for (const ${name} in ${this.variable('obj')}) {`,
      `for (const [${name}] of [...${this.variable('map')}].slice(0, 4)) {`,
      `for (const ${name} of ${this.expression('str', 1)}.slice(0, 6)) {`,
    ]);
    this.line(label + head);
    this.block(() => {
      const before = random.between(1, 3);
      this.some(before, before);
      this.line(`${this.variable('str')} += String(${name});`);
      if (random.chance(0.4)) this.line(`if (${this.expression('bool', 1)}) ${random.pick(['break', 'continue'])}${label === '' ? '' : ` ${label.slice(0, -2)}`};`);
    });
    this.line(`${this.lastString()} = ${this.lastString()}.slice(-200);`);
  }

  attempt() {
    const { random } = this;
    const caught = this.fresh();
    this.line('try {');
    this.block(() => {
      this.some(0, 2);
      if (random.chance(0.7)) this.line(random.chance(0.4) ? this.mistake() : `throw ${this.thrown()};`);
    });
    this.lines[this.lines.length - 1] += random.chance(0.85) ? ` catch (${caught}${this.type('any')}) {` : ' catch {';
    const binds = this.lines.at(-1).includes('(');
    this.block(() => {
      if (binds) this.line(`${this.variable('str')} = ${caught} instanceof Error ? ${caught}.name + ': ' + ${caught}.message : typeof ${caught};`);
      if (binds && random.chance(0.3)) this.line(`report(${caught});`);
      if (binds && random.chance(0.2)) this.line(`console.error(${caught});`);
    });
    if (random.chance(0.4)) {
      this.lines[this.lines.length - 1] += ' finally {';
      this.block(() => this.some(1, 2));
    }
  }

  attempted(write) {
    const caught = this.fresh();
    this.line('try {');
    this.block(write);
    this.lines[this.lines.length - 1] += ` catch (${caught}${this.type('any')}) {`;
    this.block(() => this.line(`${this.variable('obj')} = { name: ${caught}.name, message: ${caught}.message, code: ${caught}.code ?? null, isType: ${caught} instanceof TypeError, isError: ${caught} instanceof Error };`));
  }

  fn() {
    const { random } = this;
    const name = this.fresh();
    const [a, b] = [this.fresh(), this.fresh()];
    this.line(random.pick([
      `function ${name}(${a}${this.type('number')}, ${b}${this.type('string')} = 'd', ...rest${this.type('unknown[]')})${this.type('string')} {`,
      `const ${name} = (${a}${this.type('number')}, { length: size } = 'dd', ...rest${this.type('unknown[]')}) => {`,
    ]));
    const arrow = this.lines.at(-1).trimStart().startsWith('const');
    this.functionBody(() => {
      this.scope().num.push(a);
      if (!arrow) this.scope().str.push(b);
      this.some(0, 3);
      this.line(`return ${arrow ? "String(size) + " : ''}${this.expression('str', 2)} + rest.length${arrow ? '' : " + (this === undefined)"};`);
    });
    if (arrow) this.lines[this.lines.length - 1] += ';';
    this.line(`${this.variable('str')} = ${name}(${this.expression('num', 1)}, ${this.expression('str', 1)}, 1, null).slice(-200);`);
  }

  closure() {
    const [make, count] = [this.fresh(), this.fresh()];
    this.line(`const ${make} = () => { let ${count} = ${this.expression('num', 1)}; return { up: () => (${count} += 1), get now() { return ${count}; } }; };`);
    const made = this.fresh();
    this.line(`const ${made} = ${make}(); ${made}.up(); ${this.variable('num')} = ${made}.up() + ${made}.now;`);
  }

  generator() {
    const name = this.fresh();
    this.line(`function* ${name}(n${this.type('number')})${this.type('Generator<number, string, any>')} { for (let i = 0; i < n; i++) { const got = yield i * ${this.random.between(1, 5)}; if (got) return 'early'; } return 'late'; }`);
    this.line(`${this.variable('arr')} = [...${name}(${this.random.below(6)})];`);
    const made = this.fresh();
    this.line(`const ${made} = ${name}(3); ${made}.next(); ${this.variable('str')} = JSON.stringify([${made}.next(${this.random.pick(['0', '1'])}), ${made}.return('r'), ${made}.next()]);`);
  }

  classes() {
    const { random } = this;
    const [base, derived, made] = [this.fresh().toUpperCase(), this.fresh().toUpperCase(), this.fresh()];
    const isParameter = this.typescript && random.chance(0.5);
    const field = isParameter ? '' : `n${this.type('any')}; `;
    const constructor = isParameter ? 'constructor(public n: number) {' : `constructor(n${this.type('any')}) { this.n = n;`;
    this.line(`class ${base} { ${field}#hidden = ${random.below(9)}; static made = 0; ${constructor} ${base}.made += 1; } get twice() { return this.n * 2 + this.#hidden; } toString() { return \`${base}(\${this.n})\`; } }`);
    this.line(`class ${derived} extends ${base} { toString() { return 'd' + super.toString(); } static { this.made += ${random.below(9)}; } *[Symbol.iterator]() { yield this.n; yield this.twice; } }`);
    this.line(`const ${made} = new ${derived}(${this.expression('num', 1)}); ${this.variable('str')} = \`\${${made}} \${${base}.made} \${${derived}.made}\`; ${this.variable('arr')} = [...${made}]; ${this.variable('obj')} = { ...${made}, is: ${made} instanceof ${base} };`);
  }

  asyncFn() {
    const { random } = this;
    const name = this.fresh();
    this.line(`async function ${name}(x${this.type('number')})${this.type('Promise<number>')} {`);
    this.functionBody(() => {
      this.inAsync = true;
      this.scope().num.push('x');
      this.some(0, 2);
      if (random.chance(0.5)) this.line(`await ${random.pick(['null', 'later(1)', 'settle()', 'Promise.resolve()'])};`);
      if (random.chance(0.3)) this.line(`if (${this.expression('bool', 1)}) throw ${this.thrown()};`);
      this.line(`return ${this.expression('num', 1)};`);
    });
    this.attempted(() => this.line(`${this.variable('num')} = await ${name}(${this.expression('num', 1)});`));
  }

  destructure() {
    const [a, b, c] = [this.fresh(), this.fresh(), this.fresh()];
    const annotated = this.type('any');
    this.line(this.random.pick([
      () => `const [${a} = ${this.expression('num', 1)}, , ...${b}]${annotated} = ${this.expression('arr', 1)};`,
      () => `const { a: ${a} = ${this.expression('num', 1)}, [${this.expression('str', 1)}]: ${c}, ...${b} }${annotated} = ${this.variable('obj')};`,
    ])());
    this.line(`${this.variable('obj')} = { a: ${a} ?? null, b: ${b} };`);
  }

  choose() {
    const { random } = this;
    this.line(`switch (${this.expression('num', 1)} % 3) {`);
    this.block(() => {
      for (const value of [0, 1, random.pick([-1, 2, 'NaN'])]) {
        this.line(`case ${value}: ${this.variable('num')} += ${random.between(1, 5)};${random.chance(0.6) ? ' break;' : ''}`);
      }
      this.line(`default: ${this.variable('str')} = ${this.expression('str', 1)};`);
    });
  }

  collect() {
    const { random } = this;
    const name = this.fresh();
    this.line(random.pick([
      () => `const ${name} = new Set(${this.expression('arr', 1)}); ${name}.add(NaN).add(-0); ${this.variable('arr')} = [...${name}]; ${this.variable('num')} = ${name}.size;`,
      () => `const ${name} = new Map(${this.expression('arr', 1)}.map((x, i) => [String(x), i])); ${this.variable('map')} = ${name}; for (const [k, v] of ${name}) { if (v > 2) ${name}.delete(k); }`,
      () => `const ${name} = Object.entries(${this.variable('obj')}).map(([k, v]) => k + typeof v); ${this.variable('str')} = ${name}.join();`,
      () => `const ${name} = new WeakMap([[${this.variable('obj')}, 1]]); ${this.variable('bool')} = ${name}.has(${this.variable('obj')});`,
      () => `const ${name} = new Int16Array(${this.expression('arr', 1)}.slice(0, 9)); ${this.variable('arr')} = Array.from(${name}.map((x) => x * 3).subarray(1));`,
    ])());
  }

  sorting() {
    const compare = this.random.pick(['(a, b) => a - b', '(a, b) => b - a', '(a, b) => (a % 3) - (b % 3)', '(a, b) => String(a) < String(b) ? -1 : 1', '']);
    this.line(`${this.variable('arr')} = [...${this.expression('arr', 2)}].sort(${compare});`);
  }

  regexps() {
    const { random } = this;
    const text = this.expression('str', 2);
    this.line(random.pick([
      `${this.variable('arr')} = [...${text}.matchAll(/(?<head>\\w)(\\d*)/g)].map((m) => m.index);`,
      `${this.variable('str')} = ${text}.replace(/[aeiou\\d]+/gi, (m, at) => m.toUpperCase() + at);`,
      `${this.variable('bool')} = /^\\p{L}+$/u.test(${text});`,
      `${this.variable('arr')} = ${text}.split(/(?<=a)|b/).map((s) => s.length);`,
      `${this.variable('num')} = (/(\\d+)(?!.*\\d)/.exec(${text})?.[1] ?? '').length;`,
    ]));
  }

  json() {
    const { random } = this;
    this.line(random.pick([
      () => `${this.variable('str')} = JSON.stringify(${this.expression('obj', 2)}, (k, v) => (typeof v === 'bigint' ? \`\${v}n\` : v), ${random.pick(['0', '1', "'--'"])}).slice(0, 200);`,
      () => `${this.variable('obj')} = JSON.parse('{"a": [1, {"b": null}], "c": "\\\\u00e9", "__proto__": 1}', (k, v) => (k === 'b' ? ${this.expression('num', 1)} : v));`,
      () => `${this.variable('obj')} = structuredClone({ m: [${this.variable('arr')}, ${this.variable('map')}], d: new Date(${random.below(1e9)}).toISOString() });`,
    ])());
  }

  iterator() {
    const name = this.fresh();
    this.line(`const ${name} = { from: 0, [Symbol.iterator]() { let at = this.from; return { next: () => ({ value: at, done: at++ > ${this.random.between(0, 4)} }), return: () => { console.debug('closed'); return {}; } }; } };`);
    this.line(`const [${this.fresh()}] = ${name}; ${this.variable('arr')} = Array.from(${name}, (x) => x + 1);`);
  }

  proxies() {
    const name = this.fresh();
    this.line(`const ${name}${this.type('any')} = new Proxy(${this.variable('obj')}, { get: (t, k) => (k in t ? Reflect.get(t, k) : String(k).length), has: () => ${this.random.chance(0.5)} });`);
    this.line(`${this.variable('num')} = Number(${name}.${this.random.pick(['missing', 'x', 'length'])}) || 0; ${this.variable('bool')} = 'q' in ${name};`);
  }

  erased() {
    const { random } = this;
    const name = this.fresh().toUpperCase();
    this.line(random.pick([
      `interface ${name}<T extends object = {}> { readonly a?: T; [key: string]: unknown }`,
      `type ${name} = { [K in 'a' | 'b']: K extends 'a' ? number : \`\${K}!\` };`,
      `declare const ${name}: unique symbol;`,
      `abstract class ${name} { protected abstract readonly a: number; declare b?: string; private constructor(private readonly c = 1) {} }`,
      `function ${name}(x: string): string; function ${name}(x: number): number; function ${name}(x: any): any { return x; }`,
      `const ${name} = <T,>(x: T): T => x satisfies T as any as T;`,
      `let ${name}!: number; ${name} = ${random.below(9)} as const; ${this.variable('num')} = ${name}!;`,
    ]));
  }

  enums() {
    const { random } = this;
    const name = this.fresh().toUpperCase();
    if (random.chance(0.3)) {
      this.line(`namespace ${name} { export const a = ${random.below(99)}; export function f(x: number) { return x + a; } }`);
      this.line(`${this.variable('num')} = ${name}.f(${this.expression('num', 1)});`);
      return;
    }
    this.line(`${random.chance(0.3) ? 'const ' : ''}enum ${name} { A, B = ${random.between(2, 40)}, C, D = 'd', E = B << 2, F = 'x'.length }`);
    this.line(`${this.variable('arr')} = [${name}.A, ${name}.C, ${name}.E, ${name}.F]; ${this.variable('str')} = ${name}.D;`);
  }

  /** An error that no code catches, some calls deep. */
  throwing(depth) {
    const { random } = this;
    const names = random.list(depth, () => this.fresh());
    names.forEach((name, index) => {
      const next = names[index + 1];
      const isAsync = random.chance(0.3);
      const act = next === undefined ? `throw ${this.thrown()};` : `${random.pick(['return ', '', isAsync ? 'await ' : ''])}${next}(x + 1);`;
      this.line(random.pick([
        `${isAsync ? 'async ' : ''}function ${name}(x${this.type('number')})${this.type('any')} { ${act} }`,
        `${isAsync ? 'async ' : ''}function ${name}(x${this.type('number')})${this.type('any')} {\n  if (x > 99) return 0;\n  ${act}\n}`,
      ]));
    });
    if (depth === 0) this.line(random.chance(0.5) ? `throw ${this.thrown()};` : this.mistake());
    else this.line(random.pick([`export default ${names[0]}(1);`, `await ${names[0]}(2);`, `export default [${names[0]}(3)];`, `[1, 2].map(${names[0]});`]));
  }

  /** A statement that fails by itself. */
  mistake() {
    const name = this.fresh();
    return this.random.pick([
      () => `null.${name};`,
      () => `undefined.${name}();`,
      () => `${this.variable('num')}.${name}();`,
      () => `${name};`,
      () => `(void 0)();`,
      () => `BigInt(1.5);`,
      () => `1n + ${this.variable('num')};`,
      () => `JSON.parse('{"a": ');`,
      () => `new Array(-1);`,
      () => `'x'.repeat(-1);`,
      () => `Symbol() + '';`,
      () => `const ${name} = 1; ${name} = 2;`,
      () => `decodeURIComponent('%');`,
      () => `new (class { constructor() { this.x.y; } })();`,
      () => `[...${this.variable('num')}];`,
      () => `({}) instanceof 5;`,
      () => `'a' in 'b';`,
      () => `Object.defineProperty(Object.freeze({}), 'a', { value: 1 });`,
      () => `echo = 1;`,
      () => `new Uint8Array(-1);`,
      () => `new RegExp('[');`,
      () => `(function ${name}(n) { return ${name}(n + 1) + 1; })(0);`,
      () => `${this.variable('map')}.get.call(1);`,
      () => `structuredClone(() => 1);`,
      () => `echo(Symbol('s'));`,
      () => `Function('return 1');`,
    ])();
  }

  thrownError() {
    const { random } = this;
    const text = quoted(randomText(random, false));
    return random.pick([
      `new Error(${text})`,
      `new ${random.pick(['TypeError', 'RangeError', 'SyntaxError', 'EvalError', 'URIError'])}(${text})`,
      `Object.assign(new Error(${text}), { code: ${random.pick(["'E'", '7'])} })`,
      `new Error(${text}, { cause: new Error('inner') })`,
    ]);
  }

  thrown() {
    const { random } = this;
    const text = quoted(randomText(random, false));
    return random.pick([
      () => this.thrownError(),
      () => this.thrownError(),
      () => this.thrownError(),
      () => this.thrownError(),
      () => `new (class Wrong extends Error { name = 'Wrong'; })(${text})`,
      () => `new AggregateError([new Error('one')], ${text})`,
      () => text,
      () => this.expression(random.pick(['num', 'bool', 'big', 'obj', 'arr']), 1),
      () => `{ name: 'Named', message: ${text} }`,
      () => random.pick(['null', 'undefined', 'Symbol("sym")', '() => 1', 'new Map([[1, 2]])', '{ message: 5 }']),
    ])();
  }

  // Expressions.

  expression(kind, depth) {
    const { random } = this;
    if (depth <= 0 || random.chance(0.25)) return random.chance(0.7) && this.has(kind) ? this.variable(kind) : this.literal(kind);
    const of = (other) => this.expression(other, depth - 1);
    const [num, str, bool, arr, obj, big, map] = KINDS.map((other) => () => of(other));
    const choices = {
      num: [
        () => `(${num()} ${random.pick(['+', '-', '*', '%', '/', '|', '&', '^', '<<', '>>', '>>>', '**'])} ${num()})`,
        () => `Math.${random.pick(['abs', 'trunc', 'sign', 'floor', 'round', 'fround', 'clz32', 'sqrt'])}(${num()})`,
        () => `Math.${random.pick(['max', 'min', 'imul'])}(${num()}, ${num()})`,
        () => `${str()}.length`,
        () => `${arr()}.length`,
        () => `${arr()}.reduce((a, b) => a + b, 0)`,
        () => `(${arr()}.at(${random.between(-3, 3)}) ?? ${num()})`,
        () => `(${bool()} ? ${num()} : ${num()})`,
        () => `parseInt(${str()}, ${random.pick([10, 16, 36])})`,
        () => `Number(${random.pick([str, bool, big])()})`,
        () => `(${map()}.get(${str()}) ?? ${num()})`,
        () => `${str()}.${random.pick(['indexOf', 'lastIndexOf'])}(${str()})`,
        () => `(${str()}.codePointAt(0) ?? -1)`,
        () => `Object.keys(${obj()}).length`,
        () => `Number(BigInt.asIntN(32, ${big()}))`,
      ],
      str: [
        () => `(${str()} + ${of(random.pick(['str', 'num', 'bool', 'big']))})`,
        () => `\`${random.pick(['', 'a', ' '])}\${${of(random.pick(['str', 'num', 'arr', 'big', 'bool']))}}${random.pick(['', '-', 'é'])}\``,
        () => `String(${of(random.pick(KINDS))})`,
        () => `${str()}.${random.pick(['toUpperCase()', 'toLowerCase()', 'trim()', 'slice(1)', 'slice(-2)', "padStart(5, '*')", "padEnd(4)", 'repeat(2)', 'normalize("NFD")', "split('').reverse().join('')", "replaceAll('a', '[$&]')", "at(-1) + ''", 'substring(2, 0)', 'charAt(1)', 'concat(1, null)'])}`,
        () => `JSON.stringify(${of(random.pick(['num', 'str', 'arr', 'bool']))})`,
        () => `typeof ${of(random.pick(KINDS))}`,
        () => `${arr()}.join(${quoted(random.pick(['', ',', '-']))})`,
        () => `(${num()}).toString(${random.pick([2, 10, 16, 36])})`,
        () => `${big()}.toString(${random.pick([2, 10, 36])}).slice(-20)`,
        () => `(${bool()} ? ${str()} : ${str()})`,
        () => `encodeURIComponent(${str()}.slice(0, 5).toWellFormed())`,
        () => `[...${map()}.keys()].join()`,
        () => `(${num()}).${random.pick(['toFixed(2)', 'toPrecision(3)', 'toExponential(1)'])}`,
        () => `String.raw\`\\n\${${num()}}\``,
      ],
      bool: [
        () => `(${num()} ${random.pick(['<', '>', '<=', '>=', '===', '!=='])} ${num()})`,
        () => `(${str()} ${random.pick(['<', '>', '==='])} ${str()})`,
        () => `(${bool()} ${random.pick(['&&', '||'])} ${bool()})`,
        () => `!${bool()}`,
        () => `${arr()}.includes(${num()})`,
        () => `${arr()}.${random.pick(['some', 'every'])}((x) => x ${random.pick(['===', '!=='])} ${num()})`,
        () => `${str()}.${random.pick(['includes', 'startsWith', 'endsWith'])}(${str()})`,
        () => `Object.is(${num()}, ${random.pick(['NaN', '-0', '0'])})`,
        () => `(${big()} ${random.pick(['<', '>', '==='])} ${big()})`,
        () => `Object.hasOwn(${obj()}, ${str()})`,
        () => `Number.${random.pick(['isInteger', 'isSafeInteger', 'isFinite', 'isNaN'])}(${num()})`,
      ],
      arr: [
        () => `[${random.list(random.below(4), num).join(', ')}]`,
        () => `[...${arr()}, ${num()}].slice(-50)`,
        () => `${arr()}.map((x, i) => ${random.pick(['x + i', 'x * 2', '-x', 'i', 'x | 0', 'Math.trunc(x / 2)'])})`,
        () => `${arr()}.filter((x) => ${random.pick(['x > 0', 'x % 2 === 0', 'Number.isInteger(x)', 'Boolean(x)'])})`,
        () => `${arr()}.slice(${random.between(-3, 1)})`,
        () => `${arr()}.${random.pick(['toSorted()', 'toReversed()', 'concat(9).with(0, 1)', 'flatMap((x) => [x, x]).slice(0, 30)', 'concat([1])'])}`,
        () => `Array.from({ length: ${random.below(6)} }, (_, i) => i * ${random.between(-3, 3)})`,
        () => `[...${map()}.values()]`,
        () => `[...${str()}.slice(0, 9)].map((c) => c.codePointAt(0)${this.typescript ? '!' : ''})`,
      ],
      obj: [
        () => `{ a: ${num()}, ['k' + ${num()}]: ${str()} }`,
        () => `{ ...${obj()}, b: ${bool()} }`,
        () => `{ get g() { return ${num()}; }, m: ${map()}, x: ${big()} }`,
        () => `Object.fromEntries(${map()})`,
        () => `{ n: { o: ${obj()}, s: [${str()}] }, d: new Date(${random.between(-1e12, 1e12)}) }`,
        () => `{ __proto__: { inherited: 1 }, own: ${num()} }.own === 0 ? {} : { z: ${arr()} }`,
        () => `Object.groupBy(${arr()}, (x) => (x > 1 ? 'big' : 'small'))`,
      ],
      big: [
        () => `(${big()} ${random.pick(['+', '-', '*', '&', '|', '^'])} ${big()})`,
        () => `(${big()} ${random.pick(['/', '%'])} (${big()} || 7n))`,
        () => `BigInt(${num()} | 0)`,
        () => `(${big()} << ${random.pick(['1n', '31n', '64n'])})`,
        () => `(${big()} >> ${random.pick(['1n', '33n'])})`,
        () => `-${big()}`,
        () => `BigInt.asUintN(${random.pick([8, 32, 64, 100])}, ${big()})`,
        () => `(BigInt.asIntN(16, ${big()}) ** ${random.pick(['2n', '3n', '0n'])})`,
      ],
      map: [
        () => `new Map([[${str()}, ${num()}], ['k', ${num()}]])`,
        () => `new Map([...${map()}].map(([k, v]) => [k + 1, v]).slice(0, 9)${this.typescript ? ' as [string, number][]' : ''})`,
        () => `new Map(${map()})`,
      ],
    };
    const made = random.pick(choices[kind])();
    return made.startsWith('{') ? `(${made})` : made;
  }

  literal(kind) {
    const { random } = this;
    switch (kind) {
      case 'num':
        return random.pick(['0', '1', '2', '7', '(-1)', '0.5', '1e21', 'NaN', '(-0)', '2147483647', '4294967296', '9007199254740991', '0x1F', '1_000', '.25']);
      case 'str':
        return quoted(randomText(random));
      case 'bool':
        return random.pick(['true', 'false']);
      case 'arr':
        return `[${random.list(random.below(5), () => this.literal('num')).join(', ')}]`;
      case 'obj':
        return `({ a: ${this.literal('num')}, s: ${this.literal('str')} })`;
      case 'big':
        return random.pick(['0n', '1n', '(-1n)', '255n', '18446744073709551616n', '(2n ** 100n)', '9007199254740993n']);
      default:
        return `new Map([['a', ${this.literal('num')}]])`;
    }
  }

  /** Kept small enough that no program computes for long. */
  bounded(kind, value) {
    switch (kind) {
      case 'str':
        return `(${value}).slice(0, 200)`;
      case 'arr':
        return `(${value}).slice(0, 60)`;
      case 'big':
        return `BigInt.asIntN(512, ${value})`;
      default:
        return value;
    }
  }

  // Text and scopes.

  line(text) {
    this.lines.push('  '.repeat(this.indent) + text);
  }

  some(from, to) {
    for (let left = this.random.between(from, to); left > 0; left -= 1) this.statement();
  }

  /** The output of `write`, indented, in a scope of its own, with its closing brace. */
  block(write, nested = true) {
    this.scopes.push(this.emptyScope());
    this.indent += 1;
    this.depth += nested ? 1 : 0;
    write();
    this.depth -= nested ? 1 : 0;
    this.indent -= 1;
    this.scopes.pop();
    this.line('}');
  }

  functionBody(write) {
    const { inAsync } = this;
    this.inAsync = false;
    this.block(write);
    this.inAsync = inAsync;
  }

  emptyScope() {
    return Object.fromEntries(KINDS.map((kind) => [kind, []]));
  }

  scope() {
    return this.scopes.at(-1);
  }

  has(kind) {
    return this.scopes.some((scope) => scope[kind].length > 0);
  }

  variable(kind) {
    return this.random.pick(this.scopes.flatMap((scope) => scope[kind]));
  }

  lastString() {
    return this.scopes[0].str[0];
  }

  fresh() {
    this.names += 1;
    return `x${this.names}`;
  }

  type(text) {
    return this.typescript ? `: ${text}` : '';
  }
}
