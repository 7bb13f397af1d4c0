// Keeps uploaded files in a bucket of an S3-compatible service, each under its id. A file is received on the local disk
// first, so that it can be sent with its length and hash, and appears in the bucket whole or not at all.

import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { AwsV4Signer } from 'aws4fetch';
import { Agent, request } from 'undici';
import type { MediaObject, ReceivedFile } from '../../domain/media/media-object.ts';
import type { BucketConfig, ByteRange, ObjectStore, StagedFile } from '../../domain/media/object-store.ts';
import { dispositionOf } from '../../domain/media/serving-headers.ts';
import { FileStaging, isObjectId } from './file-staging.ts';

const CONNECT_MS = 5_000;
/** The longest wait for an answer to begin, and between two pieces of it. */
const ANSWER_MS = 30_000;
const ATTEMPTS_MAX = 3;
const PAUSE_MS = 200;
const PRESIGNED_SECONDS = 900;

interface Call {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Hash of the body in hexadecimal; absent: there is no body. */
  readonly sha256?: string;
  /** Called for each attempt. */
  readonly body?: () => NodeJS.ReadableStream | Buffer;
}

type Answer = Awaited<ReturnType<typeof request>>;

export class S3Objects implements ObjectStore {
  private readonly bucket: BucketConfig;
  private readonly staging: FileStaging;
  private readonly agent: Agent;

