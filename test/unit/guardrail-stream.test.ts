// A stream that is screened says what the whole text would say: for pieces of every size down to one byte, with
// choices and calls of tools that take turns, with escapes written in every way.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BodyScreen } from '../../src/domain/guardrails/body-screen.ts';
import { type CompiledPolicy, compilePolicy } from '../../src/domain/guardrails/compile-policy.ts';
import { Placeholders, RestorableValues } from '../../src/domain/guardrails/placeholders.ts';
import type { External, Rule } from '../../src/domain/guardrails/policy.ts';
import type { ScreenEventInput } from '../../src/domain/guardrails/screen-event-task.ts';
import { placeNodes } from '../../src/domain/guardrails/text-places.ts';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import type { EventBytes } from '../../src/generation/guardrails/event-lines.ts';
import { type ScreeningWorkers, screenEventInWorker } from '../../src/generation/guardrails/screen-body.ts';
import { StreamScreen } from '../../src/generation/guardrails/stream-screen.ts';
import { applyEdits } from '../../src/generation/request/edits.ts';
import screenEvent from '../../workers/screen-event.ts';
import { howMany } from '../support/at-length.ts';
import { seededRandom, splitBytes } from '../support/byte-splits.ts';
import { compiledOf, policyOf, ruleOf } from '../support/guardrail-policies.ts';
import { loadRecordedExchanges } from '../support/recorded-exchanges.ts';

const SEED = Number(process.env['TEST_SEED'] ?? 20_261_124);
const ROUNDS = howMany({ short: 400, long: 10_000 });

/** Does in this process what a thread would. */
const IN_PROCESS = {
  run: async (_task: string, input: ScreenEventInput) => ({ ok: true, value: screenEvent(input) }),
} as unknown as ScreeningWorkers;

const SCOPES = { key: Buffer.alloc(32, 7), apiKeyId: 'key', conversation: '' };
const placeholders = new Placeholders(SCOPES);
const CLOAK = { form: 'token', scope: 'organization', restore: true } as const;
const CLOAKED = ['Ada "Countess"\nLovelace', 'ada@acme.test', 'C:\\ada'].map((value) => ({
  value,
  placeholder: placeholders.of('words', value, CLOAK),
}));
/** Some recordings have events that are no JSON: they go on as they are. */
function compiledPassing(...rules: readonly Rule[]): CompiledPolicy {
  const passing = compilePolicy([policyOf(rules, { onFailure: 'pass' })], 'chat_completions');
  assert.ok(passing !== null);
  return passing;
}
const values = new RestorableValues(placeholders.entries());
const compiled = compiledOf(
  ruleOf({ id: 'people', action: 'mask', label: '[person "x"]', detect: ['email', 'card', 'phone'] }),
  ruleOf({ id: 'internal', action: 'mask', words: ['Falcon', 'Projekt Öl'] }),
);

/** Fragments that come near to findings, are findings, or are placeholders, whole and in part. */
const FRAGMENTS = [
  'ada@acme.test',
  'x.y+z@mail.example.com',
  '@',
  'a@',
  '4111 1111 1111 1111',
  '4111111111111111',
  '41111',
  '+49 30 901820',
  'Falcon',
  'Fal',
  'con',
  'Projekt Öl',
  ' ',
  '\n',
  '"',
  '\\',
  'é',
  '😀',
  'TG',
  'TGW12345',
  '.',
  ', ',
  'user',
  '\t',
  '/',
  '<b>',
  ...CLOAKED.map(({ placeholder }) => placeholder),
  ...CLOAKED.map(({ placeholder }) => placeholder.slice(0, 9)),
];

function textOf(random: () => number, most: number): string {
  return Array.from(
    { length: 1 + Math.floor(random() * most) },
    () => FRAGMENTS[Math.floor(random() * FRAGMENTS.length)] ?? '',
  ).join('');
}

/** The string in JSON, with some of its characters written in another way. */
function jsonOf(text: string, random: () => number): string {
  const plain = JSON.stringify(text);
  if (random() < 0.5) return plain;
  let written = '"';
  for (const character of text) {
    const units = character.split('').map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const isEscaped = random() < 0.2 || character < ' ' || character === '"' || character === '\\';
    written += isEscaped ? units.join('') : character === '/' ? '\\/' : character;
  }
  return `${written}"`;
}

