// Finds references to objects that a provider stores: files, containers, vector stores, skills, items of responses. All
// organizations share the operator's account at a provider, so whoever knows an id could read what another organization
// stored there.

import { isKeptItemId } from './kept-ids.ts';

export interface StoredObjectsFound {
  /** The path of the first reference; null: there is none. */
  readonly path: string | null;
  /** How many keys below the outermost object could refer to one, whatever their values. */
  readonly keys: number;
  /** The ids of the items to which `input` refers; null: some id is malformed, or there are too many. */
  readonly itemIds: readonly string[] | null;
}

type JsonObject = Readonly<Record<string, unknown>>;

const ID_KEYS = new Set(['file_id', 'container_id', 'skill_id', 'cached_content']);
const ID_LIST_KEYS = new Set(['file_ids', 'vector_store_ids']);
/** Keys whose value is a stored object if it is a string or has an `id`. */
const HOLDER_KEYS = new Set(['container', 'audio']);
/**
 * Keys whose values describe data rather than refer to it: the properties of a tool may have the name of any key above.
 */
const SCHEMA_KEYS = new Set([
  'parameters',
  'input_schema',
  'output_schema',
  'schema',
  'json_schema',
  'arguments',
  'metadata',
]);

/** Long conversations refer to a few items for each step of a tool loop. */
const ITEM_IDS_MAX = 1_024;
const NO_ITEMS: readonly string[] = [];

/** `bytes` are those of a request that the scanner has found to be one JSON object. */
export function findStoredObjects(bytes: Uint8Array): StoredObjectsFound {
  const body: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  const walk = new Walk();
  for (const [key, value] of Object.entries(body as JsonObject)) walk.look(value, key, SCHEMA_KEYS.has(key));
  return { path: walk.found, keys: walk.keys, itemIds: readReferences((body as JsonObject)['input']) };
}

function readReferences(input: unknown): readonly string[] | null {
  if (!Array.isArray(input)) return NO_ITEMS;
  const ids: unknown[] = input.filter(isReference).map((item) => memberOf(item, 'id'));
  return ids.length <= ITEM_IDS_MAX && ids.every(isItemId) ? ids : null;
}

/** The same rule as in the scanner, which counts references (request-scanner.as.ts). */
function isReference(item: unknown): item is JsonObject {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return false;
  const type = memberOf(item as JsonObject, 'type');
  if (type === 'item_reference') return true;
  return typeof type !== 'string' && memberOf(item as JsonObject, 'role') === undefined;
}

function isItemId(id: unknown): id is string {
  return typeof id === 'string' && isKeptItemId(id);
}

/** Names are compared without regard to case, as some providers do. */
function memberOf(object: JsonObject, name: string): unknown {
  const key = Object.keys(object).find((candidate) => candidate.toLowerCase() === name);
  return key === undefined ? undefined : object[key];
}

class Walk {
  found: string | null = null;
  keys = 0;

  /** `isData`: keys inside are counted but refer to nothing. */
  look(value: unknown, path: string, isData: boolean): void {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries())
        if (typeof item === 'object') this.look(item, `${path}[${index}]`, isData);
    } else if (typeof value === 'object' && value !== null) this.lookInto(value as JsonObject, path, isData);
  }

  private lookInto(object: JsonObject, path: string, isData: boolean): void {
    const { type } = object;
    const isToolUse = typeof type === 'string' && type.endsWith('tool_use');
    for (const [key, value] of Object.entries(object)) {
      const name = key.toLowerCase();
      const mayName = ID_KEYS.has(name) || ID_LIST_KEYS.has(name) || HOLDER_KEYS.has(name);
      if (mayName) this.keys += 1;
      const inner = path.length > 200 ? path : `${path}.${key}`;
      if (mayName && !isData && this.found === null && namesObject(name, value)) this.found = inner.slice(0, 200);
      if (typeof value === 'object')
        this.look(value, inner, isData || SCHEMA_KEYS.has(key) || (isToolUse && key === 'input'));
    }
  }
}

function namesObject(name: string, value: unknown): boolean {
  if (value === null) return false;
  if (ID_KEYS.has(name)) return true;
  if (ID_LIST_KEYS.has(name)) return !(Array.isArray(value) && value.length === 0);
  return typeof value === 'string' || (typeof value === 'object' && 'id' in value && value.id !== null);
}
