// Finds what a request names that makes its provider charge another price, or serve another model, than the catalog
// says (spec 7.4, 8). Each dialect has a table of such fields; fields that several dialects share are in this file. A
// billed organization is refused before anything is sent, unless a deployment has a price for the value. An
// organization that is not billed may send all of it.

import type { VariationKind } from '../../domain/models/price.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { UsageDetails } from '../../domain/usage/usage.ts';
import { stringEnd } from '../../platform/bytes/json-bytes.ts';
import type { NamedCost, RequestBounds } from '../dialects/dialect.ts';
import { boundCalls, callsTool, type ProviderTools, toolOf } from './provider-tools.ts';
import { readString, type ScannedRequest, type ScannedType } from './scan/request-scanner.ts';
import type { CostKey } from './scan/scanned-keys.ts';

interface CostField {
  /**
   * Whether this value costs nothing beyond the catalog's price. Absent fields, null, false and empty lists never do.
   */
  readonly isFree: (value: unknown) => boolean;
  /** Why the value cannot be billed: what it would cost beside the catalog's price, or which price it would change. */
  readonly reason: string;
  readonly advice: string;
  /** The kind under which a deployment may have a price for the value; absent: none can have one. */
  readonly pricedAs?: VariationKind | 'audio';
}

/** A dialect's fields and tools that bear on the price. */
export interface UnpricedRequests extends ProviderTools {
  readonly fields: Readonly<Partial<Record<CostKey, CostField>>>;
  /** Types of tools, beside `function` and `custom`, that the client runs or that have no price of their own. */
  readonly freeToolTypes: readonly string[];
  /** Beginnings of further such types, whose names end with a date. */
  readonly freeToolPrefixes: readonly string[];
  /** Whether replies report cache writes for an hour apart from those for five minutes. */
  readonly reportsHourCache: boolean;
}

const NEVER = (): boolean => false;
export const oneOf =
  (...values: readonly string[]) =>
  (value: unknown): boolean =>
    typeof value === 'string' && values.includes(value);

const OTHER_MODELS = {
  isFree: NEVER,
  reason: 'It lets the provider serve another model than the one that is priced.',
  advice: 'Leave it out; name one model.',
};
export const SEARCH = {
  isFree: NEVER,
  reason: 'Searches by the provider have no price in the catalog.',
  advice: 'Leave it out.',
};

/** `auto` is the same as no tier; `on_demand` is Groq's name for the default one. */
const OPENAI_TIER: CostField = {
  isFree: oneOf('auto', 'default', 'standard', 'on_demand'),
  reason: 'This service tier has no price in the catalog.',
  advice: 'Leave "service_tier" out, or send "auto" or "default".',
  pricedAs: 'serviceTiers',
};

/** Fields of OpenRouter and of gateways that adopted them, known in each of the three formats. */
export const ROUTER_FIELDS = {
  models: OTHER_MODELS,
  fallbacks: OTHER_MODELS,
  route: OTHER_MODELS,
  preset: OTHER_MODELS,
  provider: {
    ...OTHER_MODELS,
    reason: "It lets the request choose providers whose prices differ from the catalog's.",
    advice: 'Leave it out.',
  },
  plugins: { ...SEARCH, reason: 'Plugins of the provider have no price in the catalog.' },
  speed: {
    isFree: oneOf('standard'),
    reason: 'This speed has no price in the catalog.',
    advice: 'Leave "speed" out, or send "standard".',
    pricedAs: 'speeds',
  },
} as const;

export const OPENAI_FIELDS = {
  ...ROUTER_FIELDS,
  service_tier: OPENAI_TIER,
  web_search_options: SEARCH,
  search_parameters: SEARCH, // xAI
  search_settings: SEARCH, // Groq
  search_options: SEARCH, // Alibaba
  enable_search: SEARCH, // Alibaba
  web_search: SEARCH, // Baidu
  compound_custom: SEARCH, // Groq
  // OpenAI, with a beta header: agents may start agents without limit, and the request's own bounds do not bound them.
  multi_agent: {
    isFree: (value: unknown) => (value as { readonly enabled?: unknown } | null)?.enabled === false,
    reason: 'What agents of the provider do has no upper bound.',
    advice: 'Leave "multi_agent" out; let your own application run agents.',
  },
  modalities: {
    isFree: (value: unknown) => Array.isArray(value) && value.every((modality) => modality === 'text'),
    reason: 'Output other than text has no price in the catalog.',
    advice: 'Leave "modalities" out, or send ["text"].',
    pricedAs: 'audio',
  },
  audio: {
    isFree: NEVER,
    reason: 'Audio output has no price in the catalog.',
    advice: 'Leave "audio" out.',
    pricedAs: 'audio',
  },
  // xAI answers a deferred request at once and without usage.
  deferred: {
    isFree: NEVER,
    reason: 'A deferred completion reports its usage after the request has ended.',
    advice: 'Leave "deferred" out.',
  },
} as const;

/**
 * Adds to a request's bounds what it names beyond the catalog's prices. That is nearly always nothing, which three
 * comparisons show.
 */
export function withNamedCosts(
  bounds: RequestBounds,
  table: UnpricedRequests,
  scanned: ScannedRequest,
  body: Buffer,
): RequestBounds {
  const { hasCostKeys, typeCount, asksForHourCache } = scanned;
  return hasCostKeys || typeCount > 0 || asksForHourCache ? nameCosts(bounds, table, scanned, body) : bounds;
}

