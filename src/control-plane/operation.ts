// One control-plane operation: what it takes, what it answers, what it does. The same schemas read its requests and
// describe it in OpenAPI.

import type { z } from 'zod';
import type { Principal } from '../domain/identity/principal.ts';
import { checkAgainst } from '../domain/refusals/check-against.ts';
import { readQuery } from '../domain/refusals/read-query.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import { readJsonBody } from './read-json-body.ts';

/** What OpenAPI is told of a route; null where there is none. */
export interface OperationDescription {
  /** operationId: unique in the table. */
  readonly id: string;
  readonly summary: string;
  readonly query: z.ZodObject | null;
  readonly body: z.ZodType | null;
  /** multipart/form-data instead of JSON. */
  readonly form?: true;
  /** null: not described here, such as a provider's own answer. */
  readonly answer: z.ZodType | null;
  readonly status: 200 | 201;
}

/** What a request asks, read and checked. */
export interface Asked<Query, Body> {
  readonly principal: Principal;
  /** Path parameters by name: a UUID in lower case where the name ends in `Id`, else a name as people give it. */
  readonly ids: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
}

export interface Operation extends OperationDescription {
  /** Attaches to the exchange at once; the body is used only when `authorize` has let the caller in. */
  readonly serve: (exchange: Exchange, authorize: Authorize) => Promise<void>;
}

/** Who is asking, or why they may not; called once. */
export type Authorize = () => Promise<Principal | Refusal> | Principal | Refusal;

interface Definition<Query extends z.ZodObject, Body extends z.ZodType, Answer extends z.ZodType> {
  readonly id: string;
  readonly summary: string;
  readonly query?: Query;
  readonly body?: Body;
  readonly answer: Answer;
  readonly status?: 201;
  readonly run: (asked: Asked<z.output<Query>, z.output<Body>>) => Promise<z.output<Answer> | Refusal>;
}

/** An answer is `{data: ...}` and so never has a refusal's `kind`. */
export function operation<
  Query extends z.ZodObject,
  Body extends z.ZodType,
  Answer extends z.ZodType<{ data: unknown }>,
>(definition: Definition<Query, Body, Answer>): Operation {
  const { id, summary, query = null, body = null, answer, status = 200, run } = definition;
  const describe: OperationDescription = { id, summary, query, body, answer, status };
  return {
    ...describe,
    async serve(exchange, authorize) {
      // What does not come with the head is not read before it is known who sends it.
      exchange.holdBody();
      const arriving = body === null ? null : readJsonBody(exchange);
      const principal = await authorize();
      if ('kind' in principal) return exchange.refuse(principal);
      if (body !== null) exchange.letBodyCome();
      const asked = readAsked(describe, exchange, principal, await arriving);
      if (asked === null) return;
      const result = 'kind' in asked ? asked : await run(asked as Asked<z.output<Query>, z.output<Body>>);
      if ('kind' in result) exchange.refuse(result as Refusal);
      else exchange.answerJson(status, JSON.stringify(result));
    },
  };
}

type Arrived = Awaited<ReturnType<typeof readJsonBody>>;

/** null: the client has left. */
function readAsked(
  { query, body }: OperationDescription,
  exchange: Exchange,
  principal: Principal,
  arrived: Arrived,
): Asked<unknown, unknown> | Refusal | null {
  const ids = readIds(exchange);
  if (ids === null) return { kind: 'not_found' };
  const asked = query === null ? { value: undefined } : readQuery(query, exchange.query);
  if ('kind' in asked) return asked;
  if (body === null) return { principal, ids, query: asked.value, body: undefined };
  if (arrived === null) return null;
  if ('kind' in arrived) return arrived;
  const checked = checkAgainst(body, arrived.object);
  return 'kind' in checked ? checked : { principal, ids, query: asked.value, body: checked.value };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** null: a parameter that no id looks like names nothing, and says so in the same words as an id that names nothing. */
export function readIds(exchange: Exchange): Record<string, string> | null {
  const ids: Record<string, string> = {};
  const names = exchange.route.path.split('/').filter((segment) => segment.startsWith(':'));
  for (const [index, name] of names.entries()) {
    const value = exchange.parameters[index] ?? '';
    if (!(name.endsWith('Id') ? UUID : NAME).test(value)) return null;
    ids[name.slice(1)] = value.toLowerCase();
  }
  return ids;
}
