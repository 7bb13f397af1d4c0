// Makes the body that goes to a provider: the client's own bytes with the edits that an attempt needs. Each attempt
// starts from the client's bytes.

import type { Buffer } from 'node:buffer';
import type { OutgoingBody } from '../../upstream/http1/request-head.ts';
import type { Deployment } from '../catalog/serving-catalog.ts';
import type { ReadRequest } from '../dialects/dialect.ts';
import { askForUsage } from './ask-for-usage.ts';
import { applyEdits, type BodyEdit } from './edits.ts';
import { modelEdit } from './model-edit.ts';
import type { ReceivedRequest } from './receive.ts';

/** A client's request on its way to providers: `bodyFor` gives each attempt its body. */
export class OutgoingRequest {
  /**
   * The present attempt asks for usage although the client did not, so the client must not see the chunk that reports
   * it.
   */
  asksForUsage = false;
  private readonly request: ReceivedRequest;
  private readonly read: ReadRequest;

  constructor(request: ReceivedRequest, read: ReadRequest) {
    this.request = request;
    this.read = read;
  }

  /** The body before an attempt's edits: the client's own, or as guardrails changed it. */
  get body(): Buffer {
    return this.request.body;
  }

  /** The body for an attempt at this deployment. */
  bodyFor(deployment: Deployment): OutgoingBody {
    const { request, read } = this;
    const model: BodyEdit =
      request.form === null
        ? modelEdit(request.body, read.modelAt, deployment)
        : { ...read.modelAt, replacement: deployment.modelText };
    const usage = deployment.asksForUsage && read.bounds.streamed ? usageEdit(request) : null;
    this.asksForUsage = usage !== null;
    const edits = usage === null ? [model] : usage.start < model.start ? [usage, model] : [model, usage];
    return { pieces: applyEdits(request.body, edits), pooled: request.pooled };
  }
}

function usageEdit({ body, scanned }: ReceivedRequest): BodyEdit | null {
  return askForUsage(body, scanned?.valueOf('stream_options') ?? null);
}
