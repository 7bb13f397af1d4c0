// The settings: read once from the environment, checked and frozen. No other file reads the environment.

import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { API_NAMES, APIS, type ApiName } from './domain/models/apis.ts';
import { type MediaConfig, mediaConfigOf, mediaProblems } from './media-settings.ts';
import { type ObservingConfig, observingConfigOf, readHeaders } from './observing-settings.ts';
import type { EgressAllowance } from './platform/egress/egress-guard.ts';
import { isNetwork, readAllowance } from './platform/egress/networks.ts';
import { type ReportsAddress, reportsAddress } from './reports-settings.ts';
import { address, flag, listOf, share, text, wholeNumber } from './setting-fields.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment at the start of the process; `${NAME}` in a configuration file reads it too. */
export const processEnvironment: Environment = Object.freeze({ ...process.env });

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export const MASTER_KEY_BYTES = 32;
/** The APIs whose admission refusals can be written in their own error format instead of the flat one (spec 7.4). */
export const DIALECT_ROUTES: readonly ApiName[] = API_NAMES.filter((api) => APIS[api].hasOwnRefusalForm);

/** A file, or what a command of a key store prints: a master key, and below it those before it, a line each. */
export type MasterKeySource = { readonly file: string } | { readonly command: string };

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly adminHost: string;
  readonly adminPort: number;
  readonly gatewayProcesses: number;
  /** The number of worker threads of a process; they start when there is work. */
  readonly workerThreads: number;
  /** An absolute path. */
  readonly dataDirectory: string;
  /** null: the embedded Postgres of `dataDirectory`. */
  readonly databaseUrl: string | null;
  /** null: the embedded ClickHouse of `dataDirectory`. */
  readonly clickhouseUrl: string | null;
  /** The brand in header names; in lower case, the prefix of virtual models. */
  readonly brand: string;
  /** The URL at which clients reach the gateway, without a trailing slash. */
  readonly publicUrl: string;
  readonly masterKey: Buffer | null;
  /** What is stored under these still opens. */
  readonly previousMasterKeys: readonly Buffer[];
  /** Where `masterKey` is read from at a start; null: nowhere. */
  readonly masterKeySource: MasterKeySource | null;
  readonly adminToken: string | null;
  readonly delegationKey: Buffer | null;
  readonly bodyLimitBytes: number;
  /** The most bytes that request bodies may occupy in a gateway process. */
  readonly bodyMemoryBytes: number;
  readonly bodyTimeoutSeconds: number;
  /** The most client connections to a gateway process. */
  readonly connectionsMax: number;
  /** How many connections one address may open to a gateway process within 15 seconds. */
  readonly connectionsPerAddress: number;
  /** Origins whose pages may call the gateway from a browser; null: none. */
  readonly corsOrigins: '*' | ReadonlySet<string> | null;
  /** Whether the console is served at /console. */
  readonly console: boolean;
  /** The absolute path of the file of OpenID providers; null: people sign in by tokens and links. */
  readonly signInFile: string | null;
  /** What serves HTTP; `auto`: uWebSockets.js where it has a binary. */
  readonly httpFront: 'uws' | 'node' | 'auto';
  /** Which HTTP client calls providers directly over HTTP/1.1. */
  readonly upstreamClient: 'own' | 'undici';
  /** The proxies that providers are called through; null: none. */
  readonly proxies: { readonly https: string | null; readonly http: string | null; readonly none: string };
  /** Addresses and networks to which `connectionsPerAddress` does not apply. */
  readonly trustedAddresses: readonly string[];
  readonly drainSeconds: number;
  /** Below this much free space on the disk of `dataDirectory` nothing is admitted. */
  readonly spoolReserveBytes: number;
  /** How many changes a person may make over the API of a gateway process; an organization five times as many. */
  readonly changesPerMinute: number;
  /** Whether webhooks may be sent to plain http:// addresses. */
  readonly webhookAllowHttp: boolean;
  /** Whether webhooks may be sent to loopback, private and link-local addresses. */
  readonly webhookAllowPrivate: boolean;
  /** What customers may name as the address of a provider or a webhook beside public addresses on port 443. */
  readonly egressAllow: readonly EgressAllowance[];
  /** Where the jobs process serves reports; null: on a socket of this installation. */
  readonly reportsListen: ReportsAddress | null;
  /** Where gateways request them; null: where the jobs process of this installation serves them. */
  readonly reportsUrl: ReportsAddress | null;
  /** Whole months of facts are dropped when they ended this long ago; null: never. */
  readonly factsRetentionDays: number | null;
  /** null: nothing is uploaded and nothing served. */
  readonly media: MediaConfig | null;
  readonly observing: ObservingConfig;
  readonly dialectRefusals: ReadonlySet<ApiName>;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  /** The absolute path of the configuration file; null: none was named. */
  readonly configurationFile: string | null;
  /** The names of the settings that were set, as opposed to defaulted. */
  readonly given: ReadonlySet<string>;
}

