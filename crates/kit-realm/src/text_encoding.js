// Texts and bytes. In: bytes of UTF-8, UTF-16 or windows-1252, or a text. Out: `TextEncoder` and `TextDecoder` of the
// Encoding standard. Long UTF-8 is read and written by the host, which is faster from some hundred bytes on.

const LONG_BYTES = 512;
// Code units that become a text at a time.
const UNITS_AT_A_TIME = 4096;
const REPLACEMENT = 0xfffd;
const BYTE_ORDER_MARK = 0xfeff;

// A text that grows by code units.
const newText = () => ({ __proto__: null, done: '', units: newList() });

const pushUnit = (text, unit) => {
  text.units[text.units.length] = unit;
  if (text.units.length === UNITS_AT_A_TIME) flushText(text);
};

const pushPoint = (text, point) => {
  if (point < 0x10000) return pushUnit(text, point);
  pushUnit(text, 0xd800 | ((point - 0x10000) >> 10));
  return pushUnit(text, 0xdc00 | ((point - 0x10000) & 0x3ff));
};

const flushText = (text) => {
  text.done += apply(fromCharCode, undefined, text.units);
  text.units = newList();
  return text.done;
};

const invalid = (isFatal, text) => {
  if (isFatal) throw new TypeError('The encoded data was not valid');
  pushUnit(text, REPLACEMENT);
};

// Decodes UTF-8. `state` is that of a decoder between two parts: a character that is not complete.
const newUtf8State = () => ({ __proto__: null, point: 0, needed: 0, low: 0x80, high: 0xbf });

const decodeUtf8Part = (state, bytes, from, to, isFatal, text) => {
  let { point, needed, low, high } = state;
  for (let at = from; at < to; at += 1) {
    const byte = bytes[at];
    if (needed > 0) {
      if (byte >= low && byte <= high) {
        low = 0x80;
        high = 0xbf;
        point = (point << 6) | (byte & 0x3f);
        needed -= 1;
        if (needed === 0) pushPoint(text, point);
        continue;
      }
      needed = 0;
      low = 0x80;
      high = 0xbf;
      invalid(isFatal, text);
    }
    if (byte < 0x80) {
      pushUnit(text, byte);
    } else if (byte >= 0xc2 && byte <= 0xdf) {
      needed = 1;
      point = byte & 0x1f;
    } else if (byte >= 0xe0 && byte <= 0xef) {
      if (byte === 0xe0) low = 0xa0;
      if (byte === 0xed) high = 0x9f;
      needed = 2;
      point = byte & 0xf;
    } else if (byte >= 0xf0 && byte <= 0xf4) {
      if (byte === 0xf0) low = 0x90;
      if (byte === 0xf4) high = 0x8f;
      needed = 3;
      point = byte & 0x7;
    } else {
      invalid(isFatal, text);
    }
  }
  state.point = point;
  state.needed = needed;
  state.low = low;
  state.high = high;
};

const endUtf8 = (state, isFatal, text) => {
  if (state.needed > 0) invalid(isFatal, text);
};

// The last place, at most so far, where a character may begin.
const boundaryBefore = (bytes, at) => {
  for (let place = at; place > at - 4 && place > 0; place -= 1) {
    if ((bytes[place] & 0xc0) !== 0x80) return place;
  }
  return at;
};

const decodeUtf8 = (state, bytes, isLast, isFatal) => {
  const text = newText();
  let from = 0;
  if (bytes.length >= LONG_BYTES) {
    for (; state.needed > 0 && from < bytes.length; from += 1) {
      decodeUtf8Part(state, bytes, from, from + 1, isFatal, text);
    }
    const to = isLast ? bytes.length : max(from, boundaryBefore(bytes, bytes.length - 3));
    const long = natives.decodeUtf8(copyBytes(bytes, from, to), isFatal);
    if (long === null) invalid(true, text);
    text.done = flushText(text) + long;
    from = to;
  }
  decodeUtf8Part(state, bytes, from, bytes.length, isFatal, text);
  if (isLast) endUtf8(state, isFatal, text);
  return flushText(text);
};

