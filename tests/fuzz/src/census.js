// Every object that a program can reach, in a fixed order: its prototype, its keys, what they are.
const ids = new Map();
const todo = [];
let hash = 0;
let length = 0;

function note(text) {
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  length += text.length;
}

function describe(value) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) {
    return typeof value === 'symbol' ? value.toString() : `${typeof value} ${Object.is(value, -0) ? '-0' : value}`;
  }
  if (!ids.has(value)) {
    ids.set(value, ids.size);
    todo.push(value);
  }
  return `${typeof value} #${ids.get(value)}`;
}

function visit(object) {
  note(`${describe(Object.getPrototypeOf(object))} ${Object.isExtensible(object)}`);
  for (const key of Reflect.ownKeys(object)) {
    const { value, get, set, writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(object, key);
    note(`${describe(key)}: ${describe(value)} ${describe(get)} ${describe(set)}`);
    note(`${writable} ${enumerable} ${configurable}`);
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

export default [ids.size, length, hash];
