// The request scanner against JSON.parse: same verdict on every input, wherever the chunks are cut, and right
// positions.

import assert from 'node:assert/strict';
import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  RequestScanner,
  readInteger,
  readString,
  type ScannedRequest,
} from '../../src/generation/request/scan/request-scanner.ts';
import { ATTACHMENT_KEYS, CONTROL_KEYS, type ControlKey } from '../../src/generation/request/scan/scanned-keys.ts';
import { agentRequests } from '../support/agent-requests.ts';
import { sharedAssets } from '../support/shared-assets.ts';

const scanner = new RequestScanner();

/** Feeds the body cut at the given offsets. */
function scanCut(body: Buffer, cuts: readonly number[]): ScannedRequest {
  const scan = scanner.begin();
  let from = 0;
  for (const cut of [...cuts, body.length]) {
    if (!scan.feed(body.subarray(from, cut))) break;
    from = cut;
  }
  return scan.finish(body);
}

function parses(body: Buffer): boolean {
  if (!isUtf8(body)) return false;
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Everything a caller can see, in comparable form. */
function seen(request: ScannedRequest): unknown {
  const values = CONTROL_KEYS.map((key) => request.valueOf(key));
  return {
    fault: request.fault,
    faultOffset: request.faultOffset,
    faultKey: request.faultKey,
    attachments: request.attachments,
    values,
  };
}

function assertSameVerdict(body: Buffer, label: string): void {
  const whole = scanner.scan(body);
  if (whole.fault !== 'too_deep' && whole.fault !== 'duplicate_key' && whole.fault !== 'letter_case') {
    assert.equal(whole.fault === null, parses(body), `${label}: ${whole.fault} at ${whole.faultOffset}`);
  }
}

function assertSameAtEveryCut(body: Buffer, label: string): void {
  const whole = seen(scanner.scan(body));
  for (let cut = 0; cut <= body.length; cut++)
    assert.deepEqual(seen(scanCut(body, [cut])), whole, `${label}, cut at ${cut}`);
  if (body.length > 2000) return;
  const everyByte = Array.from(body.keys());
  assert.deepEqual(seen(scanCut(body, everyByte)), whole, `${label}, byte by byte`);
}

/** Puts any JSON text where a field's value stands, with a control field behind it. */
function asField(text: Buffer): Buffer {
  return Buffer.concat([Buffer.from('{"unknown":'), text, Buffer.from(',"model":"m"}')]);
}

// One row a category of the JSON parsing suite, for clones that do not have the suite.
// biome-ignore format: a table
const ACCEPTED = [
  '0', '-0', '-1', '12', '1.5', '-0.1', '1e3', '1E+3', '1e-03', '0e1', '0E0', '20e1', '123.456e78', '9007199254740993', '1e400', '-1e-400',
  'true', 'false', 'null', '""', '" "', '"a"', '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\u0000"', '"\\u00e9"', '"\\uD83D\\uDE00"', '"\\ud800"', '"\\udc00\\ud800"',
  '"é"', '"漢字"', '"\u{1f600}"', '"\u007f"', '"\u2028"', '"\u0080"', '"\ufeff"', '"\\\\"', '"\\\\\\\\\\""', '"/"', '[]', '[ ]', '[1]', '[1,2]', '[[],[[]]]', '[null,1,"1",{}]',
  '{}', '{ }', '{"a":1}', '{"":0}', '{"a":{"b":{}}}', '{"a":1,"a":2}', '{"a\\u0062":[]}', ' 1 ', '\t[\n1\r,\n2 ] ', '{ "a" : 1 , "b" : 2 }', `"${'x'.repeat(300)}"`,
  `"${'\\n'.repeat(100)}"`, `"${'\\\\'.repeat(100)}"`, `"x${'\\\\'.repeat(100)}"`, `"${'\\u00e9'.repeat(40)}"`,
];
// biome-ignore format: a table
const REJECTED = [
  '', ' ', '01', '-', '-01', '+1', '.5', '1.', '1.e3', '1e', '1e+', '1E-', '1ee3', '1.5.5', '0x1', '1a', '--1', '-a', '1 2', '00', 'Infinity', 'NaN', '-Infinity', '1_000',
  'tru', 'truE', 'True', 'fals', 'nul', 'nulll', 'truefalse', 'undefined', "'a'", '"', '"a', '"\\"', '"\\', '"\\a"', '"\\x41"', '"\\u"', '"\\u12"', '"\\u123"', '"\\u12g4"', '"\\uD83D\\u"',
  '"\\U0041"', '"\u0000"', '"\n"', '"\t"', '"\u001f"', '"a"b', '"a""b"', `"${'x'.repeat(70)}\n${'x'.repeat(70)}"`, `"${'x'.repeat(70)}\\q${'x'.repeat(70)}"`, `"${'\\\\'.repeat(50)}\\"`,
  '[', ']', '[1', '[1,', '[1,]', '[,1]', '[,]', '[1,,2]', '[1 2]', '["a":1]', '[}', '[1}', '[[]', '[]]', '(1)', '{', '}', '{"a"', '{"a":', '{"a":}', '{"a":1', '{"a":1,', '{"a":1,}', '{,}',
  '{,"a":1}', '{"a":1,,"b":2}', '{"a" 1}', '{"a"::1}', '{"a","b"}', '{a:1}', '{1:1}', "{'a':1}", '{null:1}', '{"a":1]', '{"a":1}}', '{"a":1 "b":2}', '{"a":/**/1}', '// a', '1 // a', '\u00a01', '\ufeff1',
  '\u000b1', '\f1', '*', '&', '<.>', '\\u0031', '[\u00a0]', 'é', '[1,\u0000]', '{"\n":1}', '{"\\x":1}', '{"a\\u00g":1}', ':', ',', '"a":"b"',
];

describe('request scanner grammar', () => {
  test('accepts every kind of value, whole and cut anywhere', () => {
    for (const text of ACCEPTED) {
      const body = asField(Buffer.from(text));
      assert.equal(scanner.scan(body).fault, null, text);
      assertSameVerdict(body, text);
      assertSameAtEveryCut(body, text);
    }
  });

  test('refuses every kind of mistake, whole and cut anywhere', () => {
    for (const text of REJECTED) {
      const body = asField(Buffer.from(text));
      assert.equal(scanner.scan(body).fault, 'invalid_json', text);
      assertSameVerdict(body, text);
      assertSameAtEveryCut(body, text);
    }
  });

  test('takes one object and nothing else', () => {
    for (const text of ['{}', ' {} ', '\r\n\t{"a":1}\n'])
      assert.equal(scanner.scan(Buffer.from(text)).fault, null, text);
    for (const text of ['[]', '"a"', '1', '-1', 'true', 'false', 'null', ' [{}]'])
      assert.equal(scanner.scan(Buffer.from(text)).fault, 'not_an_object', text);
    for (const text of ['', ' ', '{}{}', '{} x', '{},', '\ufeff{}', 'x', '}', ']', '{}\u0000']) {
      assert.equal(scanner.scan(Buffer.from(text)).fault, 'invalid_json', text);
      assertSameAtEveryCut(Buffer.from(text), text);
    }
  });

  test('every prefix of a body is refused at its end, or before', () => {
    const body = Buffer.from('{"model":"a\\u0041\\n","n":-1.5e+3,"x":[true,false,null,{"y":{}}]}');
    for (let length = 0; length < body.length; length++) {
      const result = scanner.scan(body.subarray(0, length));
      assert.equal(result.fault, 'invalid_json');
      assert.equal(result.faultOffset, length);
    }
  });

  test('says where the offending byte is', () => {
    const padding = 'x'.repeat(150);
    const cases: [string, number][] = [
      ['{"a":tru3}', 8],
      ['{"a":1,}', 7],
      [`{"a":"${padding}\n"}`, 156],
      [`{"a":"${padding}\\q"}`, 157],
      [`{"a":"${padding}\\u00g0"}`, 160],
      [`{"a":"${padding}\\q\n"}`, 157],
      [`{"a":"${padding}\n\\q"}`, 156],
      ['{"a":1.x}', 7],
      ['[1]', 0],
      ['{"a":[1}', 7],
    ];
    for (const [text, offset] of cases) {
      assert.equal(scanner.scan(Buffer.from(text)).faultOffset, offset, text);
      assertSameAtEveryCut(Buffer.from(text), text);
    }
  });

  test('256 levels pass, 257 do not', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const nested = (levels: number) =>
        Buffer.from(
          `{"x":${open.repeat(levels - 1)}${open === '[' ? '' : '1'}${close.repeat(levels - 1)},"model":"m"}`,
        );
      assert.equal(scanner.scan(nested(256)).fault, null);
      assert.notEqual(scanner.scan(nested(256)).valueOf('model'), null);
      assert.equal(scanner.scan(nested(257)).fault, 'too_deep');
      assertSameAtEveryCut(nested(256), 'depth 256');
      assertSameAtEveryCut(nested(257), 'depth 257');
    }
  });

  test('invalid UTF-8 is refused, and located', () => {
    for (const bytes of [
      [0xff],
      [0xc3],
      [0xe2, 0x82],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xc0, 0xaf],
      [0x80],
    ]) {
      for (const before of [0, 3, 17, 200]) {
        const body = Buffer.concat([
          Buffer.from(`{"a":"${'é'.repeat(before)}`),
          Buffer.from(bytes),
          Buffer.from(`${'é'.repeat(40)}"}`),
        ]);
        const result = scanner.scan(body);
        assert.equal(result.fault, 'invalid_utf8');
        assert.equal(result.faultOffset, 6 + before * 2);
        assertSameAtEveryCut(body, 'invalid UTF-8');
      }
    }
  });

  test('the suite of JSON parsing cases, each as the value of a field', (context) => {
    const folder = sharedAssets('json-test-suite', 'test_parsing');
    if (folder === null) return context.skip('the suite is not beside this repository');
    const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
    assert.ok(names.length > 300);
    for (const name of names) {
      const body = asField(readFileSync(join(folder, name)));
      const result = scanner.scan(body);
      // Two files are 100,000 brackets deep.
      if (name.startsWith('y_')) assert.equal(result.fault, null, name);
      if (name.startsWith('n_')) assert.notEqual(result.fault, null, name);
      assertSameVerdict(body, name);
      if (body.length < 10_000) assertSameAtEveryCut(body, name);
      assertSameVerdict(readFileSync(join(folder, name)), `${name} bare`);
    }
  });
});

