// Every recorded exchange of the text formats, fed in pieces: the usage is what parsing all of it finds, the stream
// ends exactly where its last event does, and the bounds of each request are read as plain JSON parsing reads them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkUsage, NO_USAGE_BOUNDS } from '../../src/domain/usage/check-usage.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import { countTokens } from '../../src/generation/dialects/count-tokens.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { readResponseId } from '../../src/generation/sse/response-id.ts';
import type { StreamProgress } from '../../src/generation/sse/stream-end.ts';
import { agentRequests } from '../support/agent-requests.ts';
import { howMany } from '../support/at-length.ts';
import { type SplitPlan, splitBytes } from '../support/byte-splits.ts';
import { keptReply } from '../support/kept-replies.ts';
import { loadRecordedExchanges, type RecordedExchange } from '../support/recorded-exchanges.ts';
import { parseDocument, readDocuments } from '../support/recorded-usage.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const SEED = Number(process.env.TEST_SEED ?? 20_261_120);
const SKIP = sharedAssets() === null ? 'no recordings beside the repository' : false;

interface Format {
  readonly dialect: Dialect;
  readonly terminalTypes: readonly string[];
  readonly exchanges: readonly RecordedExchange[];
}

const FORMATS: readonly Format[] = [
  { dialect: chatCompletions, terminalTypes: ['[DONE]'], exchanges: loadRecordedExchanges('chat') },
  {
    dialect: responses,
    terminalTypes: ['response.completed', 'response.incomplete', 'response.failed', 'error'],
    exchanges: loadRecordedExchanges('responses'),
  },
  { dialect: messages, terminalTypes: ['message_stop', 'error'], exchanges: loadRecordedExchanges('messages') },
  { dialect: countTokens, terminalTypes: [], exchanges: loadRecordedExchanges('count_tokens') },
];

const SIZES = [6, 90, 1400];
const EACH_BYTE_MAX = howMany({ short: 4_000, long: 60_000 });

/** Pieces of every size; one byte each at the end of the recording. */
function splitsOf(body: Buffer, index: number): readonly SplitPlan[] {
  const random = SIZES.map((bytesMax, row): SplitPlan => ({ kind: 'random', seed: SEED + index * 7 + row, bytesMax }));
  return [{ kind: 'whole' }, ...random, { kind: 'each_byte', from: Math.max(0, body.length - EACH_BYTE_MAX) }];
}

for (const { dialect, terminalTypes, exchanges } of FORMATS) {
  describe(`recorded ${dialect.api} exchanges (TEST_SEED=${SEED})`, { skip: SKIP }, () => {
    test(`usage of all ${exchanges.length} replies`, () => {
      assert.ok(exchanges.length > 0);
      for (const [index, exchange] of exchanges.entries()) {
        for (const split of splitsOf(exchange.responseBody, index)) checkUsageOf(dialect, exchange, split);
      }
    });

    test('the end of every stream', () => {
      for (const [index, exchange] of exchanges.entries()) {
        if (!exchange.stream) continue;
        for (const body of [
          exchange.responseBody,
          withCrLf(exchange.responseBody),
          withoutEventLines(exchange.responseBody),
        ]) {
          for (const split of splitsOf(body, index)) checkEndOf(dialect, terminalTypes, exchange.name, body, split);
        }
      }
    });

    test('bounds of every request', () => {
      for (const exchange of exchanges) {
        if (exchange.requestBody !== null) checkBoundsOf(dialect, exchange.name, exchange.requestBody);
      }
    });
  });
}

function checkUsageOf(dialect: Dialect, exchange: RecordedExchange, split: SplitPlan): void {
  const raw = dialect.readUsage(keptReply(exchange.responseBody, split));
  const checked = raw === null ? null : checkUsage(raw, NO_USAGE_BOUNDS);
  const usage = checked?.ok ? checked.usage : null;
  const where = `${exchange.name}, ${JSON.stringify(split)}`;
  if (dialect === countTokens) {
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens], [0, 0], where);
    return;
  }
  const found = usage && {
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    cachedTokens: usage.cachedInputTokens,
    cacheWriteTokens: usage.cacheWriteTokens,
    reasoningTokens: usage.reasoningTokens,
  };
  assert.deepEqual(found, exchange.expectedUsage, where);
}

/** Where an event begins, where its first line is over, and where it is. */
interface Place {
  readonly begins: number;
  readonly named: number;
  readonly ends: number;
  readonly type: string;
}

function checkEndOf(
  dialect: Dialect,
  terminalTypes: readonly string[],
  name: string,
  body: Buffer,
  split: SplitPlan,
): void {
  const place = findTerminalEvent(body, terminalTypes);
  const watcher = dialect.watchStreamEnd();
  let offset = 0;
  for (const chunk of splitBytes(body, split)) {
    offset += chunk.length;
    const progress = watcher.feed(chunk);
    if (isRightAt(place, offset, progress)) continue;
    const cut = `${JSON.stringify(split)}, ${JSON.stringify(place)}`;
    assert.fail(`${name} at ${offset} of ${body.length}, ${cut}: ${progress}`);
  }
  assert.equal(watcher.endedBy, place?.type ?? null, name);
}

