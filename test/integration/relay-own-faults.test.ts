// Wherever a fault of ours ends a relay, its execution ends once: nobody pays, its record says so, and what it held and
// its memory come back.

import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { Failover } from '../../src/generation/reply/failover.ts';
import { OpenRelays } from '../../src/generation/reply/open-relays.ts';
import { OutgoingRequest } from '../../src/generation/request/outgoing-request.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { WorkerPool } from '../../src/platform/worker-pool.ts';
import { RecordBatch } from '../../src/records/record-batch.ts';
import { ReplyReader } from '../../src/upstream/http1/reply-reader.ts';
import { ProviderCalls } from '../../src/upstream/providers.ts';
import { UndiciExchange } from '../../src/upstream/undici/exchange.ts';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { PlaneInProcess } from '../support/plane-in-process.ts';
import { principalOf } from '../support/principals.ts';
import { UPSTREAM_CLIENT } from '../support/upstream-client.ts';
import { waitFor } from '../support/waiting.ts';

const JSON_TYPE = ['content-type', 'application/json'] as const;
const WITH_USAGE: ScriptedReply = {
  headers: [JSON_TYPE],
  body: '{"usage":{"prompt_tokens":1,"completion_tokens":1}}',
};
const WITHOUT_USAGE: ScriptedReply = { headers: [JSON_TYPE], body: '{"choices":[{"message":{"content":"Hello"}}]}' };
const EVENT = 'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n';
const UNFINISHED_STREAM: ScriptedReply = {
  headers: [['content-type', 'text/event-stream']],
  body: `${EVENT}data: [DONE]\n\n`,
  framing: 'chunked',
  fault: { kind: 'stall', afterBytes: EVENT.length },
};

/** What a request is handed to, of the client that calls providers. */
const CONNECTION: { begin(...handed: unknown[]): void } =
  UPSTREAM_CLIENT === 'undici' ? (UndiciExchange.prototype as object as typeof CONNECTION) : ReplyReader.prototype;

interface PlantedFault {
  readonly name: string;
  /** Makes the next call throw. */
  readonly plant: (context: TestContext, fault: Error) => void;
  readonly reply?: ScriptedReply;
  /** HTTP status that the client got; null: it was cut. */
  readonly answered: number | null;
  /** The status of the record. */
  readonly recorded: number | null;
}

/** The next call of this method throws. */
function throwing<T extends object>(owner: T, method: keyof T): PlantedFault['plant'] {
  return (context, fault) => {
    const original = owner[method];
    const restore = (): void => {
      owner[method] = original;
    };
    context.after(restore);
    owner[method] = ((): never => {
      restore();
      throw fault;
    }) as T[typeof method];
  };
}

const FAULTS: readonly PlantedFault[] = [
  {
    name: 'before the relay has begun',
    plant: throwing(OpenRelays.prototype, 'add'),
    answered: 503,
    recorded: null,
  },
  {
    name: 'while the body is edited',
    plant: throwing(OutgoingRequest.prototype, 'bodyFor'),
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while the request is handed to a connection',
    plant: throwing(CONNECTION, 'begin'),
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while the provider is called',
    plant: throwing(ProviderCalls.prototype, 'call'),
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while the head is written',
    plant: throwing(Exchange.prototype, 'begin'),
    reply: UNFINISHED_STREAM,
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while a stream is written',
    plant: throwing(Exchange.prototype, 'write'),
    reply: UNFINISHED_STREAM,
    answered: null,
    recorded: 200,
  },
  {
    name: 'while the usage is read',
    plant: throwing(chatCompletions, 'readUsage'),
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while the tokens are counted',
    plant: throwing(WorkerPool.prototype, 'run'),
    reply: WITHOUT_USAGE,
    answered: 500,
    recorded: 500,
  },
  {
    name: 'while the end of the reply is looked at',
    plant: throwing(CaptureBuffer.prototype, 'end'),
    answered: 500,
    recorded: 500,
  },
];

