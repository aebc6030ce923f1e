// Libraries. In: the native `library(name, refusal?)`, which gives `{ source, language }` or throws the refusal, so that
// the calls of the run have it; and `host.compile`. Out: `require`,
// which runs a library at its first use and keeps what it exports, unless it throws. In a session it runs anew when its
// text, or one that it requires, has been updated.

// The libraries that have been run, by their names: `{ module, source, language, needs }`.
const modules = new Map();
// The names of the libraries that are being run, outermost first, and what each has required so far.
const running = newList();
const needsOf = newList();

// Names of the tool that requires it, which a library does not see.
const HIDDEN = freeze(['args', 'resolve']);

const chain = (from, last) => {
  let text = '';
  for (let at = from; at < running.length; at += 1) text += join('', running[at], ' → ');
  return text + last;
};

const checkPlace = (name) => {
  for (let at = 0; at < running.length; at += 1) {
    if (running[at] === name) natives.library(name, join('libraries require each other: ', chain(at, name)));
  }
  if (running.length >= config.maxDepth) {
    natives.library(name, join('libraries nest deeper than ', config.maxDepth, ': ', chain(0, name)));
  }
};

// Each library is read once, however many require it.
const isStale = (name, entry, seen) => {
  if (mapGet(modules, name) !== entry) return true;
  if (setHas(seen, name)) return false;
  setAdd(seen, name);
  const { source, language } = natives.library(name);
  if (source !== entry.source || language !== entry.language) return true;
  for (let at = 0; at < entry.needs.length; at += 1) {
    const need = entry.needs[at];
    if (isStale(need.name, need.entry, seen)) return true;
  }
  return false;
};

const runLibrary = (name) => {
  checkPlace(name);
  const module = { exports: {} };
  const needs = newList();
  const place = running.length;
  running[place] = name;
  needsOf[place] = needs;
  try {
    const { source, language } = natives.library(name);
    const library = host.compile(source, join('library:', name), language, HIDDEN);
    const { exports } = module;
    apply(library, exports, [exports, module, require]);
    return { __proto__: null, module, source, language, needs };
  } finally {
    running.length = place;
    needsOf.length = place;
  }
};

const addNeed = (needs, name, entry) => {
  for (let at = 0; at < needs.length; at += 1) {
    if (needs[at].name === name && needs[at].entry === entry) return;
  }
  needs[needs.length] = { __proto__: null, name, entry };
};

const { require } = {
  require(name) {
    if (typeof name !== 'string') throw new TypeError('require takes the name of a library');
    let entry = mapGet(modules, name);
    if (entry === undefined || (config.isSession && isStale(name, entry, new Set()))) {
      entry = runLibrary(name);
      mapSet(modules, name, entry);
    }
    if (running.length > 0) addNeed(needsOf[running.length - 1], name, entry);
    return entry.module.exports;
  },
};
