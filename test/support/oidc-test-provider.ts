// A real OpenID provider (oidc-provider) on this machine without a login page: the test says who signs in next.

import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import Provider from 'oidc-provider';

export interface OidcAccount {
  readonly email: string;
  readonly verified: boolean;
  groups: string[] | string;
  /** The provider only says where the groups are, as Entra ID does for a person with over 200 groups. */
  groupsElsewhere?: boolean;
}

/** The parts of an ID token: a test changes its content without the key that signed it. */
export interface IdTokenParts {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly signature: string;
}

/** A provider at which the test says who signs in next. */
export class OidcTestProvider {
  visitor = '';
  /** Makes its user information endpoint fail. */
  userInfoFails = false;
  /** Calls that its token endpoint lets wait; null: it answers. */
  waiting: (() => void)[] | null = null;
  /** Changes the parts of an ID token before the token endpoint sends it; null: the token stays as it is. */
  forgeIdToken: ((parts: IdTokenParts) => IdTokenParts) | null = null;
  readonly issuer: string;
  private readonly accounts: Readonly<Record<string, OidcAccount>>;
  private readonly port: number;
  private readonly server: Server;
  private provider: Provider | null = null;

  constructor(port: number, accounts: Readonly<Record<string, OidcAccount>>) {
    this.port = port;
    this.accounts = accounts;
    this.issuer = `http://127.0.0.1:${port}`;
    this.server = createServer((request, response) => {
      const { provider } = this;
      assert.ok(provider !== null);
      if (this.userInfoFails && request.url === '/me') return void response.writeHead(503).end();
      const answer = () => void provider.callback()(request, response);
      if (this.forgeIdToken !== null && request.url === '/token') changeIdToken(response, this.forgeIdToken);
      if (this.waiting !== null && request.url === '/token') return void this.waiting.push(answer);
      if (request.url?.startsWith('/interaction/') !== true) return answer();
      const done = { login: { accountId: this.visitor } };
      void provider.interactionFinished(request, response, done, { mergeWithLastSubmission: false });
    });
  }

  async start(redirectUris: string[]): Promise<void> {
    this.provider = new Provider(this.issuer, {
      clients: [{ client_id: 'tollgate', client_secret: 'secret-of-the-client', redirect_uris: redirectUris }],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      scopes: ['openid', 'email', 'groups'],
      cookies: { keys: ['a key of the test'] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      pkce: { required: () => true },
      findAccount: (_, sub) => ({
        accountId: sub,
        claims: () => {
          const { email, verified, groups, groupsElsewhere } = this.accounts[sub] as OidcAccount;
          const elsewhere = {
            _claim_names: { groups: 'src1' },
            _claim_sources: { src1: { endpoint: 'https://graph.test/groups' } },
          };
          return { sub, email, email_verified: verified, ...(groupsElsewhere === true ? elsewhere : { groups }) };
        },
      }),
      async loadExistingGrant({ oidc }) {
        const grant = new oidc.provider.Grant({
          clientId: oidc.client?.clientId ?? '',
          accountId: oidc.session?.accountId ?? '',
        });
        grant.addOIDCScope('openid email groups');
        await grant.save();
        return grant;
      },
    });
    await new Promise<void>((resolve) => this.server.listen(this.port, '127.0.0.1', resolve));
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** Changes the ID token of an answer just before it is sent. */
function changeIdToken(response: ServerResponse, forge: (parts: IdTokenParts) => IdTokenParts): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse;
  response.end = ((body: string | Buffer) => {
    const answer = JSON.parse(body.toString()) as { id_token: string };
    const [header = '', claims = '', signature = ''] = answer.id_token.split('.');
    const forged = forge({ header: opened(header), claims: opened(claims), signature });
    const id_token = [closed(forged.header), closed(forged.claims), forged.signature].join('.');
    const changed = JSON.stringify({ ...answer, id_token });
    response.setHeader('content-length', Buffer.byteLength(changed));
    return end(changed);
  }) as typeof response.end;
}

function opened(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

function closed(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
