// What the console works out without a browser: how figures are written, windows, axes, sentences, files, commands.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changesOf } from '../../src/console/logic/changes.ts';
import {
  highestStack,
  labelledIndexes,
  scaleOf,
  stackedBarPaths,
  wilsonInterval,
} from '../../src/console/logic/chart-scale.ts';
import { ChatStream } from '../../src/console/logic/chat-stream.ts';
import { curlOf, tollgateOf } from '../../src/console/logic/command.ts';
import { csvOf } from '../../src/console/logic/csv.ts';
import { readDefinition, writeDefinition } from '../../src/console/logic/definition-text.ts';
import { parseWithAmounts, parseWithCounts } from '../../src/console/logic/exact-json.ts';
import {
  bucketLabel,
  bucketLabels,
  dollars,
  duration,
  durationTick,
  percent,
  sumOfCounts,
  whole,
} from '../../src/console/logic/format.ts';
import { lastDaysOf } from '../../src/console/logic/last-days.ts';
import { isTimeZone, periodBefore, periodOf } from '../../src/console/logic/period.ts';
import { adviceOn, noAnswerMessage } from '../../src/console/logic/refusals.ts';
import { routeInWords } from '../../src/console/logic/route-words.ts';
import { bucketsOf, marksOf } from '../../src/console/logic/routing-buckets.ts';
import { nameOfGroup, nameOfOthers, seriesOf } from '../../src/console/logic/series-chart.ts';
import { signInProblem } from '../../src/console/logic/sign-in-problems.ts';

describe('amounts', () => {
  const cases: readonly (readonly [string | null, string])[] = [
    ['0', '$0.00'],
    ['6.16952863026', '$6.17'],
    ['0.995', '$1.00'],
    ['1234567.005', '$1,234,567.01'],
    ['0.02983075', '$0.030'],
    ['0.0000555', '$0.000056'],
    ['0.000000000001', '$0.000000000001'],
    ['-12.345', '-$12.35'],
    ['9007199254740993.014', '$9,007,199,254,740,993.01'],
    [null, '–'],
  ];
  for (const [amount, shown] of cases)
    test(`${amount} is ${shown}`, () => {
      assert.equal(dollars(amount), shown);
    });

  test('exactly, every digit that the server wrote is there', () => {
    assert.equal(dollars('6.16952863026', { exact: true }), '$6.16952863026');
    assert.equal(dollars('7', { exact: true }), '$7.00');
  });

  test('what is not known is not 0', () => {
    assert.equal(percent(null), 'not known');
    assert.equal(percent(0), '0.0 %');
    assert.equal(duration(null), '–');
    assert.equal(duration(59_949), '59.9 s');
    assert.equal(duration(59_999), '1 min 0 s');
    assert.equal(duration(119_700), '2 min 0 s');
    assert.equal(duration(999.6), '1.00 s');
    assert.deepEqual([0.5, 20, 80_000].map(durationTick), ['', '20 ms', '80 s']);
  });
});

describe('windows', () => {
  const now = new Date('2026-11-25T23:30:00Z');

  test('end on the day that it is in the zone', () => {
    assert.deepEqual(periodOf({ range: '1d' }, now, 'UTC'), {
      start: '2026-11-25',
      end: '2026-11-25',
      granularity: 'hour',
    });
    assert.equal(periodOf({ range: '1d' }, now, 'Pacific/Auckland').end, '2026-11-26');
    assert.deepEqual(periodOf({ range: '30d' }, now, 'UTC'), {
      start: '2026-10-27',
      end: '2026-11-25',
      granularity: 'day',
    });
  });

  test('of two dates are taken as they are, unless they are none', () => {
    assert.equal(periodOf({ from: '2026-03-28', to: '2026-03-30' }, now, 'Europe/Berlin').granularity, 'hour');
    assert.equal(periodOf({ from: '2026-03-30', to: '2026-03-28' }, now, 'UTC').end, '2026-11-25');
    assert.equal(periodOf({ from: '<script>', to: 'x' }, now, 'UTC').end, '2026-11-25');
  });

  test('before a window lies one of the same length', () => {
    const before = periodBefore({ start: '2026-03-01', end: '2026-03-31', granularity: 'day' });
    assert.deepEqual(before, { start: '2026-01-29', end: '2026-02-28', granularity: 'day' });
  });

  test('a zone is one that the runtime knows', () => {
    assert.ok(isTimeZone('Asia/Kolkata'));
    assert.ok(!isTimeZone('Mars/Olympus'));
  });
});

