// What cells see besides the language: `display` and `print`.
//
// In: values. Out: logs: `print` calls the console, and so does `display`, with a mark that the host knows. The console
// copies values, and shows as text what cannot be copied; no other function of a session can do that.
const { display, print } = ((console, mark) => {
  'use strict';
  const { log, debug } = console;
  return {
    display(...values) {
      for (const value of values) if (value !== undefined) debug(mark, typeof value, value);
    },
    print(...values) {
      log(...values);
    },
  };
})(console, MARK);
null