interface Lane {
  readonly choice: number;
  /** null: the content. */
  readonly tool: number | null;
  readonly text: string;
}

/** Cuts no character in two: a provider's events do not. */
function piecesOf(text: string, random: () => number): string[] {
  const pieces: string[] = [];
  const characters = Array.from(text);
  while (characters.length > 0) pieces.push(characters.splice(0, 1 + Math.floor(random() * random() * 12)).join(''));
  return pieces;
}

function lanesOf(random: () => number): Lane[] {
  const lanes: Lane[] = [];
  const choices = 1 + Math.floor(random() * 2);
  for (let choice = 0; choice < choices; choice++) {
    lanes.push({ choice, tool: null, text: textOf(random, 12) });
    for (let tool = 0; tool < Math.floor(random() * 3); tool++) {
      const value = random() < 0.3 ? 4111111111111111 : textOf(random, 6);
      lanes.push({ choice, tool, text: JSON.stringify({ to: value, [textOf(random, 2)]: [textOf(random, 3)], n: 1 }) });
    }
  }
  return lanes;
}

function chatStream(lanes: readonly Lane[], random: () => number): Buffer {
  const waiting = lanes.map((lane) => ({ lane, pieces: piecesOf(lane.text, random), waits: 0 }));
  let stream = '';
  while (waiting.length > 0) {
    // No text waits for longer than it is held for.
    const longest = Math.max(...waiting.map(({ waits }) => waits));
    const late = waiting.findIndex(({ waits }) => waits === longest);
    const at = longest > 2 ? late : Math.floor(random() * waiting.length);
    for (const other of waiting) other.waits += 1;
    const chosen = waiting[at] as (typeof waiting)[number];
    chosen.waits = 0;
    const { lane, pieces } = chosen;
    const piece = jsonOf(pieces.shift() ?? '', random);
    const delta =
      lane.tool === null
        ? `{"content":${piece}}`
        : `{"tool_calls":[{"index":${lane.tool},"function":{"arguments":${piece}}}]}`;
    const index = `"index":${lane.choice}`;
    stream += `data: {"choices":[{${random() < 0.5 ? `${index},"delta":${delta}` : `"delta":${delta},${index}`}}]}\n\n`;
    if (pieces.length === 0) waiting.splice(at, 1);
  }
  for (const choice of new Set(lanes.map((lane) => lane.choice)))
    stream += `data: {"choices":[{"index":${choice},"delta":{},"finish_reason":"stop"}]}\n\n`;
  return Buffer.from(`${stream}data: [DONE]\n\n`);
}

function chatTexts(stream: Buffer): Map<string, string> {
  const texts = new Map<string, string>();
  for (const line of stream.toString().split('\n')) {
    if (!line.startsWith('data: {')) continue;
    for (const { index, delta } of (
      JSON.parse(line.slice(6)) as {
        choices: {
          index: number;
          delta: { content?: string; tool_calls?: { index: number; function: { arguments: string } }[] };
        }[];
      }
    ).choices) {
      if (delta.content !== undefined) texts.set(`${index}`, (texts.get(`${index}`) ?? '') + delta.content);
      for (const call of delta.tool_calls ?? []) {
        const key = `${index} ${call.index}`;
        texts.set(key, (texts.get(key) ?? '') + call.function.arguments);
      }
    }
  }
  return texts;
}

/** Where the texts of events are, and who screens the large ones. */
function partsOf(rules: CompiledPolicy, { texts: places }: Dialect) {
  const ask = (event: EventBytes) => screenEventInWorker(rules, event, { places, values }, IN_PROCESS);
  return { node: placeNodes(places).event, ask };
}

