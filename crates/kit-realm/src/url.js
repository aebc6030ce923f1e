// URLs. In: texts, which the host reads by the URL standard: the natives `url(input, base)` and
// `urlSet(href, part, value)` give the parts of a URL, or `null`. Out: `URL` and `URLSearchParams`.

const isUnreserved = (code) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) ||
  code === 42 || code === 45 || code === 46 || code === 95;

const HEX = '0123456789ABCDEF';

// Writes a text as `application/x-www-form-urlencoded` does.
const formEncoded = (text) => {
  const encoded = encodeURIComponent(wellFormed(text));
  let written = '';
  let from = 0;
  for (let at = 0; at < encoded.length; at += 1) {
    const code = codeAt(encoded, at);
    const isSpace = code === 37 && slice(encoded, at, at + 3) === '%20';
    if (!isSpace && (isUnreserved(code) || code === 37)) continue;
    written += slice(encoded, from, at);
    written += isSpace ? '+' : join('%', HEX[code >> 4], HEX[code & 15]);
    if (isSpace) at += 2;
    from = at + 1;
  }
  return written + slice(encoded, from);
};

const hexDigit = (code) => {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
};

// The text of a part that is percent-encoded, perhaps badly.
const percentDecoded = (text) => {
  if (indexOf(text, '%') < 0) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    const bytes = bytesOfText(text);
    let length = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const high = bytes[at] === 37 && at + 2 < bytes.length ? hexDigit(bytes[at + 1]) : -1;
      const low = high < 0 ? -1 : hexDigit(bytes[at + 2]);
      bytes[length] = low < 0 ? bytes[at] : high * 16 + low;
      if (low >= 0) at += 2;
      length += 1;
    }
    return decodeUtf8(newUtf8State(), copyBytes(bytes, 0, length), true, false);
  }
};

const formDecoded = (text) => {
  let spaced = '';
  let from = 0;
  for (let at = indexOf(text, '+'); at >= 0; at = indexOf(text, '+', from)) {
    spaced += join('', slice(text, from, at), ' ');
    from = at + 1;
  }
  return percentDecoded(spaced + slice(text, from));
};

const pair = (name, value) => ({ __proto__: null, name: wellFormed(name), value: wellFormed(value) });

const parsedPairs = (text) => {
  const pairs = newList();
  let from = 0;
  while (from <= text.length) {
    const end = indexOf(text, '&', from);
    const part = slice(text, from, end < 0 ? text.length : end);
    from = end < 0 ? text.length + 1 : end + 1;
    if (part === '') continue;
    const sign = indexOf(part, '=');
    const name = sign < 0 ? part : slice(part, 0, sign);
    pairs[pairs.length] = pair(formDecoded(name), sign < 0 ? '' : formDecoded(slice(part, sign + 1)));
  }
  return pairs;
};

// The pairs that `new URLSearchParams` is given as an object.
const givenPairs = (init) => {
  const pairs = newList();
  const iterate = init[Symbol.iterator];
  if (iterate === undefined || iterate === null) {
    const keys = ownKeys(init);
    for (let at = 0; at < keys.length; at += 1) {
      if (!getOwnPropertyDescriptor(init, keys[at])?.enumerable) continue;
      if (typeof keys[at] === 'symbol') throw new TypeError('the name of a parameter is a text');
      pairs[pairs.length] = pair(keys[at], textOf(init[keys[at]]));
    }
    return pairs;
  }
  for (const entry of init) {
    const parts = newList();
    if (isObject(entry)) for (const part of entry) parts[parts.length] = part;
    if (parts.length !== 2) throw new TypeError('each parameter is a pair of a name and a value');
    pairs[pairs.length] = pair(textOf(parts[0]), textOf(parts[1]));
  }
  return pairs;
};

const needed = (count, given, name) => {
  if (given >= count) return;
  throw new TypeError(join('', name, ' takes ', count === 1 ? 'an argument' : join('', count, ' arguments')));
};

class SearchParamsIterator {
  #params;
  #kind;
  #at = 0;

  constructor(params, kind) {
    this.#params = params;
    this.#kind = kind;
  }

