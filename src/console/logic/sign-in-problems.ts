// Explains why a sign-in at an OpenID provider failed, by the code with which the gateway sends the browser back.

const WORDS = new Map(
  Object.entries({
    refused: 'The provider’s answer could not be trusted. Begin the sign-in again.',
    expired: 'The sign-in took longer than ten minutes, or was begun in another browser. Begin it again.',
    no_access: 'You are known to the provider, but no group of yours gives access here. Ask an administrator for it.',
    no_email: 'The provider did not send your e-mail address. Its administrator can allow it to.',
    email_taken: 'Your e-mail address belongs to another account here. Ask an administrator to link the two.',
    needs_https: 'The console is signed in to over https, or over http on this machine alone: see PUBLIC_URL.',
    provider_unavailable: 'The provider does not answer. Try again in a moment.',
    sessions_unavailable: 'The service’s database does not answer. Requests go on. Try again in a moment.',
  }),
);

/** null for null: the sign-in did not fail. */
export function signInProblem(word: string | null): string | null {
  return word === null ? null : (WORDS.get(word) ?? 'The sign-in failed. Begin it again.');
}
