// Spec 4.11: a conversation is recognized by its session alone, whatever its client still sends of the history; the
// side requests of agents, which share the session, do not take it over.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { ModelRoute } from '../../src/domain/routing/model-route.ts';
import { recordedRequest } from '../support/conversations.ts';
import {
  ROUTING_KEYS,
  type RoutedCall,
  type RoutingInstallation,
  startRoutingInstallation,
} from '../support/routing-installation.ts';
import { assistant, judged, LIGHT, type Message, STRONG, user } from '../support/routing-messages.ts';

type Headers = Readonly<Record<string, string>>;

const WRONG = `That is wrong. ${LIGHT}${judged('correction=0.9')}`;
const TOOLS = [{ type: 'function', function: { name: 'run', parameters: { type: 'object' } } }];
const CALL = { id: 'call_1', type: 'function', function: { name: 'run', arguments: '{}' } };
const LOOP = [
  { role: 'assistant', content: null, tool_calls: [CALL] },
  { role: 'tool', tool_call_id: 'call_1', content: 'done' },
];

let routing: RoutingInstallation;
before(async () => {
  routing = await startRoutingInstallation({ clickhouse: 'away' });
});
after(() => routing?.stop());

async function route(call: RoutedCall): Promise<ModelRoute & { readonly model: string | null }> {
  const answer = await routing.ask({ key: ROUTING_KEYS.free, ...call });
  assert.equal(answer.status, 200, answer.body);
  return { ...(await routing.routeOf(answer.executionId)), model: answer.model };
}

const chat = (headers: Headers, messages: readonly Message[], more: object = {}) =>
  route({ headers, body: { messages, ...more } });

function previousOf({ previous_model, previous_tier }: ModelRoute): unknown[] {
  return [previous_model, previous_tier];
}

describe('a session is one conversation', () => {
  const opening = `What is the capital of Australia? ${LIGHT}`;
  const answered = [user(opening), assistant('Sydney.')];
  const histories: readonly [string, RoutedCall['api'], object][] = [
    ['whole', 'chat_completions', { messages: [...answered, user(WRONG)] }],
    ['cut: the latest message alone', 'chat_completions', { messages: [user(WRONG)] }],
    ['cut: its beginning is gone', 'chat_completions', { messages: [assistant('Sydney.'), user(WRONG)] }],
    [
      'compacted into another first message',
      'chat_completions',
      { messages: [user('Summary of what was said: capitals.'), assistant('Understood.'), user(WRONG)] },
    ],
    [
      'compacted into a system prompt',
      'chat_completions',
      { messages: [{ role: 'system', content: 'So far: capitals.' }, user(WRONG)] },
    ],
    ['kept by the server', 'responses', { input: WRONG }],
    ['cut, on another API', 'messages', { messages: [user(WRONG)] }],
  ];
  for (const [title, api, body] of histories) {
    test(`history ${title}: the turn before is remembered, and a correction of it starts above`, async () => {
      const headers = { 'x-session-id': randomUUID() };
      assert.equal((await chat(headers, [user(opening)])).model, 'sim/small');
      const found = await route({ api: api as NonNullable<RoutedCall['api']>, headers, body });
      assert.deepEqual(
        [found.reason, found.tier, found.correction, ...previousOf(found), found.cached],
        ['correction_escalated', 'strong', true, 'sim/small', 'light', false],
      );
    });
  }

  test('a long one stays on its model for its prompt cache when its history is kept elsewhere', async () => {
    const body = { prompt_cache_key: randomUUID() };
    const long = `Here is a book: ${'words and words '.repeat(6_000)}${STRONG}`;
    assert.equal((await chat({}, [user(long)], body)).model, 'sim/large');
    const next = await chat({}, [user(`${'and more words '.repeat(6_000)}${LIGHT}`)], body);
    assert.deepEqual([next.model, next.sticky, ...previousOf(next)], ['sim/large', true, 'sim/large', 'strong']);
    const compacted = await chat({}, [user(`Thank you. ${LIGHT}`)], body);
    assert.deepEqual([compacted.model, compacted.sticky], ['sim/small', false]);
  });

  test('a turn stays on its model when its history is cut while it works', async () => {
    const headers = { 'x-session-id': randomUUID() };
    const first = await chat(headers, [...answered, user(`Then list the rivers. ${STRONG}`)]);
    const cut = [user(`Then list the rivers. ${STRONG}`), ...LOOP];
    const bodies: readonly [string, readonly Message[]][] = [
      ['cut before its message', cut],
      ['its message cut, too', LOOP],
    ];
    for (const [title, messages] of bodies) {
      const found = await chat(headers, messages);
      assert.deepEqual([found.model, found.cached, found.turn], ['sim/large', true, first.turn], title);
    }
    const result = [{ type: 'function_call_output', call_id: 'call_1', output: 'done' }];
    const kept = await route({ api: 'responses', headers, body: { input: result } });
    assert.deepEqual([kept.model, kept.cached, kept.reason], ['sim/large', true, 'classified']);
  });

  const said = `Count the rivers ${STRONG}`;
  const blocks: readonly [string, readonly Message[]][] = [
    ['a reminder in its line', [user(`${said}<system-reminder>secret</system-reminder>`)]],
    ['an environment in its line', [user(`<env>secret</env>${said}`)]],
    [
      'a message of nothing else',
      [user(said), ...LOOP, user('<env>secret</env> <system-reminder>b</system-reminder>')],
    ],
  ];
  for (const [title, messages] of blocks) {
    test(`${title}: the turn is the same, and the classifier hears nothing of it`, async () => {
      const headers = { 'x-session-id': randomUUID() };
      const before = routing.judged().length;
      await chat(headers, messages);
      assert.deepEqual([(await chat(headers, [user(said)])).cached], [true]);
      const [asked, ...more] = routing.judged().slice(before);
      assert.equal(more.length, 0);
      assert.deepEqual((JSON.parse(String(asked?.body)) as { state: object }).state, { latest_message: said });
    });
  }

  test('without a session the first message names it', async () => {
    const first = `${randomUUID()} is what this is about. ${LIGHT}`;
    await chat({}, [user(first)]);
    const messages = [user(first), assistant('Yes?'), user(`Go on then. ${STRONG}`)];
    assert.deepEqual(previousOf(await chat({}, messages)), ['sim/small', 'light']);
    assert.deepEqual(previousOf(await chat({}, messages.slice(2))), [undefined, undefined]);
  });
});

