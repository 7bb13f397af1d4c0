// The text of a configuration file, changed in place: every byte that a change is not about stays.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseDocument } from 'yaml';
import { ConfigurationText } from '../../src/domain/configuration-text/configuration-text.ts';
import { modelLines, providerLines } from '../../src/domain/configuration-text/entry-text.ts';
import { flowText } from '../../src/domain/configuration-text/flow-text.ts';
import { BROKEN_VALUES, QUOTED_SECRET } from '../support/broken-yaml.ts';

function open(text: string): ConfigurationText {
  const opened = ConfigurationText.open(text, 'tollgate.yaml');
  assert.ok(opened.ok, opened.ok ? '' : opened.errors.join('\n'));
  return opened.file;
}

const ENTRY = (indent: string) => [`${indent}- id: new`, `${indent}  served_by: []`];

describe('an entry behind the others', () => {
  for (const [name, before, expected] of [
    [
      'in a list',
      'models:\n  - id: a # x\nother: 1\n',
      'models:\n  - id: a # x\n  - id: new\n    served_by: []\nother: 1\n',
    ],
    [
      'without indentation',
      'models:\n- id: a\n',
      'models:\n- id: new\n'.replace('- id: new', '- id: a\n- id: new\n  served_by: []'),
    ],
    [
      'behind a text of several lines',
      'models:\n  - id: |\n      a\n\n# end\n',
      'models:\n  - id: |\n      a\n  - id: new\n    served_by: []\n\n# end\n',
    ],
    ['without an end of line', 'models:\n  - id: a', 'models:\n  - id: a\n  - id: new\n    served_by: []'],
    [
      'in brackets',
      'models: [{ id: a, k: "${K}" }] # c\n',
      'models: [{ id: a, k: "${K}" }, { id: new, served_by: [] }] # c\n',
    ],
    ['in empty brackets', 'models: []\n', 'models: [{ id: new, served_by: [] }]\n'],
    [
      'where only the key is',
      'models: # none\nother: 1\n',
      'models: # none\n  - id: new\n    served_by: []\nother: 1\n',
    ],
    ['where the list is not', 'other: 1', 'other: 1\nmodels:\n  - id: new\n    served_by: []\n'],
    ['in an empty file', '', 'models:\n  - id: new\n    served_by: []\n'],
    [
      'with anchors',
      'models:\n  - &one\n    id: a\n',
      'models:\n  - &one\n    id: a\n  - id: new\n    served_by: []\n',
    ],
    [
      'with the line ends of Windows',
      'models:\r\n  - id: a\r\n    k: b # x\r\nother: 1\r\n',
      'models:\r\n  - id: a\r\n    k: b # x\r\n  - id: new\r\n    served_by: []\r\nother: 1\r\n',
    ],
    [
      'with the line ends of Windows, behind a value that ends its line',
      'models:\r\n  - id: |\r\n      a\r\nother: 1\r\n',
      'models:\r\n  - id: |\r\n      a\r\n  - id: new\r\n    served_by: []\r\nother: 1\r\n',
    ],
    [
      'with the line ends of Windows, where the list is not',
      'other: 1\r\n',
      'other: 1\r\nmodels:\r\n  - id: new\r\n    served_by: []\r\n',
    ],
    ['in a file of comments', '# mine\n', '# mine\nmodels:\n  - id: new\n    served_by: []\n'],
  ] as const)
    test(name, () => assert.equal(open(before).addTo(['models'], ENTRY), expected));

  test('in a list within an entry', () => {
    const text = 'models:\n  - id: a\n    served_by:\n      - { provider: p }   # one\n  - id: b\n';
    assert.equal(
      open(text).addTo(['models', 0, 'served_by'], (indent) => [`${indent}- provider: q`]),
      'models:\n  - id: a\n    served_by:\n      - { provider: p }   # one\n      - provider: q\n  - id: b\n',
    );
  });
});

