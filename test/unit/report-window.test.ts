// The stretch of time that a report is asked about: dates and moments, time zones whose clocks change, defaults, and
// what is refused.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readWindow } from '../../jobs/reports/read-window.ts';

const NOW = Date.UTC(2026, 10, 20, 18, 30);
const HOUR_MS = 3_600_000;
const iso = (timeMs: number) => new Date(timeMs).toISOString();

function window(query: Parameters<typeof readWindow>[0], nowMs = NOW) {
  const read = readWindow(query, nowMs);
  if ('kind' in read) assert.fail(JSON.stringify(read));
  return {
    from: iso(read.window.fromMs),
    until: iso(read.window.untilMs),
    granularity: read.window.granularity,
    start: read.startDate,
    end: read.endDate,
  };
}

function refused(query: Parameters<typeof readWindow>[0]): string {
  const read = readWindow(query, NOW);
  return 'kind' in read && read.kind === 'invalid_field'
    ? `${read.field}: ${read.reason}`
    : assert.fail('it was accepted');
}

describe('the window of a report', () => {
  test('is the last thirty days, today among them', () => {
    assert.deepEqual(window({}), {
      from: '2026-10-22T00:00:00.000Z',
      until: '2026-11-21T00:00:00.000Z',
      granularity: 'day',
      start: '2026-10-22',
      end: '2026-11-20',
    });
    // In a zone where it is tomorrow already.
    assert.deepEqual(window({ time_zone: 'Pacific/Kiritimati' }).end, '2026-11-21');
  });

  test('takes the whole of its last date, and a moment as it is', () => {
    const day = window({ start_date: '2026-11-01', end_date: '2026-11-01' });
    assert.deepEqual(
      [day.from, day.until, day.granularity],
      ['2026-11-01T00:00:00.000Z', '2026-11-02T00:00:00.000Z', 'hour'],
    );
    const hours = window({ start_date: '2026-11-01T10:00:00+02:00', end_date: '2026-11-01T12:30:00Z' });
    assert.deepEqual(hours, {
      from: '2026-11-01T08:00:00.000Z',
      until: '2026-11-01T12:30:00.000Z',
      granularity: 'hour',
      start: '2026-11-01T08:00:00.000Z',
      end: '2026-11-01T12:30:00.000Z',
    });
  });

  test('with one end has the other thirty days away, or now', () => {
    assert.deepEqual(
      [window({ start_date: '2026-11-15' }).end, window({ end_date: '2026-03-31' }).start],
      ['2026-11-20', '2026-03-02'],
    );
    assert.equal(window({ start_date: '2026-11-15T00:00:00Z' }).until, iso(NOW));
    assert.equal(window({ end_date: '2026-03-31T12:00:00Z' }).from, '2026-03-01T12:00:00.000Z');
  });

  test('has days as the zone has them, also when its clocks change', () => {
    const length = (time_zone: string, date: string) => {
      const { from, until } = window({ start_date: date, end_date: date, time_zone });
      return (Date.parse(until) - Date.parse(from)) / HOUR_MS;
    };
    assert.deepEqual(
      [
        length('Europe/Berlin', '2026-10-25'),
        length('Europe/Berlin', '2026-03-29'),
        length('Europe/Berlin', '2026-06-01'),
        length('Australia/Lord_Howe', '2026-10-04'),
      ],
      [25, 23, 24, 23.5],
    );
    assert.equal(
      window({ start_date: '2026-11-20', end_date: '2026-11-20', time_zone: 'Pacific/Kiritimati' }).from,
      '2026-11-19T10:00:00.000Z',
    );
    assert.equal(
      window({ start_date: '2026-11-20', end_date: '2026-11-20', time_zone: 'Etc/GMT+12' }).from,
      '2026-11-20T12:00:00.000Z',
    );
    // Where the clocks go forward at midnight, the day begins at one.
    assert.equal(
      window({ start_date: '2026-09-06', end_date: '2026-09-06', time_zone: 'America/Santiago' }).from,
      '2026-09-06T04:00:00.000Z',
    );
  });

  test('has a beginning also on a date that the zone left out', () => {
    // Samoa went from 29 to 31 December 2011.
    const { from, until } = window({ start_date: '2011-12-29', end_date: '2011-12-30', time_zone: 'Pacific/Apia' });
    assert.equal(Date.parse(until) - Date.parse(from), 24 * HOUR_MS);
  });

  test('is shown by hours up to three days, unless asked otherwise', () => {
    assert.equal(window({ start_date: '2026-11-18', end_date: '2026-11-20' }).granularity, 'hour');
    assert.equal(window({ start_date: '2026-11-17', end_date: '2026-11-20' }).granularity, 'day');
    assert.equal(window({ start_date: '2026-11-17T00:00:00Z', end_date: '2026-11-20T00:00:00Z' }).granularity, 'hour');
    assert.equal(window({ start_date: '2026-11-17T00:00:00Z', end_date: '2026-11-20T00:00:01Z' }).granularity, 'day');
    assert.equal(
      window({ start_date: '2026-10-24', end_date: '2026-10-26', time_zone: 'Europe/Berlin' }).granularity,
      'hour',
    );
    assert.equal(window({ start_date: '2026-11-20', end_date: '2026-11-20', granularity: 'day' }).granularity, 'day');
    assert.equal(window({ start_date: '2026-09-01', end_date: '2026-11-20', granularity: 'hour' }).granularity, 'hour');
  });

  test('is at most 92 days long', () => {
    assert.equal(window({ start_date: '2026-08-21', end_date: '2026-11-20' }).granularity, 'day');
    assert.equal(
      refused({ start_date: '2026-08-20', end_date: '2026-11-20' }),
      'start_date: it must be at most 92 days before end_date',
    );
    // 92 days of a summer that ends are an hour more.
    assert.equal(
      window({ start_date: '2026-08-21', end_date: '2026-11-20', time_zone: 'Europe/Berlin' }).granularity,
      'day',
    );
    assert.equal(window({ start_date: '2026-08-20T00:00:00Z', end_date: '2026-11-20T00:00:00Z' }).granularity, 'day');
    assert.equal(
      refused({ start_date: '2026-08-20T00:00:00Z', end_date: '2026-11-20T00:00:00.001Z' }),
      'start_date: it must be at most 92 days before end_date',
    );
    assert.equal(refused({ start_date: '2026-01-01' }), 'start_date: it must be at most 92 days before end_date');
  });

  test('ends after it begins, in years that we keep', () => {
    assert.equal(
      refused({ start_date: '2026-11-02', end_date: '2026-11-01' }),
      'end_date: it must not be before start_date',
    );
    assert.equal(
      refused({ start_date: '2026-11-02T00:00:00Z', end_date: '2026-11-02T00:00:00Z' }),
      'end_date: it must not be before start_date',
    );
    assert.equal(refused({ start_date: '2026-11-22' }), 'end_date: it must not be before start_date');
    assert.equal(
      refused({ start_date: '1999-12-31', end_date: '2000-01-02' }),
      'start_date: it must be in the years 2000 to 2199',
    );
    assert.equal(
      refused({ start_date: '9999-12-31', end_date: '9999-12-31' }),
      'start_date: it must be in the years 2000 to 2199',
    );
  });
});
