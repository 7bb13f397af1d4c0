// Reports that are asked now and then while ClickHouse is away: each is to be 503 in the platform envelope and to say
// when to come again (spec 7.1).

import { type HttpAnswer, httpCall } from '../support/http-call.ts';
import { ADMIN_TOKEN, organizationIdOf, Tenant } from '../support/identity-world.ts';
import { KEYS } from '../support/test-configuration.ts';
import { pause } from '../support/waiting.ts';

const INTERVAL_MS = 5_000;
const RETRY_MS = 250;
const STUCK_MS = 120_000;

/** By whom and what: a credential and a path each. */
export type ReportQuestions = Readonly<Record<string, { readonly token: string; readonly path: string }>>;

export interface RefusedReports {
  readonly reports: Readonly<Record<string, { readonly statuses: Record<string, number>; longestMs: number }>>;
  /** One of them as it came. */
  readonly example: { readonly retryAfter: string; readonly body: unknown } | null;
  readonly problems: readonly string[];
}

/** Of every audience that acme and the platform have, and of every kind. */
export async function openReportQuestions(url: string): Promise<ReportQuestions> {
  const acme = await Tenant.adopt(url, await organizationIdOf(url, ADMIN_TOKEN, 'acme'));
  const { token } = acme.owner;
  return {
    'usage of a key': { token: KEYS.acme, path: '/v1/usage/me' },
    'requests of a key': { token: KEYS.acme, path: '/v1/usage/me/requests?limit=10' },
    'usage of an organization': { token, path: '/v1/admin/active-org/usage' },
    'requests of an organization as CSV': { token, path: '/v1/admin/active-org/usage/requests?format=csv' },
    'routing of an organization': { token, path: '/v1/admin/active-org/usage/analytics/routing' },
    'usage of the platform': { token: ADMIN_TOKEN, path: '/v1/admin/usage' },
    'routing of the platform': { token: ADMIN_TOKEN, path: '/v1/admin/analytics/routing' },
  };
}

/** All of them, every few seconds, until it is stopped. */
export function askWhileAway(url: string, questions: ReportQuestions): { stop(): Promise<RefusedReports> } {
  const reports: Record<string, { statuses: Record<string, number>; longestMs: number }> = {};
  const problems = new Map<string, number>();
  let example: RefusedReports['example'] = null;
  let stopping = false;

  const askOne = async (name: string): Promise<void> => {
    const entry = (reports[name] ??= { statuses: {}, longestMs: 0 });
    // A gateway that dies takes its connections with it: whoever was cut asks once more.
    for (const isLast of [false, true]) {
      const startedMs = performance.now();
      const answer = await getReport(url, questions, name);
      entry.longestMs = Math.max(entry.longestMs, Math.round(performance.now() - startedMs));
      const status = String(answer?.status ?? 'no answer');
      entry.statuses[status] = (entry.statuses[status] ?? 0) + 1;
      if (answer === null && !isLast) continue;
      const problem = problemOf(answer);
      if (problem !== null) problems.set(`${name}: ${problem}`, (problems.get(`${name}: ${problem}`) ?? 0) + 1);
      else if (answer !== null)
        example ??= {
          retryAfter: String(answer.headers['retry-after']),
          body: JSON.parse(answer.body.toString()) as unknown,
        };
      return;
    }
  };
  const asking = (async () => {
    let dueMs = performance.now();
    while (!stopping) {
      await Promise.all(Object.keys(questions).map(askOne));
      dueMs += INTERVAL_MS;
      while (!stopping && performance.now() < dueMs) await pause(50);
    }
  })();
  return {
    async stop() {
      stopping = true;
      await asking;
      return { reports, example, problems: [...problems].map(([problem, count]) => `${count} × ${problem}`) };
    },
  };
}

/**
 * Until each of them is answered, and after how many milliseconds that was; an export is answered when it is there to
 * its end.
 */
export async function waitForReports(url: string, questions: ReportQuestions): Promise<Record<string, number>> {
  const startedMs = performance.now();
  const waitFor = async (name: string): Promise<[string, number]> => {
    for (;;) {
      const answer = await getReport(url, questions, name);
      const elapsedMs = Math.round(performance.now() - startedMs);
      if (answer?.status === 200 && answer.complete) return [name, elapsedMs];
      if (elapsedMs > STUCK_MS)
        throw new Error(
          `${name} is not answered although ClickHouse is back: ${answer?.status} ${answer?.body.toString()}`,
        );
      await pause(RETRY_MS);
    }
  };
  return Object.fromEntries(await Promise.all(Object.keys(questions).map(waitFor)));
}

function getReport(url: string, questions: ReportQuestions, name: string): Promise<HttpAnswer | null> {
  const { path = '', token = '' } = questions[name] ?? {};
  return httpCall(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } }).catch(() => null);
}

function problemOf(answer: HttpAnswer | null): string | null {
  if (answer === null) return 'no answer, twice in a row';
  const { status, headers, complete } = answer;
  const body = answer.body.toString();
  if (status !== 503 || !complete) return `${status}${complete ? '' : ', cut'}: ${body.slice(0, 200)}`;
  if (!(Number(headers['retry-after']) > 0)) return `Retry-After is ${headers['retry-after']}`;
  return isPlatformEnvelope(body) ? null : `not the platform envelope: ${body.slice(0, 200)}`;
}

function isPlatformEnvelope(body: string): boolean {
  try {
    const fields = Object.entries(JSON.parse(body) as object);
    return (
      fields.map(([name]) => name).join() === 'code,error,message,request_id' &&
      fields.every(([, value]) => typeof value === 'string' && value !== '')
    );
  } catch {
    return false;
  }
}
