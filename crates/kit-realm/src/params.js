// Parameters of statements. In: `[…]` or `{…}` of a run. Out: the same, but a parameter with a `toJSON` is what that gives,
// and one that has such an object inside is its JSON form. The native gives all other values theirs.

// As many as a statement can have. More are an error, whatever they are.
const MOST_PARAMETERS = 32_766;

const hasToJson = (value) => typeof value === 'object' && value !== null && typeof value.toJSON === 'function';

// Whether `JSON.stringify` looks into an object.
const isOpen = (value) => typeof value === 'object' && value !== null && (isArray(value) || kindOf(value) === undefined);

// Whether an object has one with a `toJSON` inside, however deep.
const holdsToJson = (object) => {
  const found = newList();
  const known = new Set();
  found[0] = object;
  setAdd(known, object);
  for (let at = 0; at < found.length; at += 1) {
    const keys = keysOf(found[at]);
    for (let index = 0; index < keys.length; index += 1) {
      const value = found[at][keys[index]];
      if (hasToJson(value)) return true;
      if (isOpen(value) && !setHas(known, value)) {
        setAdd(known, value);
        found[found.length] = value;
      }
    }
  }
  return false;
};

// A copy of an object without its `toJSON`, which was asked.
const bare = (object) => {
  const isList = isArray(object);
  const copy = isList ? [] : { __proto__: null };
  if (isList) copy.length = object.length;
  const keys = keysOf(object);
  for (let at = 0; at < keys.length; at += 1) {
    const value = object[keys[at]];
    if (keys[at] !== 'toJSON' || typeof value !== 'function') put(copy, keys[at], value);
  }
  return copy;
};

const paramOf = (value, key, root) => {
  const given = hasToJson(value) ? value.toJSON(key) : value;
  if (!isOpen(given)) return given;
  const form = given !== value && hasToJson(given) ? bare(given) : given;
  return holdsToJson(form) ? jsonForm(form, root) : form;
};

const paramsOf = (value) => {
  const given = hasToJson(value) ? value.toJSON('') : value;
  if (!isOpen(given)) return given;
  const keys = keysOf(given);
  if (keys.length > MOST_PARAMETERS) return given;
  const isList = isArray(given);
  let form;
  for (let at = 0; at < keys.length; at += 1) {
    const key = keys[at];
    const value = given[key];
    const param = paramOf(value, key, join('parameter ', isList ? Number(key) + 1 : join("'", key, "'")));
    if (isSame(param, value)) continue;
    form ??= bare(given);
    put(form, key, param);
  }
  return form ?? given;
};

const statementsOf = (value) => {
  if (!isArray(value)) return value;
  const keys = keysOf(value);
  let form;
  for (let at = 0; at < keys.length; at += 1) {
    const statement = value[keys[at]];
    if (!isArray(statement) || statement.length < 2) continue;
    const params = paramsOf(statement[1]);
    if (isSame(params, statement[1])) continue;
    const other = bare(statement);
    put(other, '1', params);
    form ??= bare(value);
    put(form, keys[at], other);
  }
  return form ?? value;
};

const rejected = async (thrown) => {
  throw thrown;
};
