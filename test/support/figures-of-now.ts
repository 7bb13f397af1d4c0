// Answers of the API that are not reports, with figures that a screen could round, mix up or leave out, and what the
// console's screens must show of them.

import type { components } from '../../src/console/api-types.d.ts';

type Schemas = components['schemas'];

const AT = '2026-11-19T03:59:55.000Z';
const LIVE: Schemas['Live'] = {
  at: AT,
  seconds_per_point: 5,
  minute: {
    requests: 1_234_567,
    requests_per_second: 20_576.116_666,
    tokens_per_second: 9_876_543.21,
    by_status: { '2xx': 1_234_000, '3xx': 1, '4xx': 500, '5xx': 60, none: 6, left: 7 },
    errors: 66,
    refusals: 1_000_001,
    failed_calls: 77,
    latency_ms: { p50: 12.4, p95: 999.4, p99: 119_800 },
    first_byte_ms: { p50: null, p95: 1_234, p99: 12_345 },
  },
  points: [0, 1].map((index) => ({
    at: `2026-11-19T03:59:5${index * 5}.000Z`,
    requests: 101 + index,
    requests_per_second: 20.2,
    tokens_per_second: 1,
    by_status: { '2xx': 100_000 + index, '3xx': 0, '4xx': 3, '5xx': 4, none: 5, left: 6 },
    refusals: 6_007,
    failed_calls: 8,
    latency_ms: { p50: 1, p95: index === 0 ? null : 2_000, p99: 61_000 },
    first_byte_ms: { p50: 0.4, p95: 20, p99: 30 },
    errors: 9,
  })),
  refusals: [
    { code: 'rate_limit', count: 12_345_678 },
    { code: 'budget_exceeded', count: 1 },
  ],
  failed_calls: [{ provider: 'sim', kind: 'status_5xx', count: 4_321 }],
  paused: [
    { provider: 'sim', model: null, until: '2026-11-19T04:00:07.000Z' },
    { provider: 'other', model: 'a/b', until: '2026-11-19T04:01:00.000Z' },
  ],
  in_flight: 10_101,
  unposted_bytes: 999_960,
  unreported_bytes: 1_234_567_890,
  quarantined_files: 3,
  blocked_processes: 2,
  processes: 17,
  silent_processes: 3,
};

const GATEWAY: Schemas['Process'] = {
  machine: 'one',
  kind: 'gateway',
  pid: 4_711,
  epoch: 9,
  version: '0.13.0',
  started_at: AT,
  last_seen_at: AT,
  silent: false,
  in_flight: 4_096,
  connections: 10_000,
  paused_models: 2,
  lent_usd: 1_234.5,
  held_usd: 0.25,
  unposted_bytes: 999,
  unreported_bytes: 0,
  quarantined_files: null,
  blocked: false,
  loop_delay_ms: 1_050,
  memory_bytes: 143_000_000,
};
const JOBS: Schemas['Process'] = {
  ...GATEWAY,
  kind: 'jobs',
  pid: 4_712,
  silent: true,
  in_flight: null,
  connections: null,
  paused_models: null,
  lent_usd: null,
  held_usd: null,
  unposted_bytes: null,
  unreported_bytes: null,
  loop_delay_ms: null,
  memory_bytes: null,
};

const FILE: Schemas['Media'] = {
  id: '01890a5d-ac96-774b-bcce-b302099a8057',
  content_type: 'image/png',
  size: 1_234_567,
  created_at: AT,
  uploaded_at: AT,
};
const USE: Schemas['ByokUsage'] = {
  credential_id: FILE.id,
  credential_name: 'ours',
  kind: 'sim',
  requests: 1_234_567,
  tokens_prompt: 1,
  tokens_completion: 2,
  rated_cost: '12345678901234567.891000000001',
  fee: '0.000012345678',
  last_used_at: AT,
};
const USED: Schemas['MediaUsage'] = { files: 1_234_567, stored_bytes: 5_432_100_000, reserved_bytes: 999, days: [] };
const LISTED = { next_cursor: null };

