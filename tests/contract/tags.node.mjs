// Tagged JSON of the contract table, in JavaScript.
//
// In: JSON with `$` keys, as README.md lists them. Out: its value, or whether a result of a run equals that value.

const CLASSES = { Error, RangeError, ReferenceError, SyntaxError, TypeError, URIError, EvalError };

const TAGS = new Set(
  ('undefined number bigint string date map set regexp error bytes view buffer sparse id ref entries fn promise rejected ' +
    'instance symbol absent any match repeat').split(' ').map((name) => `$${name}`),
);

/** The value of tagged JSON; functions are taken from `functions`. */
export function untag(json, functions, shared = new Map()) {
  const inner = (value) => untag(value, functions, shared);
  if (Array.isArray(json)) return json.map(inner);
  if (typeof json !== 'object' || json === null) return json;
  const tag = tagOf(json);
  if (tag === undefined) return fromEntries(Object.entries(json), inner);
  const value = json[tag];
  switch (tag) {
    case '$undefined':
      return undefined;
    case '$number':
      return Number(value);
    case '$bigint':
      return BigInt(value);
    case '$string':
      return String.fromCharCode(...value);
    case '$date':
      return new Date(value ?? NaN);
    case '$map':
      return new Map(value.map(([key, entry]) => [inner(key), inner(entry)]));
    case '$set':
      return new Set(value.map(inner));
    case '$regexp':
      return new RegExp(...value);
    case '$error':
      return error(value, inner);
    case '$bytes':
      return new Uint8Array(value);
    case '$view':
      return view(value);
    case '$buffer':
      return new Uint8Array(value).buffer;
    case '$sparse':
      return Object.assign(Array.from({ length: 0 }), fromEntries(Object.entries(value[1]), inner), { length: value[0] });
    case '$id':
      return identified(json, inner, shared);
    case '$ref':
      return shared.get(value);
    case '$entries':
      return fromEntries(value, inner);
    case '$fn':
      return functions[value];
    case '$promise':
      return Promise.resolve(inner(value));
    case '$rejected': {
      const promise = Promise.reject(inner(value));
      promise.catch(() => {});
      return promise;
    }
    case '$instance':
      return new { [value]: class {} }[value]();
    case '$symbol':
      return Symbol(value);
    case '$repeat':
      return value[0].repeat(value[1]);
    default:
      throw new Error(`the tag ${tag} says nothing of an input`);
  }
}

/** The difference between `actual` and tagged JSON, or undefined. With `only`, ignores other keys. */
export function mismatch(actual, json, path = 'result', only = false, shared = new Map()) {
  const inner = (value, expected, step) => mismatch(value, expected, `${path}${step}`, false, shared);
  const wrong = () => `${path} is ${show(actual)}, not ${JSON.stringify(json)}`;
  if (Array.isArray(json)) {
    if (!Array.isArray(actual) || actual.length !== json.length) return wrong();
    return first(json, (expected, i) => (i in actual ? inner(actual[i], expected, `[${i}]`) : `${path}[${i}] is a hole`));
  }
  if (typeof json !== 'object' || json === null) return Object.is(actual, json) ? undefined : wrong();
  const tag = tagOf(json);
  if (tag === undefined || tag === '$entries') {
    return plainMismatch(actual, tag === undefined ? Object.entries(json) : json.$entries, { inner, wrong, only, path });
  }
  const value = json[tag];
  switch (tag) {
    case '$any':
      return undefined;
    case '$match':
      return typeof actual === 'string' && new RegExp(value, 'u').test(actual) ? undefined : wrong();
    case '$ref':
      return actual === shared.get(value) ? undefined : `${path} is not the same object as '${value}'`;
    case '$id':
      shared.set(value, actual);
      return mismatch(actual, json.$value, path, only, shared);
    case '$date':
      return actual instanceof Date && Object.is(actual.getTime(), value ?? NaN) ? undefined : wrong();
    case '$map':
      if (!(actual instanceof Map) || actual.size !== value.length) return wrong();
      return first([...actual], ([key, entry], i) => inner(key, value[i][0], `.keys()[${i}]`) ?? inner(entry, value[i][1], `.values()[${i}]`));
    case '$set':
      if (!(actual instanceof Set) || actual.size !== value.length) return wrong();
      return first([...actual], (member, i) => inner(member, value[i], `.values()[${i}]`));
    case '$regexp':
      return actual instanceof RegExp && actual.source === value[0] && actual.flags === value[1] ? undefined : wrong();
    case '$error':
      return errorMismatch(actual, value, inner) ?? undefined;
    case '$bytes':
      return actual instanceof Uint8Array && same([...actual], value) ? undefined : wrong();
    case '$view':
      return viewMatches(actual, value) ? undefined : wrong();
    case '$buffer':
      return actual instanceof ArrayBuffer && same([...new Uint8Array(actual)], value) ? undefined : wrong();
    case '$sparse':
      if (!Array.isArray(actual) || actual.length !== value[0] || !same(Object.keys(actual), Object.keys(value[1]))) return wrong();
      return first(Object.entries(value[1]), ([index, expected]) => inner(actual[index], expected, `[${index}]`));
    default:
      return Object.is(actual, untag(json, {})) ? undefined : wrong();
  }
}

