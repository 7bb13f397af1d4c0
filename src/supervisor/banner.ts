// What `tollgate start` prints once everything serves: addresses, keys that were made, and a line to paste.

export interface BannerFacts {
  readonly url: string;
  readonly adminUrl: string;
  /** The default port, when it was taken and another is served. */
  readonly moved: number | null;
  readonly keys: readonly { organization: string; name: string; secret: string }[];
  readonly model: string | null;
}

export function renderBanner({ url, adminUrl, moved, keys, model }: BannerFacts): string {
  const lines = ['', `Tollgate serves ${url}`, `        admin ${adminUrl} (/metrics, /healthz, /readyz)`];
  if (moved !== null) lines.push(`  (port ${moved} is in use by another program)`);
  for (const key of keys) lines.push(`          key ${key.secret}   (${key.organization}, ${key.name})`);
  const [first] = keys;
  if (first !== undefined && model !== null) lines.push('', 'Try it:', '', renderCurl(url, first.secret, model));
  return `${lines.join('\n')}\n`;
}

function renderCurl(url: string, key: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Hello' }] });
  return `curl -N ${url}/v1/chat/completions -H "Authorization: Bearer ${key}" -H "Content-Type: application/json" -d '${body.replaceAll("'", `'\\''`)}'`;
}
