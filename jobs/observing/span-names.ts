// The names of span attributes. The GenAI names are those of OpenTelemetry's conventions, all of which still have the
// status "development". When the conventions change, only this file has to.
//
// https://github.com/open-telemetry/semantic-conventions-genai (gen_ai.*), opentelemetry.io/docs/specs/semconv (http.*,
// error.type, service.*).

export const NAMES = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  requestBytes: 'http.request.body.size',
  responseBytes: 'http.response.body.size',
  errorType: 'error.type',
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  stream: 'gen_ai.request.stream',
  firstChunk: 'gen_ai.response.time_to_first_chunk',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  execution: 'tollgate.execution.id',
  outcome: 'tollgate.outcome',
  billing: 'tollgate.billing.status',
  attempt: 'tollgate.attempt',
  tier: 'tollgate.route.tier',
  reason: 'tollgate.route.reason',
  policyVersion: 'tollgate.route.policy_version',
  confidence: 'tollgate.route.confidence',
  guardrail: 'tollgate.guardrail',
} as const;