describe('a fault of ours in a relay', () => {
  let upstream: FakeUpstream;
  let plane: PlaneInProcess;
  let reply: Script = WITH_USAGE;

  before(async () => {
    upstream = await startFakeUpstream(() => reply);
    plane = await PlaneInProcess.start({
      providerUrl: upstream.url,
      principals: new Map([['key-acme', principalOf('acme')]]),
    });
  });
  after(async () => {
    await plane?.stop();
    await upstream?.close();
  });

  /** The status; null: the connection was cut before a whole reply. */
  async function ask(): Promise<number | null> {
    try {
      const response = await fetch(`${plane.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: 'Bearer key-acme', 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify({ model: 'sim/small', max_tokens: 10, messages: [{ role: 'user', content: 'hello' }] }),
      });
      await response.text();
      return response.status;
    } catch {
      return null;
    }
  }

  const settled = () =>
    waitFor(
      'nothing under way',
      async () => plane.underWay,
      (underWay) => Object.values(underWay).every((count) => count === 0),
    );

  /** What is recorded of ends since the last look; each execution has one record of its start and one of its end. */
  function takeEnds() {
    assert.equal(plane.records, 2 * plane.ends.length);
    plane.records = 0;
    return plane.ends.splice(0).map(({ outcome, status, errorCode, billingStatus, charge, usage }) => ({
      outcome,
      status,
      errorCode,
      billingStatus,
      charge,
      usage,
    }));
  }

  for (const { name, plant, reply: planned = WITH_USAGE, answered, recorded } of FAULTS) {
    test(`${name}: its execution ends, and nobody pays`, async (context) => {
      reply = planned;
      const fault = new Error(name);
      plant(context, fault);
      assert.equal(await ask(), answered);
      assert.deepEqual(await settled(), { inflight: 0, relays: 0, buffers: 0, held: 0 });
      const end = { outcome: 'process_killed', errorCode: 'internal_error', billingStatus: 'cancelled', charge: '0' };
      assert.deepEqual(takeEnds(), [{ ...end, status: recorded, usage: null }]);
      assert.equal(plane.openCalls, 0);
      plane.faults.splice(0);
      reply = WITH_USAGE;
      assert.equal(await ask(), 200, 'the next request is served');
      assert.equal(takeEnds()[0]?.outcome, 'completed');
    });
  }

  test('while a request is sent once more, its kept connection being dead: 502, and nothing stays', async (context) => {
    reply = WITH_USAGE;
    assert.equal(await ask(), 200);
    takeEnds();
    reply = { instead: 'close' };
    // oxlint-disable-next-line typescript/unbound-method -- called with its owner below
    const { begin } = CONNECTION;
    let begun = 0;
    context.mock.method(CONNECTION, 'begin', function (this: typeof CONNECTION, ...handed: unknown[]) {
      begun += 1;
      if (begun === 2) throw new Error('the second time');
      begin.apply(this, handed);
    });
    assert.equal(await ask(), 502);
    assert.equal(begun, 2);
    assert.deepEqual(await settled(), { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.deepEqual(
      takeEnds().map(({ outcome }) => outcome),
      ['no_reply'],
    );
    assert.equal(plane.openCalls, 0);
  });

  test('a call whose end its relay never heard of is found by the clock', async (context) => {
    reply = WITH_USAGE;
    const mocked = context.mock.method(Failover.prototype, 'onReplyEnd', () => undefined);
    const answer = ask();
    await waitFor(
      'the end that is not heard',
      async () => mocked.mock.callCount(),
      (calls) => calls === 1,
    );
    mocked.mock.restore();
    plane.relays.checkTime(performance.now());
    assert.equal(await answer, 500);
    assert.deepEqual(await settled(), { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.equal(takeEnds()[0]?.outcome, 'process_killed');
    assert.equal(plane.faults.splice(0).length, 1);
  });

  test('an end that cannot be put into a batch is told without its usage', async (context) => {
    reply = WITH_USAGE;
    // oxlint-disable-next-line typescript/unbound-method -- called with its batch below
    const { append } = RecordBatch.prototype;
    context.mock.method(
      RecordBatch.prototype,
      'append',
      function (this: RecordBatch, ...[start, end]: Parameters<typeof append>) {
        if (end !== null && end.usage !== null) throw new Error('it has no room');
        return append.call(this, start, end);
      },
    );
    assert.equal(await ask(), 500);
    assert.deepEqual(await settled(), { inflight: 0, relays: 0, buffers: 0, held: 0 });
    assert.equal(takeEnds()[0]?.outcome, 'process_killed');
    assert.equal(plane.faults.splice(0).length, 1);
  });
});
