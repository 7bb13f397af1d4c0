// The schemas of the OpenAPI document. A named one becomes a component, and others refer to it.

import { z } from 'zod';

export type Json = Readonly<Record<string, unknown>>;

export class DocumentSchemas {
  private readonly named = new Map<string, Json>();
  /** Many routes share a schema, and to write one costs a millisecond. */
  private readonly written = { input: new Map<z.ZodType, Json>(), output: new Map<z.ZodType, Json>() };

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const known = this.written[io].get(schema);
    if (known !== undefined) return known;
    const json = this.write(schema, io);
    this.written[io].set(schema, json);
    return json;
  }

  private write(schema: z.ZodType, io: 'input' | 'output'): Json {
    const {
      $schema: _,
      $defs = {},
      ...rest
    } = z.toJSONSchema(schema, { io, unrepresentable: 'any', reused: 'inline' }) as Record<string, unknown>;
    for (const [name, definition] of Object.entries($defs as Record<string, Json>)) {
      const { id: __, ...named } = definition;
      this.named.set(name, pointAtComponents(named) as Json);
    }
    const { id, ...own } = pointAtComponents(rest) as Record<string, unknown>;
    if (typeof id !== 'string') return own;
    this.named.set(id, own);
    return { $ref: `#/components/schemas/${id}` };
  }

  /** All named ones so far. */
  components(): Json {
    return Object.fromEntries(this.named);
  }
}

function pointAtComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(pointAtComponents);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string'
        ? inner.replace('#/$defs/', '#/components/schemas/')
        : pointAtComponents(inner),
    ]),
  );
}
