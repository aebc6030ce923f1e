// The JSON form of a value. In: a value of a run, and the name of the place that it begins with. Out: its text as
// `JSON.stringify` has it, but for what that would lose: a bigint is a number if it is safe, else a text; a Map is an
// object, or pairs if a key is no text; a Set is an array; bytes are Base64; an Error is its name and message. A cycle
// or a promise throws a SerializationError with its path.

// Steps of a path that are shown from either end.
const SHOWN_STEPS = 12;

// The class of an object for the JSON form, by the prototypes that it inherits from.
const kindOf = (object) => {
  if (isView(object)) return 'bytes';
  for (let above = getPrototypeOf(object); above !== null; above = getPrototypeOf(above)) {
    switch (above) {
      case errorPrototype: return 'error';
      case mapPrototype: return passes(mapSize, object) ? 'map' : undefined;
      case setPrototype: return passes(setSize, object) ? 'set' : undefined;
      case arrayBufferPrototype: return passes(bufferBytes, object) ? 'bytes' : undefined;
      case promisePrototype: return 'promise';
      case bigintPrototype: return passes(bigintValueOf, object) ? 'bigint' : undefined;
      default:
    }
  }
  return undefined;
};

const mapForm = (map) => {
  let isKeyed = true;
  mapForEach(map, (value, key) => {
    isKeyed &&= typeof key === 'string';
  });
  const form = isKeyed ? { __proto__: null } : [];
  mapForEach(map, (value, key) => {
    if (isKeyed) put(form, key, value);
    else append(form, [key, value]);
  });
  return form;
};

const setForm = (set) => {
  const form = [];
  setForEach(set, (value) => append(form, value));
  return form;
};

const bigintForm = (bigint) => {
  const number = Number(bigint);
  return isSafeInteger(number) ? number : textOf(bigint);
};

const isName = (key) => {
  for (let at = 0; at < key.length; at += 1) {
    const code = codeAt(key, at) | 32;
    const isLetter = (code >= 97 && code <= 122) || codeAt(key, at) === 95 || codeAt(key, at) === 36;
    if (!isLetter && (at === 0 || codeAt(key, at) < 48 || codeAt(key, at) > 57)) return false;
  }
  return key !== '';
};

const jsonForm = (value, root) => {
  // In these is nothing that has another form.
  if (value === null || (!isObject(value) && typeof value !== 'bigint')) return stringify(value);
  // The objects that are open, outermost first: each as it was, as it is written, and its key.
  const open = newList();
  const ancestors = new Set();
  const fault = (last, why) => {
    let path = root;
    const hidden = open.length - 2 * SHOWN_STEPS;
    for (let at = 1; at <= open.length; at += 1) {
      const key = at < open.length ? open[at].key : last;
      if (hidden > 0 && at > SHOWN_STEPS && at <= SHOWN_STEPS + hidden) {
        if (at === SHOWN_STEPS + 1) path += '…';
      } else if (isArray(open[at - 1].form)) {
        path += join('[', key, ']');
      } else {
        path += isName(key) ? join('.', key) : join('[', stringify(key), ']');
      }
    }
    throw namedError('SerializationError', join('', path, ': ', why));
  };
  // The key of an element is a number in some engines.
  const replace = (holder, key, inner) => {
    if (typeof inner === 'bigint') return bigintForm(inner);
    if (typeof inner !== 'object' || inner === null) return inner;
    while (open.length > 0 && open[open.length - 1].form !== holder) {
      setDelete(ancestors, open[open.length - 1].object);
      open.length -= 1;
    }
    if (setHas(ancestors, inner)) fault(textOf(key), 'a cycle has no JSON form');
    let form = inner;
    if (!isArray(inner)) {
      switch (kindOf(inner)) {
        case 'bytes': return bytesToBase64(bytesOf(inner));
        case 'bigint': return bigintForm(bigintValueOf(inner));
        case 'promise': return fault(textOf(key), 'a promise has no JSON form; await it first');
        case 'error':
          form = { __proto__: null, name: textOf(inner.name), message: textOf(inner.message) };
          break;
        case 'map':
          form = mapForm(inner);
          break;
        case 'set':
          form = setForm(inner);
          break;
        default:
      }
    }
    setAdd(ancestors, inner);
    open[open.length] = { __proto__: null, object: inner, form, key: textOf(key) };
    return form;
  };
  return stringify(value, function replacer(key, inner) {
    return replace(this, key, inner);
  });
};
