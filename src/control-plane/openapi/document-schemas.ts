// The schemas of the OpenAPI document. A schema with an id becomes a component, which others refer to.

import { z } from 'zod';

export type Json = Readonly<Record<string, unknown>>;

export class DocumentSchemas {
  private readonly named = new Map<string, Json>();
  /** Schemas that were converted before: many routes share one, and a conversion takes a millisecond. */
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

  /** All schemas with an id so far. */
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
