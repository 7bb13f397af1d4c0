// Spec 4.2, 4.5: what was answered is found, by every process, or its look-up is refused to be tried again (503) as
// long as it is not posted; it is never said not to exist. What nobody was answered is not found (404), also then.

import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { CONTRACT_MODELS, type ContractCall, callRoute } from '../support/generation-routes.ts';
import { testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const NEVER_ISSUED = '01980000-0000-7000-8000-000000000000';
/** Each is a connection of its own, so both processes get some. */
const CONNECTIONS = 6;

let upstream: FakeUpstream;
let tollgate: Tollgate;
let replies = 0;
before(async () => {
  upstream = await startFakeUpstream(() => ({
    body: JSON.stringify({
      id: `resp_${++replies}`,
      object: 'response',
      status: 'completed',
      output: [],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    }),
  }));
  tollgate = await startTollgate({
    clickhouse: 'away',
    configurationYaml: testConfiguration({ upstreamUrl: upstream.url, models: CONTRACT_MODELS }),
    gatewayProcesses: 2,
  });
});
after(async () => {
  await tollgate?.stop();
  await upstream?.close();
});

const call = (path: string, options: ContractCall = { method: 'GET' }) => callRoute(`${tollgate.url}${path}`, options);

async function respond(clientRequestId: string): Promise<{ executionId: string; responseId: string }> {
  const answer = await call('/v1/responses', {
    body: '{"model":"sim/small","input":"hi","max_output_tokens":5}',
    headers: { 'x-client-request-id': clientRequestId },
  });
  assert.equal(answer.status, 200, answer.body);
  const { id } = JSON.parse(answer.body) as { id: string };
  return { executionId: String(answer.headers['x-service-execution-id']), responseId: id };
}

async function countOf(label: string): Promise<[status: number, executions: number]> {
  const { status, body } = await call(`/v1/generations?client_request_id=${label}`);
  return [status, (JSON.parse(body) as { data: unknown[] }).data.length];
}

const onEveryProcess = (path: string) => Promise.all(Array.from({ length: CONNECTIONS }, () => call(path)));

describe('while jobs posts nothing', () => {
  let isPaused = false;
  const pauseJobs = (): void => {
    process.kill(tollgate.jobsPid(), 'SIGSTOP');
    isPaused = true;
  };
  const resumeJobs = (): void => {
    if (isPaused) process.kill(tollgate.jobsPid(), 'SIGCONT');
    isPaused = false;
  };
  afterEach(resumeJobs);

  const unposted = async (path: string): Promise<void> => {
    const answer = await call(path);
    assert.equal(answer.status, 503, answer.body);
    assert.equal(answer.headers['retry-after'], '2');
    assert.equal(answer.headers['x-should-retry'], 'true');
  };

  test('a generation, an empty list, ids that nobody was given: 503; once all is posted, an answer', async () => {
    pauseJobs();
    const { executionId } = await respond('unposted-1');
    await Promise.all([
      unposted(`/v1/generation?id=${executionId}`),
      unposted('/v1/generations?client_request_id=unposted-1'),
      unposted(`/v1/generation?id=${NEVER_ISSUED}`),
      unposted('/v1/responses/resp_of_nobody/input_items'),
    ]);
    const awaited = call(`/v1/generation?id=${executionId}`);
    resumeJobs();
    assert.equal((await awaited).status, 200, (await awaited).body);
    const listed = await call('/v1/generations?client_request_id=unposted-1');
    assert.equal((JSON.parse(listed.body) as { data: unknown[] }).data.length, 1, listed.body);
    for (const path of [`/v1/generation?id=${NEVER_ISSUED}`, '/v1/responses/resp_of_nobody'])
      assert.equal((await call(path)).status, 404);
  });

  test('a list of a label is never a part of it: what was answered last is waited for as well', async () => {
    await respond('several');
    assert.deepEqual(await countOf('several'), [200, 1]);
    pauseJobs();
    await respond('several');
    await unposted('/v1/generations?client_request_id=several');
    resumeJobs();
    assert.deepEqual(await countOf('several'), [200, 2]);
  });

  test('a saved response is there on the process that relayed it, and 503 on the others', async () => {
    pauseJobs();
    const { responseId } = await respond('unposted-2');
    const answers = await onEveryProcess(`/v1/responses/${responseId}`);
    for (const { status, body } of answers) assert.ok([200, 503].includes(status), body);
    const continuations = await Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        call('/v1/responses', {
          body: `{"model":"sim/small","input":"hi","max_output_tokens":5,"previous_response_id":"${responseId}"}`,
        }),
      ),
    );
    for (const { status, body } of continuations) assert.ok([200, 503].includes(status), body);
    resumeJobs();
    for (const { status, body } of await onEveryProcess(`/v1/responses/${responseId}`)) assert.equal(status, 200, body);
  });

  test('with nothing left to post, what does not exist is 404 also while jobs stands still', async () => {
    const { executionId } = await respond('posted');
    await waitFor(
      'the end to be posted',
      async () => (await call(`/v1/generation?id=${executionId}`)).body,
      (body) => body.includes('"final"'),
    );
    pauseJobs();
    for (const path of [`/v1/generation?id=${NEVER_ISSUED}`, '/v1/responses/resp_of_nobody'])
      assert.equal((await call(path)).status, 404, path);
    assert.equal((await call('/v1/generations?client_request_id=of-nobody')).status, 200);
    // No request has a longer label than is kept.
    const tooLong = await call(`/v1/generations?client_request_id=${'l'.repeat(256)}`);
    assert.equal(tooLong.status, 400);
    assert.match(tooLong.body, /client_request_id/);
  });

  test('what a killed process had answered is found once jobs is back, and is 503 before', async () => {
    pauseJobs();
    const { executionId, responseId } = await respond('killed');
    for (const pid of tollgate.gatewayPids()) process.kill(pid, 'SIGKILL');
    await waitFor(
      'gateways to serve again',
      async () => (await call(`/v1/generation?id=${executionId}`).catch(() => null))?.status ?? 0,
      (status) => status === 503,
    );
    const answers = await onEveryProcess(`/v1/responses/${responseId}`);
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([503]));
    resumeJobs();
    assert.equal((await call(`/v1/generation?id=${executionId}`)).status, 200);
    for (const { status, body } of await onEveryProcess(`/v1/responses/${responseId}`)) assert.equal(status, 200, body);
  });
});

test('right after its reply everything is found, on every process', async () => {
  for (let round = 0; round < 10; round += 1) {
    const { executionId, responseId } = await respond(`round-${round}`);
    const [responses, generations] = await Promise.all([
      onEveryProcess(`/v1/responses/${responseId}`),
      onEveryProcess(`/v1/generation?id=${executionId}`),
    ]);
    for (const { status, body } of [...responses, ...generations]) assert.equal(status, 200, body);
  }
});
