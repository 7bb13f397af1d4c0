// A client that writes requests without waiting for their answers has no more of a tick than others.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type HttpFront, startHttpFront } from '../support/http-front.ts';

const MANY = 5_000;
/** What one tick answers at once, and the answer that waits for its end. */
const ANSWERS_MAX = 33;

describe('requests in one write of one connection', () => {
  let front: HttpFront;
  let answered = 0;

  before(async () => {
    front = await startHttpFront([
      {
        method: 'GET',
        path: '/answered',
        envelope: 'platform',
        handle: (exchange) => {
          answered += 1;
          exchange.answerJson(200, `{"number":${answered}}`);
        },
      },
    ]);
  });

  after(() => front?.stop());

  /** All that comes back until the connection is closed; `count`: or until so many answers have come. */
  async function write(text: string, count = Number.POSITIVE_INFINITY): Promise<string> {
    const client = connect(front.port, '127.0.0.1');
    let received = '';
    client.setEncoding('latin1').on('data', (piece: string) => {
      received += piece;
      if (answersIn(received) >= count) client.destroy();
    });
    // Answers that the client has not read when the connection is closed are lost with it.
    client.on('error', () => undefined);
    client.write(text);
    await new Promise((resolve) => client.once('close', resolve));
    return received;
  }

  for (const [what, request] of [
    ['of a path that does not exist', 'GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['with a body, of a path that does not exist', 'POST /nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}'],
    ['of a method that does not exist', 'DELETE /answered HTTP/1.1\r\nhost: x\r\n\r\n'],
  ] as const) {
    test(`many ${what} reach few handlers, and the connection is closed`, async () => {
      const refusedBefore = front.refusals.length;
      assert.ok(answersIn(await write(request.repeat(MANY))) <= ANSWERS_MAX);
      const refused = front.refusals.length - refusedBefore;
      assert.ok(refused > 0 && refused <= ANSWERS_MAX, `${refused} were refused`);
    });
  }

  test('many that are answered reach few handlers', async () => {
    answered = 0;
    await write('GET /answered HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(MANY));
    assert.ok(answered > 0 && answered <= ANSWERS_MAX, `${answered} were answered`);
  });

  test('few are answered one behind the other', async () => {
    answered = 0;
    const received = await write('GET /answered HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(10), 10);
    const numbers = [...received.matchAll(/"number":(\d+)/g)].map(([, number]) => Number(number));
    assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });
});

function answersIn(received: string): number {
  return received.split('HTTP/1.1 ').length - 1;
}
