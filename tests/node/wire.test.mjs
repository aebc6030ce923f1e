// The numbers that both halves of the package use come from one source.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { wire, written } from '../../bindings-node/wire.mjs';

test('lib/wire.ts agrees with its sources in Rust; if not, run node bindings-node/wire.mjs', () => {
  assert.equal(written(), wire());
});