describe('side requests of a session do not take it over', () => {
  const prompt = { role: 'system', content: 'You are an agent that repairs programs.' };
  const first = `Please repair the parser. ${LIGHT}`;
  const sides: readonly [string, Headers, readonly Message[], object][] = [
    ['a title, asked in the agent’s words', {}, [user(`Generate a title for this conversation:\n${STRONG}`)], {}],
    ['a title of the same words, without tools', {}, [{ role: 'system', content: 'Title it.' }, user(WRONG)], {}],
    ['a summary, without tools', {}, [user(first), assistant('Done.'), user(`Summarize this. ${STRONG}`)], {}],
    ['a subagent with tools', { 'x-claude-code-agent-id': 'a1' }, [user(`Search. ${STRONG}`)], { tools: TOOLS }],
    [
      'a subagent that only its prompt tells',
      {},
      [{ role: 'system', content: 'You search files.' }, user(`Search. ${STRONG}`)],
      { tools: TOOLS },
    ],
  ];
  for (const [title, more, messages, fields] of sides) {
    for (const kept of ['whole', 'cut'] as const) {
      test(`${title}; the history of the main loop ${kept}`, async () => {
        const headers = { 'x-session-id': randomUUID() };
        await chat(headers, [prompt, user(first)], { tools: TOOLS });
        const side = await chat({ ...headers, ...more }, messages, fields);
        // A summary shows the history that it belongs to; nothing but its prompt tells the last one.
        if (!/summary|only its prompt/.test(title)) assert.deepEqual(previousOf(side), [undefined, undefined]);
        const history = kept === 'whole' ? [user(first), assistant('Done.')] : [];
        const next = await chat(headers, [prompt, ...history, user(WRONG)], { tools: TOOLS });
        assert.deepEqual(
          [next.cached, next.reason, ...previousOf(next)],
          [false, 'correction_escalated', 'sim/small', 'light'],
        );
      });
    }
  }

  test('a turn keeps its model when its last request offers no tools', async () => {
    const headers = { 'x-session-id': randomUUID() };
    const begun = await chat(headers, [user(`Do it. ${STRONG}`)], { tools: TOOLS });
    const last = await chat(headers, [user(`Do it. ${STRONG}`), ...LOOP]);
    assert.deepEqual([last.model, last.cached], [begun.model, true]);
  });

  const title = recordedRequest('opencode-1.18-title-side-request');
  test('opencode’s title, as it was recorded', { skip: title === null && 'the recordings are not there' }, async () => {
    const main = recordedRequest('opencode-1.18-main') ?? assert.fail();
    const headers = { 'x-session-id': randomUUID() };
    const ask = ({ body }: { readonly body: object }) =>
      route({ headers, body: { ...body, model: 'service/auto', stream: false, stream_options: undefined } });
    const asked = await ask(title ?? assert.fail());
    const begun = await ask(main);
    assert.deepEqual([begun.cached, ...previousOf(begun)], [false, undefined, undefined]);
    assert.notEqual(begun.conversation, asked.conversation);
    assert.equal(begun.session, asked.session);
    const messages = main.body['messages'] as Message[];
    const next = [...messages, assistant('Hello.'), user(`That is wrong. ${LIGHT}`)];
    const found = await ask({ body: { ...main.body, messages: next } });
    assert.deepEqual(previousOf(found), [begun.model, begun.tier]);
  });
});
