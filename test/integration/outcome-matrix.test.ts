// The outcome matrix produced cell by cell: every way an execution can end, in every dialect, billed and not, by what a
// provider, a client or the death of the process really does, and what is posted for it. The rules alone are tested in
// contract/3.1-outcome-matrix.test.ts.

import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { Outcome } from '../../src/domain/settlement/outcome.ts';
import { type ChargeRule, OUTCOME_MATRIX } from '../../src/domain/settlement/outcome-matrix.ts';
import { type FakeUpstream, type Script, type ScriptedReply, startFakeUpstream } from '../support/fake-upstream.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTollgate, type Tollgate } from '../support/gateway.ts';
import { type LedgerView, openLedgerView } from '../support/ledger-view.ts';
import { expectedCostPico, KEYS, OPENING_CREDIT_PICO, testConfiguration } from '../support/test-configuration.ts';
import { waitFor } from '../support/waiting.ts';

interface DialectCase {
  readonly name: string;
  readonly path: string;
  readonly model: string;
  body(model: string, label: string): object;
  /** A whole reply that reports its usage; what it costs. */
  readonly whole: ScriptedReply;
  readonly wholePico: bigint;
  readonly withoutUsage: ScriptedReply;
  /** A whole reply that says a word which a guardrail blocks. */
  readonly blocked: ScriptedReply;
  /** Begins as a reply does and is never whole: no usage has come. */
  readonly begun: ScriptedReply;
  /** Usage has come, the end has not. */
  readonly begunWithUsage: ScriptedReply;
  /** Whether its texts can be counted where nothing is reported. */
  readonly counted: boolean;
  /** Where the dialect knows its usage at every moment, what becomes of the outcomes without any, and what it costs. */
  readonly instead?: Readonly<Partial<Record<Outcome, { readonly outcome: Outcome; readonly pico: bigint }>>>;
}

const IMAGE_PICO = 40_000_000_000n;
const TEXT = 'Hello there, friend.';
const BLOCKED_WORD = 'plantedlemonade';
const USAGE = { input: 40, cached: 0, output: 3 } as const;
const json = (body: string): ScriptedReply => ({ headers: [['content-type', 'application/json']], body });
const stream = (...events: readonly string[]): ScriptedReply => ({
  headers: [['content-type', 'text/event-stream']],
  body: events.join(''),
  framing: 'chunked',
});
const CHAT_USAGE = '{"prompt_tokens":40,"completion_tokens":3}';
const PLAIN_USAGE = '{"input_tokens":40,"output_tokens":3}';
const CHAT_TEXT = `data: {"choices":[{"index":0,"delta":{"content":"${TEXT}"}}]}\n\n`;
const CHAT_STOP = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const CHAT_REPORT = `data: {"choices":[],"usage":${CHAT_USAGE}}\n\n`;
const RESPONSES_TEXT = `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"${TEXT}"}\n\n`;
const MESSAGES_TEXT =
  'data: {"type":"message_start","message":{"id":"m","content":[],"stop_reason":null}}\n\n' +
  `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${TEXT}"}}\n\n`;
