// The kit as an ECMAScript module. It has the same classes and state as with `require`.
import kit from './dist/kit.js';

export const { Kit, KitError } = kit;