  next() {
    const pairs = pairsOf(this.#params);
    if (this.#at >= pairs.length) return { value: undefined, done: true };
    const { name, value } = pairs[this.#at];
    this.#at += 1;
    const entries = { __proto__: null, keys: name, values: value };
    return { value: this.#kind === 'entries' ? [name, value] : entries[this.#kind], done: false };
  }
}
setPrototypeOf(SearchParamsIterator.prototype, Iterator.prototype);
likeTheWeb(SearchParamsIterator, 'URLSearchParams Iterator');
delete SearchParamsIterator.prototype.constructor;

class URLSearchParams {
  #pairs;
  // The URL whose query this is.
  #url = undefined;

  constructor(init = '') {
    if (isObject(init)) {
      this.#pairs = givenPairs(init);
    } else {
      const text = wellFormed(textOf(init));
      this.#pairs = parsedPairs(codeAt(text, 0) === 63 ? slice(text, 1) : text);
    }
  }

  get size() {
    return this.#pairs.length;
  }

  append(name, value) {
    needed(2, arguments.length, 'append');
    this.#pairs[this.#pairs.length] = pair(textOf(name), textOf(value));
    this.#update();
  }

  delete(name, value = undefined) {
    needed(1, arguments.length, 'delete');
    const { name: of, value: only } = pair(textOf(name), value === undefined ? '' : textOf(value));
    const kept = newList();
    for (let at = 0; at < this.#pairs.length; at += 1) {
      const found = this.#pairs[at];
      if (found.name !== of || (value !== undefined && found.value !== only)) kept[kept.length] = found;
    }
    this.#pairs = kept;
    this.#update();
  }

  get(name) {
    needed(1, arguments.length, 'get');
    const found = this.#first(wellFormed(textOf(name)));
    return found === undefined ? null : found.value;
  }

  getAll(name) {
    needed(1, arguments.length, 'getAll');
    const of = wellFormed(textOf(name));
    const values = [];
    for (let at = 0; at < this.#pairs.length; at += 1) {
      if (this.#pairs[at].name === of) append(values, this.#pairs[at].value);
    }
    return values;
  }

  has(name, value = undefined) {
    needed(1, arguments.length, 'has');
    const { name: of, value: only } = pair(textOf(name), value === undefined ? '' : textOf(value));
    for (let at = 0; at < this.#pairs.length; at += 1) {
      if (this.#pairs[at].name === of && (value === undefined || this.#pairs[at].value === only)) return true;
    }
    return false;
  }

  set(name, value) {
    needed(2, arguments.length, 'set');
    const changed = pair(textOf(name), textOf(value));
    const kept = newList();
    let isSet = false;
    for (let at = 0; at < this.#pairs.length; at += 1) {
      const isOther = this.#pairs[at].name !== changed.name;
      if (isOther || !isSet) kept[kept.length] = isOther ? this.#pairs[at] : changed;
      isSet ||= !isOther;
    }
    if (!isSet) kept[kept.length] = changed;
    this.#pairs = kept;
    this.#update();
  }

  sort() {
    sortList(this.#pairs, (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    this.#update();
  }

  toString() {
    let text = '';
    for (let at = 0; at < this.#pairs.length; at += 1) {
      const { name, value } = this.#pairs[at];
      text += join('', at === 0 ? '' : '&', formEncoded(name), '=', formEncoded(value));
    }
    return text;
  }

  forEach(callback, thisArg = undefined) {
    if (typeof callback !== 'function') throw new TypeError('forEach takes a function');
    for (let at = 0; at < this.#pairs.length; at += 1) {
      const { name, value } = this.#pairs[at];
      apply(callback, thisArg, [value, name, this]);
    }
  }

  entries() {
    return new SearchParamsIterator(URLSearchParams.#checked(this), 'entries');
  }

  keys() {
    return new SearchParamsIterator(URLSearchParams.#checked(this), 'keys');
  }

  values() {
    return new SearchParamsIterator(URLSearchParams.#checked(this), 'values');
  }

  #first(name) {
    for (let at = 0; at < this.#pairs.length; at += 1) {
      if (this.#pairs[at].name === name) return this.#pairs[at];
    }
    return undefined;
  }

  #update() {
    if (this.#url !== undefined) setQuery(this.#url, this);
  }

  static #checked(params) {
    if (!(#pairs in params)) throw new TypeError('Illegal invocation');
    return params;
  }

  static inner = {
    __proto__: null,
    isSearchParams: (value) => isObject(value) && #pairs in value,
    pairsOf: (params) => params.#pairs,
    // Makes the parameters those of a URL with that query.
    belongTo: (params, url, query) => {
      params.#url = url;
      params.#pairs = parsedPairs(query);
    },
  };
}
const { isSearchParams, pairsOf, belongTo } = URLSearchParams.inner;
const { toString: searchParamsText, entries: searchParamsEntries } = URLSearchParams.prototype;
delete URLSearchParams.inner;
likeTheWeb(URLSearchParams, 'URLSearchParams');
hide(URLSearchParams.prototype, Symbol.iterator, searchParamsEntries);

const invalidUrl = (input) => {
  const error = new TypeError('Invalid URL');
  hide(error, 'code', 'ERR_INVALID_URL');
  put(error, 'input', input);
  return error;
};

const readUrl = (input, base) =>
  base === undefined
    ? natives.url(wellFormed(textOf(input)))
    : natives.url(wellFormed(textOf(input)), wellFormed(textOf(base)));

class URL {
  #parts;
  #searchParams = undefined;

  constructor(input, base = undefined) {
    needed(1, arguments.length, 'URL');
    const parts = readUrl(input, base);
    if (parts === null) throw invalidUrl(textOf(input));
    this.#parts = parts;
  }

  static canParse(input, base = undefined) {
    needed(1, arguments.length, 'URL.canParse');
    return readUrl(input, base) !== null;
  }

  static parse(input, base = undefined) {
    needed(1, arguments.length, 'URL.parse');
    return readUrl(input, base) === null ? null : new URL(input, base);
  }

  get href() {
    return this.#parts.href;
  }

  set href(value) {
    const parts = readUrl(value, undefined);
    if (parts === null) throw invalidUrl(textOf(value));
    this.#change(parts);
  }

  get origin() {
    return this.#parts.origin;
  }

  get protocol() {
    return this.#parts.protocol;
  }

  set protocol(value) {
    this.#set('protocol', value);
  }

  get username() {
    return this.#parts.username;
  }

  set username(value) {
    this.#set('username', value);
  }

  get password() {
    return this.#parts.password;
  }

  set password(value) {
    this.#set('password', value);
  }

  get host() {
    return this.#parts.host;
  }

  set host(value) {
    this.#set('host', value);
  }

  get hostname() {
    return this.#parts.hostname;
  }

  set hostname(value) {
    this.#set('hostname', value);
  }

  get port() {
    return this.#parts.port;
  }

  set port(value) {
    this.#set('port', value);
  }

  get pathname() {
    return this.#parts.pathname;
  }

  set pathname(value) {
    this.#set('pathname', value);
  }

  get search() {
    return this.#parts.search;
  }

  set search(value) {
    this.#set('search', value);
  }

  get searchParams() {
    if (this.#searchParams === undefined) {
      this.#searchParams = new URLSearchParams();
      this.#follow();
    }
    return this.#searchParams;
  }

  get hash() {
    return this.#parts.hash;
  }

  set hash(value) {
    this.#set('hash', value);
  }

  toString() {
    return this.#parts.href;
  }

  toJSON() {
    return this.#parts.href;
  }

  #set(part, value) {
    const parts = natives.urlSet(this.#parts.href, part, wellFormed(textOf(value)));
    if (parts !== null) this.#change(parts);
  }

  #change(parts) {
    const isOtherQuery = parts.search !== this.#parts.search;
    this.#parts = parts;
    if (isOtherQuery && this.#searchParams !== undefined) this.#follow();
  }

  #follow() {
    belongTo(this.#searchParams, this, slice(this.#parts.search, 1));
  }

  static inner = {
    __proto__: null,
    isUrl: (value) => isObject(value) && #parts in value,
    hrefOf: (url) => url.#parts.href,
    // Gives the URL the query of its changed parameters.
    setQuery: (url, params) => {
      const parts = natives.urlSet(url.#parts.href, 'search', apply(searchParamsText, params, []));
      if (parts !== null) url.#parts = parts;
    },
  };
}
const { isUrl, hrefOf, setQuery } = URL.inner;
delete URL.inner;
likeTheWeb(URL, 'URL');
