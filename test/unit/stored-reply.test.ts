// The ids of a reply's items, read from streams in whatever pieces they come, and from documents.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KeptReply } from '../../src/generation/dialects/dialect.ts';
import { StoredReply } from '../../src/generation/sse/stored-reply.ts';

const ITEMS = [
  { id: 'rs_1', type: 'reasoning', summary: [] },
  {
    id: 'fc_1',
    type: 'function_call',
    call_id: 'call_1',
    name: 'f',
    arguments: '{"id":"fc_no","item":{"id":"fc_no"}}',
  },
  {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'event: response.output_item.added "id":"msg_no"' }],
  },
];
const IDS = ITEMS.map(({ id }) => id);
/** What callers write comes back in replies. */
const ECHO = {
  instructions:
    '\n\nevent: response.output_item.added\ndata: {"type":"response.output_item.added","item":{"id":"msg_no"}}\n\n',
  tools: [
    { id: 'msg_no', type: 'function', parameters: { type: 'response.output_item.added', item: { id: 'msg_no' } } },
  ],
  metadata: { id: 'msg_no', output: '[{"id":"msg_no"}]' },
};

function responseOf(output: readonly object[]): object {
  return { id: 'resp_1', object: 'response', ...ECHO, output, usage: { output_tokens: 3 } };
}

function eventOf(type: string, members: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 1, ...members })}\n\n`;
}

const END = eventOf('response.completed', { response: responseOf(ITEMS) });
const STREAM = [
  eventOf('response.created', { response: responseOf([]) }),
  ...ITEMS.flatMap((item, index) => [
    eventOf('response.output_item.added', { output_index: index, item: { ...item, summary: undefined, content: [] } }),
    eventOf('response.output_text.delta', { item_id: 'msg_no', delta: ECHO.instructions }),
    eventOf('response.output_item.done', { output_index: index, item }),
  ]),
].join('');

function idsIn(pieces: readonly Buffer[], kept?: Partial<KeptReply>): readonly string[] {
  const items = new StoredReply();
  for (const piece of pieces) items.feed(piece);
  const all = Buffer.concat(pieces);
  return items.read({ beginning: all, end: all, cut: false, ...kept }).itemIds;
}

/** Nothing of the stream is kept. */
const NOTHING_KEPT = { beginning: Buffer.from('event: x'), end: Buffer.alloc(0) };

describe('of a stream', () => {
  test('are read from its events, cut in two anywhere, whatever is kept of it', () => {
    for (const text of [
      STREAM,
      STREAM.replaceAll('\n', '\r\n'),
      STREAM.replace(/^event: .*\n/gm, ''),
      STREAM.replaceAll(': ', ':'),
    ]) {
      const bytes = Buffer.from(text);
      for (let at = 0; at <= bytes.length; at++)
        assert.deepEqual(idsIn([bytes.subarray(0, at), bytes.subarray(at)], NOTHING_KEPT), IDS, `cut at ${at}`);
      assert.deepEqual(
        idsIn(
          Array.from(bytes, (byte) => Buffer.of(byte)),
          NOTHING_KEPT,
        ),
        IDS,
        'byte by byte',
      );
    }
  });

  test('are read from its last event where no others tell them', () => {
    const sorted = `data: ${JSON.stringify({ response: responseOf(ITEMS), type: 'response.completed' })}\n\ndata: [DONE]\n\n`;
    for (const text of [`: x\n${END}`, `: x\n${sorted}`, `: x\n${END.trimEnd()}`])
      assert.deepEqual(idsIn([Buffer.from(text)]), IDS, text);
  });

  test('are not read from a last event whose beginning is not kept', () => {
    const bytes = Buffer.from(`: x\n${END}`);
    const data = bytes.indexOf('data:');
    for (let at = data; at <= bytes.length; at++)
      assert.deepEqual(idsIn([bytes], { end: bytes.subarray(at) }), [], `kept from ${at}`);
  });

  test('are read where the id stands behind what is empty at first, and nowhere that a caller or a model can write', () => {
    const late = { arguments: '', call_id: 'call_1', name: 'f', type: 'function_call', id: 'fc_late' };
    const added = `event: response.output_item.added\ndata: ${JSON.stringify({ item: late, output_index: 0, type: 'response.output_item.added' })}\n\n`;
    const bytes = Buffer.from(added);
    for (let at = 0; at <= bytes.length; at++)
      assert.deepEqual(idsIn([bytes.subarray(0, at), bytes.subarray(at)], NOTHING_KEPT), ['fc_late']);
    for (const text of [
      eventOf('response.created', { response: responseOf([]) }),
      eventOf('response.created', { response: responseOf([]) }).replaceAll('"', "'"),
      'data: {"x":1} event: response.output_item.added\ndata: {"item":{"id":"msg_no"}}\n\n',
      ': event: response.output_item.added\ndata: {"item":{"id":"msg_no"}}\n\n',
    ]) {
      const created = Buffer.from(text);
      for (let at = 0; at <= created.length; at++) {
        assert.deepEqual(idsIn([created.subarray(0, at), created.subarray(at)], NOTHING_KEPT), [], `${at} of ${text}`);
      }
    }
  });

  test('are bounded in number and length, and visible ASCII', () => {
    const added = (id: unknown): string => eventOf('response.output_item.added', { item: { id } });
    const many = Array.from({ length: 100 }, (_, index) => added(`msg_${index}`)).join('');
    assert.equal(idsIn([Buffer.from(many)], NOTHING_KEPT).length, 64);
    const odd = ['', 'a b', 'é', 'a"b', 'a\\b', 'x'.repeat(129), 5, null, { id: 'x' }, 'x'.repeat(128)];
    assert.deepEqual(idsIn([Buffer.from(odd.map(added).join(''))], NOTHING_KEPT), ['x'.repeat(128)]);
  });
});

describe('of a document', () => {
  test('are read, and of one that is cut anywhere those that are there', () => {
    for (const text of [JSON.stringify(responseOf(ITEMS)), JSON.stringify(responseOf(ITEMS), null, 2)]) {
      const bytes = Buffer.from(text);
      assert.deepEqual(idsIn([bytes]), IDS);
      for (let at = 0; at < bytes.length; at++) {
        const ids = idsIn([bytes.subarray(0, at)], { cut: true });
        assert.deepEqual(ids, IDS.slice(0, ids.length), `cut at ${at}`);
      }
    }
  });

  test('are none in a document of another form', () => {
    for (const text of [
      '{}',
      '{"output":null}',
      '{"output":{"id":"msg_no"}}',
      '{"output":[[{"id":"msg_no"}],"x",5]}',
      '{"x":{"output":[{"id":"msg_no"}]}}',
      '[]',
      '',
    ]) {
      assert.deepEqual(idsIn([Buffer.from(text)]), [], text);
    }
  });
});
