// What `tollgate start` prints once everything serves: addresses, keys that were made, and a line to paste.

export interface ShownKey {
  readonly organization: string;
  readonly name: string;
  readonly secret: string;
}

export interface BannerFacts {
  readonly url: string;
  readonly adminUrl: string;
  /** The configured port, if it was taken and another port is used. */
  readonly moved: number | null;
  /** A key to try the service with, if it is known in clear. */
  readonly key: ShownKey | null;
  readonly model: string | null;
  /** A link that opens the console signed in, once; null: a reader of the banner may not sign in. */
  readonly consoleLink: string | null;
}

export function renderBanner({ url, adminUrl, moved, key, model, consoleLink }: BannerFacts): string {
  const lines = ['', `Tollgate serves ${url}`, `        admin ${adminUrl} (/metrics, /healthz, /readyz)`];
  if (moved !== null) lines.push(`  (port ${moved} is in use by another program)`);
  if (key !== null) lines.push(`          key ${key.secret}   (${key.organization}, ${key.name})`);
  if (consoleLink !== null) lines.push(`      console ${consoleLink}   (once, within 10 minutes)`);
  if (key !== null && model !== null) lines.push('', 'Try it:', '', renderCurl(url, key.secret, model));
  return `${lines.join('\n')}\n`;
}

function renderCurl(url: string, key: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  return (
    `curl -N ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: ` +
    `application/json" -d '${body.replaceAll("'", `'\\''`)}'`
  );
}
