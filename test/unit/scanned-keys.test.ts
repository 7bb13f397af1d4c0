// What the scanner notes of a request beside its fields: names in other letters, types of tools and items, what bears
// on caches and stored objects.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RequestScanner, type ScannedRequest } from '../../src/generation/request/scan/request-scanner.ts';
import { CONTROL_KEYS, COST_KEYS } from '../../src/generation/request/scan/scanned-keys.ts';

const scanner = new RequestScanner();

/** The body in one piece, and byte by byte: both must show the same. */
function scan(text: string): ScannedRequest {
  const body = Buffer.from(text);
  const pieces = scanner.begin();
  for (let at = 0; at < body.length; at++) if (!pieces.feed(body.subarray(at, at + 1))) break;
  const cut = pieces.finish(body);
  const whole = scanner.scan(body);
  assert.deepEqual(seen(cut), seen(whole));
  return whole;
}

const SEEN = [
  'fault',
  'faultKey',
  'faultOffset',
  'hasCostKeys',
  'types',
  'typeCount',
  'asksForHourCache',
  'storedObjectKeys',
  'references',
  'hasAmbiguousReference',
] as const;

function seen(scanned: ScannedRequest): unknown {
  return Object.fromEntries(SEEN.map((name) => [name, scanned[name]]));
}

/** Letters that parsers without regard to case take for an ASCII one. */
const FOLDED: Readonly<Record<string, readonly string[]>> = { s: ['\u017f'], k: ['\u212a'], i: ['\u0130', '\u0131'] };

const escaped = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** A control key, each letter in one of its spellings; the plain one is the first. */
const spelling = fc.constantFrom(...CONTROL_KEYS).chain((key) =>
  fc
    .tuple(
      ...Array.from(key, (letter) => {
        const same = [letter, escaped(letter)];
        const others = letter === '_' ? [] : [letter.toUpperCase(), ...(FOLDED[letter] ?? [])];
        return fc.constantFrom(...same, ...others.flatMap((other) => [other, escaped(other)]));
      }),
    )
    .map((letters) => ({ key, written: letters.join('') })),
);

describe('names in other letters', () => {
  test('any spelling of a control key but its own letters is refused, by the name it resembles', () => {
    fc.assert(
      fc.property(spelling, fc.boolean(), ({ key, written }, behind) => {
        const isOwn = JSON.parse(`"${written}"`) === key;
        const other = key === 'model' ? '' : '"model":"m",';
        const result = scan(behind && !isOwn ? `{"${key}":1,"${written}":2}` : `{${other}"${written}":2}`);
        assert.deepEqual([result.fault, result.faultKey], isOwn ? [null, null] : ['letter_case', key]);
      }),
      { numRuns: 2_000 },
    );
  });

  test('names that differ by more than case pass, and so do control keys of nested objects', () => {
    for (const name of [
      'model_',
      'm0del',
      'MODELZ',
      'max\u007ftokens',
      'max tokens',
      'ſ',
      'modell',
      'maxtokens',
      'previousResponse',
      '\u00e9',
      '\u017f\u017f',
      'K',
    ]) {
      assert.equal(scan(`{"model":"m","${name}":1}`).fault, null, name);
    }
    assert.equal(scan('{"x":{"Model":1,"MODEL":[{"Stream":1}]}}').fault, null);
  });

  test('a name joined as protocol buffers write it in JSON is refused by its own', () => {
    const rows = {
      maxTokens: 'max_tokens',
      maxCompletionTokens: 'max_completion_tokens',
      serviceTier: 'service_tier',
      MaxTokens: 'max_tokens',
    };
    for (const [name, key] of Object.entries(rows)) {
      for (const body of [
        `{"model":"m","${name}":1}`,
        `{"model":"m","${key}":1,"${name}":2}`,
        `{"${escaped(name[0] ?? '')}${name.slice(1)}":2,"${key}":1}`,
      ]) {
        const { fault, faultKey } = scan(body);
        assert.deepEqual([fault, faultKey], ['letter_case', key], body);
      }
    }
    // Nobody's, and no value of the field's.
    const plain = scan('{"model":"m","servicetier":"x","maxtokens":1}');
    assert.deepEqual(
      [plain.fault, plain.valueOf('service_tier'), plain.valueOf('max_tokens'), plain.valueOf('model')?.start],
      [null, null, null, 9],
    );
    assert.equal(scan('{"x":{"maxTokens":1}}').fault, null);
  });
});

describe('fields that bear on the price', () => {
  test('are known to be there or not', () => {
    for (const key of COST_KEYS) assert.equal(scan(`{"model":"m","${key}":null}`).hasCostKeys, true, key);
    for (const key of CONTROL_KEYS.filter((control) => !(COST_KEYS as readonly string[]).includes(control))) {
      assert.equal(scan(`{"${key}":null,"x":{"service_tier":1}}`).hasCostKeys, false, key);
    }
  });
});

