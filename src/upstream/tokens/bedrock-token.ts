// Makes a bearer token for Amazon Bedrock from an IAM key, without a call. The token is a presigned URL (Signature
// Version 4) in base64. AWS's own generators make the same; AWS calls it a short-term API key.

import { createHash, createHmac } from 'node:crypto';

export const BEDROCK_TOKEN_SECONDS = 43_200;

const HOST = 'bedrock.amazonaws.com';
const ALGORITHM = 'AWS4-HMAC-SHA256';
const EMPTY_BODY = createHash('sha256').digest('hex');

export interface BedrockTokenParams {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Part of temporary credentials; the token expires with them. */
  readonly sessionToken?: string;
  readonly region: string;
  readonly nowMs: number;
}

export function makeBedrockToken(params: BedrockTokenParams): string {
  const { accessKeyId, secretAccessKey, sessionToken, region, nowMs } = params;
  const at = new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, '');
  const scope = `${at.slice(0, 8)}/${region}/bedrock/aws4_request`;
  const query: readonly (readonly [name: string, value: string])[] = [
    ['Action', 'CallWithBearerToken'],
    ['X-Amz-Algorithm', ALGORITHM],
    ['X-Amz-Credential', `${accessKeyId}/${scope}`],
    ['X-Amz-Date', at],
    ['X-Amz-Expires', String(BEDROCK_TOKEN_SECONDS)],
    ...(sessionToken === undefined ? [] : [['X-Amz-Security-Token', sessionToken] as const]),
    ['X-Amz-SignedHeaders', 'host'],
  ];
  // In the order of their names, as Signature Version 4 wants them.
  const text = query.map(([name, value]) => `${name}=${escaped(value)}`).join('&');
  const request = ['POST', '/', text, `host:${HOST}\n`, 'host', EMPTY_BODY].join('\n');
  const toSign = [ALGORITHM, at, scope, createHash('sha256').update(request).digest('hex')].join('\n');
  const key = scope.split('/').reduce<string | Buffer>((step, part) => hmac(step, part), `AWS4${secretAccessKey}`);
  const address = `${HOST}/?${text}&X-Amz-Signature=${hmac(key, toSign).toString('hex')}&Version=1`;
  return `bedrock-api-key-${Buffer.from(address).toString('base64')}`;
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Escapes as RFC 3986 asks; encodeURIComponent leaves five characters as they are. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
