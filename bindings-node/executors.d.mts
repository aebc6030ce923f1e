export * from './executors.js';
