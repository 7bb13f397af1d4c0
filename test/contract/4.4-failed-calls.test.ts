// Spec 4.4, 7.8: each call to a provider that failed is one line of the log (provider, model, cause, attempt, and never
// a body or a key), and the answer and the listing carry the id that is in it. What providers take and what the gateway
// adds are histograms.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type FakeUpstream, type Script, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { type Front, startFront } from '../support/front.ts';
import { httpCall } from '../support/http-call.ts';
import { readMetrics } from '../support/metric-values.ts';
import { providersConfiguration } from '../support/provider-configuration.ts';
import { KEYS } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

const PROMPT = 'the prompt that no log line has';
const REPLY = 'the reply that no log line has';
const json = (status: number): Script => ({
  status,
  headers: [['content-type', 'application/json']],
  body: JSON.stringify({ error: { message: REPLY, type: 'server_error' } }),
});
const GOOD: Script = {
  body: JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
};
const STREAM: Script = {
  framing: 'chunked',
  headers: [['content-type', 'text/event-stream']],
  body: `data: {"choices":[{"index":0,"delta":{"content":"${REPLY}"`,
};

interface Row {
  /** What the first provider does; `gone`: it is not there. */
  readonly first: Script | 'gone';
  /** Whether a second one serves. */
  readonly hasSecond?: true;
  readonly status: number | 'cut';
  /** [attempt, cause, status] of each line. */
  readonly lines: readonly (readonly [number, string, number | null])[];
}

const ROWS: Readonly<Record<string, Row>> = {
  serves: { first: GOOD, status: 200, lines: [] },
  refuses_the_request: { first: json(400), status: 400, lines: [] },
  fails: { first: json(500), status: 500, lines: [[1, 'status', 500]] },
  fails_and_another_serves: { first: json(502), hasSecond: true, status: 200, lines: [[1, 'status', 502]] },
  is_busy: { first: json(429), status: 429, lines: [[1, 'status', 429]] },
  is_gone: { first: 'gone', status: 502, lines: [[1, 'connect_failed', null]] },
  is_gone_and_another_serves: {
    first: 'gone',
    hasSecond: true,
    status: 200,
    lines: [[1, 'connect_failed', null]],
  },
  says_nothing: { first: { instead: 'reset' }, status: 502, lines: [[1, 'no_reply', null]] },
  does_not_accept_the_key: { first: json(401), status: 502, lines: [[1, 'key_refused', 401]] },
  ends_a_stream_early: { first: STREAM, status: 'cut', lines: [[1, 'cut', null]] },
};

