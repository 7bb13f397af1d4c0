// Traffic with uploaded files of several tenants beside their exchanges. Over connections that all tenants share, files
// are uploaded, read whole, by ranges and by every other name, listed and deleted, and each tenant requests the others'
// files. It is a violation if anything of a file shows to another tenant: a byte, its id, size, hash, or its existence.

import { randomUUID } from 'node:crypto';
import { Agent, request as httpRequest } from 'node:http';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { answerTo, type HttpAnswer } from '../support/http-call.ts';
import { ADMIN_TOKEN, organizationIdOf, Tenant } from '../support/identity-world.ts';
import { writeForm } from '../support/multipart-forms.ts';
import { pause } from '../support/waiting.ts';
import { askAgain } from './ask-again.ts';
import { findMarks, markOf } from './marks.ts';
import { commonContent, FILES_MAX, type MediaContent, type MediaFile, MediaFiles, ownContent } from './media-files.ts';
import type { Watch } from './watch.ts';
import { slugOf, warmKey } from './world.ts';

const BOUNDARY = 'isolation-media-boundary';
const CONNECTIONS = 8;
const LANES = 6;
/**
 * The first number of the marks of files, and how many numbers each run has: files of earlier runs have other bytes.
 */
const FIRST_INDEX = 60_000_000_000;
const INDICES_OF_RUN = 1_000_000;
/** The status when the service has no place for a request, or cannot ask its database because the run delays it. */
const UNAVAILABLE = 503;
const PIECE_BYTES = 16_384;
const ATTEMPTS_MAX = 10;
const PAUSE_MS = 100;

const STEPS = [
  ['upload', 30],
  ['upload again', 8],
  ['upload common', 14],
  ['leave within an upload', 5],
  ['read', 18],
  ['read a range', 10],
  ['leave within a read', 4],
  ['read what is known', 9],
  ['ask for a foreign file', 22],
  ['ask in public', 8],
  ['list', 6],
  ['delete', 5],
] as const;
type Step = (typeof STEPS)[number][0];
const ALL_STEPS = STEPS.flatMap(([step, weight]) => Array.from({ length: weight }, () => step));

interface Call {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** The client leaves after this many bytes of its body, or with the head of the answer. */
  readonly leavesAt?: number | 'answer';
}

export interface MediaTrafficParts {
  readonly url: string;
  readonly watch: Watch;
  readonly seed: number;
  /** The number of this run on the installation, counted from 0. */
  readonly run: number;
  readonly tenants: readonly number[];
}

export class MediaTraffic {
  private readonly parts: MediaTrafficParts;
  private readonly random: SeededRandom;
  private readonly files = new MediaFiles();
  private readonly owners = new Map<number, Promise<Tenant>>();
  private readonly agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  private nextIndex: number;

  constructor(parts: MediaTrafficParts) {
    this.parts = parts;
    this.random = new SeededRandom(parts.seed);
    this.nextIndex = FIRST_INDEX + parts.run * INDICES_OF_RUN;
  }

  /**
   * Runs at least this many steps, and continues until `isOver` returns true. Then every tenant's files are checked
   * once more.
   */
  async run(stepsMin: number, isOver: () => boolean): Promise<void> {
    const { watch } = this.parts;
    let steps = 0;
    const lane = async (): Promise<void> => {
      while (steps < stepsMin || !isOver()) {
        if (watch.violationCount > 0 && isOver()) return;
        steps += 1;
        await this.step(this.random.pick(ALL_STEPS), this.random.pick(this.parts.tenants));
      }
    };
    try {
      await Promise.all(Array.from({ length: LANES }, lane));
      if (watch.violationCount === 0) for (const tenant of this.parts.tenants) await this.checkAll(tenant);
    } finally {
      this.agent.destroy();
    }
  }