function plainMismatch(actual, entries, { inner, wrong, only, path }) {
  if (typeof actual !== 'object' || actual === null || Object.getPrototypeOf(actual) !== Object.prototype) return wrong();
  const present = entries.filter(([, expected]) => !isAbsent(expected)).map(([key]) => key);
  if (!only && !same(Object.keys(actual), present)) {
    return `${path} has the keys ${JSON.stringify(Object.keys(actual))}, not ${JSON.stringify(present)}`;
  }
  return first(entries, ([key, expected]) => {
    if (isAbsent(expected)) return Object.hasOwn(actual, key) ? `${path}.${key} is there: ${show(actual[key])}` : undefined;
    return Object.hasOwn(actual, key) ? inner(actual[key], expected, `.${key}`) : `${path}.${key} is not there`;
  });
}

function errorMismatch(actual, { class: name, ...fields }, inner) {
  if (!(actual instanceof CLASSES[name]) || (name === 'Error' && actual.constructor !== Error)) return `${show(actual)} is no ${name}`;
  return first(Object.entries({ name, code: { $undefined: true }, ...fields }), ([key, expected]) => inner(actual[key], expected, `.${key}`));
}

function viewMatches(actual, [kind, offset, length, bytes]) {
  return (
    ArrayBuffer.isView(actual) &&
    actual.constructor === globalThis[kind] &&
    actual.byteOffset === offset &&
    (actual.length ?? actual.byteLength) === length &&
    same([...new Uint8Array(actual.buffer)], bytes)
  );
}

function identified(json, inner, shared) {
  const { $id, $value } = json;
  // Filled after it has its name, so that it can contain itself.
  if (Array.isArray($value)) {
    const array = [];
    shared.set($id, array);
    array.push(...$value.map(inner));
    return array;
  }
  const tag = tagOf($value);
  const isPlain = tag === undefined || tag === '$entries';
  const target = isPlain ? {} : tag === '$map' ? new Map() : tag === '$set' ? new Set() : inner($value);
  shared.set($id, target);
  if (isPlain) fromEntries(tag === undefined ? Object.entries($value) : $value.$entries, inner, target);
  if (tag === '$map') for (const [key, entry] of $value.$map) target.set(inner(key), inner(entry));
  if (tag === '$set') for (const member of $value.$set) target.add(inner(member));
  return target;
}

function error({ class: name, message, ...rest }, inner) {
  const made = new CLASSES[name](message);
  for (const [key, value] of Object.entries(rest)) made[key] = inner(value);
  return made;
}

function view([kind, offset, length, bytes]) {
  return new globalThis[kind](new Uint8Array(bytes).buffer, offset, length);
}

function fromEntries(entries, inner, object = {}) {
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value: inner(value), writable: true, enumerable: true, configurable: true });
  }
  return object;
}

function tagOf(json) {
  const [key] = Object.keys(json);
  return TAGS.has(key) ? key : undefined;
}

function isAbsent(json) {
  return typeof json === 'object' && json !== null && json.$absent === true;
}

function first(list, check) {
  for (const [i, item] of list.entries()) {
    const why = check(item, i);
    if (why !== undefined) return why;
  }
  return undefined;
}

function same(left, right) {
  return left.length === right.length && left.every((item, i) => Object.is(item, right[i]));
}

function show(value) {
  try {
    return typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value)?.slice(0, 2000) ?? String(value));
  } catch {
    return Object.prototype.toString.call(value);
  }
}