describe('a failed call of a provider', () => {
  let first: FakeUpstream;
  let second: FakeUpstream;
  let tollgate: Front;
  /** With the name of its row. */
  const executionIds = new Map<string, string>();

  before(async () => {
    first = await startFakeUpstream(({ body }) => {
      const { model } = JSON.parse(body.toString()) as { model: string };
      const { first: script } = ROWS[model] as Row;
      return script === 'gone' ? GOOD : script;
    });
    second = await startFakeUpstream(() => GOOD);
    const gone = `http://127.0.0.1:${await findFreePort()}`;
    // A provider of its own for each row: a refused key and a pause concern the provider.
    const providers = Object.entries(ROWS).map(([name, row]) => ({
      id: `p-${name.replaceAll('_', '-')}`,
      url: row.first === 'gone' ? gone : first.url,
    }));
    const models = Object.entries(ROWS).map(([name, row], index) => ({
      id: `test/${name}`,
      deployments: [
        { provider: providers[index]?.id ?? '', model: name },
        ...(row.hasSecond === true ? [{ provider: 'second', model: 'the-second' }] : []),
      ],
    }));
    const configurationYaml = providersConfiguration([...providers, { id: 'second', url: second.url }], models);
    tollgate = await startFront({ configurationYaml, reports: true });
  });
  after(async () => {
    await tollgate?.stop();
    await Promise.all([first?.close(), second?.close()]);
  });

  type Line = Readonly<Record<string, unknown>>;

  function linesOf(executionId: string): Line[] {
    return tollgate
      .output()
      .split('\n')
      .filter((line) => line.includes(executionId) && line.includes('a call to a provider failed'))
      .map((line) => JSON.parse(line) as Line);
  }

  for (const [name, row] of Object.entries(ROWS)) {
    test(name.replaceAll('_', ' '), async () => {
      const answer = await httpCall(`${tollgate.url}/v1/chat/completions`, {
        headers: { authorization: `Bearer ${KEYS.acme}` },
        body: JSON.stringify({
          model: `test/${name}`,
          stream: row.first === STREAM,
          max_tokens: 9,
          messages: [{ role: 'user', content: PROMPT }],
        }),
      });
      if (row.status === 'cut') assert.deepEqual([answer.status, answer.complete], [200, false]);
      else assert.equal(answer.status, row.status, answer.body.toString());
      const id = String(answer.headers['x-service-execution-id']);
      assert.match(id, /^[0-9a-f-]{36}$/);
      const lines = await waitFor(
        'the lines',
        () => linesOf(id),
        (found) => found.length >= row.lines.length,
      );
      assert.deepEqual(
        lines.map(({ attempt, cause, status, level }) => [attempt, cause, status, level]),
        row.lines.map((line) => [...line, 'warn']),
      );
      for (const { provider, model } of lines)
        assert.deepEqual([provider, model], [`p-${name.replaceAll('_', '-')}`, name]);
      executionIds.set(id, name);
    });
  }

  test('the listing has each of them, under the id of its answer', async () => {
    const listed = await waitFor(
      'the rows',
      async () => {
        const page = await httpCall(`${tollgate.url}/v1/usage/me/requests?limit=100`, {
          headers: { authorization: `Bearer ${KEYS.acme}` },
        });
        return (JSON.parse(page.body.toString()) as { data?: { id: string; model: string }[] }).data ?? [];
      },
      (found) => found.length >= executionIds.size,
    );
    assert.deepEqual(
      new Map(listed.map(({ id, model }) => [id, model])),
      new Map([...executionIds].map(([id, name]) => [id, `test/${name}`])),
    );
    assert.equal(listed.length, Object.keys(ROWS).length);
  });

  test('the command line has every report that a route has, and refuses in its words', async () => {
    const report = async (...args: readonly string[]) => {
      const { exitCode, output } = await tollgate.run(['report', ...args]);
      assert.equal(exitCode, 0, output);
      return output;
    };
    const inAcme = ['--organization', 'acme'];
    const rows = JSON.parse(await report('requests', ...inAcme, 'limit=100')) as {
      data: { id: string; status: number }[];
    };
    const ids = rows.data.map(({ id }) => id);
    assert.deepEqual(new Set(ids), new Set(executionIds.keys()));
    const one = JSON.parse(await report('request', '--id', ids[0] ?? '', ...inAcme)) as { data: { id: string } };
    assert.equal(one.data.id, ids[0]);
    const csv = await report('requests', ...inAcme, 'format=csv', 'status=200');
    assert.equal(csv.trimEnd().split('\n').length - 1, rows.data.filter(({ status }) => status === 200).length);
    for (const name of ['usage', 'daily', 'series', 'routing', 'guardrails'])
      assert.equal(typeof JSON.parse(await report(name)), 'object', name);
    assert.match(await report('focus', ...inAcme), /BilledCost/);
    for (const [exitCode, said, ...args] of [
      [1, /group_by/, 'series', 'group_by=nonsense'],
      [1, /organization/, 'usage', '--organization', 'nobody'],
      [2, /there are usage/, 'nothing'],
      [2, /NAME=VALUE/, 'usage', 'nothing'],
      [2, /unknown parameter "modle": usage has start_date, .*, model, /, 'usage', 'modle=sim/large'],
      [2, /unknown parameter "organization_id"/, 'daily', ...inAcme, 'organization_id=x'],
      [2, /unknown parameter "format"/, 'focus', 'format=csv'],
      [2, /unknown parameter "model": request has none/, 'request', '--id', ids[0] ?? '', 'model=x'],
      [2, /--id is missing/, 'request'],
      [2, /--id: must be the id of a request, which is a UUID, got "x"/, 'request', '--id', 'x'],
      [2, /--organization is missing/, 'usage', '--team', 'x'],
      [2, /whole organizations/, 'focus', '--team', 'x', ...inAcme],
    ] as const) {
      const answer = await tollgate.run(['report', ...args]);
      assert.equal(answer.exitCode, exitCode, answer.output);
      assert.match(answer.output, said);
    }
  });

  test('says nothing of a body or a key', () => {
    const output = tollgate.output();
    for (const secret of [PROMPT, REPLY, KEYS.acme, ...Object.keys(ROWS).map((name) => `sk-p-${name.slice(0, 4)}`)])
      assert.equal(output.includes(secret), false, secret);
  });

  test('what providers take, and what the gateway adds, are histograms', async () => {
    const sample = await readMetrics(tollgate.adminUrl);
    // Of each reply that had a byte, by who sent it; two were served by the second.
    assert.equal(sample('tollgate_provider_latency_seconds_count{provider="p-serves"}'), 1);
    assert.equal(sample('tollgate_provider_latency_seconds_count{provider="second"}'), 2);
    assert.equal(sample('tollgate_overhead_seconds_count{api="chat_completions"}'), Object.keys(ROWS).length);
    assert.ok(sample('tollgate_provider_latency_seconds_sum{provider="second"}') > 0);
    const added = sample('tollgate_overhead_seconds_sum{api="chat_completions"}');
    assert.ok(added > 0 && Number.isFinite(added), String(added));
  });
});
