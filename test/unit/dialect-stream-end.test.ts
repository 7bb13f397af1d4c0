// The end of a stream as its clients see it: found at the terminal event however the bytes are split, and never where
// somebody wrote the same words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chatCompletions } from '../../src/generation/dialects/chat-completions.ts';
import type { Dialect } from '../../src/generation/dialects/dialect.ts';
import { messages } from '../../src/generation/dialects/messages.ts';
import { responses } from '../../src/generation/dialects/responses.ts';
import { splitBytes } from '../support/byte-splits.ts';

/**
 * `^` stands where the stream begins to end, `$` where it is over; each before the byte that shows it. Neither: it
 * never ends.
 */
interface Case {
  readonly name: string;
  readonly dialect: Dialect;
  readonly stream: string;
  readonly endedBy?: string;
}

const DELTA = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"word"}\n\n';

const CASES: readonly Case[] = [
  { name: 'chat', dialect: chatCompletions, stream: 'data: {"a":1}\n\ndata: [DONE^$]\n\n', endedBy: '[DONE]' },
  {
    name: 'chat without a space, in CRLF',
    dialect: chatCompletions,
    stream: 'data:{"a":[1]}\r\n\r\ndata:[DONE^$]\r\n\r\n',
    endedBy: '[DONE]',
  },
  {
    name: 'chat with comments',
    dialect: chatCompletions,
    stream: ': hi\n\ndata: {"a":1}\n\n: [DONE]\n\ndata: [DONE^$]\n\n: bye',
    endedBy: '[DONE]',
  },
  {
    name: 'chat whose text says so',
    dialect: chatCompletions,
    stream: 'data: {"content":"[DONE]"}\n\ndata: {"content":"\\ndata: [DONE]\\n"}\n\n',
  },
  {
    name: 'responses',
    dialect: responses,
    stream: `${DELTA}event: response.completed^\ndata: {"type":"response.completed","response":{}}\n$\n`,
    endedBy: 'response.completed',
  },
  {
    name: 'responses cut short by its limit',
    dialect: responses,
    stream: `${DELTA}event:response.incomplete^\ndata: {}\n$\n`,
    endedBy: 'response.incomplete',
  },
  {
    name: 'responses in CRLF',
    dialect: responses,
    stream: 'event: response.failed^\r\ndata: {}\r\n\r$\n',
    endedBy: 'response.failed',
  },
  {
    name: 'responses without event lines',
    dialect: responses,
    stream: 'data: {"type":"response.created"}\n\ndata: {"type":"response.completed^","response":{"a":"b"}}\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses with a key of four letters before the type',
    dialect: responses,
    stream: 'data: {"text":"as long as what decides most lines","type":"response.completed^","response":{}}\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses spaced out',
    dialect: responses,
    stream: 'data:  { "type" : "response.completed^", "response": {} }\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses with a number before the type, as xAI writes them',
    dialect: responses,
    stream:
      'data: {"sequence_number":26,"type":"response.in_progress"}\n\ndata: ' +
      '{"sequence_number":27,"final":true,"type":"response.completed^","response":{}}\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses sorted by key, as GitHub writes them',
    dialect: responses,
    stream:
      'data: {"response":{"id":"a"},"sequence_number":0,"type":"response.created"}\n\ndata: ' +
      '{"response":{"id":"a"},"type":"response.completed^"}\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses sorted by key, with spaces and CRLF',
    dialect: responses,
    stream: 'data: {"response": {"id": "a"}, "type": "response.incomplete^"}\r\n\r$\n',
    endedBy: 'response.incomplete',
  },
  {
    name: 'responses with the type between other keys',
    dialect: responses,
    stream:
      'data: {"a":"x","type":"response.created","user":"type"}\n\ndata: ' +
      '{"response":{"type":"y"},"type":"response.completed^","user":"z"}\n$\n',
    endedBy: 'response.completed',
  },
  {
    name: 'responses that fail: the error is the end',
    dialect: responses,
    stream: 'event: error^\ndata: {"type":"error","code":"x"}\n$\nevent: response.failed\ndata: {}\n\n',
    endedBy: 'error',
  },
  {
    name: 'responses that only say [DONE]',
    dialect: responses,
    stream: `${DELTA}data: [DONE^$]\n\n`,
    endedBy: '[DONE]',
  },
  {
    name: 'responses that quote the end',
    dialect: responses,
    stream: [
      'data: {"type":"response.created","response":{"metadata":{"type":"response.completed"}}}',
      'data: {"response":{"metadata":{"type":"response.completed"}},"type":"response.created"}',
      'data: {"metadata":{"type":"response.completed"}}',
      'data: {"type":"response.output_text.delta","delta":"\\n\\nevent: response.completed\\ndata: {}\\n\\n"}',
      'data: {"type":"response.output_text.delta","delta":"\\"type\\":\\"response.completed\\"}"}',
      'data: {"type":"response.completed.not"}',
      'event: response.completed.not',
      ': event: response.completed',
      'xevent: response.completed',
      'id: response.completed',
      `data: ${' '.repeat(300)}{"a":"response.completed"}`,
      'data: {"error":"error","type":"errors"}',
      '',
    ].join('\n\n'),
  },
  {
    name: 'messages',
    dialect: messages,
    stream:
      'event: message_start\ndata: {"type":"message_start"}\n\n: ping\n\nevent: message_stop^\ndata: ' +
      '{"type":"message_stop" }\n$\n',
    endedBy: 'message_stop',
  },
  {
    name: 'messages without event lines',
    dialect: messages,
    stream: 'data: {"type":"message_delta"}\n\ndata: {"type":"message_stop^"}\n$\n',
    endedBy: 'message_stop',
  },
  {
    name: 'messages that fail',
    dialect: messages,
    stream:
      'event: ping\ndata: {"type":"ping"}\n\nevent: error^\ndata: ' +
      '{"type":"error","error":{"type":"overloaded_error"}}\n$\n',
    endedBy: 'error',
  },
  {
    name: 'messages whose tool is called like the end',
    dialect: messages,
    stream:
      'event: content_block_start\ndata: {"type":"content_block_start",' +
      '"content_block":{"input":{"type":"message_stop"}}}\n\n',
  },
];

