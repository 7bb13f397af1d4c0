// The sign-in page (at an OpenID provider, or with an access token), the page shown when the gateway cannot say who is
// signed in, and the dialogs about problems of a session.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Refusal } from '../api.ts';
import { BrandMark } from '../parts/brand-mark.tsx';
import { Dialog, Said, TextField, useSubmit } from '../parts/form.tsx';
import { RefusalNotice } from '../parts/loaded.tsx';
import { mayLeave } from '../state/drafts.ts';
import { useRead } from '../state/load.ts';
import {
  enter,
  lookAgain,
  me,
  organizationId,
  type SessionProblem,
  session,
  signIn,
  startSession,
  switchOrganization,
} from '../state/session.ts';

/** The page where nobody is signed in: a single card. */
function Alone({ children }: { readonly children: ComponentChildren }) {
  return (
    <main class="alone">
      <div class="card sign-in">
        <h1>
          <BrandMark /> Tollgate
        </h1>
        {children}
      </div>
    </main>
  );
}

export function SignIn({ reason }: { readonly reason: string | null }) {
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  return (
    <Alone>
      {reason !== null && (
        <p class="refused" role="status">
          {reason}
        </p>
      )}
      <Ways />
      <p class="note">
        <code>tollgate console</code> on the machine of the gateway prints a link that signs you in once.{' '}
        <code>tollgate token create</code> makes a token. The token is exchanged for a session of this browser and kept
        nowhere.
      </p>
    </Alone>
  );
}

/** The gateway cannot say who is signed in. A session that was valid still is. */
export function Away({ refusal }: { readonly refusal: Refusal }) {
  return (
    <Alone>
      <RefusalNotice refusal={refusal} permission="" again={() => void startSession()} />
      <p class="note">Nobody has been signed out by it.</p>
    </Alone>
  );
}

/** With `isAside` an OpenID provider opens in another tab, so that this page keeps what is typed on it. */
function Ways({ isAside = false }: { readonly isAside?: boolean }) {
  const [token, setToken] = useState('');
  const { isBusy, refusal, run } = useSubmit<unknown>(() => setToken(''));
  const providers = useRead('/v1/console/sign-in').data?.data.oidc ?? [];
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void run(() => signIn({ token: token.trim() }));
      }}
    >
      {providers.map(({ id, display_name: name, url }) => (
        <a key={id} class="button" href={url} {...(isAside ? { target: '_blank', rel: 'noopener' } : {})}>
          Sign in with {name}
        </a>
      ))}
      <TextField label="Access token" type="password" value={token} onValue={setToken} isRequired placeholder="tgt-…" />
      <Said refusal={refusal} />
      <button type="submit" class={providers.length === 0 ? 'main' : ''} disabled={isBusy || token.trim() === ''}>
        Sign in
      </button>
    </form>
  );
}

/** A dialog over the current screen, which stays as it is. */
export function SessionNotice({ problem }: { readonly problem: SessionProblem }) {
  if (problem.kind === 'ended') return <SignInAgain />;
  if (problem.kind === 'linked') return <Linked link={problem.link} />;
  if (problem.kind === 'kept')
    return (
      <Still title="You are still signed in" refusal={problem.refusal}>
        The session could not be ended, and whoever opens this browser next would have it. Try again in a moment.
      </Still>
    );
  if (problem.kind === 'unmoved')
    return (
      <Still title="The organization stays" refusal={problem.refusal}>
        Another one could not be chosen: this page shows <bdi>{me()?.organization?.display_name}</bdi> as before.
      </Still>
    );
  return <Elsewhere organization={problem.organization} />;
}

function leave(): void {
  session.value = { kind: 'out', reason: null };
}

interface StillProps {
  readonly title: string;
  readonly refusal: Refusal;
  readonly children: ComponentChildren;
}

function Still({ title, refusal, children }: StillProps) {
  return (
    <Dialog title={title} onClose={forget}>
      <p>{children}</p>
      <Said refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" class="main" onClick={forget}>
          Go on
        </button>
      </footer>
    </Dialog>
  );
}

/** Closes the dialog. */
function forget(): void {
  if (session.value.kind === 'in') session.value = { ...session.value, problem: null };
}

function Linked({ link }: { readonly link: string }) {
  const { isBusy, refusal, run } = useSubmit<unknown>(() => {});
  return (
    <Dialog title="Sign in by this link?">
      <p>
        This page was opened by a link that signs in somebody, perhaps somebody else. You are signed in as{' '}
        <bdi>{me()?.user?.email ?? 'the platform’s administrator'}</bdi>.
      </p>
      <Said refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" disabled={isBusy} onClick={() => void run(() => signIn({ link }))}>
          Sign in by the link
        </button>
        <button type="button" class="main" onClick={forget}>
          Stay
        </button>
      </footer>
    </Dialog>
  );
}

function SignInAgain() {
  // A provider's sign-in runs in another tab. When this tab gets the focus again, there may be a session.
  useEffect(() => {
    const look = () => void lookAgain();
    addEventListener('focus', look);
    return () => removeEventListener('focus', look);
  }, []);
  return (
    <Dialog title="Your session has ended">
      <p class="lead">Sign in again to go on: what is typed on this page stays.</p>
      <Ways isAside />
      <footer class="dialog-foot">
        <button type="button" class="quiet" onClick={leave}>
          Leave this page
        </button>
      </footer>
    </Dialog>
  );
}

function Elsewhere({ organization }: { readonly organization: string }) {
  const { isBusy, refusal, run } = useSubmit<unknown>(() => {});
  const [own] = useState(organizationId);
  return (
    <Dialog title="Another organization is chosen">
      <p>
        Another tab of this browser works in <bdi>{organization}</bdi>. Nothing was done there from this page.
      </p>
      <Said refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" onClick={() => mayLeave() && void enter()}>
          Show <bdi>{organization}</bdi>
        </button>
        <button type="button" class="main" disabled={isBusy} onClick={() => void run(() => switchOrganization(own))}>
          Go on here
        </button>
      </footer>
    </Dialog>
  );
}
