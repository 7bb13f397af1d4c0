// JSON parsing cases through the HTTP endpoint, each as the value of an unknown field: what is JSON passes byte-equal,
// what is not gets 400 and costs nothing, and a control field may stand only once however it is spelt.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { sharedAssets } from '../support/shared-assets.ts';
import { KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const folder = sharedAssets('json-test-suite', 'test_parsing');
const cases =
  folder === null ? [] : readdirSync(folder).map((name) => ({ name, value: readFileSync(join(folder, name)) }));
const REPLY =
  '{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,' +
  '"total_tokens":2}}';
const COST_PICO = 1_250_000n + 10_000_000n;

describe('JSON in request bodies', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  let ledger: LedgerView;
  let accepted = 0;

  before(async () => {
    upstream = await startFakeUpstream(() => ({ body: REPLY }));
    tollgate = await startFront({
      configurationYaml: testConfiguration({ upstreamUrl: upstream.url }),
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });

  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  /** Sends a body with this value; when it is accepted, asserts that the provider got the same bytes. */
  async function sendValue(value: Buffer | string): Promise<HttpAnswer> {
    const before = upstream.requests.length;
    const body = (model: string): Buffer =>
      Buffer.concat([Buffer.from(`{"model":"${model}","messages":[],"x":`), Buffer.from(value), Buffer.from('}')]);
    const answer = await post(tollgate, body('sim/small'));
    if (answer.status !== 200) {
      assert.equal(upstream.requests.length, before, 'a refused request does not reach the provider');
      return answer;
    }
    accepted += 1;
    assert.deepEqual(upstream.requests[before]?.body, body('sim-small'));
    return answer;
  }

  test('what is JSON passes byte-equal, what is not gets 400', {
    skip: folder === null ? 'no parsing cases beside the repository' : false,
  }, async () => {
    const wrong: string[] = [];
    for (const { name, value } of cases) {
      const { status, body } = await sendValue(value);
      const allowed = name.startsWith('y_') ? [200] : name.startsWith('n_') ? [400] : [200, 400];
      if (!allowed.includes(status)) wrong.push(`${name}: ${status} ${body.toString('utf8').slice(0, 200)}`);
      else if (status === 400) assertEnvelope(body, name);
    }
    assert.deepEqual(wrong, []);
  });

  test('values that only a whole grammar check gets right', async () => {
    for (const value of [
      '-0',
      '1e400',
      '1E-999',
      '9007199254740993',
      '"\\ud800"',
      '"\\u0000"',
      '{"":{"":[]}}',
      '[[[[[[[[]]]]]]]]',
    ]) {
      assert.equal((await sendValue(value)).status, 200, value);
    }
    for (const value of [
      '+1',
      '01',
      '1.',
      '.5',
      '1e',
      '-',
      'NaN',
      'Infinity',
      'True',
      '"\\x41"',
      '"\\u12"',
      '"\t"',
      "'a'",
      '[1,]',
      '{"a":1,}',
      '{a:1}',
      '[1 2]',
      '"\x7f\x1f"',
    ]) {
      assert.equal((await sendValue(value)).status, 400, value);
    }
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    assert.equal((await sendValue(nested(255))).status, 200, 'depth 256 with the body itself');
    assert.equal((await sendValue(nested(256))).status, 400, 'depth over 256');
    assert.equal((await sendValue(`{"a":`.repeat(256) + '1' + '}'.repeat(256))).status, 400);
    assert.equal((await sendValue('['.repeat(1_000_000))).status, 400);
  });

  test('bytes that are not UTF-8 get 400', async () => {
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0x80]]) {
      assert.equal((await sendValue(Buffer.from([0x22, ...bytes, 0x22]))).status, 400, bytes.join(' '));
    }
  });

  test('a duplicated control field gets 400, also spelt with escapes', async () => {
    const before = upstream.requests.length;
    const duplicates = [
      '"model":"sim/small"',
      '"\\u006dodel":"sim/small"',
      '"mode\\u006C":"sim/small"',
      '"stream":false,"stream":true',
      '"stream":true,"\\u0073tream":true',
      '"max_tokens":1,"max_tokens":2',
      '"max_tokens":1,"max\\u005ftokens":1',
      '"max_completion_tokens":1,"max_completion_tokens":1',
      '"n":1,"n":2',
      '"n":1,"\\u006e":1',
    ];
    for (const fields of duplicates) {
      const answer = await post(tollgate, `{"model":"sim/small","messages":[],${fields}}`);
      assert.equal(answer.status, 400, `${fields}: ${answer.body.toString('utf8')}`);
      assertEnvelope(answer.body, fields);
    }
    assert.equal(upstream.requests.length, before);
    // Inside another value the same keys are nobody's business.
    assert.equal((await sendValue('{"model":1,"model":2,"stream":3,"stream":4}')).status, 200);
  });

  test('only what was accepted is charged', async () => {
    await waitFor(
      'every accepted request to be posted',
      async () => ({ generations: await ledger.generationCount(), balance: (await ledger.wallet('acme')).balance }),
      ({ generations, balance }) =>
        generations === accepted && balance === OPENING_CREDIT_PICO - BigInt(accepted) * COST_PICO,
    );
  });
});

function post(tollgate: Front, body: Buffer | string): Promise<HttpAnswer> {
  const headers = { authorization: `Bearer ${KEYS.acme}`, 'content-type': 'application/json' };
  return httpCall(`${tollgate.url}/v1/chat/completions`, { headers, body });
}

/** Spec 7.3: `error` with message, type, code, param. */
function assertEnvelope(body: Buffer, name: string): void {
  const { error } = JSON.parse(body.toString('utf8')) as { error: Record<string, unknown> };
  assert.equal(error.type, 'invalid_request_error', name);
  assert.equal(typeof error.message, 'string', name);
  assert.equal(typeof error.code, 'string', name);
  assert.ok('param' in error, name);
}