// The text of UTF-8 bytes, without a mark of their order.
const textOfBytes = (bytes) => {
  const text = decodeUtf8(newUtf8State(), bytes, true, false);
  return codeAt(text, 0) === BYTE_ORDER_MARK ? slice(text, 1) : text;
};

// Writes a text into bytes as far as there is room. Returns the code units read and the bytes written.
const encodeInto = (text, bytes) => {
  let read = 0;
  let written = 0;
  while (read < text.length) {
    let point = codeAt(text, read);
    let units = 1;
    if ((point & 0xf800) === 0xd800) {
      const next = (point & 0xfc00) === 0xd800 ? codeAt(text, read + 1) : 0;
      if ((next & 0xfc00) === 0xdc00) {
        point = 0x10000 + ((point & 0x3ff) << 10) + (next & 0x3ff);
        units = 2;
      } else {
        point = REPLACEMENT;
      }
    }
    const length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    if (written + length > bytes.length) break;
    if (length === 1) bytes[written] = point;
    else if (length === 2) bytes[written] = 0xc0 | (point >> 6);
    else if (length === 3) bytes[written] = 0xe0 | (point >> 12);
    else bytes[written] = 0xf0 | (point >> 18);
    for (let at = 1; at < length; at += 1) bytes[written + at] = 0x80 | ((point >> (6 * (length - 1 - at))) & 0x3f);
    read += units;
    written += length;
  }
  return { read, written };
};

// The UTF-8 bytes of a text.
const bytesOfText = (text) => {
  if (text.length >= LONG_BYTES) return natives.encodeUtf8(wellFormed(text));
  const bytes = new Uint8Array(text.length * 3);
  const { written } = encodeInto(text, bytes);
  return copyBytes(bytes, 0, written);
};

const WINDOWS_1252 =
  '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

const decodeWindows1252 = (bytes) => {
  const text = newText();
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    pushUnit(text, byte >= 0x80 && byte < 0xa0 ? codeAt(WINDOWS_1252, byte - 0x80) : byte);
  }
  return flushText(text);
};

// `byte` and `lead` are what is not complete between two parts.
const decodeUtf16 = (state, bytes, isBigEndian, isLast, isFatal) => {
  const text = newText();
  let { byte, lead } = state;
  for (let at = 0; at < bytes.length; at += 1) {
    if (byte === undefined) {
      byte = bytes[at];
      continue;
    }
    const unit = isBigEndian ? (byte << 8) | bytes[at] : (bytes[at] << 8) | byte;
    byte = undefined;
    if (lead !== undefined && (unit & 0xfc00) === 0xdc00) {
      pushUnit(text, lead);
      pushUnit(text, unit);
      lead = undefined;
      continue;
    }
    if (lead !== undefined) invalid(isFatal, text);
    lead = (unit & 0xfc00) === 0xd800 ? unit : undefined;
    if ((unit & 0xfc00) === 0xdc00) invalid(isFatal, text);
    else if (lead === undefined) pushUnit(text, unit);
  }
  if (isLast && (byte !== undefined || lead !== undefined)) invalid(isFatal, text);
  state.byte = byte;
  state.lead = lead;
  return flushText(text);
};

