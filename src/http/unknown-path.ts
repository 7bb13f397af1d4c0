// Hints for unknown paths: usually the base URL of a client has a `/v1` too many or lacks one, or the path is of an API
// that other services have.

import { quoteShort } from '../domain/refusals/quote-short.ts';
import type { EnvelopeName } from '../domain/refusals/render.ts';
import type { Route } from './route.ts';

export interface UnknownPath {
  /**
   * The envelope of the endpoint that was probably meant, so that its client shows the hint; else that of similar
   * paths.
   */
  readonly envelope: EnvelopeName;
  /** null: there is no hint. */
  readonly hint: string | null;
}

const VERSION = 'v1';
/** A longer path does not come from a wrong base URL. */
const SEGMENTS_MAX = 16;

/** Returns what explains a path. The routes are indexed once, since anybody may ask for unknown paths at any time. */
export function explainUnknownPaths(routes: readonly Route[], publicUrl: string): (path: string) => UnknownPath {
  const byFirst = Map.groupBy(routes.flatMap(splitRoute), ({ own }) => own[0] ?? '');
  return (path) => explain(path, byFirst, publicUrl);
}

/** By their first segment behind `/v1`, which is never a parameter. */
type RoutesByFirst = ReadonlyMap<string, readonly SplitRoute[]>;

/** A route by the segments of its path behind `/v1`. */
interface SplitRoute {
  readonly route: Route;
  readonly own: readonly string[];
}

function splitRoute(route: Route): SplitRoute[] {
  const [version, ...own] = route.path.split('/').slice(1);
  return version === VERSION ? [{ route, own }] : [];
}

function explain(path: string, routes: RoutesByFirst, publicUrl: string): UnknownPath {
  const segments = path.split('/').filter((segment) => segment !== '');
  const meant = segments.length > SEGMENTS_MAX ? null : findMeantEndpoint(segments, routes);
  if (meant !== null) return { envelope: meant.route.envelope, hint: hintAt(meant, publicUrl) };
  const absent = findAbsentApi(segments);
  if (absent !== null) return absent;
  const isBaseUrlRight = segments[0] === VERSION && segments.length > 1 && segments[1] !== VERSION;
  return {
    envelope: envelopeBeside(segments, routes),
    hint: isBaseUrlRight ? null : `Set the base URL of your client to ${bothUrls(publicUrl)}.`,
  };
}

/**
 * The envelope of the routes that share the most segments with the path from its beginning, if all of them have the
 * same; else `platform`.
 */
function envelopeBeside(segments: readonly string[], routes: RoutesByFirst): EnvelopeName {
  const [version, ...own] = segments.slice(0, SEGMENTS_MAX);
  const beside = version === VERSION ? (routes.get(own[0] ?? '') ?? []) : [];
  const shared = beside.map((route) => sharedSegments(route, own));
  const longest = Math.max(...shared);
  const envelopes = new Set(beside.filter((_, at) => shared[at] === longest).map(({ route }) => route.envelope));
  const [envelope = 'platform'] = envelopes;
  return envelopes.size === 1 ? envelope : 'platform';
}

function sharedSegments({ own }: SplitRoute, segments: readonly string[]): number {
  const differs = own.findIndex((segment, at) => !segment.startsWith(':') && segment !== segments[at]);
  return Math.min(differs === -1 ? own.length : differs, segments.length);
}

interface AbsentApi {
  /** The first segments of its paths behind `/v1`. */
  readonly segments: readonly string[];
  readonly name: string;
  readonly envelope: EnvelopeName;
  readonly instead?: string;
}

/** APIs that OpenAI's and Anthropic's clients can call, and that this service does not have. */
const ABSENT_APIS: readonly AbsentApi[] = [
  {
    segments: ['completions'],
    name: 'legacy completions',
    envelope: 'openai',
    instead: 'Use /v1/chat/completions or /v1/responses.',
  },
  {
    segments: ['complete'],
    name: 'legacy text completions',
    envelope: 'messages',
    instead: 'Use /v1/messages.',
  },
  { segments: ['audio'], name: 'audio (speech, transcriptions and translations)', envelope: 'openai' },
  { segments: ['moderations'], name: 'moderations', envelope: 'openai' },
  { segments: ['realtime'], name: 'the Realtime API', envelope: 'openai', instead: 'Use /v1/responses.' },
  {
    segments: ['images', 'variations'],
    name: 'image variations',
    envelope: 'openai',
    instead: 'Use /v1/images/edits.',
  },
  { segments: ['messages', 'batches'], name: 'batches', envelope: 'messages' },
  ...['batches', 'fine_tuning', 'assistants', 'threads', 'vector_stores', 'conversations', 'videos', 'evals'].map(
    (name) => ({ segments: [name], name: name.replace('_', ' '), envelope: 'openai' }) as const,
  ),
];

function findAbsentApi(segments: readonly string[]): UnknownPath | null {
  const own = segments.slice(segments.findIndex((segment) => segment !== VERSION));
  const api = ABSENT_APIS.find(({ segments: first }) => first.every((segment, index) => segment === own[index]));
  if (api === undefined) return null;
  const { name, envelope, instead } = api;
  return { envelope, hint: `This service does not offer ${name}.${instead === undefined ? '' : ` ${instead}`}` };
}

function hintAt({ route, before }: MeantEndpoint, publicUrl: string): string {
  const versions = before.filter((segment) => segment === VERSION).length;
  if (versions > 1) return `The path has "/v1" twice: set the base URL of your client to ${bothUrls(publicUrl)}.`;
  if (versions === 0) return `The path lacks "/v1": set the base URL of your client to ${publicUrl}/v1.`;
  if (before.length > 1)
    return `The path is ${quoteShort(route.path)}: set the base URL of your client to ${bothUrls(publicUrl)}.`;
  return `The path is ${quoteShort(route.path)}, with single slashes and none at its end.`;
}

/** Both kinds of clients are common, and a path does not tell them apart. */
function bothUrls(publicUrl: string): string {
  return `${publicUrl}/v1, or ${publicUrl} if it adds "/v1" by itself (as the Anthropic and TypeSafe clients do)`;
}

interface MeantEndpoint {
  readonly route: Route;
  /** The segments before the endpoint's own path, where only `/v1` should be. */
  readonly before: readonly string[];
}

/** The longest route whose path, without `/v1`, ends the given path. */
function findMeantEndpoint(segments: readonly string[], routes: RoutesByFirst): MeantEndpoint | null {
  for (let at = 0; at < segments.length; at += 1) {
    const rest = segments.slice(at);
    const found = routes.get(rest[0] ?? '')?.find((candidate) => isRouteOf(candidate, rest));
    if (found !== undefined) return { route: found.route, before: segments.slice(0, at) };
  }
  return null;
}

function isRouteOf({ route, own }: SplitRoute, segments: readonly string[]): boolean {
  return (
    (own.length === segments.length || (route.takesRest === true && own.length < segments.length)) &&
    own.every((segment, index) => segment.startsWith(':') || segment === segments[index])
  );
}
