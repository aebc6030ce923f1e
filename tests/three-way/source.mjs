// A value as code that builds it.
//
// In: tagged JSON. Out: statements to run first, and an expression. Shared parts of the value are one object in the
// code's value.

/** Names are taken from `names`, which continues its count from value to value. */
export function asSource(json, names) {
  const before = [];
  return { expression: expression(json, { before, names, known: names.known }), before };
}

/** The names of one program. */
export function freshNames() {
  return { next: 0, known: new Map() };
}

/** A string literal in ASCII, with an escape for every other character. */
export function quoted(text) {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function expression(json, scope) {
  const inner = (value) => expression(value, scope);
  if (typeof json === 'string') return quoted(json);
  if (typeof json === 'number') return json < 0 ? `(${json})` : String(json);
  if (Array.isArray(json)) return `[${json.map(inner).join(', ')}]`;
  if (typeof json !== 'object' || json === null) return String(json);
  if ('$id' in json) return shared(json, scope);
  const [[tag, value]] = Object.entries(json);
  switch (tag) {
    case '$undefined':
      return 'undefined';
    case '$number':
      return value.startsWith('-') ? `(${value})` : value;
    case '$bigint':
      return `${value.startsWith('-') ? `(${value}n)` : `${value}n`}`;
    case '$string':
      return quoted(String.fromCharCode(...value));
    case '$date':
      return `new Date(${value ?? 'NaN'})`;
    case '$map':
      return `new Map([${value.map(([key, entry]) => `[${inner(key)}, ${inner(entry)}]`).join(', ')}])`;
    case '$set':
      return `new Set([${value.map(inner).join(', ')}])`;
    case '$regexp':
      return `new RegExp(${quoted(value[0])}, '${value[1]}')`;
    case '$error':
      return error(value, inner);
    case '$bytes':
      return `new Uint8Array([${value}])`;
    case '$buffer':
      return `new Uint8Array([${value}]).buffer`;
    case '$view':
      return `new ${value[0]}(new Uint8Array([${value[3]}]).buffer, ${value[1]}, ${value[2]})`;
    case '$sparse':
      return `Object.assign(${value[0] === 0 ? '[]' : 'Array(0)'}, { ${Object.entries(value[1]).map(([index, entry]) => `${index}: ${inner(entry)}`)} }, { length: ${value[0]} })`;
    case '$ref':
      return scope.known.get(value);
    case '$entries':
      return `{ ${value.map(([key, entry]) => `[${quoted(key)}]: ${inner(entry)}`).join(', ')} }`;
    default:
      throw new Error(`no source for ${tag}`);
  }
}

/** First the empty object with its name, and then its contents. */
function shared({ $id, $value }, scope) {
  const inner = (value) => expression(value, scope);
  const name = `v${(scope.names.next += 1)}`;
  scope.known.set($id, name);
  const add = (line) => scope.before.push(line);
  if (Array.isArray($value)) {
    add(`const ${name} = [];`);
    for (const element of $value) add(`${name}.push(${inner(element)});`);
  } else if ('$map' in $value) {
    add(`const ${name} = new Map();`);
    for (const [key, entry] of $value.$map) add(`${name}.set(${inner(key)}, ${inner(entry)});`);
  } else if ('$set' in $value) {
    add(`const ${name} = new Set();`);
    for (const member of $value.$set) add(`${name}.add(${inner(member)});`);
  } else {
    add(`const ${name} = {};`);
    for (const [key, entry] of $value.$entries) {
      const value = inner(entry);
      const define = `Object.defineProperty(${name}, ${quoted(key)}, { value: ${value}, writable: true, enumerable: true, configurable: true });`;
      add(key === '__proto__' ? define : `${name}[${quoted(key)}] = ${value};`);
    }
  }
  return name;
}

function error({ class: kind, name, message, code }, inner) {
  const own = { ...(name === kind ? {} : { name }), ...(code === undefined ? {} : { code }) };
  const made = `new ${kind}(${quoted(message)})`;
  const entries = Object.entries(own).map(([key, value]) => `${key}: ${inner(value)}`);
  return entries.length === 0 ? made : `Object.assign(${made}, { ${entries.join(', ')} })`;
}
