// `isolane/notebook`: cells of Python and JavaScript in kernels that keep their state, as a tool for a model.

import './addon/node-version.js';

export { Notebook, Registry } from './notebook/notebook.js';
export { renderCall, renderHtml, renderTerminal, toIpynb } from './notebook/render.js';