describe('a value in the place of another', () => {
  const text = [
    'models: # all',
    '  - { id: "${A}", price: { input: "2.5",  output: \'10\' } }   # kept',
    '  - id: b',
    '    price:',
    '      input: "3"   # in',
    "      output: '4'",
    '    apis: []',
    '',
  ].join('\n');
  const line = (wanted: string, by: string) => text.replace(wanted, by);

  test('only what differs is written, in either style', () => {
    const file = open(text);
    assert.equal(file.replace(['models', 0, 'price'], { input: '9', output: '10' }), line('"2.5"', '"9"'));
    assert.equal(file.replace(['models', 1, 'price'], { input: '9', output: '4' }), line('"3"', '"9"'));
    assert.equal(file.replace(['models', 1, 'price'], { input: '3', output: '4' }), text);
  });

  test('what is new stands behind, what is gone takes the whole value along', () => {
    const file = open(text);
    assert.equal(
      file.replace(['models', 0, 'price'], { input: '2.5', output: '10', request: '0.1', factor: '2' }),
      line("output: '10'", 'output: \'10\', request: "0.1", factor: "2"'),
    );
    assert.equal(
      file.replace(['models', 1, 'price'], { input: '3', output: '4', request: '0.1', factor: '2' }),
      line("output: '4'", 'output: \'4\'\n      request: "0.1"\n      factor: "2"'),
    );
    const gone = file.replace(['models', 1, 'price'], { output: '4' });
    assert.deepEqual(open(gone).values['models'], [
      { id: '${A}', price: { input: '2.5', output: '10' } },
      { id: 'b', price: { output: '4' }, apis: [] },
    ]);
  });

  test('a file with the line ends of Windows keeps them', () => {
    const crlf = text.replaceAll('\n', '\r\n');
    const written = open(crlf).replace(['models', 1, 'price'], { input: '9', output: '4', request: '0.1' });
    const expected = line('"3"', '"9"').replace("output: '4'", 'output: \'4\'\n      request: "0.1"');
    assert.equal(written, expected.replaceAll('\n', '\r\n'));
  });

  test('a value that was not there is added to its entry', () => {
    const added = open('models:\n  - id: a\n    apis: []\n').replace(['models', 0, 'price'], { input: '1' });
    assert.equal(added, 'models:\n  - id: a\n    apis: []\n    price: { input: "1" }\n');
  });
});

describe('text that is no configuration', () => {
  for (const [name, text, expected] of [
    ['a bracket that is never closed', 'models: [', /^tollgate\.yaml:\d+: /],
    ['a list', '- a', /must be a mapping/],
    ['a word', 'hello', /must be a mapping/],
    [
      'an alias within its own anchor',
      'models: &a\n  - *a',
      /^tollgate\.yaml:2: an alias stands within its own anchor$/,
    ],
    ['an alias of no anchor', 'models:\n  - *a', /^tollgate\.yaml:2: an alias names an anchor that does not stand/],
    [
      'aliases that expand to too much',
      `a: &a [x]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]`,
      /Excessive/,
    ],
    ['bytes', '\u0000\u0001', /tollgate\.yaml/],
  ] as const)
    test(name, () => {
      const opened = ConfigurationText.open(text, 'tollgate.yaml');
      assert.equal(opened.ok, false);
      assert.match(opened.ok ? '' : opened.errors.join('\n'), expected);
    });

  test('nothing of it is quoted, since it may be a secret', () => {
    for (const value of BROKEN_VALUES) {
      const opened = ConfigurationText.open(`providers:\n  - id: a\n    api_key: ${value}\n`, 'tollgate.yaml');
      const errors = opened.ok ? value : opened.errors.join('\n');
      assert.ok(!errors.includes(QUOTED_SECRET.slice(0, 4)), errors);
    }
  });
});

test('values on one line are read back as they were', () => {
  for (const value of [
    'plain',
    'GPT-5.6 Terra',
    'true',
    'No',
    '1.25',
    '2027-01-01',
    'a: b',
    'x #y',
    '${K}',
    '~',
    '',
    "it's",
    'a"b\\c',
    'ü €',
    'null',
    { a: ['x', { 'b c': '1' }], n: 3, t: true },
    {},
    [],
  ])
    assert.deepEqual(parseDocument(`[${flowText(value)}]`).toJS(), [value], flowText(value));
});

test('entries are read back as they were, with their missing limits as comments', () => {
  const provider = { id: 'azure-eu', fields: { preset: 'azure', with: { resource: 'acme' }, api_key: '${K}' } };
  assert.deepEqual(providerLines(provider, '  '), [
    '  - { id: azure-eu, preset: azure, with: { resource: acme }, api_key: "${K}" }',
  ]);
  const model = {
    id: 'a/b:free',
    displayName: null,
    kind: 'text',
    aliases: ['c'],
    contextLength: null,
    maxOutputTokens: null,
    deployments: [
      { provider: 'p', providerModel: 'b', apis: ['messages'], prices: [{ input: '1' }], source: 'from\n here' },
    ],
  } as const;
  const lines = modelLines(model, '');
  assert.equal(lines.filter((line) => line.includes('MISSING')).length, 2);
  assert.ok(lines.includes('      # from here'));
  assert.deepEqual(parseDocument(lines.join('\n')).toJS(), [
    {
      id: 'a/b:free',
      aliases: ['c'],
      served_by: [{ provider: 'p', model: 'b', apis: ['messages'], price: { input: '1' } }],
    },
  ]);
});