describe('request scanner positions', () => {
  test('control fields of the outermost object are located, whatever surrounds them', () => {
    const texts: Record<string, string> = {
      messages: '[{"role":"user","content":"say \\"hi\\" \\\\","model":"inner"}]',
      model: '"gpt-5"',
      stream: 'true',
      store: 'false',
      n: '-1.5e3',
      max_tokens: '4096',
      stream_options: '{}',
      tools: '[]',
      metadata: '{"model":{"model":1}}',
      prompt: 'null',
      max_completion_tokens: '12',
      previous_response_id: '""',
      input: `"${'long text \\n '.repeat(30)}"`,
    };
    const kinds = {
      messages: 'array',
      model: 'string',
      stream: 'true',
      store: 'false',
      n: 'number',
      stream_options: 'object',
      tools: 'array',
      prompt: 'null',
    };
    for (const gap of ['', ' ', '\n    ']) {
      const fields = Object.entries(texts).map(([key, text]) => `${gap}"${key}"${gap}:${gap}${text}${gap}`);
      const body = Buffer.from(`{"before":[1,{"stream":1}],${fields.join(',')},"after":"x"}`);
      const result = scanner.scan(body);
      assert.equal(result.fault, null);
      for (const key of CONTROL_KEYS) {
        const value = result.valueOf(key);
        assert.equal(value === null ? undefined : body.toString('utf8', value.start, value.end), texts[key], key);
      }
      for (const [key, kind] of Object.entries(kinds)) assert.equal(result.valueOf(key as ControlKey)?.kind, kind);
      assertSameAtEveryCut(body, 'control fields');
    }
  });

  test('a control field that comes twice is refused, however it is spelt', () => {
    const spellings = ['"model"', '"\\u006dodel"', '"mode\\u006c"', '"\\u006D\\u006f\\u0064\\u0065\\u006C"'];
    for (const first of spellings) {
      for (const second of spellings) {
        const body = Buffer.from(`{${first}:"a","x":{"model":1},${second}:"b"}`);
        const result = scanner.scan(body);
        assert.equal(result.fault, 'duplicate_key');
        assert.equal(result.faultKey, 'model');
        assert.equal(result.faultOffset, body.lastIndexOf(second));
        assertSameAtEveryCut(body, `${first} ${second}`);
      }
    }
    for (const key of CONTROL_KEYS) {
      const escaped = Array.from(key, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join('');
      assert.equal(scanner.scan(Buffer.from(`{"${key}":1,"${escaped}":2}`)).faultKey, key);
      assert.deepEqual(scanner.scan(Buffer.from(`{"${escaped}":2}`)).valueOf(key)?.kind, 'number');
    }
  });

  test('keys that only resemble a control key are not it', () => {
    for (const key of [
      'model ',
      'mode',
      'modelz',
      'mod\\u00e9l',
      'model\\u0000',
      '\\nodel',
      'modél',
      'm\\\\odel',
      `model${'x'.repeat(200)}`,
      '\\u006d'.repeat(40),
      `${'\\u006d'.repeat(20)}x`,
    ]) {
      const body = Buffer.from(`{"${key}":1,"model":"m","${key}":2}`);
      const result = scanner.scan(body);
      assert.equal(result.fault, null, key);
      assert.equal(result.valueOf('model')?.kind, 'string');
      assertSameAtEveryCut(body, key);
    }
  });

  test('other keys may repeat, and nested control keys are data', () => {
    const body = Buffer.from('{"a":1,"a":2,"x":{"model":1,"model":2},"y":[{"model":3}],"model":"m"}');
    const result = scanner.scan(body);
    assert.equal(result.fault, null);
    assert.deepEqual(result.valueOf('model'), { start: body.length - 4, end: body.length - 1, kind: 'string' });
  });

  test('attachments are counted at any depth, also when spelt with escapes', () => {
    const nested = ATTACHMENT_KEYS.map((key) => `{"type":"x","${key}":{"${key}":1}}`).join(',');
    const body = Buffer.from(
      `{"model":"m","file":1,"messages":[{"content":[${nested},{"f\\u0069le":"image_url"},{"files":1}]}]}`,
    );
    assert.equal(scanner.scan(body).attachments, ATTACHMENT_KEYS.length * 2 + 2);
    assertSameAtEveryCut(body, 'attachments');
  });

  test('videos, recordings and documents by their address are attachments, as whichever provider writes them', () => {
    const parts = [
      '{"type":"video_url","video_url":{"url":"https://x.test/an-hour.mp4"}}',
      '{"type":"video","video":["https://x.test/1.png","https://x.test/2.png"]}',
      '{"type":"audio_url","audio_url":{"url":"https://x.test/a.mp3"}}',
      '{"type":"document_url","document_url":"https://x.test/a.pdf"}',
      '{"type":"input_file","input_file":{"data":"https://x.test/a.pdf"}}',
      '{"type":"input_video","input_video":{"data":"https://x.test/a.mp4"}}',
    ];
    const body = (content: string): Buffer =>
      Buffer.from(`{"model":"m","messages":[{"role":"user","content":[${content}]}]}`);
    for (const part of parts) assert.equal(scanner.scan(body(part)).attachments, 1, part);
  });

  test('bodies larger than the scratch area, in one chunk and in odd ones', () => {
    for (const filler of ['plain text ', 'line\\n\\t"quoted\\"'.replace('"q', '\\"q'), '\\\\', '\\u00e9', 'é', '漢']) {
      const body = Buffer.from(`{"messages":["${filler.repeat(Math.ceil(200_000 / filler.length))}"],"model":"m"}`);
      const whole = scanner.scan(body);
      assert.equal(whole.fault, null, filler);
      assert.deepEqual(whole.valueOf('model'), { start: body.length - 4, end: body.length - 1, kind: 'string' });
      for (const step of [65_535, 65_537, 4093, 61]) {
        const cuts = Array.from({ length: Math.floor(body.length / step) }, (_, index) => (index + 1) * step);
        assert.deepEqual(seen(scanCut(body, cuts)), seen(whole), `${filler} by ${step}`);
      }
    }
  });

  test('recorded request bodies of coding agents', (context) => {
    const requests = agentRequests();
    if (requests.length === 0) return context.skip('recordings are not beside this repository');
    for (const { name, body: recorded } of requests) {
      for (const text of [JSON.stringify(recorded), JSON.stringify(recorded, null, 2)]) {
        const body = Buffer.from(text);
        const result = scanner.scan(body);
        assert.equal(result.fault, null, name);
        for (const key of CONTROL_KEYS) {
          const value = result.valueOf(key);
          const expected: unknown = (recorded as Record<string, unknown>)[key];
          if (value === null) assert.equal(expected, undefined, `${name} ${key}`);
          else assert.deepEqual(JSON.parse(body.toString('utf8', value.start, value.end)), expected, `${name} ${key}`);
        }
        for (let cut = 0; cut < body.length; cut += 37) assert.deepEqual(seen(scanCut(body, [cut])), seen(result));
      }
    }
  });
});

// Keys and texts that lead into every branch more often than chance would.
const hotKey = fc.constantFrom(...CONTROL_KEYS, ...ATTACHMENT_KEYS, 'x', '', 'a'.repeat(33));
const hotText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 90 }),
  fc.string({ unit: fc.constantFrom('\\', '"', '\n', 'a', 'é', '\u0001', '😀', '\ud800'), maxLength: 150 }),
);
const json = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    hotText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(fc.oneof(hotKey, hotText), tie('value'), { maxKeys: 6 }),
})).object;
const cuts = fc.array(fc.nat(1000), { maxLength: 6 });
const runs = Number(process.env['FUZZ_RUNS'] ?? 1500);

