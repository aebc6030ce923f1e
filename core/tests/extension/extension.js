// The extension of the tests. It gives code what its host gives it, and runs bodies as a tool does.
(host) => {
  "use strict";
  const { defineProperty, freeze } = Object;
  let openings = 0;
  class Point {
    constructor(x) {
      this.x = x;
    }
  }
  const calls = (callback) => callback();
  const idlers = [];
  const api = freeze({
    openings: () => openings,
    compile: host.compile,
    pending: host.pending,
    warn: host.warn,
    uncaught: host.uncaught,
    onIdle: (callback) => {
      const value = callback;
      const data = { __proto__: null, value, writable: true, configurable: true };
      defineProperty(idlers, idlers.length, data);
    },
    calls: (callback) => calls(callback),
    host,
  });
  return {
    names: { api, answer: undefined, later: host.natives["tests.later"] },
    properties: { Point },
    open: (input) => {
      if (input.fails) throw new TypeError("it does not open");
      openings += 1;
      return { __proto__: null, answer: input.answer };
    },
    run: async (body) => {
      const p = [];
      await body(p);
      return { names: p[0] ?? [], ran: p[1], ...(2 in p ? { returned: p[2] } : {}) };
    },
    idle: () => {
      if (idlers.length === 0) return false;
      const callback = idlers[0];
      for (let at = 1; at < idlers.length; at++) idlers[at - 1] = idlers[at];
      idlers.length -= 1;
      callback();
      return true;
    },
  };
}
