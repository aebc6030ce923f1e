export * from './notebook.js';
