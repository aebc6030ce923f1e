// Requests. In: `fetch(url, options)`, whose arguments are read here; the native `fetch(request)`, which gives a whole
// answer, and `abort(id)`. Out: a promise of a Response, whose body is read once.

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']);
const REDIRECTS = new Set(['follow', 'error', 'manual']);

let lastRequest = 0;

const methodOf = (method) => {
  if (method === undefined) return 'GET';
  const upper = upperCase(textOf(method));
  if (!setHas(METHODS, upper)) throw new TypeError(join("method '", slice(textOf(method), 0, 64), "' is not supported"));
  return upper;
};

const addHeader = (headers, name, value) => {
  for (let at = 0; at < value.length; at += 1) {
    const code = codeAt(value, at);
    if (code !== 0 && code !== 10 && code !== 13 && code <= 255) continue;
    throw new TypeError(join("header '", slice(name, 0, 64), "' has a character that a header cannot have"));
  }
  append(headers, [name, value]);
};

const headersOf = (given) => {
  const headers = [];
  if (given === undefined || given === null) return headers;
  if (!isObject(given)) throw new TypeError('headers are an object or pairs');
  const iterate = given[Symbol.iterator];
  if (iterate !== undefined && iterate !== null) {
    for (const entry of given) {
      const parts = newList();
      if (isObject(entry)) for (const part of entry) parts[parts.length] = part;
      if (parts.length !== 2) throw new TypeError('each header is a pair of a name and a value');
      addHeader(headers, textOf(parts[0]), textOf(parts[1]));
    }
    return headers;
  }
  const names = ownKeys(given);
  for (let at = 0; at < names.length; at += 1) {
    if (!getOwnPropertyDescriptor(given, names[at])?.enumerable) continue;
    if (typeof names[at] === 'symbol') throw new TypeError('the name of a header is a text');
    addHeader(headers, names[at], textOf(given[names[at]]));
  }
  return headers;
};

const hasHeader = (headers, name) => {
  for (let at = 0; at < headers.length; at += 1) {
    if (lowerCase(headers[at][0]) === name) return true;
  }
  return false;
};

// The body as a text or bytes, and its type unless the caller gives one.
const bodyOf = (body) => {
  if (body === undefined || body === null) return { __proto__: null, body: null };
  if (typeof body === 'string') return { __proto__: null, body: wellFormed(body), type: 'text/plain;charset=UTF-8' };
  if (isSearchParams(body)) {
    const type = 'application/x-www-form-urlencoded;charset=UTF-8';
    return { __proto__: null, body: apply(searchParamsText, body, []), type };
  }
  const bytes = bytesOf(body);
  if (bytes !== undefined) return { __proto__: null, body: copyBytes(bytes) };
  throw new TypeError('the body is a text, bytes or URLSearchParams; for JSON, use JSON.stringify');
};

const timeoutOf = (timeout) => {
  if (timeout === undefined || timeout === null) return undefined;
  if (typeof timeout === 'number' && timeout > 0) return timeout;
  throw new TypeError('timeout is a number of milliseconds above 0');
};

const redirectOf = (redirect) => {
  if (redirect === undefined) return 'follow';
  if (typeof redirect === 'string' && setHas(REDIRECTS, redirect)) return redirect;
  throw new TypeError("redirect is 'follow', 'error' or 'manual'");
};

const signalOf = (signal) => {
  if (signal === undefined || signal === null) return undefined;
  if (isSignal(signal)) return signal;
  throw new TypeError('signal is an AbortSignal');
};

// Adds what belongs to the body.
const readBody = (options, request) => {
  const { body, type } = bodyOf(options.body);
  const headers = headersOf(options.headers);
  const { method } = request;
  if (body !== null && (method === 'GET' || method === 'HEAD')) {
    throw new TypeError(join('a ', method, ' request has no body'));
  }
  if (type !== undefined && !hasHeader(headers, 'content-type')) append(headers, ['content-type', type]);
  put(request, 'headers', headers);
  put(request, 'body', body);
};

const urlOf = (url) => {
  if (isUrl(url)) return hrefOf(url);
  if (typeof url === 'string') return wellFormed(url);
  throw new TypeError('fetch takes a URL as a text or a URL');
};

// Answers at once when the signal aborts, while the host ends the request.
const abortable = (signal, id, answer) =>
  new Promise((fulfil, reject) => {
    const abort = () => {
      natives.abort(id);
      reject(reasonOf(signal));
    };
    onAbort(signal, abort);
    promiseThen(
      answer,
      (response) => {
        offAbort(signal, abort);
        fulfil(response);
      },
      (error) => {
        offAbort(signal, abort);
        reject(error);
      },
    );
  });

const { fetch } = {
  async fetch(url, options = undefined) {
    const given = dictionary(options, 'fetch');
    const request = { url: urlOf(url), method: methodOf(given.method), id: (lastRequest += 1) };
    readBody(given, request);
    const timeout = timeoutOf(given.timeout);
    if (timeout !== undefined && isFinite(timeout)) put(request, 'timeout', timeout);
    put(request, 'redirect', redirectOf(given.redirect));
    const signal = signalOf(given.signal);
    if (signal === undefined) return new Response(await natives.fetch(request));
    if (isAborted(signal)) throw reasonOf(signal);
    return new Response(await abortable(signal, request.id, natives.fetch(request)));
  },
};

// The methods of `headers`, which enumerations do not show.
const HEADER_METHODS = {
  get(name) {
    const key = lowerCase(textOf(name));
    return hasOwn(this, key) && typeof this[key] === 'string' ? this[key] : null;
  },
  has(name) {
    const key = lowerCase(textOf(name));
    return hasOwn(this, key) && typeof this[key] === 'string';
  },
};

// A plain object of the headers. A header called `get` or `has` takes the place of the method.
const headersObject = (pairs) => {
  const headers = {};
  hide(headers, 'get', HEADER_METHODS.get);
  hide(headers, 'has', HEADER_METHODS.has);
  for (let at = 0; at < pairs.length; at += 1) {
    const name = lowerCase(pairs[at][0]);
    const isRepeated = hasOwn(headers, name) && typeof headers[name] === 'string';
    put(headers, name, isRepeated ? join('', headers[name], ', ', pairs[at][1]) : pairs[at][1]);
  }
  return headers;
};

class Response {
  // The bytes; `undefined` once they are read.
  #body;

  constructor(answer) {
    this.#body = answer.body;
    const { status } = answer;
    put(this, 'ok', status >= 200 && status <= 299);
    put(this, 'status', status);
    put(this, 'statusText', answer.statusText);
    put(this, 'url', answer.url);
    put(this, 'redirected', answer.redirected);
    put(this, 'headers', headersObject(answer.headers));
  }

  async text() {
    return textOfBytes(this.#read());
  }

  async json() {
    return parseJson(textOfBytes(this.#read()));
  }

  async bytes() {
    return this.#read();
  }

  async arrayBuffer() {
    return arrayBuffer(this.#read());
  }

  #read() {
    const body = this.#body;
    if (body === undefined) throw new TypeError('the body has been read already');
    this.#body = undefined;
    return body;
  }

  get bodyUsed() {
    return this.#body === undefined;
  }
}
likeTheWeb(Response, 'Response');