describe('axes', () => {
  test('hours without requests are there, in the offset of the report', () => {
    const report = { granularity: 'hour', start_date: '2026-11-25', end_date: '2026-11-25' } as const;
    const series = ['2026-11-25T00:00:00+05:30', '2026-11-25T03:00:00+05:30'].map((bucket) => ({ bucket }));
    assert.deepEqual(bucketsOf({ ...report, time_zone: 'Asia/Kolkata', series }), [
      '2026-11-25T00:00:00+05:30',
      '2026-11-25T01:00:00+05:30',
      '2026-11-25T02:00:00+05:30',
      '2026-11-25T03:00:00+05:30',
    ]);
  });

  test('an hour that comes twice is twice on the axis', () => {
    const report = { granularity: 'hour', start_date: '2026-10-25', end_date: '2026-10-25' } as const;
    const twice = ['2026-10-25T02:00:00+02:00', '2026-10-25T02:00:00+01:00'];
    const series = twice.map((bucket) => ({ bucket }));
    assert.deepEqual(bucketsOf({ ...report, time_zone: 'Europe/Berlin', series }), twice);
  });

  test('and each says which it is', () => {
    const buckets = ['2026-10-25T01:00:00+02:00', '2026-10-25T02:00:00+02:00', '2026-10-25T02:00:00+01:00'];
    assert.deepEqual(bucketLabels(buckets, 'hour'), ['25 Oct 01:00', '25 Oct 02:00 +02:00', '25 Oct 02:00 +01:00']);
  });

  test('hours without requests around a change of the clocks have the offset that they had', () => {
    const hoursOf = (time_zone: string, ...known: string[]) =>
      bucketsOf({
        granularity: 'hour',
        start_date: '2026-01-01',
        end_date: '2026-12-31',
        time_zone,
        series: known.map((bucket) => ({ bucket })),
      });
    assert.deepEqual(hoursOf('Europe/Berlin', '2026-10-25T00:00:00+02:00', '2026-10-25T04:00:00+01:00'), [
      '2026-10-25T00:00:00+02:00',
      '2026-10-25T01:00:00+02:00',
      '2026-10-25T02:00:00+02:00',
      '2026-10-25T02:00:00+01:00',
      '2026-10-25T03:00:00+01:00',
      '2026-10-25T04:00:00+01:00',
    ]);
    assert.deepEqual(hoursOf('America/New_York', '2026-03-08T00:00:00-05:00', '2026-03-08T04:00:00-04:00'), [
      '2026-03-08T00:00:00-05:00',
      '2026-03-08T01:00:00-05:00',
      '2026-03-08T03:00:00-04:00',
      '2026-03-08T04:00:00-04:00',
    ]);
    assert.deepEqual(hoursOf('UTC', '2026-03-08T00:00:00Z', '2026-03-08T02:00:00Z')[1], '2026-03-08T01:00:00Z');
  });

  test('a window in the address whose days no calendar has is none', () => {
    const now = new Date('2026-11-25T12:00:00Z');
    for (const day of ['2026-99-99', '2026-02-30', '0000-00-00'])
      assert.deepEqual(periodOf({ from: day, to: day }, now, 'UTC'), periodOf({}, now, 'UTC'), day);
  });

  test('days without requests are there, and a mark is at the day of its first use', () => {
    const series = [{ bucket: '2026-11-01T00:00:00Z' }, { bucket: '2026-11-03T00:00:00Z' }];
    const buckets = bucketsOf({
      granularity: 'day',
      start_date: '2026-11-01',
      end_date: '2026-11-03',
      time_zone: 'UTC',
      series,
    });
    assert.deepEqual(buckets, ['2026-11-01T00:00:00Z', '2026-11-02', '2026-11-03T00:00:00Z']);
    const marks = marksOf([{ policy: 'default', version: 2, first_used_at: '2026-11-02T09:00:00Z' }], buckets);
    assert.deepEqual(marks, [{ index: 1, name: 'default, version 2' }]);
    assert.equal(bucketLabel('2026-11-02', 'day'), '2 Nov');
  });

  test('a bucket without a point is none, not 0', () => {
    const series = seriesOf('a', ['1', '2'], [{ bucket: '2', value: 7 }], ({ value }) => value);
    assert.deepEqual(series.values, [null, 7]);
  });

  test('stacks stand on one another, one path a series', () => {
    const series = [
      { name: 'a', values: [1, null] },
      { name: 'b', values: [2, 4] },
    ];
    assert.equal(highestStack(series, 2), 4);
    const scale = scaleOf({ left: 0, top: 0, width: 200, height: 100 }, 2, 4);
    assert.deepEqual(stackedBarPaths(series, scale, 2), ['M2 100V75h96V100z', 'M2 75V25h96V75zM102 100V0h96V100z']);
    assert.deepEqual(labelledIndexes(30, 300, 100), [0, 10, 20]);
  });

  test('the interval of a rate is wide for few', () => {
    assert.equal(wilsonInterval(0, 0), null);
    const [low, high] = wilsonInterval(5, 10) ?? [];
    assert.deepEqual([low?.toFixed(3), high?.toFixed(3)], ['0.237', '0.763']);
  });

  test('a group is named by what it has', () => {
    assert.equal(nameOfGroup({ team_id: null, team: null }), 'no team');
    assert.equal(nameOfGroup({ api_key_id: 'id-1', api_key: null }), 'id-1');
    assert.equal(nameOfGroup({ status: 429 }), '429');
    assert.deepEqual([1, 2].map(nameOfOthers), ['1 other', '2 others']);
  });
});

