// The numbers that both halves of the package know come from one source.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { wire, written } from '../../bindings-node/wire.mjs';

test('lib/wire.ts is what its sources in Rust say; if not, run node bindings-node/wire.mjs', () => {
  assert.equal(written(), wire());
});
