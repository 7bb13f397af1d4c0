// External detectors of guardrails: what they are asked, what becomes of their answers, and what happens without one.

import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, test } from 'node:test';
import { compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import type { External, Policy, Rule } from '../../src/domain/guardrails/policy.ts';
import { ExternalDetectors } from '../../src/generation/guardrails/external-detectors.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { MetricsRegistry } from '../../src/platform/metrics.ts';
import { type FakeUpstream, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { type Front, startFront } from '../support/front.ts';
import { policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { silentLog } from '../support/silent-log.ts';
import { KEYS, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

type Json = Readonly<Record<string, unknown>>;

interface Asked {
  readonly body: Json;
  readonly authorization: string | undefined;
}

const asked: Asked[] = [];
let answer: (body: Json) => { readonly status?: number; readonly body: unknown } | 'silence' = () => ({ body: [] });
let detector: Server;
let url = '';
before(async () => {
  detector = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString()) as Json;
      asked.push({ body, authorization: request.headers.authorization });
      const said = answer(body);
      if (said === 'silence') return;
      response.writeHead(said.status ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(said.body));
    });
  });
  await new Promise<void>((resolve) => detector.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(detector.address() as AddressInfo).port}/analyze`;
});
after(() => {
  detector?.closeAllConnections();
  detector?.close();
});
beforeEach(() => {
  asked.length = 0;
});

const detectors = (allowPrivate = false) =>
  new ExternalDetectors({ clock: systemClock, log: silentLog, metrics: new MetricsRegistry(), allowPrivate });

function externalOf(external: Partial<External>): External {
  return {
    name: 'ner',
    shape: 'webhook',
    url,
    secret: null,
    deadlineMs: 5_000,
    onFailure: 'refuse',
    output: 'whole',
    model: null,
    language: 'en',
    ...external,
  };
}

function compiledFor(external: External, rule: Partial<Rule> = {}, policy: Partial<Policy> = {}) {
  const found = { name: 'ner', entities: null, minScore: 0.5 };
  const rules = [ruleOf({ stages: ['input'], external: found, ...rule })];
  const compiled = compilePolicy([policyOf(rules, { externals: [external], ...policy })], 'messages');
  const stage = compiled?.input ?? null;
  assert.ok(compiled !== null && stage !== null);
  return { compiled, stage };
}

function ask(external: External, texts: readonly string[], by = detectors(), policy: Partial<Policy> = {}) {
  const { compiled, stage } = compiledFor(external, {}, policy);
  return by.ask(compiled, stage, 'acme', texts);
}

describe('the shapes', () => {
  test('webhook: all texts in one request, with its secret; characters become bytes', async () => {
    answer = () => ({ body: { findings: [{ text: 1, start: 2, end: 5, entity: 'PERSON', score: 0.9 }] } });
    const { verdicts } = await ask(externalOf({ secret: 'sk-test' }), ['nothing', '\u{1f600} Zoë', 'more']);
    assert.deepEqual(asked, [
      { body: { texts: ['nothing', '\u{1f600} Zoë', 'more'] }, authorization: 'Bearer sk-test' },
    ]);
    assert.deepEqual(verdicts.get('\u{1f600} Zoë'), [[{ entity: 'PERSON', start: 5, end: 9, score: 0.9 }]]);
    assert.deepEqual(verdicts.get('more'), [[]]);
  });

  test('presidio: a request for each text', async () => {
    answer = ({ text }) => ({
      body: String(text).startsWith('Ann') ? [{ entity_type: 'PERSON', start: 0, end: 3, score: 0.85 }] : [],
    });
    const { verdicts } = await ask(externalOf({ shape: 'presidio' }), ['Ann is here', 'nobody is']);
    assert.deepEqual(
      asked.map(({ body }) => body).toSorted((one, other) => String(one['text']).localeCompare(String(other['text']))),
      [
        { text: 'Ann is here', language: 'en' },
        { text: 'nobody is', language: 'en' },
      ],
    );
    assert.deepEqual(verdicts.get('Ann is here'), [[{ entity: 'PERSON', start: 0, end: 3, score: 0.85 }]]);
  });

  test('moderation: the text as a whole is the finding', async () => {
    answer = () => ({
      body: {
        results: [{ categories: { violence: true, hate: false }, category_scores: { violence: 0.8, hate: 0.1 } }],
      },
    });
    const { verdicts } = await ask(externalOf({ shape: 'moderation', model: 'omni' }), ['I will…']);
    assert.deepEqual(asked[0]?.body, { input: ['I will…'], model: 'omni' });
    assert.deepEqual(verdicts.get('I will…'), [[{ entity: 'violence', start: 0, end: 9, score: 0.8 }]]);
  });
});

test('a name of any length is read by its beginning', async (context) => {
  answer = () => ({ body: { findings: [{ text: 0, start: 0, end: 1, entity: 'é'.repeat(100_000) }] } });
  const lengths: number[] = [];
  const replaceAll = Reflect.get(String.prototype, 'replaceAll') as (this: string, ...sought: unknown[]) => string;
  context.mock.method(String.prototype, 'replaceAll', function (this: string, ...sought: unknown[]) {
    lengths.push(this.length);
    return Reflect.apply(replaceAll, this, sought);
  });
  const { verdicts } = await ask(externalOf({}), ['a text']);
  assert.deepEqual(verdicts.get('a text'), [[{ entity: '_'.repeat(64), start: 0, end: 1, score: 1 }]]);
  assert.ok(Math.max(...lengths) < 1_000, `replaced in ${Math.max(...lengths)} characters`);
});

describe('without an answer', () => {
  test('an error, a late one, and one of another form', async () => {
    for (const [said, deadlineMs] of [
      [{ status: 500, body: {} }, 5_000],
      ['silence', 50],
      [{ body: { findings: [{ text: 7 }] } }, 5_000],
      [{ body: 'no' }, 5_000],
    ] as const) {
      answer = () => said;
      const { silent } = await ask(externalOf({ deadlineMs }), ['a text']);
      assert.deepEqual(
        silent.map(({ onFailure }) => onFailure),
        ['refuse'],
      );
    }
    answer = () => ({ status: 500, body: {} });
    const { silent } = await ask(externalOf({ onFailure: 'pass' }), ['a text']);
    assert.deepEqual(
      silent.map(({ onFailure }) => onFailure),
      ['pass'],
    );
  });

  test('a moderation with more categories than one has, and an answer that is too long', async () => {
    const categories = (count: number): Json =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, true]));
    const padding = 'x'.repeat(131_072);
    for (const [shape, body, isMissed] of [
      ['moderation', { results: [{ categories: categories(256) }] }, false],
      ['moderation', { results: [{ categories: categories(257) }] }, true],
      ['moderation', { results: [{ categories: categories(1) }], padding }, true],
      ['webhook', { findings: [], padding }, false],
      ['webhook', { findings: [], padding: padding + padding }, true],
    ] as const) {
      answer = () => ({ body });
      const asked = await ask(externalOf({ shape }), ['a text']);
      assert.equal(asked.silent.length > 0, isMissed, `${shape} with ${JSON.stringify(body).slice(0, 60)}`);
    }
  });

  test('after five failures it is not asked for a while', async () => {
    answer = () => ({ status: 500, body: {} });
    const by = detectors();
    for (let run = 0; run < 7; run += 1) await ask(externalOf({}), [`text ${run}`], by);
    assert.equal(asked.length, 5);
  });

  test('an organization’s detector at a private address is not called', async () => {
    answer = () => ({ body: { findings: [] } });
    const organization = { organizationId: '00000000-0000-7000-8000-00000000000a' };
    assert.equal((await ask(externalOf({}), ['a text'], detectors(), organization)).silent.length, 1);
    assert.equal(asked.length, 0);
    assert.equal((await ask(externalOf({}), ['a text'], detectors(true), organization)).silent.length, 0);
  });
});

test('many texts are asked about in requests of 128 KB at most, each answer for its own', async () => {
  answer = ({ texts }) => ({
    body: { findings: (texts as string[]).map((_, text) => ({ text, start: 0, end: 2, entity: 'X', score: 1 })) },
  });
  const texts = Array.from({ length: 40 }, (_, index) => `${index}: ${'é'.repeat(5_000)}`);
  const { verdicts } = await ask(externalOf({}), texts);
  assert.equal(asked.length, 4);
  assert.deepEqual(asked.flatMap(({ body }) => body['texts'] as string[]).toSorted(), texts.toSorted());
  for (const text of texts) assert.equal(verdicts.get(text)?.[0]?.length, 1);
});

test('a text that was asked about is not asked about again', async () => {
  answer = () => ({ body: { findings: [] } });
  const by = detectors();
  await ask(externalOf({}), ['first'], by);
  await ask(externalOf({}), ['first', 'second'], by);
  await ask(externalOf({}), ['first', 'second'], by);
  assert.deepEqual(
    asked.map(({ body }) => body['texts']),
    [['first'], ['second']],
  );
});

test('verdicts are remembered for one organization, and by the versions of its policies', async () => {
  answer = () => ({ body: { findings: [] } });
  const by = detectors();
  const askFor = (organizationId: string, version: number) => {
    const { compiled, stage } = compiledFor(externalOf({}), {}, { version });
    return by.ask(compiled, stage, organizationId, ['the same text']);
  };
  for (const [organizationId, version, calls] of [
    ['acme', 1, 1],
    ['acme', 1, 1],
    ['other', 1, 2],
    ['other', 1, 2],
    ['acme', 2, 3],
    ['acme', 1, 3],
  ] as const) {
    await askFor(organizationId, version);
    assert.equal(asked.length, calls, `${organizationId}, version ${version}`);
  }
});

describe('in an installation', () => {
  let upstream: FakeUpstream;
  let tollgate: Front;
  const sent: string[] = [];
  /** What the provider says instead of nothing. */
  let said: ScriptedReply | null = null;
  before(async () => {
    upstream = await startFakeUpstream(({ body }) => {
      sent.push(body.toString());
      if (said !== null) return said;
      return {
        body: JSON.stringify({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }),
      };
    });
    const guardrails = `guardrails:
  - name: names
    rules:
      - { id: people, external: ner, entities: [PERSON], min_score: 0.7, stage: input, action: mask }
      - { id: cards, detect: [card], stage: input, action: block }
    external: { ner: { shape: presidio, url: "${url}", on_failure: refuse } }
  - name: spoken
    rules:
      - { id: named, external: all, entities: [PERSON], stage: output, action: mask }
      - { id: told, external: all, entities: [SECRET], stage: output, action: block }
    external: { all: { shape: presidio, url: "${url}" } }
  - name: behind
    rules: [{ id: noted, external: later, stage: output, action: flag }]
    external: { later: { shape: presidio, url: "${url}", output: after, on_failure: pass } }
`;
    tollgate = await startFront({
      configurationYaml:
        guardrails +
        testConfiguration({ upstreamUrl: upstream.url })
          .replace('  - slug: acme\n', '  - slug: acme\n    guardrails: { policy: names }\n')
          .replace('  - slug: other\n', '  - slug: other\n    guardrails: { policy: spoken }\n')
          .replace('  - slug: free\n', '  - slug: free\n    guardrails: { policy: behind }\n'),
    });
  });
  after(async () => {
    await tollgate?.stop();
    await upstream?.close();
  });

  const generate = (content: string, { key = KEYS.acme as string, stream = false } = {}) =>
    httpCall(`${tollgate.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'sim/small', messages: [{ role: 'user', content }], max_tokens: 5, stream }),
    });

  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const plain = (content: string): ScriptedReply => ({
    headers: [['content-type', 'application/json']],
    body: JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content } }], usage }),
  });
  const streamed = (...pieces: readonly string[]): ScriptedReply => ({
    headers: [['content-type', 'text/event-stream']],
    body: `${pieces
      .map((content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)
      .join('')}data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
    framing: 'chunked',
  });
  const finds = (word: string, entity: string) => {
    answer = ({ text }) => {
      const start = String(text).indexOf(word);
      return { body: start === -1 ? [] : [{ entity_type: entity, start, end: start + word.length, score: 0.9 }] };
    };
  };
  const outputOf = async (answered: HttpAnswer) => {
    const found = await waitFor(
      'the record of the reply',
      () =>
        httpCall(`${tollgate.url}/v1/generation?id=${String(answered.headers['x-service-execution-id'])}`, {
          headers: { authorization: `Bearer ${KEYS.free}` },
        }),
      ({ status }) => status === 200,
    );
    const { data } = JSON.parse(found.body.toString()) as { data: { guardrail: { output: unknown } } };
    return data.guardrail.output;
  };

  test('a plain reply is kept until it was asked about: masked, blocked, refused without an answer', async () => {
    const key = KEYS.other;
    said = plain('it is "Zoë", they say');
    finds('Zoë', 'PERSON');
    const masked = await generate('who?', { key });
    assert.ok(masked.body.includes('it is \\"[PERSON]\\", they say'), masked.body.toString());
    assert.equal(masked.headers['x-service-guardrail'], 'masked');
    said = plain('the door opens');
    finds('door', 'SECRET');
    const blocked = await generate('what?', { key });
    assert.equal(blocked.status, 400);
    assert.ok(blocked.body.includes('"rule":"told"') && !blocked.body.includes('door'));
    said = plain('nobody answers');
    answer = () => ({ status: 500, body: {} });
    assert.equal((await generate('what?', { key })).status, 503);
  });

  test('a stream is kept until it was asked about, as one text', async () => {
    const key = KEYS.other;
    said = streamed('all is ', 'well to', 'day');
    finds('door', 'SECRET');
    const passed = await generate('what?', { key, stream: true });
    assert.equal(passed.body.toString(), said.body);
    assert.deepEqual(asked.at(-1)?.body['text'], 'all is well today');
    said = streamed('the do', 'or opens');
    const blocked = await generate('what?', { key, stream: true });
    assert.match(blocked.body.toString(), /^data: \{"error":.*"code":"guardrail_blocked".*\}\n\n$/);
    assert.ok(!blocked.body.includes('opens') && !blocked.body.includes('DONE'));
    said = streamed('nobody ', 'answers');
    answer = () => ({ status: 500, body: {} });
    const refused = await generate('what?', { key, stream: true });
    assert.match(refused.body.toString(), /^data: \{"error":.*"code":"guardrail_unavailable"/);
  });

  test('asked behind a stream, it flags', async () => {
    said = streamed('the do', 'or opens');
    finds('door', 'SECRET');
    const passed = await generate('what?', { key: KEYS.free, stream: true });
    assert.equal(passed.body.toString(), said.body);
    assert.deepEqual(await outputOf(passed), {
      action: 'flagged',
      findings: [{ policy: 'behind', version: 1, rule: 'noted', entity: 'SECRET', action: 'flag', count: 1 }],
    });
    said = null;
  });

  test('an answer with more findings than there may be is none', async () => {
    const many = Array.from({ length: 10_001 }, () => ({ entity_type: 'PERSON', start: -1, end: 1e9, score: 1 }));
    answer = () => ({ body: many });
    assert.equal((await generate('a text of its own')).status, 503);
    answer = () => ({ body: many.slice(0, 100) });
    assert.ok((await generate('another one')).status === 200 && sent.at(-1)?.includes('"[PERSON]"'), sent.at(-1));
  });

  test('a text that is too long to be asked about is refused as one without an answer is', async () => {
    answer = () => ({ body: [] });
    const long = 'a word '.repeat(10_000);
    assert.equal((await generate(long)).status, 503);
    said = plain(long);
    assert.equal((await generate('what?', { key: KEYS.other })).status, 503);
    said = streamed(...Array.from({ length: 70 }, () => long.slice(0, 1_000)));
    const cut = await generate('what?', { key: KEYS.other, stream: true });
    assert.match(cut.body.toString(), /^data: \{"error":.*"code":"guardrail_unavailable"/);
    const passed = await generate('what?', { key: KEYS.free, stream: true });
    assert.equal(passed.body.toString(), said.body);
    assert.deepEqual(await outputOf(passed), { action: 'none', not_scanned: ['external'] });
    said = null;
  });

  test('what it finds with enough certainty is masked, and only that', async () => {
    answer = ({ text }) => ({
      body: [
        { entity_type: 'PERSON', start: String(text).indexOf('Zoë'), end: String(text).indexOf('Zoë') + 3, score: 0.9 },
        { entity_type: 'PERSON', start: 0, end: 2, score: 0.3 },
        { entity_type: 'PLACE', start: 0, end: 2, score: 0.9 },
      ].filter(({ start }) => start >= 0),
    });
    const { status, headers } = await generate('is "Zoë" here?');
    assert.equal(status, 200);
    assert.equal(headers['x-service-guardrail'], 'masked');
    assert.ok(sent.at(-1)?.includes('is \\"[PERSON]\\" here?'), sent.at(-1));
  });

  test('a request that is blocked already is shown to nobody', async () => {
    assert.equal((await generate('4111 1111 1111 1111')).status, 400);
    assert.equal(asked.length, 0);
  });

  test('without an answer the request is refused', async () => {
    answer = () => ({ status: 500, body: {} });
    const { status, body } = await generate('another text');
    assert.equal(status, 503);
    assert.ok(body.toString().includes('guardrail_unavailable'));
  });
});