test('a cell that a spreadsheet would run is text, and quotes survive', () => {
  const text = csvOf(
    ['a', 'b'],
    [
      ['=1+1', 'x "y"\nz'],
      [-5, null],
      ['-3.5', '@sum'],
    ],
  );
  assert.equal(text, `a,b\r\n'=1+1,"x ""y""\nz"\r\n-5,\r\n-3.5,'@sum\r\n`);
});

test('a command can be pasted, whatever stands in it', () => {
  const line = curlOf({ method: 'post', address: '/v1/x?a=1', body: { text: "it's $HOME" } }, 'https://gate.test');
  assert.equal(
    line,
    `curl -X POST 'https://gate.test/v1/x?a=1' \\\n  -H "Authorization: Bearer $TOLLGATE_TOKEN" \\\n  ` +
      `-H 'Content-Type: application/json' \\\n  -d '{"text":"it'\\''s $HOME"}'`,
  );
  assert.equal(
    tollgateOf(['report', 'usage', 'time_zone=Europe/Berlin', 'model=$(x) y']),
    "tollgate report usage time_zone=Europe/Berlin 'model=$(x) y'",
  );
});

test('a refusal says what to do: 403 names the permission, 503 that requests go on', () => {
  assert.match(adviceOn(403, 'org.admin').advice, /permission org\.admin/);
  assert.match(adviceOn(503, 'org.admin').advice, /Requests are still served/);
  assert.equal(adviceOn(400, 'org.admin').mayRepeat, false);
});

test('a change whose answer never came may have been made, and a question not', () => {
  assert.equal(noAnswerMessage('get', 'none'), 'The gateway does not answer. Is it running?');
  assert.match(noAnswerMessage('post', 'none'), /^The gateway does not answer\..* may have been made: check before/);
  assert.match(noAnswerMessage('delete', 'broken'), /^The answer was cut off\. .* may have been made/);
});

test('every reason has its sentence, with what it rests on', () => {
  const route = { cached: false, correction: true, sticky: false, tier: 'strong', classified_tier: 'light' };
  const words = routeInWords(
    { ...route, reason: 'low_confidence_escalated', confidence: 0.41, previous_model: 'a' },
    'b',
  );
  assert.match(words[0] ?? '', /chose “light” with a confidence of 0\.41, below the policy’s floor/);
  assert.ok(words.includes('The message corrects the previous answer, which a gave.'));
});

test('a streamed reply reads the same wherever its bytes are cut', () => {
  const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const stream = `: ping\r\n\r\n${event('He')}data:{"choices":[]}\n\n${event('llo\n“x”')}data: [DONE]`;
  for (let size = 1; size < stream.length; size++) {
    const chat = new ChatStream();
    let text = '';
    for (let at = 0; at < stream.length; at += size) text += chat.read(stream.slice(at, at + size)).text;
    assert.equal(text + chat.end().text, 'Hello\n“x”');
  }
  const broken = new ChatStream().read(`${event('a')}data: {"error":{"message":"cut"}}\n\n`);
  assert.deepEqual(broken, { text: 'a', problem: 'cut' });
});

test('amounts of a record keep every digit, and no text that looks like one is touched', () => {
  const record = parseWithAmounts('{"total_cost":0.0000123456789012345678,"id":"\\"total_cost\\":1","n":2}', [
    'total_cost',
  ]);
  assert.deepEqual(record, { total_cost: '0.0000123456789012345678', id: '"total_cost":1', n: 2 });
});

