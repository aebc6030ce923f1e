// Functions that pass calls on. In: the natives `parseCSV`, `db.…` and `browser.…`. Out: the same as functions of the
// run: it may give them to the host, which calls them as any other function of the run.

const { parseCSV } = {
  parseCSV(...args) {
    return apply(natives.parseCSV, undefined, args);
  },
};

const db = {
  sql(...args) {
    try {
      if (args.length > 1) args[1] = paramsOf(args[1]);
    } catch (thrown) {
      // Of a `toJSON`.
      return rejected(thrown);
    }
    return apply(natives['db.sql'], undefined, args);
  },
  batch(...args) {
    try {
      if (args.length > 0) args[0] = statementsOf(args[0]);
    } catch (thrown) {
      return rejected(thrown);
    }
    return apply(natives['db.batch'], undefined, args);
  },
  schema(...args) {
    return apply(natives['db.schema'], undefined, args);
  },
};

const browser = {
  navigate(...args) {
    return apply(natives['browser.navigate'], undefined, args);
  },
  screenshot(...args) {
    return apply(natives['browser.screenshot'], undefined, args);
  },
  click(...args) {
    return apply(natives['browser.click'], undefined, args);
  },
  type(...args) {
    return apply(natives['browser.type'], undefined, args);
  },
  extractText(...args) {
    return apply(natives['browser.extractText'], undefined, args);
  },
  extractHtml(...args) {
    return apply(natives['browser.extractHtml'], undefined, args);
  },
  // Takes a function, too, as its text.
  evaluate(code) {
    return natives['browser.evaluate'](typeof code === 'function' ? functionText(code) : code);
  },
  close(...args) {
    return apply(natives['browser.close'], undefined, args);
  },
};
