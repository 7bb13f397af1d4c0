// Lists the keys that the scanner looks for in a request body, and writes the tables in which its module finds them
// (addresses and layout: request-scanner.as.ts).

import { Buffer } from 'node:buffer';
import { assert } from '../../../platform/assert.ts';

/**
 * Fields that can choose another model or price than the catalog's, read by unpriced-fields.ts. Few requests have
 * one.
 */
export const COST_KEYS = [
  'service_tier',
  'speed',
  'inference_geo',
  'mcp_servers',
  'container',
  'context_management',
  'web_search_options',
  'search_parameters',
  'search_settings',
  'search_options',
  'enable_search',
  'modalities',
  'audio',
  'plugins',
  'models',
  'route',
  'provider',
  'fallbacks',
  'preset',
  'deferred',
  'multi_agent',
  'compound_custom',
  'web_search',
] as const;

/** Fields of the outermost object whose position is wanted; at most 64. The same list serves every dialect. */
export const CONTROL_KEYS = [
  'model',
  'stream',
  'stream_options',
  'messages',
  'input',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tool_calls',
  'n',
  'previous_response_id',
  'prompt_cache_key',
  'metadata',
  'system',
  'tools',
  'background',
  'store',
  'state',
  'questions',
  'prompt',
  'conversation',
  ...COST_KEYS,
] as const;

/**
 * Servers that read JSON into protocol buffers, as Google's do, take `maxTokens` for `max_tokens`. Such a name is
 * another letter case of the joined key (`maxtokens`), and is refused as that. Without a capital no server takes it for
 * the field.
 */
const JOINED_KEYS: readonly ControlKey[] = [
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'stream_options',
  'previous_response_id',
  'service_tier',
  'web_search_options',
  'search_parameters',
  'enable_search',
  'multi_agent',
];

/** Keys that announce content whose tokens cannot be bounded by its bytes, counted at any depth. */
export const ATTACHMENT_KEYS = [
  'image_url',
  'input_audio',
  'file',
  'source',
  'file_id',
  'file_data',
  'file_url',
  // Of OpenRouter, Alibaba, Moonshot, vLLM and Mistral: an address of few bytes can stand for an hour of video.
  'video_url',
  'video',
  'audio_url',
  'document_url',
  'input_file',
  'input_video',
  // Google's: names a context that Google stores, which counts as input.
  'cached_content',
] as const;

/**
 * Keys that may name an object stored at a provider, counted below the outermost object. A request with one of them is
 * examined further (stored-objects.ts).
 */
const STORED_OBJECT_KEYS = [
  'file_id',
  'file_ids',
  'vector_store_ids',
  'container',
  'container_id',
  'skill_id',
  'audio',
  'cached_content',
] as const;

export type CostKey = (typeof COST_KEYS)[number];
export type ControlKey = (typeof CONTROL_KEYS)[number];

const TOP_KEYS = 2048;
const NESTED_KEYS = 4608;
const TABLE_META = 80;
const TABLE_KEYS = 224;
const TABLE_KEYS_MAX = 72;
const KEY_BYTES_MAX = 32;
const CASE_BIT = 0x20;
const FLAGS = { attachment: 1, storedObject: 2, cacheControl: 4, tools: 8, input: 16 } as const;
/** The roles that keys of nested objects have in the scan. */
const ROLES: Readonly<Record<string, number>> = { type: 1, role: 2, tools: 3, ttl: 4, id: 5 };
const NO_ROLE = 255;
const CONTROL_KEYS_MAX = 64;

/** The bits of `COST_KEYS` in the two words of `SEEN`. */
export const COST_BITS = [0, 1].map((word) =>
  CONTROL_KEYS.reduce((bits, key, at) => (at >> 5 === word && isCostKey(key) ? bits | (1 << (at & 31)) : bits), 0),
);

/** The control key for a code of the table, which is the key's index, or for a joined key that of the key it joins. */
export function controlKeyOf(code: number): ControlKey | null {
  return CONTROL_KEYS[code % CONTROL_KEYS_MAX] ?? null;
}

export function writeKeyTables(memory: Uint8Array): void {
  writeKeyTable(memory, TOP_KEYS, topKeys());
  writeKeyTable(memory, NESTED_KEYS, nestedKeys(), CASE_BIT);
}

interface TableKey {
  readonly key: string;
  /** The index of the control key; in the table of nested keys, the role. */
  readonly code: number;
  readonly flags: number;
}

function isCostKey(key: string): boolean {
  return COST_KEYS.some((candidate) => candidate === key);
}

function attachmentFlag(key: string): number {
  return ATTACHMENT_KEYS.some((candidate) => candidate === key) ? FLAGS.attachment : 0;
}

function topKeys(): readonly TableKey[] {
  assert(CONTROL_KEYS.length <= CONTROL_KEYS_MAX, 'control keys are bits of two words');
  const flagsOf = (key: string): number => (key === 'tools' ? FLAGS.tools : key === 'input' ? FLAGS.input : 0);
  const controls = CONTROL_KEYS.map((key, code) => ({ key, code, flags: flagsOf(key) | attachmentFlag(key) }));
  // A joined key sets the bit of its control key, since the module takes the bit from the lowest six bits of the code.
  const joined = JOINED_KEYS.map((key) => ({
    key: key.replaceAll('_', ''),
    code: CONTROL_KEYS.indexOf(key) + CONTROL_KEYS_MAX,
    flags: 0,
  }));
  const others = ATTACHMENT_KEYS.map((key) => ({ key, code: NO_ROLE, flags: FLAGS.attachment as number }));
  return [...controls, ...joined, ...others, { key: 'cache_control', code: NO_ROLE, flags: FLAGS.cacheControl }];
}

function nestedKeys(): readonly TableKey[] {
  const keys = new Set<string>([...ATTACHMENT_KEYS, ...STORED_OBJECT_KEYS, 'cache_control', ...Object.keys(ROLES)]);
  return [...keys].map((key) => {
    const stored = STORED_OBJECT_KEYS.some((candidate) => candidate === key) ? FLAGS.storedObject : 0;
    const cacheControl = key === 'cache_control' ? FLAGS.cacheControl : 0;
    return { key, code: ROLES[key] ?? NO_ROLE, flags: attachmentFlag(key) | stored | cacheControl };
  });
}

/**
 * Keys sorted by length, each zero-padded: the module compares 32 bytes at once, so no hash can collide. `caseBit` is
 * set in each byte of a key.
 */
function writeKeyTable(memory: Uint8Array, table: number, keys: readonly TableKey[], caseBit = 0): void {
  assert(keys.length <= TABLE_KEYS_MAX, 'the key table holds 72 keys');
  const sorted = keys.toSorted((a, b) => a.key.length - b.key.length);
  for (let length = 0; length <= KEY_BYTES_MAX; length++) {
    memory[table + length * 2] = sorted.filter(({ key }) => key.length < length).length;
    memory[table + length * 2 + 1] = sorted.filter(({ key }) => key.length <= length).length;
  }
  for (const [row, { key, code, flags }] of sorted.entries()) {
    assert(/^[a-z_]{1,21}$/.test(key), 'keys of the table are small letters and underscores, and at most 21 long');
    memory[table + TABLE_META + row * 2] = code;
    memory[table + TABLE_META + row * 2 + 1] = flags;
    const bytes = Buffer.from(key, 'latin1').map((byte) => byte | caseBit);
    memory.set(bytes, table + TABLE_KEYS + row * KEY_BYTES_MAX);
  }
}
