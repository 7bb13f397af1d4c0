// The cookie of a console's session: its name, when it counts, and how it is set and taken away.
//
// A browser sends cookies by itself, so one counts only where the request says that a page of our own made it: it has a
// header that no form and no foreign page can send, and comes from our own origin. The route table says which routes
// accept one at all.

import type { Principal } from '../../domain/identity/principal.ts';
import type { Exchange } from '../../http/exchange.ts';

/**
 * A header that only a script can set, and a script of another origin only after a preflight, which is never granted.
 * Its value may be the organization that the page shows, or NONE.
 */
const CONSOLE_HEADER = 'x-tollgate-console';
/** The person whom the page shows as signed in, or NONE. */
const PERSON_HEADER = 'x-tollgate-console-person';
const NONE = 'none';
const SECRET = /^tgs-[A-Za-z0-9_-]{43}$/;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

export class SessionCookie {
  readonly name: string;
  private readonly isSecure: boolean;
  private readonly publicOrigin: string;

  /** `publicUrl`: where clients reach the service. */
  constructor(publicUrl: string) {
    const { protocol, origin, port } = new URL(publicUrl);
    this.isSecure = protocol === 'https:';
    this.publicOrigin = origin;
    // Cookies know no ports: two installations on one machine would take each other's.
    this.name = this.isSecure ? '__Host-tollgate' : `tollgate-${port === '' ? '80' : port}`;
  }

  /** The session's secret; null: the request has none, or was not made by the console's own page. */
  read(exchange: Exchange): string | null {
    // This comes first, because anybody may send 15 KB of cookies to any route.
    if (!this.isOwnPage(exchange)) return null;
    const secret = this.valueOf(this.name, exchange);
    return secret !== null && SECRET.test(secret) ? secret : null;
  }

  /**
   * Whether the page shows another person or organization than its session has. Another tab of the browser may have
   * signed in, or chosen another organization.
   */
  isElsewhere({ userId, organizationId }: Principal, exchange: Exchange): boolean {
    const isOther = (shown: string | null, present: string | null) =>
      shown !== null && (ID.test(shown) || shown === NONE) && shown !== (present ?? NONE);
    return isOther(exchange.header(PERSON_HEADER), userId) || isOther(exchange.header(CONSOLE_HEADER), organizationId);
  }

  /** Whether a page of the console made this request. */
  isOwnPage(exchange: Exchange): boolean {
    if (exchange.header(CONSOLE_HEADER) === null) return false;
    const site = exchange.header('sec-fetch-site');
    // Browsers leave the header out where an address is plain http.
    return site === null ? this.isOwnOrigin(exchange) : site === 'same-origin';
  }

  /** Whether the secret may go to this page at all: over TLS, or without leaving the machine. */
  maySignIn(exchange: Exchange): boolean {
    if (this.isSecure) return true;
    return LOOPBACK.test((exchange.header('host') ?? '').replace(/:\d+$/, ''));
  }

  /** The value of a Set-Cookie header. */
  set(secret: string, maxAgeSeconds: number): string {
    return `${this.name}=${secret}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict${this.suffix}`;
  }

  /**
   * The Set-Cookie header of a sign-in at an OpenID provider. It is Lax, because the browser comes back from another
   * site.
   */
  setTransaction(sealed: string, maxAgeSeconds: number): string {
    const value = `${this.name}-sign-in=${sealed}; Path=/; Max-Age=${maxAgeSeconds}`;
    return `${value}; HttpOnly; SameSite=Lax${this.suffix}`;
  }

  readTransaction(exchange: Exchange): string | null {
    return this.valueOf(`${this.name}-sign-in`, exchange);
  }

  clear(): string {
    return `${this.name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict${this.suffix}`;
  }

  private get suffix(): string {
    return this.isSecure ? '; Secure' : '';
  }

  private isOwnOrigin(exchange: Exchange): boolean {
    const origin = exchange.header('origin');
    if (origin === null || !URL.canParse(origin)) return false;
    return origin === this.publicOrigin || (!this.isSecure && new URL(origin).host === exchange.header('host'));
  }

  /** The value of a cookie. If two cookies have the name, neither counts, because one of them is not ours. */
  private valueOf(name: string, exchange: Exchange): string | null {
    const values = exchange
      .headerValues('cookie')
      .flatMap((line) => line.split(';'))
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(`${name}=`))
      .map((pair) => pair.slice(name.length + 1));
    return values.length === 1 ? (values[0] ?? null) : null;
  }
}
