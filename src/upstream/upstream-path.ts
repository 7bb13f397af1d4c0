// The path and query of a call to a provider: what its base URL says, the API's path, and the client's query, as
// Anthropic's clients send `?beta=true`.

/** RFC 3986: only visible ASCII characters can be part of a URL. */
const QUERY = /^[\x21-\x7e]+$/;

export function upstreamPath(prefix: string, path: string, query: string): string {
  return query !== '' && QUERY.test(query) ? `${prefix}${path}?${query}` : prefix + path;
}

/**
 * What stands before the path of an API, which begins with /v1, on the wire. A base URL whose path ends in /v1 has it
 * already, as the clients of the APIs write it: it is not doubled.
 */
export function pathPrefixOf(baseUrl: URL): string {
  return baseUrl.pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
}
