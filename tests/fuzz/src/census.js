// Every object that a program can reach, in a fixed order: its prototype, its keys and their properties.
const ids = new Map();
const todo = [];
const lines = [];

function describe(value) {
  if (typeof value === 'symbol') return value.toString();
  if (Object(value) !== value) return `${typeof value} ${Object.is(value, -0) ? '-0' : value}`;
  if (!ids.has(value)) {
    ids.set(value, ids.size);
    todo.push(value);
  }
  return `${typeof value} #${ids.get(value)}`;
}

function visit(object) {
  const prototype = describe(Object.getPrototypeOf(object));
  lines.push(`${describe(object)} of ${prototype} ${Object.isExtensible(object)}`);
  for (const key of Reflect.ownKeys(object)) {
    const { value, get, set, ...flags } = Object.getOwnPropertyDescriptor(object, key);
    const parts = [key, value, get, set, ...Object.values(flags)];
    lines.push(parts.map(describe).join(' '));
  }
}

describe(globalThis);
for (const seed of [
  function* () {}, async function () {}, async function* () {}, () => {}, class {},
  [].values(), new Map().keys(), new Set().values(), ''[Symbol.iterator](), 'a'.matchAll(/a/g),
  new Uint8Array(1), console, Iterator.from({ next() {} }), /a/, new Date(0), new Error('e'),
]) {
  describe(Object.getPrototypeOf(seed));
}
while (todo.length > 0) visit(todo.shift());

export default lines.join('\n');
