// Shapes of extreme depth and length for `extremes.test.mjs`, as expressions for both sides.

/** Statements that wrap `d` once more. */
export const DEEP = {
  arrays: 'd = [d]',
  objects: 'd = { k: d }',
  'Maps as keys': 'd = new Map([[d, 1]])',
  'Maps as values': 'd = new Map([[1, d]])',
  Sets: 'd = new Set([d])',
  'all by turns': 'd = i % 2 ? (i % 4 > 1 ? [d] : { k: d }) : i % 4 ? new Map([[d, 1]]) : new Set([d])',
  // An error crosses without its cause.
  'causes of errors': 'd = new Error("e", { cause: d })',
};

/** The depth of a value, on either side: without recursion, into any kind of container. */
export function depth(value) {
  let levels = 0;
  for (let at = value; typeof at === 'object' && at !== null; levels += 1) {
    if (Array.isArray(at)) at = at[0];
    else if (at instanceof Map) at = [...at].flat().find((item) => typeof item === 'object');
    else if (at instanceof Set) [at] = at;
    else at = at.cause ?? at.k;
  }
  return levels;
}

/** The true length of a value, independent of its own properties. */
export function length(value) {
  if (typeof value === 'string' || Array.isArray(value)) return value.length;
  if (typeof value === 'bigint') return value.toString(16).length;
  if (value instanceof Map || value instanceof Set) return value.size;
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return value.byteLength;
  if (value instanceof RegExp) return value.source.length;
  return Object.keys(value).length;
}

const DO = (statements) => `(() => { ${statements} })()`;
const ROPE = (unit, times) =>
  DO(`let s = '${unit}'; for (let i = 0; i < ${times}; i += 1) s += s; return s;`);
const MANY = (count, each) => `Array.from({ length: ${count} }, (_, i) => ${each})`;
const FAKE = (made, ...names) => {
  const claims = names.map((name) => `${name}: { value: 2 ** 53 - 1 }`);
  return `Object.defineProperties(${made}, { ${claims} })`;
};
/** A resizable buffer, a view of it, and an operation on them. */
const RESIZED = (bytes, most, view, then) =>
  DO(`const b = new ArrayBuffer(${bytes}, { maxByteLength: ${most} }), v = new ${view}(b); ${then}`);

