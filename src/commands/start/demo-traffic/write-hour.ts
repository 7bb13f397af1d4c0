// Makes the past hour of the demo's generated traffic: writes its records to a spool as a gateway does, with credit and
// budget that were leased for them; jobs ships them like all others.

import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Catalog } from '../../../domain/models/catalog.ts';
import { catalogAt } from '../../../domain/models/dated-prices.ts';
import { type Price, priceOn } from '../../../domain/models/price.ts';
import { type PicoUsd, ZERO_PICO_USD } from '../../../domain/money/pico-usd.ts';
import { isRefused, type Refused } from '../../../domain/refusals/refused.ts';
import { type Baseline, baselineCost } from '../../../domain/routing/baseline-cost.ts';
import { rateUsage } from '../../../domain/settlement/rate-usage.ts';
import { settle } from '../../../domain/settlement/settle.ts';
import type { Usage } from '../../../domain/usage/usage.ts';
import type { Clock } from '../../../platform/clock.ts';
import { createExecutionIdSource } from '../../../platform/execution-id.ts';
import type { Log } from '../../../platform/log.ts';
import type { ExecutionEnd, ExecutionStart } from '../../../records/execution-record.ts';
import { loadCatalog } from '../../../storage/postgres/catalog/catalog-store.ts';
import { findKeyByNameOrId } from '../../../storage/postgres/identity/keys/keys.ts';
import { listLimitsOfScope } from '../../../storage/postgres/identity/limits.ts';
import { findOrganizationBySlug } from '../../../storage/postgres/identity/organizations.ts';
import type { InstallationSecrets } from '../../../storage/postgres/installation-secrets.ts';
import { ensureWallet } from '../../../storage/postgres/ledger/payer-wallets.ts';
import { registerEpoch, takeLease } from '../../../storage/postgres/ledger/wallets.ts';
import { takeLimitLease } from '../../../storage/postgres/limits/limit-leases.ts';
import type { Postgres } from '../../../storage/postgres/pool.ts';
import { SpoolWriter } from '../../../storage/spool/spool-writer.ts';
import { DEMO_KEYS, type DemoKey } from './mix.ts';
import { type DemoRequest, planDemoHour } from './plan-hour.ts';

export interface DemoTrafficParams {
  readonly postgres: Postgres;
  readonly secrets: Pick<InstallationSecrets, 'box'>;
  readonly dataDirectory: string;
  /** Name of the virtual model. */
  readonly virtualModel: string;
  readonly clock: Clock;
  readonly log: Log;
}

const ORGANIZATION = 'demo';
const POLICY = 'default';
const SEGMENT_BYTES_MAX = 67_108_864;
const FSYNC_INTERVAL_MS = 1_000;
/** The output that a request without an output limit holds for. */
const HELD_OUTPUT_TOKENS = 4_096;

/** Returns the number of requests; null: the demo's credit or budget no longer covers them. */
export async function writeDemoHour(params: DemoTrafficParams): Promise<number | null> {
  const { postgres, dataDirectory, clock, log } = params;
  const world = await readWorld(params);
  const untilMs = clock.nowMs();
  const { catalog } = world;
  const policy = catalog.routing.policies.get(POLICY);
  if (policy === undefined) throw new Error(`the demo has no routing policy "${POLICY}"`);
  const { virtualModel } = params;
  const requests = planDemoHour({ catalog, policy, virtualModel, untilMs, seed: Math.floor(untilMs / 1000) });
  const rated = requests.map((request) => ({ request, end: endOf(request, catalog) }));
  const total = rated.reduce((sum, { end }) => sum + BigInt(end.charge ?? 0), 0n);

  const epoch = await registerEpoch(postgres, { machine: hostname(), pid: process.pid, kind: 'gateway' });
  const spool = SpoolWriter.open({
    directory: join(dataDirectory, 'spool'),
    epoch,
    segmentBytesMax: SEGMENT_BYTES_MAX,
    fsyncIntervalMs: FSYNC_INTERVAL_MS,
    log,
    clock,
  });
  try {
    const budgets = await takeLeases(postgres, { epoch, world, total });
    if (budgets === null) return null;
    const nextId = idsAt(clock);
    for (const { request, end } of rated) {
      const start = startOf(request, { world, id: nextId(request.atMs), budgets });
      const batch = spool.takeBatch();
      batch.append(start, null);
      batch.append(start, { ...end, budgetUse: start.budgets?.length === 0 ? null : (end.charge ?? '0') });
      spool.appendBatch(batch);
    }
    return rated.length;
  } finally {
    // jobs ships the spool, returns what was not used, and removes it.
    await spool.close();
  }
}

interface DemoWorld {
  readonly organizationId: string;
  readonly walletId: string;
  readonly callers: Readonly<Record<DemoKey, Pick<ExecutionStart, 'apiKeyId' | 'teamId' | 'userId'>>>;
  readonly catalog: Catalog;
}

