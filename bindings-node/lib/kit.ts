// `isolane/kit`: ready-made capabilities for code that a model wrote.

import './addon/node-version.js';

export { Kit, KitError } from './kit/kit.js';
