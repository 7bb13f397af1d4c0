// Compares the answers in contract tests with the OpenAPI document that the product serves: a status, a content type, a
// header of the product's own or a member that the document does not have fails the test. The document is made once for
// a run (test/run.ts), not once for each installation; contract/4.5-client-request-ids asserts that an installation
// serves it. An installation with a setting that changes the document is compared with the document that it serves
// itself.

import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';

export interface AnswerToCheck {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer | string;
}

interface DocumentedResponse {
  readonly headers?: Readonly<Record<string, DocumentedHeader>>;
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}

interface DocumentedHeader {
  readonly required?: boolean;
  readonly schema: object;
}

interface ServedDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Responses }>>>>;
  readonly components: Components;
}

interface Components {
  readonly responses: Responses;
  readonly headers: Readonly<Record<string, DocumentedHeader>>;
  readonly schemas: Readonly<Record<string, object>>;
}

type Responses = Readonly<Record<string, DocumentedResponse>>;

/** Only this suite's answers are checked; other suites cause answers that no client sees. */
const IS_CONTRACT = process.argv[1]?.includes('/test/contract/') === true;
/** Headers of HTTP itself, which every answer has. */
const TRANSPORT = new Set([
  'content-type',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'date',
  'uwebsockets',
]);
/** Every refusal of the product has this header. */
export const OWN_REFUSAL_HEADER = 'x-should-retry';
const ERRORS = ['GatewayError', 'PlatformError', 'ProviderKeysError', 'OpenaiError', 'MessagesError', 'SystemoneError'];

/** The setting that changes the document: the APIs whose admission refusals have the API's own form. */
const CHANGES_DOCUMENT = 'DIALECT_REFUSALS';

/** The documents of installations and fronts, by origin; they are read at the first check. */
const contracts = new Map<string, () => Promise<Contract>>();
const contractOfRun = once(documentOfRun);
/** All breaches, including those whose assertion a test caught. */
const breaches: string[] = [];

/** Call it once after starting the product, with the settings that it was given. */
export function expectDocumentedAnswers(url: string, settings: Readonly<Record<string, string>> = {}): void {
  if (!IS_CONTRACT) return;
  const { origin } = new URL(url);
  const own = once(() => servedDocument(origin));
  contracts.set(origin, settings[CHANGES_DOCUMENT] === undefined ? contractOfRun : own);
}

/** Rejects if the answer does not fit the document. */
export async function checkAnswer(url: string, method: string, answer: AnswerToCheck): Promise<void> {
  const { origin, pathname } = new URL(url);
  const contract = contracts.get(origin);
  if (contract === undefined || method === 'HEAD' || method === 'OPTIONS') return;
  const breach = (await contract()).breachOf(method, pathname, answer);
  if (breach === null) return;
  const text = String(answer.body).slice(0, 600);
  breaches.push(
    `${method} ${pathname} is not answered as its OpenAPI document says: ${breach}\n${answer.status} ${text}`,
  );
  assert.fail(breaches.at(-1));
}

process.on('exit', () => {
  if (breaches.length === 0) return;
  process.exitCode = 1;
  process.stderr.write(`${breaches.join('\n')}\n`);
});

function once(read: () => Promise<string>): () => Promise<Contract> {
  let contract: Promise<Contract> | null = null;
  return () => (contract ??= read().then((text) => new Contract(text)));
}

