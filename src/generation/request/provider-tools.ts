// Finds the tools of a request that the provider runs and whose calls may have a price, and how often the request lets
// each be called.

import { NOT_THERE, objectAround, valueEnd, valuesOf } from '../../platform/bytes/json-members.ts';
import type { CallBound } from '../dialects/dialect.ts';
import type { ScannedRequest, ScannedValue } from './scan/request-scanner.ts';

export interface ProviderTools {
  /**
   * The provider's search. It may be used without a price in the catalog, and is charged as held when a reply says that
   * it was used.
   */
  readonly searchToolType: string | null;
  /** Tools whose calls replies report, so that the catalog can have a price for them. */
  readonly reportedTools: readonly string[];
  /** Whether `max_tool_calls` bounds the calls of all tools; other providers ignore it. */
  readonly hasMaxToolCalls: boolean;
}

export function callsTool({ reportedTools, searchToolType }: ProviderTools, type: string | null): type is string {
  return type !== null && (type === searchToolType || reportedTools.includes(toolOf(type)));
}

/** `web_search_20250305`, `web_search_2025_08_26` and `openrouter:web_search` are versions of `web_search`. */
export function toolOf(type: string): string {
  return type.replace(/^openrouter:/, '').replace(/_(?:\d{8}|\d{4}_\d{2}_\d{2})$/, '');
}

/**
 * For each such tool the most calls that the request allows: by `max_tool_calls` for all tools, or by the tool's own
 * `max_uses`. null: a tool is too long or too ambiguous to be read. `types` are those of `scanned`, as texts.
 */
export function boundCalls(
  table: ProviderTools,
  types: readonly (string | null)[],
  scanned: ScannedRequest,
  body: Buffer,
): readonly CallBound[] | null {
  const inAll = table.hasMaxToolCalls ? countIn(body, scanned.valueOf('max_tool_calls')) : null;
  // Codex lists OpenAI's search in every request. That search has no `max_uses`, so tools are read only if there are
  // others.
  const named = types.filter((type) => callsTool(table, type));
  const isRead = inAll === null && named.some((type) => type !== table.searchToolType);
  const bytesMax = TOOLS_BYTES_MAX / named.length;
  const calls: CallBound[] = [];
  for (const [at, { start }] of scanned.types.entries()) {
    const type = types[at] ?? null;
    if (!callsTool(table, type)) continue;
    const uses = isRead ? usesOf(body, start, bytesMax) : null;
    if (uses === UNREAD) return null;
    calls.push({ tool: toolOf(type), max: inAll ?? uses, isOptional: type === table.searchToolType });
  }
  return calls;
}

/**
 * The tools that the provider runs share these bytes equally, so that many take no longer to read than one. The bytes
 * of a tool are read at most twice: backwards from its type, and forwards from its beginning. A search with two
 * thousand `allowed_domains` fits.
 */
const TOOLS_BYTES_MAX = 65_536;
const UNREAD = 'unread';
const MAX_USES = Buffer.from('max_uses');

/**
 * `max_uses` of the tool whose type begins at `typeAt`; null: it has none, or one that is no number of zero or more.
 */
function usesOf(body: Buffer, typeAt: number, bytesMax: number): number | null | typeof UNREAD {
  const before = body.subarray(Math.max(0, typeAt - bytesMax), typeAt);
  const open = objectAround(before, before.length);
  if (open === NOT_THERE) return UNREAD;
  const start = typeAt - before.length + open;
  const tool = body.subarray(start, start + bytesMax);
  const values = valuesOf(tool, 0, MAX_USES);
  // Providers differ in which of two values they take.
  if (values === null || values.length > 1) return UNREAD;
  const [value] = values;
  const bound = value === undefined ? Number.NaN : Number(tool.toString('latin1', value, valueEnd(tool, value)));
  // A fraction is left to the provider to judge, and rounded up for the bound.
  return bound >= 0 ? Math.min(Math.ceil(bound), Number.MAX_SAFE_INTEGER) : null;
}

const COUNT_BYTES_MAX = 16;

function countIn(body: Buffer, found: ScannedValue | null): number | null {
  if (found === null || found.kind !== 'number' || found.end - found.start > COUNT_BYTES_MAX) return null;
  const count = Number(body.toString('latin1', found.start, found.end));
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}
