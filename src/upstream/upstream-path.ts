// The path and query of a call to a provider: the client's query goes along, as Anthropic's clients send `?beta=true`.

/** RFC 3986: only visible ASCII characters can be part of a URL. */
const QUERY = /^[\x21-\x7e]+$/;

export function upstreamPath(prefix: string, path: string, query: string): string {
  return query !== '' && QUERY.test(query) ? `${prefix}${path}?${query}` : prefix + path;
}
