// Who is signed in, what they may do, and in which organization they work.

import { signal } from '@preact/signals';
import { type Answer, type AnswerOf, call, type Refusal, readPages, requestsBelongTo, send } from '../api.ts';
import { signInProblem } from '../logic/sign-in-problems.ts';

export type Me = AnswerOf<'/v1/console/session'>['data'];
export type Membership = AnswerOf<'/v1/me/organizations'>['data'][number];
export type Permission =
  | 'inference'
  | 'usage.read'
  | 'team.usage.read'
  | 'org.usage.read'
  | 'org.admin'
  | 'platform.admin';

export type Session =
  | { readonly kind: 'starting' }
  | { readonly kind: 'out'; readonly reason: string | null }
  /** Nobody can say who is signed in: the session may be as good as before. */
  | { readonly kind: 'away'; readonly refusal: Refusal }
  | {
      readonly kind: 'in';
      readonly me: Me;
      readonly organizations: readonly Membership[];
      /** What has become of it since; what is typed on the screens stays until somebody has answered. */
      readonly problem: SessionProblem | null;
    };

/**
 * It has ended, could not be ended, could not be moved to another organization, another tab works in one, whose name is
 * this, or the page was opened by a link that signs somebody in.
 */
export type SessionProblem =
  | { readonly kind: 'linked'; readonly link: string }
  | { readonly kind: 'ended' }
  | { readonly kind: 'unmoved'; readonly refusal: Refusal }
  | { readonly kind: 'kept'; readonly refusal: Refusal }
  | { readonly kind: 'elsewhere'; readonly organization: string };

const SIGNED_OUT = 401;
export const session = signal<Session>({ kind: 'starting' });

/** Moves when somebody has signed in again: what was refused meanwhile is read anew. */
export const entries = signal(0);

requestsBelongTo({
  workplace: () => (session.value.kind === 'in' ? (organizationId() ?? 'none') : null),
  onSignedOut: () => raise({ kind: 'ended' }),
  onConflict: () => void lookElsewhere(),
});

function raise(why: SessionProblem): void {
  if (session.value.kind !== 'in') return;
  // A session that has ended cannot be moved or kept any more.
  if (session.value.problem === null || why.kind === 'ended') session.value = { ...session.value, problem: why };
}

/** Most conflicts are of what was changed; this one is of the session. */
async function lookElsewhere(): Promise<void> {
  // What this page changes itself is no other tab's doing.
  await moving;
  const answer = await call('get', '/v1/console/session');
  if (!answer.ok) return;
  const { organization } = answer.data.data;
  if ((organization?.id ?? null) !== organizationId())
    raise({ kind: 'elsewhere', organization: organization?.display_name ?? 'no organization' });
}

/** Where another tab has signed in meanwhile. */
export async function lookAgain(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) await enterAs(answer.data.data);
}

const USED_LINK = 'This link does not sign in any more: each works once, for ten minutes.';

/** A one-time link carries its code in the fragment, which no server and no log sees; a failed sign-in its reason. */
export async function startSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const link = fragment.get('link');
  const problem = signInProblem(fragment.get('sign-in-problem'));
  if (link !== null || problem !== null) history.replaceState(null, '', location.pathname + location.search);
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) {
    await enterAs(answer.data.data);
    // Who sent the link may want to be taken for whoever follows it: nobody is signed in to another account unasked.
    if (link !== null) raise({ kind: 'linked', link });
    return;
  }
  if (link !== null) {
    const opened = await signIn({ link });
    if (!opened.ok) session.value = { kind: 'out', reason: USED_LINK };
    return;
  }
  session.value =
    answer.refusal.status === SIGNED_OUT ? { kind: 'out', reason: problem } : { kind: 'away', refusal: answer.refusal };
}

export async function signIn(body: { readonly token: string } | { readonly link: string }): Promise<Answer<unknown>> {
  const answer = await call('post', '/v1/console/sign-in', { body });
  if (answer.ok) await enterAs(answer.data.data);
  return answer;
}

/** Who is not signed out is told so: the next one at this browser would be signed in. */
export async function signOut(): Promise<void> {
  const answer = await send({ method: 'delete', address: '/v1/console/session' });
  if (answer.ok || answer.refusal.status === SIGNED_OUT) session.value = { kind: 'out', reason: null };
  else raise({ kind: 'kept', refusal: answer.refusal });
}

/** Five thousand organizations: a platform's administrator may have joined them all. */
const MEMBERSHIP_PAGES_MAX = 50;

/** Shows the organization that the session works in now. */
export async function enter(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) await enterAs(answer.data.data);
  else beRefused(answer.refusal);
}

/** Reads where somebody may work. ADMIN_TOKEN stands for no person and has no memberships. */
async function enterAs(me: Me): Promise<void> {
  const path = '/v1/me/organizations';
  const organizations = await readPages<Membership>(path, { limit: 100 }, null, MEMBERSHIP_PAGES_MAX);
  if (!organizations.ok) return beRefused(organizations.refusal);
  session.value = { kind: 'in', me, organizations: organizations.data.data, problem: null };
  entries.value += 1;
}

/** What is shown stays, also where the session has ended (`raise`): something may be typed into it. */
function beRefused(refusal: Refusal): void {
  if (session.value.kind === 'in') return;
  session.value = refusal.status === SIGNED_OUT ? { kind: 'out', reason: null } : { kind: 'away', refusal };
}

let moving: Promise<unknown> = Promise.resolve();

/** One after the other, as they were chosen: the last one counts. */
export function switchOrganization(to: string | null): Promise<Answer<unknown>> {
  const moved = moving.then(() => moveTo(to));
  moving = moved;
  return moved;
}

async function moveTo(to: string | null): Promise<Answer<unknown>> {
  const answer = await call('patch', '/v1/console/session', { body: { organization_id: to } });
  if (answer.ok) await enter();
  else raise({ kind: 'unmoved', refusal: answer.refusal });
  return answer;
}

/** The name under which auto routing is asked for. */
export function autoModel(): string {
  return me()?.auto_model ?? 'service/auto';
}

/** By which the gateway names its own headers: `x-service-tag`. */
export function headerPrefix(): string {
  return `x-${(me()?.brand ?? 'service').toLowerCase()}`;
}

export function me(): Me | null {
  return session.value.kind === 'in' ? session.value.me : null;
}

/** The organization that is shown; null: none. */
export function organizationId(): string | null {
  return me()?.organization?.id ?? null;
}

export function may(permission: Permission): boolean {
  return me()?.permissions.includes(permission) ?? false;
}

/**
 * A line of the `tollgate` command about the organization that is shown, for whoever administers the installation: it
 * reads the databases and runs beside a gateway.
 */
export function tollgateLines(...lines: readonly string[]): readonly string[] {
  const slug = me()?.organization?.slug;
  if (slug === undefined || !may('platform.admin')) return [];
  return lines.map((line) => `tollgate ${line} --organization ${slug}`);
}
