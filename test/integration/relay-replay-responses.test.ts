// Byte for byte, for the Responses dialect and its saved responses: every recorded exchange goes through a whole
// gateway in pieces down to one byte; only `model` changes on the way in, nothing on the way back, and the bill is the
// recording's to the last digit.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { ReceivedRequest, ScriptedReply } from '../support/fake-upstream.ts';
import { httpCall } from '../support/http-call.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';
import {
  assertBill,
  assertRelayed,
  inParallel,
  loadReplays,
  type Replay,
  type ReplayInstallation,
  responseIdIn,
  SEED,
  SKIP_WITHOUT_RECORDINGS,
  scriptReply,
  startReplayInstallation,
} from '../support/replays.ts';
import { KEYS, PROVIDER_KEY } from '../support/test-configuration.ts';

const replays = loadReplays('responses');
/** Recorded on paths below `/v1/responses`. */
const later = loadRecordedExchanges('responses_sub');

/** Endpoints that were recorded and are not served, each with the reason. What else was recorded is replayed. */
const NOT_SERVED: Readonly<Record<string, string>> = {
  'POST /v1/responses/input_tokens':
    'spec 4 has no such endpoint: tokens are counted on /v1/messages/count_tokens alone',
};
const endpointOf = ({ method, path }: { method: string; path: string }): string => `${method} ${path}`;
const excluded = later.filter((exchange) => endpointOf(exchange) in NOT_SERVED);
/** Later retrievals of a response that a recorded request created. */
const retrievals = later.filter((exchange) => !(endpointOf(exchange) in NOT_SERVED));

/** What the provider answers on the later operations, one body for each: `<method> <path and query>`. */
const savedReplies = new Map<string, ScriptedReply & { readonly body: Buffer }>();

function answerSaved(request: ReceivedRequest): ScriptedReply | null {
  return savedReplies.get(`${request.method} ${request.path}`) ?? null;
}

describe(`recorded Responses exchanges (TEST_SEED=${SEED})`, { skip: SKIP_WITHOUT_RECORDINGS }, () => {
  let installation: ReplayInstallation;

  before(async () => {
    installation = await startReplayInstallation(replays, answerSaved);
  });

  after(() => installation?.stop());

  test(`${replays.length} responses`, async () => {
    assert.ok(replays.some(({ stream }) => stream) && replays.some(({ stream }) => !stream));
    const relay = async (replay: Replay): Promise<void> => {
      const { headers } = await assertRelayed(installation, replay);
      await assertBill(installation, replay, String(headers['x-service-execution-id']));
    };
    // What a request continues is there before it, as with any client.
    const continuing = replays.filter(continuesAnother);
    assert.ok(continuing.length > 0);
    await inParallel(
      replays.filter((replay) => !continuesAnother(replay)),
      relay,
    );
    await inParallel(continuing, relay);
    assert.deepEqual(installation.upstream.violations, []);
  });

  const call = (method: string, path: string, key: string) =>
    httpCall(`${installation.tollgate.url}${path}`, { method, headers: { authorization: `Bearer ${key}` } });

  test(`${retrievals.length} recorded retrievals of what was created`, async () => {
    assert.ok(retrievals.length > 0);
    for (const [index, retrieval] of retrievals.entries()) {
      assert.equal(retrieval.method, 'GET', `${retrieval.name}: to be replayed, or not served for a reason`);
      const created = replays.find((replay) => retrieval.path.includes(`/${responseIdIn(replay)}`));
      assert.ok(created !== undefined, `${retrieval.name}: its creation was replayed`);
      savedReplies.set(
        `GET ${retrieval.path}`,
        scriptReply(retrieval.responseBody, retrieval.status, retrieval.contentType, retrieval.stream, index),
      );
      const answer = await call('GET', retrieval.path, created.key);
      assert.equal(answer.status, retrieval.status, retrieval.name);
      assert.ok(answer.complete && answer.body.equals(retrieval.responseBody), `${retrieval.name}: response bytes`);
      assert.equal(answer.headers['set-cookie'], undefined);
    }
  });

  for (const [endpoint, reason] of Object.entries(NOT_SERVED)) {
    test(`not replayed: ${endpoint} (${reason}); it is answered with a 404`, async () => {
      const recorded = excluded.filter((exchange) => endpointOf(exchange) === endpoint);
      assert.ok(recorded.length > 0, 'it was recorded');
      const callsBefore = installation.upstream.requests.length;
      for (const { name, method, path, requestBody } of recorded) {
        const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
        const answer = await httpCall(`${installation.tollgate.url}${path}`, {
          method,
          headers,
          body: requestBody ?? '{}',
        });
        assert.equal(answer.status, 404, name);
        const { error } = JSON.parse(answer.body.toString('utf8')) as { error: { code: string; message: string } };
        assert.equal(error.code, 'unknown_path');
        assert.ok(error.message.startsWith(`There is no endpoint at "${path}".`), error.message);
      }
      assert.equal(installation.upstream.requests.length, callsBefore, 'no provider was asked');
    });
  }

  test('every operation on every kept response goes to the provider that keeps it, for its owner alone', async () => {
    const kept = replays.filter(
      (replay) =>
        replay.key === KEYS.acme &&
        replay.status === 200 &&
        !isStoredNowhere(replay.bodyOf('m')) &&
        responseIdIn(replay),
    );
    const ids = [...new Set(kept.map((replay) => String(responseIdIn(replay))))];
    assert.ok(ids.length > 50, `${ids.length} responses were kept`);
    await inParallel([...ids.entries()], async ([index, id]) => {
      for (const [method, suffix] of OPERATIONS) {
        const path = `/v1/responses/${id}${suffix}`;
        const body = Buffer.from(JSON.stringify({ id, said: `${method} ${suffix} ☃`, padding: 'x'.repeat(index * 7) }));
        savedReplies.set(`${method} ${path}`, scriptReply(body, 200, 'application/json', false, index));
        const answer = await call(method, path, index % 2 === 0 ? KEYS.acme : KEYS.acmeSecond);
        assert.equal(answer.status, 200, `${method} ${path}: ${answer.body.toString('utf8')}`);
        assert.ok(answer.body.equals(body), `${method} ${path}: response bytes`);
      }
      const foreign = await call('GET', `/v1/responses/${id}`, KEYS.other);
      assert.equal(foreign.status, 404);
      assert.equal(
        (JSON.parse(foreign.body.toString('utf8')) as { error: { code: string } }).error.code,
        'response_not_found',
      );
    });
    const operations = installation.upstream.requests.filter(
      ({ method, body }) => method !== 'POST' || body.length === 0,
    );
    assert.equal(
      operations.length,
      retrievals.length + ids.length * OPERATIONS.length,
      'nothing was asked for a stranger',
    );
    for (const operation of operations) assert.equal(operation.header('authorization'), `Bearer ${PROVIDER_KEY}`);
    assert.deepEqual(installation.upstream.violations, []);
  });
});

const OPERATIONS = [
  ['GET', ''],
  ['GET', '?include[]=reasoning.encrypted_content&stream=false'],
  ['GET', '/input_items?limit=2&order=asc&after=msg_1'],
  ['POST', '/cancel'],
  ['DELETE', ''],
] as const;

function continuesAnother(replay: Replay): boolean {
  return (
    typeof (JSON.parse(replay.bodyOf('m').toString('utf8')) as { previous_response_id?: unknown })
      .previous_response_id === 'string'
  );
}

function isStoredNowhere(body: Buffer): boolean {
  return (JSON.parse(body.toString('utf8')) as { store?: unknown }).store === false;
}
