// The path and query of a call to a provider: the client's query goes along, as Anthropic's clients send `?beta=true`.

/** RFC 3986: what is no visible ASCII is no part of a URL. */
const QUERY = /^[\x21-\x7e]+$/;

export function upstreamPath(prefix: string, path: string, query: string): string {
  const whole = joined(prefix, path);
  return query !== '' && QUERY.test(query) ? `${whole}?${query}` : whole;
}

/** What was joined last: the same string is known by all that have looked at it before. */
let last = { prefix: '', path: '', whole: '' };

function joined(prefix: string, path: string): string {
  if (path !== last.path || prefix !== last.prefix) last = { prefix, path, whole: prefix + path };
  return last.whole;
}
