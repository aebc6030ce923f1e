// The notebook as an ECMAScript module. It has the same classes and state as with `require`.
import notebook from './dist/notebook.js';

export const { Notebook } = notebook;
