// What a seed decides about its world: who pays and under which limits, which requests come when, and what goes wrong.

import type { Principal, PrincipalLimit } from '../../src/domain/identity/principal.ts';
import { principalOf } from '../support/principals.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { SpoolSettings } from './simulated-gateway.ts';
import type { ShippingSettings } from './simulated-jobs.ts';
import type { RequestPlan } from './simulated-request.ts';

export interface Payer {
  readonly organizationId: string;
  /** null: the organization is not billed. */
  readonly walletId: string | null;
  readonly limits: readonly PrincipalLimit[];
}

export interface Troubles {
  readonly messageLoss: number;
  readonly slowMessages: number;
  readonly slowMessageMs: number;
  readonly syncFails: number;
  readonly writeFails: number;
  readonly shortWrites: number;
  readonly readFails: number;
  readonly slowSyncMs: number;
  /** The chance that a process that starts will die at a step. */
  readonly mortality: number;
  /** The most steps that such a process has. */
  readonly stepsMax: number;
}

export type Happening =
  | 'kill a gateway'
  | 'kill jobs'
  | 'second jobs'
  | 'cut the power'
  | 'restart postgres'
  | 'lock the tables'
  | 'stall a gateway'
  | 'stall jobs'
  | 'roll a gateway'
  | 'deafen a gateway'
  | 'fill the disk'
  | 'clickhouse away'
  | 'freeze a wallet'
  | 'deposit'
  | 'lower a limit'
  | 'remove a limit';

export interface Scenario {
  readonly gateways: number;
  readonly payers: readonly Payer[];
  /** Deposits by wallet. */
  readonly deposits: ReadonlyMap<string, bigint>;
  readonly spool: SpoolSettings;
  readonly shipping: ShippingSettings;
  readonly requests: readonly {
    readonly atMs: number;
    readonly payer: Payer;
    readonly plan: Omit<RequestPlan, 'principal'>;
  }[];
  readonly happenings: readonly { readonly atMs: number; readonly what: Happening }[];
  readonly troubles: Troubles;
  /** The time at which all trouble ends. */
  readonly healMs: number;
  readonly baseMs: number;
}

const TYPICAL_PRICE = 200_000;

export function makeScenario(random: SeededRandom): Scenario {
  return random.chance(0.06) ? makeRateScenario(random) : makeAnyScenario(random);
}

/** A scenario with a rate whose load exceeds its limit for longer than a minute. */
function makeRateScenario(random: SeededRandom): Scenario {
  const scenario = makeAnyScenario(random);
  const kind = random.pick(['requests_per_minute', 'tokens_per_minute'] as const);
  const amount = kind === 'requests_per_minute' ? BigInt(random.whole(2, 9)) : BigInt(random.whole(200, 900));
  const limit: PrincipalLimit = {
    id: '10000000-0000-4000-8000-000000009000',
    scope: 'key',
    setBy: 'platform',
    kind,
    window: null,
    amount,
    model: null,
  };
  const walletId = '30000000-0000-4000-8000-000000000009';
  const payer: Payer = { organizationId: '20000000-0000-4000-8000-000000000009', walletId, limits: [limit] };
  const healMs = random.between(75_000, 135_000);
  const requests: Scenario['requests'][number][] = [];
  for (let atMs = random.between(0, 4_000); atMs < healMs; atMs += random.magnitude(100, 6_000)) {
    requests.push({ atMs, payer, plan: { ...makePlan(random), firstByteMs: 1, replyMs: random.magnitude(1, 2_000) } });
  }
  const happenings = random.chance(0.4)
    ? []
    : scenario.happenings.map(({ what }) => ({ what, atMs: random.between(0, healMs) }));
  const deposits = new Map([[walletId, BigInt(TYPICAL_PRICE * 200)]]);
  const troubles = random.chance(0.5) ? CALM : scenario.troubles;
  return {
    ...scenario,
    payers: [payer],
    deposits,
    requests,
    happenings,
    troubles,
    healMs,
    shipping: { ...scenario.shipping, pollMs: 900 },
  };
}