describe('types of tools and items', () => {
  const typesOf = (text: string): unknown[] => {
    const { types, typeCount } = scan(text);
    assert.equal(types.length, Math.min(16, typeCount));
    return types.map(({ start }) =>
      JSON.parse(/^"(?:[^"\\]|\\.)*"/.exec(Buffer.from(text).subarray(start).toString())?.[0] ?? 'null'),
    );
  };

  test('tools other than functions and custom ones are told', () => {
    assert.deepEqual(
      typesOf('{"tools":[{"type":"function","name":"a"},{"name":"b","type":"custom"},{"name":"c"}]}'),
      [],
    );
    assert.deepEqual(typesOf('{"tools":[{"type":"web_search"},{"x":{"y":[]},"type":"mcp"}],"z":[{"type":"a"}]}'), [
      'web_search',
      'mcp',
    ]);
  });

  test('however a type or its name is written', () => {
    assert.deepEqual(
      typesOf(
        '{"tools":[{"\\u0074ype":"web\\u005fsearch"},{"Type":"mcp"},{"type":"funct\\u0069on"},{ "type" : "x\\n" }]}',
      ),
      ['web_search', 'mcp', 'x\n'],
    );
    assert.deepEqual(typesOf(`{"tools":[{"type":"${'x'.repeat(300)}"}]}`), ['x'.repeat(300)]);
    assert.deepEqual(typesOf('{"tools":[{"type":"function","type":"mcp"},{"type":"mcp","type":"function"}]}'), [
      'mcp',
      'mcp',
    ]);
  });

  test('what schemas and texts of tools say is not one', () => {
    assert.deepEqual(
      typesOf('{"tools":[{"type":"function","parameters":{"type":"object","properties":{"type":{"type":"string"}}}}]}'),
      [],
    );
    assert.deepEqual(
      typesOf(
        '{"tools":[{"type":"function","input_examples":[{"type":"mcp"}],"parameters":{"anyOf":[{"type":"mcp"}]}}]}',
      ),
      [],
    );
    assert.deepEqual(typesOf('{"tools":{"a":{"type":"mcp"}},"x":[{"type":"mcp"}],"messages":[{"type":"mcp"}]}'), []);
    assert.deepEqual(
      typesOf('{"tools":[{"type":["mcp"]},{"type":{"a":"mcp"}},{"type":null},"mcp",["type","mcp"]]}'),
      [],
    );
  });

  test('tools that a namespace or an input item brings are tools', () => {
    const inner = '[{"type":"function"},{"type":"mcp"}]';
    assert.deepEqual(
      typesOf(
        `{"tools":[{"type":"namespace","tools":${inner}}],"input":[{"tools":${inner},"type":"tool_search_output"}]}`,
      ),
      ['namespace', 'mcp', 'mcp'],
    );
  });

  test('items that refer to another are counted, by their type or for want of a type and a role', () => {
    for (const [items, references] of [
      ['{"type":"message"},{"type":"item_reference","id":"msg_1"},{"type":"item\\u005freference"}', 2],
      ['{"Type":"item_reference","role":"user"}', 1],
      ['{"type":"function_call_output","output":[{"type":"item_reference"}]}', 0],
      ['{"id":"msg_1"},{"id":"msg_1","type":null},{"type":"message"},{},{"a":{"role":"user","type":"x"}}', 4],
      ['', 0],
      [
        '"text",{"role":"user"},{"id":"x","type":"message"},{"Type":"message"},[{"id":"x"}],{"role":"user",' +
          '"content":[{"id":1}]}',
        0,
      ],
      [Array(100).fill('{"type":"item_reference","id":"x"}').join(','), 100],
    ] as const) {
      const scanned = scan(`{"input":[${items}],"x":[{"id":1},{"type":"item_reference"}]}`);
      assert.deepEqual(
        [scanned.references, scanned.types, scanned.hasAmbiguousReference],
        [references, [], false],
        items,
      );
    }
    assert.equal(scan('{"input":{"a":{"id":"x"}}}').references, 0);
  });

  test('a reference that has its id or its type twice is told', () => {
    for (const [item, isAmbiguous] of [
      ['{"type":"item_reference","id":"a","id":"b"}', true],
      ['{"type":"item_reference","id":"a","\\u0049d":"b"}', true],
      ['{"type":"item_reference","type":"message","id":"a"}', true],
      ['{"type":"message","TYPE":"item_reference","id":"a"}', true],
      ['{"id":"a","id":"b"}', true],
      ['{"type":"item_reference","id":"a","x":{"id":"b","type":"c"}}', false],
      ['{"role":"user","id":"a","id":"b"}', false],
    ] as const) {
      assert.equal(
        scan(`{"input":[{"id":"z","role":"user"},${item},{"id":"z"}]}`).hasAmbiguousReference,
        isAmbiguous,
        item,
      );
    }
  });

  test('more than are kept are counted', () => {
    const { types, typeCount } = scan(`{"tools":[${Array(40).fill('{"type":"mcp"}').join(',')}]}`);
    assert.deepEqual([types.length, typeCount], [16, 40]);
  });
});

describe('caches and stored objects', () => {
  test('a cache that is to live for an hour', () => {
    for (const text of [
      '{"system":[{"type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}}]}',
      '{"tools":[{"cache_control":{"ttl":"1\\u0068"}}]}',
      '{"cache_control":{"ttl":"1h"}}',
      '{"messages":[{"content":[{"x":{"y":1},"Cache_Control":{"a":{},"TTL":"1h"}}]}]}',
    ]) {
      assert.equal(scan(text).asksForHourCache, true, text);
    }
    for (const text of [
      '{"system":[{"cache_control":{"type":"ephemeral","ttl":"5m"}}]}',
      '{"messages":[{"content":[{"type":"tool_use","input":{"ttl":"1h"}}]}]}',
      '{"messages":[{"content":[{"cache_control":{"type":"ephemeral"},"input":{"ttl":"1h"}}]}]}',
      '{"messages":[{"content":[{"cache_control":{"ttl":{"a":"1h"}}}]}],"ttl":"1h"}',
    ]) {
      assert.equal(scan(text).asksForHourCache, false, text);
    }
  });

  test('keys that may name a stored object, below the top', () => {
    assert.equal(
      scan('{"input":[{"file_id":"f"},{"File_Id":"f","file_ids":[]}],"tools":[{"container":{}}],"container":"c"}')
        .storedObjectKeys,
      4,
    );
    assert.equal(scan('{"messages":[{"content":"file_id"}],"file":{"name":"x"}}').storedObjectKeys, 0);
  });
});
