// One control-plane operation: its input, its answer and its work. The same schemas check requests and describe the
// operation in the OpenAPI document.

import type { z } from 'zod';
import type { Principal } from '../domain/identity/principal.ts';
import { checkAgainst } from '../domain/refusals/check-against.ts';
import { readQuery } from '../domain/refusals/read-query.ts';
import type { Refusal } from '../domain/refusals/refusal.ts';
import type { Exchange } from '../http/exchange.ts';
import { writeJson } from '../platform/write-json.ts';
import { decodePath } from './decode-path.ts';
import { type ArrivedBody, parseJsonBody, receiveJsonBody } from './read-json-body.ts';

/** The description of a route in the OpenAPI document. A null field means that the route has no such part. */
export interface OperationDescription {
  /** operationId: unique in the table. */
  readonly id: string;
  readonly summary: string;
  /** What the summary leaves out. */
  readonly details?: string;
  /** The headers that the route reads or forwards, by name. */
  readonly headers?: HeaderSchemas;
  readonly query: z.ZodObject | null;
  readonly body: z.ZodType | null;
  /** The body as multipart/form-data, where it may come as that too, or only as that where `body` is null. */
  readonly form?: z.ZodType;
  /** null: the answer is not JSON. */
  readonly answer: z.ZodType | null;
  /** The data of an event, where the answer may be a stream of them. */
  readonly events?: z.ZodType;
  /** The answer may be CSV. */
  readonly isCsv?: true;
  /** The route is about uploaded files, which an installation may not have. */
  readonly isOfMedia?: true;
  /** The answer may be the bytes of a file, or a part of them. */
  readonly isBytes?: true;
  /** The answer is a page of the console, or what belongs to it. */
  readonly isPage?: true;
  /** The route's own headers of an answer, by name. */
  readonly answerHeaders?: HeaderSchemas;
  /** null: the route refuses every request. */
  readonly status: 200 | 201 | 303 | null;
  /** Answers with another status that are no refusals. */
  readonly otherAnswers?: Readonly<Record<number, z.ZodType>>;
  /** The request may name the virtual model. */
  readonly isRouted?: true;
  /** The jobs process makes the answer. */
  readonly isReport?: true;
}

export type HeaderSchemas = Readonly<Record<string, z.ZodType>>;

/** The input of an operation: the request, read and checked. */
export interface OperationInput<Query, Body> {
  readonly principal: Principal;
  /** Path parameters by name. One whose name ends in `Id` is a UUID in lower case; the rest of a path is decoded. */
  readonly ids: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
}

/** The principal that calls an operation, and the ids that its path names. */
export type OperationSubject = Pick<OperationInput<unknown, unknown>, 'principal' | 'ids'>;

export interface Operation extends OperationDescription {
  /** Starts to receive the body at once, and uses it only after `authorize` has returned a principal. */
  readonly serve: (exchange: Exchange, authorize: Authorize) => Promise<void>;
}

/** The principal of the request, or why it is refused. To be called once. */
export type Authorize = () => Promise<Principal | Refusal> | Principal | Refusal;

interface Definition<Query extends z.ZodObject, Body extends z.ZodType, Answer extends z.ZodType> {
  readonly id: string;
  readonly summary: string;
  readonly query?: Query;
  readonly body?: Body;
  readonly answer: Answer;
  readonly status?: 201;
  readonly run: (input: OperationInput<z.output<Query>, z.output<Body>>) => Promise<z.output<Answer> | Refusal>;
}

/** An answer is `{data: ...}`, so a `kind` tells a refusal from it. */
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
      // Before its sender is authorized, a body that did not come with the head is not read, and no body is parsed.
      exchange.body.hold();
      const arriving = body === null ? null : receiveJsonBody(exchange);
      const principal = await authorize();
      if ('kind' in principal) return exchange.refuse(principal);
      if (body !== null) exchange.body.resume();
      const input = readInput(describe, exchange, principal, await arriving);
      if (input === null) return;
      const result = 'kind' in input ? input : await run(input as OperationInput<z.output<Query>, z.output<Body>>);
      if ('kind' in result) exchange.refuse(result as Refusal);
      else exchange.answerJson(status, writeJson(result));
    },
  };
}

/** null: the client has disconnected. */
function readInput(
  { query, body }: OperationDescription,
  exchange: Exchange,
  principal: Principal,
  arrived: ArrivedBody | Refusal | null,
): OperationInput<unknown, unknown> | Refusal | null {
  const ids = readIds(exchange);
  if (ids === null) return { kind: 'not_found' };
  const parsed = query === null ? { value: undefined } : readQuery(query, exchange.query);
  if ('kind' in parsed) return parsed;
  if (body === null) return { principal, ids, query: parsed.value, body: undefined };
  if (arrived === null) return null;
  if ('kind' in arrived) return arrived;
  const json = parseJsonBody(arrived);
  if ('kind' in json) return json;
  const checked = checkAgainst(body, json.object);
  return 'kind' in checked ? checked : { principal, ids, query: parsed.value, body: checked.value };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The rest of a path is the id of a model. */
const MODEL_NAME = /^[\x21-\x7e]{1,200}$/;
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** null: a parameter is no well-formed id. It is then answered like an id that does not exist. */
export function readIds(exchange: Exchange): Record<string, string> | null {
  const ids: Record<string, string> = {};
  const names = exchange.route.path.split('/').filter((segment) => segment.startsWith(':'));
  for (const [index, name] of names.entries()) {
    const value = exchange.parameters[index] ?? '';
    const rest = exchange.route.takesRest === true ? decodePath(value) : null;
    if (!(rest !== null ? MODEL_NAME : name.endsWith('Id') ? UUID : NAME).test(rest ?? value)) return null;
    ids[name.slice(1)] = rest ?? value.toLowerCase();
  }
  return ids;
}
