// The sign-in page (at an OpenID provider, or with an access token), the page shown when the gateway cannot say who is
// signed in, and the dialogs about problems of a session.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Refusal } from '../api.ts';
import { BrandMark } from '../parts/brand-mark.tsx';
import { Dialog, FormRefusal, TextField, useSubmit } from '../parts/form.tsx';
import { RefusalNotice } from '../parts/loaded.tsx';
import { mayLeave } from '../state/drafts.ts';
import { useRead } from '../state/load.ts';
import {
  me,
  nameOf,
  organizationId,
  reloadSession,
  resumeSession,
  type SessionProblem,
  session,
  showSuccessor,
  signIn,
  startSession,
  switchOrganization,
} from '../state/session.ts';

/** The page where nobody is signed in: a single card. */
function SingleCard({ children }: { readonly children: ComponentChildren }) {
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
    <SingleCard>
      {reason !== null && (
        <p class="refused" role="status">
          {reason}
        </p>
      )}
      <SignInForm />
      <p class="note">
        <code>tollgate console</code> on the machine of the gateway prints a link that signs you in once.{' '}
        <code>tollgate token create</code> creates a token. The token is exchanged for a session of this browser and not
        stored.
      </p>
    </SingleCard>
  );
}

/** The gateway cannot say who is signed in. A session that was valid still is. */
export function SessionUnavailable({ refusal }: { readonly refusal: Refusal }) {
  return (
    <SingleCard>
      <RefusalNotice refusal={refusal} permission="" reload={() => void startSession()} />
      <p class="note">You have not been signed out.</p>
    </SingleCard>
  );
}

/** With `opensNewTab` an OpenID provider opens in another tab, so that this page keeps what is typed on it. */
function SignInForm({ opensNewTab = false }: { readonly opensNewTab?: boolean }) {
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
        <a key={id} class="button" href={url} {...(opensNewTab ? { target: '_blank', rel: 'noopener' } : {})}>
          Sign in with {name}
        </a>
      ))}
      <TextField label="Access token" type="password" value={token} onValue={setToken} isRequired placeholder="tgt-…" />
      <FormRefusal refusal={refusal} />
      <button type="submit" class={providers.length === 0 ? 'main' : ''} disabled={isBusy || token.trim() === ''}>
        Sign in
      </button>
    </form>
  );
}

/** A dialog over the current screen, which stays as it is. */
export function SessionNotice({ problem }: { readonly problem: SessionProblem }) {
  if (problem.kind === 'ended') return <SignInAgain successor={problem.successor} />;
  if (problem.kind === 'sign_in_link') return <ConfirmLink link={problem.link} />;
  if (problem.kind === 'sign_out_failed')
    return (
      <ChangeRefused title="You are still signed in" refusal={problem.refusal}>
        The session could not be ended, and the next person at this browser could use it. Try again in a moment.
      </ChangeRefused>
    );
  if (problem.kind === 'switch_failed')
    return (
      <ChangeRefused title="The organization was not switched" refusal={problem.refusal}>
        This page still shows <bdi>{me()?.organization?.display_name}</bdi>.
      </ChangeRefused>
    );
  return <OtherOrganization organization={problem.organization} />;
}

function leavePage(): void {
  session.value = { kind: 'signed_out', reason: null };
}

interface ChangeRefusedProps {
  readonly title: string;
  readonly refusal: Refusal;
  readonly children: ComponentChildren;
}

function ChangeRefused({ title, refusal, children }: ChangeRefusedProps) {
  return (
    <Dialog title={title} onClose={dismissProblem}>
      <p>{children}</p>
      <FormRefusal refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" class="main" onClick={dismissProblem}>
          Go on
        </button>
      </footer>
    </Dialog>
  );
}

/** Closes the dialog. */
function dismissProblem(): void {
  if (session.value.kind === 'signed_in') session.value = { ...session.value, problem: null };
}

function ConfirmLink({ link }: { readonly link: string }) {
  const { isBusy, refusal, run } = useSubmit<unknown>(() => {});
  return (
    <Dialog title="Sign in by this link?">
      <p>
        A sign-in link opened this page. It may sign you in as somebody else. You are signed in as{' '}
        <bdi>{nameOf(me())}</bdi>.
      </p>
      <FormRefusal refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" disabled={isBusy} onClick={() => void run(() => signIn({ link }))}>
          Sign in by the link
        </button>
        <button type="button" class="main" onClick={dismissProblem}>
          Stay
        </button>
      </footer>
    </Dialog>
  );
}

interface SignInAgainProps {
  /** Who has signed in on this browser since; null if nobody has. */
  readonly successor: string | null;
}

function SignInAgain({ successor }: SignInAgainProps) {
  // A provider's sign-in runs in another tab. When this tab gets the focus again, there may be a session.
  useEffect(() => {
    const look = () => void resumeSession();
    addEventListener('focus', look);
    return () => removeEventListener('focus', look);
  }, []);
  return (
    <Dialog title={successor === null ? 'Your session has ended' : 'Somebody else is signed in'}>
      {successor !== null && (
        <p class="lead" role="status">
          This browser is now signed in as <bdi>{successor}</bdi>. Nothing was done as them from this page, which is
          still that of <bdi>{nameOf(me())}</bdi>.
        </p>
      )}
      <p class="lead">Sign in again to go on: what is typed on this page stays.</p>
      <SignInForm opensNewTab />
      <footer class="dialog-foot">
        {successor === null ? (
          <button type="button" class="quiet" onClick={leavePage}>
            Leave this page
          </button>
        ) : (
          <button type="button" onClick={() => mayLeave() && void showSuccessor()}>
            Go on as <bdi>{successor}</bdi>
          </button>
        )}
      </footer>
    </Dialog>
  );
}

function OtherOrganization({ organization }: { readonly organization: string }) {
  const { isBusy, refusal, run } = useSubmit<unknown>(() => {});
  const [own] = useState(organizationId);
  return (
    <Dialog title="Another organization is chosen">
      <p>
        This browser now works in <bdi>{organization}</bdi>. Nothing was done there from this page.
      </p>
      <FormRefusal refusal={refusal} />
      <footer class="dialog-foot">
        <button type="button" onClick={() => mayLeave() && void reloadSession()}>
          Show <bdi>{organization}</bdi>
        </button>
        <button type="button" class="main" disabled={isBusy} onClick={() => void run(() => switchOrganization(own))}>
          Go on here
        </button>
      </footer>
    </Dialog>
  );
}
