// The host functions of the contract table, in JavaScript; README.md describes each.

/** The functions for one run. `handle()` returns the handle of that run. */
export function hostFunctions(handle) {
  let kept;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const functions = {
    echo: (x) => x,
    add: (a, b) => a + b,
    args: (...a) => a,
    fail: (message) => {
      throw new Error(message);
    },
    failType: (message) => {
      throw new TypeError(message);
    },
    failCode: (message, code) => {
      throw Object.assign(new Error(message), { code });
    },
    failValue: (value) => {
      throw value;
    },
    later: async (x) => {
      await turn();
      return x;
    },
    laterFail: async (message) => {
      await turn();
      throw new Error(message);
    },
    never: () => new Promise(() => {}),
    fnLater: () => ({ promise: turn().then(() => 42) }),
    makeAdder: (n) => (m) => n + m,
    call: (f, ...a) => f(...a),
    callTwice: async (f, x) => f(await f(x)),
    keep: (f) => {
      kept = f;
    },
    callKept: (...a) => kept(...a),
    isSame: (f) => f === functions.echo,
    describe,
    terminate: (reason) => {
      if (reason === undefined) handle().terminate();
      else handle().terminate(reason);
    },
    instance: () => new (class Pool {})(),
    big: (n) => 'x'.repeat(n),
    settle: async () => {
      for (let i = 0; i < 10; i += 1) await turn();
    },
  };
  return functions;
}

function describe(value) {
  if (value === null || value === undefined) return String(value);
  if (Object.is(value, -0)) return '-0';
  if (typeof value !== 'object') return typeof value;
  if (Array.isArray(value)) return `Array(${value.length})`;
  if (value instanceof Error) return value.name;
  if (value instanceof Map || value instanceof Set) return `${value.constructor.name}(${value.size})`;
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return `${value.constructor.name}(${value.length ?? value.byteLength})`;
  }
  if (Object.getPrototypeOf(value) === Object.prototype) return `Object(${Object.keys(value).join(',')})`;
  return value.constructor.name;
}