/** How long jobs pauses between postings. A waiting look-up often ends the middle one. */
const POSTING_PAUSES = [
  { pollMs: 120, wantedEveryMs: null },
  { pollMs: 400, wantedEveryMs: 150 },
  { pollMs: 900, wantedEveryMs: null },
];

function makeAnyScenario(random: SeededRandom): Scenario {
  const payers = Array.from({ length: random.whole(1, 2) }, (_, index) => makePayer(random, index));
  const hasRates = payers.some(({ limits }) =>
    limits.some(({ kind }) => kind === 'requests_per_minute' || kind === 'tokens_per_minute'),
  );
  const isLong = hasRates ? random.chance(0.08) : random.chance(0.03);
  const healMs = isLong ? random.between(60_000, 130_000) : random.magnitude(500, 12_000);
  const requests = makeRequests(random, payers, healMs);
  const isCalm = random.chance(0.1);
  const deposits = new Map<string, bigint>();
  for (const { walletId } of payers)
    if (walletId !== null) deposits.set(walletId, BigInt(Math.round(random.magnitude(0.5, 100) * TYPICAL_PRICE)));
  return {
    gateways: random.whole(1, 3),
    payers,
    deposits,
    spool: {
      segmentBytesMax: random.pick([1_500, 4_000, 16_000, 1 << 20]),
      fsyncIntervalMs: 20,
      freeBytesMin: 20_000,
      reserveFileBytes: random.pick([0, 4_096, 16_384]),
    },
    shipping: {
      recordsMax: random.pick([1, 2, 5, 2_000]),
      bytesMax: random.pick([600, 2_000, 1 << 20]),
      ...random.pick(POSTING_PAUSES),
      admittedWaitMs: random.pick([0, 300, 1_000]),
      factsIntervalMs: random.pick([200, 2_000]),
    },
    requests,
    happenings: isCalm ? [] : makeHappenings(random, healMs),
    troubles: isCalm ? CALM : makeTroubles(random),
    healMs,
    baseMs: random.pick(BASES_MS) - random.whole(0, Math.round(healMs * 1.3)),
  };
}

/** The ends of an hour, a day, a week, a month and a year: some budget's period begins during the run. */
const BASES_MS = [
  Date.UTC(2026, 10, 20, 16),
  Date.UTC(2026, 10, 21),
  Date.UTC(2026, 10, 23),
  Date.UTC(2026, 11, 1),
  Date.UTC(2027, 0, 1),
];

const CALM: Troubles = {
  messageLoss: 0,
  slowMessages: 0,
  slowMessageMs: 0,
  syncFails: 0,
  writeFails: 0,
  shortWrites: 0,
  readFails: 0,
  slowSyncMs: 0,
  mortality: 0,
  stepsMax: 1,
};

function makeTroubles(random: SeededRandom): Troubles {
  const some = (chance: number, from: number, to: number): number =>
    random.chance(chance) ? random.magnitude(from, to) : 0;
  return {
    messageLoss: some(0.5, 0.002, 0.2),
    slowMessages: some(0.4, 0.01, 0.4),
    slowMessageMs: random.magnitude(20, 5_000),
    syncFails: some(0.25, 0.01, 0.5),
    writeFails: some(0.2, 0.005, 0.2),
    shortWrites: some(0.2, 0.01, 0.5),
    readFails: some(0.1, 0.005, 0.1),
    slowSyncMs: some(0.3, 10, 150),
    mortality: random.chance(0.6) ? random.between(0.2, 1) : 0,
    stepsMax: random.magnitude(10, 3_000),
  };
}

const HAPPENINGS: readonly (readonly [what: Happening, chance: number])[] = [
  ['kill a gateway', 0.5],
  ['kill jobs', 0.3],
  ['second jobs', 0.25],
  ['cut the power', 0.15],
  ['restart postgres', 0.25],
  ['lock the tables', 0.25],
  ['stall a gateway', 0.25],
  ['stall jobs', 0.15],
  ['roll a gateway', 0.25],
  ['deafen a gateway', 0.25],
  ['fill the disk', 0.2],
  ['clickhouse away', 0.15],
  ['freeze a wallet', 0.15],
  ['deposit', 0.25],
  ['lower a limit', 0.2],
  ['remove a limit', 0.1],
];