export const ANSWERS_OF_NOW: Readonly<Record<string, unknown>> = {
  '/v1/admin/live': { data: LIVE },
  '/v1/admin/processes': { data: [GATEWAY, JOBS] },
  '/v1/admin/active-org/media': { data: [FILE, { ...FILE, size: 0 }], ...LISTED },
  '/v1/admin/active-org/media/usage': { data: USED },
  '/v1/admin/active-org/provider-credentials': { data: [] },
  '/v1/admin/active-org/byok/usage': { data: [USE, { ...USE, requests: 0, rated_cost: '0', fee: '0' }] },
  '/v1/admin/active-org/guardrails/policies': { data: [] },
  '/v1/admin/guardrails/policies': { data: [] },
  '/v1/admin/active-org/guardrails/assignments': {
    data: { organization: { policies: [] }, platform: { policies: [] }, floor: [], teams: [], api_keys: [] },
  },
};

/** By screen: figures by their name, with the note below them, if there is one. */
export const STATS_OF_NOW: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  live: {
    'Requests per second': '20,576.1 / 1,234,567 ended in the last minute',
    'Tokens per second': '9,876,543',
    'Latency p95': '999 ms / p50 12 ms · p99 2 min 0 s',
    'First byte p95': '1.23 s / p50 – · p99 12.3 s',
    Errors: '0.0 % / 66 of 1,234,567',
    Refused: '1,000,001 / in the last minute',
    'In flight': '10,101',
    'Not yet in the ledger': '1.0 MB / not yet in reports 1.2 GB',
    Processes: '17 / 3 silent',
    Blocked: '2 / admit no request: their spool cannot be written',
  },
  media: { Files: '1,234,567', Stored: '5.4 GB', Reserved: '999 B / uploads under way' },
  'provider-keys': {},
};

/** By screen: tables by their caption. */
export const TABLES_OF_NOW: Readonly<Record<string, Readonly<Record<string, readonly (readonly string[])[]>>>> = {
  live: {
    Refusals: [
      ['rate limit', '12,345,678'],
      ['budget exceeded', '1'],
    ],
    'Failed calls': [['sim', 'status 5xx', '4,321']],
    Paused: [
      ['sim', 'all of its models', '04:00:07'],
      ['other', 'a/b', '04:01:00'],
    ],
    Processes: [
      ['gateway 4711', 'running', '4,096', '10,000', '2', '$1,234.75', '999 B', '1.05 s', '143.0 MB'],
      ['jobs 4712', 'silent', '–', '–', '–', '–', '–', '–', '–'],
    ],
  },
  media: {
    Files: [
      [FILE.id, 'image/png', '1.2 MB', '19 Nov 2026, 03:59', 'Delete'],
      [FILE.id, 'image/png', '0 B', '19 Nov 2026, 03:59', 'Delete'],
    ],
  },
  'provider-keys': {
    Use: [
      ['ours', '1,234,567', '$12,345,678,901,234,567.89', '$0.000012'],
      ['ours', '0', '$0.00', '$0.00'],
    ],
  },
};

/** The charts of the screen Live, as tables. */
export const CHARTS_OF_NOW: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'Requests by status': [
    ['03:59:50', '100,000', '0', '3', '4', '5', '6'],
    ['03:59:55', '100,001', '0', '3', '4', '5', '6'],
  ],
  Latency: [
    ['03:59:50', '1 ms', '–', '1 min 1 s'],
    ['03:59:55', '1 ms', '2.00 s', '1 min 1 s'],
  ],
  'First byte': [
    ['03:59:50', '0 ms', '20 ms', '30 ms'],
    ['03:59:55', '0 ms', '20 ms', '30 ms'],
  ],
  'Refused and failed': [
    ['03:59:50', '6,007', '8'],
    ['03:59:55', '6,007', '8'],
  ],
};
