// The names that code may see, and the opening of the extension for a run. Out: the values of all names and of the properties of
// `globalThis`, of which a run has those that its kit gives. In, from a run with other limits than `config` has, with
// secrets, or of a session:
//
//   { maxDelayMs, maxPending, maxDepth, isSession,
//     secrets }                                     // what code sees of them, by name

const names = {
  __proto__: null, setTimeout, setInterval, clearTimeout, clearInterval, atob, btoa, parseCSV, fetch, state, db, require,
  resolve, browser,
  // `open` gives them.
  secrets: undefined,
};

const properties = {
  __proto__: null, URL, URLSearchParams, TextEncoder, TextDecoder, crypto, AbortController, AbortSignal, Event,
  EventTarget, DOMException,
};

const open = (input) => {
  config = input;
  return input.secrets === undefined ? undefined : { __proto__: null, secrets: freeze(input.secrets) };
};

return { __proto__: null, names, properties, open, run, idle };
