// The tools of a request that the provider runs and whose calls may have a price: which they are, and how often the
// request lets each be called.

import { objectsOf } from '../../domain/usage/countable-text.ts';
import type { CallBound } from '../dialects/dialect.ts';
import type { ScannedRequest, ScannedValue } from './scan/request-scanner.ts';

export interface ProviderTools {
  /** The provider's search: it passes without a price, and is charged as held where a reply says that it was used. */
  readonly searchToolType: string | null;
  /** Tools whose calls replies report, so that a price may have a price for them. */
  readonly reportedTools: readonly string[];
  /** `max_tool_calls` bounds the calls of all tools; elsewhere providers do not know it, and pass over it. */
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
 * Of each such tool the most calls that the request allows: `max_tool_calls` of all, or `max_uses` of its own. null:
 * the list of tools is too long to be read for them.
 */
export function boundCalls(
  table: ProviderTools,
  types: readonly (string | null)[],
  scanned: ScannedRequest,
  body: Buffer,
): readonly CallBound[] | null {
  const inAll = table.hasMaxToolCalls ? countIn(body, scanned.valueOf('max_tool_calls')) : null;
  const named = types.filter((type) => callsTool(table, type));
  // Codex lists the search in every request; OpenAI's has no `max_uses`, so that its tools are not read.
  const isRead = inAll === null && named.some((type) => type !== table.searchToolType);
  const uses = isRead ? usesOf(scanned, body) : new Map<string, number | null>();
  if (uses === null) return null;
  return named.map((type) => ({
    tool: toolOf(type),
    max: inAll ?? uses.get(type) ?? null,
    isOptional: type === table.searchToolType,
  }));
}

/** The tools of coding agents have 20 to 100 KB. */
const TOOLS_BYTES_MAX = 262_144;

/** `max_uses` of each type of tool, null where it has none; or null: not read. */
function usesOf(scanned: ScannedRequest, body: Buffer): ReadonlyMap<string, number | null> | null {
  const uses = new Map<string, number | null>();
  const found = scanned.valueOf('tools');
  if (found === null) return uses;
  if (found.end - found.start > TOOLS_BYTES_MAX) return null;
  for (const { type, max_uses: own } of objectsOf(JSON.parse(body.toString('utf8', found.start, found.end)))) {
    if (typeof type !== 'string') continue;
    // What is no whole number is left to the provider, and bounded from above.
    const max = typeof own === 'number' && own >= 0 ? Math.min(Math.ceil(own), Number.MAX_SAFE_INTEGER) : null;
    // Of two tools of one type each names a bound of its own, and is counted with that.
    uses.set(type, max !== null && uses.get(type) !== null ? Math.max(max, uses.get(type) ?? 0) : null);
  }
  return uses;
}

const COUNT_BYTES_MAX = 16;

function countIn(body: Buffer, found: ScannedValue | null): number | null {
  if (found === null || found.kind !== 'number' || found.end - found.start > COUNT_BYTES_MAX) return null;
  const count = Number(body.toString('latin1', found.start, found.end));
  return Number.isSafeInteger(count) && count >= 0 ? count : null;
}