  private async step(step: Step, tenant: number): Promise<void> {
    const { random, files } = this;
    const file = files.pick(random, tenant, step === 'ask for a foreign file' ? 'foreign' : 'own');
    if (step === 'upload' || file === null) return this.upload(tenant, this.newContent(tenant));
    if (step === 'upload common') return this.uploadCommon(tenant);
    if (step === 'leave within an upload') return this.leaveWithinUpload(tenant);
    if (step === 'list') return this.list(tenant);
    if (step === 'delete' || files.of(tenant).length > FILES_MAX) return this.remove(file);
    file.users += 1;
    try {
      await this.use(step, tenant, file);
    } finally {
      file.users -= 1;
    }
  }

  private async use(step: Step, tenant: number, file: MediaFile): Promise<void> {
    const path = this.pathOf(file.id);
    const { content } = file;
    if (step === 'upload again') return content.common === null ? this.upload(tenant, content, file) : undefined;
    if (step === 'read') return this.readWhole(tenant, path, file);
    if (step === 'read a range') return this.readRange(tenant, path, file);
    if (step === 'leave within a read') return void (await this.send(tenant, path, { leavesAt: 'answer' }));
    if (step === 'read what is known') return this.readKnown(tenant, path, file);
    if (step === 'ask in public') return this.askInPublic(file);
    await this.askForForeign(tenant, file);
  }

  private newContent(tenant: number): MediaContent {
    this.nextIndex += 1;
    return ownContent(tenant, this.nextIndex, this.random);
  }

  private pathOf(id: string): string {
    return `/v1/${this.random.pick(['media', 'files'])}/${id}`;
  }

  private wrong(tenant: number, what: string): void {
    this.parts.watch.violation('foreign file', `tenant ${tenant}: ${what}`);
  }

  /** Sends one request; null: no answer came, or the service was not there. `tenant` null: the request has no key. */
  private async send(tenant: number | null, path: string, call: Call = {}): Promise<HttpAnswer | null> {
    const { url, watch } = this.parts;
    const credential = tenant === null ? {} : { authorization: `Bearer ${warmKey(tenant, this.random.chance(0.5))}` };
    const { method = 'GET', headers, body, leavesAt } = call;
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const request = httpRequest(url + path, {
      method,
      headers: { ...credential, ...length, ...headers },
      agent: this.agent,
    });
    const answering = answerTo(request).catch(() => null);
    if (leavesAt === 'answer') request.on('response', () => request.destroy());
    if (typeof leavesAt === 'number') request.write(body?.subarray(0, leavesAt), () => request.destroy());
    else if (body === undefined) request.end();
    else for (let at = 0; at <= body.length; at += PIECE_BYTES) this.writePiece(request, body, at);
    const answer = await answering;
    const isUsable = answer?.complete === true && answer.status !== UNAVAILABLE;
    watch.count(watch.media, `${method} ${leavesAt === undefined ? (answer?.status ?? 'lost') : 'left'}`);
    if (answer !== null) this.checkMarks(tenant, path, answer);
    return isUsable && leavesAt === undefined ? answer : null;
  }

  private writePiece(request: ReturnType<typeof httpRequest>, body: Buffer, at: number): void {
    const piece = body.subarray(at, at + PIECE_BYTES);
    if (at + PIECE_BYTES > body.length) request.end(piece);
    else request.write(piece);
  }

  /** An answer contains at most its receiver's own marks. For a public address only its id says whose file it is. */
  private checkMarks(tenant: number | null, path: string, { headers, body, status }: HttpAnswer): void {
    this.parts.watch.checkedBytes += body.length;
    const text = `${JSON.stringify(headers)} ${body.toString('latin1')}`;
    const foreign = findMarks(text).find((mark) => tenant !== null && mark.tenant !== tenant);
    if (foreign !== undefined)
      this.parts.watch.violation(
        'foreign mark',
        `tenant ${tenant} gets ${status} for ${path}: ${JSON.stringify(foreign)}`,
      );
  }

