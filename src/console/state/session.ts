// The session: who is signed in, their permissions, their organization, and signing in and out.

import { signal } from '@preact/signals';
import { type Answer, type AnswerOf, call, type Refusal, readPages, registerSession, send } from '../api.ts';
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
  | { readonly kind: 'signed_out'; readonly reason: string | null }
  /** The gateway cannot say who is signed in. The session may still be valid. */
  | { readonly kind: 'unavailable'; readonly refusal: Refusal }
  | {
      readonly kind: 'signed_in';
      readonly me: Me;
      readonly organizations: readonly Membership[];
      /** A problem that the person has to decide on. Meanwhile the screens, and what is typed on them, stay. */
      readonly problem: SessionProblem | null;
    };

export type SessionProblem =
  /** A sign-in link opened this page while somebody is signed in. */
  | { readonly kind: 'sign_in_link'; readonly link: string }
  /** With the name of whoever has signed in on this browser since, in another tab; null if nobody has. */
  | { readonly kind: 'ended'; readonly successor: string | null }
  /** The session could not be switched to another organization. */
  | { readonly kind: 'switch_failed'; readonly refusal: Refusal }
  /** The sign-out was refused. */
  | { readonly kind: 'sign_out_failed'; readonly refusal: Refusal }
  /** Another tab has switched the session to the organization of this name, or a new session began in it. */
  | { readonly kind: 'other_organization'; readonly organization: string };

const SIGNED_OUT = 401;
export const session = signal<Session>({ kind: 'starting' });

/** Counts sign-ins. Every load depends on it, so that data which was refused before a sign-in is loaded after it. */
export const signInCount = signal(0);

registerSession({
  shown: () => (me() === null ? null : { person: me()?.user?.id ?? null, organization: organizationId() }),
  onSignedOut: () => raiseProblem({ kind: 'ended', successor: null }),
  onConflict: () => void checkSession(),
});

function raiseProblem(why: SessionProblem): void {
  if (session.value.kind !== 'signed_in') return;
  // Only the end of the session replaces a problem that is shown, because the other one then no longer matters.
  if (session.value.problem === null || why.kind === 'ended') session.value = { ...session.value, problem: why };
}

/**
 * After a 409. Most mean that the data was changed, but another tab may also have signed in somebody else, or switched
 * the organization.
 */
async function checkSession(): Promise<void> {
  // A switch that this page makes itself is no problem, so it has to end first.
  await switching;
  const answer = await call('get', '/v1/console/session');
  if (!answer.ok) return;
  const of = answer.data.data;
  if (!isOfShownPerson(of)) raiseProblem(endedBy(of));
  else if (!isShown(of.organization)) raiseProblem(otherOrganization(of.organization));
}

/** Signs this page in if another tab has signed in the same person meanwhile; says so if it was somebody else. */
export async function resumeSession(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (!answer.ok) return;
  const of = answer.data.data;
  if (isOfShownPerson(of)) await showNewSession(of);
  else raiseProblem(endedBy(of));
}

/** A session that begins in another organization than the ended one would take what is typed, so the page asks. */
async function showNewSession(of: Me): Promise<void> {
  const { value } = session;
  const isAgain = value.kind === 'signed_in' && value.problem?.kind === 'ended' && isOfShownPerson(of);
  if (!isAgain || isShown(of.organization)) return showSession(of);
  session.value = { ...value, problem: otherOrganization(of.organization) };
}

function isShown(organization: Me['organization']): boolean {
  return (organization?.id ?? null) === organizationId();
}

/** The platform's administrator, who is no person, has no id. */
function isOfShownPerson(of: Me): boolean {
  return of.user?.id === me()?.user?.id;
}

function endedBy(of: Me): SessionProblem {
  return { kind: 'ended', successor: nameOf(of) };
}

function otherOrganization(organization: Me['organization']): SessionProblem {
  return { kind: 'other_organization', organization: organization?.display_name ?? 'no organization' };
}

const USED_LINK = 'This link no longer signs you in: each link works once, within ten minutes.';

/**
 * Reads the session, and what the fragment of the address carries: the code of a one-time link, or the reason of a
 * failed sign-in. Browsers send the fragment to no server, so the code is in no log.
 */