test('counts beyond 2^53 keep every digit, also in a sum, a file and on the screen', () => {
  const answer = '{"tokens":9007199254740993,"id":"9007199254740993","few":12,"share":0.5,"list":[-18014398509481985]}';
  const read = parseWithCounts(answer) as { tokens: bigint; list: bigint[] };
  assert.deepEqual(read, {
    tokens: 9007199254740993n,
    id: '9007199254740993',
    few: 12,
    share: 0.5,
    list: [-18014398509481985n],
  });
  assert.equal(whole(read.tokens), '9,007,199,254,740,993');
  assert.equal(whole(sumOfCounts(read.tokens, 4)), '9,007,199,254,740,997');
  assert.deepEqual([sumOfCounts(1, 2), sumOfCounts(9007199254740993n, -9007199254740990n)], [3, 3]);
  assert.equal(csvOf(['n'], [[read.tokens]]), 'n\r\n9007199254740993\r\n');
});

test('a failed sign-in says what to do, also by a word that this page does not know', () => {
  assert.equal(signInProblem(null), null);
  assert.match(signInProblem('no_access') ?? '', /no group of yours/);
  assert.match(signInProblem('constructor') ?? '', /failed/);
});

test('when keys were last used: the latest day of each, whatever their order', () => {
  const days = [
    { date: '2026-11-03', api_key_id: 'a' },
    { date: '2026-11-25', api_key_id: 'a' },
    { date: '2026-11-24', api_key_id: 'b' },
    { date: '2026-11-09', api_key_id: 'a' },
    { date: '2026-11-26', api_key_id: null },
  ];
  assert.deepEqual(
    [...lastDaysOf(days)],
    [
      ['a', '2026-11-25'],
      ['b', '2026-11-24'],
    ],
  );
});

describe('definitions as people edit them', () => {
  test('come back as they were written, and are objects', () => {
    const definition = { tiers: [{ name: 'a', description: '<b> "x"' }] };
    assert.deepEqual(readDefinition(writeDefinition(definition)), { ok: true, definition });
    for (const text of ['[]', 'null', '"x"', '3'])
      assert.deepEqual(readDefinition(text), { ok: false, problem: 'It must be an object: { ... }' });
  });

  test('stand in the order of the documentation, what fits a line on one', () => {
    const stored = { kinds: { code: 'x' }, tiers: [{ models: [{ id: 'm' }], name: 'a', description: 'd'.repeat(99) }] };
    assert.equal(
      writeDefinition(stored),
      `{
  "tiers": [
    {
      "name": "a",
      "description": "${'d'.repeat(99)}",
      "models": [{ "id": "m" }]
    }
  ],
  "kinds": { "code": "x" }
}`,
    );
    assert.equal(writeDefinition({ rules: [] }), '{\n  "rules": []\n}');
    assert.equal(writeDefinition({}), '{}');
  });

  test('what cannot be read is said with its line', () => {
    const read = readDefinition('{\n  "a": 1,\n  "b" 2\n}');
    assert.match(read.ok ? '' : read.problem, /line 3/);
    assert.equal(readDefinition('').ok, false);
  });
});

describe('what differs', () => {
  test('is named where it lies, also behind what is too long to be shown', () => {
    const long = 'x'.repeat(100);
    const before = { tiers: [{ name: 'a', description: `${long}1` }], sticky: { min_tokens: 5 }, floor: 0.5 };
    const after = { tiers: [{ name: 'b', description: `${long}2` }], sticky: null, floor: 0.5, kinds: { code: 'c' } };
    assert.deepEqual(changesOf(before, after), [
      'tiers.0.name: a → b',
      `tiers.0.description: ${long.slice(0, 60)}… → ${long.slice(0, 60)}…`,
      'sticky: {"min_tokens":5} → none',
      'kinds: {"code":"c"}',
    ]);
  });

  test('of what is new or gone are its members', () => {
    assert.deepEqual(changesOf(null, { name: 'a' }), ['name: a']);
    assert.deepEqual(changesOf({ name: 'a' }, undefined), ['name: a → none']);
    assert.deepEqual(changesOf({ list: ['a', 'b'] }, { list: ['b', 'c', 'd'] }), [
      'list: − a',
      'list: + c',
      'list: + d',
    ]);
    assert.deepEqual(changesOf([1], [1, 2]), ['+ 2']);
    assert.deepEqual(changesOf({}, { absent: null }), []);
    assert.deepEqual(changesOf({ a: 1 }, { a: 1 }), []);
  });
});
