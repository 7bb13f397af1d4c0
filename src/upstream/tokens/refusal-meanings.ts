// What the refusal of a token means in plain words, by the codes and phrases of Google and Entra. Any other refusal is
// shown as it came.

const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/short-lived token|reasonable timeframe/i, 'the clock of this machine may be wrong'],
  [/invalid jwt signature/i, 'the private key is not, or no longer, one of this account'],
  [/account not found/i, 'there is no such service account'],
  [/AADSTS7000215/, 'client_secret is wrong: its value is needed, not its id'],
  [/AADSTS7000222/, 'client_secret has expired'],
  [/AADSTS700016/, 'client_id is no application of this tenant'],
  [/AADSTS90002/, 'there is no such tenant'],
  [/AADSTS(?:70011|500011)/, 'scope is not known to this tenant'],
];

/** null: it is not known. */
export function meaningOf(said: string): string | null {
  return MEANINGS.find(([pattern]) => pattern.test(said))?.[1] ?? null;
}
