// `isolane/kit`: ready-made capabilities for code that a model wrote.

export { Kit, KitError } from './kit/kit.js';
