// The console's HTTP client for the gateway, typed by the gateway's OpenAPI document. Refusals and lost connections are
// returned as values; no function here throws.

import type { paths } from './api-types';
import { curlOf } from './logic/command.ts';
import { parseWithCounts } from './logic/exact-json.ts';
import { noAnswerMessage } from './logic/refusals.ts';

export type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Json<T> = T extends { content: { 'application/json': infer Body } } ? Body : never;
type Operation<P extends keyof paths, M extends Method> = paths[P][M];
type Responses<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer All } ? All : never;

/** The body of a route's 200 or 201 answer. */
export type AnswerOf<P extends keyof paths, M extends Method = 'get'> =
  Responses<P, M> extends { 200: infer Ok }
    ? Json<Ok>
    : Responses<P, M> extends { 201: infer Made }
      ? Json<Made>
      : never;
/** The body of a request to a route. */
export type BodyOf<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { requestBody?: infer Body } ? Json<NonNullable<Body>> : never;

export interface Refusal {
  /** The HTTP status; 0 when no complete answer came. */
  readonly status: number;
  readonly message: string;
  readonly requestId: string | null;
}

export type Answer<T> = { readonly ok: true; readonly data: T } | { readonly ok: false; readonly refusal: Refusal };

export type Query = Readonly<Record<string, string | number | null | undefined>>;

export interface ApiRequest {
  readonly method: Method;
  /** Path and query, with every parameter filled in. */
  readonly address: string;
  readonly body?: unknown;
}

export interface RequestOptions {
  /** Values for the `{parameters}` of the path. */
  readonly pathParameters?: Readonly<Record<string, string>>;
  readonly query?: Query;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** What this client asks of the session, and what it reports to the session. */
interface SessionHooks {
  /** The ids of the person and the organization that the page shows; null when nobody is signed in. */
  readonly shown: () => { readonly person: string | null; readonly organization: string | null } | null;
  /** Called for each 401. */
  readonly onSignedOut: () => void;
  /** Called for each 409. */
  readonly onConflict: () => void;
}

let session: SessionHooks = { shown: () => null, onSignedOut: () => {}, onConflict: () => {} };
/** The session registers itself here, because this file cannot import the session, which imports this file. */
export function registerSession(owner: SessionHooks): void {
  session = owner;
}

/** These routes concern the person, whichever organization the session works in. */
const PERSONAL_ROUTES = /^\/v1\/(me\/organizations|console\/session|console\/sign-in)(\?|$)/;

/**
 * The person and the organization that this page shows. Where another tab has signed in somebody else since, or chosen
 * another organization, the gateway refuses the request (409) instead of acting for the wrong ones. Whoever asks who is
 * signed in names nobody.
 */
function shownHeaders({ method, address }: ApiRequest): Record<string, string> {
  const shown = session.shown();
  const isPersonal = PERSONAL_ROUTES.test(address);
  return {
    'x-tollgate-console': isPersonal || shown === null ? '1' : (shown.organization ?? 'none'),
    ...((isPersonal && method === 'get') || shown === null
      ? {}
      : { 'x-tollgate-console-person': shown.person ?? 'none' }),
  };
}

export function addressOf(path: string, { pathParameters = {}, query = {} }: RequestOptions = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(pathParameters[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  return search.size === 0 ? filled : `${filled}?${search}`;
}

/** The same request as a curl command. */
export function curlCommand(path: string, options: RequestOptions = {}, method: Method = 'get'): string {
  return curlOf({ method, address: addressOf(path, options), body: options.body }, location.origin);
}

export async function call<P extends keyof paths, M extends Method>(
  method: M,
  path: P,
  options: Omit<RequestOptions, 'body'> & { body?: BodyOf<P, M> } = {},
): Promise<Answer<AnswerOf<P, M>>> {
  return send({ method, address: addressOf(path, options), body: options.body }, options.signal);
}

/** As `call`, for an address that is composed at run time; the caller names the type of the answer. */
export async function send<T>(apiRequest: ApiRequest, signal?: AbortSignal): Promise<Answer<T>> {
  const answered = await request(apiRequest, signal);
  if (!answered.ok) return answered;
  try {
    const text = await answered.data.text();
    return { ok: true, data: (text === '' ? null : parseWithCounts(text)) as T };
  } catch {
    return {
      ok: false,
      refusal: { status: 0, message: noAnswerMessage(apiRequest.method, 'broken'), requestId: null },
    };
  }
}

/** Sends a request and returns the response, its body unread, if its status is 2xx. */
export async function request(apiRequest: ApiRequest, signal?: AbortSignal): Promise<Answer<Response>> {
  const headers = shownHeaders(apiRequest);
  const isForm = apiRequest.body instanceof FormData;
  if (apiRequest.body !== undefined && !isForm) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(apiRequest.address, {
      method: apiRequest.method.toUpperCase(),
      headers,
      ...(apiRequest.body === undefined
        ? {}
        : { body: isForm ? (apiRequest.body as FormData) : JSON.stringify(apiRequest.body) }),
      ...(signal === undefined ? {} : { signal }),
      credentials: 'same-origin',
    });
    if (response.ok) return { ok: true, data: response };
    if (response.status === 401) session.onSignedOut();
    if (response.status === 409) session.onConflict();
    return { ok: false, refusal: await readRefusal(response) };
  } catch (error) {
    const isEnded = error instanceof DOMException && error.name === 'AbortError';
    const message = isEnded ? 'The request was cancelled.' : noAnswerMessage(apiRequest.method, 'none');
    return { ok: false, refusal: { status: 0, message, requestId: null } };
  }
}

/** Every error envelope has its message in `error`: as a text, or as an object with a `message`. */
export async function readRefusal(response: Response): Promise<Refusal> {
  const requestId = response.headers.get('x-request-id');
  try {
    const body = (await response.json()) as { error?: unknown; message?: unknown; request_id?: string };
    const said =
      typeof body.error === 'string' ? body.error : (body.error as { message?: string } | undefined)?.message;
    const more = typeof body.message === 'string' && body.message !== said ? ` ${body.message}` : '';
    return {
      status: response.status,
      message: `${said ?? response.statusText}${more}`,
      requestId: body.request_id ?? requestId,
    };
  } catch {
    return { status: response.status, message: response.statusText, requestId };
  }
}

export interface Page<Row> {
  readonly data: readonly Row[];
  /** Where the next page begins; null on the last page. */
  readonly next_cursor: string | null;
}

/** Reads up to `count` pages of a listing and joins them. `from` is the cursor to start at; null is the beginning. */
export async function readPages<Row>(
  path: string,
  query: Query,
  from: string | null,
  count: number,
  signal?: AbortSignal,
): Promise<Answer<Page<Row>>> {
  let [all, cursor]: [Page<Row> | null, string | null] = [null, from];
  for (let page = 0; page < count; page++) {
    const address = addressOf(path, { query: { ...query, cursor } });
    const answer = await send<Page<Row>>({ method: 'get', address }, signal);
    if (!answer.ok) return answer;
    all = all === null ? answer.data : joinPages(all, answer.data);
    cursor = answer.data.next_cursor;
    if (cursor === null) break;
  }
  return { ok: true, data: all ?? { data: [], next_cursor: null } };
}

export function joinPages<Row>(first: Page<Row> | null, later: Page<Row>): Page<Row> | null {
  return first === null ? null : { ...first, data: [...first.data, ...later.data], next_cursor: later.next_cursor };
}
