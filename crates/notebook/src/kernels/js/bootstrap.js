// Names that cells see besides the language: `display`, `print`, `parallel`, `pipeline`, `tool`, and those of `helpers.js`. Cells of several notebooks see them: the host tells which tools the one has
// whose cell asks.
//
// In: values, arguments. Out: calls of the host, and logs: `print` calls the console, and so does `display`,
// with a mark that the host knows. The console copies values, and shows as text what cannot be copied; no other function of
// a session can do that. An image that is none throws here, where its cell can see it; the host checks images again, since
// code may change what this one calls.
const {
  display, print, tool, llm, agent, parallel, pipeline, read, write, append, tree, diff, output, sort, uniq, counter, env,
} = await (async (console) => {
  'use strict';
  const { call: send, about, mark, variables } = await import('isolane-notebook-6f0c4b1e-2a57-4d1c-9d0f-7be1a3c58e24');
  const rejected = Promise.reject.bind(Promise);
  // The promise of the host itself, so that a warning about one that is never awaited names the helper.
  const call = (helper, name, args) => {
    try {
      return send(helper, name, args);
    } catch (error) {
      // The arguments cannot cross. They are the third of the call.
      const { message } = error;
      if (typeof message === 'string') error.message = message.replace('arguments[2]', () => `${name || helper}: args`);
      return rejected(error);
    }
  };
  const { log, debug } = console;
  const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  const imageType = /^image\/[A-Za-z0-9.+-]{1,64}$/;
  const { isView } = ArrayBuffer;
  const { keys } = Object;
  const isBytes = (value) => value instanceof ArrayBuffer || isView(value);
  const shown = (value) => (typeof value === 'string' ? `'${value.slice(0, 100)}'` : value === null ? 'null' : typeof value);
  // An object with other fields, or without data, is shown as JSON.
  const isImage = (value) => {
    if (value.type !== 'image') return false;
    let count = 0;
    for (const key of keys(value)) {
      if (key !== 'type' && key !== 'data' && key !== 'mimeType') return false;
      count += key === 'data';
    }
    return count > 0;
  };
  const check = ({ mimeType, data }, place) => {
    if (typeof mimeType !== 'string' || !imageType.test(mimeType)) {
      throw new TypeError(`${place}.mimeType must be a type of image such as 'image/png', got ${shown(mimeType)}`);
    }
    if (isBytes(data)) return;
    if (typeof data !== 'string') throw new TypeError(`${place}.data must be Base64 or bytes, got ${shown(data)}`);
    if (data === '' || !base64.test(data)) throw new TypeError(`${place}.data must be Base64: this text is none`);
  };
  // Names that the language or a console asks any value for.
  const asked = new Set(['then', 'toJSON', 'constructor', 'prototype', 'toString', 'valueOf']);
  const tools = { __proto__: null };
  const toolOf = (name) => (tools[name] ??= { [name]: (args = {}) => call('tool', name, args) }[name]);
  const namesOfTools = () => about()[0];
  const text = () => `[tools of the host, called as tool.name({ … }): ${namesOfTools().join(', ') || 'none'}]`;
  const refuse = () => false;
  const tool = new Proxy({ __proto__: null }, {
    get(target, name) {
      if (name === Symbol.toPrimitive) return text;
      if (typeof name === 'symbol') return undefined;
      const names = namesOfTools();
      if (names.includes(name)) return toolOf(name);
      if (asked.has(name)) return undefined;
      const there = names.length === 0 ? 'this notebook has no tools' : `there are ${names.join(', ')}`;
      throw new TypeError(`there is no tool '${name.slice(0, 100)}'; ${there}`);
    },
    has: (target, name) => namesOfTools().includes(name),
    ownKeys: namesOfTools,
    getOwnPropertyDescriptor(target, name) {
      if (!namesOfTools().includes(name)) return undefined;
      return { value: toolOf(name), enumerable: true, configurable: true };
    },
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    preventExtensions: refuse,
    setPrototypeOf: refuse,
  });
  const functionsOf = (helper, name, given) => {
    const functions = [...given];
    for (let at = 0; at < functions.length; at += 1) {
      if (typeof functions[at] === 'function') continue;
      throw new TypeError(`${helper}: ${name}[${at}] must be a function, got ${shown(functions[at])}`);
    }
    return functions;
  };
  const limitOf = (helper, { concurrency, ...others } = {}) => {
    const [, usual, most] = about();
    for (const key of keys(others)) throw new TypeError(`${helper}: unknown option '${key}'; there is 'concurrency'`);
    if (concurrency === undefined) return usual;
    if (Number.isInteger(concurrency) && concurrency >= 1) return Math.min(concurrency, most);
    throw new RangeError(`${helper}: concurrency must be a whole number of at least 1, got ${String(concurrency)}`);
  };
  // The results of so many pieces of work, in order. The first error rejects, and nothing begins after it.
  const all = async (count, limit, act) => {
    const results = Array.from({ length: count });
    let [next, hasFailed] = [0, false];
    const work = async () => {
      while (next < count && !hasFailed) {
        const at = next;
        next += 1;
        try {
          results[at] = await act(at);
        } catch (error) {
          hasFailed = true;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(limit, count) }, work));
    return results;
  };
  return {
    ...HELPERS(call, (event) => debug(mark, 'event', event), variables),
    tool,
    async parallel(thunks, options) {
      const functions = functionsOf('parallel', 'thunks', thunks);
      return all(functions.length, limitOf('parallel', options), (at) => functions[at]());
    },
    async pipeline(items, ...stages) {
      const last = stages.at(-1);
      const options = typeof last === 'object' && last !== null ? stages.pop() : undefined;
      const [values, functions] = [[...items], functionsOf('pipeline', 'stages', stages)];
      return all(values.length, limitOf('pipeline', options), async (at) => {
        let value = values[at];
        for (const stage of functions) value = await stage(value, at);
        return value;
      });
    },
    display(...values) {
      for (let at = 0; at < values.length; at += 1) {
        const value = values[at];
        if (value === undefined) continue;
        if (typeof value === 'object' && value !== null && isImage(value)) check(value, `values[${at}]`);
        debug(mark, typeof value, value);
      }
    },
    print(...values) {
      log(...values);
    },
  };
})(console);
null