/** Cuts given in thousandths of the body. */
function atOffsets(body: Buffer, thousandths: readonly number[]): number[] {
  return thousandths.map((part) => Math.floor((part * body.length) / 1000)).sort((a, b) => a - b);
}

describe('request scanner properties', () => {
  test('any object is accepted, its control fields found, however it is written and cut', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, 3, '\t'), fc.boolean(), cuts, (value, indent, ascii, parts) => {
        let text = JSON.stringify(value, null, indent);
        if (ascii)
          text = text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
        const body = Buffer.from(text);
        const result = scanCut(body, atOffsets(body, parts));
        assert.equal(result.fault, null);
        assert.deepEqual(seen(result), seen(scanner.scan(body)));
        for (const key of CONTROL_KEYS) {
          const found = result.valueOf(key);
          assert.equal(found !== null, Object.hasOwn(value, key));
          if (found === null) continue;
          const slice = body.toString('utf8', found.start, found.end);
          assert.equal(slice, slice.trim());
          assert.deepEqual(JSON.parse(slice), JSON.parse(JSON.stringify(value[key])));
          if (found.kind === 'string') assert.equal(readString(body, found), JSON.parse(slice));
        }
      }),
      { numRuns: runs },
    );
  });

  test('after any mutation the verdict is that of JSON.parse, however it is cut', () => {
    const mutation = fc.tuple(
      fc.nat(1000),
      fc.constantFrom('insert', 'replace', 'remove', 'cut'),
      fc.oneof(fc.constantFrom(...Buffer.from('"\\{}[],:0123456789.eE+-truefalsn \n\u0001')), fc.nat(255)),
    );
    fc.assert(
      fc.property(
        json,
        fc.array(mutation, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        cuts,
        (value, mutations, indented, parts) => {
          let body = Buffer.from(JSON.stringify(value, null, indented ? 2 : undefined));
          for (const [part, how, byte] of mutations) {
            const at = Math.floor((part * body.length) / 1000);
            const rest = how === 'insert' ? body.subarray(at) : how === 'cut' ? Buffer.alloc(0) : body.subarray(at + 1);
            body = Buffer.concat([
              body.subarray(0, at),
              Buffer.from(how === 'insert' || how === 'replace' ? [byte] : []),
              rest,
            ]);
          }
          assertSameVerdict(body, body.toString('latin1'));
          assert.deepEqual(seen(scanCut(body, atOffsets(body, parts))), seen(scanner.scan(body)));
        },
      ),
      { numRuns: runs * 2 },
    );
  });

  test('any string of tokens gets the verdict of JSON.parse', () => {
    const token = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"model"',
      '1',
      '-0',
      '0.5',
      '1e9',
      'true',
      'false',
      'null',
      ' ',
      '\n',
      '""',
      '"\\n"',
      '"a":',
      '"b":[',
      '"c":{',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), cuts, (tokens, parts) => {
        const body = Buffer.from(`{"a":${tokens.join('')}}`);
        assertSameVerdict(body, body.toString());
        assert.deepEqual(seen(scanCut(body, atOffsets(body, parts))), seen(scanner.scan(body)));
      }),
      { numRuns: runs * 2 },
    );
  });
});

