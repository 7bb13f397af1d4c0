// Replies made by a provider to be slow to read: each is read in time that grows with its size (a reader that looks at
// the same bytes again for each key, line or quote would not come back), and says nothing that it does not say.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeptReply } from '../../src/generation/dialects/dialect.ts';
import { documentUsage, lastEventUsage } from '../../src/generation/sse/usage-window.ts';

/** More than is kept of any reply, so that minutes pass where the work is not linear. */
const BYTES = 8_000_000;

function replyOf(text: string, cut = false): KeptReply {
  const bytes = Buffer.from(text);
  return { beginning: bytes, end: bytes, cut };
}

/** As many of these as fit. */
function many(text: string, bytes = BYTES): string {
  return text.repeat(Math.floor(bytes / text.length));
}

describe('usage', () => {
  const nested = '"usage":{]';
  const count = BYTES / nested.length / 2;
  const texts: readonly (readonly [name: string, text: string])[] = [
    ['objects without an end', `{${many(nested)}}`],
    ['objects that all end together', `{${nested.repeat(count)}${'['.repeat(count - 1)}${'}'.repeat(count)}`],
    ['objects that are no JSON', `{${many('"usage":{x},')}"a":1}`],
    ['objects within objects', `{${many('"usage":{')}`],
    ['keys in strings', `{${many('"\\"usage":{},')}"a":1}`],
    ['keys without a colon', `{${many('"usage"   ')}`],
    ['an odd quote', `{"a":[[{${many('"usage":{},')}"`],
  ];
  for (const [name, text] of texts) {
    test(name, () => {
      for (const cut of [false, true]) assert.equal(documentUsage(replyOf(text, cut)), null);
      for (const deepest of [1, 2])
        assert.equal(
          lastEventUsage(replyOf(`data: ${text}\n\n`), (event) => event.usageAt(deepest)),
          null,
        );
    });
  }
});
