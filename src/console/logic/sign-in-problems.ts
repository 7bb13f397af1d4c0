// Explains why a sign-in at an OpenID provider failed, by the code with which the gateway sends the browser back.

const WORDS = new Map(
  Object.entries({
    refused: 'The provider’s answer could not be trusted. Start the sign-in again.',
    expired: 'The sign-in took longer than ten minutes, or was started in another browser. Start it again.',
    no_access: 'The provider knows you, but no group of yours gives access here. Ask an administrator for access.',
    no_email: 'The provider did not send your e-mail address. An administrator of the provider can allow it to.',
    email_taken: 'Your e-mail address belongs to another account here. Ask an administrator to link the two.',
    needs_https: 'You can sign in over https only, or over http on the gateway’s own machine: see PUBLIC_URL.',
    provider_unavailable: 'The provider does not answer. Try again in a moment.',
    sessions_unavailable: 'The service’s database does not answer. Requests are still served. Try again in a moment.',
  }),
);

/** null for null: the sign-in did not fail. */
export function signInProblem(word: string | null): string | null {
  return word === null ? null : (WORDS.get(word) ?? 'The sign-in failed. Start it again.');
}