describe('request scanner slots', () => {
  test('thousands of bodies can be under way at once and none disturbs another', () => {
    const own = new RequestScanner();
    const bodies = Array.from({ length: 5000 }, (_, index) =>
      Buffer.from(`{"model":"m${index}","x":"${'\\n'.repeat(index % 90)}","stream":${index % 2 === 0}}`),
    );
    const scans = bodies.map(() => own.begin());
    for (let step = 0; step < 20; step++) {
      for (const [index, body] of bodies.entries())
        scans[index]?.feed(
          body.subarray(Math.floor((body.length * step) / 20), Math.floor((body.length * (step + 1)) / 20)),
        );
    }
    assert.equal(own.active, 5000);
    for (const [index, body] of bodies.entries()) {
      const result = scans[index]?.finish(body);
      const model = result?.valueOf('model');
      assert.equal(result?.fault, null);
      assert.equal(model && readString(body, model), `m${index}`);
    }
    assert.equal(own.active, 0);
  });

  test('a slot returns on finish and on abandon, once', () => {
    const own = new RequestScanner();
    const scan = own.begin();
    scan.feed(Buffer.from('{"a'));
    assert.equal(own.active, 1);
    scan.abandon();
    scan.abandon();
    assert.equal(own.active, 0);
    assert.throws(() => scan.feed(Buffer.from('x')));
    const other = own.begin();
    other.feed(Buffer.from('{}'));
    other.finish(Buffer.from('{}'));
    other.abandon();
    assert.equal(own.active, 0);
    assert.throws(() => other.finish(Buffer.from('{}')));
  });

  test('a faulty body stays faulty and another body than was fed is a bug', () => {
    const scan = scanner.begin();
    assert.equal(scan.feed(Buffer.from('{"a":x')), false);
    assert.equal(scan.feed(Buffer.from('}')), false);
    assert.equal(scan.finish(Buffer.from('{"a":x}')).fault, 'invalid_json');
    const other = scanner.begin();
    assert.equal(other.feed(Buffer.from('{}')), true);
    assert.throws(() => other.finish(Buffer.from('{} ')));
    other.abandon();
  });
});

