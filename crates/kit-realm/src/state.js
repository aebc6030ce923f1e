// State. In: the natives `state.…`, for which values are JSON texts. Those but `get` answer at once if they can, else with
// a promise. Out: `state`, for which they are values.

const checkKey = (key, name) => {
  if (typeof key !== 'string') throw new TypeError(join('state.', name, ' takes a key, a well-formed string, first'));
};

const state = {
  // The outcome of the native is the value itself.
  get(key) {
    return natives['state.get'](key);
  },

  async set(key, value) {
    checkKey(key, 'set');
    if (typeof value === 'function' || typeof value === 'symbol') {
      throw new TypeError(join('state.set takes a value that is no ', typeof value));
    }
    const text = jsonForm(value, 'value');
    if (text === undefined) throw new TypeError('state.set takes a value that is not undefined');
    const done = natives['state.set'](key, text);
    if (done !== undefined) await done;
  },

  async delete(key) {
    checkKey(key, 'delete');
    return natives['state.delete'](key);
  },

  async keys(prefix = '') {
    if (typeof prefix !== 'string') throw new TypeError('state.keys takes a prefix, a well-formed string, or nothing');
    return natives['state.keys'](prefix);
  },
};