/** A Config with known secrets and addresses: what a serving process starts with. */
export interface CompleteConfig extends Config {
  readonly databaseUrl: string;
  readonly masterKey: Buffer;
  readonly reportsListen: ReportsAddress;
  readonly reportsUrl: ReportsAddress;
}

/** All wrong settings, one line each. The command prints the lines and nothing else. */
export class ConfigFault extends Error {
  override readonly name = 'ConfigFault';
  readonly lines: readonly string[];
  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** While a body grows, its old and its new buffer both exist; and the last eighth is reserved for small bodies. */
function bodyMemoryMin(bodyLimitBytes = BODY_LIMIT_BYTES): number {
  return bodyLimitBytes * 2;
}

const GIBIBYTE = 1024 ** 3;
const BODY_LIMIT_BYTES = 33_554_432;
const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1'];

const HOST_NAME = /^[A-Za-z0-9.:_-]{1,253}$/;

/** As browsers send it: no path, no default port, host in small letters. */
function isOrigin(text: string): boolean {
  return /^https?:[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

const MASTER_KEY = 'must be 32 bytes in base64 (44 characters; `openssl rand -base64 32` makes one)';

export function isMasterKey(text: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(text) && Buffer.from(text, 'base64').length === MASTER_KEY_BYTES;
}

const SETTINGS = z.object({
  HOST: text(HOST_NAME, 'must be an IP address or a host name'),
  PORT: wholeNumber(1, 65_535),
  ADMIN_HOST: text(HOST_NAME, 'must be an IP address or a host name'),
  ADMIN_PORT: wholeNumber(1, 65_535),
  GATEWAY_PROCESSES: wholeNumber(1, 256),
  WORKER_THREADS: wholeNumber(1, 256),
  DATA_DIR: text(/^[^\0]+$/, 'must be a directory path'),
  // Not checked as a URL: an address with a socket directory has no host, which the URL standard does not allow.
  DATABASE_URL: text(/^postgres(ql)?:\/\/\S+$/, 'must be a URL starting with postgres:// or postgresql://'),
  CLICKHOUSE_URL: address(['http:', 'https:']),
  // The brand becomes part of header names and, in lower case, of model ids.
  BRAND: text(/^[A-Za-z][A-Za-z0-9-]{0,31}$/, 'must be 1 to 32 letters, digits or hyphens, the first a letter'),
  PUBLIC_URL: address(['http:', 'https:']),
  MASTER_KEY: z.string().refine(isMasterKey, MASTER_KEY).optional(),
  MASTER_KEY_PREVIOUS: z
    .string()
    .transform((value) => value.split(',').map((key) => key.trim()))
    .refine((keys) => keys.every(isMasterKey), `each of them ${MASTER_KEY}, with commas between`)
    .optional(),
  MASTER_KEY_FILE: text(/^[^\0]+$/, 'must be a file path'),
  MASTER_KEY_COMMAND: text(/^[^\0]+$/, 'must be a command of the shell'),
  ADMIN_TOKEN: text(/^[\x21-\x7e]{16,512}$/, 'must be 16 to 512 visible ASCII characters'),
  DELEGATION_KEY: text(/^[\x21-\x7e]{32,512}$/, 'must be 32 to 512 visible ASCII characters'),
  BODY_LIMIT_BYTES: wholeNumber(1024, GIBIBYTE),
  BODY_MEMORY_BYTES: wholeNumber(1_048_576, 1024 * GIBIBYTE),
  BODY_TIMEOUT_SECONDS: wholeNumber(1, 86_400),
  CONNECTIONS_MAX: wholeNumber(1, 1_000_000),
  CONNECTIONS_PER_ADDRESS: wholeNumber(1, 1_000_000),
  CORS_ORIGINS: z
    .string()
    .transform((value) => (value === '*' ? value : new Set(value.split(',').map((origin) => origin.trim()))))
    .refine(
      (origins) => origins === '*' || [...origins].every(isOrigin),
      'must be "*", or origins such as https://app.example, without a path, with commas between',
    )
    .optional(),
  CONSOLE: z.enum(['on', 'off'], 'must be on or off').optional(),
  SIGN_IN_FILE: text(/^[^\0]+$/, 'must be a file path'),
  HTTP_FRONT: z.enum(['uws', 'node', 'auto'], 'must be uws, node or auto').optional(),
  UPSTREAM_CLIENT: z.enum(['own', 'undici'], 'must be own or undici').optional(),
  HTTPS_PROXY: address(['http:', 'https:', 'socks5:']),
  HTTP_PROXY: address(['http:', 'https:', 'socks5:']),
  NO_PROXY: text(/^[\x20-\x7e]{1,10000}$/, 'must be names and addresses with commas between'),
  TRUSTED_ADDRESSES: z
    .string()
    .transform((value) => (value === 'none' ? [] : value.split(',').map((entry) => entry.trim())))
    .refine(
      (list) => list.every(isNetwork),
      'must be "none", or IP addresses and networks such as 10.0.0.0/8, with commas between',
    )
    .optional(),
  DRAIN_SECONDS: wholeNumber(0, 3600),
  SPOOL_RESERVE_BYTES: wholeNumber(0, 1024 * GIBIBYTE),
  CHANGES_PER_MINUTE: wholeNumber(1, 1_000_000),
  WEBHOOK_ALLOW_HTTP: flag(),
  WEBHOOK_ALLOW_PRIVATE: flag(),
  EGRESS_ALLOW: z
    .string()
    .transform((value) => value.split(',').map((entry) => readAllowance(entry.trim())))
    .refine(
      (list): list is EgressAllowance[] => list.every((entry) => entry !== null),
      'must be networks with a port, such as 10.2.0.0/16:8000 or [fd00::/8]:8000, or :8443, with commas between',
    )
    .optional(),
  REPORTS_LISTEN: reportsAddress('', 'must be HOST:PORT, such as 0.0.0.0:8082, or unix:/path'),
  REPORTS_URL: reportsAddress('http://', 'must be http://HOST:PORT or unix:/path'),
  FACTS_RETENTION_DAYS: wholeNumber(7, 36_500),
  MEDIA: z.enum(['off', 'disk', 's3'], 'must be off, disk or s3').optional(),
  MEDIA_BUCKET_URL: address(['http:', 'https:']),
  MEDIA_BUCKET_REGION: text(/^[a-z0-9-]{1,64}$/, 'must be the name of a region'),
  MEDIA_BUCKET_KEY_ID: text(/^[\x21-\x7e]{1,256}$/, 'must be visible ASCII characters'),
  MEDIA_BUCKET_SECRET: text(/^[\x21-\x7e]{1,512}$/, 'must be visible ASCII characters'),
  MEDIA_RETRIEVAL: z.enum(['bytes', 'url'], 'must be bytes or url').optional(),
  MEDIA_PUBLIC_URL: address(['http:', 'https:']),
  MEDIA_FILE_BYTES_MAX: wholeNumber(1, 5 * GIBIBYTE),
  MEDIA_RETENTION_DAYS: wholeNumber(1, 36_500),
  MEDIA_ORGANIZATION_BYTES_MAX: wholeNumber(1, 999_999_999_999_999),
  ACCESS_LOG: z.enum(['on', 'off'], 'must be on or off').optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: address(['http:', 'https:']),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .transform(readHeaders)
    .refine((headers) => headers !== null, 'must be name=value pairs with commas between')
    .optional(),
  OTEL_SERVICE_NAME: text(/^[\x20-\x7e]{1,128}$/, 'must be visible ASCII characters'),
  OTEL_TRACES_SAMPLER_ARG: share(),
  DIALECT_REFUSALS: listOf(DIALECT_ROUTES, `must be "all" or some of ${DIALECT_ROUTES.join(',')}, with commas between`),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).optional(),
  TOLLGATE_CONFIG: text(/^[^\0]+$/, 'must be a file path'),
});

export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS.shape);

/** The values of these settings are never repeated, not even to the operator who mistyped them. */
export const SECRET_SETTINGS: ReadonlySet<string> = new Set([
  'DATABASE_URL',
  'CLICKHOUSE_URL',
  'MASTER_KEY',
  'MASTER_KEY_PREVIOUS',
  // A command may have a password in it.
  'MASTER_KEY_COMMAND',
  'ADMIN_TOKEN',
  'DELEGATION_KEY',
  // They may have a user and a password.
  'HTTPS_PROXY',
  'HTTP_PROXY',
  'MEDIA_BUCKET_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
]);

/** Settings that are not Tollgate's own, and that many systems have in small letters. */
const KNOWN_IN_SMALL_LETTERS: ReadonlySet<string> = new Set(['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']);

function lowerCase(name: string, environment: Environment): string | undefined {
  return KNOWN_IN_SMALL_LETTERS.has(name) ? environment[name.toLowerCase()] : undefined;
}

type Settings = z.output<typeof SETTINGS>;

function masterKeySource({ MASTER_KEY_FILE: file, MASTER_KEY_COMMAND: command }: Settings): MasterKeySource | null {
  if (file !== undefined) return { file: resolve(file) };
  return command === undefined ? null : { command };
}

/** Reads the settings; throws one ConfigFault that names every wrong one. An empty value counts as not set. */
export function readConfig(environment: Environment, workingDirectory: string = process.cwd()): Config {
  const given = Object.fromEntries(
    SETTING_NAMES.map((name) => [name, environment[name] ?? lowerCase(name, environment)]).filter(
      ([, value]) => value !== undefined && value !== '',
    ),
  );
  const result = SETTINGS.safeParse(given);
  if (!result.success) throw new ConfigFault(describeIssues(result.error.issues, given));
  const settings = result.data;
  const across = crossChecks(settings);
  if (across.length > 0) throw new ConfigFault(across);

  const cores = availableParallelism();
  const host = settings.HOST ?? '127.0.0.1';
  const port = settings.PORT ?? 8080;
  const gatewayProcesses = settings.GATEWAY_PROCESSES ?? cores;
  return Object.freeze({
    host,
    port,
    adminHost: settings.ADMIN_HOST ?? '127.0.0.1',
    adminPort: settings.ADMIN_PORT ?? 8081,
    gatewayProcesses,
    workerThreads: settings.WORKER_THREADS ?? Math.max(1, Math.floor(cores / gatewayProcesses)),
    dataDirectory: resolve(workingDirectory, settings.DATA_DIR ?? '.tollgate'),
    databaseUrl: settings.DATABASE_URL ?? null,
    clickhouseUrl: settings.CLICKHOUSE_URL ?? null,
    brand: settings.BRAND ?? 'Service',
    publicUrl: settings.PUBLIC_URL?.replace(/\/+$/, '') ?? localUrl(host, port),
    masterKey: settings.MASTER_KEY === undefined ? null : Buffer.from(settings.MASTER_KEY, 'base64'),
    previousMasterKeys: (settings.MASTER_KEY_PREVIOUS ?? []).map((key) => Buffer.from(key, 'base64')),
    masterKeySource: masterKeySource(settings),
    adminToken: settings.ADMIN_TOKEN ?? null,
    delegationKey: settings.DELEGATION_KEY === undefined ? null : Buffer.from(settings.DELEGATION_KEY, 'utf8'),
    bodyLimitBytes: settings.BODY_LIMIT_BYTES ?? BODY_LIMIT_BYTES,
    bodyMemoryBytes: settings.BODY_MEMORY_BYTES ?? Math.max(536_870_912, bodyMemoryMin(settings.BODY_LIMIT_BYTES)),
    bodyTimeoutSeconds: settings.BODY_TIMEOUT_SECONDS ?? 600,
    connectionsMax: settings.CONNECTIONS_MAX ?? 16_384,
    connectionsPerAddress: settings.CONNECTIONS_PER_ADDRESS ?? 2_048,
    corsOrigins: settings.CORS_ORIGINS ?? null,
    console: settings.CONSOLE !== 'off',
    signInFile: settings.SIGN_IN_FILE === undefined ? null : resolve(workingDirectory, settings.SIGN_IN_FILE),
    httpFront: settings.HTTP_FRONT ?? 'auto',
    upstreamClient: settings.UPSTREAM_CLIENT ?? 'own',
    proxies: {
      https: settings.HTTPS_PROXY ?? null,
      http: settings.HTTP_PROXY ?? null,
      none: settings.NO_PROXY ?? '',
    },
    trustedAddresses: settings.TRUSTED_ADDRESSES ?? LOOPBACK,
    drainSeconds: settings.DRAIN_SECONDS ?? 30,
    spoolReserveBytes: settings.SPOOL_RESERVE_BYTES ?? 67_108_864,
    changesPerMinute: settings.CHANGES_PER_MINUTE ?? 60,
    webhookAllowHttp: settings.WEBHOOK_ALLOW_HTTP ?? false,
    webhookAllowPrivate: settings.WEBHOOK_ALLOW_PRIVATE ?? false,
    egressAllow: settings.EGRESS_ALLOW ?? [],
    reportsListen: settings.REPORTS_LISTEN ?? null,
    reportsUrl: settings.REPORTS_URL ?? settings.REPORTS_LISTEN ?? null,
    factsRetentionDays: settings.FACTS_RETENTION_DAYS ?? null,
    media: mediaConfigOf(settings),
    observing: observingConfigOf(settings),
    dialectRefusals: new Set(settings.DIALECT_REFUSALS ?? []),
    logLevel: settings.LOG_LEVEL ?? 'info',
    configurationFile:
      settings.TOLLGATE_CONFIG === undefined ? null : resolve(workingDirectory, settings.TOLLGATE_CONFIG),
    given: new Set(Object.keys(given)),
  });
}

function describeIssues(issues: readonly z.core.$ZodIssue[], given: Environment): string[] {
  const lines = new Map<string, string>();
  for (const issue of issues) {
    const name = String(issue.path[0]);
    const got = SECRET_SETTINGS.has(name) ? '' : `, got ${JSON.stringify(given[name])}`;
    if (!lines.has(name)) lines.set(name, `${name}: ${issue.message}${got}`);
  }
  return [...lines.values()];
}

function crossChecks(settings: Settings): string[] {
  const lines: string[] = [];
  const sources = [settings.MASTER_KEY, settings.MASTER_KEY_FILE, settings.MASTER_KEY_COMMAND];
  const given = sources.filter((setting) => setting !== undefined).length;
  if (given > 1) lines.push('MASTER_KEY: only one of MASTER_KEY, MASTER_KEY_FILE and MASTER_KEY_COMMAND can be given');
  if (settings.DATABASE_URL !== undefined && given === 0) {
    lines.push(
      'MASTER_KEY: must be given when DATABASE_URL is: every machine on one database needs the same 32 ' +
        'bytes in base64 (`openssl rand -base64 32` makes them)',
    );
  }
  const memoryMin = bodyMemoryMin(settings.BODY_LIMIT_BYTES);
  if (settings.BODY_MEMORY_BYTES !== undefined && settings.BODY_MEMORY_BYTES < memoryMin) {
    lines.push(
      `BODY_MEMORY_BYTES: must be at least twice BODY_LIMIT_BYTES, ${memoryMin}, got "${settings.BODY_MEMORY_BYTES}"`,
    );
  }
  if (settings.PORT !== undefined && settings.PORT === settings.ADMIN_PORT)
    lines.push(`ADMIN_PORT: must differ from PORT, got "${settings.PORT}" for both`);
  return [...lines, ...mediaProblems(settings)];
}

/** The URL to show for a listening host and port; a wildcard host is reached through loopback. */
export function localUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`;
  if (host === '::') return `http://[::1]:${port}`;
  return host.includes(':') ? `http://[${host}]:${port}` : `http://${host}:${port}`;
}
