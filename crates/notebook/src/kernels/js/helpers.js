// Helpers of models, files, artifacts and text: `llm`, `agent`, `read`, `write`, `append`, `tree`, `diff`, `output`, `sort`, `uniq`, `counter`, `env`.
//
// In: the way to the host, the way of status events, and the variables of the notebook. Out: functions. The host checks what
// it is asked for; the helpers of text do their work here, and tell the host how much there was.
((call, note, variables) => {
  'use strict';
  const { keys, fromEntries } = Object;
  const kindOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value);
  const isOptions = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
  // Options are one object, or values in this order.
  const optionsOf = (names, given) => {
    const [first] = given;
    if (isOptions(first)) return first;
    return fromEntries(names.slice(0, given.length).map((name, at) => [name, given[at] ?? undefined]));
  };
  const ownOptions = (helper, names, given) => {
    const options = optionsOf(names, given);
    for (const key of keys(options)) {
      if (!names.includes(key)) throw new TypeError(`${helper}: unknown option '${key}'; there are ${names.join(', ')}`);
    }
    return options;
  };
  const linesOf = (helper, text) => {
    if (typeof text !== 'string') throw new TypeError(`${helper}: text must be a string, got ${kindOf(text)}`);
    const lines = text.split('\n');
    // The last line may have an end.
    const end = lines.at(-1) === '' ? '\n' : '';
    if (end !== '') lines.pop();
    return { lines, joined: (some) => (some.length === 0 ? '' : some.join('\n') + end) };
  };
  // Order by code points. Units of surrogates stand for code points behind all others.
  const rank = (unit) => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);
  const byCodePoint = (a, b) => {
    const length = Math.min(a.length, b.length);
    for (let at = 0; at < length; at += 1) {
      const [first, second] = [a.charCodeAt(at), b.charCodeAt(at)];
      if (first !== second) return rank(first) - rank(second);
    }
    return a.length - b.length;
  };
  const byUnit = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const values = new Map(variables);
  const ofAgent = ['agentType', 'model', 'context', 'label', 'schema'];
  return {
    llm: (prompt, ...options) => call('llm', '', { ...optionsOf(['model', 'system', 'schema'], options), prompt }),
    agent: (prompt, ...options) => call('agent', '', { ...optionsOf(ofAgent, options), prompt }),
    read: (path, ...options) => call('read', '', { ...optionsOf(['offset', 'limit', 'bytes'], options), path }),
    write: (path, data) => call('write', '', { path, data }),
    append: (path, data) => call('append', '', { path, data }),
    tree(path, ...options) {
      const [given, rest] = isOptions(path) ? [undefined, [path]] : [path, options];
      return call('tree', '', { ...optionsOf(['maxDepth', 'hidden'], rest), path: given ?? undefined });
    },
    diff: (a, b) => call('diff', '', { a, b }),
    output(...ids) {
      const options = isOptions(ids.at(-1)) ? ids.pop() : {};
      return call('output', '', { ...options, ids: ids.flat() });
    },
    sort(text, ...options) {
      const { reverse = false, unique = false } = ownOptions('sort', ['reverse', 'unique'], options);
      const { lines, joined } = linesOf('sort', text);
      const some = unique ? [...new Set(lines)] : lines;
      some.sort(/[\ud800-\uffff]/.test(text) ? byCodePoint : byUnit);
      if (reverse) some.reverse();
      note({ op: 'sort', lines: some.length });
      return joined(some);
    },
    uniq(text, ...options) {
      const { count = false } = ownOptions('uniq', ['count'], options);
      const { lines, joined } = linesOf('uniq', text);
      const counted = [];
      for (const line of lines) {
        const last = counted.at(-1);
        if (last !== undefined && last[1] === line) last[0] += 1;
        else counted.push([1, line]);
      }
      note({ op: 'uniq', lines: counted.length });
      return count ? counted : joined(counted.map(([, line]) => line));
    },
    counter(items, ...options) {
      const { limit, reverse = true } = ownOptions('counter', ['limit', 'reverse'], options);
      if (limit != null && !(Number.isInteger(limit) && limit >= 0)) {
        throw new RangeError(`counter: limit must be a whole number of at least 0, got ${String(limit)}`);
      }
      const counts = new Map();
      for (const item of typeof items === 'string' ? linesOf('counter', items).lines : items) {
        counts.set(item, (counts.get(item) ?? 0) + 1);
      }
      const counted = [...counts].map(([item, count]) => [count, item]);
      counted.sort(([a], [b]) => (reverse ? b - a : a - b));
      note({ op: 'counter', items: counted.length });
      return counted.slice(0, limit ?? undefined);
    },
    env(key, value) {
      if (key == null) {
        note({ op: 'env', variables: values.size });
        return fromEntries(values);
      }
      if (typeof key !== 'string' || key === '' || /[=\0]/.test(key)) {
        throw new TypeError('env: key must be the name of a variable');
      }
      if (value != null) {
        const text = String(value);
        if (text.includes('\0')) throw new TypeError('env: value must not contain NUL');
        values.set(key, text);
      }
      note({ op: 'env', key, set: value != null });
      return values.get(key);
    },
  };
});