async function readWorld({ postgres, secrets, clock }: DemoTrafficParams): Promise<DemoWorld> {
  const { id: organizationId } = expect(await findOrganizationBySlug(postgres, ORGANIZATION));
  const walletId = expect(await ensureWallet(postgres, { organizationId, userId: null }));
  const callers = await Promise.all(
    DEMO_KEYS.map(async (name) => {
      const key = expect(await findKeyByNameOrId(postgres, { organizationId, key: name }));
      return [name, { apiKeyId: key.id, teamId: key.teamId, userId: key.userId }] as const;
    }),
  );
  return {
    organizationId,
    walletId,
    callers: Object.fromEntries(callers) as DemoWorld['callers'],
    catalog: catalogAt(await loadCatalog(postgres, secrets.box), clock.nowMs()).catalog,
  };
}

/** Everything that was applied a moment ago exists. */
function expect<Found>(found: Found | Refused): Found {
  if (isRefused(found)) throw new Error(`the demo lacks what its file has: ${found.refused}`);
  return found as Found;
}

/** Leases for the budgets that all requests count in; null: credit or budget is too small. */
async function takeLeases(
  postgres: Postgres,
  { epoch, world, total }: { readonly epoch: number; readonly world: DemoWorld; readonly total: bigint },
): Promise<readonly string[] | null> {
  const { organizationId, walletId } = world;
  const credit = await takeLease(postgres, { epoch, walletId, amount: total, minimum: total });
  if (credit.granted < total) return null;
  const limits = expect(await listLimitsOfScope(postgres, { kind: 'organization', organizationId }));
  const pools: string[] = [];
  for (const { id, kind, model } of limits) {
    if (kind !== 'budget' || model !== null) continue;
    const wanted = { epoch, limitId: id, amount: total, minimum: total, present: null };
    const { granted, grantId } = await takeLimitLease(postgres, wanted);
    if (granted < total) return null;
    pools.push(grantId);
  }
  return pools;
}

/** Ids that contain the time of their request. */
function idsAt(clock: Clock): (atMs: number) => string {
  let presentMs = 0;
  const next = createExecutionIdSource({ nowMs: () => presentMs, monotonicMs: () => clock.monotonicMs() });
  return (atMs) => {
    presentMs = atMs;
    return next();
  };
}

function startOf(
  request: DemoRequest,
  { world, id, budgets }: { readonly world: DemoWorld; readonly id: string; readonly budgets: readonly string[] },
): ExecutionStart {
  const { atMs, key, api, requestedModel, model, streamed, tags, route, outcome, counts } = request;
  const isAdmitted = outcome !== 'refused';
  const deployment = isAdmitted ? world.catalog.byName.get(model)?.servedBy[0] : undefined;
  const price = isAdmitted ? priceOf(request, world.catalog) : null;
  return {
    id,
    admittedAtMs: atMs,
    organizationId: world.organizationId,
    ...world.callers[key],
    walletId: world.walletId,
    model,
    requestedModel,
    provider: deployment?.provider.id ?? '',
    providerModel: deployment?.providerModel ?? '',
    priceVersion: price?.version ?? null,
    api,
    streamed,
    authorizedAmount: isAdmitted ? holdOf(counts, price).toString() : null,
    requestBytes: 400 + 4 * (counts.inputTokens ?? 100),
    tags,
    clientRequestId: null,
    route,
    budgets: isAdmitted ? budgets : [],
  };
}

/** Ends an execution by the rules by which a gateway rates and settles. */
function endOf(request: DemoRequest, catalog: Catalog): ExecutionEnd {
  const { atMs, outcome, status, errorCode, counts, usage, latencyMs, ttftMs, streamed, screening } = request;
  const price = priceOf(request, catalog);
  const usageSource = usage === null ? null : outcome === 'aborted_mid_stream' ? 'counted' : 'reported';
  const authorizedAmount = holdOf(counts, price);
  const settled = settle({ outcome, usage, usageSource, price, billed: true, authorizedAmount });
  const baseline = baselineCost(baselineOf(request, catalog), {
    usage,
    settlement: settled,
    isBilled: true,
    isUnpriced: false,
  });
  return {
    endedAtMs: atMs + latencyMs,
    outcome,
    status,
    errorCode,
    usage,
    usageSource,
    billingStatus: settled.billingStatus,
    charge: settled.charge?.toString() ?? null,
    ratedCost: settled.ratedCost?.toString() ?? null,
    suspense: settled.suspense.toString(),
    latencyMs,
    ttftMs,
    responseBytes: (usage?.outputTokens ?? 0) * (streamed ? 180 : 5) + 300,
    baselineCost: baseline?.toString() ?? null,
    guardrail: screening.input?.findings?.[0]?.rule ?? null,
    screening,
  };
}

function priceOf({ api, model }: Pick<DemoRequest, 'api' | 'model'>, catalog: Catalog): Price | null {
  const price = catalog.byName.get(model)?.servedBy[0]?.price ?? null;
  return price === null ? null : priceOn(api, price);
}

function baselineOf({ api, model, route }: DemoRequest, catalog: Catalog): Baseline {
  const name = route?.baseline_model;
  if (name === undefined) return null;
  return name === model ? 'own' : priceOf({ api, model: name }, catalog);
}

/** The worst case, as a gateway holds it: nothing from the cache, and the most output. */
function holdOf(counts: Usage, price: Price | null): PicoUsd {
  const outputTokens = Math.max(HELD_OUTPUT_TOKENS, counts.outputTokens ?? 0);
  return (
    (price === null ? null : rateUsage({ ...counts, cachedInputTokens: null, outputTokens }, price)) ?? ZERO_PICO_USD
  );
}
