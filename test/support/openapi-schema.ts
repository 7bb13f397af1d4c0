// Checks JSON against the schemas of OpenAI's own API description, as far as that description uses JSON Schema.

import { readFileSync } from 'node:fs';
import { sharedAssets } from './shared-assets.ts';

type Schema = Readonly<Record<string, unknown>>;

export interface OpenapiSchemas {
  /** The mistakes of `value` as a `components.schemas` entry; empty: it fits. */
  problems(schemaName: string, value: unknown): string[];
}

/** null: the description is not there. */
export function loadOpenapiSchemas(): OpenapiSchemas | null {
  const path = sharedAssets('openai-openapi', 'openapi.json');
  if (path === null) return null;
  const document = JSON.parse(readFileSync(path, 'utf8')) as { components: { schemas: Record<string, Schema> } };
  return { problems: (schemaName, value) => check({ $ref: `#/components/schemas/${schemaName}` }, value, '$') };

  function resolve(schema: Schema): Schema {
    if (typeof schema['$ref'] !== 'string') return schema;
    const name = schema['$ref'].slice('#/components/schemas/'.length);
    const found = document.components.schemas[name];
    if (found === undefined) throw new Error(`no schema ${name}`);
    return found;
  }

  function check(schema: Schema, value: unknown, at: string): string[] {
    if (typeof schema['$ref'] === 'string') return check(resolve(schema), value, at);
    if (value === null && schema['nullable'] === true) return [];
    const problems = [
      ...listOf(schema['allOf']).flatMap((part) => check(part, value, at)),
      ...alternatives(schema, value, at),
      ...ofType(schema, value, at),
    ];
    if (Array.isArray(schema['enum']) && !schema['enum'].includes(value))
      problems.push(`${at}: ${JSON.stringify(value)} is not one of ${schema['enum'].join(', ')}`);
    if ('const' in schema && schema['const'] !== value)
      problems.push(`${at}: ${JSON.stringify(value)} is not ${JSON.stringify(schema['const'])}`);
    if (isObject(value)) problems.push(...members(schema, value, at));
    if (Array.isArray(value) && isObject(schema['items']))
      for (const [index, item] of value.entries()) problems.push(...check(schema['items'], item, `${at}[${index}]`));
    return problems;
  }

  /**
   * The alternatives of a `oneOf` are not exclusive in practice, so one that fits is enough. If none fits, the closest
   * one of the same `type` gives the reason.
   */
  function alternatives(schema: Schema, value: unknown, at: string): string[] {
    const all = [...listOf(schema['anyOf']), ...listOf(schema['oneOf'])].map(resolve);
    const found = all.map((part) => ({
      problems: check(part, value, at),
      sameType: isObject(value) && typesOf(part).includes(value['type']),
    }));
    if (found.length === 0 || found.some(({ problems }) => problems.length === 0)) return [];
    const closest = found.some(({ sameType }) => sameType) ? found.filter(({ sameType }) => sameType) : found;
    return closest
      .map(({ problems }) => problems)
      .reduce((least, problems) => (problems.length < least.length ? problems : least));
  }

  function members(schema: Schema, value: Schema, at: string): string[] {
    const properties = isObject(schema['properties']) ? schema['properties'] : {};
    const required: unknown[] = Array.isArray(schema['required']) ? schema['required'] : [];
    const problems = required
      .filter((name) => !(String(name) in value))
      .map((name) => `${at}: ${String(name)} is missing`);
    for (const [name, part] of Object.entries(properties)) {
      // The real servers write null where the description only allows a member to be absent.
      const absent = !(name in value) || (value[name] === null && !required.includes(name));
      if (!absent && isObject(part)) problems.push(...check(part, value[name], `${at}.${name}`));
    }
    return problems;
  }
}

function ofType(schema: Schema, value: unknown, at: string): string[] {
  const types =
    typeof schema['type'] === 'string' ? [schema['type']] : Array.isArray(schema['type']) ? schema['type'] : null;
  if (types === null) return [];
  const actual = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const fits = types.some((type) => type === actual || (type === 'integer' && Number.isInteger(value)));
  return fits ? [] : [`${at}: ${actual} instead of ${types.join(' or ')}`];
}

/** The values that a schema fixes for `type`. */
function typesOf(schema: Schema): unknown[] {
  const type = isObject(schema['properties']) ? schema['properties']['type'] : undefined;
  return isObject(type) && Array.isArray(type['enum']) ? type['enum'] : [];
}

function listOf(value: unknown): Schema[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