/** Expressions, each with the length that arrives, or with a word for the refusal. */
export const LONG = {
  'an array of holes': ['new Array(2 ** 32 - 1)', 2 ** 32 - 1],
  'an array with only its last element': [DO('const l = []; l[2 ** 32 - 2] = 1; return l;'), 2 ** 32 - 1],
  'an array with keys that are no indexes': [
    DO('const l = []; l[2 ** 32 - 1] = l[2 ** 53] = 1; return l;'),
    0,
  ],
  'an array too long': ['new Array(2 ** 32)', 'RangeError'],
  'an array-like': ['({ length: 2 ** 53 - 1 })', 1],
  'what only inherits from an array': [
    '({ __proto__: Array.prototype, length: 2 ** 53 - 1 })',
    'SerializationError',
  ],
  'many arrays of holes': [MANY(10_000, 'new Array(2 ** 32 - 1)'), 10_000],
  arguments: ['(function () { return arguments; })(...new Array(60_000).fill(1))', 60_000],
  'a value of 2 ** 1000 paths': [
    DO('let d = []; for (let i = 0; i < 1000; i += 1) d = [d, d]; return d;'),
    2,
  ],

  'a buffer longer than anything': ['new ArrayBuffer(2 ** 53 - 1)', 'RangeError'],
  'a buffer of 4 GiB': ['new ArrayBuffer(2 ** 32)', 'RangeError'],
  'a buffer of 2 GiB': ['new ArrayBuffer(2 ** 31 - 1)', 'memory'],
  'a buffer as large as the limit': ['new ArrayBuffer(64 << 20)', 'memory'],
  'a buffer of a quarter of the limit': ['new ArrayBuffer(16 << 20)', 16 << 20],
  'a buffer that could grow beyond anything': [
    'new ArrayBuffer(1, { maxByteLength: 2 ** 53 - 1 })',
    'RangeError',
  ],
  'a buffer that could grow to 2 GiB': ['new ArrayBuffer(1, { maxByteLength: 2 ** 31 - 1 })', 1],
  'a buffer that grows to 2 GiB': [
    RESIZED(1, 2 ** 31 - 1, 'DataView', 'b.resize(2 ** 31 - 1); return b;'),
    'memory',
  ],
  'a view that has grown': [RESIZED(8, 8 << 20, 'Uint8Array', 'b.resize(8 << 20); return v;'), 8 << 20],
  'a view that has shrunk': [RESIZED(8 << 20, 8 << 20, 'Float64Array', 'b.resize(8); return v;'), 8],
  'a typed array of 4 GiB': ['new Float64Array(2 ** 29)', 'RangeError'],
  'a typed array of an array-like': ['new Uint8Array({ length: 2 ** 53 - 1 })', 'RangeError'],
  'a typed array from an array-like': ['Uint8Array.from({ length: 2 ** 53 - 1 })', 'RangeError'],
  'many views of one buffer': [
    DO(`const b = new ArrayBuffer(8 << 20); return ${MANY(1000, 'new Uint8Array(b)')};`),
    'memory',
  ],
  'many views of one buffer, and that': [
    DO(`const b = new ArrayBuffer(8 << 20); return [b, ...${MANY(1000, 'new Uint8Array(b)')}];`),
    1001,
  ],
  'a chain of views': [
    DO('let v = new Uint8Array(1 << 20); for (let i = 0; i < 10_000; i += 1) v = v.subarray(1); return v;'),
    (1 << 20) - 10_000,
  ],

  'a text too long': ['"x".repeat(2 ** 30)', 'RangeError'],
  'a text of 2 ** 29': ['"x".repeat(2 ** 29)', 'memory'],
  'a text that doubles to 2 ** 29': [ROPE('x', 29), 'memory'],
  'a wide text that doubles to 2 ** 28': [ROPE('\\u0100', 28), 'memory'],
  'a text that doubles too often': [ROPE('x', 30), 'RangeError'],
  'a text of a million': ['"x\\ud800".repeat(500_000)', 1_000_000],
  'one text very often': [`Array(1000).fill(${ROPE('x', 22)})`, 'memory'],
  'a key that doubles': [`({ [${ROPE('x', 26)}]: 1 })`, 'memory'],
  'an error whose message doubles': [`new Error(${ROPE('x', 29)})`, 'memory'],
  'an error whose name doubles': [`Object.assign(new Error(), { name: ${ROPE('x', 29)} })`, 'memory'],
  'an error whose code doubles': [`Object.assign(new Error(), { code: ${ROPE('x', 29)} })`, 'memory'],
  'a bigint': ['1n << 400_003n', 100_001],
  'a bigint too long': ['1n << (1n << 40n)', 'RangeError'],
  'a pattern': ['new RegExp("a".repeat(500_000))', 500_000],
  'a pattern too deep': ['new RegExp("(".repeat(100_000) + ")".repeat(100_000))', 'SyntaxError'],
  'text of JSON too deep': ['JSON.parse("[".repeat(1e6) + "]".repeat(1e6))', 'RangeError'],
  'JSON of a value too deep': [
    DO('let d = []; for (let i = 0; i < 3e4; i += 1) d = [d]; return JSON.stringify(d);'),
    'RangeError',
  ],

  'a Map of many entries': [`new Map(${MANY(50_000, '[`k${i}`, i]')})`, 50_000],
  'a Set too large': [`new Set(${MANY(1_000_000, '`k${i}`')})`, 'memory'],
  'an object of many keys': [`Object.fromEntries(${MANY(20_000, '[`k${i}`, i]')})`, 20_000],
  'many errors': [MANY(2_000, 'new Error("e")'), 2_000],
  'keys of prototypes': [
    `JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":1},"hasOwnProperty":1}')`,
    3,
  ],

  'an array that lies': [FAKE('[1, 2]', 'size', 'byteLength'), 2],
  'a Map that lies': [FAKE('new Map([[1, 2]])', 'size', 'length'), 1],
  'a view that lies': [FAKE('new Uint8Array(4)', 'length', 'byteLength', 'byteOffset', 'buffer'), 4],
  'a DataView that lies': [FAKE('new DataView(new ArrayBuffer(4))', 'byteLength', 'byteOffset', 'buffer'), 4],
  'a buffer that lies': [FAKE('new ArrayBuffer(4)', 'byteLength', 'maxByteLength'), 4],
};

const ALSO_IN = [
  'an array of holes',
  'an array with only its last element',
  'an array with keys that are no indexes',
  'an array-like',
  'what only inherits from an array',
  'many arrays of holes',
  'a value of 2 ** 1000 paths',
  'a buffer as large as the limit',
  'a buffer of a quarter of the limit',
  'a buffer that could grow to 2 GiB',
  'a view that has grown',
  'a view that has shrunk',
  'many views of one buffer, and that',
  'a chain of views',
  'a text of a million',
  'a bigint',
  'a Map of many entries',
  'an object of many keys',
  'many errors',
  'keys of prototypes',
  'an array that lies',
  'a Map that lies',
  'a view that lies',
  'a DataView that lies',
  'a buffer that lies',
];

/** Values that a host can make and hand over, and their result in a sandbox. */
export const LONG_IN = {
  ...Object.fromEntries(ALSO_IN.map((name) => [name, LONG[name]])),
  'a text beyond the limit': ['"x".repeat(2 ** 27)', 'memory'],
  'one text very often': ['Array(300).fill("x".repeat(2 ** 18))', 'memory'],
  'views beyond the limit': [
    DO(`const b = new ArrayBuffer(8 << 20); return ${MANY(20, 'new Uint8Array(b)')};`),
    'memory',
  ],
};

/** Expressions that nest: a beginning, a middle and an end. */
export const NESTED = {
  parentheses: ['(', '1', ')'],
  arrays: ['[', '1', ']'],
  objects: ['({ k: ', '1', '})'],
  'template literals': ['`${', '1', '}`'],
  arrows: ['() => ', '1', ''],
  'functions that are expressions': ['(function () { return ', '1', '})'],
  classes: ['(class { x = ', '1', '})'],
  'defaults of arrows': ['(a = ', '1', ') => 1'],
  'what may be an arrow': ['(a, ', '1', ')'],
  negations: ['!', '1', ''],
  sums: ['1 + ', '1', ''],
  conditions: ['1 ? 1 : ', '1', ''],
  members: ['', '[]', '.a?.b'],
  calls: ['', 'Object', '()'],
  patterns: ['[[a] = ', '[]', ']'],
};