const LABELS = {
  __proto__: null,
  'utf-8': ['unicode-1-1-utf-8', 'unicode11utf8', 'unicode20utf8', 'utf-8', 'utf8', 'x-unicode20utf8'],
  'utf-16le': ['csunicode', 'iso-10646-ucs-2', 'ucs-2', 'unicode', 'unicodefeff', 'utf-16', 'utf-16le'],
  'utf-16be': ['unicodefffe', 'utf-16be'],
  'windows-1252': [
    'ansi_x3.4-1968', 'ascii', 'cp1252', 'cp819', 'csisolatin1', 'ibm819', 'iso-8859-1', 'iso-ir-100', 'iso8859-1',
    'iso88591', 'iso_8859-1', 'iso_8859-1:1987', 'l1', 'latin1', 'us-ascii', 'windows-1252', 'x-cp1252',
  ],
};
const encodingByLabel = new Map();
const ENCODINGS = ownKeys(LABELS);
for (let at = 0; at < ENCODINGS.length; at += 1) {
  const labels = LABELS[ENCODINGS[at]];
  for (let index = 0; index < labels.length; index += 1) mapSet(encodingByLabel, labels[index], ENCODINGS[at]);
}

// Tab, line feed, form feed, carriage return and space.
const isAsciiBlank = (code) => code === 32 || (code >= 9 && code <= 13 && code !== 11);

const trimAsciiBlanks = (text) => {
  let from = 0;
  let to = text.length;
  while (from < to && isAsciiBlank(codeAt(text, from))) from += 1;
  while (from < to && isAsciiBlank(codeAt(text, to - 1))) to -= 1;
  return slice(text, from, to);
};

class TextDecoder {
  #encoding;
  #isFatal;
  #keepsMark;
  // The characters that are not complete; whether a part has been decoded since the beginning of the bytes.
  #state = undefined;
  #isPastMark = false;

  constructor(label = 'utf-8', options = undefined) {
    const encoding = mapGet(encodingByLabel, lowerCase(trimAsciiBlanks(textOf(label))));
    if (encoding === undefined) {
      throw new RangeError(join("The encoding '", slice(textOf(label), 0, 64), "' is not supported"));
    }
    const { fatal, ignoreBOM } = dictionary(options, 'TextDecoder');
    this.#encoding = encoding;
    this.#isFatal = !!fatal;
    this.#keepsMark = !!ignoreBOM;
  }

  get encoding() {
    return this.#encoding;
  }

  get fatal() {
    return this.#isFatal;
  }

  get ignoreBOM() {
    return this.#keepsMark;
  }

  decode(input = undefined, options = undefined) {
    const bytes = input === undefined ? new Uint8Array(0) : bytesOf(input);
    if (bytes === undefined) throw new TypeError('decode takes an ArrayBuffer or a view');
    const isLast = !dictionary(options, 'decode').stream;
    const state = this.#state ?? newUtf8State();
    // An error ends the stream, too.
    this.#state = undefined;
    const isPastMark = this.#isPastMark;
    this.#isPastMark = false;
    const text = this.#decoded(state, bytes, isLast);
    const hasMark = !this.#keepsMark && !isPastMark && codeAt(text, 0) === BYTE_ORDER_MARK;
    if (!isLast) {
      this.#state = state;
      this.#isPastMark = isPastMark || text !== '';
    }
    return hasMark && this.#encoding !== 'windows-1252' ? slice(text, 1) : text;
  }

  #decoded(state, bytes, isLast) {
    switch (this.#encoding) {
      case 'utf-8': return decodeUtf8(state, bytes, isLast, this.#isFatal);
      case 'windows-1252': return decodeWindows1252(bytes);
      default: return decodeUtf16(state, bytes, this.#encoding === 'utf-16be', isLast, this.#isFatal);
    }
  }
}

class TextEncoder {
  get encoding() {
    return 'utf-8';
  }

  encode(input = '') {
    return bytesOfText(textOf(input));
  }

  encodeInto(source, destination) {
    const isBytes = isObject(destination) && isView(destination) && viewKind(destination) === 'Uint8Array';
    if (!isBytes) throw new TypeError('encodeInto takes a text and a Uint8Array');
    return encodeInto(textOf(source), bytesOf(destination));
  }
}

likeTheWeb(TextDecoder, 'TextDecoder');
likeTheWeb(TextEncoder, 'TextEncoder');