  private form(tenant: number, { bytes }: MediaContent): Call {
    // The file's name belongs to the client: no answer ever contains it.
    const filename = `${markOf(tenant, 'c', this.nextIndex)}.png`;
    const body = writeForm(BOUNDARY, [
      { name: 'purpose', value: markOf(tenant, 'c', 0) },
      { name: 'file', filename, value: bytes },
    ]);
    return { method: 'POST', body, headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` } };
  }

  /** Uploads a file. `known`: the file by which the tenant has these bytes already. */
  private async upload(tenant: number, content: MediaContent, known: MediaFile | null = null): Promise<void> {
    const answer = await this.send(
      tenant,
      this.random.pick(['/v1/media/upload', '/v1/files']),
      this.form(tenant, content),
    );
    if (answer === null) return this.parts.watch.count(this.parts.watch.media, 'uploads without an answer');
    await this.checkUpload(tenant, content, answer, known === null ? 'new' : known.id);
  }

  private async uploadCommon(tenant: number): Promise<void> {
    const content = commonContent(this.random, this.parts.run);
    const common = content.common ?? 0;
    const before = this.files.commonOf(tenant, common);
    if (before === 'under way') return;
    this.files.setCommon(tenant, common, 'under way');
    const answer = await this.send(tenant, '/v1/media/upload', this.form(tenant, content));
    if (answer === null) return this.files.setCommon(tenant, common, 'unknown');
    const known = this.files.of(tenant).find((file) => file.content.common === common)?.id ?? 'any';
    await this.checkUpload(tenant, content, answer, before === 'never uploaded' ? 'new' : known);
    this.files.setCommon(tenant, common, 'kept');
  }

  /**
   * Checks the answer. `expected`: the id that these bytes have, `new` if the tenant never uploaded them, `any` if
   * unknown.
   */
  private async checkUpload(
    tenant: number,
    content: MediaContent,
    answer: HttpAnswer,
    expected: string,
  ): Promise<void> {
    const text = answer.body.toString();
    if (answer.status !== 200) return this.wrong(tenant, `an upload is answered ${answer.status} ${text}`);
    const { id, mime, bytes, deduped, url } = JSON.parse(text) as Record<string, unknown>;
    const owner = this.files.ownerOf(String(id));
    const isKnown = expected !== 'new' && expected !== 'any';
    if (owner !== null && owner !== tenant) return this.wrong(tenant, `its upload has the id of tenant ${owner}`);
    if (expected === 'new' && deduped !== false) return this.wrong(tenant, `new bytes are known: ${text}`);
    if (isKnown && (deduped !== true || id !== expected)) return this.wrong(tenant, `known bytes are new: ${text}`);
    if (mime !== content.type || bytes !== content.bytes.length || !String(url).includes(String(id)))
      return this.wrong(tenant, `its upload of ${content.bytes.length} bytes is described as ${text}`);
    this.files.add({ id: String(id), tenant, url: String(url), content, users: 0 });
  }

  private async leaveWithinUpload(tenant: number): Promise<void> {
    const call = this.form(tenant, this.newContent(tenant));
    await this.send(tenant, '/v1/media/upload', {
      ...call,
      leavesAt: this.random.whole(1, (call.body?.length ?? 2) - 1),
    });
  }

  private async readWhole(tenant: number | null, path: string, file: MediaFile): Promise<void> {
    const answer = await this.send(tenant, path);
    if (answer !== null) this.checkBytes(file, path, answer, file.content.bytes);
  }

  private async readRange(tenant: number, path: string, file: MediaFile): Promise<void> {
    const { bytes } = file.content;
    const first = this.random.below(bytes.length);
    const last = this.random.whole(first, bytes.length - 1);
    const answer = await this.send(tenant, path, { headers: { range: `bytes=${first}-${last}` } });
    if (answer !== null) this.checkBytes(file, path, answer, bytes.subarray(first, last + 1), 206);
  }

  private checkBytes(file: MediaFile, path: string, answer: HttpAnswer, expected: Buffer, status = 200): void {
    if (answer.status !== status)
      return this.wrong(file.tenant, `${path} is answered ${answer.status} ${answer.body.toString().slice(0, 200)}`);
    if (answer.body.equals(expected)) return;
    const index = findMarks(file.content.bytes.toString('latin1'))[0]?.exchange ?? 0;
    this.parts.watch.wrongBytes(answer.body, { tenant: file.tenant, index }, `${path} of tenant ${file.tenant}`);
  }

  private async readKnown(tenant: number, path: string, file: MediaFile): Promise<void> {
    const { bytes, type } = file.content;
    const head = await this.send(tenant, path, { method: 'HEAD' });
    if (head !== null && head.headers['content-length'] !== String(bytes.length))
      this.wrong(tenant, `HEAD of its file says ${head.status}, ${head.headers['content-length']} bytes`);
    const metadata = await this.send(tenant, `${path}/metadata`);
    const expected = { id: file.id, url: file.url, content_type: type, size: bytes.length };
    if (metadata !== null && metadata.body.toString() !== JSON.stringify(expected))
      this.wrong(tenant, `its metadata are ${metadata.status} ${metadata.body.toString()}`);
    const unchanged = await this.send(tenant, path, { headers: { 'if-none-match': `"${file.id}"` } });
    if (unchanged !== null && unchanged.status !== 304) this.wrong(tenant, `its file has changed: ${unchanged.status}`);
  }

  /** Requests about another tenant's file are answered like requests about a file that does not exist. */
  private async askForForeign(tenant: number, file: MediaFile): Promise<void> {
    const call = this.random.pick<Call>([
      {},
      { method: 'HEAD' },
      { headers: { range: 'bytes=0-9' } },
      { headers: { range: `bytes=${file.content.bytes.length}-` } },
      { headers: { 'if-none-match': `"${file.id}"` } },
      { headers: { 'if-range': `"${file.id}"`, range: 'bytes=0-0' } },
    ]);
    const end = this.random.pick(['', '/metadata']);
    const method = end === '' ? call.method : 'GET';
    const ask = (id: string) =>
      this.send(tenant, `${this.pathOf(id)}${end}`, { ...call, ...(method === undefined ? {} : { method }) });
    const [foreign, absent] = [await ask(file.id), await ask(randomUUID())];
    if (foreign === null || absent === null) return;
    if (foreign.status !== 404 || shapeOf(foreign) !== shapeOf(absent))
      this.wrong(
        tenant,
        `the file ${file.id} of tenant ${file.tenant} is ${shapeOf(foreign)}, none ${shapeOf(absent)}`,
      );
    const deleted = await this.as(tenant, 'DELETE', `/${file.id}`);
    if (deleted !== null && deleted.status !== 404)
      this.wrong(tenant, `it deletes ${file.id} of tenant ${file.tenant}: ${deleted.status}`);
  }

  private async askInPublic(file: MediaFile): Promise<void> {
    const { pathname } = new URL(file.url);
    await this.readWhole(null, pathname, file);
    const other = this.files.pick(this.random, file.tenant, 'foreign');
    if (other === null) return;
    const mixed = await this.send(null, pathname.replace(file.id, other.id));
    if (mixed !== null && mixed.status !== 404)
      this.wrong(file.tenant, `its signature opens ${other.id} of tenant ${other.tenant}: ${mixed.status}`);
  }

  private ownerOf(tenant: number): Promise<Tenant> {
    let owner = this.owners.get(tenant);
    if (owner === undefined) {
      const { url } = this.parts;
      owner = askAgain(async () => Tenant.adopt(url, await organizationIdOf(url, ADMIN_TOKEN, slugOf(tenant))));
      this.owners.set(tenant, owner);
    }
    return owner;
  }

  /** Sends a request as an administrator of the tenant's organization. */
  private async as(tenant: number, method: string, path: string): Promise<HttpAnswer | null> {
    const { owner } = await this.ownerOf(tenant);
    return this.send(tenant, `/v1/admin/active-org/media${path}`, {
      method,
      headers: { authorization: `Bearer ${owner.token}` },
    });
  }

  private async remove(file: MediaFile): Promise<void> {
    const { common } = file.content;
    if (file.users > 0 || (common !== null && this.files.commonOf(file.tenant, common) === 'under way')) return;
    this.files.forget(file);
    this.files.setCommon(file.tenant, common, 'under way');
    const answer = await this.as(file.tenant, 'DELETE', `/${file.id}`);
    this.files.setCommon(file.tenant, common, answer?.status === 200 ? 'never uploaded' : 'unknown');
    if (answer === null) return;
    if (answer.status !== 200) return this.wrong(file.tenant, `its file is not deleted: ${answer.status}`);
    const gone = await this.send(file.tenant, this.pathOf(file.id));
    if (gone !== null && gone.status !== 404) this.wrong(file.tenant, `${file.id} is deleted and ${gone.status}`);
  }

  /** Checks that a listing has exactly the tenant's files. */
  private async list(tenant: number): Promise<void> {
    const before = new Set(this.files.of(tenant).map(({ id }) => id));
    const listed = await this.listed(tenant);
    if (listed === null) return;
    for (const id of listed.keys()) {
      const owner = this.files.ownerOf(id);
      if (owner !== null && owner !== tenant) this.wrong(tenant, `it lists ${id} of tenant ${owner}`);
    }
    const after = this.files.of(tenant).filter(({ id }) => before.has(id));
    for (const { id } of after) if (!listed.has(id)) this.wrong(tenant, `it does not list its ${id}`);
  }

  /** Sizes of all files that the tenant lists, by id; null: not all pages came. */
  private async listed(tenant: number): Promise<Map<string, number> | null> {
    const found = new Map<string, number>();
    for (let cursor = ''; ; ) {
      const answer = await this.as(tenant, 'GET', `?limit=20${cursor}`);
      if (answer?.status !== 200) return null;
      const { data, next_cursor: next } = JSON.parse(answer.body.toString()) as {
        readonly data: readonly { readonly id: string; readonly size: number }[];
        readonly next_cursor: string | null;
      };
      for (const { id, size } of data) found.set(id, size);
      if (next === null) return found;
      cursor = `&cursor=${next}`;
    }
  }

  /** Lists files and reads usage once more; a gateway that is being replaced is asked again. */
  private async lastLook(tenant: number): Promise<[Map<string, number> | null, HttpAnswer | null]> {
    for (let attempt = 1; ; attempt += 1) {
      const looked: [Map<string, number> | null, HttpAnswer | null] = [
        await this.listed(tenant),
        await this.as(tenant, 'GET', '/usage'),
      ];
      if (!looked.includes(null) || attempt === ATTEMPTS_MAX) return looked;
      await pause(attempt * PAUSE_MS);
    }
  }

  /** Once nothing is open: a tenant lists exactly what it uploaded, and its usage is the sum of that. */
  private async checkAll(tenant: number): Promise<void> {
    const [listed, usage] = await this.lastLook(tenant);
    if (listed === null || usage === null)
      return this.wrong(tenant, 'its files cannot be listed although nothing is under way');
    for (const file of this.files.of(tenant)) {
      if (!listed.has(file.id)) this.wrong(tenant, `its file ${file.id} is not among ${listed.size} that it lists`);
      await this.readWhole(tenant, this.pathOf(file.id), file);
    }
    for (const id of listed.keys()) {
      const owner = this.files.ownerOf(id);
      if (owner !== null && owner !== tenant) this.wrong(tenant, `it lists ${id} of tenant ${owner}`);
      // The file may come from an upload whose answer was lost. Its bytes say whose it is.
      else if (owner === null) await this.send(tenant, this.pathOf(id));
    }
    const { data } = JSON.parse(usage.body.toString()) as { data: Readonly<Record<string, unknown>> };
    const bytes = [...listed.values()].reduce((sum, size) => sum + size, 0);
    if (data['files'] !== listed.size || data['stored_bytes'] !== bytes)
      this.wrong(tenant, `it has ${listed.size} files of ${bytes} bytes, its use says ${usage.body.toString()}`);
  }
}

/**
 * The parts of a refusal that must not differ. Left out are the request id, which is always new, and `Connection:
 * close`, which says only that the answering gateway is being replaced.
 */
function shapeOf({ status, headers, body }: HttpAnswer): string {
  const text = body.toString().replace(/"request_id":"[^"]*"/, '');
  // A gateway that is being replaced closes the connection after its answer, whatever the request.
  const names = Object.keys(headers).filter((name) => name !== 'connection' && name !== 'keep-alive');
  return JSON.stringify([status, names.sort(), text]);
}
