// Signing in: at an OpenID provider, with an access token, or by a one-time link that has brought somebody here.

import { useEffect, useState } from 'preact/hooks';
import { BrandMark } from '../parts/brand-mark.tsx';
import { Said, TextField, useSubmit } from '../parts/form.tsx';
import { useRead } from '../state/load.ts';
import { signIn } from '../state/session.ts';

export function SignIn({ reason }: { readonly reason: string | null }) {
  const [token, setToken] = useState('');
  const { isBusy, refusal, run } = useSubmit<unknown>(() => setToken(''));
  const providers = useRead('/v1/console/sign-in').data?.data.oidc ?? [];
  useEffect(() => {
    document.title = 'Sign in · Tollgate';
  }, []);
  return (
    <main class="alone">
      <form
        class="card sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => signIn({ token: token.trim() }));
        }}
      >
        <h1>
          <BrandMark /> Tollgate
        </h1>
        {reason !== null && (
          <p class="refused" role="status">
            {reason}
          </p>
        )}
        {providers.map(({ id, display_name: name, url }) => (
          <a key={id} class="button" href={url}>
            Sign in with {name}
          </a>
        ))}
        <TextField
          label="Access token"
          type="password"
          value={token}
          onValue={setToken}
          isRequired
          placeholder="tgt-…"
        />
        <Said refusal={refusal} />
        <button type="submit" class={providers.length === 0 ? 'main' : ''} disabled={isBusy || token.trim() === ''}>
          Sign in
        </button>
        <p class="note">
          <code>tollgate console</code> on the machine of the gateway prints a link that signs you in once.{' '}
          <code>tollgate token create</code> makes a token. The token is exchanged for a session of this browser and
          kept nowhere.
        </p>
      </form>
    </main>
  );
}
