// Checks the address of a webhook. Whether its host may be called is decided at each delivery, when the name has been
// resolved.

const URL_LENGTH_MAX = 2_000;

/** null, or a sentence that says what the address must be. */
export function webhookUrlProblem(text: string, { allowHttp }: { readonly allowHttp: boolean }): string | null {
  const protocols = allowHttp ? ['https:', 'http:'] : ['https:'];
  const mustBe = `must be an ${allowHttp ? 'http:// or https://' : 'https://'} address without credentials or fragment`;
  if (text.length > URL_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return mustBe;
  const { protocol, username, password, hash } = new URL(text);
  return protocols.includes(protocol) && username === '' && password === '' && hash === '' ? null : mustBe;
}