/** A Responses stream with one item, which is said whole. */
async function screenedItem(compiled: CompiledPolicy, output: string): Promise<{ screen: StreamScreen }> {
  const { node, ask } = partsOf(compiled, responses);
  const screen = new StreamScreen({ compiled, stage: 'output', placeholders: null, values: null }, node);
  const event = { type: 'response.output_item.done', output_index: 0, item: { type: 'mcp_call', id: 'c', output } };
  screen.feed(Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`), () => true);
  if (screen.large !== null) await screen.takeLarge(await ask(screen.large));
  if (screen.endedBy === null) screen.end(true);
  return { screen };
}

function screenStream(dialect: Dialect, pieces: readonly Buffer[]): { stream: Buffer; screen: StreamScreen } {
  const screen = new StreamScreen(
    { compiled, stage: 'output', placeholders: null, values },
    placeNodes(dialect.texts).event,
  );
  const out = pieces.flatMap((piece) => screen.feed(piece, () => true));
  out.push(...screen.end(true));
  return { stream: Buffer.concat(out), screen };
}

function screenWhole(lanes: readonly Lane[]): { texts: Map<string, string>; report: unknown } {
  const choices = [...new Set(lanes.map(({ choice }) => choice))].map((choice) => ({
    index: choice,
    message: {
      content: lanes.find((lane) => lane.choice === choice && lane.tool === null)?.text ?? '',
      tool_calls: lanes
        .filter((lane) => lane.choice === choice && lane.tool !== null)
        .map(({ tool, text }) => ({ index: tool, function: { arguments: text } })),
    },
  }));
  const body = Buffer.from(JSON.stringify({ choices }));
  const screen = new BodyScreen({ compiled, stage: 'output', placeholders: null, values });
  screen.json(body, 0, body.length, placeNodes(chatCompletions.texts).reply);
  const { edits, tally } = screen.result();
  const changed = JSON.parse(Buffer.concat(applyEdits(body, edits)).toString()) as { choices: typeof choices };
  const texts = new Map<string, string>();
  for (const { index, message } of changed.choices) {
    texts.set(`${index}`, message.content);
    for (const call of message.tool_calls) texts.set(`${index} ${call.index}`, call.function.arguments);
  }
  return { texts, report: tally.report() };
}

describe(`screened streams (TEST_SEED=${SEED})`, () => {
  test(`${ROUNDS} streams of chunks say what the whole texts say`, () => {
    let changed = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const random = seededRandom(SEED + round);
      const lanes = lanesOf(random);
      const bytes = chatStream(lanes, random);
      const split =
        round % 3 === 0
          ? ({ kind: 'each_byte' } as const)
          : ({ kind: 'random', seed: SEED + round, bytesMax: 200 } as const);
      const { stream, screen } = screenStream(chatCompletions, splitBytes(bytes, split));
      const whole = screenWhole(lanes);
      const given = chatTexts(stream);
      for (const [key, text] of whole.texts) assert.equal(given.get(key) ?? '', text, `round ${round}, text ${key}`);
      assert.deepEqual(
        screen.tally
          .report()
          .findings?.map(({ count }) => count)
          .sort(),
        (whole.report as { findings?: { count: number }[] }).findings?.map(({ count }) => count).sort(),
      );
      if (screen.tally.report().findings === undefined) continue;
      changed += 1;
    }
    assert.ok(changed > ROUNDS / 3);
  });

  test('deltas that nobody knows are a text that grows', () => {
    const ofResponses = (delta: string) => ({
      type: 'response.apply_patch_call_operation_diff.delta',
      output_index: 1,
      delta,
    });
    const ofMessages = (said: string) => ({
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'new_delta', said },
    });
    for (const [dialect, eventOf, told] of [
      [responses, ofResponses, /"delta":("(?:[^"\\]|\\.)*")/g],
      [messages, ofMessages, /"said":("(?:[^"\\]|\\.)*")/g],
    ] as const) {
      const bytes = ['+ ada@ac', 'me.te', 'st\n'].map((text) =>
        Buffer.from(`data: ${JSON.stringify(eventOf(text))}\n\n`),
      );
      const given = screenStream(dialect, bytes).stream.toString().matchAll(told);
      assert.equal([...given].map(([, text]) => String(JSON.parse(text ?? ''))).join(''), '+ [person "x"]\n');
    }
  });

  test('data is found behind a byte order mark and behind carriage returns, as clients find it', () => {
    const data = 'data: {"choices":[{"index":0,"delta":{"content":"ada@acme.test"}}]}';
    for (const text of [
      `\ufeff${data}\n\n`,
      `: hi\r${data}\n\n`,
      `event: x\r${data}\r\n\r\n`,
      `\ufeff: hi\r${data}\r\r`,
      `${data}\r: hi\n\n`,
    ]) {
      const { stream, screen } = screenStream(chatCompletions, [Buffer.from(text)]);
      assert.equal(screen.tally.report().action, 'masked', JSON.stringify(text));
      assert.equal(stream.toString(), text.replace('ada@acme.test', '[person \\"x\\"]'));
    }
  });

  test('thinking in blocks of a chat stream is a text that grows, which is not rewritten', () => {
    const thoughts = {
      thinking_blocks: (text: string) => ({ thinking_blocks: [{ type: 'thinking', thinking: text, signature: '' }] }),
      content: (text: string) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }),
    };
    for (const deltaOf of Object.values(thoughts)) {
      const pieces = ['they are ada@ac', 'me.te', 'st, so'].map((text) =>
        Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: deltaOf(text) }] })}\n\n`),
      );
      const { screen } = screenStream(chatCompletions, pieces);
      assert.deepEqual([screen.endedBy, screen.tally.blocked?.entity], ['finding', 'email']);
    }
  });

  for (const onFailure of ['refuse', 'pass'] as const)
    test(`large events behind a text that is held wait in a room that has an end: ${onFailure}`, async () => {
      const held = compilePolicy([policyOf([ruleOf({ detect: ['email'] })], { onFailure })], 'chat_completions');
      assert.ok(held !== null);
      const eventOf = (index: number, content: string): Buffer =>
        Buffer.from(`data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`);
      const large = eventOf(1, 'a word, '.repeat(131_072));
      const small = eventOf(1, 'a word, '.repeat(3_000));
      for (const [read, mostBytes] of [
        [large, 8_388_608 + large.length],
        [Buffer.concat([small, eventOf(1, 'a word, '.repeat(5_000))]), 65_536 + 70_000],
      ] as const) {
        const { node, ask } = partsOf(held, chatCompletions);
        const screen: StreamScreen = new StreamScreen(
          { compiled: held, stage: 'output', placeholders: null, values: null },
          node,
        );
        let waiting = 0;
        const take = async (bytes: Buffer): Promise<void> => {
          waiting += bytes.length;
          let pieces: readonly Buffer[] = screen.feed(bytes, () => true);
          for (;;) {
            waiting -= pieces.reduce((sum, piece) => sum + piece.length, 0);
            if (screen.large === null || screen.endedBy !== null) return;
            pieces = await screen.takeLarge(await ask(screen.large));
          }
        };
        await take(eventOf(0, 'to ada@'));
        for (let reads = 0; reads < 10 && screen.endedBy === null; reads += 1) {
          await take(read);
          if (screen.endedBy === null) assert.ok(waiting <= mostBytes, `${waiting} bytes wait after ${reads} reads`);
        }
        assert.equal(screen.endedBy, onFailure === 'refuse' ? 'unscreened' : null);
        assert.deepEqual(screen.tally.report().not_scanned, ['too_large']);
      }
    });

  for (const onFailure of ['refuse', 'pass'] as const)
    test(`an event in which more is found than may be was not screened: ${onFailure}`, async () => {
      const masking = compilePolicy([policyOf([ruleOf({ detect: ['email'] })], { onFailure })], 'responses');
      assert.ok(masking !== null);
      const { screen } = await screenedItem(masking, 'ada@acme.test '.repeat(11_000));
      assert.equal(screen.endedBy, onFailure === 'refuse' ? 'unscreened' : null);
      assert.deepEqual(screen.tally.report().not_scanned, ['too_large']);
    });

  for (const onFailure of ['refuse', 'pass'] as const)
    test(`a text of an event that no detector is asked about counts as no answer: ${onFailure}`, async () => {
      const asked = { name: 'ner', shape: 'webhook', url: 'https://ner.test/', secret: null } as const;
      const terms = { deadlineMs: 800, onFailure, output: 'whole', model: null, language: 'en' } as const;
      const externals = [{ ...asked, ...terms }];
      const asking = ruleOf({ action: 'flag', external: { name: 'ner', entities: null, minScore: 0.5 } });
      const policy = policyOf([asking], { id: `asking-${onFailure}`, onFailure: 'pass', externals });
      const compiled = compilePolicy([policy], 'responses');
      assert.ok(compiled !== null);
      const { screen } = await screenedItem(compiled, 'a word, '.repeat(9_000));
      screen.takeVerdicts({ verdicts: new Map(), silent: [] });
      assert.equal(screen.endedBy, onFailure === 'refuse' ? 'unscreened' : null);
      assert.deepEqual(screen.tally.report().not_scanned, ['external']);
    });

  test('of a detector that is asked behind a stream and one that holds it, only the latter can refuse it', async () => {
    const asked = { shape: 'webhook', url: 'https://ner.test/', secret: null } as const;
    const terms = { deadlineMs: 800, model: null, language: 'en' } as const;
    const behind: External = { ...asked, ...terms, name: 'behind', onFailure: 'refuse', output: 'after' };
    const holding: External = { ...asked, ...terms, name: 'holding', onFailure: 'pass', output: 'whole' };
    const rules = ['behind', 'holding'].map((name) =>
      ruleOf({ id: name, action: 'flag', external: { name, entities: null, minScore: 0.5 } }),
    );
    for (const [silent, held, endedBy] of [
      [behind, holding, null],
      [holding, holding, null],
      [behind, { ...holding, onFailure: 'refuse' }, null],
      [{ ...holding, onFailure: 'refuse' }, { ...holding, onFailure: 'refuse' }, 'unscreened'],
    ] as const) {
      const externals = [behind, held];
      const id = `beside-${held.onFailure}`;
      const compiled = compilePolicy([policyOf(rules, { id, onFailure: 'pass', externals })], 'responses');
      assert.ok(compiled !== null);
      const { screen } = await screenedItem(compiled, 'a word');
      screen.takeVerdicts({ verdicts: new Map(), silent: [silent] });
      assert.equal(screen.endedBy, endedBy);
      assert.deepEqual(screen.tally.report().not_scanned, ['external']);
    }
  });

  test('what is found as too much waits is blocked all the same', () => {
    const blocking = compiledPassing(ruleOf({ action: 'block', detect: ['email'] }));
    const { node } = partsOf(blocking, chatCompletions);
    const screen = new StreamScreen({ compiled: blocking, stage: 'output', placeholders: null, values: null }, node);
    const eventOf = (index: number, content: string): string =>
      `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`;
    const read = eventOf(0, 'to ada@acme.test') + eventOf(1, 'a word, '.repeat(3_000)).repeat(3);
    const passed = Buffer.concat(screen.feed(Buffer.from(read), () => true)).length;
    assert.deepEqual([passed, screen.endedBy], [0, 'finding']);
  });

  for (const [dialect, format] of [
    [chatCompletions, 'chat'],
    [responses, 'responses'],
    [messages, 'messages'],
  ] as const) {
    const exchanges = loadRecordedExchanges(format).filter(({ stream, status }) => stream && status < 300);
    test(`${exchanges.length} recorded ${format} streams pass byte for byte where nothing is found`, async () => {
      const nothing = compiledPassing(
        ruleOf({ id: 'never', action: 'block', words: ['zzqqzzqqzz'], detect: ['email', 'iban', 'jwt'] }),
      );
      const { node, ask } = partsOf(nothing, dialect);
      for (const [index, { responseBody, name }] of exchanges.entries()) {
        for (const split of [{ kind: 'whole' }, { kind: 'random', seed: SEED + index, bytesMax: 700 }] as const) {
          const screen = new StreamScreen({ compiled: nothing, stage: 'output', placeholders: null, values }, node);
          const out: Buffer[] = [];
          const pass = async (pieces: readonly Buffer[]): Promise<void> => {
            out.push(...pieces);
            while (screen.isWaiting) {
              const { large } = screen;
              const passed = large === null ? screen.goOn(() => true) : screen.takeLarge(await ask(large));
              out.push(...(await passed));
            }
          };
          for (const piece of splitBytes(responseBody, split)) await pass(screen.feed(piece, () => true));
          await pass(screen.end(true));
          if (screen.tally.blocked !== null) continue;
          assert.equal(screen.endedBy, null, name);
          assert.ok(Buffer.concat(out).equals(responseBody), `${name}: other bytes`);
        }
      }
    });
  }
});