  /** `directory`: the local directory in which files are received. */
  constructor(bucket: BucketConfig, directory: string, answerMs: number = ANSWER_MS) {
    this.bucket = bucket;
    this.staging = new FileStaging(directory);
    this.agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: answerMs, bodyTimeout: answerMs });
  }

  /** Writes, reads and removes an object. Throws if a call fails: a BucketRefusal for a wrong secret or bucket. */
  async check(): Promise<void> {
    const url = this.urlOf(`check-${randomUUID()}`);
    const body = Buffer.from('tollgate');
    await this.expect([200], { method: 'PUT', url, sha256: hashOf(body), body: () => body });
    const text = await (await this.expect([200], { method: 'GET', url })).body.text();
    if (text !== String(body)) throw new BucketRefusal('it returns other bytes than were written');
    await this.finish([200, 204], { method: 'DELETE', url });
  }

  stage(id: string): Promise<StagedFile> {
    return this.staging.stage(id);
  }

  async keep(staged: StagedFile, file: ReceivedFile): Promise<void> {
    const url = this.urlOf(staged.id);
    const headers = {
      'content-length': String(file.bytes),
      'content-type': file.contentType,
      'x-amz-checksum-sha256': file.sha256.toString('base64'),
      'if-none-match': '*',
    };
    const body = () => (file.bytes === 0 ? Buffer.alloc(0) : createReadStream(staged.path));
    const sha256 = file.sha256.toString('hex');
    // 412: an earlier attempt, whose answer was lost, has stored the object. Nobody else uses this id.
    await this.finish([200, 412], { method: 'PUT', url, headers, sha256, body });
    await this.confirm(staged.id, file);
  }

  /** Checks that the length and hash that the service reports are those of the file. If not, removes the object. */
  private async confirm(id: string, file: ReceivedFile): Promise<void> {
    const headers = { 'x-amz-checksum-mode': 'ENABLED' };
    const answer = await this.finish([200], { method: 'HEAD', url: this.urlOf(id), headers });
    const checksum = answer.headers['x-amz-checksum-sha256'] ?? file.sha256.toString('base64');
    const bytes = Number(answer.headers['content-length']);
    if (bytes === file.bytes && checksum === file.sha256.toString('base64')) return;
    await this.remove(id);
    throw new Error(`the bucket has other bytes than were sent, ${bytes} of ${file.bytes}`);
  }

  async read(id: string, { first, last }: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    if (!isObjectId(id)) return null;
    const headers = { range: `bytes=${first}-${last}` };
    const answer = await this.expect([206, 404], { method: 'GET', url: this.urlOf(id), headers });
    if (answer.statusCode === 404) {
      await answer.body.dump();
      return null;
    }
    const bytes = last - first + 1;
    const answeredBytes = Number(answer.headers['content-length']);
    if (answeredBytes === bytes) return readPieces(answer, bytes);
    answer.body.destroy();
    throw new Error(`the bucket answers with ${answeredBytes} bytes instead of ${bytes}`);
  }

  async remove(id: string): Promise<void> {
    if (isObjectId(id)) await this.finish([200, 204, 404], { method: 'DELETE', url: this.urlOf(id) });
  }

  removeStaged(id: string): Promise<void> {
    return this.staging.remove(id);
  }

  async *list(): AsyncIterable<{ id: string; isStaged: boolean }> {
    const { root, prefix } = placeOf(this.bucket.url);
    for (let continuation: string | null = null; ; ) {
      const url = new URL(root);
      url.searchParams.set('list-type', '2');
      url.searchParams.set('prefix', prefix);
      if (continuation !== null) url.searchParams.set('continuation-token', continuation);
      const text = await (await this.expect([200], { method: 'GET', url })).body.text();
      for (const [, key = ''] of text.matchAll(/<Key>([^<]*)<\/Key>/g)) {
        const id = key.slice(prefix.length);
        if (isObjectId(id)) yield { id, isStaged: false };
      }
      continuation = /<NextContinuationToken>([^<]*)</.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? null;
      if (continuation === null) break;
    }
    for (const id of await this.staging.list()) yield { id, isStaged: true };
  }

  /** Returns a signed address, at which anybody can read the object for a quarter of an hour. */
  async presign(object: MediaObject): Promise<string> {
    const url = this.urlOf(object.id);
    url.searchParams.set('X-Amz-Expires', String(PRESIGNED_SECONDS));
    url.searchParams.set('response-content-type', object.contentType);
    url.searchParams.set('response-content-disposition', dispositionOf(object));
    const signed = await new AwsV4Signer({ ...this.signing(), method: 'GET', url: url.href, signQuery: true }).sign();
    return signed.url.href;
  }

  private urlOf(key: string): URL {
    return new URL(`${this.bucket.url}/${key}`);
  }

  private signing() {
    const { keyId, secret, region } = this.bucket;
    return { accessKeyId: keyId, secretAccessKey: secret, region, service: 's3' };
  }

  /** Like `expect`, and also reads the answer's body to its end. */
  private async finish(statuses: readonly number[], call: Call): Promise<Answer> {
    const answer = await this.expect(statuses, call);
    await answer.body.dump();
    return answer;
  }

  /** Makes a call, with retries after network errors and 5xx. Throws BucketRefusal for any other unexpected status. */
  private async expect(statuses: readonly number[], call: Call): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === ATTEMPTS_MAX;
      try {
        const answer = await this.ask(call);
        if (statuses.includes(answer.statusCode)) return answer;
        await answer.body.dump();
        const words = `${call.method} is answered ${answer.statusCode}`;
        if (answer.statusCode < 500) throw new BucketRefusal(words);
        if (isLast) throw new Error(words);
      } catch (error) {
        if (isLast || error instanceof BucketRefusal) throw error;
      }
      await pause(PAUSE_MS * attempt);
    }
  }

  private async ask({ method, url, headers = {}, sha256 = hashOf(''), body }: Call): Promise<Answer> {
    const signed = await new AwsV4Signer({
      ...this.signing(),
      method,
      url: url.href,
      headers: { ...headers, 'x-amz-content-sha256': sha256 },
    }).sign();
    return request(signed.url.href, {
      method,
      dispatcher: this.agent,
      headers: Object.fromEntries(signed.headers),
      ...(body === undefined ? {} : { body: body() as Buffer }),
    });
  }
}

/** The bucket refused a call, and would refuse it again. */
export class BucketRefusal extends Error {
  override readonly name = 'BucketRefusal';
}

async function* readPieces({ body }: Answer, bytes: number): AsyncGenerator<Uint8Array> {
  let read = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    read += piece.length;
    if (read > bytes) break;
    yield piece;
  }
  if (read !== bytes) throw new Error('the bucket sent another number of bytes than it announced');
}

function hashOf(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Splits the configured address into that of the bucket and the prefix of the objects' keys. */
function placeOf(bucketUrl: string): { readonly root: string; readonly prefix: string } {
  const { origin, pathname } = new URL(bucketUrl);
  const [, bucket = '', ...folders] = pathname.split('/');
  return { root: `${origin}/${bucket}`, prefix: folders.map((folder) => `${folder}/`).join('') };
}
