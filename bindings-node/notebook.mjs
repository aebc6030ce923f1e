// The notebook as an ECMAScript module. It has the same classes, functions and state as with `require`.
import notebook from './dist/notebook.js';

export const { Notebook, Registry, renderCall, renderHtml, renderTerminal, toIpynb } = notebook;
