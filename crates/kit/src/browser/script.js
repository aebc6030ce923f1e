(code, mostUnits) => {
  const fail = (path, what) => {
    const error = new Error(`${path}: ${what} cannot be written as JSON`);
    error.name = 'SerializationError';
    throw error;
  };
  const base64 = (bytes) => {
    let text = '';
    for (let at = 0; at < bytes.length; at += 0x8000) {
      text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    }
    return btoa(text);
  };
  const around = [];
  const plain = (given, path, key) => {
    let value = given;
    if (value !== null && (typeof value === 'object' || typeof value === 'bigint') && typeof value.toJSON === 'function') {
      value = value.toJSON(key);
    }
    if (typeof value === 'bigint') {
      return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : String(value);
    }
    if (value === null || typeof value !== 'object') return value;
    if (around.includes(value)) fail(path, 'a cycle');
    if (value instanceof Promise) fail(path, 'a promise');
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return value.valueOf();
    if (value instanceof ArrayBuffer) return base64(new Uint8Array(value));
    if (ArrayBuffer.isView(value)) return base64(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    if (value instanceof Error) return { name: String(value.name), message: String(value.message) };
    around.push(value);
    let written;
    if (Array.isArray(value)) written = Array.from(value, (item, index) => plain(item, `${path}[${index}]`, String(index)));
    else if (value instanceof Set) written = Array.from(value, (item, index) => plain(item, `${path}[${index}]`, String(index)));
    else if (value instanceof Map) written = map(value, path);
    else {
      const entries = Object.keys(value).map((name) => [name, plain(value[name], `${path}.${name}`, name)]);
      written = Object.fromEntries(entries);
    }
    around.pop();
    return written;
  };
  const map = (value, path) => {
    const entries = Array.from(value, ([key, item]) => [key, plain(item, `${path}.get(${String(key)})`, String(key))]);
    if (entries.every(([key]) => typeof key === 'string')) return Object.fromEntries(entries);
    return entries.map(([key, item], index) => [plain(key, `${path}.key(${index})`, ''), item]);
  };
  const outcome = async () => {
    try {
      let value = await run();
      if (typeof value === 'function') value = await value();
      const json = JSON.stringify(plain(value, 'result', '')) ?? 'null';
      return json.length > mostUnits ? 't' : `v${json}`;
    } catch (error) {
      const of = (part) => String(part).slice(0, 2000);
      const isError = error instanceof Error;
      return `e${JSON.stringify({ name: isError ? of(error.name) : '', message: isError ? of(error.message) : of(error) })}`;
    }
  };
  let run;
  // A page may forbid that later, but not while it is told to evaluate.
  try {
    run = (0, eval)(code);
  } catch (error) {
    run = () => {
      throw error;
    };
  }
  // The page may have changed each function that was called up to here, and promises, too: nothing but syntax bounds the
  // text. Such an object is awaited without a function of the page's.
  return {
    __proto__: null,
    then(resolve) {
      (async () => {
        let text;
        try {
          text = await outcome();
        } catch {}
        resolve(typeof text !== 'string' ? 'x' : text.length > mostUnits + 32768 ? 't' : text);
      })();
    },
  };
}
