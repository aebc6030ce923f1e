// Runs sequences of cells as compiled, and as scripts of node:vm.
//
// In: a file of sequences, each a list of cells with their source, code, and declared names. Out: the differences of
// values, errors, logs and variables, as lines; nothing if there are none.
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const PRELUDE = `
  var logs = [], rounds = 0;
  function log(value) { logs.push(show(value)); return value; }
  function fuel() { rounds += 1; if (rounds > 400) throw 'no fuel'; return rounds % 4 !== 0; }
  function show(value) {
    if (typeof value === 'function') return 'function ' + value.name;
    if (typeof value === 'object' && value !== null) {
      return JSON.stringify(value, (key, inner) => typeof inner === 'function' ? 'f ' + inner.name : inner);
    }
    return typeof value + ' ' + String(value);
  }
  function failure(error) {
    return error instanceof Error ? 'throws ' + error.name : 'throws ' + show(error);
  }
`;

function realm() {
  const context = vm.createContext({});
  vm.runInContext(PRELUDE, context);
  return context;
}

function asScripts(sequence) {
  const context = realm();
  return sequence.map(({ source }, index) => {
    let outcome;
    try {
      outcome = context.show(vm.runInContext(`"use strict";void 0;\n${source}`, context, { timeout: 2000 }));
    } catch (error) {
      if (error instanceof SyntaxError) throw new Error(`${error.message}\n${source}`);
      outcome = context.failure(error);
    }
    const read = name => vm.runInContext(`(() => { try { return show(${name}) } catch (e) { return failure(e) } })()`, context);
    return { outcome, logs: context.logs.splice(0), names: variables(sequence, index, read) };
  });
}

function variables(sequence, index, read) {
  const names = new Set(sequence.slice(0, index + 1).flatMap(cell => cell.names.map(([name]) => name)));
  return [...names].map(name => `${name} ${read(name)}`);
}

/** The scope of a session: names that are not initialized, constants, variables. */
function session(context) {
  const entries = new Map();
  const scope = new Proxy({}, {
    has: (_, name) => entries.has(name),
    get: (_, name) => {
      if (name === Symbol.unscopables) return undefined;
      const entry = entries.get(name);
      if (!entry.ready) throw new context.ReferenceError(name);
      return entry.value;
    },
    set: (_, name, value) => {
      const entry = entries.get(name);
      if (!entry.ready) throw new context.ReferenceError(name);
      if (entry.constant) throw new context.TypeError(name);
      entry.value = value;
      return true;
    },
  });
  const parameter = names => {
    const object = Object.create(null);
    object[1] = object;
    for (const [name, kind] of names) {
      const variable = kind === 'Var';
      entries.set(name, { ready: variable, constant: false, value: undefined });
      const set = value => {
        if (kind === 'Function') Object.defineProperty(value, 'name', { value: name });
        entries.set(name, { ready: true, constant: !['Let', 'Var', 'Class', 'Function'].includes(kind), value });
      };
      Object.defineProperty(object, name, { set });
    }
    return Object.preventExtensions(object);
  };
  return { entries, scope, parameter };
}

async function asCells(sequence) {
  const context = realm();
  context.ReferenceError = vm.runInContext('ReferenceError', context);
  context.TypeError = vm.runInContext('TypeError', context);
  const { scope, parameter } = session(context);
  const results = [];
  for (const [index, { code, names }] of sequence.entries()) {
    const text = code.replace('export default async', 'async');
    const start = vm.runInContext(`(scope) => { with (scope) { return (() => { "use strict"; return (${text}\n) })() } }`, context);
    const object = parameter(names);
    let outcome;
    try {
      await start(scope)(object);
      outcome = object[1] === object ? 'came to no end' : context.show(await object[1]);
    } catch (error) {
      outcome = context.failure(error);
    }
    const read = name => {
      try {
        return context.show(scope[name]);
      } catch (error) {
        return context.failure(error);
      }
    };
    results.push({ outcome, logs: context.logs.splice(0), names: variables(sequence, index, read) });
  }
  return results;
}

for (const sequence of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const [scripts, cells] = [asScripts(sequence), await asCells(sequence)];
  const index = scripts.findIndex((script, at) => JSON.stringify(script) !== JSON.stringify(cells[at]));
  if (index >= 0) {
    const texts = sequence.slice(0, index + 1).map(cell => cell.source).join('\n--\n');
    console.log(`${texts}\n=> ${sequence[index].code}\nscript ${JSON.stringify(scripts[index])}\ncell   ${JSON.stringify(cells[index])}\n`);
  }
}