function makeHappenings(random: SeededRandom, healMs: number): Scenario['happenings'] {
  const happenings: { atMs: number; what: Happening }[] = [];
  for (const [what, chance] of HAPPENINGS) {
    for (let times = 0; times < 3 && random.chance(chance); times += 1)
      happenings.push({ atMs: random.between(0, healMs), what });
  }
  return happenings;
}

const KINDS = ['requests_per_minute', 'tokens_per_minute', 'concurrent_requests', 'budget'] as const;

function makePayer(random: SeededRandom, index: number): Payer {
  const limits: PrincipalLimit[] = [];
  for (const kind of KINDS) {
    for (let times = 0; times < 2 && random.chance(0.3); times += 1) {
      const window = kind === 'budget' ? random.pick(['hour', 'day', 'week', 'month'] as const) : null;
      const id = `10000000-0000-4000-8000-00000000${index}${limits.length}0${KINDS.indexOf(kind)}`;
      limits.push({ id, scope: 'key', setBy: 'platform', kind, window, amount: amountOf(random, kind), model: null });
    }
  }
  const isBilled = random.chance(0.85);
  return {
    organizationId: `20000000-0000-4000-8000-00000000000${index}`,
    walletId: isBilled ? `30000000-0000-4000-8000-00000000000${index}` : null,
    limits,
  };
}

function amountOf(random: SeededRandom, kind: (typeof KINDS)[number]): bigint {
  switch (kind) {
    case 'requests_per_minute':
      return BigInt(random.whole(1, 25));
    case 'tokens_per_minute':
      return BigInt(random.whole(150, 2_500));
    case 'concurrent_requests':
      return BigInt(random.whole(1, 6));
    case 'budget':
      return BigInt(Math.round(random.magnitude(0.7, 60) * TYPICAL_PRICE));
  }
}

function makeRequests(random: SeededRandom, payers: readonly Payer[], healMs: number): Scenario['requests'] {
  const requests: { atMs: number; payer: Payer; plan: Omit<RequestPlan, 'principal'> }[] = [];
  const count = random.whole(10, 36);
  let burstMs = 0;
  for (let index = 0; index < count; index += 1) {
    if (index === 0 || random.chance(0.4)) {
      // If there is time, the burst often comes a minute after the previous one, when a rate can be leased again.
      const isNextMinute = index > 0 && burstMs + 63_000 < healMs && random.chance(0.6);
      burstMs = isNextMinute ? burstMs + 60_000 + random.between(-3_000, 3_000) : random.between(0, healMs);
    }
    requests.push({ atMs: burstMs + random.between(0, 30), payer: random.pick(payers), plan: makePlan(random) });
  }
  return requests;
}

export function makePlan(random: SeededRandom): Omit<RequestPlan, 'principal'> {
  const bodyBytes = random.whole(1, 90);
  const outputMax = random.whole(1, 70);
  const provider = random.chance(0.7)
    ? 'serves'
    : random.pick(['serves above the bound', 'refuses', 'fails', 'is away', 'says nothing', 'cuts', 'serves'] as const);
  return {
    bodyBytes,
    outputMax,
    inputTokens: random.whole(0, bodyBytes),
    outputTokens: random.whole(0, outputMax),
    provider,
    firstByteMs: random.magnitude(1, 1_500),
    replyMs: random.magnitude(0.5, 4_000),
    leavesAfterMs: random.chance(0.15) ? random.magnitude(0.5, 3_000) : null,
  };
}

export function principalOfPayer({ organizationId, walletId, limits }: Payer): Principal {
  return principalOf(organizationId, {
    apiKeyId: '11111111-1111-4111-8111-111111111111',
    walletId,
    billed: walletId !== null,
    limits,
  });
}
