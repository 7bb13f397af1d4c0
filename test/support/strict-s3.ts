// A strict double of an S3-compatible service: it checks the signature of every request by itself (SigV4, in headers or
// in the query), the hash of every body and its length, and fails, stalls or lies when a test says so.

import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type S3Fault =
  | 'none'
  | 'fail'
  | 'fail once'
  | 'stall'
  | 'cut'
  | 'lie about the hash'
  | 'short'
  | 'lose the answer';

export interface StrictS3 {
  readonly url: string;
  readonly objects: Map<string, { readonly bytes: Buffer; readonly type: string }>;
  /** The refused requests, with the reasons. */
  readonly refused: string[];
  fault: S3Fault;
  stop(): Promise<void>;
}

export const S3_KEY = { keyId: 'AKIDEXAMPLE', secret: 'a secret/of+a test', region: 'eu-test-1' };

export async function startStrictS3(): Promise<StrictS3> {
  const objects: StrictS3['objects'] = new Map();
  const refused: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(double, request, Buffer.concat(chunks), response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const double: StrictS3 = {
    url: `http://127.0.0.1:${port}`,
    objects,
    refused,
    fault: 'none',
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return double;
}

function answer(double: StrictS3, request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const url = new URL(request.url ?? '', double.url);
  const why = whyRefused(request, url, body);
  if (why !== null) {
    double.refused.push(`${request.method} ${url.pathname}: ${why}`);
    response.writeHead(403).end(`<Error><Code>SignatureDoesNotMatch</Code><Message>${why}</Message></Error>`);
    return;
  }
  const { fault } = double;
  if (fault === 'stall') return;
  if (fault === 'cut') return void request.socket.destroy();
  if (fault === 'fail' || fault === 'fail once') {
    if (fault === 'fail once') double.fault = 'none';
    response.writeHead(503).end('<Error><Code>SlowDown</Code></Error>');
    return;
  }
  serve(double, request, url, body, response);
}

function serve(double: StrictS3, request: IncomingMessage, url: URL, body: Buffer, response: ServerResponse): void {
  const { objects } = double;
  const key = decodeURIComponent(url.pathname);
  const found = objects.get(key);
  switch (request.method ?? '') {
    case 'PUT':
      if (request.headers['if-none-match'] === '*' && found !== undefined) return void response.writeHead(412).end();
      objects.set(key, { bytes: body, type: request.headers['content-type'] ?? '' });
      if (double.fault === 'lose the answer') {
        double.fault = 'none';
        return void request.socket.destroy();
      }
      return void response.writeHead(200).end();
    case 'DELETE':
      objects.delete(key);
      return void response.writeHead(204).end();
    default:
      if (url.searchParams.get('list-type') === '2') return list(objects, url, response);
      if (found === undefined) return void response.writeHead(404).end('<Error><Code>NoSuchKey</Code></Error>');
      return serveBytes(double, request, url, found, response);
  }
}

function serveBytes(
  { fault }: StrictS3,
  request: IncomingMessage,
  url: URL,
  { bytes, type }: { readonly bytes: Buffer; readonly type: string },
  response: ServerResponse,
): void {
  const checksum = createHash('sha256')
    .update(fault === 'lie about the hash' ? 'another' : bytes)
    .digest('base64');
  const headers: Record<string, string> = {
    'content-type': url.searchParams.get('response-content-type') ?? type,
    ...(request.headers['x-amz-checksum-mode'] === 'ENABLED' ? { 'x-amz-checksum-sha256': checksum } : {}),
  };
  const disposition = url.searchParams.get('response-content-disposition');
  if (disposition !== null) headers['content-disposition'] = disposition;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  const isPart = first !== undefined && last !== undefined;
  const part = isPart ? bytes.subarray(Number(first), Number(last) + 1) : bytes;
  headers['content-length'] = String(part.length);
  if (isPart) headers['content-range'] = `bytes ${first}-${last}/${bytes.length}`;
  response.writeHead(isPart ? 206 : 200, headers);
  if (request.method === 'HEAD') response.end();
  else if (fault === 'short') response.write(part.subarray(0, part.length - 1), () => response.destroy());
  else response.end(part);
}

/** Lists two keys per page, so that there are several pages. */
function list(objects: StrictS3['objects'], url: URL, response: ServerResponse): void {
  const prefix = url.searchParams.get('prefix') ?? '';
  const keys = [...objects.keys()]
    .filter((key) => key.startsWith(`${url.pathname}/`))
    .map((key) => key.slice(url.pathname.length + 1))
    .filter((key) => key.startsWith(prefix))
    .sort();
  const from = Number(url.searchParams.get('continuation-token') ?? 0);
  const next = from + 2 < keys.length ? `<NextContinuationToken>${from + 2}</NextContinuationToken>` : '';
  const contents = keys.slice(from, from + 2).map((key) => `<Contents><Key>${key}</Key></Contents>`);
  response.writeHead(200).end(`<ListBucketResult>${contents.join('')}${next}</ListBucketResult>`);
}

function whyRefused(request: IncomingMessage, url: URL, body: Buffer): string | null {
  const isQuery = url.searchParams.has('X-Amz-Signature');
  const given = isQuery ? readQuery(url) : readAuthorization(request);
  if (given === null) return 'there is no signature';
  const { credential, signedHeaders, signature, date } = given;
  const day = date.slice(0, 8);
  const scope = `${day}/${S3_KEY.region}/s3/aws4_request`;
  if (credential !== `${S3_KEY.keyId}/${scope}`) return `the credential is ${credential}`;
  const payload = isQuery ? 'UNSIGNED-PAYLOAD' : String(request.headers['x-amz-content-sha256']);
  if (!isQuery && payload !== hexHash(body)) return 'the hash of the body is another';
  const declared = request.headers['x-amz-checksum-sha256'];
  if (declared !== undefined && declared !== createHash('sha256').update(body).digest('base64'))
    return 'the checksum is another';
  if (request.method === 'PUT' && request.headers['content-length'] !== String(body.length)) return 'no length';
  const canonical = [
    request.method,
    url.pathname,
    [...url.searchParams]
      .filter(([name]) => name !== 'X-Amz-Signature')
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort()
      .join('&'),
    ...signedHeaders.map((name) => `${name}:${String(request.headers[name]).trim()}`),
    '',
    signedHeaders.join(';'),
    payload,
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', date, scope, hexHash(Buffer.from(canonical))].join('\n');
  const key = [day, S3_KEY.region, 's3', 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${S3_KEY.secret}`);
  return hmac(key, text).toString('hex') === signature ? null : `the signature is another of ${canonical}`;
}

interface Signature {
  readonly credential: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly date: string;
}

function readAuthorization({ headers }: IncomingMessage): Signature | null {
  const [, credential, names, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  const date = headers['x-amz-date'];
  if (credential === undefined || names === undefined || signature === undefined || typeof date !== 'string')
    return null;
  return { credential, signedHeaders: names.split(';'), signature, date };
}

function readQuery({ searchParams }: URL): Signature {
  const read = (name: string): string => searchParams.get(`X-Amz-${name}`) ?? '';
  return {
    credential: read('Credential'),
    signedHeaders: read('SignedHeaders').split(';'),
    signature: read('Signature'),
    date: read('Date'),
  };
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

function hexHash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
