// Rates a reply by a price as an operator writes it, with the same steps as the gateway: schema, dialect, report,
// rating.

import assert from 'node:assert/strict';
import { priceSchema, readPrice } from '../../src/domain/configuration/schema/price-schema.ts';
import type { PrincipalLimit } from '../../src/domain/identity/principal.ts';
import type { Model } from '../../src/domain/models/catalog.ts';
import type { Price } from '../../src/domain/models/price.ts';
import type { Provider } from '../../src/domain/models/provider.ts';
import { rateUsage, unpricedDetail, unpricedPart } from '../../src/domain/settlement/rate-usage.ts';
import type { Usage } from '../../src/domain/usage/usage.ts';
import { planHolds } from '../../src/generation/admission/plan-holds.ts';
import { type OwnKeyUse, prepareCatalog, type ServedModel } from '../../src/generation/catalog/serving-catalog.ts';
import type { Dialect, RequestBounds } from '../../src/generation/dialects/dialect.ts';
import { reportedUsage } from '../../src/generation/execution/measure-usage.ts';
import { CaptureBuffer } from '../../src/generation/reply/capture-buffer.ts';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { splitBytes } from './byte-splits.ts';
import { NO_ROUTING } from './no-routing.ts';
import { principalOf } from './principals.ts';

const scanner = new RequestScanner();

/** The price as a configuration file or a request has it. */
export function priceOf(written: object): Price {
  return { version: '1', ...readPrice('text', priceSchema.parse(written)) };
}

function boundsOf(dialect: Dialect, request: object): RequestBounds {
  const body = Buffer.from(JSON.stringify({ model: 'm', ...request }));
  const bounds = dialect.readBounds(scanner.scan(body), body);
  assert.ok(!('kind' in bounds), JSON.stringify(request));
  return bounds;
}

export interface RatedReply {
  readonly usage: Usage | null;
  readonly cost: bigint | null;
  /** Why the reply is charged as held; null: everything in it has a price. */
  readonly unpriced: string | null;
}

export function rateReply(dialect: Dialect, request: object, reply: string, price: Price): RatedReply {
  const relayed = new CaptureBuffer();
  const bounds = boundsOf(dialect, request);
  const watch = dialect.watchReply?.(reply.startsWith('data:'), bounds.answers) ?? null;
  for (const piece of splitBytes(Buffer.from(reply), { kind: 'random', seed: 1, bytesMax: 60_000 })) {
    relayed.append(piece);
    watch?.feed(piece);
  }
  const reported = { bounds, relayed, watch, cut: false, clientLeft: false, price };
  const { usage, details } = reportedUsage(dialect, reported);
  if (usage === null) return { usage, cost: null, unpriced: unpricedDetail(details ?? {}, price) };
  return { usage, cost: rateUsage(usage, price), unpriced: unpricedPart(usage, price) };
}

export const MODEL: Omit<Model, 'servedBy'> = {
  id: 'm',
  displayName: 'M',
  kind: 'text',
  aliases: [],
  contextLength: 1_000_000,
  maxOutputTokens: 100_000,
  maxCompletionTokensCap: null,
  attachmentTokensMax: null,
  tokenizer: 'o200k_base',
  active: true,
  createdAtMs: 0,
};

export interface HeldRequest {
  /** The hold in pico-dollars, or the field that the refusal names. */
  readonly held: bigint | string;
  /**
   * What a budget holds if only own keys serve the request and budgets count all their use; null: the request is
   * refused.
   */
  readonly heldOfBudget: bigint | null;
  readonly inputTokensMax: number;
}

/** What a request of a billed organization holds if its deployments have these prices, in this order. */
export function holdFor(dialect: Dialect, request: object, prices: readonly (object | null)[]): HeldRequest {
  const provider: Provider = {
    id: 'p',
    baseUrl: 'http://p.test',
    apiKey: 'k',
    auth: 'bearer',
    onDisconnect: 'cancel',
  };
  const servedBy = prices.map((price) => ({
    provider,
    providerModel: 'm',
    apis: [dialect.api],
    price: price === null ? null : priceOf(price),
  }));
  const model = { ...MODEL, servedBy };
  const catalog = { version: 1, models: [model], byName: new Map([['m', model]]), routing: NO_ROUTING };
  const served = prepareCatalog(catalog).byName.get('m');
  assert.ok(served);
  const body = Buffer.from(JSON.stringify({ model: 'm', ...request }));
  const scanned = scanner.scan(body);
  const params = {
    principal: principalOf('o', { apiKeyId: 'k', walletId: 'w' }),
    dialect,
    served,
    bounds: boundsOf(dialect, request),
    measure: { bytes: body.length, attachments: scanned.attachments, carriedTokens: 0 },
    request: { body, scanned, form: null },
  };
  const plan = planHolds(params, params.measure);
  if ('kind' in plan)
    return { held: 'field' in plan ? String(plan.field) : plan.kind, heldOfBudget: null, inputTokensMax: 0 };
  const onOwnKeys = planHolds(
    { ...params, principal: { ...params.principal, limits: [BUDGET] }, served: withOwnKeys(served) },
    params.measure,
  );
  return {
    held: plan.price,
    heldOfBudget: 'kind' in onOwnKeys ? null : onOwnKeys.budgetPrice,
    inputTokensMax: plan.tokenBounds?.inputTokensMax ?? 0,
  };
}

const BUDGET: PrincipalLimit = {
  id: 'budget',
  scope: 'team',
  setBy: 'organization',
  kind: 'budget',
  window: 'day',
  amount: 10n ** 18n,
  model: null,
};

function withOwnKeys(served: ServedModel): ServedModel {
  const ownKey: OwnKeyUse = {
    keyId: 'own',
    organizationId: 'o',
    fingerprint: '',
    fee: null,
    budgets: 'all',
    isPrevious: false,
  };
  const deployments = [...served.deployments].map(
    ([api, ofApi]) => [api, ofApi.map((deployment) => ({ ...deployment, ownKey }))] as const,
  );
  return { ...served, deployments: new Map(deployments) };
}