function nameCosts(
  bounds: RequestBounds,
  table: UnpricedRequests,
  scanned: ScannedRequest,
  body: Buffer,
): RequestBounds {
  const { types, typeCount, asksForHourCache } = scanned;
  const tools = types.map((type) => readType(type, body));
  const named: NamedCost[] = [];
  const callsAny = tools.some((type) => callsTool(table, type));
  const calls = callsAny ? boundCalls(table, tools, scanned, body) : [];
  const refusal =
    refuseField(table, scanned, body, named) ??
    refuseTool(table, tools, typeCount > types.length, named) ??
    refuseHourCache(table, scanned) ??
    (calls === null ? UNREAD_TOOLS : null);
  return {
    ...bounds,
    ...(refusal === null ? {} : { refusalIfBilled: refusal }),
    ...(named.length === 0 ? {} : { namedCosts: { items: named, details: detailsOf(named) } }),
    ...plainTierNamed(table, scanned, body),
    ...(callsAny ? { maySearch: true, calls: calls ?? [] } : {}),
    ...(asksForHourCache ? { asksForHourCache } : {}),
  };
}

/** A longer value is never free. */
const VALUE_BYTES_MAX = 4_096;

function detailsOf(named: readonly NamedCost[]): UsageDetails {
  return Object.fromEntries(
    named.flatMap(({ kind, name }) => (kind === 'calls' || kind === 'audio' ? [] : [[DETAIL_OF[kind], name]])),
  );
}

const DETAIL_OF = { serviceTiers: 'serviceTier', speeds: 'speed', geos: 'geo' } as const;

/**
 * A tier without a price of its own that the request names. It still differs from a deployment's default tier; `auto`
 * does not.
 */
function plainTierNamed(
  { fields: { service_tier: field } }: UnpricedRequests,
  scanned: ScannedRequest,
  body: Buffer,
): Pick<RequestBounds, 'plainTier'> {
  const found = field === undefined ? null : scanned.valueOf('service_tier');
  if (found?.kind !== 'string' || found.end - found.start > TYPE_BYTES_MAX) return {};
  const name = readString(body, found);
  return name !== 'auto' && field?.isFree(name) === true ? { plainTier: name } : {};
}

/**
 * The refusal for the first field that no deployment can have a price for. Fields that one can are added to `named`.
 */
function refuseField(
  table: UnpricedRequests,
  scanned: ScannedRequest,
  body: Buffer,
  named: NamedCost[],
): Refusal | null {
  if (!scanned.hasCostKeys) return null;
  for (const [field, { isFree, reason, advice, pricedAs }] of Object.entries(table.fields)) {
    const found = scanned.valueOf(field as CostKey);
    if (found === null || found.kind === 'null' || found.kind === 'false') continue;
    const isShort = found.end - found.start <= VALUE_BYTES_MAX;
    const value: unknown = isShort ? JSON.parse(body.toString('utf8', found.start, found.end)) : null;
    if (isShort && ((Array.isArray(value) && value.length === 0) || isFree(value))) continue;
    const refusal: Refusal = {
      kind: 'not_safely_billable',
      field,
      reason: `"${field}" cannot be billed. ${reason}`,
      advice,
    };
    const name = pricedAs === 'audio' ? audioNamed(field, value) : value;
    if (pricedAs === undefined || typeof name !== 'string') return refusal;
    named.push({ kind: pricedAs, name, refusal });
  }
  return null;
}

/** null: the value names output that is neither text nor audio. */
function audioNamed(field: string, value: unknown): string | null {
  const isAudio =
    field === 'audio' || (Array.isArray(value) && value.every((one) => one === 'text' || one === 'audio'));
  return isAudio ? 'output' : null;
}

/** The refusal for the first tool that no deployment can have a price for. Tools that one can are added to `named`. */
function refuseTool(
  table: UnpricedRequests,
  types: readonly (string | null)[],
  hasMore: boolean,
  named: NamedCost[],
): Refusal | null {
  const isFree = (type: string | null): boolean =>
    type !== null &&
    (type === table.searchToolType ||
      table.freeToolTypes.includes(type) ||
      table.freeToolPrefixes.some((prefix) => type.startsWith(prefix)));
  for (const type of types) {
    if (isFree(type)) continue;
    if (type === null || !callsTool(table, type)) return unpricedTool(type);
    named.push({ kind: 'calls', name: toolOf(type), refusal: unpricedTool(type) });
  }
  return hasMore ? unpricedTool(null) : null;
}

function unpricedTool(type: string | null): Refusal {
  const subject = type === null ? 'Some of the tools' : `Tools of type ${JSON.stringify(type)}`;
  return {
    kind: 'not_safely_billable',
    field: 'tools',
    reason: `${subject} are run by the provider, at a price that is not in the catalog.`,
    advice: 'Leave such tools out, or run one of your own in their place.',
  };
}

const UNREAD_TOOLS: Refusal = {
  kind: 'not_safely_billable',
  field: 'tools',
  reason:
    'How often a tool that the provider runs may be called could not be read: such tools share 64 KB equally, and ' +
    'one is longer than its part, has "max_uses" twice, or has a key with escapes.',
  advice: 'Shorten it, name "max_uses" once, write keys without escapes, or leave the tool out.',
};

function refuseHourCache({ reportsHourCache }: UnpricedRequests, scanned: ScannedRequest): Refusal | null {
  return scanned.asksForHourCache && !reportsHourCache ? HOUR_CACHE_UNPRICED : null;
}

export const HOUR_CACHE_UNPRICED: Refusal = {
  kind: 'not_safely_billable',
  field: 'cache_control',
  reason: 'Cache writes that live for an hour have no price in the catalog.',
  advice: 'Leave "ttl" out of "cache_control", or send "5m".',
};

const TYPE_BYTES_MAX = 128;

/** The text of a tool's type; null: it is longer than any type. */
function readType({ start }: ScannedType, body: Buffer): string | null {
  const end = stringEnd(body, start) + 1;
  return end - start > TYPE_BYTES_MAX ? null : readString(body, { start, end, kind: 'string' });
}
