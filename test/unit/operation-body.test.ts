// When the body of a control-plane request is parsed: not before its sender is authorized.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { operation } from '../../src/control-plane/operation.ts';
import type { Principal } from '../../src/domain/identity/principal.ts';
import type { Refusal } from '../../src/domain/refusals/refusal.ts';
import type { Exchange } from '../../src/http/exchange.ts';

const BODY = JSON.stringify({ names: Array.from({ length: 1_000 }, (_, index) => `name ${index}`) });

const named = operation({
  id: 'name',
  summary: 'Counts names.',
  body: z.strictObject({ names: z.array(z.string()).max(1_000) }),
  answer: z.object({ data: z.int() }),
  run: async ({ body }) => ({ data: body.names.length }),
});

/** A request whose body came with its head. */
function arrived(): { readonly exchange: Exchange; readonly answers: unknown[] } {
  const answers: unknown[] = [];
  const exchange = {
    contentLength: BODY.length,
    isChunked: false,
    contentType: 'application/json',
    headers: [],
    route: { path: '/v1/names' },
    query: '',
    header: () => null,
    watchClient: () => undefined,
    body: {
      hold: () => undefined,
      resume: () => undefined,
      receive: ({ take }: { take: (bytes: Uint8Array, isLast: boolean) => void }) => take(Buffer.from(BODY), true),
    },
    refuse: (refusal: Refusal) => answers.push(refusal.kind),
    answerJson: (_: number, json: string) => answers.push(json),
  };
  return { exchange: exchange as unknown as Exchange, answers };
}

describe('a body that came with its head', () => {
  test('is parsed for who may ask alone', async (t) => {
    const parse = t.mock.method(JSON, 'parse');
    const { exchange, answers } = arrived();
    await named.serve(exchange, async () => ({ kind: 'unauthorized' }));
    assert.deepEqual(answers, ['unauthorized']);
    assert.equal(parse.mock.callCount(), 0);
    await named.serve(exchange, async () => ({}) as Principal);
    assert.deepEqual(answers, ['unauthorized', '{"data":1000}']);
    assert.equal(parse.mock.callCount(), 1);
  });
});