describe('readers', () => {
  const read = <T>(
    text: string,
    reader: (body: Buffer, value: NonNullable<ReturnType<ScannedRequest['valueOf']>>) => T,
  ): T => {
    const body = Buffer.from(`{"n":${text}}`);
    const value = scanner.scan(body).valueOf('n');
    assert.ok(value !== null, text);
    return reader(body, value);
  };

  test('strings are decoded, short and long, with and without escapes', () => {
    for (const text of [
      '',
      'gpt-5',
      'é',
      '漢字',
      'a"b\\c\n',
      '\u0000',
      'x'.repeat(64),
      'x'.repeat(65),
      `${'x'.repeat(100)}é`,
      `${'x'.repeat(100)}"`,
      '\ud800',
    ]) {
      assert.equal(read(JSON.stringify(text), readString), text);
    }
    assert.equal(read('"\\u0067pt\\/5"', readString), 'gpt/5');
  });

  test('integers are exact or null', () => {
    for (const [text, expected] of [
      ['0', 0],
      ['1', 1],
      ['4096', 4096],
      ['9007199254740991', 9007199254740991],
    ] as const)
      assert.equal(read(text, readInteger), expected);
    for (const text of [
      '9007199254740992',
      '9007199254740993',
      '1e3',
      '1.0',
      '-1',
      '-0',
      '12345678901234567890',
      '"1"',
      'true',
      'null',
      '[1]',
    ])
      assert.equal(read(text, readInteger), null, text);
  });
});