function isRightAt(place: Place | null, offset: number, progress: StreamProgress | undefined): boolean {
  if (place === null || offset <= place.begins) return progress === 'open';
  if (offset >= place.ends) return progress === 'ended';
  return offset >= place.named ? progress === 'ending' : progress !== 'ended';
}

/** The first event that ends the stream; null in a recording that breaks off. */
function findTerminalEvent(body: Buffer, terminalTypes: readonly string[]): Place | null {
  const text = body.toString('latin1');
  let begins = 0;
  while (begins < text.length) {
    const blank = /\r?\n\r?\n/g;
    blank.lastIndex = begins;
    const ends = blank.exec(text) === null ? text.length : blank.lastIndex;
    const event = text.slice(begins, ends);
    const data = /^data: ?([^\r\n]*)/m.exec(event)?.[1] ?? '';
    const type = data === '[DONE]' ? data : parseDocument(data)?.type;
    // A comment may stand before the first line of the event.
    const lead = /^(:[^\n]*\n)*/.exec(event)?.[0].length ?? 0;
    const named = begins + lead + (event.slice(lead).match(/^[^\n]*\n?/)?.[0].length ?? 0);
    // Clients stop at [DONE] itself.
    if (data === '[DONE]')
      return { begins: begins + lead, named, ends: text.indexOf('[DONE]', begins) + 6, type: data };
    if (type !== undefined && terminalTypes.includes(type)) return { begins: begins + lead, named, ends, type };
    begins = ends;
  }
  return null;
}

function withCrLf(body: Buffer): Buffer {
  return Buffer.from(body.toString('latin1').replace(/\r?\n/g, '\r\n'), 'latin1');
}

function withoutEventLines(body: Buffer): Buffer {
  return Buffer.from(body.toString('latin1').replace(/^event:[^\n]*\n/gm, ''), 'latin1');
}

const scanner = new RequestScanner();
const PLAIN_TIERS: readonly unknown[] = ['default', 'standard', 'standard_only'];

function checkBoundsOf(dialect: Dialect, name: string, body: Buffer): void {
  const request = JSON.parse(body.toString('utf8')) as Readonly<Record<string, unknown>>;
  const scanned = scanner.scan(body);
  assert.equal(scanned.fault, null, name);
  // What requests name beyond the catalog's prices is checked in unpriced-requests.test.ts.
  const {
    saved,
    refusalIfBilled: _,
    maySearch: __,
    namedCosts: ___,
    calls: ____,
    plainTier,
    toolPromptTokens,
    outputLimits,
    ...bounds
  } = dialect.readBounds(scanned, body) as Exclude<ReturnType<Dialect['readBounds']>, { kind: string }>;
  if (dialect === countTokens) {
    assert.deepEqual(bounds, { streamed: false, outputTokensMax: 0, answers: 1 }, name);
    return;
  }
  const tier = request['service_tier'];
  assert.equal(plainTier, PLAIN_TIERS.includes(tier) ? tier : undefined, name);
  const tools = request['tools'] as readonly { readonly type?: string }[] | undefined;
  const defined = tools?.filter(({ type = 'function' }) => type !== 'function' && type !== 'custom').length ?? 0;
  assert.equal(toolPromptTokens, tools === undefined ? undefined : 530 + defined * 1_250, name);
  const limits = [request['max_tokens'], request['max_completion_tokens'], request['max_output_tokens']].filter(
    (limit) => typeof limit === 'number',
  );
  assert.equal(outputLimits?.max_completion_tokens, request['max_completion_tokens'] ?? undefined, name);
  const outputTokensMax = limits.length === 0 ? null : Math.max(...limits);
  assert.deepEqual(bounds, { streamed: request['stream'] === true, outputTokensMax, answers: request['n'] ?? 1 }, name);
  if (dialect !== responses) return assert.equal(saved, undefined, name);
  const expected = {
    background: request['background'] === true,
    store: request['store'] ?? null,
    previousResponseId: request['previous_response_id'] ?? null,
    conversationId: request['conversation'] ?? null,
  };
  assert.deepEqual(saved, expected, name);
}

describe('recorded responses', { skip: SKIP }, () => {
  test('the id of every reply', () => {
    for (const { name, responseBody, stream } of [
      ...loadRecordedExchanges('responses'),
      ...loadRecordedExchanges('responses_sub'),
    ]) {
      const [first] = readDocuments(responseBody, stream);
      const expected = (stream ? first?.response?.id : first?.id) ?? null;
      assert.equal(readResponseId(responseBody), expected, name);
    }
  });
});

const DIALECT_OF_PATH: readonly (readonly [string, Dialect])[] = [
  ['/v1/messages/count_tokens', countTokens],
  ['/v1/messages', messages],
  ['/v1/responses', responses],
  ['/v1/chat/completions', chatCompletions],
];

describe('bodies of coding agents', { skip: SKIP }, () => {
  test('their bounds', () => {
    let checked = 0;
    for (const { name, url, body } of agentRequests()) {
      const dialect = DIALECT_OF_PATH.find(([path]) => url.startsWith(path))?.[1];
      assert.ok(dialect, name);
      checkBoundsOf(dialect, name, Buffer.from(JSON.stringify(body)));
      checked += 1;
    }
    assert.ok(checked >= 10, `${checked} bodies`);
  });
});