function servedDocument(origin: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${origin}/openapi.json`, { agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    });
    request.on('error', reject);
    request.end();
  });
}

/** The first caller makes the document: for this file or, within a run, for all files. */
async function documentOfRun(): Promise<string> {
  const kept = process.env['TOLLGATE_TEST_OPENAPI'];
  try {
    if (kept !== undefined) return readFileSync(kept, 'utf8');
  } catch {
    // No file has made the document yet.
  }
  const { openapiDocument } = await import('./route-table.ts');
  const text = JSON.stringify(openapiDocument());
  if (kept !== undefined) {
    const unfinished = `${kept}.${process.pid}`;
    writeFileSync(unfinished, text);
    renameSync(unfinished, kept);
  }
  return text;
}

/** A sum of tokens may be this long, but Zod does not accept longer integers. */
const LONG_INTEGER = /(?<=[:,[])[0-9]{17,}(?=[,}\]])/g;

class Contract {
  private readonly document: ServedDocument;
  private readonly operations: readonly {
    readonly pattern: RegExp;
    readonly methods: ServedDocument['paths'][string];
  }[];
  private readonly validators = new Map<object, z.ZodType>();

  constructor(text: string) {
    this.document = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')) as ServedDocument;
    this.operations = Object.entries(this.document.paths)
      // A literal segment is matched before a parameter.
      .toSorted(([one], [other]) => one.split('{').length - other.split('{').length)
      .map(([path, methods]) => ({ pattern: patternOf(path), methods }));
  }

  /** null: the answer is as documented. */
  breachOf(method: string, path: string, answer: AnswerToCheck): string | null {
    const isRefusal = answer.headers[OWN_REFUSAL_HEADER] !== undefined;
    const operation = this.operations.find(({ pattern }) => pattern.test(path))?.methods[method.toLowerCase()];
    if (operation === undefined) return isRefusal ? this.undescribed(answer) : 'there is no such operation';
    const { responses } = operation;
    // If the route also relays the provider's errors, the document has them under `default`, and only our own refusals
    // are compared.
    const isRelayed = 'default' in responses && !isRefusal && answer.status >= 300;
    const response = this.shared('responses', isRelayed ? responses['default'] : responses[answer.status]);
    if (response === undefined) return `it has no status ${answer.status}`;
    return isRefusal || !('default' in responses)
      ? (this.headersOf(response, answer) ?? this.contentOf(withoutProvider(response), answer))
      : this.contentOf(response, answer);
  }

  /** Checks a path or method that the document does not have: it must be refused in one of the envelopes. */
  private undescribed(answer: AnswerToCheck): string | null {
    const anyOf = ERRORS.filter((name) => name in this.document.components.schemas);
    return this.jsonOf({ anyOf: anyOf.map((name) => ({ $ref: `#/$defs/${name}` })) }, String(answer.body));
  }

  private headersOf({ headers = {} }: DocumentedResponse, answer: AnswerToCheck): string | null {
    const described = new Map(
      Object.entries(headers).map(([name, header]) => [name.toLowerCase(), this.shared('headers', header)]),
    );
    for (const [name, value] of Object.entries(answer.headers)) {
      if (TRANSPORT.has(name) || name.startsWith('access-control-') || name === 'vary') continue;
      const header = described.get(name);
      if (header === undefined) return `it has no header ${name}`;
      // Node.js gives several Set-Cookie headers as a list.
      const text = Array.isArray(value) ? value.join(', ') : value;
      const isNumber = 'type' in header.schema && header.schema.type === 'integer';
      const problem = this.problemOf(header.schema, isNumber ? Number(text) : text);
      if (problem !== null) return `header ${name}: ${problem}`;
    }
    const missing = [...described].find(([name, { required }]) => required === true && !(name in answer.headers));
    return missing === undefined ? null : `the header ${missing[0]} is missing`;
  }

  private contentOf({ content = {} }: DocumentedResponse, { headers, body }: AnswerToCheck): string | null {
    const type = (headers['content-type'] ?? '').split(';')[0]?.trim() ?? '';
    if (type === '' && body.length === 0) return null;
    const media = content[type] ?? content['*/*'];
    if (media === undefined) return `it has no content type ${type}`;
    if (type === 'application/json') return this.jsonOf(media.schema ?? {}, String(body));
    return type === 'text/event-stream' ? this.eventsOf(media.schema ?? {}, String(body)) : null;
  }

  private eventsOf(schema: object, body: string): string | null {
    for (const [, data = ''] of body.matchAll(/^data: ?(.*)$/gm)) {
      const problem = data === '[DONE]' ? null : this.jsonOf(schema, data);
      if (problem !== null) return `event ${data.slice(0, 200)}: ${problem}`;
    }
    return null;
  }

  private jsonOf(schema: object, text: string): string | null {
    let value: unknown;
    try {
      value = JSON.parse(text.replaceAll(LONG_INTEGER, String(Number.MAX_SAFE_INTEGER)));
    } catch {
      return 'its body is not JSON';
    }
    return this.problemOf(schema, value);
  }

  private problemOf(schema: object, value: unknown): string | null {
    let validator = this.validators.get(schema);
    if (validator === undefined) {
      validator = z.fromJSONSchema({ ...schema, $defs: this.schemasIn(schema) } as never);
      this.validators.set(schema, validator);
    }
    const { error } = validator.safeParse(value);
    return error === undefined ? null : z.prettifyError(error);
  }

  /** The schemas that it refers to, directly or indirectly. */
  private schemasIn(schema: object, found: Record<string, object> = {}): Readonly<Record<string, object>> {
    for (const [, name = ''] of JSON.stringify(schema).matchAll(/"#\/\$defs\/([^"]+)"/g)) {
      const named = this.document.components.schemas[name];
      if (named === undefined || name in found) continue;
      found[name] = named;
      this.schemasIn(named, found);
    }
    return found;
  }

  /** Resolves a reference to a component. */
  private shared<Part extends object | undefined>(kind: 'responses' | 'headers', part: Part): Part {
    if (part === undefined || !('$ref' in part)) return part;
    const name = String(part.$ref).slice(`#/components/${kind}/`.length);
    return this.document.components[kind][name] as Part;
  }
}

/** A model's id may have slashes. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/(models|model-prices)\/\{\w+\}$/, '$1/.+').replace(/\{\w+\}/g, '[^/]+')}$`);
}

/** The response without the part for the provider's answers. */
function withoutProvider(response: DocumentedResponse): DocumentedResponse {
  const { schema = {} } = response.content?.['application/json'] ?? {};
  if (!('anyOf' in schema) || !Array.isArray(schema.anyOf)) return response;
  return { content: { 'application/json': ownOf(schema as { readonly anyOf: readonly object[] }) } };
}

const own = new WeakMap<object, { readonly schema: object }>();

function ownOf(schema: { readonly anyOf: readonly object[] }): { readonly schema: object } {
  const known = own.get(schema);
  if (known !== undefined) return known;
  const anyOf = schema.anyOf.filter((part) => !('$ref' in part) || part.$ref !== '#/$defs/ProviderError');
  const made = { schema: { anyOf } };
  own.set(schema, made);
  return made;
}