for (const { name, dialect, stream, endedBy } of CASES) {
  test(name, () => {
    const begins = stream.indexOf('^');
    const ends = stream.indexOf('$');
    const text = stream.replace('^', '').replace('$', '');
    const bytes = Buffer.from(text);
    const shownAt = begins === -1 ? Number.POSITIVE_INFINITY : begins;
    const overAt = ends === -1 ? Number.POSITIVE_INFINITY : ends - 1;
    const expected = (length: number): string => (length > overAt ? 'ended' : length > shownAt ? 'ending' : 'open');
    const feed = (chunks: readonly Buffer[]): void => {
      const watcher = dialect.watchStreamEnd();
      let length = 0;
      for (const chunk of chunks) {
        length += chunk.length;
        const progress = watcher.feed(chunk);
        assert.equal(progress, expected(length), `${JSON.stringify(text.slice(0, length))} in ${chunks.length} chunks`);
      }
      assert.equal(watcher.endedBy, endedBy ?? null);
    };
    feed([bytes]);
    feed(splitBytes(bytes, { kind: 'each_byte' }));
    for (let at = 1; at < bytes.length; at++) feed(splitBytes(bytes, { kind: 'two', at }));
    for (let seed = 0; seed < 40; seed++) feed(splitBytes(bytes, { kind: 'random', seed, bytesMax: 24 }));
  });
}

describe('a long terminal event', () => {
  const data = `{"type":"response.completed","response":{"instructions":"${'x'.repeat(400_000)}"}}`;
  const bytes = Buffer.from(`${DELTA}event: response.completed\ndata: ${data}\n\n`);

  test('ends at its blank line and not before, in pieces of any size', () => {
    for (const bytesMax of [3000, 70_000]) {
      const watcher = responses.watchStreamEnd();
      let length = 0;
      for (const chunk of splitBytes(bytes, { kind: 'random', seed: bytesMax, bytesMax })) {
        length += chunk.length;
        const progress = watcher.feed(chunk);
        if (length >= DELTA.length + 30) assert.equal(progress, length < bytes.length ? 'ending' : 'ended');
      }
    }
  });

  test('sorted by key it is told by its type at its end', () => {
    const sorted = Buffer.from(
      `data: {"response":{"instructions":"${'x'.repeat(400_000)}"},"type":"response.completed"}\n\n`,
    );
    for (const bytesMax of [5, 40, 3000, 70_000]) {
      const watcher = responses.watchStreamEnd();
      let progress = 'open';
      let length = 0;
      for (const chunk of splitBytes(sorted, { kind: 'random', seed: bytesMax, bytesMax })) {
        length += chunk.length;
        progress = watcher.feed(chunk);
        const isTold = length >= sorted.length - '}\n\n'.length - 1;
        if (length < sorted.length) assert.equal(progress, isTold ? 'ending' : 'open');
      }
      assert.equal(progress, 'ended');
    }
  });
});
