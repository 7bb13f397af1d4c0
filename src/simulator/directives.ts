// Directives by which a caller controls the simulated provider from inside its own text: `[[sim: name=value flag
// ...]]`, or `[[sim/SCOPE: ...]]` for some APIs only. The text is the only channel through a gateway, which drops
// unknown headers and rewrites the model's name.

/**
 * Every name that a directive can set; src/simulator/README.md explains each. Numbers are whole and limited, so no
 * request can cause endless work.
 */
export interface Directives {
  readonly tokens: number | null;
  readonly bytes: number;
  readonly delayMs: number | null;
  readonly firstByteMs: number | null;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly reasoning: number | null;
  /** A tool's name; empty: the first tool of the request. */
  readonly toolCall: string | null;
  readonly toolCalls: number;
  readonly toolRounds: number;
  /** The arguments of the call, percent-decoded. */
  readonly toolArguments: string | null;
  readonly status: number | null;
  readonly retryAfter: string | null;
  readonly times: number | null;
  readonly headerBytes: number;
  readonly cutAfter: number | null;
  readonly resetAfter: number | null;
  readonly cutMidEvent: number | null;
  readonly stallAfter: number | null;
  readonly endAfter: number | null;
  readonly errorAfter: number | null;
  readonly usage: UsageFault | null;
  readonly resetBeforeReply: boolean;
  readonly closeBeforeReply: boolean;
  readonly blackhole: boolean;
  readonly splitUtf8: boolean;
  readonly invalidUtf8: boolean;
  readonly noDone: boolean;
  /** All settings, for an API that reads names of its own. */
  readonly settings: ReadonlyMap<string, string>;
}

export type UsageFault = 'none' | 'negative' | 'huge' | 'string' | 'float' | 'null_counts';

const USAGE_FAULTS: readonly UsageFault[] = ['none', 'negative', 'huge', 'string', 'float', 'null_counts'];

/** The largest allowed numbers; a larger one is reduced to this. */
const NUMBER_MAX: Readonly<Record<string, number>> = {
  tokens: 1_000_000,
  bytes: 64 * 1024 * 1024,
  delay_ms: 60_000,
  first_byte_ms: 600_000,
  cached: 1_000_000_000,
  cache_write: 1_000_000_000,
  reasoning: 1_000_000,
  tool_calls: 16,
  tool_rounds: 1000,
  status: 599,
  times: 1_000_000,
  header_bytes: 16 * 1024 * 1024,
  cut_after: 1_000_000,
  reset_after: 1_000_000,
  cut_mid_event: 1_000_000,
  stall_after: 1_000_000,
  end_after: 1_000_000,
  error_after: 1_000_000,
};

const DIRECTIVE = /\[\[sim(?:\/([a-z_]+))?:([^\]]*)\]\]/g;

/** The scope of a directive that names none. */
export const UNSCOPED = '';

/**
 * Reads every directive in `text` whose scope is in `scopes`. A later setting of the same name replaces an earlier one;
 * unknown names and values are ignored.
 */
export function readDirectives(text: string, scopes: readonly string[]): Directives {
  const settings = readSettings(text, scopes);
  const number = (name: string): number | null => wholeNumber(settings.get(name), NUMBER_MAX[name] ?? 0);
  const flagNumber = (name: string, bare: number): number | null =>
    number(name) ?? (settings.get(name) === '' ? bare : null);
  const status = number('status');
  return {
    tokens: number('tokens'),
    bytes: number('bytes') ?? 0,
    delayMs: number('delay_ms'),
    firstByteMs: number('first_byte_ms'),
    cached: number('cached') ?? 0,
    cacheWrite: number('cache_write') ?? 0,
    reasoning: number('reasoning'),
    toolCall: settings.get('tool_call') ?? null,
    toolCalls: number('tool_calls') ?? 1,
    toolRounds: number('tool_rounds') ?? 1,
    toolArguments: percentDecoded(settings.get('tool_arguments')),
    status: status !== null && status >= 400 ? status : null,
    retryAfter: settings.get('retry_after') || retryAfterOn200(settings),
    times: number('times'),
    headerBytes: number('header_bytes') ?? 0,
    cutAfter: number('cut_after'),
    resetAfter: number('reset_after'),
    cutMidEvent: flagNumber('cut_mid_event', 1),
    stallAfter: number('stall_after'),
    endAfter: number('end_after'),
    errorAfter: number('error_after'),
    usage: usageFault(settings),
    resetBeforeReply: settings.has('reset_before_reply'),
    closeBeforeReply: settings.has('close_before_reply'),
    blackhole: settings.has('blackhole'),
    splitUtf8: settings.has('split_utf8'),
    invalidUtf8: settings.has('invalid_utf8'),
    noDone: settings.has('no_done'),
    settings,
  };
}

/** The directives of one scope as text, to be read again later. */
export function directivesOf(scope: string, text: string): string {
  return Array.from(text.matchAll(DIRECTIVE), ([whole, found]) => (found === scope ? whole : '')).join('');
}

/** The directives without their faults, for when `times=` has run out. */
export function withoutFaults(directives: Directives): Directives {
  const { tokens, bytes, delayMs, cached, cacheWrite, reasoning, splitUtf8, settings } = directives;
  const { toolCall, toolCalls, toolRounds, toolArguments } = directives;
  const shape = {
    tokens,
    bytes,
    delayMs,
    cached,
    cacheWrite,
    reasoning,
    splitUtf8,
    settings,
    toolCall,
    toolCalls,
    toolRounds,
    toolArguments,
  };
  return { ...readDirectives('', []), ...shape };
}

/** Decodes `%20` and the like; returns the text unchanged when that fails. */
export function percentDecoded(text: string): string;
export function percentDecoded(text: string | undefined): string | null;
export function percentDecoded(text: string | undefined): string | null {
  if (text === undefined) return null;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function readSettings(text: string, scopes: readonly string[]): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [, scope = UNSCOPED, words = ''] of text.matchAll(DIRECTIVE)) {
    if (!scopes.includes(scope)) continue;
    for (const word of words.trim().split(/\s+/)) {
      const equals = word.indexOf('=');
      const name = equals === -1 ? word : word.slice(0, equals);
      settings.set(SYNONYMS[name] ?? name, equals === -1 ? (BARE_VALUES[name] ?? '') : word.slice(equals + 1));
    }
  }
  return settings;
}

const SYNONYMS: Readonly<Record<string, string>> = { headers_bytes: 'header_bytes', error_event: 'error_after' };
/** `error_event` without a value means after the first token. */
const BARE_VALUES: Readonly<Record<string, string>> = { error_event: '1' };

function retryAfterOn200(settings: ReadonlyMap<string, string>): string | null {
  const value = settings.get('retry_after_on_200');
  return value === undefined ? null : value || '30';
}

function usageFault(settings: ReadonlyMap<string, string>): UsageFault | null {
  if (settings.has('no_usage')) return 'none';
  const wanted = settings.get('usage');
  return USAGE_FAULTS.find((fault) => fault === wanted) ?? null;
}

function wholeNumber(text: string | undefined, max: number): number | null {
  if (text === undefined || !/^\d{1,12}$/.test(text)) return null;
  return Math.min(Number(text), max);
}