export async function startSession(): Promise<void> {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const link = fragment.get('link');
  const problem = signInProblem(fragment.get('sign-in-problem'));
  if (link !== null || problem !== null) history.replaceState(null, '', location.pathname + location.search);
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) {
    await showSession(answer.data.data);
    // The sender of the link may want this person to act in the sender's account, so the page asks first.
    if (link !== null) raiseProblem({ kind: 'sign_in_link', link });
    return;
  }
  if (link !== null) {
    const opened = await signIn({ link });
    if (!opened.ok) session.value = { kind: 'signed_out', reason: USED_LINK };
    return;
  }
  session.value =
    answer.refusal.status === SIGNED_OUT
      ? { kind: 'signed_out', reason: problem }
      : { kind: 'unavailable', refusal: answer.refusal };
}

export async function signIn(body: { readonly token: string } | { readonly link: string }): Promise<Answer<unknown>> {
  const answer = await call('post', '/v1/console/sign-in', { body });
  if (answer.ok) await showNewSession(answer.data.data);
  return answer;
}

/** Where the sign-out fails, the person is told so: otherwise the next person at this browser would be signed in. */
export async function signOut(): Promise<void> {
  const answer = await send({ method: 'delete', address: '/v1/console/session' });
  if (answer.ok || answer.refusal.status === SIGNED_OUT) session.value = { kind: 'signed_out', reason: null };
  else raiseProblem({ kind: 'sign_out_failed', refusal: answer.refusal });
}

/** 5,000 organizations. An administrator of the platform may have joined many. */
const MEMBERSHIP_PAGES_MAX = 50;

/** Shows the organization that the session works in now. */
export async function reloadSession(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (!answer.ok) showRefusal(answer.refusal);
  else if (isOfShownPerson(answer.data.data)) await showSession(answer.data.data);
  else raiseProblem(endedBy(answer.data.data));
}

/** Goes on as whoever is signed in on this browser now. */
export async function showSuccessor(): Promise<void> {
  const answer = await call('get', '/v1/console/session');
  if (answer.ok) await showSession(answer.data.data);
}

/** Shows this session once its organizations are read. */
async function showSession(me: Me): Promise<void> {
  const path = '/v1/me/organizations';
  // The gateway refuses to list them for the platform's administrator, who is no person and belongs to none.
  const pages = me.user === null ? 0 : MEMBERSHIP_PAGES_MAX;
  const organizations = await readPages<Membership>(path, { limit: 100 }, null, pages);
  if (!organizations.ok) return showRefusal(organizations.refusal);
  session.value = { kind: 'signed_in', me, organizations: organizations.data.data, problem: null };
  signInCount.value += 1;
}

/** Whoever is signed in keeps the screens and what is typed on them; `raiseProblem` tells them that a session ended. */
function showRefusal(refusal: Refusal): void {
  if (session.value.kind === 'signed_in') return;
  session.value =
    refusal.status === SIGNED_OUT ? { kind: 'signed_out', reason: null } : { kind: 'unavailable', refusal };
}

let switching: Promise<unknown> = Promise.resolve();

/** Switches run one after the other, in the order of the choices, so that the last choice counts. */
export function switchOrganization(to: string | null): Promise<Answer<unknown>> {
  const switched = switching.then(() => sendSwitch(to));
  switching = switched;
  return switched;
}

async function sendSwitch(to: string | null): Promise<Answer<unknown>> {
  const answer = await call('patch', '/v1/console/session', { body: { organization_id: to } });
  if (answer.ok) await reloadSession();
  else raiseProblem({ kind: 'switch_failed', refusal: answer.refusal });
  return answer;
}

/** The model name that asks for auto routing. */
export function autoModel(): string {
  return me()?.auto_model ?? 'service/auto';
}

/** The prefix of the gateway's own headers: `x-service` in `x-service-tag`. */
export function headerPrefix(): string {
  return `x-${(me()?.brand ?? 'service').toLowerCase()}`;
}

/** How the person of a session is named to people. */
export function nameOf(of: Me | null): string {
  return of?.user?.email ?? 'the platform’s administrator';
}

export function me(): Me | null {
  return session.value.kind === 'signed_in' ? session.value.me : null;
}

/** The id of the organization that the page shows; null when it shows none. */
export function organizationId(): string | null {
  return me()?.organization?.id ?? null;
}

export function may(permission: Permission): boolean {
  return me()?.permissions.includes(permission) ?? false;
}

/**
 * These subcommands as `tollgate` commands for the current organization. They are offered to administrators of the
 * platform only, because the command reads the databases and runs beside a gateway.
 */
export function tollgateCommands(...lines: readonly string[]): readonly string[] {
  const slug = me()?.organization?.slug;
  if (slug === undefined || !may('platform.admin')) return [];
  return lines.map((line) => `tollgate ${line} --organization ${slug}`);
}
