// What a caller may ask of the simulated provider from inside its own message text: `[[sim: name=value flag ...]]`.
// Headers do not pass the gateway and a model name is rewritten by it, so the text is the only channel a black-box user has.

/** Every name a directive may set; README.md explains each. Numbers are whole and bounded, so no request can ask for endless work. */
export interface Directives {
  readonly tokens: number | null;
  readonly bytes: number;
  readonly delayMs: number | null;
  readonly firstByteMs: number | null;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  readonly status: number | null;
  readonly retryAfter: string | null;
  readonly times: number | null;
  readonly headerBytes: number;
  readonly cutAfter: number | null;
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
}

export type UsageFault = 'none' | 'negative' | 'huge' | 'string' | 'float' | 'null_counts';

const USAGE_FAULTS: readonly UsageFault[] = ['none', 'negative', 'huge', 'string', 'float', 'null_counts'];

/** The most a number may ask for; a larger one is held to this. */
const NUMBER_MAX: Readonly<Record<string, number>> = {
  tokens: 1_000_000,
  bytes: 64 * 1024 * 1024,
  delay_ms: 60_000,
  first_byte_ms: 600_000,
  cached: 1_000_000_000,
  cache_write: 1_000_000_000,
  reasoning: 1_000_000,
  status: 599,
  times: 1_000_000,
  header_bytes: 16 * 1024 * 1024,
  cut_after: 1_000_000,
  stall_after: 1_000_000,
  end_after: 1_000_000,
  error_after: 1_000_000,
};

const DIRECTIVE = /\[\[sim:([^\]]*)\]\]/g;

/** Reads every `[[sim: ...]]` in `text`; a later setting of the same name wins, an unknown name or value is ignored. */
export function readDirectives(text: string): Directives {
  const settings = new Map<string, string>();
  for (const match of text.matchAll(DIRECTIVE)) {
    for (const word of (match[1] ?? '').trim().split(/\s+/)) {
      const equals = word.indexOf('=');
      if (equals === -1) settings.set(word, '');
      else settings.set(word.slice(0, equals), word.slice(equals + 1));
    }
  }
  const number = (name: string): number | null => wholeNumber(settings.get(name), NUMBER_MAX[name] ?? 0);
  const status = number('status');
  return {
    tokens: number('tokens'),
    bytes: number('bytes') ?? 0,
    delayMs: number('delay_ms'),
    firstByteMs: number('first_byte_ms'),
    cached: number('cached') ?? 0,
    cacheWrite: number('cache_write') ?? 0,
    reasoning: number('reasoning') ?? 0,
    status: status !== null && status >= 400 ? status : null,
    retryAfter: settings.get('retry_after') || null,
    times: number('times'),
    headerBytes: number('header_bytes') ?? 0,
    cutAfter: number('cut_after'),
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
  };
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