const MESSAGES_REPORT = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${PLAIN_USAGE}}\n\n`;
const MESSAGES_STOP = 'data: {"type":"message_stop"}\n\n';
const IMAGE_DONE = `data: {"type":"image_generation.completed","b64_json":"aGk=","usage":${PLAIN_USAGE}}\n\n`;
const IMAGE_PARTIAL = 'data: {"type":"image_generation.partial_image","partial_image_index":0,"b64_json":"aGk="}\n\n';

const DIALECTS: readonly DialectCase[] = [
  {
    name: 'chat completions',
    path: '/v1/chat/completions',
    model: 'sim/small',
    body: (model, user) => ({
      model,
      user,
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 50,
      stream: true,
      stream_options: { include_usage: true },
    }),
    whole: stream(CHAT_TEXT, CHAT_STOP, CHAT_REPORT, 'data: [DONE]\n\n'),
    wholePico: expectedCostPico(USAGE),
    withoutUsage: stream(CHAT_TEXT, CHAT_STOP, 'data: [DONE]\n\n'),
    blocked: json(`{"choices":[{"index":0,"message":{"content":"${BLOCKED_WORD}"}}],"usage":${CHAT_USAGE}}`),
    begun: stream(CHAT_TEXT),
    begunWithUsage: stream(CHAT_TEXT, CHAT_REPORT),
    counted: true,
  },
  {
    name: 'responses',
    path: '/v1/responses',
    model: 'sim/small',
    body: (model, user) => ({ model, user, input: 'hi', max_output_tokens: 50, store: false, stream: true }),
    whole: stream(
      RESPONSES_TEXT,
      `data: {"type":"response.completed","response":{"id":"resp_1","usage":${PLAIN_USAGE}}}\n\n`,
    ),
    wholePico: expectedCostPico(USAGE),
    withoutUsage: stream(RESPONSES_TEXT, 'data: {"type":"response.completed","response":{"id":"resp_1"}}\n\n'),
    blocked: stream(
      `data: {"type":"response.completed","response":{"id":"resp_1","usage":${PLAIN_USAGE},"note":"${BLOCKED_WORD}"}}\n\n`,
    ),
    begun: stream(RESPONSES_TEXT),
    // Its usage comes with its last event: only a document can be cut after it.
    begunWithUsage: json(
      `{"usage":${PLAIN_USAGE},"id":"resp_1","output":[{"type":"message","content":[{"type":"output_text","text":"${TEXT}`,
    ),
    counted: true,
  },
  {
    name: 'messages',
    path: '/v1/messages',
    model: 'sim/small',
    body: (model, user) => ({
      model,
      metadata: { user_id: user },
      messages: [{ role: 'user', content: 'hi' }],
      max_tokens: 50,
      stream: true,
    }),
    whole: stream(MESSAGES_TEXT, MESSAGES_REPORT, MESSAGES_STOP),
    wholePico: expectedCostPico(USAGE),
    withoutUsage: stream(MESSAGES_TEXT, MESSAGES_STOP),
    blocked: json(`{"content":[{"type":"text","text":"${BLOCKED_WORD}"}],"usage":${PLAIN_USAGE}}`),
    begun: stream(MESSAGES_TEXT),
    begunWithUsage: stream(MESSAGES_TEXT, MESSAGES_REPORT),
    counted: true,
  },
  {
    name: 'images',
    path: '/v1/images/generations',
    model: 'sim/image',
    body: (model, user) => ({ model, user, prompt: 'a cat', n: 2, stream: true }),
    whole: stream(IMAGE_PARTIAL, IMAGE_DONE, IMAGE_PARTIAL, IMAGE_DONE),
    wholePico: 2n * IMAGE_PICO,
    withoutUsage: json('{"created":1}'),
    blocked: json(`{"data":[{"b64_json":"aGk="},{"revised_prompt":"${BLOCKED_WORD}","b64_json":"aGk="}]}`),
    begun: stream(IMAGE_PARTIAL),
    begunWithUsage: stream(IMAGE_DONE),
    counted: false,
    // The images are the usage. Whoever leaves pays for the one that had begun to come; what the provider breaks off
    // costs its whole images.
    instead: {
      aborted_mid_stream: { outcome: 'usage_then_cut', pico: IMAGE_PICO },
      cut_mid_stream: { outcome: 'usage_then_cut', pico: 0n },
      usage_then_cut: { outcome: 'usage_then_cut', pico: IMAGE_PICO },
    },
  },
  {
    name: 'typed questions',
    path: '/v1/systemone',
    model: 'sim/judge',
    body: (model, state) => ({
      model,
      state,
      questions: { q: { type: 'choice', instructions: 'Is it?', criteria: { yes: null, no: null } } },
    }),
    whole: json(`{"answers":{},"usage":${PLAIN_USAGE}}`),
    wholePico: 40n * 42_000n,
    withoutUsage: json('{"answers":{}}'),
    blocked: json(`{"answers":{"q":{"why":"${BLOCKED_WORD}"}},"usage":${PLAIN_USAGE}}`),
    begun: json('{"answers":{"q":'),
    begunWithUsage: json(`{"usage":${PLAIN_USAGE},"answers":{"q":`),
    counted: false,
  },
];

const ERROR_BODY = '{"type":"error","error":{"type":"api_error","message":"no"}}';

/** What the provider does; null: it cannot be reached. */
function scriptOf(dialect: DialectCase, outcome: Outcome): Script | null {
  const cut = (reply: ScriptedReply): Script => ({
    ...reply,
    framing: 'chunked',
    fault: { kind: 'cut', afterBytes: Buffer.byteLength(reply.body) },
  });
  switch (outcome) {
    case 'completed':
      return dialect.whole;
    case 'completed_without_usage':
      return dialect.withoutUsage;
    case 'output_blocked':
      return dialect.blocked;
    case 'refused':
      return { instead: 'reset' };
    case 'connect_failed':
      return null;
    case 'provider_refused':
      return { ...json(ERROR_BODY), status: 400 };
    case 'provider_failed':
      return { ...json(ERROR_BODY), status: 500 };
    case 'no_reply':
      return { instead: 'reset' };
    case 'aborted_before_first_byte':
    case 'process_killed':
      return { instead: 'silence' };
    case 'aborted_mid_stream':
      return {
        ...dialect.begun,
        framing: 'chunked',
        fault: { kind: 'stall', afterBytes: Buffer.byteLength(dialect.begun.body) },
      };
    case 'cut_mid_stream':
      return cut(dialect.begun);
    case 'usage_then_cut':
      return cut(dialect.begunWithUsage);
  }
}

const LEFT_BY_CLIENT: ReadonlySet<Outcome> = new Set([
  'aborted_before_first_byte',
  'aborted_mid_stream',
  'process_killed',
]);
/** What screened keys are answered is whole before the client gets it, so no other outcome is made with them. */
const FREE_SCREENED_KEY = `tg-test-free-screened-${'g'.repeat(23)}`;
const ORGANIZATIONS = [
  { name: 'billed', key: KEYS.acme, screenedKey: KEYS.acmeSecond, isBilled: true },
  { name: 'not billed', key: KEYS.free, screenedKey: FREE_SCREENED_KEY, isBilled: false },
] as const;
const OUTCOMES = Object.keys(OUTCOME_MATRIX) as Outcome[];

/** Models once more, at a provider that nobody listens as. */
const NOWHERE = '-nowhere';
/** A model that the catalog does not have: the request is refused. */
const UNKNOWN = 'sim/unknown';
const TEXT_APIS = ['chat_completions', 'responses', 'messages'] as const;
const MODELS = [
  { id: 'sim/small', providerModel: 'small', outputCap: 4_096, apis: TEXT_APIS },
  { id: 'sim/image', providerModel: 'image', outputCap: null, kind: 'image', apis: ['images'] },
  { id: 'sim/judge', providerModel: 'judge', outputCap: null, kind: 'evaluation', apis: ['systemone'] },
] as const;

describe('every cell of the outcome matrix', { timeout: 300_000 }, () => {
  const scripts = new Map<string, Script>();
  let upstream: FakeUpstream;
  let tollgate: Tollgate;
  let ledger: LedgerView;

  before(async () => {
    upstream = await startFakeUpstream(
      ({ body }) => scripts.get(/cell-\d+-/.exec(body.toString())?.[0] ?? '') ?? { instead: 'close' },
    );
    tollgate = await startTollgate({
      configurationYaml: configuration(upstream.url, await findFreePort()),
      clickhouse: 'away',
    });
    ledger = openLedgerView(tollgate.postgresUrl);
  });
  after(async () => {
    await ledger?.close();
    await tollgate?.stop();
    await upstream?.close();
  });

  let cells = 0;
  /** Makes the request of one cell; resolves once the client is done with it. */
  async function produce(dialect: DialectCase, outcome: Outcome, key: string): Promise<string> {
    cells += 1;
    const label = `cell-${cells}-`;
    const script = scriptOf(dialect, outcome);
    if (script !== null) scripts.set(label, script);
    const model = outcome === 'refused' ? UNKNOWN : dialect.model + (script === null ? NOWHERE : '');
    const sent = ask(`${tollgate.url}${dialect.path}`, {
      key,
      label,
      body: JSON.stringify(dialect.body(model, label)),
    });
    if (outcome === 'aborted_mid_stream') await sent.begun;
    else if (LEFT_BY_CLIENT.has(outcome))
      await waitFor(
        'the provider to be called',
        () => upstream.requests.some(({ body }) => body.includes(label)),
        Boolean,
      );
    if (outcome === 'process_killed') return label;
    if (LEFT_BY_CLIENT.has(outcome)) sent.leave();
    await sent.ended;
    return label;
  }

  async function readCell(label: string): Promise<Cell> {
    const [row] = await waitFor(
      `${label} to be posted`,
      () =>
        ledger.query(
          `SELECT outcome, billing_status, usage_source, charge::text, suspense::text, rated_cost::text,
            input_tokens::int AS input, output_tokens::int AS output,
                  (SELECT count(*)::int FROM ledger_transfers t WHERE t.execution_id = g.id) AS transfers
             FROM generations g WHERE client_request_id = $1 AND outcome IS NOT NULL`,
          [label],
        ),
      (rows) => rows.length === 1,
    );
    return row as unknown as Cell;
  }

  function assertCell(cell: Cell, dialect: DialectCase, wanted: { outcome: Outcome; isBilled: boolean }): void {
    const { isBilled } = wanted;
    const { outcome, pico } = dialect.instead?.[wanted.outcome] ?? { outcome: wanted.outcome, pico: dialect.wholePico };
    assert.equal(cell.outcome, outcome);
    const { chargeRule, billingStatus } = OUTCOME_MATRIX[outcome];
    assert.equal(cell.billing_status, isBilled ? billingStatus : 'not_billed');
    assert.equal(cell.suspense, '0');
    const rated = ratedCostOf(cell, dialect, { rule: chargeRule, reportedPico: pico });
    assert.equal(cell.rated_cost, rated);
    if (!isBilled) assert.deepEqual([cell.charge, cell.transfers], [null, 0]);
    else if (billingStatus === 'not_billed') assert.deepEqual([cell.charge, cell.transfers], [null, 0]);
    else assert.deepEqual([cell.charge, cell.transfers], [rated ?? '0', (rated ?? '0') === '0' ? 0 : 1]);
  }

  for (const dialect of DIALECTS) {
    for (const { name, key, screenedKey, isBilled } of ORGANIZATIONS) {
      describe(`${dialect.name}, ${name}`, () => {
        for (const outcome of OUTCOMES.filter((one) => one !== 'process_killed')) {
          test(outcome, async () => {
            const label = await produce(dialect, outcome, outcome === 'output_blocked' ? screenedKey : key);
            assertCell(await readCell(label), dialect, { outcome, isBilled });
          });
        }
      });
    }
  }

  test('process_killed, in every dialect, billed and not', async () => {
    const produced = await Promise.all(
      DIALECTS.flatMap((dialect) =>
        ORGANIZATIONS.map(async ({ key, isBilled }) => ({
          dialect,
          isBilled,
          label: await produce(dialect, 'process_killed', key),
        })),
      ),
    );
    for (const pid of tollgate.gatewayPids()) process.kill(pid, 'SIGKILL');
    for (const { dialect, isBilled, label } of produced)
      assertCell(await readCell(label), dialect, { outcome: 'process_killed', isBilled });
  });

  test('the wallet has paid the cells, and nothing else', async () => {
    const [row] = await ledger.query('SELECT sum(charge)::text AS charged, count(*)::int AS count FROM generations');
    assert.equal(row?.count, DIALECTS.length * ORGANIZATIONS.length * OUTCOMES.length);
    assert.equal((await ledger.wallet('acme')).balance, OPENING_CREDIT_PICO - BigInt(String(row?.charged)));
  });
});

interface Cell {
  readonly outcome: string;
  readonly billing_status: string;
  readonly usage_source: string | null;
  readonly charge: string | null;
  readonly suspense: string;
  readonly rated_cost: string | null;
  readonly input: number | null;
  readonly output: number | null;
  readonly transfers: number;
}

/** What an execution is worth by the rule of its outcome; null where that cannot be known. */
function ratedCostOf(
  cell: Cell,
  dialect: DialectCase,
  { rule, reportedPico }: { rule: ChargeRule; reportedPico: bigint },
): string | null {
  if (rule === 'nothing') return null;
  if (rule === 'reported') {
    assert.equal(cell.usage_source, 'reported');
    return reportedPico.toString();
  }
  if (!dialect.counted) {
    assert.deepEqual(
      [cell.usage_source, cell.input, cell.output],
      [null, null, null],
      'what cannot be counted is not known, and never 0',
    );
    return null;
  }
  assert.equal(cell.usage_source, 'counted');
  const { input, output } = cell;
  assert.ok(input !== null && input > 0 && output !== null && output > 0, `counted ${input} and ${output}`);
  return expectedCostPico({ input, cached: 0, output }).toString();
}

function configuration(upstreamUrl: string, nobodysPort: number): string {
  const elsewhere = (yaml: string): string =>
    yaml
      .slice(yaml.indexOf('models:\n') + 'models:\n'.length, yaml.indexOf('organizations:\n'))
      .replace(/id: "([^"]+)"/g, `id: "$1${NOWHERE}"`)
      .replaceAll('provider: upstream', 'provider: nowhere');
  const provider = `  - { id: nowhere, base_url: http://127.0.0.1:${nobodysPort}, api_key: sk-nobody, auth: bearer }\n`;
  const yaml = testConfiguration({ upstreamUrl, models: MODELS });
  const guardrails = `guardrails:
  - { name: lemonade, rules: [{ id: words, words: [${BLOCKED_WORD}], stage: output, action: block }] }
`;
  const screened = 'guardrails: { add: [lemonade] }';
  const freeScreened = `, { name: screened, user: f@free.test, secret: ${FREE_SCREENED_KEY}, ${screened} }`;
  return (
    guardrails +
    yaml
      .replace('models:\n', `${provider}models:\n${elsewhere(yaml)}`)
      .replace(`secret: ${KEYS.acmeSecond}`, `secret: ${KEYS.acmeSecond}, ${screened}`)
      .replace(`secret: ${KEYS.free} }`, `secret: ${KEYS.free} }${freeScreened}`)
  );
}

interface Sent {
  /** The first bytes of the reply's body are here. */
  readonly begun: Promise<void>;
  /** Whole, cut, refused or left. */
  readonly ended: Promise<void>;
  leave(): void;
}

function ask(url: string, { key, label, body }: { key: string; label: string; body: string }): Sent {
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-client-request-id': label,
    'content-length': Buffer.byteLength(body),
  };
  const request = httpRequest(url, { method: 'POST', headers, agent: false }, (response) => {
    response.on('error', () => undefined);
    response.on('data', () => begun.resolve());
    response.on('close', () => ended.resolve());
  });
  request.on('error', () => ended.resolve());
  request.on('close', () => ended.resolve());
  request.end(body);
  return { begun: begun.promise, ended: ended.promise, leave: () => request.destroy() };
}
